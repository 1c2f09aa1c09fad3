"""Finalizers: those that volumes and claims get on their way in."""

from __future__ import annotations

from trimtab.embedded.kinds import Plain
from trimtab.embedded.metadata import metadata_of

CLAIMS = "core/persistentvolumeclaims/"
VOLUMES = "core/persistentvolumes/"
ATTRIBUTES = "storage.k8s.io/volumeattributesclasses/"
FINALIZERS = {
    CLAIMS: "kubernetes.io/pvc-protection",
    VOLUMES: "kubernetes.io/pv-protection",
    ATTRIBUTES: "kubernetes.io/vac-protection",
}


def protect(prefix: str, obj: Plain) -> None:
    """Give a new object the finalizer of its kind."""
    finalizers = metadata_of(obj).setdefault("finalizers", [])
    if FINALIZERS[prefix] not in finalizers:
        finalizers.append(FINALIZERS[prefix])
