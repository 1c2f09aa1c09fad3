"""Laws of keys and certificates: made once, renewed in time, shown nowhere."""

from __future__ import annotations

import asyncio
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import pytest

from tests.pool.gateway_desk import a_worker
from tests.pool.test_cli_pool import a_pool
from tests.pool.worker_process import write_secret
from trimtab import Client, load
from trimtab.api.kinds import Secret
from trimtab.pool import secrets
from trimtab.pool.calls import CallFailed
from trimtab.pool.keyring import KEYS, Recent, SecretKeyring
from trimtab.pool.kinds import KINDS, Worker, WorkerPool
from trimtab.pool.secrets import Authority
from trimtab.pool.worker.program import Identity
from trimtab.testing import Cluster
from trimtab.testing.operating import install

NOW = datetime.now(UTC)


def keyring(client: Client, *, now: datetime = NOW) -> SecretKeyring:
    return SecretKeyring(client, now=lambda: now, random=Random(5))


async def furnished(client: Client, namespace: str) -> tuple[WorkerPool, Worker]:
    await install(client, *KINDS)
    pool = await client.create(a_pool(namespace))
    return pool, await client.create(a_worker("w", namespace))


async def test_a_pool_has_one_authority_however_many_make_it_at_once(
    cluster: Cluster, namespace: str
) -> None:
    async with Client(load(kubeconfig=cluster.kubeconfig)) as client:
        pool, _ = await furnished(client, namespace)
        found = await asyncio.gather(
            *(keyring(client).authority(pool) for _ in range(5))
        )
        assert len({each.pem for each in found}) == 1


async def test_a_worker_is_called_with_the_keys_of_its_secret_and_renewed_in_time(
    cluster: Cluster, namespace: str
) -> None:
    async with Client(load(kubeconfig=cluster.kubeconfig)) as client:
        pool, worker = await furnished(client, namespace)
        keys = keyring(client)
        with pytest.raises(CallFailed, match="cannot be read"):
            await keys.target(worker)
        secret = await client.create(await keys.secret(worker, pool=pool))
        target = await keys.target(worker)
        assert (target.name, target.uid) == ("w", worker.metadata.uid)
        assert target.key == secret.data[secrets.KEY]
        assert target.ca == (await keys.authority(pool)).pem
        token = keys.token(target, checkout="c", epoch=1)
        assert token == secrets.token(target.key, target.uid, "c", 1)
        for hidden in (token, target.bearer, target.key.hex()):
            assert hidden not in f"{target!r} {keys!r} {secret!r}"

        assert await keys.renew(worker, pool=pool) == secrets.expires(
            secret.metadata.annotations
        ), "nothing is due yet"
        later = keyring(client, now=NOW + timedelta(days=25))
        expires = await later.renew(worker, pool=pool)
        new = await client.get(Secret, "w", namespace=namespace)
        assert expires > NOW + timedelta(days=50)
        assert new.data[secrets.CERTIFICATE] != secret.data[secrets.CERTIFICATE]
        assert new.data[secrets.KEY] == secret.data[secrets.KEY], "tokens stay valid"


def test_a_worker_takes_up_a_certificate_that_was_renewed(tmp_path: Path) -> None:
    authority = Authority.make("test", now=NOW)
    write_secret(tmp_path, authority=authority)
    identity = Identity(tmp_path)
    assert not identity.reload()
    data = {each.name: each.read_bytes() for each in tmp_path.iterdir()}
    renewed, _ = secrets.renewed(data, authority=authority, now=NOW)
    for name in (secrets.CERTIFICATE, secrets.PRIVATE):
        (tmp_path / name).write_bytes(renewed[name])
    assert identity.reload()
    assert isinstance(identity.context, ssl.SSLContext)


def test_what_is_kept_is_bounded_and_what_was_used_last_stays() -> None:
    recent: Recent[int] = Recent(3)
    for number in range(3):
        recent.put(str(number), number)
    assert recent.get("0") == 0
    recent.put("3", 3)
    assert recent.get("1") is None
    assert [recent.get(each) for each in "023"] == [0, 2, 3]
    assert KEYS < 1 << 16
