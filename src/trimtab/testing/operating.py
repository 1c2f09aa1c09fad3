"""Running: an operator in a test, on the test's own cluster, in one line.

``async with running(app, cluster, namespace) as run:`` installs the CRDs, narrows the
operator to the namespace and runs it in this loop until the block ends.
"""

from __future__ import annotations

import asyncio
import copy
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from random import Random
from typing import TypeVar

from trimtab.api.conditions import Conditions
from trimtab.api.crd import crd
from trimtab.api.resource import Resource
from trimtab.client import Client, NotFound, load
from trimtab.runtime.lease import LeaseOptions
from trimtab.runtime.manager import Manager, ManagerOptions
from trimtab.runtime.operator import Operator
from trimtab.runtime.webhooks.options import WebhookOptions
from trimtab.testing.cluster import Cluster
from trimtab.testing.waiting import eventually

R = TypeVar("R", bound=Resource)

HERE = WebhookOptions(url="https://127.0.0.1:0", port=0)
"""Webhooks in this very process; a cluster of this machine reaches them."""
WITHIN = 20.0
STOPS_WITHIN = 6.0


class Running:
    """An operator that runs, and a client to look at what it does."""

    def __init__(self, client: Client, manager: Manager) -> None:
        self.client = client
        """The administrator's, whose namespace is the test's."""
        self.manager = manager

    async def until(
        self,
        kind: type[R],
        name: str,
        holds: Callable[[R], object] = bool,
        *,
        within: float = WITHIN,
    ) -> R:
        """The object of a name, as soon as it is there and ``holds`` is true of it."""

        async def look() -> R | None:
            try:
                found = await self.client.get(kind, name)
            except NotFound:
                return None
            return found if holds(found) else None

        found = await eventually(
            look, within=within, describe=f"{kind.__name__} {name} is so"
        )
        assert found is not None
        return found

    async def condition(
        self, kind: type[R], name: str, type: str = "Ready", status: str = "True"
    ) -> R:
        """The object, as soon as it has a condition."""

        def has(obj: R) -> bool:
            held = getattr(getattr(obj, "status", None), "conditions", None)
            found = held.get(type) if isinstance(held, Conditions) else None
            return found is not None and found.status == status

        return await self.until(kind, name, has)

    async def gone(
        self, kind: type[Resource], name: str, *, within: float = WITHIN
    ) -> None:
        """Wait until there is no such object any more."""

        async def look() -> bool:
            try:
                await self.client.get(kind, name)
            except NotFound:
                return True
            return False

        await eventually(
            look, within=within, describe=f"{kind.__name__} {name} is gone"
        )


@asynccontextmanager
async def running(
    app: Operator, cluster: Cluster, namespace: str = "default", *, leader: bool = False
) -> AsyncIterator[Running]:
    """An operator, while the block runs.

    Flow: the CRDs of what it reconciles are installed. It is left to ``namespace``, so
    that tests do not see each other's objects, unless one of its kinds is in none. It
    elects a leader only if ``leader`` is True.

    Guarantees: the block begins when all caches are complete. When it has ended,
    nothing of the operator runs any more. ``app`` itself is not changed.

    Errors: whatever ends the operator early ends the block.
    """
    own = copy.copy(app)
    own.leader = leader and app.leader
    # An operator of a kind that is in no namespace sees all there are.
    with suppress(ValueError):
        own.within((namespace,))

    def connect() -> Client:
        return Client(load(kubeconfig=cluster.kubeconfig, namespace=namespace))

    async with connect() as client:
        await install(client, *own.kinds())
        manager = Manager(
            own,
            client,
            connect=connect,
            random=Random(),
            now=lambda: datetime.now(UTC),
            options=ManagerOptions(
                port=None, lease=_lease(own.name, namespace), webhooks=HERE
            ),
        )
        async with asyncio.TaskGroup() as group:
            task = group.create_task(manager.run())
            try:
                await eventually(
                    lambda: manager.ready.is_set() or task.done(), within=WITHIN
                )
                yield Running(client, manager)
            finally:
                manager.stop()
                async with asyncio.timeout(STOPS_WITHIN):
                    await asyncio.wait([task])
                if manager.webhooks is not None:
                    await forget(client, own)


def _lease(name: str, namespace: str) -> LeaseOptions:
    return LeaseOptions(
        name=name,
        namespace=namespace,
        identity=f"test-{secrets.token_hex(4)}",
        # A machine that stands still for a moment costs no test its leader.
        duration=15.0,
        renew_deadline=10.0,
        retry=0.3,
    )


async def forget(client: Client, app: Operator) -> None:
    """Take the webhooks of an operator down, so that nobody asks for it any more."""
    from trimtab.runtime.webhooks import configurations
    from trimtab.runtime.webhooks.declarations import definition_name

    name = configurations.configuration_name(app.name, client.config.namespace)
    for verb, kind in configurations.KINDS.items():
        if app.webhooks.of(verb):
            with suppress(NotFound):
                await client.delete(kind, name)
    plain = {"spec": {"conversion": {"strategy": "None", "webhook": None}}}
    for first, *_ in app.webhooks.converted():
        where = configurations.CustomResourceDefinition
        with suppress(NotFound):
            await client.patch(where, definition_name(first), plain)


async def install(client: Client, *kinds: type[Resource]) -> None:
    """Install the CRDs of some classes, and wait until they are served.

    Classes of one kind are versions of it.
    """
    custom = [kind for kind in kinds if kind.__definition__ is not None]
    for kind in custom:
        info = kind.__resource__
        versions = [each for each in custom if _kind(each) == (info.group, info.kind)]
        definition = crd(*versions)
        if len(versions) > 1:
            del definition["spec"]["conversion"]  # whoever converts them says so
        await client.apply(definition, manager="trimtab-testing", force=True)

        async def is_served(kind: type[Resource] = kind) -> bool:
            try:
                await client.list(kind).next_page()
            except NotFound:
                return False
            return True

        await eventually(
            is_served, within=WITHIN, describe=f"{kind.__name__} is served"
        )


def _kind(kind: type[Resource]) -> tuple[str, str]:
    return kind.__resource__.group, kind.__resource__.kind
