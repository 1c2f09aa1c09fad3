"""The real Helm, for tests that have it judge what we write."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import yaml

from trimtab.testing import Cluster, assets


class Helm:
    """The real helm, on one cluster or on none."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self._program = assets.require("helm")["helm"]
        self._environ = {
            "KUBECONFIG": str(cluster.kubeconfig),
            "HOME": str(folder),
            "HELM_CACHE_HOME": str(folder / "helm"),
        }

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self._program, *arguments],
            env=self._environ,
            capture_output=True,
            text=True,
            timeout=50,
            check=False,
        )

    def __call__(self, *arguments: str) -> str:
        done = self.run(*arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def template(self, chart: Path, *arguments: str) -> list[dict[str, Any]]:
        found = yaml.safe_load_all(self("template", "x", str(chart), *arguments))
        return [each for each in found if each]
