"""Attributes: what a request wants to do, in the terms that rules are written in.

They are read off path, method and query alone, before anybody knows whether there is
such a resource: whoever may not ask does not learn what is there.
"""

from __future__ import annotations

import msgspec

from trimtab.api.selectors import FieldSelector
from trimtab.embedded.requests import NAMESPACE_SUBRESOURCES, ApiRequest

VERBS = {
    "GET": "get",
    "HEAD": "get",
    "POST": "create",
    "PUT": "update",
    "PATCH": "patch",
    "DELETE": "delete",
}
PREFIXES = frozenset({"proxy", "watch"})
"""Verbs that old clients put before the resource in the path."""


class Attributes(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An action: a verb on a resource, or on a path if it names none."""

    verb: str
    path: str = ""
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    is_resource: bool = True

    @property
    def full_resource(self) -> str:
        """The resource with its subresource, as rules name them."""
        if self.subresource:
            return f"{self.resource}/{self.subresource}"
        return self.resource


def attributes_of(request: ApiRequest) -> Attributes:
    """What a request wants to do."""
    parts = request.path.strip("/").split("/")
    if parts[0] == "api" and len(parts) > 2:
        return _on_resource(request, "", parts[2:])
    if parts[0] == "apis" and len(parts) > 3:
        return _on_resource(request, parts[1], parts[3:])
    return path_attributes(request.method.lower(), request.path)


def path_attributes(verb: str, path: str) -> Attributes:
    """What is done to a path that names no resource."""
    return Attributes(verb=verb, path=path, is_resource=False)


def _on_resource(request: ApiRequest, group: str, parts: list[str]) -> Attributes:
    verb = VERBS.get(request.method, "")
    if parts[0] in PREFIXES and len(parts) > 1:
        verb, parts = parts[0], parts[1:]
    namespace = ""
    if parts[0] == "namespaces" and len(parts) > 1:
        namespace = parts[1]
        if len(parts) > 2 and parts[2] not in NAMESPACE_SUBRESOURCES:
            parts = parts[2:]
    name = parts[1] if len(parts) > 1 else ""
    if not name and verb == "get":
        verb = "watch" if request.flag("watch") else "list"
        name = _selected(request.query.get("fieldSelector", ""))
    elif not name and verb == "delete":
        verb = "deletecollection"
    return Attributes(
        verb=verb,
        path=request.path,
        group=group,
        resource=parts[0],
        subresource=parts[2] if len(parts) > 2 and verb != "proxy" else "",
        namespace=namespace,
        name=name,
    )


def _selected(text: str) -> str:
    """The one object that a field selector leaves; none if it leaves others too."""
    if not text:
        return ""
    try:
        name = FieldSelector.from_string(text).exact("metadata.name") or ""
    except ValueError:
        return ""
    is_segment = name not in (".", "..") and "/" not in name and "%" not in name
    return name if is_segment else ""
