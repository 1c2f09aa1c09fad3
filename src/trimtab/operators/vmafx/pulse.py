"""Whether nodes are alive: each one's beats, heard on one clock."""

from __future__ import annotations

import asyncio

from trimtab.operators.vmafx.kinds import VmafxNode

FORGOTTEN = 3600.0
_KEPT = 10_000


class Pulses:
    """When each node's beat last changed, as this process saw it.

    Guarantees: a node is alive for ``patience`` seconds after its last beat was seen;
    who has just started takes everybody for alive for as long. One that registered and
    was not heard of for ``memory`` seconds is to be forgotten; one that was made by
    hand, and never came, is not.
    """

    def __init__(self, patience: float, memory: float = FORGOTTEN) -> None:
        self._patience = patience
        self._memory = memory
        self._heard: dict[tuple[str, str], tuple[str, int, float]] = {}

    def look(self, node: VmafxNode) -> tuple[bool, float | None]:
        """Whether it is alive, and in how many seconds to look again: 0 is never."""
        now = asyncio.get_running_loop().time()
        session, beat, heard = self._heard.pop(node.key, ("", -1, now))
        if (session, beat) != (node.status.session, node.status.beat):
            heard = now
        self._heard[node.key] = (node.status.session, node.status.beat, heard)
        if len(self._heard) > _KEPT:
            del self._heard[next(iter(self._heard))]
        if not node.status.session:
            return False, None
        left = heard + self._patience - now
        if left > 0:
            return True, left
        return False, max(0.0, heard + self._memory - now)
