"""Rotation: from one certificate to the next, without a moment when neither is good.

What is kept goes round through three states, each a compare-and-swap on the Secret:

1. *Steady*: one certificate is served; its authority is trusted.
2. *Announced*, after two thirds of its life: there is a next one, whose authority is
   trusted beside the old one. The old one is still what is served.
3. *Promoted*, once every configuration has trusted both for a while: the next one is
   served. The old authority stays trusted until it expires, for replicas and
   connections that are late. Then it is steady again. (If the old one expires before
   that, because nobody could be told, the next one is served all the same.)

All of it is a function of what is kept and of the time. No call and no clock is here.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from enum import Enum

import msgspec

from trimtab.client.credentials import Guarded
from trimtab.runtime.webhooks.certificates import Issued, expiry, lasting

SHARE = 2 / 3
"""Of its life, after which a certificate is renewed."""


class Wish(Enum):
    """What is to be done next."""

    NOTHING = "nothing"
    MAKE = "make"
    """There is nothing that could be served: a new one is, at once."""
    ANNOUNCE = "announce"
    """The next one is made, and its authority is to be trusted."""
    PROMOTE = "promote"
    """The next one becomes the one that is served."""
    TIDY = "tidy"
    """An authority has expired and is forgotten."""


class Kept(Guarded, frozen=True, kw_only=True):
    """What all replicas share."""

    current: Issued
    """What they serve."""
    next: Issued | None = None
    """What they will serve."""
    authorities: tuple[bytes, ...] = ()
    """Whom API servers must trust: those of both, and of late ones."""

    def shown(self) -> Mapping[str, object]:
        return {"current": self.current, "next": self.next}

    def __post_init__(self) -> None:
        for each in (self.current, self.next):
            assert each is None or each.authority in self.authorities, (
                "what is served, or will be, is always trusted"
            )


def wish(
    kept: Kept | None,
    *,
    names: tuple[str, ...],
    now: datetime,
    trusted: Collection[bytes],
) -> Wish:
    """What is to be done; ``trusted`` are authorities that have been so for a while."""
    if kept is None:
        return Wish.MAKE
    if kept.current.expires <= now:
        # What was announced is known to some; a new one would be to nobody.
        known = kept.next is not None and kept.next.expires > now
        return Wish.PROMOTE if known else Wish.MAKE
    if kept.next is not None:
        settled = kept.next.authority in trusted
        return Wish.PROMOTE if settled else Wish.NOTHING
    if renewal(kept.current) <= now or not set(names) <= set(kept.current.names):
        return Wish.ANNOUNCE
    if len(_trusted(kept, now=now)) < len(kept.authorities):
        return Wish.TIDY
    return Wish.NOTHING


def renewal(issued: Issued) -> datetime:
    """When a certificate is due to be replaced."""
    return issued.made + (issued.expires - issued.made) * SHARE


def due(kept: Kept, *, now: datetime) -> timedelta:
    """How long nothing is to be done, if nobody else does anything."""
    moments = [kept.current.expires]
    if kept.next is None:
        moments.append(renewal(kept.current))
    ends = [expiry(each) for each in kept.authorities]
    moments += [each for each in ends if each is not None]
    return max(min(moments) - now, timedelta(0))


def begun(issued: Issued) -> Kept:
    """The first certificate, or one after nothing that is good any more."""
    return Kept(current=issued, authorities=(issued.authority,))


def announced(kept: Kept, issued: Issued, *, now: datetime) -> Kept:
    """The next one is there, and its authority is to be trusted."""
    trusted = (*_trusted(kept, now=now), issued.authority)
    return Kept(current=kept.current, next=issued, authorities=trusted)


def promoted(kept: Kept, *, now: datetime) -> Kept:
    """The next one is served from now on."""
    assert kept.next is not None, "only what was announced is promoted"
    made = Kept(current=kept.next, authorities=kept.authorities)
    return tidied(made, now=now)


def tidied(kept: Kept, *, now: datetime) -> Kept:
    """Authorities that have expired are forgotten."""
    return msgspec.structs.replace(kept, authorities=_trusted(kept, now=now))


def _trusted(kept: Kept, *, now: datetime) -> tuple[bytes, ...]:
    needed = {each.authority for each in (kept.current, kept.next) if each}
    good = set(lasting(kept.authorities, now=now)) | needed
    return tuple(each for each in kept.authorities if each in good)
