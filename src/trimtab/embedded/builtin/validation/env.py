"""Environments of containers: variables, where their values come from, field paths."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from trimtab.api.quantity import Quantity
from trimtab.embedded.builtin.validation import texts
from trimtab.embedded.builtin.validation.problems import Found

JSON = Mapping[str, Any]

_ENV_FIELDS: Final = (
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
)
_VOLUME_FIELDS: Final = (
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
)
_POD_FIELDS: Final = frozenset(
    (*_ENV_FIELDS, *_VOLUME_FIELDS, "spec.restartPolicy", "spec.schedulerName")
) | {"status.phase"}
_RESOURCES: Final = (
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
)
_HUGE: Final = ("requests.hugepages-", "limits.hugepages-")
_SIZES: Final = "1 1k 1M 1G 1T 1P 1E 1Ki 1Mi 1Gi 1Ti 1Pi 1Ei".split()
_DIVISORS: Final = {
    "cpu": (("1m", "1"), "1m and 1", "cpu"),
    "memory": (_SIZES, ", ".join(_SIZES), "memory"),
    "ephemeral-storage": (_SIZES, ", ".join(_SIZES), "local ephemeral storage"),
}


def variables(found: Found, given: list[JSON] | None, path: str) -> None:
    """The variables of a container, one by one."""
    for index, variable in enumerate(given or ()):
        name = variable["name"]
        if not name:
            found.required(f"{path}[{index}].name")
        elif problems := texts.environment_name(name):
            found.each(f"{path}[{index}].name", name, problems)
        if "valueFrom" in variable:
            _value_from(found, variable, f"{path}[{index}].valueFrom")


def _value_from(found: Found, variable: JSON, path: str) -> None:
    source = variable["valueFrom"]
    if "fieldRef" in source:
        where = f"{path}.fieldRef"
        _field_reference(found, source["fieldRef"], _ENV_FIELDS, where)
    if "resourceFieldRef" in source:
        where = f"{path}.resourceFieldRef"
        _resource_reference(found, source["resourceFieldRef"], where, volume=False)
    for name in ("configMapKeyRef", "secretKeyRef"):
        if name in source:
            _key_reference(found, source[name], f"{path}.{name}")
    if "fileKeyRef" in source:
        _file_reference(found, source["fileKeyRef"], f"{path}.fileKeyRef")
    if not source:
        found.invalid(
            path,
            "",
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, "
            "`secretKeyRef` or `fileKeyRef`",
        )
    elif variable.get("value"):
        found.invalid(path, "", "may not be specified when `value` is not empty")
    elif len(source) > 1:
        detail = "may not have more than one field specified at a time"
        found.invalid(path, "", detail)


def _key_reference(found: Found, reference: JSON, path: str) -> None:
    name, key = reference.get("name", ""), reference["key"]
    if problems := texts.subdomain(name):
        found.each(f"{path}.name", name, problems)
    if not key:
        found.required(f"{path}.key")
    elif problems := texts.config_key(key):
        found.each(f"{path}.key", key, problems)


def _file_reference(found: Found, reference: JSON, path: str) -> None:
    key, volume, place = reference["key"], reference["volumeName"], reference["path"]
    if not key:
        found.required(f"{path}.key")
    else:
        found.each(f"{path}.key", key, texts.environment_name(key))
    if not volume:
        found.required(f"{path}.volumeName")
    else:
        found.each(f"{path}.volumeName", volume, texts.label(volume))
    if not place:
        found.required(f"{path}.path")
    elif texts.steps_back(place):
        found.invalid(f"{path}.path", place, "must not contain '..'")


def _field_reference(
    found: Found, reference: JSON, allowed: tuple[str, ...], path: str
) -> None:
    """A field of the pod itself."""
    field = reference["fieldPath"]
    if not field:
        found.required(f"{path}.fieldPath")
        return
    if problem := _unconvertible(reference.get("apiVersion", ""), field):
        detail = f"error converting fieldPath: {problem}"
        found.invalid(f"{path}.fieldPath", field, detail)
        return
    base, key = _subscript(field)
    if key is not None:
        problems = texts.key(key.lower() if base == "metadata.annotations" else key)
        shown = key.lower() if base == "metadata.annotations" else key
        found.each(path, shown, problems)
    elif field not in allowed:
        field = "spec.nodeName" if field == "spec.host" else field
        found.one_of(f"{path}.fieldPath", field, allowed)


def _unconvertible(version: str, field: str) -> str:
    if version != "v1":
        return f"unsupported pod version: {version}"
    base, key = _subscript(field)
    if key is not None:
        if base in ("metadata.annotations", "metadata.labels"):
            return ""
        return f"field label does not support subscript: {field}"
    known = field in _POD_FIELDS or field == "spec.host"
    return "" if known else f"field label not supported: {field}"


def _subscript(field: str) -> tuple[str, str | None]:
    """A path and what stands in ``['…']`` at its end."""
    if field.endswith("']"):
        base, opening, key = field.removesuffix("']").partition("['")
        if base and opening:
            return base, key
    return field, None


def _resource_reference(
    found: Found, reference: JSON, path: str, *, volume: bool
) -> None:
    """A resource of a container."""
    resource = reference["resource"]
    if volume and not reference.get("containerName"):
        found.required(f"{path}.containerName")
    elif not resource:
        found.required(f"{path}.resource")
    elif not resource.startswith(_HUGE):
        found.one_of(f"{path}.resource", resource, _RESOURCES)
    divisor = str(Quantity(reference.get("divisor", "0")))
    if divisor != "0":
        _divisor(found, resource, divisor, f"{path}.divisor")


def _divisor(found: Found, resource: str, divisor: str, path: str) -> None:
    if resource.startswith(_HUGE):
        allowed, listed, what = _SIZES, ", ".join(_SIZES), "hugepages"
    elif resource in _RESOURCES:
        allowed, listed, what = _DIVISORS[resource.partition(".")[2]]  # type: ignore[assignment]
    else:
        return
    if divisor not in allowed:
        detail = (
            f"only divisor's values {listed} are supported with the {what} resource"
        )
        found.invalid(path, resource, detail)


def downward_file(found: Found, item: JSON, path: str) -> None:
    """A file of a volume that tells a pod about itself."""
    place = item["path"]
    if not place:
        found.required(f"{path}.path")
    found.each(f"{path}.path", place, texts.local_path(place))
    if "fieldRef" in item:
        _field_reference(found, item["fieldRef"], _VOLUME_FIELDS, f"{path}.fieldRef")
        if "resourceFieldRef" in item:
            detail = "fieldRef and resourceFieldRef can not be specified simultaneously"
            found.invalid(path, "resource", detail)
    elif "resourceFieldRef" in item:
        where = f"{path}.resourceFieldRef"
        _resource_reference(found, item["resourceFieldRef"], where, volume=True)
    else:
        found.required(path, "one of fieldRef and resourceFieldRef is required")
    mode = item.get("mode")
    if mode is not None and not 0 <= mode <= 0o777:
        found.invalid(f"{path}.mode", mode, texts.FILE_MODE)


def env_from(found: Found, given: list[JSON] | None, path: str) -> None:
    """Whole ConfigMaps and Secrets as variables."""
    for index, source in enumerate(given or ()):
        prefix = source.get("prefix", "")
        if prefix:
            where = f"{path}[{index}].prefix"
            found.each(where, prefix, texts.environment_name(prefix))
        count = 0
        for kind in ("configMapRef", "secretRef"):
            if kind in source:
                count += 1
                _whole(found, source[kind], f"{path}[{index}].{kind}.name")
        if count == 0:
            detail = "must specify one of: `configMapRef` or `secretRef`"
            found.invalid(path, "", detail)
        elif count > 1:
            detail = "may not have more than one field specified at a time"
            found.invalid(path, "", detail)


_prefix = texts.prefix_of(texts.subdomain)


def _whole(found: Found, reference: JSON, path: str) -> None:
    name = reference.get("name", "")
    if not name:
        found.required(path)
    else:
        found.each(path, name, _prefix(name))
