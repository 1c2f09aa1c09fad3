"""Options of feeds: how lists are read, and how long anything may take."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

MiB = 1 << 20
Way: TypeAlias = Literal["pages", "stream"]


class FeedOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How feeds behave; every bound has a value."""

    way: Way = "pages"
    """How a list is read at first: in pages, or as the beginning of a watch. Pages
    measure faster. The other way is taken when the server lacks or forbids one."""
    page_bytes: int = 2 * MiB
    """About how long the body of a page shall be; their size adapts to it."""
    idle: float = 150.0
    """Seconds of silence after which a watch is cut; bookmarks come each minute."""
    first_pause: float = 0.2
    """The longest first pause after a failure; each next one may be twice as long."""
    longest_pause: float = 30.0
    patience: float = 10.0
    """Seconds that a passing failure may last before it is a problem."""
