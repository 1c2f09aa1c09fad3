"""Ports for servers that are started later, by whoever is told the number."""

from __future__ import annotations

import socket
from random import SystemRandom

# Below what a system hands out by itself: nobody else's connection and no server that
# takes any port gets one of these before its own server does.
RANGE = range(20_000, 32_000)


def unused_port() -> int:
    """A port of the loopback that nobody has, and that nobody is given by chance."""
    for port in SystemRandom().sample(RANGE, 100):
        with socket.socket() as holder:
            holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                holder.bind(("", port))
            except OSError:
                continue
            return port
    raise AssertionError("a hundred ports are all taken")
