"""Pod specs: the whole of what a pod is to run, in pods and in templates."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

from trimtab.api.quantity import Quantity
from trimtab.embedded.builtin.internal import internal
from trimtab.embedded.builtin.podresources import aggregate
from trimtab.embedded.builtin.validation import (
    containers,
    meta,
    resources,
    scheduling,
    security,
    texts,
    volumes,
    windows,
)
from trimtab.embedded.builtin.validation.problems import Found

JSON = Mapping[str, Any]

RESTARTS: Final = ("Always", "OnFailure", "Never")
_DNS: Final = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_PREEMPTION: Final = ("PreemptLowerPriority", "Never")
MIRROR: Final = "kubernetes.io/config.mirror"
DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
_SECCOMP: Final = "seccomp.security.alpha.kubernetes.io/pod"
_SECCOMP_CONTAINER: Final = "container.seccomp.security.alpha.kubernetes.io/"
APP_ARMOR: Final = "container.apparmor.security.beta.kubernetes.io/"


def pod_spec(
    found: Found, spec: JSON, path: str, *, metadata: JSON | None = None
) -> None:
    """A pod's spec; ``metadata`` is that of the pod, and None for a template."""
    is_pod = metadata is not None
    if "terminationGracePeriodSeconds" not in spec:
        found.required(f"{path}.terminationGracePeriodSeconds")
    name = metadata.get("name", "") if metadata is not None else ""
    known = volumes.volumes(
        found, spec.get("volumes"), f"{path}.volumes", pod=name, is_pod=is_pod
    )
    pod = _pod(spec, known)
    if "resourceClaims" in spec:
        where = f"{path}.resourceClaims"
        _resource_claims(found, spec["resourceClaims"], where, metadata)
    given = spec["containers"]
    containers.regular(found, given, pod, f"{path}.containers")
    first = spec.get("initContainers")
    if first:
        where = f"{path}.initContainers"
        containers.initial(found, first, pod, where, others=given)
    containers.ephemeral(found, spec, pod, f"{path}.ephemeralContainers")
    if "resources" in spec:
        _resources(found, spec, path, pod.claims)
    _basics(found, spec, path, is_pod=is_pod)
    _placement(found, spec, path)
    _names(found, spec, path)
    _rest(found, spec, path)


def _pod(spec: JSON, known: Mapping[str, Any]) -> containers.Pod:
    return containers.Pod(
        volumes=known,
        claims={
            each["name"] for each in spec.get("resourceClaims") or () if each["name"]
        },
        grace=spec.get("terminationGracePeriodSeconds"),
        restart=spec.get("restartPolicy", ""),
        host_users=spec.get("hostUsers", True),
    )


def _resource_claims(
    found: Found, given: list[JSON], path: str, metadata: JSON | None
) -> None:
    names: set[str] = set()
    for index, claim in enumerate(given):
        where, name = f"{path}[{index}]", claim["name"]
        if metadata and MIRROR in (metadata.get("annotations") or {}):
            found.forbidden("[]", "static pods do not support resource claims")
            continue
        if not name:
            found.required(f"{where}.name")
        elif name in names:
            found.duplicate(f"{where}.name", name)
        else:
            found.each(f"{where}.name", name, texts.label(name))
            names.add(name)
        _claim_source(found, claim, where)


def _claim_source(found: Found, claim: JSON, path: str) -> None:
    one, other = "resourceClaimName", "resourceClaimTemplateName"
    shown = internal("core.PodResourceClaim", claim)
    if one in claim and other in claim:
        detail = f"at most one of `{one}` or `{other}` may be specified"
        found.invalid(path, shown, detail)
    if one not in claim and other not in claim:
        found.invalid(path, shown, f"must specify one of: `{one}`, `{other}`")
    for name in (one, other):
        if name in claim:
            found.each(f"{path}.{name}", claim[name], texts.subdomain(claim[name]))


def _resources(found: Found, spec: JSON, path: str, claims: Collection[str]) -> None:
    """What a pod as a whole gets; its containers share it."""
    given, where = spec["resources"], f"{path}.resources"
    if (spec.get("os") or {}).get("name") == "windows":
        found.forbidden(where, "may not be set for a windows pod")
        return
    if "claims" in given:
        detail = "claims may not be set for Resources at pod-level"
        found.forbidden(f"{where}.claims", detail)
    resources.requirements(found, given, where, claims=claims, pod=True)
    for name, total in aggregate(spec, "requests").items():
        own = (given.get("requests") or {}).get(name)
        if own is not None and total > Quantity(own):
            detail = (
                "must be greater than or equal to aggregate container requests of "
                f"{total}"
            )
            found.invalid(f"{where}.requests[{name}]", own, detail)
    limits = given.get("limits") or {}
    for index, each in enumerate(spec["containers"] or ()):
        for name, limit in (each["resources"].get("limits") or {}).items():
            if name in limits and Quantity(limit) > Quantity(limits[name]):
                place = f"{where}.containers[{index}][{name}].limits"
                detail = f"must be less than or equal to pod limits of {limits[name]}"
                found.invalid(place, limit, detail)


