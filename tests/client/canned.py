"""Answers that several tests have the fault server give."""

from __future__ import annotations

import json

from tests.client.faults import Exchange
from tests.client.kinds import event, item

ONE = json.dumps(item("one")).encode()
"""A whole object."""
SIZED = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n" % len(ONE)
"""The head of an answer that promises all of it."""


async def silent_watch(exchange: Exchange) -> None:
    """One event, and then nothing more, for ever."""
    await exchange.events([event("ADDED", item("a"))], end=False)
    await exchange.hang()
