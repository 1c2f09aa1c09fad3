"""Where the programs of the test control plane are found on this machine.

Three places are looked at, and the first that has a program wins: the folder named
by `KUBEBUILDER_ASSETS` (the convention of other operator projects, so that one set of
programs serves them all), the cache folder that `hack/cluster/build.py` fills, and
`PATH`.
"""

import os
import shutil
from pathlib import Path

from trimtab.testing.errors import AssetsMissing

KUBERNETES_VERSION = "v1.36.3"
"""The Kubernetes that is built and tested against; hack/cluster/go.mod pins it."""

ETCD_VERSION = "v3.6.8"
"""The etcd that is built and tested against; hack/cluster/go.mod pins it."""

HELM_VERSION = "v4.3.1"
"""The Helm that judges the servers; hack/cluster/helm/go.mod pins it."""

KWOK_VERSION = "v0.8.0"
"""The KWOK that plays nodes and kubelets; hack/cluster/kwok/go.mod pins it."""

CONTROLLER_RUNTIME_VERSION = "v0.25.2"
"""The controller-runtime whose examples are run as other people's operators;
hack/cluster/controller-runtime/go.mod pins it."""

OPERATORS = ("controller-runtime-builtins", "controller-runtime-crd")
"""Those examples."""

VERSIONS = {
    "etcd": ETCD_VERSION,
    "helm": HELM_VERSION,
    "kwok": KWOK_VERSION,
    **dict.fromkeys(OPERATORS, CONTROLLER_RUNTIME_VERSION),
}
"""What is not of Kubernetes' own version."""

GO_VERSION = "1.26"
"""The Go that builds them, as hack/cluster/go.mod asks for."""

OPTIONAL = frozenset({"kube-controller-manager", "helm", "kwok", *OPERATORS})
"""What a folder of `KUBEBUILDER_ASSETS` may lack, because setup-envtest's does."""

NAMES = (
    "etcd",
    "kube-apiserver",
    "kubectl",
    "kube-controller-manager",
    "helm",
    "kwok",
    *OPERATORS,
)
"""Every program there is."""


def assets_folder() -> Path | None:
    """The folder that `KUBEBUILDER_ASSETS` names, whether it is there or not."""
    named = os.environ.get("KUBEBUILDER_ASSETS", "")
    return Path(named).expanduser().absolute() if named else None


def cache_folder() -> Path:
    """The user's cache folder for this version of the control plane."""
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    # The XDG specification says that a relative path must be ignored.
    if not base.is_absolute():
        base = Path.home() / ".cache"
    return base / "trimtab" / f"kubernetes-{KUBERNETES_VERSION}"


def find(name: str) -> Path | None:
    """The absolute path of the program `name`, or None."""
    for folder in (assets_folder(), cache_folder()):
        if folder is not None and _is_program(folder / name):
            return folder / name
    found = shutil.which(name)
    return Path(found).absolute() if found else None


def require(*names: str) -> dict[str, Path]:
    """The absolute path of each program in `names`.

    Errors: `AssetsMissing`, naming every program that is missing at once.
    """
    found = {name: find(name) for name in names}
    missing = [name for name, path in found.items() if path is None]
    if missing:
        raise AssetsMissing(
            f"{', '.join(missing)} not found in KUBEBUILDER_ASSETS, {cache_folder()} "
            f"or PATH: run `make test-cluster`, which builds what is missing with Go "
            f"{GO_VERSION}, or set KUBEBUILDER_ASSETS to a folder that has it."
        )
    return {name: path for name, path in found.items() if path is not None}


def _is_program(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)