def _basics(found: Found, spec: JSON, path: str, *, is_pod: bool) -> None:
    if spec.get("hostNetwork"):
        _host_network(found, spec, path, is_pod=is_pod)
    restart = spec.get("restartPolicy", "")
    if restart not in RESTARTS:
        found.choice(f"{path}.restartPolicy", restart, RESTARTS)
    policy = spec.get("dnsPolicy", "")
    if policy not in _DNS:
        found.choice(f"{path}.dnsPolicy", policy, _DNS)
    meta.labels(found, spec.get("nodeSelector"), f"{path}.nodeSelector")
    security.pod(found, spec, f"{path}.securityContext")


def _host_network(found: Found, spec: JSON, path: str, *, is_pod: bool) -> None:
    for index, each in enumerate(spec["containers"] or ()):
        for number, port in enumerate(each.get("ports") or ()):
            host = port.get("hostPort", 0)
            if (is_pod or host) and host != port["containerPort"]:
                where = f"{path}.containers[{index}].ports[{number}].hostPort"
                detail = "must match `containerPort` when `hostNetwork` is true"
                found.invalid(where, host, detail)


def _placement(found: Found, spec: JSON, path: str) -> None:
    if "affinity" in spec:
        scheduling.affinity(found, spec["affinity"], f"{path}.affinity")
    if "dnsConfig" in spec or spec.get("dnsPolicy") == "None":
        _dns(found, spec, f"{path}.dnsConfig")
    for index, gate in enumerate(spec.get("readinessGates") or ()):
        kind = gate["conditionType"]
        where = f"{path}.readinessGates[{index}].conditionType"
        found.each(where, kind, texts.key(kind))
    seen: set[str] = set()
    for index, gate in enumerate(spec.get("schedulingGates") or ()):
        where, name = f"{path}.schedulingGates[{index}]", gate["name"]
        found.each(where, name, texts.key(name))
        if name in seen:
            found.duplicate(where, name)
        seen.add(name)
    if "topologySpreadConstraints" in spec:
        where = f"{path}.topologySpreadConstraints"
        scheduling.spreading(found, spec["topologySpreadConstraints"], where)
    windows.host_process(found, spec, path)
    security.host_users(found, spec, path)
    if "hostnameOverride" in spec:
        _hostname_override(found, spec, f"{path}.hostnameOverride")


def _hostname_override(found: Found, spec: JSON, path: str) -> None:
    name = spec["hostnameOverride"]
    for other in ("setHostnameAsFQDN", "hostNetwork"):
        if spec.get(other):
            found.forbidden(path, f"may not be specified when {other} is true")
    if len(name) > 64:
        found.too_long(path, 64)
    found.each(path, name, texts.subdomain(name))


def _dns(found: Found, spec: JSON, path: str) -> None:
    config, none = spec.get("dnsConfig"), spec.get("dnsPolicy") == "None"
    if config is None:
        found.required(path, "must provide `dnsConfig` when `dnsPolicy` is None")
        return
    servers = config.get("nameservers") or ()
    if none and not servers:
        detail = "must provide at least one DNS nameserver when `dnsPolicy` is None"
        found.required(f"{path}.nameservers", detail)
        return
    if len(servers) > 3:
        detail = "must not have more than 3 nameservers"
        found.invalid(f"{path}.nameservers", servers, detail)
    for index, server in enumerate(servers):
        found.each(f"{path}.nameservers[{index}]", server, texts.ip(server))
    _searches(found, config.get("searches") or [], f"{path}.searches")
    for index, option in enumerate(config.get("options") or ()):
        if not option.get("name"):
            found.required(f"{path}.options[{index}]", "must not be empty")


def _searches(found: Found, given: list[str], path: str) -> None:
    if len(given) > 32:
        found.invalid(path, given, "must not have more than 32 search paths")
    if len(" ".join(given)) > 2048:
        detail = (
            "must not have more than 2048 characters (including spaces) in the search "
            "list"
        )
        found.invalid(path, given, detail)
    for index, search in enumerate(given):
        if search != ".":
            name = search.removesuffix(".")
            found.each(f"{path}[{index}]", name, texts.underscored_subdomain(name))


