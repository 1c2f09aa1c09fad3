"""Laws of warm starts: a waiting runner becomes a session's, or a pod is made."""

from __future__ import annotations

from base64 import b64encode
from contextlib import AsyncExitStack
from pathlib import Path
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

import trimtab
from tests.operators.sessions.house import House, house
from tests.operators.sessions.journeys import operator
from tests.pool.town import LEASE, SOURCE, Town, town
from trimtab.api import Metadata, OwnerReference, codec
from trimtab.api.kinds import Pod, Secret, Service
from trimtab.cache import Scope
from trimtab.client import NotFound
from trimtab.client.calling import Caller
from trimtab.operators.sessions.calling import Runners
from trimtab.operators.sessions.environment import KUBERNETES_TOKEN, Facts
from trimtab.operators.sessions.facts import why_cold
from trimtab.operators.sessions.kinds import (
    APP,
    SETTINGS,
    AgenticSession,
    AgenticSessionStatus,
    ProjectSettings,
    ProjectSettingsSpec,
    WarmPool,
)
from trimtab.operators.sessions.names import service_name, token_secret_name
from trimtab.operators.sessions.settings import Settings, Vertex
from trimtab.operators.sessions.variables import expanded
from trimtab.operators.sessions.warm import START, Waiting, Warm
from trimtab.pool.kinds import (
    WorkerClaim,
    WorkerClaimSpec,
    WorkerClaimStatus,
    WorkerPool,
)
from trimtab.runtime import Context, Result, Watched
from trimtab.testing import Cluster, eventually, rehearse

Plain = dict[str, Any]
RUNNERS = WarmPool(pool="runners")


def pool_of(namespace: str, folder: Path, **spec: Any) -> Plain:
    """A pool of warm runners."""
    return {
        "apiVersion": "trimtab.dev/v1alpha1",
        "kind": "WorkerPool",
        "metadata": {"name": "runners", "namespace": namespace},
        "spec": {
            "template": {
                "spec": {
                    "containers": [
                        {
                            "name": APP,
                            "image": "trimtab.dev/runner",
                            "env": [
                                {"name": "PYTHONPATH", "value": str(SOURCE / "src")},
                                {
                                    "name": "AMBIENT_TOKEN_FOLDER",
                                    "value": str(folder / "tokens"),
                                },
                            ],
                            "readinessProbe": {
                                "httpGet": {
                                    "path": "/healthz",
                                    "port": 8443,
                                    "scheme": "HTTPS",
                                },
                                "periodSeconds": 1,
                            },
                        }
                    ],
                    "terminationGracePeriodSeconds": 2,
                }
            },
            "shapes": [{"name": "small", "cpu": "1", "memory": "120Mi"}],
            **spec,
        },
    }


async def furnished(here: House, around: Town, **spec: Any) -> None:
    """A pool, a gateway, and a project that wants its sessions warm."""
    made = pool_of(here.namespace, here.folder, **spec)
    await here.client.create(codec.decode(WorkerPool, codec.encode(made)))
    await here.client.create(
        ProjectSettings(
            metadata=Metadata(name=SETTINGS, namespace=here.namespace),
            spec=ProjectSettingsSpec(groupAccess=[], warmPool=WarmPool(pool="runners")),
        )
    )
    await around.open()


async def claims(here: House) -> list[str]:
    found = here.client.list(WorkerClaim, namespace=here.namespace)
    return [each.metadata.name async for each in found]


