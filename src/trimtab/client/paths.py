"""Paths: where a resource, an object or a subresource lives on an API server."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from urllib.parse import quote

from trimtab.api.resource import Info

Query = tuple[tuple[str, str], ...]


def path(
    info: Info,
    *,
    namespace: str | None = None,
    name: str | None = None,
    subresource: str | None = None,
) -> str:
    """The URL path of a collection, an object in it, or a subresource of that.

    ``namespace=None`` is every namespace (or none, for a cluster-scoped kind).
    """
    version = _segment(info.version, f"version of a {info.kind}")
    parts = ["/api", version]
    if info.group:
        parts = ["/apis", _segment(info.group, f"group of a {info.kind}"), version]
    if info.namespaced and namespace:
        parts += ["namespaces", _segment(namespace, "namespace")]
    parts.append(_segment(info.plural, f"resource of a {info.kind}"))
    if name is not None:
        parts.append(_segment(name, f"name of a {info.kind}"))
    if subresource is not None:
        parts += [_segment(part, "subresource") for part in subresource.split("/")]
    return "/".join(parts)


@lru_cache(maxsize=1024)
def _segment(text: str, what: str) -> str:
    """One path segment: quoted, and never one that leads out of its place."""
    if text in ("", ".", "..") or "/" in text or "%" in text:
        raise ValueError(f"{text!r} cannot be the {what}; give one that the API allows")
    return quote(text, safe=":")


def query(pairs: Iterable[tuple[str, object]]) -> Query:
    """Query parameters: those that are None or empty are left out."""
    return tuple(
        (key, ("true" if value else "false") if isinstance(value, bool) else str(value))
        for key, value in pairs
        if value is not None and value != ""
    )
