"""The nodes that wait for work at a desk, and who of them is woken for a job."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence


class _Puller:
    """A node that waits, and what wakes it."""

    def __init__(self, backends: Sequence[str], tenant: str) -> None:
        self.backends = frozenset(backends)
        self.tenant = tenant
        self.woken = asyncio.Event()

    def fits(self, backend: str, tenant: str) -> bool:
        if self.tenant not in ("", tenant):
            return False
        return not backend or backend in self.backends


class Pullers:
    """Who waits, the longest first.

    Guarantees: one is woken for each job, and whoever was woken and broke off before it
    could ask leaves its place to all others.
    """

    def __init__(self) -> None:
        self._waiting: deque[_Puller] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    async def wait(
        self, backends: Sequence[str], *, tenant: str, seconds: float
    ) -> bool:
        """Wait to be woken, so many seconds at most; whether that happened."""
        puller = _Puller(backends, tenant)
        self._waiting.append(puller)
        try:
            async with asyncio.timeout(seconds):
                await puller.woken.wait()
        except TimeoutError:
            return puller.woken.is_set()
        except asyncio.CancelledError:
            if puller.woken.is_set():
                self.wake_all()
            raise
        finally:
            if puller in self._waiting:
                self._waiting.remove(puller)
        return True

    def wake(self, backend: str, *, tenant: str) -> None:
        """Wake the first that takes jobs of a tenant for this backend, if one does."""
        for puller in self._waiting:
            if puller.fits(backend, tenant):
                self._waiting.remove(puller)
                puller.woken.set()
                return

    def wake_all(self) -> None:
        """Wake everybody: each asks, and waits again if there is nothing for it."""
        while self._waiting:
            self._waiting.popleft().woken.set()
