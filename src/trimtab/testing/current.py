"""The cluster of the user's own kubeconfig, for tests that were asked to run there."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from trimtab.testing.errors import ClusterError
from trimtab.testing.pki import write_private


def copy(kubectl: Path, *, folder: Path) -> tuple[str, Path, str]:
    """Freeze the current context into one file in `folder`: name, file and server.

    A copy, so that a test run stays on the cluster it started on when the user
    switches contexts meanwhile. kubectl makes it, because kubectl knows best how a
    list of files merges and what their relative paths mean.

    Errors: `ClusterError` when kubectl cannot read it, or it has no current context.
    """
    content = _minified(kubectl)
    name = content.get("current-context") or ""
    clusters = content.get("clusters") or []
    if not name or not clusters:
        raise ClusterError(
            "the kubeconfig has no current context, so --cluster=current names no "
            "cluster: choose one with `kubectl config use-context`."
        )
    path = folder / "current.kubeconfig"
    write_private(path, json.dumps(content).encode())
    return name, path, clusters[0]["cluster"]["server"]


def require_kubeconfig() -> None:
    """Raise `ClusterError` unless there is a kubeconfig where kubectl would look."""
    named = os.environ.get("KUBECONFIG", "")
    files = [Path(each) for each in named.split(os.pathsep) if each]
    files = files or [Path.home() / ".kube" / "config"]
    if not any(file.is_file() for file in files):
        looked = ", ".join(str(file) for file in files)
        raise ClusterError(
            f"--cluster=current uses your kubeconfig, but {looked} does not exist: "
            "set KUBECONFIG, or use --cluster=real."
        )


def _minified(kubectl: Path) -> dict[str, Any]:
    done = subprocess.run(
        [kubectl, "config", "view", "--raw", "--minify", "--flatten", "-o", "json"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=30.0,
    )
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip()
        raise ClusterError(
            f"kubectl cannot read the kubeconfig for --cluster=current: {said}"
        )
    content: dict[str, Any] = json.loads(done.stdout)
    return content
