"""Handlers: what is run or asked in a container, by probes and lifecycle hooks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from trimtab.embedded.builtin.validation import texts
from trimtab.embedded.builtin.validation.problems import Found

JSON = Mapping[str, Any]

_KINDS: Final = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")
_MORE: Final = "may not specify more than 1 handler type"
_COUNTS: Final = (
    "initialDelaySeconds",
    "timeoutSeconds",
    "periodSeconds",
    "successThreshold",
    "failureThreshold",
)


def port(found: Found, value: int | str, path: str) -> None:
    """A port by number or by name."""
    if isinstance(value, str):
        found.each(path, value, texts.port_name(value))
    elif not 1 <= value <= 65535:
        found.invalid(path, value, texts.PORT_RANGE)


def handler(found: Found, given: JSON, path: str, *, grace: int | None) -> None:
    """Exactly one way to act on a container."""
    count = 0
    for kind in _KINDS:
        if kind not in given:
            continue
        count += 1
        if count > 1:
            found.forbidden(f"{path}.{kind}", _MORE)
        else:
            _one(found, kind, given[kind], f"{path}.{kind}", grace=grace)
    if not count:
        found.required(path, "must specify a handler type")


def _one(found: Found, kind: str, given: JSON, path: str, *, grace: int | None) -> None:
    if kind == "exec":
        if not given.get("command"):
            found.required(f"{path}.command")
    elif kind == "httpGet":
        _http(found, given, path)
    elif kind == "sleep":
        seconds = given["seconds"]
        if grace is not None and not 0 <= seconds <= grace:
            detail = (
                "must be non-negative and less than terminationGracePeriodSeconds "
                f"({grace})"
            )
            found.invalid(path, seconds, detail)
    else:
        port(found, given["port"], f"{path}.port")


def _http(found: Found, given: JSON, path: str) -> None:
    if not given.get("path"):
        found.required(f"{path}.path")
    port(found, given["port"], f"{path}.port")
    found.one_of(f"{path}.scheme", given.get("scheme", ""), ("HTTP", "HTTPS"))
    for header in given.get("httpHeaders") or ():
        name = header["name"]
        found.each(f"{path}.httpHeaders", name, texts.header_name(name))


def probe(found: Found, given: JSON, path: str, *, grace: int | None) -> None:
    """How it is found out whether a container is alive, ready or started."""
    handler(found, given, path, grace=grace)
    for field in _COUNTS:
        if given.get(field, 0) < 0:
            found.invalid(f"{path}.{field}", given[field], texts.NEGATIVE)
    seconds = given.get("terminationGracePeriodSeconds")
    if seconds is not None and seconds <= 0:
        where = f"{path}.terminationGracePeriodSeconds"
        found.invalid(where, seconds, "must be greater than 0")


def probes(found: Found, container: JSON, path: str, *, grace: int | None) -> None:
    """The three probes of a container."""
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        given = container.get(name)
        if given is None:
            continue
        where = f"{path}.{name}"
        probe(found, given, where, grace=grace)
        if name == "readinessProbe":
            seconds = given.get("terminationGracePeriodSeconds")
            if seconds is not None:
                where += ".terminationGracePeriodSeconds"
                found.invalid(where, seconds, "must not be set for readinessProbes")
        elif given.get("successThreshold") != 1:
            value = given.get("successThreshold", 0)
            found.invalid(f"{where}.successThreshold", value, "must be 1")


def lifecycle(found: Found, given: JSON, path: str, *, grace: int | None) -> None:
    """What happens after the start and before the end of a container."""
    for hook in ("postStart", "preStop"):
        if hook in given:
            handler(found, given[hook], f"{path}.{hook}", grace=grace)
