"""Slimming: TLS connections that cost 16 KiB of buffer in place of 256.

asyncio gives each one a buffer for the fastest of downloads. A gateway has thousands of
connections, on which a few hundred bytes go to and fro.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

SIZE: Final = 16 * 1024
"""The largest record of TLS: less would only mean more turns for each."""


def slim(transport: asyncio.BaseTransport) -> None:
    """Shrink the buffer of a connection that was just made, where asyncio has one.

    Assumptions: nothing waits in the buffer, which is so in ``connection_made``. An
    asyncio that keeps its buffer elsewhere is left as it is.
    """
    protocol: Any = getattr(transport, "_ssl_protocol", None)
    held = getattr(protocol, "_ssl_buffer", None)
    if isinstance(held, bytearray) and len(held) > SIZE:
        protocol.max_size = SIZE  # or it would grow again with the next read
        protocol._ssl_buffer = bytearray(SIZE)
        protocol._ssl_buffer_view = memoryview(protocol._ssl_buffer)
