"""Laws of a whole operator with webhooks: how it starts, says how it is, and ends."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.webhooks.sites import (
    GROUP,
    OldSite,
    Page,
    Site,
    client_of,
    counts,
    down,
    local,
    manager_of,
    operator,
    page,
    ready,
    replica,
    served,
    serving,
    up,
)
from trimtab import Context, Operator, Resource, Scope
from trimtab.api.kinds.core import Secret
from trimtab.client.errors import ServerError
from trimtab.runtime.webhooks.configurations import CustomResourceDefinition
from trimtab.testing import Cluster, eventually
from trimtab.testing.operating import running

LINGER = 1.5
"""Seconds in which a busy machine gets one call through."""


class Missing(Resource, group=GROUP, version="v1", storage=False):
    """A kind whose CRD nobody installs."""


class Missed(Resource, group=GROUP, version="v2", kind="Missing"):
    """Its other version."""


def never(obj: Any) -> Any:
    raise AssertionError("nobody asks")


async def test_an_operator_converts_what_its_own_caches_read(
    cluster: Cluster, namespace: str
) -> None:
    first = operator()
    first.converts(OldSite, Site)(up).back(down)
    seen: dict[str, str] = {}
    again = Operator("pages", leader=False)
    again.converts(OldSite, Site)(up).back(down)

    @again.reconciles(OldSite, scope=Scope(namespaces=(namespace,)))
    async def sites(site: OldSite, ctx: Context) -> None:
        seen[site.metadata.name] = site.spec.host

    async with served(first, cluster, namespace) as client:
        async with replica(first, cluster, client, local()) as manager:
            await eventually(manager.ready.is_set)
            spec = {"address": "h:1"}
            head = {"apiVersion": Site.apiVersion, "kind": "Site"}
            await client.create({**head, "metadata": {"name": "a"}, "spec": spec})
        # Nobody converts any more; what is stored as v2 cannot be read as v1.
        with pytest.raises(ServerError, match="conversion webhook"):
            await client.get(OldSite, "a", deadline=3)
        async with replica(again, cluster, client, local()) as manager:
            assert manager.health.ready().healthy is False
            await eventually(lambda: seen == {"a": "h"})
            report = manager.health.ready(verbose=True)
            assert (report.healthy, "[+]webhooks ok" in report.text) == (True, True)
            # A Service sends conversions to who is ready, and caches wait for those.
            assert "caches" not in report.text
            await client.delete(Site, "a")


async def test_trouble_with_what_comes_next_takes_nobody_out_of_service(
    cluster: Cluster, namespace: str
) -> None:
    app = operator()
    app.converts(OldSite, Site)(up).back(down)
    async with serving(app, cluster, namespace) as (client, manager):
        assert b"trimtab_webhook_trouble 0.0" in manager.metrics.render()[1]
        spoiled = {"data": {"about.json": None}, "metadata": {"labels": None}}
        await client.patch(Secret, "pages-webhooks", spoiled)
        told = b"trimtab_webhook_trouble 1.0"
        await eventually(lambda: told in manager.metrics.render()[1])
        assert manager.health.ready().healthy
        await counts(client)


async def test_who_waits_for_a_definition_says_so(
    cluster: Cluster, namespace: str
) -> None:
    app = operator()
    app.converts(Missing, Missed)(never).back(never)
    async with served(app, cluster, namespace) as client:
        async with replica(app, cluster, client, local()) as manager:
            said = f"The CustomResourceDefinition missings.{GROUP} is not installed"
            await eventually(lambda: said in manager.health.ready().text)
            assert not manager.ready.is_set()


async def test_a_conversion_that_somebody_unsets_is_set_again(
    cluster: Cluster, namespace: str
) -> None:
    app = operator()
    app.converts(OldSite, Site)(up).back(down)
    async with serving(app, cluster, namespace) as (client, _):
        name = f"sites.{GROUP}"
        unset = {"spec": {"conversion": {"strategy": "None", "webhook": None}}}
        await client.patch(CustomResourceDefinition, name, unset)

        async def is_set() -> bool:
            found = await client.get(CustomResourceDefinition, name)
            webhook = found.spec.conversion.webhook
            return webhook is not None and bool(webhook.clientConfig.caBundle)

        await eventually(is_set)


async def test_who_is_told_to_stop_still_answers_for_a_while(
    cluster: Cluster, namespace: str
) -> None:
    app = operator()
    async with served(app, cluster, namespace) as client:
        async with replica(app, cluster, client, local(linger=LINGER)) as manager:
            await ready(manager, client)
            began = asyncio.get_running_loop().time()
            manager.stop()
            await eventually(lambda: "about to end" in manager.health.ready().text)
            made = await client.create(page("a"), dry_run=True)
            assert made.metadata.annotations["asked"] == "CREATE"
        assert asyncio.get_running_loop().time() - began >= LINGER
        assert manager.webhooks is not None
        assert manager.webhooks.server.connections == {}
        with pytest.raises(ServerError, match="failed calling webhook"):
            await client.create(page("a"), dry_run=True)


async def test_replicas_that_start_at_once_share_one_secret(
    cluster: Cluster, namespace: str
) -> None:
    app = operator()
    async with served(app, cluster, namespace) as client:
        async with (
            client_of(cluster, namespace) as beside,
            replica(app, cluster, client, local()) as one,
            replica(app, cluster, beside, local()) as other,
        ):
            both = (one, other)
            await eventually(lambda: all(each.ready.is_set() for each in both))
            kept = await client.get(Secret, "pages-webhooks")
            for each in both:
                assert each.webhooks is not None
                assert kept.data["tls.crt"] in each.webhooks.server._loaded


async def test_a_test_of_an_operator_needs_one_line(
    cluster: Cluster, namespace: str
) -> None:
    app = operator()

    @app.reconciles(Page, scope=Scope(everything=True))
    async def pages(site: Page, ctx: Context) -> None: ...

    async with running(app, cluster, namespace) as run:

        async def marked() -> bool:
            made = await run.client.create(page("probe"), dry_run=True)
            return "asked" in made.metadata.annotations

        await eventually(marked)


async def test_no_log_and_no_metric_holds_a_key(
    cluster: Cluster, namespace: str, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    caplog.set_level("DEBUG")
    async with serving(operator(), cluster, namespace) as (client, manager):
        kept = await client.get(Secret, "pages-webhooks")
        key = re.sub(r"\s|-----[^-]+-----", "", kept.data["tls.key"].decode())
        told = caplog.text + manager.metrics.render()[1].decode() + repr(vars(manager))
        assert key[:40] not in re.sub(r"\s", "", told)


async def test_a_bad_folder_of_certificates_is_one_sentence(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    async with client_of(cluster, namespace) as client:
        options = local(certificates=str(tmp_path))
        manager = manager_of(operator(), cluster, client, options)
        with pytest.raises(ExceptionGroup) as failed:
            await manager.run()
    error: BaseException = failed.value
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    assert "It needs tls.crt and tls.key." in str(error)
