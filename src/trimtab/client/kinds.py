"""What a caller may name a kind by: a class, or what discovery found.

Typed callers pass the class and get objects of it. Dynamic callers pass an
:class:`Info` (from :meth:`Client.discover`) and get plain dicts. The envelopes that an
API server puts around objects (a list, a watch event) are made here for either.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, TypeAlias, TypeVar

import msgspec

from trimtab.api.objects import Object
from trimtab.api.resource import Info, Resource

R = TypeVar("R", bound=Resource)
Plain: TypeAlias = dict[str, Any]
Kind: TypeAlias = type[Resource] | Info


class ListMeta(Object):
    """The metadata of a list: its revision, and where its next page starts."""

    resourceVersion: str = ""
    continue_: str = ""
    remainingItemCount: int | None = None


class BookmarkMeta(Object):
    resourceVersion: str = ""
    annotations: dict[str, str] = {}


class BookmarkObject(Object):
    """All that a bookmark carries, whatever the kind."""

    metadata: BookmarkMeta = BookmarkMeta()


def info_of(kind: Kind) -> Info:
    """Which resource a kind is."""
    if isinstance(kind, Info):
        return kind
    if isinstance(kind, type) and issubclass(kind, Resource):
        info = getattr(kind, "__resource__", None)
        if isinstance(info, Info):
            return info
    raise TypeError(
        f"{kind!r} names no kind; pass a Resource class that has a version, or what "
        "Client.discover() returned"
    )


def type_of(kind: Kind) -> Any:
    """What an object of a kind is decoded into."""
    return Plain if isinstance(kind, Info) else kind


@lru_cache(maxsize=512)
def page_type(item: Any) -> Any:
    """The struct of one page of a list."""
    return msgspec.defstruct(
        "Page",
        [("metadata", ListMeta, ListMeta()), ("items", list[item] | None, None)],
        gc=False,
    )


class RawEvent(msgspec.Struct, gc=False):
    """A watch event whose object is not decoded yet."""

    type: str
    object: msgspec.Raw