def _names(found: Found, spec: JSON, path: str) -> None:
    for field, check in (
        ("serviceAccountName", texts.subdomain),
        ("nodeName", texts.subdomain),
    ):
        value = spec.get(field)
        if value and (problems := check(value)):
            found.each(f"{path}.{field}", value, problems)
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline < 2**31:
        where = f"{path}.activeDeadlineSeconds"
        found.invalid(where, deadline, texts.between(1, 2**31 - 1))
    for field in ("hostname", "subdomain"):
        value = spec.get(field)
        if value:
            found.each(f"{path}.{field}", value, texts.label(value))


def _rest(found: Found, spec: JSON, path: str) -> None:
    if "tolerations" in spec:
        scheduling.tolerations(found, spec["tolerations"], f"{path}.tolerations")
    for index, alias in enumerate(spec.get("hostAliases") or ()):
        where = f"{path}.hostAliases[{index}]"
        found.each(f"{where}.ip", alias["ip"], texts.ip(alias["ip"]))
        for number, name in enumerate(alias.get("hostnames") or ()):
            found.each(f"{where}.hostnames[{number}]", name, texts.subdomain(name))
    for field in ("priorityClassName", "runtimeClassName"):
        if field in spec:
            value = spec[field]
            found.each(f"{path}.{field}", value, texts.subdomain(value))
    if "preemptionPolicy" in spec:
        policy = spec["preemptionPolicy"]
        found.choice(f"{path}.preemptionPolicy", policy, _PREEMPTION)
    if "overhead" in spec:
        overhead = {"limits": spec["overhead"]}
        resources.requirements(found, overhead, f"{path}.overhead")
    windows.system(found, spec, path)
    _file_keys(found, spec, path)


def _file_keys(found: Found, spec: JSON, path: str) -> None:
    """Variables read from files have their file in a volume that can be written."""
    known: dict[str, JSON] | None = None
    for each, where in windows.containers(spec, path):
        for index, variable in enumerate(each.get("env") or ()):
            source = variable.get("valueFrom")
            if source is None or "fileKeyRef" not in source:
                continue
            if known is None:
                known = {one["name"]: one for one in spec.get("volumes") or ()}
            name = source["fileKeyRef"]["volumeName"]
            place = f"{where}.env[{index}].valueFrom.fileKeyRef.volumeName"
            if name not in known:
                found.not_found(place, name)
            elif "emptyDir" not in known[name]:
                detail = "referenced volume must be of type emptyDir"
                found.invalid(place, name, detail)


def pod_notes(found: Found, given: JSON | None, spec: JSON, path: str) -> None:
    """Annotations that mean something for pods."""
    if not given:
        return
    if MIRROR in given and not spec.get("nodeName"):
        detail = "must set spec.nodeName if mirror pod annotation is set"
        found.invalid(f"{path}[{MIRROR}]", given[MIRROR], detail)
    if DELETION_COST in given and not _is_cost(given[DELETION_COST]):
        where = f"{path}[{DELETION_COST}]"
        found.invalid(where, given[DELETION_COST], "must be a 32bit integer")
    for key, value in given.items():
        if key == _SECCOMP or key.startswith(_SECCOMP_CONTAINER):
            _seccomp(found, value, f"{path}.{key}")
    for key, value in given.items():
        if key.startswith(APP_ARMOR):
            _app_armor(found, key, value, spec, f"{path}[{key}]")


def _is_cost(value: str) -> bool:
    digits = value.removeprefix("-")
    if not digits.isdecimal() or not digits.isascii() or (digits[0] == "0" != digits):
        return False
    return -(2**31) <= int(value) < 2**31


def _seccomp(found: Found, profile: str, path: str) -> None:
    if profile in ("runtime/default", "docker/default", "unconfined"):
        return
    if profile.startswith("localhost/"):
        local = profile.removeprefix("localhost/")
        found.each(path, local, texts.descending(local))
    else:
        found.invalid(path, profile, "must be a valid seccomp profile")


def _app_armor(found: Found, key: str, profile: str, spec: JSON, path: str) -> None:
    name = key.removeprefix(APP_ARMOR)
    if name not in {each["name"] for each, _ in windows.containers(spec, "")}:
        found.invalid(path, name, "container not found")
    if profile in ("", "runtime/default", "unconfined"):
        return
    if not profile.startswith("localhost/"):
        found.invalid(path, profile, f'invalid AppArmor profile name: "{profile}"')


def template(found: Found, given: JSON, path: str) -> None:
    """What pods are made of."""
    metadata, spec = given["metadata"], given["spec"]
    meta.labels(found, metadata.get("labels"), f"{path}.labels")
    meta.notes(found, metadata.get("annotations"), f"{path}.annotations")
    pod_notes(found, metadata.get("annotations"), spec, f"{path}.annotations")
    pod_spec(found, spec, f"{path}.spec")
    if spec.get("ephemeralContainers"):
        detail = "ephemeral containers not allowed in pod template"
        found.forbidden(f"{path}.spec.ephemeralContainers", detail)
