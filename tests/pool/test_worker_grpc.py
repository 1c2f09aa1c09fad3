"""Laws of an activation over gRPC, asked of a real worker over verified TLS."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from tests.pool.worker_process import Process, worker
from trimtab.pool.calls import CallFailed, Target
from trimtab.pool.grpccalls import METHOD, method_of
from trimtab.pool.kinds import Activation
from trimtab.pool.secrets import Authority

GRPC = ("--grpc", "0")


async def activate(
    here: Process, tenant: str, *, epoch: int = 1, target: Target | None = None
) -> None:
    activation = Activation(protocol="grpc", port=here.grpc, timeout=5)
    await here.calls.activate(
        target or here.target, epoch=epoch, tenant=tenant, activation=activation
    )


async def test_a_worker_is_bound_to_one_tenant_over_grpc_and_twice_is_once(
    tmp_path: Path,
) -> None:
    record = tmp_path / "record"
    async with worker(tmp_path, *GRPC, "--record", str(record)) as here:
        await activate(here, "acme")
        await activate(here, "acme")
        with pytest.raises(CallFailed, match=r"FAILED_PRECONDITION.*another tenant"):
            await activate(here, "blue")
        await here.begin(2, "a")
        assert (await here.use(2, "a")).status == 200
        with pytest.raises(CallFailed, match=r"PERMISSION_DENIED.*epoch 1 is over"):
            await activate(here, "acme")
    seen = [json.loads(line) for line in record.read_text().splitlines()]
    assert [each["event"] for each in seen] == ["activate", "serve"]


async def test_only_the_pool_activates_and_only_the_worker_is_activated(
    tmp_path: Path,
) -> None:
    replace = msgspec.structs.replace
    async with worker(tmp_path, *GRPC) as here:
        stranger = replace(here.target, bearer="somebody")
        with pytest.raises(CallFailed, match="UNAUTHENTICATED"):
            await activate(here, "acme", target=stranger)
        other = Authority.make("other", now=datetime.now(UTC))
        for untrusted in (
            replace(here.target, ca=other.pem),
            replace(here.target, name="another-worker"),
        ):
            with pytest.raises(CallFailed, match="UNAVAILABLE"):
                await activate(here, "acme", target=untrusted)


async def test_a_failed_activation_over_grpc_spoils_the_worker(tmp_path: Path) -> None:
    handler = "tests.pool.worker_handlers:Unbindable"
    async with worker(tmp_path, *GRPC, "--handler", handler) as here:
        with pytest.raises(CallFailed, match=r"UNAVAILABLE.*step activate failed"):
            await activate(here, "acme")
        with pytest.raises(CallFailed, match="cannot be used"):
            await here.begin(2, "a")


def test_a_pool_may_name_a_method_of_its_own() -> None:
    assert method_of(Activation(protocol="grpc")) == METHOD
    own = Activation(protocol="grpc", path="/acme.Worker/Bind")
    assert method_of(own) == "/acme.Worker/Bind"
