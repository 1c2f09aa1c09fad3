"""What tests of webhooks share: a kind in two versions, and operators that run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from random import Random
from typing import Any

from msgspec.structs import replace

from trimtab import Client, Metadata, Operator, Resource, Spec, Status, load
from trimtab.runtime.manager import Manager, ManagerOptions
from trimtab.runtime.webhooks import WebhookOptions
from trimtab.testing import Cluster, eventually
from trimtab.testing.operating import forget, install

GROUP = "webhooks.example.com"


class PageSpec(Spec):
    """What a page shows."""

    image: str = ""
    replicas: int = 1
    labels: dict[str, str] = {}


class Page(Resource, group=GROUP, version="v1"):
    """A kind of one version."""

    spec: PageSpec = PageSpec()


class WholePageSpec(PageSpec):
    """The same, with a field that the operator's class does not have."""

    note: str = ""


class WholePage(Resource, group=GROUP, version="v1", kind="Page"):
    """What the server knows of the kind."""

    spec: WholePageSpec = WholePageSpec()


class OldSiteSpec(Spec):
    """A host and a port, and something that the new version has no place for."""

    host: str = ""
    port: str = ""
    note: str = ""


class SiteStatus(Status):
    """What is so."""

    ready: int = 0


class OldSite(Resource, group=GROUP, version="v1", kind="Site", storage=False):
    """The kind as it was."""

    spec: OldSiteSpec = OldSiteSpec()
    status: SiteStatus = SiteStatus()


class SiteSpec(Spec):
    """Both in one, and something that the old version has no place for."""

    address: str = ""
    color: str = ""


class Site(Resource, group=GROUP, version="v2"):
    """The kind as it is."""

    spec: SiteSpec = SiteSpec()
    status: SiteStatus = SiteStatus()


def up(old: OldSite) -> Site:
    address = f"{old.spec.host}:{old.spec.port}" if old.spec.host else ""
    return Site(spec=SiteSpec(address=address), status=old.status)


def down(new: Site) -> OldSite:
    host, _, port = new.spec.address.partition(":")
    return OldSite(spec=OldSiteSpec(host=host, port=port), status=new.status)


def page(name: str, **spec: Any) -> WholePage:
    return WholePage(metadata=Metadata(name=name), spec=WholePageSpec(**spec))


def local(**others: Any) -> WebhookOptions:
    """Webhooks at a port of this machine."""
    return WebhookOptions(**{"url": "https://127.0.0.1:0", "port": 0, **others})


def client_of(cluster: Cluster, namespace: str) -> Client:
    return Client(load(kubeconfig=cluster.kubeconfig, namespace=namespace))


def manager_of(
    app: Operator, cluster: Cluster, client: Client, options: WebhookOptions
) -> Manager:
    return Manager(
        app,
        client,
        connect=lambda: client_of(cluster, client.config.namespace),
        random=Random(1),
        now=lambda: datetime.now(UTC),
        options=ManagerOptions(port=None, webhooks=options),
    )


@asynccontextmanager
async def replica(
    app: Operator, cluster: Cluster, client: Client, options: WebhookOptions
) -> AsyncIterator[Manager]:
    """One replica of an operator; the block begins before it is ready."""
    manager = manager_of(app, cluster, client, options)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(manager.run())
        try:
            yield manager
        finally:
            manager.stop()
            await asyncio.wait([task], timeout=6)


@asynccontextmanager
async def serving(
    app: Operator,
    cluster: Cluster,
    namespace: str,
    options: WebhookOptions | None = None,
) -> AsyncIterator[tuple[Client, Manager]]:
    """An operator with webhooks for one namespace, while the block runs."""
    async with served(app, cluster, namespace) as client:
        async with replica(app, cluster, client, options or local()) as manager:
            await ready(manager, client)
            yield client, manager


@asynccontextmanager
async def served(
    app: Operator, cluster: Cluster, namespace: str
) -> AsyncIterator[Client]:
    """A client whose server knows the kinds, and after the block no webhooks."""
    app.leader = False
    app.within((namespace,))
    async with client_of(cluster, namespace) as client:
        await install(client, WholePage, OldSite, Site)
        await client.discovery.refresh()
        try:
            yield client
        finally:
            await forget(client, app)


async def ready(manager: Manager, client: Client) -> None:
    await eventually(manager.ready.is_set, describe="the operator is ready")
    await counts(client)


async def counts(client: Client) -> None:
    """Wait until the server asks the webhooks, which it learns of by a watch."""

    async def asked() -> bool:
        made = await client.create(page("probe"), dry_run=True)
        return "asked" in made.metadata.annotations

    await eventually(asked, describe="the webhooks count")


def operator(name: str = "pages") -> Operator:
    """One that marks every page that it was asked about."""
    app = Operator(name)

    @app.mutates(Page)
    def mark(site: Page, review: Any) -> Page:
        noted = {**site.metadata.annotations, "asked": review.operation}
        meta = replace(site.metadata, annotations=noted)
        return replace(site, metadata=meta)

    return app
