"""What tests with other people's clients share: the official one, connected."""

# mypy: disable-error-code="import-untyped, no-untyped-call"
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from kubernetes import config

from trimtab.testing import Cluster


@pytest.fixture
def api(cluster: Cluster) -> Iterator[Any]:
    made = config.new_client_from_config(str(cluster.kubeconfig))
    yield made
    made.close()
