"""Laws of admission, told by the server that asks the webhooks."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from msgspec.structs import replace

from tests.runtime.webhooks.sites import (
    Page,
    client_of,
    counts,
    local,
    operator,
    page,
    ready,
    replica,
    serving,
)
from trimtab import Refused, Review
from trimtab.api.objects import wire
from trimtab.client.errors import Forbidden, Invalid, NotFound, ServerError
from trimtab.kinds import ConfigMap
from trimtab.runtime.webhooks import routing
from trimtab.runtime.webhooks.configurations import (
    MutatingWebhookConfiguration as Configuration,
)
from trimtab.testing import Cluster, eventually
from trimtab.testing.errors import KubectlFailed

MANIFEST = """
apiVersion: webhooks.example.com/v1
kind: Page
metadata:
  name: shop
spec:
  replicas: 40
"""


async def test_a_refusal_is_what_the_user_reads(
    cluster: Cluster, namespace: str
) -> None:
    app = operator()

    @app.validates(Page)
    async def check(site: Page, review: Review[Page]) -> None:
        if not site.spec.image:
            review.warn("spec.image: there is none so far.")
        if site.spec.replicas > 20:
            raise Refused("spec.replicas: 40 are too many; 20 at most.")
        if site.spec.replicas < 0:
            raise Refused("spec.replicas: fewer than none.", status=422)

    async with serving(app, cluster, namespace) as (client, _):
        await client.create(page("a", replicas=3))
        said = "denied the request: spec.replicas: 40 are too many; 20 at most.$"
        with pytest.raises(Forbidden, match=said):
            await client.create(page("b", replicas=40))
        with pytest.raises(Invalid, match="fewer than none"):
            await client.create(page("b", replicas=-1))
        with pytest.raises(NotFound):
            await client.get(Page, "b")
        with pytest.raises(KubectlFailed) as failed:
            await cluster.kubectl("-n", namespace, "apply", "-f-", stdin=MANIFEST)
        assert failed.value.stderr == (
            "Warning: spec.image: there is none so far.\n"
            'Error from server (Forbidden): error when creating "STDIN": admission '
            'webhook "check.pages.webhooks.example.com" denied the request: '
            "spec.replicas: 40 are too many; 20 at most."
        )


async def test_a_change_touches_nothing_else(cluster: Cluster, namespace: str) -> None:
    app = operator()

    @app.mutates(Page, name="filled")
    def fill(site: Page, review: Review[Page]) -> Page | None:
        if site.spec.image:
            return None
        labels = {**site.spec.labels, "by": review.user}
        return replace(site, spec=replace(site.spec, image="busybox", labels=labels))

    async with serving(app, cluster, namespace) as (client, _):
        made = await client.create(page("a", note="unknown to the operator"))
        assert made.spec.note == "unknown to the operator"
        assert (made.spec.image, made.spec.replicas) == ("busybox", 1)
        assert set(made.spec.labels) == {"by"}
        kept = await client.create(page("b", image="mine", note="n"))
        assert (kept.spec.image, kept.spec.labels) == ("mine", {})


async def test_a_review_says_who_asks_for_what(
    cluster: Cluster, namespace: str
) -> None:
    app, seen = operator(), list[tuple[Any, ...]]()

    @app.validates(Page, on=("CREATE", "UPDATE", "DELETE"))
    def look(site: Page, review: Review[Page]) -> None:
        old = review.old.spec.replicas if review.old else None
        told = (review.operation, site.spec.replicas, old, review.dry_run)
        seen.append((*told, review.name, bool(review.user), bool(review.groups)))

    async with serving(app, cluster, namespace) as (client, _):
        seen.clear()
        await client.create(page("a", replicas=1))
        await client.patch(Page, "a", {"spec": {"replicas": 2}})
        await client.patch(Page, "a", {"spec": {"replicas": 3}}, dry_run=True)
        await client.delete(Page, "a")
        who = ("a", True, True)
        assert seen == [
            ("CREATE", 1, None, False, *who),
            ("UPDATE", 2, 1, False, *who),
            ("UPDATE", 3, 2, True, *who),
            ("DELETE", 2, None, False, *who),
        ]


async def test_what_fails_or_hangs_is_what_the_failure_policy_says(
    cluster: Cluster,
    namespace: str,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # What is left of the time is for our answer to come before the server gives up.
    monkeypatch.setattr(routing, "SHARE", 0.15)
    app = operator()

    @app.validates(Page, labels="way=fail")
    def fails(site: Page, review: Review[Page]) -> None:
        raise KeyError("a token that nobody must read")

    @app.validates(Page, labels="way=hang", timeout=4)
    async def hangs(site: Page, review: Review[Page]) -> None:
        await asyncio.Event().wait()

    @app.validates(Page, labels="way=block", timeout=4)
    def blocks(site: Page, review: Review[Page]) -> None:
        time.sleep(1.2)

    @app.validates(Page, labels="pass", failure_policy="Ignore")
    def ignored(site: Page, review: Review[Page]) -> None:
        raise KeyError("nobody minds")

    def labelled(name: str, **labels: str) -> Any:
        made = page(name)
        return replace(made, metadata=replace(made.metadata, labels=labels))

    async with serving(app, cluster, namespace) as (client, manager):
        with pytest.raises(ServerError, match=r"fails.* failed with KeyError") as told:
            await client.create(labelled("a", way="fail"))
        assert "token" not in str(told.value)
        assert "a token that nobody must read" in caplog.text
        late = r"did not answer within 0\.6 s"
        tries = [client.create(labelled("b", way=way)) for way in ("hang", "block")]
        for error in await asyncio.gather(*tries, return_exceptions=True):
            with pytest.raises(ServerError, match=late):
                raise error
        made = await client.create(labelled("c", **{"pass": "yes"}))
        assert made.metadata.name == "c"
        assert manager.webhooks is not None
        outcomes = {key[1] for key in manager.webhooks.router.outcomes}
        assert outcomes >= {"error", "timeout", "changed"}
        assert b'outcome="timeout"' in manager.metrics.render()[1]


async def test_what_is_being_deleted_is_not_held_back(
    cluster: Cluster, namespace: str
) -> None:
    app, strict = operator(), asyncio.Event()

    @app.validates(Page)
    async def check(site: Page, review: Review[Page]) -> None:
        if strict.is_set():
            raise Refused("No page is good any more.")

    async with serving(app, cluster, namespace) as (client, _):
        made = page("a")
        meta = replace(made.metadata, finalizers=["example.com/shop"])
        await client.create(replace(made, metadata=meta))
        strict.set()
        await client.delete(Page, "a")
        await client.patch(Page, "a", {"metadata": {"finalizers": None}})
        with pytest.raises(NotFound):
            await client.get(Page, "a")


async def test_built_in_kinds_have_webhooks_too_and_lose_no_field(
    cluster: Cluster, namespace: str
) -> None:
    app = operator()

    @app.mutates(ConfigMap, labels="marked=yes")
    def mark(found: ConfigMap, review: Review[ConfigMap]) -> ConfigMap:
        noted = {**found.metadata.annotations, "example.com/b": "1"}
        return replace(found, metadata=replace(found.metadata, annotations=noted))

    async with serving(app, cluster, namespace) as (client, _):
        body = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "a", "labels": {"marked": "yes"}},
            "data": {"k": "v"},
            "binaryData": {"b": "AAE="},
            "immutable": False,
        }
        made = await client.create(body)
        assert made["metadata"]["annotations"] == {"example.com/b": "1"}
        for key in ("data", "binaryData", "immutable"):
            assert made[key] == body[key]


async def test_a_configuration_that_somebody_spoils_is_mended(
    cluster: Cluster, namespace: str
) -> None:
    app = operator()
    async with serving(app, cluster, namespace) as (client, _):
        name = f"pages-{namespace}"
        good = await client.get(Configuration, name)
        path = "/webhooks/0/clientConfig/caBundle"
        await client.patch(
            Configuration, name, [{"op": "remove", "path": path}], how="json"
        )

        async def mended() -> bool:
            found = await client.get(Configuration, name)
            return bool(wire(found)["webhooks"] == wire(good)["webhooks"])

        await eventually(mended, describe="the authorities are trusted again")


async def test_a_configuration_that_is_deleted_stays_so_until_the_next_start(
    cluster: Cluster, namespace: str
) -> None:
    """As helm does first when a release goes, while the operator still runs."""
    app = operator()
    name = f"pages-{namespace}"
    async with serving(app, cluster, namespace) as (client, manager):
        await client.delete(Configuration, name)
        told = b"trimtab_webhook_trouble 1.0"
        await eventually(lambda: told in manager.metrics.render()[1])
        with pytest.raises(NotFound):
            await client.get(Configuration, name)
        assert manager.health.ready().healthy
        # Whoever makes it again, as a release does, has it filled in.
        head = {"apiVersion": Configuration.apiVersion, "kind": Configuration.kind}
        await client.create({**head, "metadata": {"name": name}})
        await counts(client)
        await client.delete(Configuration, name)
        await eventually(lambda: told in manager.metrics.render()[1])
        async with client_of(cluster, namespace) as beside:
            async with replica(app, cluster, beside, local()) as next_start:
                await ready(next_start, client)
