"""Metered: the pool's calls and verbs, timed on their way through."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator
from contextlib import contextmanager

from trimtab.cache import Key
from trimtab.client import TrimtabError
from trimtab.pool.calls import Target, WorkerCalls
from trimtab.pool.gateway.api import Acquirer, code_of
from trimtab.pool.kinds import Activation
from trimtab.pool.metrics import PoolMetrics
from trimtab.pool.requests import AcquireRequest, Grant


class MeteredCalls:
    """Calls to workers, each with its time."""

    def __init__(self, calls: WorkerCalls, metrics: PoolMetrics) -> None:
        self._calls = calls
        self._metrics = metrics

    async def begin(
        self, target: Target, *, epoch: int, checkout: str, tenant: str
    ) -> None:
        with self._metrics.timed_call("begin"):
            await self._calls.begin(
                target, epoch=epoch, checkout=checkout, tenant=tenant
            )

    async def clean(self, target: Target, *, epoch: int, checkout: str) -> None:
        with self._metrics.timed_call("clean"):
            await self._calls.clean(target, epoch=epoch, checkout=checkout)

    async def healthy(self, target: Target) -> None:
        with self._metrics.timed_call("healthy"):
            await self._calls.healthy(target)

    async def activate(
        self, target: Target, *, epoch: int, tenant: str, activation: Activation
    ) -> None:
        with self._metrics.timed_call("activate"):
            await self._calls.activate(
                target, epoch=epoch, tenant=tenant, activation=activation
            )


class MeteredAcquirer:
    """Acquires and releases, each with its time, where it came from and how it ended.

    The source of what was not handed out is ``none``.
    """

    def __init__(self, acquirer: Acquirer, metrics: PoolMetrics) -> None:
        self._acquirer = acquirer
        self._metrics = metrics

    async def acquire(self, request: AcquireRequest) -> Grant:
        with self._timed("acquire_seconds", "none") as labels:
            grant = await self._acquirer.acquire(request)
            labels[0] = grant.source.value
            return grant

    async def release(
        self,
        checkout: str,
        *,
        holder: str,
        clean: bool = True,
        worker: Key | None = None,
    ) -> None:
        with self._timed("release_seconds"):
            await self._acquirer.release(
                checkout, holder=holder, clean=clean, worker=worker
            )

    @contextmanager
    def _timed(self, metric: str, *given: str) -> Iterator[list[str]]:
        """Observe a time, with these labels and how it ended."""
        labels, code = list(given), "cancelled"
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            yield labels
            code = "ok"
        except TrimtabError as error:
            code = code_of(error).value
            raise
        except Exception:
            code = "internal"
            raise
        finally:
            seconds = loop.time() - began
            self._metrics.observe(metric, (*labels, code), seconds)

    async def renew(
        self, holder: str, checkouts: Collection[str] | None = None
    ) -> None:
        await self._acquirer.renew(holder, checkouts)

    async def drain(self, worker: Key) -> None:
        await self._acquirer.drain(worker)
