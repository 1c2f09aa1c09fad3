"""Rotating: an authority is followed by another before it expires, and nobody notices.

The next one is made and told to everybody first; a day later it signs. Whoever verifies
a certificate trusts the present one, the next one, and those before that have not
expired, so certificates of both are good for as long as there are any. Pure: what the
Secret of an authority should hold follows from what it holds, and from the time.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

from trimtab.pool.secrets import AUTHORITY, AUTHORITY_PRIVATE, Authority

FOLLOWED_BEFORE: Final = timedelta(days=180)
"""An authority with less than this left is followed by another."""
RIPENS: Final = timedelta(days=1)
"""How long everybody has to hear of the next one before it signs; far longer than
anybody goes on without a look at the Secret."""

NEXT, NEXT_PRIVATE, FORMER = "next.crt", "next.key", "former.crt"
"""The names in the data of an authority's Secret, besides those that it has alone."""


def authority_of(data: Mapping[str, bytes]) -> Authority:
    """The one that signs, and all whom to trust beside it."""
    present = Authority.of_data(dict(data))
    return present.beside(data.get(NEXT, b"") + data.get(FORMER, b""))


def rotated(
    data: Mapping[str, bytes], *, title: str, now: datetime
) -> dict[str, bytes] | None:
    """What the Secret of an authority should hold; None if that is what it holds."""
    present, held = Authority.of_data(dict(data)), dict(data)
    left = present.expires - now
    if left >= FOLLOWED_BEFORE:
        return None
    hurry = left <= 2 * RIPENS
    if not (data.get(NEXT) and data.get(NEXT_PRIVATE)):
        made = Authority.make(f"{title} from {now:%Y-%m-%d}", now=now).data()
        held |= {NEXT: made[AUTHORITY], NEXT_PRIVATE: made[AUTHORITY_PRIVATE]}
        if not hurry:
            return held
    following = Authority(held[NEXT], held[NEXT_PRIVATE])
    # With no time left, some who have not heard of it are better than all.
    if now - following.made < RIPENS and not hurry:
        return None
    former = present.pem + data.get(FORMER, b"")
    del held[NEXT], held[NEXT_PRIVATE]
    held |= following.data()
    return held | {FORMER: _unexpired(former, now=now)}


def _unexpired(pem: bytes, *, now: datetime) -> bytes:
    """Those certificates of a text that are good for something."""
    end = b"-----END CERTIFICATE-----\n"
    parts = [part + end for part in pem.split(end) if part.strip()]
    return b"".join(part for part in parts if Authority(part, b"").expires > now)
