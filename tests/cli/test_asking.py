"""Laws of the commands that ask a running operator: why, top and log."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.cli.commands import printed, refused
from tests.runtime.operating import (
    Shop,
    client_in,
    here,
    manager_of,
    options,
    running,
    shop,
)
from trimtab import Client, Context, Operator, Result, Status
from trimtab.cli.top import Samples, screen
from trimtab.cli.why import explained, written
from trimtab.runtime.manager import Manager
from trimtab.runtime.several import Several
from trimtab.testing import Cluster, eventually

NOBODY = "--url=http://127.0.0.1:9"


@pytest.fixture
async def client(cluster: Cluster, namespace: str) -> AsyncIterator[Client]:
    async with client_in(cluster, namespace) as client:
        yield client


@pytest.fixture
def log_level() -> Iterator[None]:
    before = logging.getLogger().level
    yield
    logging.getLogger().setLevel(before)


def selling(namespace: str, name: str = "shops") -> Operator:
    """Shops sell; one of them always fails."""
    app = Operator(name, leader=False, cache_budget="8MiB")

    @app.reconciles(Shop, scope=here(namespace))
    async def sell(site: Shop, ctx: Context) -> Result:
        if site.metadata.name == "broken":
            raise RuntimeError("the till is empty")
        status: Status = type(site.status)(selling=site.spec.goods)
        return ctx.done(status=status, after=60.0)

    return app


@asynccontextmanager
async def serving(
    app: Operator, cluster: Cluster, client: Client
) -> AsyncIterator[tuple[Manager, str]]:
    async with running(app, cluster, client) as manager:
        assert manager.endpoints is not None
        yield manager, f"--url=http://127.0.0.1:{manager.endpoints.port}"


async def say(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What a command prints, while the operator goes on in this loop."""
    return await asyncio.to_thread(printed, capsys, *arguments)


async def test_why_tells_causes_what_is_next_errors_and_who_wrote(
    cluster: Cluster,
    client: Client,
    namespace: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    await client.create(shop("corner"))
    await client.create(shop("broken"))
    async with serving(selling(namespace), cluster, client) as (manager, url):
        history = manager.controllers[0].history
        await eventually(lambda: history.of((namespace, "corner")))
        await eventually(lambda: history.failures((namespace, "broken")))
        flags = (url, f"-n={namespace}", f"--kubeconfig={cluster.kubeconfig}")
        said = await say(capsys, "why", "shops", "corner", *flags)
        assert f"Shop {namespace}/corner, by the controller sell:" in said
        assert "; requeue in " in said
        assert "because of: timer" in said
        assert "errors   none" in said
        assert "shops.sell (status): status.selling" in said
        said = await say(capsys, "why", "Shop", "broken", *flags)
        assert "the till is empty" in said
        assert "because of: first list; retry" in said
        said = await say(capsys, "why", "shop", "nothing", *flags)
        assert "It is not there, or outside of the controller's scope." in said
        assert "Who wrote it cannot be told" in said


async def test_top_tells_queues_latencies_caches_and_writes(
    cluster: Cluster,
    client: Client,
    namespace: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    await client.create(shop("corner"))
    async with serving(selling(namespace), cluster, client) as (manager, url):
        history = manager.controllers[0].history
        await eventually(lambda: history.of((namespace, "corner")))
        said = await say(capsys, "top", url, "--once", "--every=0.1")
    assert "CONTROLLER" in said
    (line,) = [each for each in said.splitlines() if each.startswith("sell")]
    assert line.split()[1:3] == ["1", "0.0s"]
    assert " of 8.0 MiB" in said
    assert "shops.v1.runtime.example.com        1 objects" in said
    assert "leads without election" in said


async def test_the_log_level_is_set_while_it_runs(
    cluster: Cluster,
    client: Client,
    namespace: str,
    capsys: pytest.CaptureFixture[str],
    log_level: None,
) -> None:
    async with serving(selling(namespace), cluster, client) as (_, url):
        assert await say(capsys, "log", "debug", url) == "debug\n"
        assert logging.getLogger().level == logging.DEBUG
        assert await say(capsys, "log", url) == "debug\n"


async def test_several_operators_run_behind_one_set_of_endpoints(
    cluster: Cluster,
    client: Client,
    namespace: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    await client.create(shop("corner"))
    apps = [selling(namespace, "shops"), selling(namespace, "rivals")]
    managers = [
        manager_of(app, cluster, client, options=options(namespace, port=None))
        for app in apps
    ]
    several = Several(managers, host="127.0.0.1", port=0)
    async with asyncio.TaskGroup() as group:
        group.create_task(several.run())
        await eventually(lambda: several.health.ready().healthy)
        told = several.why("shop", namespace, "corner")
        assert [each["operator"] for each in told["controllers"]] == ["shops", "rivals"]
        text = several.render()[1].decode()
        assert 'trimtab_queue_depth{controller="sell",operator="rivals"}' in text
        assert text.count("# TYPE trimtab_queue_depth gauge") == 1
        assert text.count("\nprocess_resident_memory_bytes ") == 1
        several.stop("the test")


@pytest.mark.parametrize(
    "command", [("why", "Shop", "x"), ("top",), ("log",), ("log", "debug")]
)
def test_where_nobody_answers_one_sentence_says_so(
    command: tuple[str, ...], capsys: pytest.CaptureFixture[str], tmp_path: Any
) -> None:
    said = refused(capsys, *command, NOBODY)
    assert "No operator answers at http://127.0.0.1:9" in said


@pytest.mark.parametrize(
    "arguments",
    [
        ("why", "Shop"),
        ("top", "--every=never"),
        ("top", "--url=ftp://x"),
        ("log", "loud"),
        ("log", "--url=http://x:99999"),
    ],
)
def test_arguments_that_make_no_sense_are_one_sentence(
    arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    refused(capsys, *arguments)


def test_what_is_told_is_put_into_sentences() -> None:
    told = {
        "object": "Shop a/b",
        "controller": "sell",
        "cached": True,
        "paused": True,
        "leads": False,
        "last": None,
        "waiting": {
            "working": True,
            "dueInSeconds": None,
            "causes": [],
            "failures": 2,
            "held": True,
        },
        "errors": None,
    }
    text = "\n".join(explained(told))
    for said in ("is paused", "does not lead", "being reconciled now", "put off"):
        assert said in text


def test_fields_are_told_with_their_writers() -> None:
    entry = {
        "manager": "kubectl",
        "time": "2026-01-01T00:00:00Z",
        "fieldsV1": {"f:spec": {"f:goods": {}, "f:deep": {"f:er": {"f:most": {}}}}},
    }
    lines = list(written({"metadata": {"managedFields": [entry]}}))
    assert lines[1] == "  2026-01-01T00:00:00Z  kubectl: spec.deep.er, spec.goods"


def test_rates_are_differences_over_time() -> None:
    text = 'trimtab_writes_total{{controller="a",what="apply"}} {}\n'
    before, now = Samples(text.format(10)), Samples(text.format(30))
    (line,) = [
        line for line in screen(before, now, seconds=2.0) if line.startswith("a ")
    ]
    assert line.split()[-1] == "10.0"
