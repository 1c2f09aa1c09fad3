"""Where the real control plane is our own, the clients that judge us are there too."""

from __future__ import annotations

import pytest

from trimtab.testing import assets


@pytest.mark.cluster("real")
def test_a_control_plane_that_was_built_here_comes_with_its_clients() -> None:
    [apiserver] = assets.require("kube-apiserver").values()
    if apiserver.parent == assets.cache_folder():
        assert assets.require("helm", "kwok", *assets.OPERATORS)
