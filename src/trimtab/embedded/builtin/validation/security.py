"""Security: what pods and containers may do on their node."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from trimtab.embedded.builtin.internal import internal
from trimtab.embedded.builtin.validation import texts, windows
from trimtab.embedded.builtin.validation.problems import Found

JSON = Mapping[str, Any]

_PROFILES: Final = ("Localhost", "RuntimeDefault", "Unconfined")
_SYSCTL: Final = (
    r"^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$"
)
_is_sysctl = re.compile(_SYSCTL).fullmatch


def identifier(found: Found, value: int | None, path: str) -> None:
    """The number of a user or a group."""
    if value is not None and not 0 <= value < 2**31:
        found.invalid(path, value, texts.ID_RANGE)


def pod(found: Found, spec: JSON, path: str) -> None:
    """The security context of a whole pod."""
    given = spec.get("securityContext")
    if not given and not spec.get("shareProcessNamespace"):
        return
    given = given or {}
    for name in ("fsGroup", "runAsUser", "runAsGroup"):
        identifier(found, given.get(name), f"{path}.{name}")
    for index, group in enumerate(given.get("supplementalGroups") or ()):
        identifier(found, group, f"{path}.supplementalGroups[{index}]")
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        detail = "ShareProcessNamespace and HostPID cannot both be enabled"
        found.invalid(f"{path}.shareProcessNamespace", True, detail)
    if given.get("sysctls"):
        _sysctls(found, spec, given["sysctls"], f"{path}.sysctls")
    if "fsGroupChangePolicy" in given:
        where = f"{path}.fsGroupChangePolicy"
        found.one_of(where, given["fsGroupChangePolicy"], ("Always", "OnRootMismatch"))
    seccomp(found, given.get("seccompProfile"), f"{path}.seccompProfile")
    windows.options(found, given.get("windowsOptions"), f"{path}.windowsOptions")
    app_armor(found, given.get("appArmorProfile"), f"{path}.appArmorProfile")
    _policies(found, given, path)


def _policies(found: Found, given: JSON, path: str) -> None:
    if "supplementalGroupsPolicy" in given:
        where, policy = "supplementalGroupsPolicy", given["supplementalGroupsPolicy"]
        found.one_of(f"{path}.{where}", policy, ("Merge", "Strict"))
    if "seLinuxChangePolicy" in given:
        where, policy = "seLinuxChangePolicy", given["seLinuxChangePolicy"]
        found.one_of(f"{path}.{where}", policy, ("Recursive",))


def _sysctls(found: Found, spec: JSON, given: list[JSON], path: str) -> None:
    names: set[str] = set()
    for index, sysctl in enumerate(given):
        where, name = f"{path}[{index}].name", sysctl["name"]
        if not name:
            found.required(where)
        elif len(name) > 253 or not _is_sysctl(name):
            detail = f"must have at most 253 characters and match regex {_SYSCTL}"
            found.invalid(where, name, detail)
        elif name in names:
            found.duplicate(where, name)
        shared = _shared(spec, name)
        if shared:
            detail = f"may not be specified when '{shared}' is true"
            found.invalid(where, name, detail)
        names.add(name)


def _shared(spec: JSON, sysctl: str) -> str:
    """Which namespace of the host a sysctl would change."""
    name = sysctl.replace("/", ".")
    if spec.get("hostNetwork") and name.startswith("net."):
        return "hostNetwork"
    prefixes = ("kernel.shm", "kernel.msg", "kernel.sem", "fs.mqueue.")
    return "hostIPC" if spec.get("hostIPC") and name.startswith(prefixes) else ""


def seccomp(found: Found, profile: JSON | None, path: str) -> None:
    if profile is None:
        return
    kind = profile["type"]
    if not kind:
        found.required(f"{path}.type", "type is required when seccompProfile is set")
    else:
        found.one_of(f"{path}.type", kind, _PROFILES)
    where, local = f"{path}.localhostProfile", profile.get("localhostProfile")
    if kind != "Localhost":
        if local is not None:
            detail = "can only be set when seccomp type is Localhost"
            found.invalid(where, internal("core.SeccompProfile", profile), detail)
    elif local is None:
        found.required(where, "must be set when seccomp type is Localhost")
    else:
        found.each(where, local, texts.descending(local))


def app_armor(found: Found, profile: JSON | None, path: str) -> None:
    if profile is None:
        return
    kind, local = profile["type"], profile.get("localhostProfile")
    where, missing = (
        f"{path}.localhostProfile",
        "must be set when AppArmor type is Localhost",
    )
    if not kind:
        found.required(f"{path}.type", "type is required when appArmorProfile is set")
    elif kind not in _PROFILES:
        found.unsupported(f"{path}.type", kind, _PROFILES)
    elif kind != "Localhost":
        if local is not None:
            detail = "can only be set when AppArmor type is Localhost"
            found.invalid(where, local, detail)
    elif not local:
        found.required(where, missing)
    else:
        if local.strip() != local:
            found.invalid(where, local, "must not be padded with whitespace")
        if len(local) > 4095:
            found.too_long(where, 4095)


def container(found: Found, given: JSON | None, path: str, *, host_users: bool) -> None:
    """The security context of a container."""
    if not given:
        return
    for name in ("runAsUser", "runAsGroup"):
        identifier(found, given.get(name), f"{path}.{name}")
    if "procMount" in given:
        mount = given["procMount"]
        found.one_of(f"{path}.procMount", mount, ("Default", "Unmasked"))
        if host_users and mount == "Unmasked":
            detail = "`hostUsers` must be false to use `Unmasked`"
            found.invalid(f"{path}.procMount", mount, detail)
    seccomp(found, given.get("seccompProfile"), f"{path}.seccompProfile")
    if given.get("allowPrivilegeEscalation") is False:
        _escalation(found, given, path)
    windows.options(found, given.get("windowsOptions"), f"{path}.windowsOptions")
    app_armor(found, given.get("appArmorProfile"), f"{path}.appArmorProfile")


def _escalation(found: Found, given: JSON, path: str) -> None:
    shown = internal("core.SecurityContext", given)
    if given.get("privileged"):
        detail = (
            "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
        )
        found.invalid(path, shown, detail)
    for capability in (given.get("capabilities") or {}).get("add") or ():
        if capability == "CAP_SYS_ADMIN":
            detail = (
                "cannot set `allowPrivilegeEscalation` to false and "
                "`capabilities.Add` CAP_SYS_ADMIN"
            )
            found.invalid(path, shown, detail)


def host_users(found: Found, spec: JSON, path: str) -> None:
    """A pod with users of its own does not share the host's namespaces."""
    if spec.get("hostUsers") is not False:
        return
    for name, shown in (
        ("hostNetwork", "hostNetwork"),
        ("hostPID", "HostPID"),
        ("hostIPC", "HostIPC"),
    ):
        if spec.get(name):
            found.forbidden(f"{path}.{shown}", "when `hostUsers` is false")
    for each, where in windows.containers(spec, path):
        if each.get("volumeDevices"):
            found.forbidden(f"{where}.volumeDevices", "when `hostUsers` is false")
