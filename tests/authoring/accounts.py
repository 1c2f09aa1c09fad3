"""Operators that run under a service account of their own, and what it is denied."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from random import Random
from typing import Any

import msgspec

from tests.runtime.operating import options
from trimtab.api.resource import Info
from trimtab.authoring.permissions import Rule, objects_of
from trimtab.client import Client, load
from trimtab.client.credentials import Static
from trimtab.runtime.manager import Manager
from trimtab.runtime.operator import Operator
from trimtab.testing import Cluster, eventually

FORBIDDEN = "403"


class Account:
    """A service account with some rules, and the clients that use it."""

    def __init__(self, cluster: Cluster, namespace: str, token: str) -> None:
        self._cluster = cluster
        self._namespace = namespace
        self._token = token
        self.clients: list[Client] = []

    def connect(self) -> Client:
        config = load(kubeconfig=self._cluster.kubeconfig, namespace=self._namespace)
        config = msgspec.structs.replace(
            config,
            credentials=Static({"Authorization": f"Bearer {self._token}"}),
            tls=msgspec.structs.replace(config.tls, certificate=None, key=None),
        )
        made = Client(config)
        self.clients.append(made)
        return made

    def denied(self) -> list[str]:
        """The verbs that the server refused."""
        return [
            verb
            for client in self.clients
            for (verb, outcome), count in client.statistics().requests.items()
            if outcome in (FORBIDDEN, "Forbidden") and count
        ]


@asynccontextmanager
async def account(
    cluster: Cluster, admin: Client, rules: Iterable[Rule], *, name: str
) -> AsyncIterator[Account]:
    """The account, once the server knows of every rule; gone at the end."""
    rules = list(rules)
    namespace = admin.config.namespace
    made = objects_of(rules, name=name, namespace=namespace)
    for each in made:
        await admin.apply(each, manager="tests", force=True)
    token = (await admin.token(name, namespace=namespace)).token
    granted = Account(cluster, namespace, token)
    try:
        await _settled(admin, rules, user=f"system:serviceaccount:{namespace}:{name}")
        yield granted
    finally:
        for client in granted.clients:
            await client.close()
        for each in reversed(made):
            await _delete(admin, each)


async def _delete(admin: Client, obj: dict[str, Any]) -> None:
    metadata = obj["metadata"]
    kind = await admin.discover(obj["apiVersion"], obj["kind"])
    await admin.delete(kind, metadata["name"], namespace=metadata.get("namespace"))


async def _settled(admin: Client, rules: list[Rule], *, user: str) -> None:
    """Wait until the server grants every rule: it learns of roles by a watch."""
    for rule in rules:
        resource, _, subresource = rule.resource.partition("/")
        kind = Info(group=rule.group, version="v1", kind="X", plural=resource)

        async def is_granted(
            rule: Rule = rule, kind: Info = kind, subresource: str = subresource
        ) -> bool:
            answer = await admin.may(
                user,
                rule.verbs[-1],
                kind,
                namespace=rule.place or None,
                name=rule.names[0] if rule.names else "",
                subresource=subresource,
            )
            return answer.allowed

        await eventually(is_granted, describe=f"{rule} is granted")


@asynccontextmanager
async def running_as(
    who: Account, app: Operator, namespace: str
) -> AsyncIterator[None]:
    """The operator under an account, while the block runs."""
    client = who.connect()
    manager = Manager(
        app,
        client,
        connect=who.connect,
        random=Random(1),
        now=lambda: datetime.now(UTC),
        options=options(namespace, name=app.name),
    )
    async with asyncio.TaskGroup() as group:
        task = group.create_task(manager.run())
        try:
            yield
        finally:
            manager.stop()
            async with asyncio.timeout(20):
                await asyncio.wait([task])


async def ended(who: Account, work: asyncio.Task[None]) -> None:
    """Wait until some work is done; it is pointless once something was denied."""
    while not work.done() and not who.denied():
        await asyncio.sleep(0.01)
    if work.done():
        work.result()
    else:
        work.cancel()
