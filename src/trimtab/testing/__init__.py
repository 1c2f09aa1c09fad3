"""Clusters, and operators in them, for tests of operators.

`cluster("real")` is an asynchronous context manager that gives a real control plane;
the pytest plugin (`pytest --cluster=real`) has fixtures for the same. `running` runs an
operator on one in a line, `rehearse` reconciles one object with no server at all,
`virtual_time` lets a test wait an hour in no time, and `eventually` waits until
something holds.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from trimtab.testing.cluster import Cluster, cluster
from trimtab.testing.errors import AssetsMissing, ClusterError, KubectlFailed
from trimtab.testing.options import Kind, Options, Token
from trimtab.testing.waiting import eventually

if TYPE_CHECKING:
    from trimtab.testing.operating import Running as Running
    from trimtab.testing.operating import install as install
    from trimtab.testing.operating import running as running
    from trimtab.testing.rehearsing import Rehearsal as Rehearsal
    from trimtab.testing.rehearsing import rehearse as rehearse
    from trimtab.testing.virtual import virtual_time as virtual_time

__all__ = [
    "AssetsMissing",
    "Cluster",
    "ClusterError",
    "Kind",
    "KubectlFailed",
    "Options",
    "Rehearsal",
    "Running",
    "Token",
    "cluster",
    "eventually",
    "install",
    "rehearse",
    "running",
    "virtual_time",
]

# These bring the runtime along, which a test run may not need.
_LATE = {
    "Rehearsal": "rehearsing",
    "Running": "operating",
    "install": "operating",
    "rehearse": "rehearsing",
    "running": "operating",
    "virtual_time": "virtual",
}


def __getattr__(name: str) -> Any:
    if name not in _LATE:
        raise AttributeError(f"module 'trimtab.testing' has no attribute {name!r}")
    value = getattr(import_module(f"trimtab.testing.{_LATE[name]}"), name)
    globals()[name] = value
    return value
