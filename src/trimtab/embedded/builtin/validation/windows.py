"""Operating systems: what only pods on Windows have, and what they cannot have."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from trimtab.embedded.builtin.validation import texts
from trimtab.embedded.builtin.validation.problems import Found

JSON = Mapping[str, Any]

_KINDS: Final = ("initContainers", "containers", "ephemeralContainers")
_WINDOWS: Final = "cannot be set for a windows pod"
_LINUX: Final = "windows options cannot be set for a linux pod"
_has_control = re.compile(r"[\x00-\x1f\x7f]").search
_is_net_bios = re.compile(r'[^\\/:*?"<>|.][^\\/:*?"<>|]{0,14}').fullmatch
_LABEL: Final = r"[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
_is_domain = re.compile(rf"{_LABEL}(?:\.{_LABEL})*").fullmatch
_has_wrong = re.compile(r'["/\\:;|=,+*?<>@\[\]]').search


def containers(spec: JSON, path: str) -> Iterator[tuple[JSON, str]]:
    """Every container of a pod with its path."""
    for kind in _KINDS:
        for index, each in enumerate(spec.get(kind) or ()):
            yield each, f"{path}.{kind}[{index}]"


def options(found: Found, given: JSON | None, path: str) -> None:
    """Who containers on Windows are."""
    if not given:
        return
    name, spec = given.get("gmsaCredentialSpecName"), given.get("gmsaCredentialSpec")
    if name is not None:
        found.each(f"{path}.gmsaCredentialSpecName", name, texts.subdomain(name))
    where = f"{path}.gmsaCredentialSpec"
    if spec == "":
        found.invalid(where, spec, "gmsaCredentialSpec cannot be an empty string")
    elif spec is not None and len(spec.encode()) > 64 * 1024:
        found.invalid(where, spec, "gmsaCredentialSpec size must be under 64 KiB")
    user = given.get("runAsUserName")
    if user is not None:
        for problem in _user(user):
            found.invalid(f"{path}.runAsUserName", user, f"runAsUserName{problem}")


def _user(given: str) -> Iterator[str]:
    if not given:
        yield " cannot be an empty string"
        return
    if _has_control(given):
        yield " cannot contain control characters"
        return
    *domains, user = given.split("\\")
    if len(domains) > 1:
        yield " cannot contain more than one backslash"
        return
    for domain in domains:
        if len(domain.encode()) >= 256:
            yield "'s Domain length must be under 256 characters"
        if not _is_net_bios(domain) and not _is_domain(domain):
            yield "'s Domain doesn't match the NetBios nor the DNS format"
    if not user:
        yield "'s User cannot be empty"
    elif len(user.encode()) > 104:
        yield "'s User length must not be longer than 104 characters"
    if user and not user.strip(". "):
        yield "'s User cannot contain only periods or spaces"
    if _has_wrong(user):
        yield "'s User cannot contain the following characters: \"/\\:;|=,+*?<>@[]"


def host_process(found: Found, spec: JSON, path: str) -> None:
    """All containers of a pod run next to the node's own processes, or none does."""
    own = _runs_on_host(spec)
    count = running = 0
    for each, where in containers(spec, path):
        count += 1
        theirs = _runs_on_host(each)
        if own is not None and theirs is not None and own != theirs:
            place = f"{where}.securityContext.windowsOptions.hostProcess"
            detail = (
                "pod hostProcess value must be identical if both are specified, was "
                f"{str(own).lower()}"
            )
            found.invalid(place, theirs, detail)
        running += bool(own if theirs is None else theirs)
    if not running:
        return
    if running != count:
        detail = (
            "If pod contains any hostProcess containers then all containers must be "
            "HostProcess containers"
        )
        found.invalid(path, "", detail)
    if not spec.get("hostNetwork"):
        detail = "hostNetwork must be true if pod contains any hostProcess containers"
        found.invalid(f"{path}.hostNetwork", False, detail)


def _runs_on_host(given: JSON) -> bool | None:
    context = given.get("securityContext")
    options = context.get("windowsOptions") if context else None
    return options.get("hostProcess") if options else None


_NOT_ON_WINDOWS: Final = (
    ("securityContext", "appArmorProfile"),
    ("securityContext", "seLinuxOptions"),
    ("", "hostUsers"),
    ("", "hostPID"),
    ("", "hostIPC"),
    ("securityContext", "seccompProfile"),
    ("securityContext", "fsGroup"),
    ("securityContext", "fsGroupChangePolicy"),
    ("securityContext", "sysctls"),
    ("", "shareProcessNamespace"),
    ("securityContext", "runAsUser"),
    ("securityContext", "runAsGroup"),
    ("securityContext", "supplementalGroups"),
    ("securityContext", "supplementalGroupsPolicy"),
    ("securityContext", "seLinuxChangePolicy"),
)
_NOT_IN_WINDOWS_CONTAINERS: Final = (
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "capabilities",
    "readOnlyRootFilesystem",
    "privileged",
    "allowPrivilegeEscalation",
    "procMount",
    "runAsUser",
    "runAsGroup",
)


def system(found: Found, spec: JSON, path: str) -> None:
    """What goes with the operating system that a pod names."""
    if "os" not in spec:
        return
    name = spec["os"]["name"]
    if not name:
        found.required(f"{path}.os.name")
    elif name == "linux":
        _linux(found, spec, path)
    elif name == "windows":
        _windows(found, spec, path)
    else:
        found.unsupported(f"{path}.os", name, ("linux", "windows"))


def _linux(found: Found, spec: JSON, path: str) -> None:
    if "windowsOptions" in (spec.get("securityContext") or {}):
        found.forbidden(f"{path}.securityContext.windowsOptions", _LINUX)
    for each, where in containers(spec, path):
        if "windowsOptions" in (each.get("securityContext") or {}):
            found.forbidden(f"{where}.securityContext.windowsOptions", _LINUX)


def _windows(found: Found, spec: JSON, path: str) -> None:
    for place, name in _NOT_ON_WINDOWS:
        if name in (spec.get(place) or {} if place else spec):
            where = f"{path}.{place}.{name}" if place else f"{path}.{name}"
            found.forbidden(where, _WINDOWS)
    for each, where in containers(spec, path):
        context = each.get("securityContext") or {}
        for name in _NOT_IN_WINDOWS_CONTAINERS:
            if name in context:
                found.forbidden(f"{where}.securityContext.{name}", _WINDOWS)
