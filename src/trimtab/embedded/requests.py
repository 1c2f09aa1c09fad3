"""Requests: what a path and a query ask for, before anybody looks at an object."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import msgspec

from trimtab.embedded import status

NAMESPACE_SUBRESOURCES = frozenset({"status", "finalize"})
TRUE = frozenset({"true", "1", "True", "TRUE", "t", "T"})
FALSE = frozenset({"0", "false"})
IMPERSONATE = "impersonate-"
"""How the headers begin that say as whom somebody wants to act."""


class User(msgspec.Struct, frozen=True):
    """Who asks."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = {}


class ApiRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One request as the registry sees it, whatever carried it here."""

    method: str
    path: str
    query: Mapping[str, str] = {}
    headers: Mapping[str, str] = {}
    """Names in lower case."""
    body: bytes = b""
    user: User
    impersonation: tuple[tuple[str, str], ...] = ()
    """The headers, names in lower case, that say as whom the user wants to act."""

    def flag(self, name: str) -> bool:
        """A boolean query parameter: true unless it is absent or says it is not."""
        return self.query.get(name, "0").lower() not in FALSE

    def number(self, name: str) -> int | None:
        """A whole-number query parameter; 400 if it is something else."""
        text = self.query.get(name)
        if text is None:
            return None
        try:
            return int(text)
        except ValueError:
            raise status.bad_request(
                f"strconv.ParseInt: parsing {status.quoted(text)}: invalid syntax"
            ) from None


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """The resource, object or subresource that a path names."""

    group: str
    version: str
    resource: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    watch: bool = False
    """The path itself asks for a watch, as only old clients do."""


@lru_cache(maxsize=256)
def target_of(path: str) -> Target | None:
    """What a path below ``/api`` or ``/apis`` names; None if it names no resource."""
    parts = path.strip("/").split("/")
    if parts[0] == "api" and len(parts) > 2:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) > 3:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return None
    # Authorization reads this as a verb, and nothing is served there.
    if rest[0] == "proxy" and len(rest) > 1:
        return None
    namespace = ""
    watch = rest[0] == "watch" and len(rest) > 1
    if watch:
        rest = rest[1:]
    within = rest[0] == "namespaces" and len(rest) > 2
    if within and rest[2] not in NAMESPACE_SUBRESOURCES:
        namespace, rest = rest[1], rest[2:]
    resource, name, subresource = rest[0], "", ""
    if len(rest) > 1:
        name = rest[1]
    if len(rest) > 2:
        subresource = "/".join(rest[2:])
    return Target(
        group=group,
        version=version,
        resource=resource,
        namespace=namespace,
        name=name,
        subresource=subresource,
        watch=watch,
    )
