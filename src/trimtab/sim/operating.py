"""Replicas of an operator: real managers of unchanged code, whose handlers are seen."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from copy import copy
from datetime import UTC, datetime
from random import Random
from typing import Any, Final

import msgspec

from trimtab.client import Client
from trimtab.runtime.definitions import Definition, Handler, is_asynchronous
from trimtab.runtime.manager import Manager, ManagerOptions
from trimtab.runtime.operator import Operator
from trimtab.runtime.webhooks.declarations import Declarations
from trimtab.sim.hosts import Host
from trimtab.sim.plan import Fault
from trimtab.sim.replica import Replica, Surroundings
from trimtab.sim.threads import SimThreads
from trimtab.sim.transport import HANDLING

TAKES_PART: Final = ("contending", "leading")
"""Where a replica stands that takes part in an election."""


class OperatorReplica(Replica):
    """One of the processes of an operator."""

    def __init__(
        self,
        operator: Operator,
        number: int,
        *,
        around: Surroundings,
        faults: Iterable[Fault],
    ) -> None:
        name = f"{operator.name}-{number}"
        super().__init__(name, number, around=around, faults=faults)
        self.manager: Manager | None = None
        self._operator = self._observed(operator)
        self._busy: set[tuple[str, Any]] = set()

    def start(self) -> None:
        if not self.running:
            self._busy.clear()
        super().start()

    async def _work(self, client: Client, host: Host) -> None:
        self.manager = Manager(
            self._operator,
            client,
            connect=self._client,
            random=Random(host.random.getrandbits(64)),
            now=lambda: datetime.fromtimestamp(host.wall(self._loop.time()), UTC),
            options=ManagerOptions(port=None),
            thread=False,
            threads=SimThreads,
        )
        await self.manager.run()

    def stop(self) -> None:
        if self.manager is not None and self.running:
            self.manager.stop("a signal")

    @property
    def idle(self) -> bool:
        """Whether it is well, and nothing waits in its queues, not even for later."""
        manager = self.manager
        if not self.running or manager is None or not manager.health.ready().healthy:
            return False
        led = manager.leadership
        if led is not None and led.statistics().state.value not in TAKES_PART:
            return False
        queues = [each.queue for each in manager.controllers if each.queue is not None]
        held = [each.statistics() for each in queues]
        return not any(
            each.ready or each.delayed or each.working or each.failing for each in held
        )

    def _is_known_cut_off(self, host: Host | None) -> None:
        """A replica that has been cut off for long says that it is not ready."""
        cut = host is self.host and self._loop.time() < self.cut_until
        asleep = self.host is not None and self._loop.is_paused(self.host)
        if not cut or asleep or not self.running or self.manager is None:
            return
        if self.manager.health.ready().healthy:
            self._broken(
                "a replica that is cut off says so",
                f"{self.name} has not reached the server for long, and is ready.",
            )

    # What handlers do

    def _observed(self, operator: Operator) -> Operator:
        """The operator, each of whose handlers is seen to begin and to end."""
        seen = copy(operator)
        seen.webhooks = Declarations()  # they need a network
        controllers = tuple(self._seen(each) for each in operator.controllers())
        seen.controllers = lambda: controllers  # type: ignore[method-assign]
        return seen

    def _seen(self, definition: Definition) -> Definition:
        cleanup = definition.cleanup
        return msgspec.structs.replace(
            definition,
            handler=self._wrapped(definition.name, definition.handler),
            cleanup=cleanup and self._wrapped(definition.name, cleanup),
        )

    def _wrapped(self, name: str, handler: Handler) -> Handler:
        if not is_asynchronous(handler):

            @functools.wraps(handler)
            def plain(obj: Any, ctx: Any) -> Any:
                with _Turn(self, name, obj):
                    return handler(obj, ctx)

            return plain

        @functools.wraps(handler)
        async def awaited(obj: Any, ctx: Any) -> Any:
            with _Turn(self, name, obj):
                return await handler(obj, ctx)  # type: ignore[misc]

        return awaited

    def began(self, name: str, key: Any) -> None:
        if (name, key) in self._busy:
            self._broken(
                "an object is reconciled by one handler at a time",
                f"{self.name}: {name} was called for {'/'.join(key)} while it ran.",
            )
        self._busy.add((name, key))

    def ended(self, name: str, key: Any) -> None:
        self._busy.discard((name, key))


class _Turn:
    """One call of a handler."""

    __slots__ = ("_key", "_name", "_replica", "_token")

    def __init__(self, replica: OperatorReplica, name: str, obj: Any) -> None:
        self._replica = replica
        self._name = name
        self._key = obj.key

    def __enter__(self) -> None:
        self._replica.began(self._name, self._key)
        self._token = HANDLING.set(f"{self._name} {self._key[1]}")

    def __exit__(self, *error: object) -> None:
        HANDLING.reset(self._token)
        self._replica.ended(self._name, self._key)
