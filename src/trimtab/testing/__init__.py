"""Clusters, and waiting for things to happen in them, for tests of operators.

`cluster("real")` is an asynchronous context manager that gives a real control plane;
the pytest plugin (`pytest --cluster=real`) has fixtures for the same. `eventually`
waits until something holds.
"""

from trimtab.testing.cluster import Cluster, cluster
from trimtab.testing.errors import AssetsMissing, ClusterError, KubectlFailed
from trimtab.testing.options import Kind, Options, Token
from trimtab.testing.waiting import eventually

__all__ = [
    "AssetsMissing",
    "Cluster",
    "ClusterError",
    "Kind",
    "KubectlFailed",
    "Options",
    "Token",
    "cluster",
    "eventually",
]
