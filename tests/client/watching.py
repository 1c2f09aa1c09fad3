"""What tests of watches share: servers that send events, and some events."""

from __future__ import annotations

from typing import Any

from tests.client.faults import Exchange, Handler
from tests.client.kinds import event, item

MiB = 1 << 20
SOON = 0.2
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
THREE = [
    event("ADDED", item("a")),
    event("MODIFIED", item("a", "2")),
    event("DELETED", item("a", "3")),
]


def sends(*events: Any, end: bool = True) -> Handler:
    """Answers a watch with these events, then ends it, or is silent."""

    async def handler(exchange: Exchange) -> None:
        await exchange.events(events, end=end)
        if not end:
            await exchange.hang()

    return handler
