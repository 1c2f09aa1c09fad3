"""Volumes of a pod: one source each, names that mounts can find, projections."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from trimtab.embedded.builtin.validation import env, sources, texts
from trimtab.embedded.builtin.validation.problems import Found

Volume = Mapping[str, Any]

_MORE: Final = "may not specify more than 1 volume type"
_CONFLICT: Final = "conflicting duplicate paths"
# Where the path in this one message is not the name of the field.
_MISSPELT: Final = {"downwardAPI": "downwarAPI", "cephfs": "cephFS"}


def volumes(
    found: Found, given: list[Volume] | None, path: str, *, pod: str, is_pod: bool
) -> dict[str, Volume]:
    """Check volumes; give those that are good by their names, for mounts."""
    good: dict[str, Volume] = {}
    if not given:
        return good
    created = {f"{pod}-{each['name']}" for each in given if "ephemeral" in each}
    for index, volume in enumerate(given):
        where, name = f"{path}[{index}]", volume["name"]
        before = len(found)
        _source(found, volume, where, pod=pod, is_pod=is_pod)
        if not name:
            found.required(f"{where}.name")
        else:
            found.each(f"{where}.name", name, texts.label(name))
        if name in good:
            found.duplicate(f"{where}.name", name)
        if len(found) == before:
            good[name] = volume
        claim = volume.get("persistentVolumeClaim", {}).get("claimName", "")
        if pod and claim in created:
            detail = (
                "must not reference a PVC that gets created for an ephemeral volume"
            )
            found.invalid(f"{where}.persistentVolumeClaim.claimName", claim, detail)
    return good


def _source(found: Found, volume: Volume, path: str, *, pod: str, is_pod: bool) -> None:
    given = volume.keys() - {"name"}
    if not given:
        found.required(path, "must specify a volume type")
    if len(given) == 1:
        _one(found, next(iter(given)), volume, path, pod=pod, is_pod=is_pod)
        return
    first = True
    for name in _order():
        if name not in given:
            continue
        if first:
            _one(found, name, volume, path, pod=pod, is_pod=is_pod)
        else:
            found.forbidden(f"{path}.{_MISSPELT.get(name, name)}", _MORE)
        first = False


def _order() -> tuple[str, ...]:
    """Projected volumes are looked at before ScaleIO, images last."""
    names = list(sources.SOURCES)
    names.insert(names.index("scaleIO"), "projected")
    return (*names, "image")


def _one(
    found: Found, name: str, volume: Volume, path: str, *, pod: str, is_pod: bool
) -> None:
    source = volume[name]
    if name == "projected":
        projected(found, source, f"{path}.projected")
    elif name == "image":
        if is_pod and not source.get("reference"):
            found.required(f"{path}.image.reference")
        where = f"{path}.image.pullPolicy"
        sources.pull_policy(found, source.get("pullPolicy", ""), where)
    else:
        check, part = sources.SOURCES[name]
        check(found, source, f"{path}.{part}")
    if name == "ephemeral" and pod and volume["name"]:
        claim = f"{pod}-{volume['name']}"
        for problem in texts.subdomain(claim):
            detail = f'PVC name "{claim}": {problem}'
            found.invalid(f"{path}.name", volume["name"], detail)


def projected(found: Found, source: Volume, path: str) -> None:
    """Several sources in one folder, whose paths may not meet."""
    sources.mode(found, source.get("defaultMode"), f"{path}.defaultMode")
    seen: set[str] = set()
    for index, each in enumerate(source.get("sources") or ()):
        where = f"{path}.sources[{index}]"
        for name in ("secret", "configMap"):
            if name in each:
                _keys(found, each[name], seen, where=f"{where}.{name}", path=path)
        if "downwardAPI" in each:
            for item in each["downwardAPI"].get("items") or ():
                env.downward_file(found, item, f"{where}.downwardAPI")
                _once(found, item["path"], seen, path, item["path"])
        if "serviceAccountToken" in each:
            token = each["serviceAccountToken"]
            _token(found, token, where=f"{where}.serviceAccountToken", path=path)
        if len(each) > 1:
            detail = "may not specify more than 1 volume type per source"
            found.forbidden(where, detail)


def _keys(
    found: Found, source: Volume, seen: set[str], *, where: str, path: str
) -> None:
    if not source.get("name"):
        found.required(f"{where}.name")
    for index, item in enumerate(source.get("items") or ()):
        sources.key_to_path(found, item, f"{where}.items[{index}]")
        _once(found, item["path"], seen, path, source.get("name", ""))


def _once(found: Found, value: str, seen: set[str], path: str, named: str) -> None:
    if value and value in seen:
        found.invalid(path, named, _CONFLICT)
    seen.add(value)


def _token(found: Found, token: Volume, *, where: str, path: str) -> None:
    seconds = token.get("expirationSeconds", 0)
    if seconds < 600:
        detail = "may not specify a duration less than 10 minutes"
        found.invalid(f"{where}.expirationSeconds", seconds, detail)
    if seconds > 1 << 32:
        detail = "may not specify a duration larger than 2^32 seconds"
        found.invalid(f"{where}.expirationSeconds", seconds, detail)
    if not token["path"]:
        found.required(f"{path}.path")
    else:
        found.each(f"{path}.path", token["path"], texts.local_path(token["path"]))


_PROPAGATIONS: Final = ("Bidirectional", "HostToContainer", "None")
_RECURSIVE: Final = ("Disabled", "Enabled", "IfPossible")


def mounts(
    found: Found, container: Volume, known: Mapping[str, Volume], path: str
) -> None:
    """Where a container mounts volumes of its pod."""
    devices = {
        each["name"]: each["devicePath"]
        for each in container.get("volumeDevices") or ()
    }
    seen: set[str] = set()
    for index, mount in enumerate(container.get("volumeMounts") or ()):
        where, name = f"{path}[{index}]", mount["name"]
        if not name:
            found.required(f"{where}.name")
        if name not in known:
            found.not_found(f"{where}.name", name)
        _mount_path(found, mount["mountPath"], seen, where)
        if devices:
            _not_a_device(found, mount, devices, where)
        if len(mount) > 2:
            _mount_options(found, mount, container, where=where, path=path)


def _mount_path(found: Found, target: str, seen: set[str], where: str) -> None:
    if not target:
        found.required(f"{where}.mountPath")
    if target in seen:
        found.invalid(f"{where}.mountPath", target, "must be unique")
    seen.add(target)


def _not_a_device(
    found: Found, mount: Volume, devices: Mapping[str, str], where: str
) -> None:
    if mount["name"] in devices:
        detail = "must not already exist in volumeDevices"
        found.invalid(f"{where}.name", mount["name"], detail)
    if mount["mountPath"] in devices.values():
        detail = "must not already exist as a path in volumeDevices"
        found.invalid(f"{where}.mountPath", mount["mountPath"], detail)


def _mount_options(
    found: Found, mount: Volume, container: Volume, *, where: str, path: str
) -> None:
    part = mount.get("subPath", "")
    found.each(f"{path}.subPath", part, texts.descending(part))
    expression = mount.get("subPathExpr", "")
    if expression and part:
        detail = "subPathExpr and subPath are mutually exclusive"
        found.invalid(f"{where}.subPathExpr", expression, detail)
    found.each(f"{path}.subPathExpr", expression, texts.descending(expression))
    if "mountPropagation" in mount:
        privileged = container.get("securityContext", {}).get("privileged", False)
        _propagation(found, mount, path, privileged=privileged)
    if "recursiveReadOnly" in mount:
        _recursive(found, mount, f"{path}.recursiveReadOnly")


def _propagation(found: Found, mount: Volume, path: str, *, privileged: bool) -> None:
    where, value = f"{path}.mountPropagation", mount["mountPropagation"]
    found.one_of(where, value, _PROPAGATIONS)
    if value == "Bidirectional" and not privileged:
        found.forbidden(
            where,
            "Bidirectional mount propagation is available only to privileged "
            "containers",
        )


def _recursive(found: Found, mount: Volume, path: str) -> None:
    value = mount["recursiveReadOnly"]
    found.one_of(path, value, _RECURSIVE)
    if value not in ("Enabled", "IfPossible"):
        return
    if not mount.get("readOnly"):
        found.forbidden(path, "may only be specified when readOnly is true")
    if mount.get("mountPropagation", "None") != "None":
        detail = "may only be specified when mountPropagation is None or not specified"
        found.forbidden(path, detail)


def devices(
    found: Found, container: Volume, known: Mapping[str, Volume], path: str
) -> None:
    """Where a container finds volumes of its pod as raw devices."""
    mounted = {
        each["name"]: each["mountPath"] for each in container.get("volumeMounts") or ()
    }
    names: set[str] = set()
    paths: set[str] = set()
    for index, device in enumerate(container.get("volumeDevices") or ()):
        where, name, place = f"{path}[{index}]", device["name"], device["devicePath"]
        _device_name(found, name, known, names, where)
        _device_path(found, place, paths, where)
        if name in mounted:
            detail = "must not already exist in volumeMounts"
            found.invalid(f"{where}.name", name, detail)
        if place in mounted.values():
            detail = "must not already exist as a path in volumeMounts"
            found.invalid(f"{where}.devicePath", place, detail)
        if name:
            names.add(name)


def _device_name(
    found: Found, name: str, known: Mapping[str, Volume], names: set[str], where: str
) -> None:
    if not name:
        found.required(f"{where}.name")
    if name in names:
        found.invalid(f"{where}.name", name, "must be unique")
    volume = known.get(name)
    if volume is None:
        found.not_found(f"{where}.name", name)
    elif not volume.keys() & {"persistentVolumeClaim", "ephemeral"}:
        detail = (
            "can only use volume source type of PersistentVolumeClaim or Ephemeral for "
            "block mode"
        )
        found.invalid(f"{where}.name", name, detail)


def _device_path(found: Found, place: str, paths: set[str], where: str) -> None:
    if not place:
        found.required(f"{where}.devicePath")
    if place in paths:
        found.invalid(f"{where}.devicePath", place, "must be unique")
    if texts.steps_back(place):
        detail = "can not contain backsteps ('..')"
        found.invalid(f"{where}.devicePath", place, detail)
    else:
        paths.add(place)
