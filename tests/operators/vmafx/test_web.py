"""Laws of the gateway's HTTP: who is answered, with what, and what it counts."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import grpc
import msgspec
import pytest

from tests.operators.vmafx.platform import Platform, node, platform
from trimtab.api import Resource
from trimtab.client import NotFound
from trimtab.operators.vmafx import metrics, roles
from trimtab.operators.vmafx.direct import Scoring
from trimtab.operators.vmafx.guarding import Guard
from trimtab.operators.vmafx.metrics import GatewayMetrics
from trimtab.operators.vmafx.problems import BadInput, ToolFailed
from trimtab.operators.vmafx.roots import Roots
from trimtab.operators.vmafx.scores import Score
from trimtab.operators.vmafx.tenancy.registry import Registry
from trimtab.operators.vmafx.tools import Ffmpeg
from trimtab.operators.vmafx.web import LIMITS, Web
from trimtab.runtime.access import Unauthenticated
from trimtab.runtime.asks import Answer, Ask
from trimtab.runtime.serving import Server
from trimtab.testing import Cluster, eventually

SAMPLE = re.compile(r"^(\w+)(?:\{(.*)\})? ([0-9.e+-]+)$", re.MULTILINE)


class Tokens:
    """A judge who knows two tokens: one may score, the other may read."""

    async def allows(
        self, token: str, verb: str, kind: type[Resource], *, namespace: str
    ) -> bool:
        if token not in ("writer", "reader"):
            raise Unauthenticated("Nobody knows this token.")
        return verb == "get" or token == "writer"


BEGUN = threading.Event()
"""The slow one is being measured."""


async def scorer(
    reference: str, distorted: str, *, model: str, progress: Any, segment: Any = None
) -> Score:
    if "broken" in distorted:
        raise BadInput(f"{distorted} is broken.")
    if "killed" in distorted:
        raise ToolFailed("ffmpeg was killed.")
    if "slow" in distorted:
        BEGUN.set()
        await asyncio.sleep(3600)
    return Score(vmaf=0.0, features={"psnr": 30.0}, frames=(0.0,), model=model)


def made(*, scores: bool = True, problem: str = "") -> tuple[Web, GatewayMetrics]:
    counted = GatewayMetrics()
    guard = Guard(Tokens(), namespace="n", count=counted.request)
    measured = counted.metered(scorer) if scores else None
    registry = Registry(home="n", roots=Roots(("/clips",)))
    scoring = Scoring(measured, guard=guard, registry=registry)
    return (
        Web(scoring, guard=guard, problem=lambda: problem, metrics=counted.render),
        counted,
    )


def asked(token: str = "writer", **body: str) -> Ask:
    headers = {"authorization": f"Bearer {token}"} if token else {}
    content = msgspec.json.encode(body)
    return Ask(method="POST", path="/v1/score", headers=headers, body=content)


GOOD = {"reference": "/clips/a.mp4", "distorted": "/clips/b.mp4"}


def said(answer: Answer) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.json.decode(answer.body)
    return found


def test_everything_that_is_served_has_a_role_or_is_open_on_purpose() -> None:
    web, _ = made()
    assert set(web.routes) - roles.OPEN <= set(roles.METHODS)
    assert set(web.routes) >= roles.OPEN
    assert not roles.OPEN & set(roles.METHODS)
    assert {each for each in roles.METHODS if " " in each} <= set(web.routes)


async def test_what_has_no_role_is_refused_even_if_it_is_served() -> None:
    web, _ = made()
    web.routes["POST /v1/forgotten"] = web.routes["GET /healthz"]
    ask = msgspec.structs.replace(asked(), path="/v1/forgotten")
    assert (await web.handle(ask)).status == 403


async def test_a_score_is_for_those_who_may_and_the_rest_is_told_why() -> None:
    web, _ = made()
    answer = await web.handle(asked(**GOOD))
    assert (answer.status, said(answer)) == (
        200,
        {"score": 0.0, "features": {"psnr": 30.0}},
    )
    for ask, status, why in (
        (asked("", **GOOD), 401, "token"),
        (asked("stranger", **GOOD), 401, "token"),
        (asked("reader", **GOOD), 403, "role of writer or admin"),
        (asked(), 400, "missing required field `reference`"),
        (asked(reference="/clips/a.mp4", distorted=""), 400, "distorted clip"),
        (msgspec.structs.replace(asked(), body=b"{"), 400, "as JSON"),
        (asked(**{**GOOD, "distorted": "/etc/passwd"}), 403, "outside of the"),
        (asked(**{**GOOD, "distorted": "/clips/broken"}), 400, "is broken"),
        (asked(**{**GOOD, "distorted": "/clips/killed"}), 500, "was killed"),
    ):
        answer = await web.handle(ask)
        assert answer.status == status, said(answer)
        assert bool(answer.headers) == (status == 401)
        assert why in said(answer)["message"]
        assert said(answer)["message"].endswith(".")


async def test_a_gateway_that_does_not_score_says_so() -> None:
    web, _ = made(scores=False)
    answer = await web.handle(asked(**GOOD))
    assert answer.status == 503
    assert "submit a job" in said(answer)["message"]


async def test_probes_and_scrapes_need_no_token_and_nothing_else_is_there() -> None:
    web, _ = made(problem="It has not read the jobs yet.")
    health = await web.handle(Ask(method="GET", path="/healthz"))
    assert said(health) == {"status": "ok"}
    ready = await web.handle(Ask(method="GET", path="/readyz"))
    assert (ready.status, said(ready)["message"]) == (
        503,
        "It has not read the jobs yet.",
    )
    web, _ = made()
    assert (await web.handle(Ask(method="GET", path="/readyz"))).status == 200
    assert (await web.handle(Ask(method="GET", path="/metrics"))).status == 200
    for path, allowed in (("/healthz", "GET"), ("/v1/score", "POST")):
        wrong = await web.handle(Ask(method="DELETE", path=path))
        assert (wrong.status, wrong.headers) == (405, (("Allow", allowed),))
    assert (await web.handle(Ask(method="GET", path="/debug"))).status == 404


@pytest.fixture
async def url() -> AsyncIterator[tuple[str, GatewayMetrics]]:
    web, counted = made()
    server = Server("127.0.0.1", 0, handle=web.handle, context=None, limits=LIMITS)
    async with server:
        yield f"http://127.0.0.1:{server.port}", counted


async def test_a_body_over_a_mebibyte_is_not_read(
    url: tuple[str, GatewayMetrics],
) -> None:
    port = int(url[0].rpartition(":")[2])
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    length = (1 << 20) + 1
    head = ("POST /v1/score HTTP/1.1", "Host: x", f"Content-Length: {length}", "", "")
    writer.write("\r\n".join(head).encode())
    assert b" 413 " in await reader.readline()
    writer.close()


async def test_whoever_hangs_up_ends_the_measurement(
    url: tuple[str, GatewayMetrics],
) -> None:
    address, counted = url
    slow = {**GOOD, "distorted": "/clips/slow"}
    headers = {"Authorization": "Bearer writer"}
    async with aiohttp.ClientSession(headers=headers) as session:
        BEGUN.clear()
        asking = asyncio.ensure_future(session.post(f"{address}/v1/score", json=slow))
        await eventually(BEGUN.is_set)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking

    def was_cancelled() -> bool:
        text = counted.render()[1].decode()
        return 'code="cancelled",method="POST /v1/score"} 1.0' in text

    await eventually(was_cancelled)


def scraped(text: str) -> dict[tuple[str, str], float]:
    return {(name, labels): float(n) for name, labels, n in SAMPLE.findall(text)}


async def test_labels_are_out_of_closed_sets_whatever_comes() -> None:
    web, counted = made()
    await web.handle(asked(**GOOD))
    counted.request("/no.such/Method", "teapot")
    text = counted.render()[1].decode()
    found = scraped(text)
    key = 'code="ok",method="POST /v1/score"'
    assert found["vmafx_controller_requests_total", key] == 1
    other = 'code="other",method="other"'
    assert found["vmafx_controller_requests_total", other] == 1
    assert found["vmafx_server_score_requests_total", ""] == 1
    for name, labels in found:
        if not name.startswith("vmafx_"):
            continue
        for label, value in re.findall(r'(\w+)="([^"]*)"', labels):
            free = label == "le" or (label, value) == ("tenant", "")
            assert free or value in metrics.LABELS[label], name


@pytest.mark.cluster("embedded", "real")
async def test_what_becomes_of_jobs_is_counted_once(
    cluster: Cluster, namespace: str, ffmpeg: Ffmpeg, reference: Path, distorted: Path
) -> None:
    async with platform(cluster, namespace, reference.parent) as here:
        port = await here.gateway()
        async with node(here, port, "one", ffmpeg=ffmpeg):
            await here.submit("good", reference, distorted)
            await here.submit("bad", reference, here.folder / "missing.mp4")
            await here.ended("good")
            await here.ended("bad")
        await here.submit("waits", reference, distorted)
        found = await _settled(here)
    prefix = "vmafx_controller_"
    nobody = 'tenant=""'
    assert found[f"{prefix}jobs_completed_total", nobody] == 1
    assert found[f"{prefix}jobs_failed_total", nobody] == 1
    assert found[f"{prefix}jobs_running", nobody] == 0
    assert found[f"{prefix}queue_oldest_job_age_seconds", nobody] < 60
    assert found[f"{prefix}job_queue_wait_seconds_count", nobody] == 2
    assert found["vmafx_quality_score_count", f'model="vmaf_v0.6.1",{nobody}'] == 1
    took = f"{prefix}job_duration_seconds_count"
    assert found[took, f'outcome="completed",{nobody}'] == 1


async def _settled(here: Platform) -> dict[tuple[str, str], float]:
    """The metrics of its gateway, when it has seen the job that waits."""
    address = f"http://127.0.0.1:{here.http[0]}"
    async with aiohttp.ClientSession() as session:
        async with session.get(f"{address}/readyz") as ready:
            assert ready.status == 200

        async def waits() -> dict[tuple[str, str], float] | None:
            async with session.get(f"{address}/metrics") as answer:
                found = scraped(await answer.text())
            waiting = found["vmafx_controller_jobs_pending", 'tenant=""']
            return found if waiting == 1 else None

        found = await eventually(waits)
    assert found is not None
    return found


@pytest.mark.cluster("embedded", "real")
async def test_a_gateway_with_names_makes_certificates_that_nodes_can_check(
    cluster: Cluster, namespace: str, reference: Path, tmp_path: Path
) -> None:
    from tests.operators.vmafx.programs import program
    from trimtab.kinds import ConfigMap

    async with platform(cluster, namespace, reference.parent) as here:
        token = (await here.token("node")).read_text()
        with pytest.raises(NotFound):
            await here.client.get(ConfigMap, "vmafx-gateway", namespace=namespace)
        where = ("-n", namespace, "--host", "127.0.0.1", "--port", "0")
        async with program(
            cluster, "gateway", *where, "--names", "localhost", "--http", "0"
        ) as line:
            port = int(line.rstrip(".\n").rpartition(":")[2])
            trusted = await here.client.get(
                ConfigMap, "vmafx-gateway", namespace=namespace
            )
            credentials = grpc.ssl_channel_credentials(trusted.data["ca.crt"].encode())
            async with grpc.aio.secure_channel(
                f"localhost:{port}", credentials
            ) as channel:
                method: Any = channel.unary_unary("/vmafx.v1.VmafxScoring/Health")
                with pytest.raises(grpc.aio.AioRpcError) as refused:
                    await method(b"", metadata=(("authorization", f"Bearer {token}"),))
            assert refused.value.code() is grpc.StatusCode.PERMISSION_DENIED
