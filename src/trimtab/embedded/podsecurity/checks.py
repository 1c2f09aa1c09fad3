"""Checks: what each level of the pod security standards forbids, in its own words.

A check looks at the metadata and the spec of a pod, and gives a reason and a detail if
it finds something. Some came with a later version, or replace one of a lower level.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache, partial
from typing import Any

import msgspec

Plain = Mapping[str, Any]
Finding = tuple[str, str] | None
Look = Callable[[Plain, Plain], Finding]

LATEST = 36
CAPABILITIES = frozenset(
    {
        *("AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD"),
        *("NET_BIND_SERVICE", "SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT"),
    }
)
SYSCTLS = (
    (0, "kernel.shm_rmid_forced"),
    (0, "net.ipv4.ip_local_port_range"),
    (0, "net.ipv4.tcp_syncookies"),
    (0, "net.ipv4.ping_group_range"),
    (0, "net.ipv4.ip_unprivileged_port_start"),
    (27, "net.ipv4.ip_local_reserved_ports"),
    (29, "net.ipv4.tcp_keepalive_time"),
    (29, "net.ipv4.tcp_fin_timeout"),
    (29, "net.ipv4.tcp_keepalive_intvl"),
    (29, "net.ipv4.tcp_keepalive_probes"),
    (32, "net.ipv4.tcp_rmem"),
    (32, "net.ipv4.tcp_wmem"),
)
SELINUX = ("", "container_t", "container_init_t", "container_kvm_t")
VOLUMES = frozenset(
    {
        *("configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "image"),
        *("persistentVolumeClaim", "projected", "secret"),
    }
)
APPARMOR_NOTE = "container.apparmor.security.beta.kubernetes.io/"
PROFILES = ("Localhost", "RuntimeDefault")


def containers(spec: Plain) -> Iterator[Plain]:
    """All of a pod, the first to start first."""
    for field in ("initContainers", "containers", "ephemeralContainers"):
        yield from spec.get(field) or ()


def _security(holder: Plain) -> Plain:
    return holder.get("securityContext") or {}


def _quoted(items: Iterable[str]) -> str:
    return ", ".join(f'"{each}"' for each in items)


def _plural(one: str, items: Iterable[Any], many: str = "") -> str:
    return one if len([*items]) == 1 else many or f"{one}s"


def _named(names: list[str]) -> str:
    return f"{_plural('container', names)} {_quoted(names)}"


def _with(spec: Plain, bad: Callable[[Plain], Any]) -> list[str]:
    """The names of the containers that something is wrong with."""
    return [each["name"] for each in containers(spec) if bad(each)]


def _setters(spec: Plain, bad: Callable[[Plain], Any]) -> list[str]:
    """Who sets something bad in a security context: the pod, or its containers."""
    setters = ["pod"] if bad(_security(spec)) else []
    names = _with(spec, lambda each: bad(_security(each)))
    return [*setters, _named(names)] if names else setters


def _is_windows(spec: Plain) -> bool:
    return (spec.get("os") or {}).get("name") == "windows"


def _has_own_users(spec: Plain) -> bool:
    return spec.get("hostUsers") is False


def privileged(meta: Plain, spec: Plain) -> Finding:
    names = _with(spec, lambda each: _security(each).get("privileged"))
    if not names:
        return None
    detail = f"{_named(names)} must not set securityContext.privileged=true"
    return "privileged", detail


def host_namespaces(meta: Plain, spec: Plain) -> Finding:
    fields = ("hostNetwork", "hostPID", "hostIPC")
    found = [f"{field}=true" for field in fields if spec.get(field)]
    return ("host namespaces", ", ".join(found)) if found else None


def host_paths(meta: Plain, spec: Plain) -> Finding:
    names = [v["name"] for v in spec.get("volumes") or () if "hostPath" in v]
    if not names:
        return None
    return "hostPath volumes", f"{_plural('volume', names)} {_quoted(names)}"


def host_ports(meta: Plain, spec: Plain) -> Finding:
    ports: set[str] = set()

    def bad(container: Plain) -> list[str]:
        given = container.get("ports") or ()
        used = [str(each["hostPort"]) for each in given if each.get("hostPort")]
        ports.update(used)
        return used

    names = _with(spec, bad)
    if not names:
        return None
    verb = _plural("uses", names, "use")
    listed = f"{_plural('hostPort', ports)} {', '.join(sorted(ports))}"
    return "hostPort", f"{_named(names)} {verb} {listed}"


def host_probes(meta: Plain, spec: Plain) -> Finding:
    hosts: set[str] = set()

    def bad(container: Plain) -> list[str]:
        probes = ("livenessProbe", "readinessProbe", "startupProbe")
        lifecycle = container.get("lifecycle") or {}
        handlers = [container.get(each) or {} for each in probes]
        handlers += [lifecycle.get(each) or {} for each in ("postStart", "preStop")]
        found = [
            host
            for each in handlers
            for action in ("httpGet", "tcpSocket")
            if (host := (each.get(action) or {}).get("host"))
        ]
        hosts.update(found)
        return found

    names = sorted({*_with(spec, bad)})
    if not names:
        return None
    what = _plural("probe or lifecycle host", hosts)
    verb = _plural("uses", names, "use")
    detail = f"{_named(names)} {verb} {what} {_quoted(sorted(hosts))}"
    return "probe or lifecycle host", detail


def capabilities(meta: Plain, spec: Plain) -> Finding:
    added: set[str] = set()
    names = _with(spec, partial(_adds, allowed=CAPABILITIES, found=added))
    if not names:
        return None
    return "non-default capabilities", _must_not_add(names, added)


def _adds(container: Plain, *, allowed: Iterable[str], found: set[str]) -> bool:
    given = (_security(container).get("capabilities") or {}).get("add") or ()
    bad = {*given} - {*allowed}
    found |= bad
    return bool(bad)


def _must_not_add(names: list[str], added: set[str]) -> str:
    told = f"{_named(names)} must not include {_quoted(sorted(added))}"
    return f"{told} in securityContext.capabilities.add"


def few_capabilities(meta: Plain, spec: Plain) -> Finding:
    def keeps(container: Plain) -> bool:
        given = _security(container).get("capabilities") or {}
        return "ALL" not in (given.get("drop") or ())

    added: set[str] = set()
    keeping = _with(spec, keeps)
    names = _with(spec, partial(_adds, allowed=("NET_BIND_SERVICE",), found=added))
    details = []
    if keeping:
        wanted = 'must set securityContext.capabilities.drop=["ALL"]'
        details.append(f"{_named(keeping)} {wanted}")
    if names:
        details.append(_must_not_add(names, added))
    return ("unrestricted capabilities", "; ".join(details)) if details else None


def app_armor(meta: Plain, spec: Plain) -> Finding:
    values: set[str] = set()

    def bad(security: Plain) -> bool:
        kind = (security.get("appArmorProfile") or {}).get("type")
        if kind is None or kind in PROFILES:
            return False
        values.add(kind)
        return True

    setters = _setters(spec, bad)
    notes = meta.get("annotations") or {}
    forbidden = sorted(
        f"{key}={msgspec.json.encode(value).decode()}"
        for key, value in notes.items()
        if key.startswith(APPARMOR_NOTE)
        and value not in ("", "runtime/default")
        and not value.startswith("localhost/")
    )
    listed = [*sorted(values), *forbidden]
    if forbidden:
        setters.append(_plural("annotation", forbidden))
    if not setters:
        return None
    told = f"{' and '.join(setters)} must not set AppArmor profile type to"
    reason = _plural("forbidden AppArmor profile", listed)
    return reason, f"{told} {_quoted(listed)}"


def proc_mount(meta: Plain, spec: Plain) -> Finding:
    def kind(container: Plain) -> Any:
        return _security(container).get("procMount", "Default")

    names = _with(spec, lambda each: kind(each) != "Default")
    if not names:
        return None
    kinds = sorted({kind(each) for each in containers(spec)} - {"Default"})
    told = f"{_named(names)} must not set securityContext.procMount to"
    return "procMount", f"{told} {_quoted(kinds)}"


def selinux(meta: Plain, spec: Plain, *, allowed: Iterable[str]) -> Finding:
    kinds: set[str] = set()
    said: set[str] = set()

    def bad(security: Plain) -> bool:
        given = security.get("seLinuxOptions") or {}
        kind = given.get("type", "")
        wrong = [each for each in ("user", "role") if given.get(each)]
        said.update(wrong)
        if kind not in allowed:
            kinds.add(kind)
        return bool(wrong) or kind not in allowed

    setters = _setters(spec, bad)
    if not setters:
        return None
    data = [f"{_plural('type', kinds)} {_quoted(sorted(kinds))}"] if kinds else []
    data += [f"{each} may not be set" for each in ("user", "role") if each in said]
    told = f"{' and '.join(setters)} set forbidden securityContext.seLinuxOptions:"
    return "seLinuxOptions", f"{told} {'; '.join(data)}"


def seccomp(meta: Plain, spec: Plain) -> Finding:
    values: set[str] = set()

    def bad(security: Plain) -> bool:
        kind = (security.get("seccompProfile") or {}).get("type")
        if kind is None or kind in PROFILES:
            return False
        values.add(kind)
        return True

    setters = _setters(spec, bad)
    if not setters:
        return None
    told = f"{' and '.join(setters)} must not set securityContext.seccompProfile.type"
    return "seccompProfile", f"{told} to {_quoted(sorted(values))}"


def some_seccomp(meta: Plain, spec: Plain) -> Finding:
    if found := seccomp(meta, spec):
        return found
    if "seccompProfile" in _security(spec):
        return None
    names = _with(spec, lambda each: "seccompProfile" not in _security(each))
    if not names:
        return None
    wanted = 'must set securityContext.seccompProfile.type to "RuntimeDefault" or '
    return "seccompProfile", f'pod or {_named(names)} {wanted}"Localhost"'


def sysctls(meta: Plain, spec: Plain, *, minor: int) -> Finding:
    allowed = {name for since, name in SYSCTLS if since <= minor}
    given = _security(spec).get("sysctls") or ()
    found = [each["name"] for each in given if each["name"] not in allowed]
    return ("forbidden sysctls", ", ".join(found)) if found else None


def host_process(meta: Plain, spec: Plain) -> Finding:
    def bad(security: Plain) -> Any:
        return (security.get("windowsOptions") or {}).get("hostProcess")

    setters = _setters(spec, bad)
    if not setters:
        return None
    field = "securityContext.windowsOptions.hostProcess=true"
    return "hostProcess", f"{' and '.join(setters)} must not set {field}"


def escalation(meta: Plain, spec: Plain) -> Finding:
    field = "allowPrivilegeEscalation"
    names = _with(spec, lambda each: _security(each).get(field) is not False)
    if not names:
        return None
    return (
        f"{field} != false",
        f"{_named(names)} must set securityContext.{field}=false",
    )


def volume_types(meta: Plain, spec: Plain) -> Finding:
    names, kinds = [], set()
    for volume in spec.get("volumes") or ():
        given = [each for each in volume if each != "name"]
        if not VOLUMES & {*given}:
            names.append(volume["name"])
            kinds.update(given or ["unknown"])
    if not names:
        return None
    volumes = f"{_plural('volume', names)} {_quoted(names)}"
    types = f"{_plural('restricted volume type', kinds)} {_quoted(sorted(kinds))}"
    verb = _plural("uses", names, "use")
    return "restricted volume types", f"{volumes} {verb} {types}"


def non_root(meta: Plain, spec: Plain) -> Finding:
    reason = "runAsNonRoot != true"
    setters = _setters(spec, lambda each: each.get("runAsNonRoot") is False)
    if setters:
        told = f"{' and '.join(setters)} must not set"
        return reason, f"{told} securityContext.runAsNonRoot=false"
    if _security(spec).get("runAsNonRoot"):
        return None
    names = _with(spec, lambda each: "runAsNonRoot" not in _security(each))
    if not names:
        return None
    return reason, f"pod or {_named(names)} must set securityContext.runAsNonRoot=true"


def non_zero_user(meta: Plain, spec: Plain) -> Finding:
    setters = _setters(spec, lambda each: each.get("runAsUser") == 0)
    if not setters:
        return None
    told = f"{' and '.join(setters)} must not set runAsUser=0"
    return "runAsUser=0", told


def _unless(skip: Callable[[Plain], bool], look: Look) -> Look:
    return lambda meta, spec: None if skip(spec) else look(meta, spec)


def _same(look: Look) -> Look:
    return look


@lru_cache(maxsize=64)
def checks(level: str, minor: int) -> tuple[Look, ...]:
    """The checks of a level as they were in a version, in the order they are told."""
    if level == "privileged":
        return ()
    kvm = ("container_engine_t",) if minor >= 31 else ()
    relaxed = partial(_unless, _has_own_users) if minor >= 35 else _same
    baseline: dict[str, Look] = {
        "appArmorProfile": app_armor,
        "capabilities_baseline": capabilities,
        "hostNamespaces": host_namespaces,
        "hostPathVolumes": host_paths,
        "hostPorts": host_ports,
        **({"hostProbesAndHostLifecycle": host_probes} if minor >= 34 else {}),
        "privileged": privileged,
        "procMount": relaxed(proc_mount),
        "seLinuxOptions": partial(selinux, allowed=(*SELINUX, *kvm)),
        "seccompProfile_baseline": seccomp,
        "sysctls": partial(sysctls, minor=minor),
        "windowsHostProcess": host_process,
    }
    if level == "baseline":
        return (*baseline.values(),)
    return (*_restricted(baseline, minor, relaxed),)


def _restricted(
    baseline: dict[str, Look], minor: int, relaxed: Callable[[Look], Look]
) -> Iterator[Look]:
    """What is left of the lower level, then what replaces the rest and comes new."""
    linux = partial(_unless, _is_windows) if minor >= 25 else _same
    replaced = {"hostPathVolumes", "seccompProfile_baseline"}
    replaced |= {"capabilities_baseline"} if minor >= 22 else set()
    replaced |= {"procMount"} if minor >= 35 else set()
    yield from (look for name, look in baseline.items() if name not in replaced)
    yield linux(escalation)
    if minor >= 22:
        yield linux(few_capabilities)
    if minor >= 35:
        yield proc_mount
    yield volume_types
    yield relaxed(non_root)
    if minor >= 23:
        yield relaxed(non_zero_user)
    yield linux(some_seccomp)