@pytest.mark.cluster("real")
async def test_a_session_takes_a_warm_runner_if_there_is_one_and_else_starts_cold(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    async with AsyncExitStack() as stack:
        here = await stack.enter_async_context(house(cluster, namespace, tmp_path))
        around = await stack.enter_async_context(town(cluster, namespace, tmp_path))
        await furnished(here, around, minIdle=1, maxWorkers=2)
        here.settings = replace(here.settings, warm=True)
        await stack.enter_async_context(here.operated())
        await around.until("runners", idle=1)
        await around.led()
        prompt = "write told.txt $(HOME) costs $5"
        await here.start("mine", initialPrompt=prompt)
        seen = await here.until("mine", "Running")
        worker = seen.status.worker
        assert worker
        assert await here.pod("mine") is None, "it has no pod of its own"
        assert seen.status.conditions.is_true("WarmStart")

        async def told() -> bool:
            file = tmp_path / "mine" / "told.txt"
            return file.exists() and file.read_text() == "$(HOME) costs $5"

        await eventually(told)
        assert (tmp_path / "tokens" / "bot-token").read_text().count(".") == 2
        service = await here.client.get(
            Service, service_name("mine"), namespace=namespace
        )
        pod = await here.client.get(Pod, worker, namespace=namespace)
        assert service.spec.selector.items() <= pod.metadata.labels.items()

        # A token that is renewed reaches the runner, which has no volume with it.
        renewed = {"data": {KUBERNETES_TOKEN: b64encode(b"renewed").decode()}}
        name = token_secret_name("mine")
        await here.client.patch(Secret, name, renewed, namespace=namespace)
        await here.command("mine", "Running")
        token = tmp_path / "tokens" / "bot-token"
        await eventually(lambda: token.read_text() == "renewed")

        await here.command("mine", "Stopped")
        seen = await here.until("mine", "Stopped")
        assert seen.status.worker == ""

        async def gone() -> bool:
            with pytest.raises(NotFound):
                await here.client.get(Pod, worker, namespace=namespace)
            return not await claims(here)

        await eventually(gone, within=LEASE * 4)
        assert not token.exists()

        # A pool that is of no use, or none at all, makes a cold start of the next one.
        await here.client.delete(WorkerPool, "runners", namespace=namespace)
        await here.start("other")
        seen = await here.until("other", "Running")
        said = seen.status.conditions["WarmStart"]
        assert (said.status, said.reason, seen.status.worker) == ("False", "Cold", "")
        assert await here.pod("other") is not None
        assert not await claims(here)


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.cluster("real")
@pytest.mark.parametrize("state", ["Pending", "Bound"])
async def test_a_warm_start_goes_on_where_an_operator_was_killed(
    cluster: Cluster, namespace: str, tmp_path: Path, state: str
) -> None:
    async def is_claimed() -> bool:
        found = here.client.list(WorkerClaim, namespace=namespace)
        return any([each.status.state in (state, "Bound") async for each in found])

    async with AsyncExitStack() as stack:
        here = await stack.enter_async_context(house(cluster, namespace, tmp_path))
        around = await stack.enter_async_context(town(cluster, namespace, tmp_path))
        await furnished(here, around, minIdle=1, maxWorkers=2)
        await around.until("runners", idle=1)
        await around.led()
        async with operator(here, WARM_POOLS="true"):
            await here.start("mine", initialPrompt="write told.txt once")
            await eventually(is_claimed, within=60.0, every=0.001)
        async with operator(here, WARM_POOLS="true"):
            seen = await here.until("mine", "Running", within=60.0)
            assert seen.status.worker
            assert await here.pod("mine") is None
            file = tmp_path / "mine" / "told.txt"
            await eventually(file.exists)
            await here.command("mine", "Stopped")
            await here.until("mine", "Stopped", within=60.0)


def test_what_needs_a_volume_or_a_sidecar_starts_cold() -> None:
    vertex = Vertex(region="r", project="p", credentials="/c")
    assert why_cold(Facts(), Settings()) is None
    assert "volume" in (why_cold(Facts(), Settings(vertex=vertex)) or "")
    assert "container" in (why_cold(Facts(storage="shared"), Settings()) or "")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$(A) costs $$5", "1 costs $5"),
        ("$$(A)", "$(A)"),
        ("$(B) $( $", "$(B) $( $"),
        ("$$$(A)", "$1"),
    ],
)
def test_a_variable_is_what_a_kubelet_would_make_of_it(
    text: str, expected: str
) -> None:
    assert expanded(text, {"A": "1"}) == expected


# Claims, without a server


async def claimed(
    claim: WorkerClaim | None, *, wait: float = 60.0, cold: bool = False
) -> tuple[Any, Any]:
    """What comes of one step towards a worker, and of the claim that was there."""
    app = trimtab.Operator("sessions")
    calls = Caller()
    warm = Warm(calls, Runners(calls, random=Random(1)), wait=wait)
    found = list[Any]()

    @app.reconciles(
        AgenticSession,
        scope=Scope(everything=True),
        watches=[
            Watched(
                kind=WorkerClaim, scope=Scope(everything=True), to=lambda each: ["mine"]
            )
        ],
    )
    async def session(seen: AgenticSession, ctx: Context) -> Result:
        step = warm.forgo(ctx, seen) if cold else warm.claim(ctx, seen, RUNNERS)
        found.append(await step)
        try:
            found.append(await ctx.client.get(WorkerClaim, "mine-runner"))
        except NotFound:
            found.append(None)
        return ctx.done()

    one = AgenticSession(
        metadata=Metadata(name="mine", namespace="default", uid="u1"),
        status=AgenticSessionStatus(restarts=1),
    )
    await rehearse(app, one, given=[claim] if claim else [])
    return found[0], found[1]


def claim_of(state: Any, *, owner: str = "u1", start: str = "first.1") -> WorkerClaim:
    reference = OwnerReference(
        apiVersion="vteam.ambient-code/v1alpha1",
        kind="AgenticSession",
        name="mine",
        uid=owner,
    )
    return WorkerClaim(
        metadata=Metadata(
            name="mine-runner",
            namespace="default",
            annotations={START: start},
            ownerReferences=[reference],
        ),
        spec=WorkerClaimSpec(pool="runners", tenant="default"),
        status=WorkerClaimStatus(state=state),
    )


async def test_a_session_waits_for_its_own_claim_and_has_one_at_most() -> None:
    got, left = await claimed(None)
    assert isinstance(got, Waiting)
    assert (left.spec.pool, left.spec.tenant, left.spec.ttl) == (
        "runners",
        "default",
        0,
    )
    assert left.metadata.annotations[START] == "first.1"
    got, left = await claimed(claim_of("Pending"))
    assert isinstance(got, Waiting)
    assert left is not None
    got, left = await claimed(claim_of("Bound"))
    assert isinstance(got, WorkerClaim)


async def test_a_claim_of_an_earlier_start_is_given_up_first() -> None:
    got, left = await claimed(claim_of("Bound", start="first.0"))
    assert isinstance(got, Waiting)
    assert left is None


async def test_a_claim_that_leads_nowhere_is_given_up_for_a_cold_start() -> None:
    assert await claimed(claim_of("Failed")) == (None, None)
    assert await claimed(claim_of("Pending"), wait=0.0) == (None, None)


async def test_a_session_that_starts_cold_after_all_gives_up_what_it_claimed() -> None:
    assert await claimed(claim_of("Bound"), cold=True) == (None, None)
    assert await claimed(None, cold=True) == (None, None)
    _, left = await claimed(claim_of("Bound", owner="u2"), cold=True)
    assert left is not None


async def test_a_claim_of_somebody_else_is_left_alone() -> None:
    got, left = await claimed(claim_of("Bound", owner="u2"))
    assert got is None
    assert left is not None
