"""APIServices: which server answers for a group and version."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trimtab.embedded.builtin.validation import meta, texts
from trimtab.embedded.builtin.validation.problems import Found
from trimtab.embedded.status import quoted

JSON = Mapping[str, Any]


def create(found: Found, obj: JSON) -> None:
    spec = obj["spec"]
    group, version = spec.get("group", ""), spec.get("version", "")
    wanted = f"{version}.{group}"

    def name(given: str) -> texts.Problems:
        if problems := texts.path_segment(given):
            return problems
        if given == wanted:
            return ()
        return (f'must be `spec.version+"."+spec.group`: {quoted(wanted)}',)

    meta.created(found, obj["metadata"], namespaced=False, name=name)
    if not group and version != "v1":
        detail = "only v1 may have an empty group and it better be legacy kube"
        found.required("spec.group", detail)
    if group:
        found.each("spec.group", group, texts.subdomain(group))
    found.each("spec.version", version, texts.label_1035(version))
    for field, most in (("groupPriorityMinimum", 20000), ("versionPriority", 1000)):
        value = spec.get(field, 0)
        if not 0 < value <= most:
            detail = f"must be positive and less than {most}"
            found.invalid(f"spec.{field}", value, detail)
    _where(found, spec)


def _where(found: Found, spec: JSON) -> None:
    service, bundle = spec.get("service"), spec.get("caBundle", "")
    insecure, path = spec.get("insecureSkipTLSVerify", False), "spec.service"
    if service is None:
        _local(found, bundle, insecure=insecure)
        return
    for field in ("namespace", "name"):
        if not service.get(field):
            found.required(f"{path}.{field}")
    port = service.get("port", 0)
    if not 0 < port < 65536:
        detail = f"port is not valid: {texts.PORT_RANGE}"
        found.invalid(f"{path}.port", port, detail)
    if insecure and bundle:
        detail = "may not be true if caBundle is present"
        found.invalid("spec.insecureSkipTLSVerify", insecure, detail)


def _local(found: Found, bundle: str, *, insecure: bool) -> None:
    if bundle:
        size = len(bundle) * 3 // 4 - bundle.count("=", -2)
        detail = "local APIServices may not have a caBundle"
        found.invalid("spec.caBundle", f"{size} bytes", detail)
    if insecure:
        detail = "local APIServices may not have insecureSkipTLSVerify"
        found.invalid("spec.insecureSkipTLSVerify", insecure, detail)


def update(found: Found, obj: JSON, old: JSON) -> None:
    meta.updated(found, obj["metadata"], old["metadata"])
    create(found, obj)


def status_update(found: Found, obj: JSON, old: JSON) -> None:
    meta.updated(found, obj["metadata"], old["metadata"])
    for index, each in enumerate((obj.get("status") or {}).get("conditions") or ()):
        path = f"status.conditions[{index}].status"
        found.one_of(path, each["status"], ("True", "False", "Unknown"))
