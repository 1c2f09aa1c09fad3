"""Tenants at one gateway: each has its own jobs, nodes and clips, and no other's."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Awaitable
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import grpc
import pytest

from tests.operators.vmafx import clips
from tests.operators.vmafx.issuer import Issuer
from tests.operators.vmafx.platform import Platform, platform
from tests.operators.vmafx.programs import program
from trimtab.api import Metadata, hashed
from trimtab.cache import Scope
from trimtab.client import ConfigError
from trimtab.client.calling import Caller as Http
from trimtab.client.calling import Place
from trimtab.kinds import Namespace
from trimtab.operators.vmafx import nodes
from trimtab.operators.vmafx.calling import Caller
from trimtab.operators.vmafx.gateway import GatewayOptions, Served, serving
from trimtab.operators.vmafx.guarding import code_of
from trimtab.operators.vmafx.kinds import VmafxJob, VmafxJobSpec, VmafxNode
from trimtab.operators.vmafx.roles import Judge
from trimtab.operators.vmafx.roots import Roots
from trimtab.operators.vmafx.tenancy.identities import SUSPENDED, UNKNOWN, Unavailable
from trimtab.operators.vmafx.tenancy.kinds import VmafxTenant
from trimtab.operators.vmafx.tenancy.opening import Tenancy
from trimtab.operators.vmafx.wire import controller_pb2 as wire
from trimtab.testing import Cluster, eventually

pytest_cluster = pytest.mark.cluster("embedded", "real")
CODES = grpc.StatusCode
ALL = ["vmafx:reader", "vmafx:writer", "vmafx:node"]
CPU = wire.NodeCapability(gpu_vendor="cpu", backends=["cpu"], concurrency=1)


class Nobody:
    """Where there are tenants, no other judge is asked."""

    async def allows(self, *_: Any, **__: Any) -> bool:
        raise AssertionError("RBAC was asked")


class House:
    """A gateway with tenants, and their people."""

    def __init__(self, here: Platform, issuer: Issuer, folder: Path) -> None:
        self.here = here
        self.issuer = issuer
        self.folder = folder
        self.stack = AsyncExitStack()
        self.served = Served(0, 0)

    def place(self, tenant: str) -> str:
        return hashed(tenant, self.here.namespace)

    async def tenant(self, name: str, **changes: Any) -> None:
        """Write a tenant down, with a namespace and a folder of its own."""
        (self.folder / name).mkdir(exist_ok=True)
        place = Namespace(metadata=Metadata(name=self.place(name)))
        await self.here.client.create(place)
        wished = {
            "namespaces": [self.place(name)],
            "rbac": {"allowedRoles": ALL},
            **changes,
        }
        await self.here.client.create(
            VmafxTenant(
                metadata=Metadata(name=name, namespace=self.here.namespace),
                spec=self.issuer.spec(name, **wished),
            )
        )

    async def open(self, *tenants: str) -> None:
        """Serve them."""
        places = map(self.place, tenants)
        options = GatewayOptions(
            namespace=self.here.namespace,
            scope=Scope(namespaces=(self.here.namespace, *places)),
            port=0,
            http=0,
            roots=Roots((f"{self.folder}/{{tenant}}",)),
            tenancy=Tenancy(authority=self.issuer.authority),
        )
        judge: Judge = Nobody()
        self.served = await self.stack.enter_async_context(
            serving(
                self.here.client,
                judge=judge,
                options=options,
                now=lambda: datetime.now(UTC),
                random=random.SystemRandom(),
            )
        )

    async def caller(self, tenant: str, *roles: str, **claims: Any) -> Caller:
        """Somebody with a token of a tenant."""
        address = f"127.0.0.1:{self.served.grpc}"
        channel = grpc.aio.insecure_channel(address)
        await self.stack.enter_async_context(channel)
        return Caller(
            channel, token=lambda: self.issuer.token(tenant, *roles, **claims)
        )

    def clip(self, tenant: str, name: str = "a.mp4") -> str:
        file = self.folder / tenant / name
        if not file.is_symlink():
            file.touch()
        return str(file)

    def wished(self, tenant: str, **more: Any) -> wire.SubmitJobRequest:
        pair = wire.ScoringParams(
            reference=self.clip(tenant), distorted=self.clip(tenant, "b.mp4")
        )
        return wire.SubmitJobRequest(scoring=pair, **more)

    async def registered(self, caller: Caller, name: str = "node") -> dict[str, Any]:
        wanted = wire.RegisterNodeRequest(name=name, capability=CPU)
        who = await caller.register(wanted)
        return {"node_id": who.node_id, "session_token": who.session_token}


@pytest.fixture
async def house(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> AsyncIterator[House]:
    folder = tmp_path / "clips"
    folder.mkdir()
    (tmp_path / "issuer").mkdir()
    async with (
        Issuer(tmp_path / "issuer").serving() as issuer,
        platform(cluster, namespace, folder) as here,
    ):
        made = House(here, issuer, folder)
        async with made.stack:
            yield made


async def refused(call: Awaitable[Any], *, of: House) -> tuple[grpc.StatusCode, str]:
    """The code of a refusal, which names nobody."""
    with pytest.raises(grpc.aio.AioRpcError) as error:
        await call
    said = error.value.details() or ""
    text = said.replace(str(of.folder / "beta"), "")  # what the caller itself wrote
    assert "acme" not in text.replace(str(of.folder), "")
    return error.value.code(), said


async def pulled(caller: Caller, me: dict[str, Any]) -> wire.PullWorkResponse:
    return await caller.pull(wire.PullWorkRequest(**me, capability=CPU))


async def seen_by(caller: Caller) -> set[str]:
    return {job.id async for job in caller.stream(wire.StreamJobsRequest())}


@pytest_cluster
async def test_a_tenant_has_its_own_jobs_nodes_and_clips_and_no_others(
    house: House, cluster: Cluster
) -> None:
    for name in ("acme", "beta"):
        await house.tenant(name)
    await house.tenant("platform", sharesNodes=True)
    await house.open("acme", "beta", "platform")
    acme = await house.caller("acme", "vmafx:writer")
    beta = await house.caller("beta", "vmafx:writer")

    mine = (await acme.submit(house.wished("acme"))).job_id
    theirs = (await beta.submit(house.wished("beta"))).job_id
    by_kubectl = await house.here.client.create(
        VmafxJob(
            metadata=Metadata(name="mine", namespace=house.place("acme")),
            spec=VmafxJobSpec(reference=house.clip("acme"), distorted="/b.mp4"),
        )
    )
    both = {mine, by_kubectl.metadata.uid}

    async def both_seen() -> bool:
        return await seen_by(acme) == both

    await eventually(both_seen)  # those of kubectl and of gRPC are one queue
    assert await seen_by(beta) == {theirs}
    shown = await cluster.kubectl("get", "vmjob", "-n", house.place("acme"))
    assert len(shown.strip().splitlines()) == 3

    # Another's job, by its id; another's namespace, by its name.
    get, cancel = wire.GetJobRequest(job_id=mine), wire.CancelJobRequest(job_id=mine)
    calls: tuple[Awaitable[Any], ...] = (
        beta.get(get),
        beta.cancel(cancel),
        beta.submit(house.wished("beta", namespace=house.place("acme"))),
        beta.submit(house.wished("beta", namespace=house.here.namespace)),
    )
    for call in calls:
        code, said = await refused(call, of=house)
        assert code is CODES.PERMISSION_DENIED
        assert "beta" not in said
    assert (await acme.get(get)).id == mine

    # Clips of another, straight and by a link.
    (house.folder / "beta" / "link.mp4").symlink_to(house.clip("acme"))
    for clip in (house.clip("acme"), house.clip("beta", "link.mp4")):
        pair = wire.ScoringParams(reference=clip, distorted=house.clip("beta"))
        wanted = wire.SubmitJobRequest(scoring=pair)
        with pytest.raises(grpc.aio.AioRpcError) as error:
            await beta.submit(wanted)
        assert error.value.code() is CODES.PERMISSION_DENIED

    # Roles that the tenant does not allow, or the token does not have.
    boss = await house.caller("beta", "vmafx:admin")
    reader = await house.caller("beta", "vmafx:reader")
    stranger = await house.caller("gamma", "vmafx:writer")
    calls = (
        boss.submit(house.wished("beta")),
        reader.submit(house.wished("beta")),
        house.registered(reader),
        house.registered(beta),
    )
    for call in calls:
        code, _ = await refused(call, of=house)
        assert code is CODES.PERMISSION_DENIED
    assert await refused(stranger.get(get), of=house) == (
        CODES.UNAUTHENTICATED,
        UNKNOWN,
    )

    # A session is its tenant's, and a node works for its tenant.
    node = await house.caller("acme", "vmafx:node")
    other = await house.caller("beta", "vmafx:node")
    me, you = await house.registered(node), await house.registered(other)
    known = [
        each
        async for each in house.here.client.list(
            VmafxNode, namespace=house.here.namespace
        )
    ]
    assert sorted(each.status.tenant for each in known) == ["acme", "beta"]
    assert (await refused(pulled(other, me), of=house))[0] is CODES.PERMISSION_DENIED
    beat = await other.heartbeat(wire.HeartbeatRequest(**me))
    assert not beat.ok
    work = await pulled(other, you)
    assert work.job.id == theirs
    assert list(work.job.scoring_roots) == [f"{house.folder}/beta"]
    assert not (await pulled(other, you)).HasField("job")
    work = await pulled(node, me)
    assert work.job.id in both
    report = wire.ReportResultRequest(**you, job_id=work.job.id, final=True, score=1)
    assert (await refused(other.report(report), of=house))[0] is CODES.PERMISSION_DENIED

    # The platform's own nodes work for all.
    shared = await house.caller("platform", "vmafx:node")
    us = await house.registered(shared)
    rest = await pulled(shared, us)
    assert {work.job.id, rest.job.id} == both
    report = wire.ReportResultRequest(**us, job_id=rest.job.id, final=True, score=1)
    assert (await shared.report(report)).ok


@pytest_cluster
async def test_a_quota_and_a_suspension_hold_and_metrics_tell_by_tenant(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    await house.tenant("acme", quota={"maxPending": 1, "maxRunning": 1})
    await house.open("acme")
    acme = await house.caller("acme", "vmafx:writer")
    first = await acme.submit(house.wished("acme", idempotency_key="one"))
    code, said = await refused(acme.submit(house.wished("acme")), of=house)
    assert (code, said[:26]) == (CODES.RESOURCE_EXHAUSTED, "1 jobs of the caller may w")
    again = await acme.submit(house.wished("acme", idempotency_key="one"))
    assert again == first  # a repetition is not another job

    http = Http()
    place = Place(host="127.0.0.1", port=house.served.http, name="localhost", tls=False)
    found = await http.call(place, "GET", "/metrics", within=10)
    assert b'vmafx_controller_jobs_submitted_total{tenant="acme"} 1.0' in found.body
    for token, status in (("", 401), (house.issuer.token("acme"), 403)):
        headers = (("Authorization", f"Bearer {token}"),) if token else ()
        call = http.call(
            place, "POST", "/v1/score", headers=headers, body=b"{}", within=10
        )
        assert (await call).status == status
    await http.close()

    monkeypatch.setattr(nodes, "MOST_NODES", 1)
    worker = await house.caller("acme", "vmafx:node")
    for _ in range(2):
        await house.registered(worker, "one")  # a new session of the same
    code, _ = await refused(house.registered(worker, "two"), of=house)
    assert code is CODES.RESOURCE_EXHAUSTED
    me = await house.registered(worker, "one")
    assert (await pulled(worker, me)).job.id == first.job_id
    await acme.submit(house.wished("acme"))  # what runs does not wait
    assert not (await pulled(worker, me)).HasField("job")  # and one runs at once

    await house.here.client.patch(
        VmafxTenant,
        "acme",
        {"spec": {"enabled": False}},
        namespace=house.here.namespace,
    )

    async def is_refused() -> tuple[grpc.StatusCode, str | None] | None:
        try:
            await acme.get(wire.GetJobRequest(job_id=first.job_id))
        except grpc.aio.AioRpcError as error:
            return error.code(), error.details()
        return None

    assert await eventually(is_refused) == (CODES.PERMISSION_DENIED, SUSPENDED)


@pytest_cluster
async def test_the_operator_says_of_each_tenant_whether_it_is_served(
    house: House, cluster: Cluster
) -> None:
    client, where = house.here.client, house.here.namespace
    await house.tenant("acme")
    await house.tenant("bad", oidc={"jwksEndpoint": "http://id.example/keys"})
    await house.tenant("off", enabled=False)
    twin = VmafxTenant(
        metadata=Metadata(name="twin", namespace=where),
        spec=house.issuer.spec("twin", namespaces=[house.place("off")]),
    )
    await client.create(twin)
    expected = {
        "acme": "Served",
        "bad": "NotValid",
        "off": "NamespaceTakenTwice",
        "twin": "NamespaceTakenTwice",
    }
    touched = {"spec": {"sharesNodes": True}}  # it is judged again by itself, but later
    await client.patch(VmafxTenant, "off", touched, namespace=where)

    async def are_told() -> bool:
        found = {}
        async for each in client.list(VmafxTenant, namespace=where):
            if ready := each.status.conditions.get("Ready"):
                found[each.metadata.name] = ready.reason
        return found == expected

    await eventually(are_told, within=20)
    shown = (await cluster.kubectl("get", "vmtenant", "-n", where)).splitlines()
    assert shown[0].split() == "NAME TENANT ISSUER ENABLED READY REASON AGE".split()
    row = next(line for line in shown if line.startswith("off"))
    assert row.split()[3:6] == ["false", "False", "NamespaceTakenTwice"]
    with pytest.raises(ConfigError, match="tenants cannot be served"):
        await house.open("acme")  # a start is strict


@pytest.mark.cluster("real")
async def test_a_tenant_has_a_clip_scored_by_its_own_node_with_the_real_programs(
    house: House, cluster: Cluster
) -> None:
    await house.tenant("acme")
    clip = str(clips.picture(house.folder / "acme" / "clip.mp4"))
    token = house.folder / "token"
    token.write_text(house.issuer.token("acme", "vmafx:node"))
    trust = house.folder / "issuers.crt"
    trust.write_bytes(house.issuer.authority)
    where = ("-n", house.here.namespace, "--port", "0", "--root")
    tenants = ("--tenants", "objects", "--issuer-ca", str(trust))
    root = f"{house.folder}/{{tenant}}"
    async with program(cluster, "gateway", *where, root, *tenants) as line:
        address = line.removeprefix("Serving on ").rstrip(".\n")
        house.served = Served(int(address.rpartition(":")[2]), 0)
        acme = await house.caller("acme", "vmafx:writer")
        pair = wire.ScoringParams(reference=clip, distorted=clip)
        made = await acme.submit(wire.SubmitJobRequest(scoring=pair))
        key = ("--name", "one", "--token", str(token))
        async with program(cluster, "node", "--gateway", address, *key):

            async def scored() -> wire.Job | None:
                found = await acme.get(wire.GetJobRequest(job_id=made.job_id))
                return found if found.status >= wire.COMPLETED else None

            found = await eventually(scored, within=60)
    assert found is not None
    assert found.namespace == house.place("acme")
    assert (found.status, found.error) == (wire.COMPLETED, "")


def test_what_cannot_be_told_is_unavailable() -> None:
    assert code_of(Unavailable("Later.")) is CODES.UNAVAILABLE
