"""Whether nodes are alive: each one's beats, heard on one clock."""

from __future__ import annotations

import asyncio

from trimtab.operators.vmafx.kinds import VmafxNode

_KEPT = 10_000


class Pulses:
    """When each node's beat last changed, as this process saw it.

    Guarantees: a node is alive for ``patience`` seconds after its last beat was seen;
    who has just started takes everybody for alive for as long.
    """

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._heard: dict[tuple[str, str], tuple[str, int, float]] = {}

    def look(self, node: VmafxNode) -> tuple[bool, float | None]:
        """Whether it is alive, and in how many seconds to look again."""
        now = asyncio.get_running_loop().time()
        session, beat, heard = self._heard.pop(node.key, ("", -1, now))
        if (session, beat) != (node.status.session, node.status.beat):
            heard = now
        self._heard[node.key] = (node.status.session, node.status.beat, heard)
        if len(self._heard) > _KEPT:
            del self._heard[next(iter(self._heard))]
        left = heard + self._patience - now
        alive = left > 0 and bool(node.status.session)
        return alive, left if alive else None
