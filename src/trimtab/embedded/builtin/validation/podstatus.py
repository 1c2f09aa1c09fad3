"""What kubelets report of pods: only what can follow on what they reported before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from trimtab.embedded.builtin.validation import meta, pods, security, texts
from trimtab.embedded.builtin.validation.problems import Found

JSON = Mapping[str, Any]

_KINDS: Final = (
    ("containerStatuses", "containers"),
    ("initContainerStatuses", "initContainers"),
    ("ephemeralContainerStatuses", ""),
)
_HEALTH: Final = ("Healthy", "Unhealthy", "Unknown")


def update(found: Found, obj: JSON, old: JSON) -> None:
    """What a kubelet reports."""
    meta.updated(found, obj["metadata"], old["metadata"])
    pods.changed_notes(found, obj, old)
    status, before = obj["status"], old["status"]
    _conditions(found, status.get("conditions") or [])
    nominated = status.get("nominatedNodeName", "")
    if nominated and nominated != before.get("nominatedNodeName", ""):
        path = "status.nominatedNodeName"
        found.each(path, nominated, texts.subdomain(nominated))
        if old["spec"].get("nodeName"):
            detail = "may not be set on pods that are already bound to a node"
            found.forbidden(path, detail)
    if status.get("observedGeneration", 0) < 0:
        path, value = "status.observedGeneration", status["observedGeneration"]
        found.invalid(path, value, "must be a non-negative integer")
    quality_class = status.get("qosClass", "")
    found.immutable("status.qosClass", quality_class, before.get("qosClass", ""))
    _transitions(found, status, before, old["spec"])
    if "resourceClaimStatuses" in status:
        _claims(found, status["resourceClaimStatuses"], obj["spec"])
    if "extendedResourceClaimStatus" in status:
        _extended(found, status["extendedResourceClaimStatus"], obj["spec"])
    _addresses(found, status, before, "podIPs")
    _host_addresses(found, status, before)
    system = (obj["spec"].get("os") or {"name": "linux"})["name"]
    for field, _ in _KINDS:
        for index, each in enumerate(status.get(field) or ()):
            if "user" in each:
                _user(found, each["user"], f"status.{field}[{index}].user", system)
    for field, kind in _KINDS:
        for index, each in enumerate(status.get(field) or ()):
            if each.get("allocatedResourcesStatus"):
                path = f"status.{field}[{index}].allocatedResourcesStatus"
                _allocated(found, each, obj["spec"].get(kind) or (), path, kind)


def _conditions(found: Found, given: list[JSON]) -> None:
    for index, condition in enumerate(given):
        path, kind = f"status.conditions[{index}]", condition["type"]
        if condition.get("observedGeneration", 0) < 0:
            value = condition["observedGeneration"]
            detail = "must be a non-negative integer"
            found.invalid(f"{path}.observedGeneration", value, detail)
        if kind not in ("PodScheduled", "Ready", "Initialized"):
            found.each(f"{path}.Type", kind, texts.key(kind))


def _transitions(found: Found, status: JSON, before: JSON, spec: JSON) -> None:
    """What has ended stays ended, unless it is to be started again."""
    for field, kind in _KINDS:
        new = {each["name"]: each for each in status.get(field) or ()}
        for index, old in enumerate(before.get(field) or ()):
            ended = (old.get("state") or {}).get("terminated")
            now = new.get(old["name"])
            if ended is None or now is None or "terminated" in now["state"]:
                continue
            if not _restarts(spec, kind, old["name"], ended["exitCode"]):
                found.forbidden(
                    f"status.{field}[{index}].state",
                    "may not be transitioned to non-terminated state",
                )


def _restarts(spec: JSON, kind: str, name: str, code: int) -> bool:
    for container in spec.get(kind) or ():
        if container["name"] == name:
            for rule in container.get("restartPolicyRules") or ():
                if _applies(rule, code):
                    return True
            policy = container.get("restartPolicy", spec["restartPolicy"])
            return policy == "Always" or (policy == "OnFailure" and code != 0)
    return False


def _applies(rule: JSON, code: int) -> bool:
    codes = rule.get("exitCodes") or {}
    inside = code in (codes.get("values") or ())
    return inside if codes.get("operator") == "In" else not inside


def _addresses(found: Found, status: JSON, before: JSON, field: str) -> None:
    given = [each.get("ip", "") for each in status.get(field) or ()]
    old = [each.get("ip", "") for each in before.get(field) or ()]
    for index, address in enumerate(given):
        if address not in old:
            found.each(f"status.{field}[{index}]", address, texts.ip(address))
    parsed = [texts.parse_ip(each) for each in given]
    families = {each.version for each in parsed if each is not None}
    if len(given) > 1 and None in parsed:
        wrong, families = parsed.index(None), set()
        text = f"invalid IP[{wrong}]: {given[wrong]}"
        told = f"failed to check for dual stack with error:{text}"
        found.internal(f"status.{field}", told)
    if len(given) > 1 and (len(families) != 2 or len(given) > 2):
        detail = "may specify no more than one IP for each IP family"
        shown = [{"IP": each} for each in given]
        found.invalid(f"status.{field}", shown, detail)


def _host_addresses(found: Found, status: JSON, before: JSON) -> None:
    given = status.get("hostIPs") or ()
    if not given:
        return
    first = given[0].get("ip", "")
    if status.get("hostIP", "") != first:
        found.invalid("status.hostIPs[0].ip", first, "must be equal to `hostIP`")
    _addresses(found, status, before, "hostIPs")


def _claims(found: Found, given: list[JSON], spec: JSON) -> None:
    known = {each["name"] for each in spec.get("resourceClaims") or ()}
    names: set[str] = set()
    for index, each in enumerate(given):
        path, name = f"status.resourceClaimStatuses[{index}]", each["name"]
        if name not in known:
            detail = "must match the name of an entry in `spec.resourceClaims`"
            found.invalid(f"{path}.name", name, detail)
        if name in names:
            found.duplicate(f"{path}.name", name)
        names.add(name)
        claim = each.get("resourceClaimName")
        if claim is not None:
            where = f"{path}.resourceClaimName"
            found.each(where, claim, texts.subdomain(claim))


def _extended(found: Found, given: JSON, spec: JSON) -> None:
    path, seen = "status.extendedResourceClaimStatus", set[tuple[str, str, str]]()
    asked = {
        each["name"]: each["resources"].get("requests") or {}
        for kind in ("initContainers", "containers")
        for each in spec.get(kind) or ()
    }
    mappings = given.get("requestMappings") or ()
    if not mappings:
        detail = "at least one request mapping is required"
        found.required(f"{path}.requestMappings", detail)
    for index, each in enumerate(mappings):
        where, name = f"{path}.requestMappings[{index}]", each["containerName"]
        places = "spec.initContainers{0} or spec.containers{0}"
        if name not in asked:
            detail = f"must match the name of an entry in {places.format('.name')}"
            found.invalid(f"{where}.containerName", name, detail)
        elif each["resourceName"] not in asked[name]:
            listed = places.format(".resources.requests")
            detail = f"must match the extended resource name of an entry in {listed}"
            found.invalid(f"{where}.resourceName", each["resourceName"], detail)
        request = each["requestName"]
        found.each(f"{path}.requestName", request, texts.label(request))
        key = (name, each["resourceName"], request)
        if key in seen:
            fields = ("containerName", "resourceName", "requestName")
            for field, value in zip(fields, key, strict=True):
                found.duplicate(f"{where}.{field}", value)
        seen.add(key)
    claim = given.get("resourceClaimName", "")
    if not claim:
        found.required(f"{path}.resourceClaimName")
    else:
        found.each(f"{path}.resourceClaimName", claim, texts.subdomain(claim))


def _user(found: Found, user: JSON, path: str, system: str) -> None:
    linux = user.get("linux")
    if linux is None:
        return
    if system == "windows":
        found.forbidden(f"{path}.linux", "cannot be set for a windows pod")
    elif system == "linux":
        for name in ("uid", "gid"):
            security.identifier(found, linux[name], f"{path}.linux.{name}")
        for index, group in enumerate(linux.get("supplementalGroups") or ()):
            where = f"{path}.linux.supplementalGroups[{index}]"
            security.identifier(found, group, where)


def _allocated(
    found: Found, status: JSON, containers: Sequence[JSON], path: str, kind: str
) -> None:
    """How well the devices are that a container was given."""
    if not kind:
        found.forbidden(path, "must not be specified in container status")
        return
    same = [each for each in containers if each["name"] == status["name"]]
    for index, each in enumerate(status["allocatedResourcesStatus"]):
        where = f"{path}[{index}]"
        for container in same[:1]:
            _asked_for(found, each["name"], container["resources"], f"{where}.name")
        seen: set[str] = set()
        for number, device in enumerate(each.get("resources") or ()):
            place, health = f"{where}.resources[{number}]", device.get("health", "")
            found.one_of(f"{place}.health", health, _HEALTH)
            message = device.get("message")
            if message == "":
                detail = "must be non-empty if specified"
                found.required(f"{place}.message", detail)
            elif message and len(message) > 1024:
                found.too_long(f"{place}.message", 1024)
            if device["resourceID"] in seen:
                found.duplicate(f"{place}.resourceID", device["resourceID"])
            seen.add(device["resourceID"])


def _asked_for(found: Found, name: str, resources: JSON, path: str) -> None:
    if not name.startswith("claim:"):
        if name not in (resources.get("requests") or ()):
            detail = "must match one of the container's resource requests"
            found.invalid(path, name, detail)
        return
    for claim in resources.get("claims") or ():
        request = claim.get("request", "")
        if name == f"claim:{claim['name']}{'/' if request else ''}{request}":
            return
    detail = (
        "must match one of the container's resource claims in a format "
        "'claim:<claimName>/<request>' or 'claim:<claimName>' if request is empty"
    )
    found.invalid(path, name, detail)
