"""Volume sources: what a volume of a pod can be made of, and what each needs."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from trimtab.api.quantity import Quantity
from trimtab.embedded.builtin.validation import claims, env, texts
from trimtab.embedded.builtin.validation.problems import Found

Source = Mapping[str, Any]
Check = Callable[[Found, Source, str], None]

HOST_PATH_TYPES: Final = (
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
)
PULL_POLICIES: Final = ("Always", "IfNotPresent", "Never")


def needs(*fields: str) -> Check:
    """A source of which all that is checked is that some fields are there."""

    def check(found: Found, source: Source, path: str) -> None:
        for field in fields:
            if not source.get(field):
                found.required(f"{path}.{field}")

    return check


def mode(found: Found, value: int | None, path: str) -> None:
    if value is not None and not 0 <= value <= 0o777:
        found.invalid(path, value, texts.FILE_MODE)


def empty_dir(found: Found, source: Source, path: str) -> None:
    limit = source.get("sizeLimit")
    if limit is not None and Quantity(limit) < Quantity(0):
        detail = "SizeLimit field must be a valid resource quantity"
        found.forbidden(f"{path}.sizeLimit", detail)


def no_steps_back(found: Found, value: str, path: str) -> None:
    if texts.steps_back(value):
        found.invalid(path, value, "must not contain '..'")


def host_path(found: Found, source: Source, path: str) -> None:
    if not source["path"]:
        found.required(f"{path}.path")
        return
    no_steps_back(found, source["path"], f"{path}.path")
    if "type" in source:
        found.one_of(f"{path}.type", source["type"], HOST_PATH_TYPES)


def git_repo(found: Found, source: Source, path: str) -> None:
    if not source["repository"]:
        found.required(f"{path}.repository")
    directory = source.get("directory", "")
    found.each(f"{path}.directory", directory, texts.descending(directory))


def disk(field: str) -> Check:
    """A disk of a cloud, named by one field, with partitions."""

    def check(found: Found, source: Source, path: str) -> None:
        if not source[field]:
            found.required(f"{path}.{field}")
        partition = source.get("partition", 0)
        if not 0 <= partition <= 255:
            found.invalid(f"{path}.partition", partition, texts.between(1, 255))

    return check


def secret(found: Found, source: Source, path: str) -> None:
    if not source.get("secretName"):
        found.required(f"{path}.secretName")
    _keyed(found, source, path)


def config_map(found: Found, source: Source, path: str) -> None:
    if not source.get("name"):
        found.required(f"{path}.name")
    _keyed(found, source, path)


def _keyed(found: Found, source: Source, path: str) -> None:
    mode(found, source.get("defaultMode"), f"{path}.defaultMode")
    for index, item in enumerate(source.get("items") or ()):
        key_to_path(found, item, f"{path}.items[{index}]")


def key_to_path(found: Found, item: Source, path: str) -> None:
    if not item["key"]:
        found.required(f"{path}.key")
    if not item["path"]:
        found.required(f"{path}.path")
    found.each(f"{path}.path", item["path"], texts.local_path(item["path"]))
    mode(found, item.get("mode"), f"{path}.mode")


def nfs(found: Found, source: Source, path: str) -> None:
    needs("server", "path")(found, source, path)
    if not source["path"].startswith("/"):
        found.invalid(f"{path}.path", source["path"], "must be an absolute path")


_IQN = re.compile(r"iqn\.\d{4}-\d{2}\.([a-zA-Z0-9\-.]+)(:[^,;*&$|\s]+)$", re.ASCII)
_EUI = re.compile(r"^eui.[a-zA-Z0-9]{16}$", re.ASCII)
_NAA = re.compile(r"^naa.[a-zA-Z0-9]{32}$", re.ASCII)
_QUALIFIED: Final = {"iqn": _IQN, "eui": _EUI, "naa": _NAA}


def _initiator(found: Found, value: str, path: str, detail: str) -> None:
    pattern = _QUALIFIED.get(value[:3])
    if pattern is None:
        found.invalid(path, value, f"must be valid format{detail}")
    elif not pattern.search(value):
        found.invalid(path, value, "must be valid format")


def iscsi(found: Found, source: Source, path: str) -> None:
    _iscsi(found, source, path, detail=" starting with iqn, eui, or naa")


def persistent_iscsi(found: Found, source: Source, path: str) -> None:
    _iscsi(found, source, path, detail="")


def _iscsi(found: Found, source: Source, path: str, *, detail: str) -> None:
    if not source["targetPortal"]:
        found.required(f"{path}.targetPortal")
    if not source["iqn"]:
        found.required(f"{path}.iqn")
    else:
        _initiator(found, source["iqn"], f"{path}.iqn", detail)
    if not 0 <= source["lun"] <= 255:
        found.invalid(f"{path}.lun", source["lun"], texts.between(0, 255))
    chap = source.get("chapAuthDiscovery") or source.get("chapAuthSession")
    if chap and "secretRef" not in source:
        found.required(f"{path}.secretRef")
    if "initiatorName" in source:
        where = f"{path}.initiatorname"
        _initiator(found, source["initiatorName"], where, detail)


def fibre_channel(found: Found, source: Source, path: str) -> None:
    targets, ids = source.get("targetWWNs"), source.get("wwids")
    where = f"{path}.targetWWNs"
    if not targets and not ids:
        found.required(where, "must specify either targetWWNs or wwids, but not both")
    if targets and ids:
        detail = "targetWWNs and wwids can not be specified simultaneously"
        found.invalid(where, targets, detail)
    if targets and "lun" not in source:
        found.required(f"{path}.lun", "lun is required if targetWWNs is specified")
    elif targets and not 0 <= source["lun"] <= 255:
        found.invalid(f"{path}.lun", source["lun"], texts.between(0, 255))


def flocker(found: Found, source: Source, path: str) -> None:
    name, uuid = source.get("datasetName", ""), source.get("datasetUUID", "")
    if not name and not uuid:
        found.required(path, "one of datasetName and datasetUUID is required")
    if name and uuid:
        detail = "datasetName and datasetUUID can not be specified simultaneously"
        found.invalid(path, "resource", detail)
    if "/" in name:
        found.invalid(f"{path}.datasetName", name, "must not contain '/'")


def cinder(found: Found, source: Source, path: str) -> None:
    needs("volumeID")(found, source, path)
    if "secretRef" in source and not source["secretRef"].get("name"):
        found.required(f"{path}.secretRef.name")


def flex(found: Found, source: Source, path: str) -> None:
    needs("driver")(found, source, path)
    for key in source.get("options") or ():
        namespace = "." + key.split("/", 1)[0].lower()
        if namespace.endswith((".kubernetes.io", ".k8s.io")):
            detail = "kubernetes.io and k8s.io namespaces are reserved"
            found.invalid(f"{path}.options[{key}]", key, detail)


def quobyte(found: Found, source: Source, path: str) -> None:
    registry, volume = source.get("registry", ""), source.get("volume", "")
    detail = "must be a host:port pair or multiple pairs separated by commas"
    if not registry:
        found.required(f"{path}.registry", detail)
    elif len(source.get("tenant", "")) > 64:
        long = "must be a UUID and may not exceed a length of 64 characters"
        found.required(f"{path}.tenant", long)
    else:
        for pair in registry.split(","):
            if pair.count(":") != 1 and "]:" not in pair:
                found.invalid(f"{path}.registry", registry, detail)
    if not volume:
        found.required(f"{path}.volume")


def storage_os(found: Found, source: Source, path: str) -> None:
    name = source.get("volumeName", "")
    if not name:
        found.required(f"{path}.volumeName")
    else:
        found.each(f"{path}.volumeName", name, texts.label(name))
    namespace = source.get("volumeNamespace", "")
    if namespace:
        found.each(f"{path}.volumeNamespace", namespace, texts.label(namespace))
    if "secretRef" in source and not source["secretRef"].get("name"):
        found.required(f"{path}.secretRef.name")


def downward(found: Found, source: Source, path: str) -> None:
    mode(found, source.get("defaultMode"), f"{path}.defaultMode")
    for item in source.get("items") or ():
        env.downward_file(found, item, path)


def driver_name(found: Found, name: str, path: str) -> None:
    if not name:
        found.required(path)
        return
    if len(name) > 63:
        found.too_long(path, 63)
    found.each(path, name, texts.subdomain(name.lower()))


def csi(found: Found, source: Source, path: str) -> None:
    driver_name(found, source["driver"], f"{path}.driver")
    if "nodePublishSecretRef" not in source:
        return
    name = source["nodePublishSecretRef"].get("name", "")
    if not name:
        found.required(f"{path}.nodePublishSecretRef.name")
    else:
        found.each(f"{path}.name", name, texts.subdomain(name))


def ephemeral(found: Found, source: Source, path: str) -> None:
    if "volumeClaimTemplate" not in source:
        found.required(f"{path}.volumeClaimTemplate")
        return
    where = f"{path}.volumeClaimTemplate"
    claims.template(found, source["volumeClaimTemplate"], where)


def pull_policy(found: Found, policy: str, path: str) -> None:
    found.choice(path, policy, PULL_POLICIES)


def azure_disk(found: Found, source: Source, path: str) -> None:
    needs("diskName", "diskURI")(found, source, path)
    caching = source.get("cachingMode")
    if caching is not None:
        modes = ("None", "ReadOnly", "ReadWrite")
        found.one_of(f"{path}.cachingMode", caching, modes)
    kind = source.get("kind")
    if kind is not None:
        found.one_of(f"{path}.kind", kind, ("Dedicated", "Managed", "Shared"))


SOURCES: Final[dict[str, tuple[Check, str]]] = {
    "emptyDir": (empty_dir, "emptyDir"),
    "hostPath": (host_path, "hostPath"),
    "gitRepo": (git_repo, "gitRepo"),
    "gcePersistentDisk": (disk("pdName"), "persistentDisk"),
    "awsElasticBlockStore": (disk("volumeID"), "awsElasticBlockStore"),
    "secret": (secret, "secret"),
    "nfs": (nfs, "nfs"),
    "iscsi": (iscsi, "iscsi"),
    "glusterfs": (needs("endpoints", "path"), "glusterfs"),
    "flocker": (flocker, "flocker"),
    "persistentVolumeClaim": (needs("claimName"), "persistentVolumeClaim"),
    "rbd": (needs("monitors", "image"), "rbd"),
    "cinder": (cinder, "cinder"),
    "cephfs": (needs("monitors"), "cephfs"),
    "quobyte": (quobyte, "quobyte"),
    "downwardAPI": (downward, "downwardAPI"),
    "fc": (fibre_channel, "fc"),
    "flexVolume": (flex, "flexVolume"),
    "configMap": (config_map, "configMap"),
    "azureFile": (needs("secretName", "shareName"), "azureFile"),
    "vsphereVolume": (needs("volumePath"), "vsphereVolume"),
    "photonPersistentDisk": (needs("pdID"), "photonPersistentDisk"),
    "portworxVolume": (needs("volumeID"), "portworxVolume"),
    "azureDisk": (azure_disk, "azureDisk"),
    "storageos": (storage_os, "storageos"),
    "scaleIO": (needs("gateway", "system", "volumeName"), "scaleIO"),
    "csi": (csi, "csi"),
    "ephemeral": (ephemeral, "ephemeral"),
}
"""Of each source, in the real server's order: its check, and its name in paths."""
