"""Volumes: the file trees that a pod's containers may mount."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trimtab.api.kinds.containers import ObjectFieldSelector, ResourceFieldSelector
from trimtab.api.kinds.references import LocalObjectReference
from trimtab.api.objects import Object
from trimtab.api.quantity import Quantity


class KeyToPath(Object):
    """One key as one file; ``mode`` is a number, and 0o644 is 420."""

    key: str
    path: str
    mode: int | None = None


class EmptyDirVolumeSource(Object):
    """A directory that lives as long as the pod; medium "Memory" is a tmpfs."""

    medium: str = ""
    sizeLimit: Quantity | None = None


class SecretVolumeSource(Object):
    """A Secret, one file for each key."""

    secretName: str = ""
    items: Sequence[KeyToPath] = ()
    defaultMode: int | None = None
    optional: bool | None = None


class ConfigMapVolumeSource(Object):
    """A ConfigMap, one file for each key."""

    name: str = ""
    items: Sequence[KeyToPath] = ()
    defaultMode: int | None = None
    optional: bool | None = None


class DownwardAPIVolumeFile(Object):
    """A fact about the pod as a file."""

    path: str
    fieldRef: ObjectFieldSelector | None = None
    resourceFieldRef: ResourceFieldSelector | None = None
    mode: int | None = None


class DownwardAPIVolumeSource(Object):
    """Facts about the pod, one file for each."""

    items: Sequence[DownwardAPIVolumeFile] = ()
    defaultMode: int | None = None


class SecretProjection(Object):
    """A Secret as a part of a projected volume."""

    name: str = ""
    items: Sequence[KeyToPath] = ()
    optional: bool | None = None


class ConfigMapProjection(Object):
    """A ConfigMap as a part of a projected volume."""

    name: str = ""
    items: Sequence[KeyToPath] = ()
    optional: bool | None = None


class DownwardAPIProjection(Object):
    """Facts about the pod as a part of a projected volume."""

    items: Sequence[DownwardAPIVolumeFile] = ()


class ServiceAccountTokenProjection(Object):
    """A token of the pod's service account, renewed before it expires."""

    path: str
    audience: str = ""
    expirationSeconds: int | None = None


class VolumeProjection(Object):
    """One part of a projected volume: exactly one of these."""

    secret: SecretProjection | None = None
    configMap: ConfigMapProjection | None = None
    downwardAPI: DownwardAPIProjection | None = None
    serviceAccountToken: ServiceAccountTokenProjection | None = None


class ProjectedVolumeSource(Object):
    """Several sources in one directory."""

    sources: Sequence[VolumeProjection] | None = None
    defaultMode: int | None = None


class HostPathVolumeSource(Object):
    """A path of the node itself."""

    path: str
    type: str | None = None


class PersistentVolumeClaimVolumeSource(Object):
    """A claim in the pod's namespace."""

    claimName: str
    readOnly: bool | None = None


class NFSVolumeSource(Object):
    """A path that an NFS server exports."""

    server: str
    path: str
    readOnly: bool | None = None


class CSIVolumeSource(Object):
    """A volume that a storage driver makes for this pod only."""

    driver: str
    readOnly: bool | None = None
    fsType: str | None = None
    volumeAttributes: dict[str, str] = {}
    nodePublishSecretRef: LocalObjectReference | None = None


class ImageVolumeSource(Object):
    """The files of an image, mounted read-only."""

    reference: str = ""
    pullPolicy: str = ""


class Volume(Object):
    """A named file tree: a name and exactly one source."""

    name: str
    emptyDir: EmptyDirVolumeSource | None = None
    secret: SecretVolumeSource | None = None
    configMap: ConfigMapVolumeSource | None = None
    projected: ProjectedVolumeSource | None = None
    downwardAPI: DownwardAPIVolumeSource | None = None
    hostPath: HostPathVolumeSource | None = None
    persistentVolumeClaim: PersistentVolumeClaimVolumeSource | None = None
    ephemeral: dict[str, Any] | None = None
    nfs: NFSVolumeSource | None = None
    csi: CSIVolumeSource | None = None
    image: ImageVolumeSource | None = None
