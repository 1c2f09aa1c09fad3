"""Laws of an authority that is followed by another: everybody stays trusted."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from tests.pool.test_worker_keys import furnished, keyring
from trimtab import Client, load
from trimtab.api.kinds import Secret
from trimtab.pool import secrets
from trimtab.pool.keyring import LOOK_AGAIN, authority_name
from trimtab.pool.rotating import (
    FOLLOWED_BEFORE,
    FORMER,
    NEXT,
    RIPENS,
    authority_of,
    rotated,
)
from trimtab.pool.secrets import AUTHORITY, AUTHORITY_LIFETIME, Authority
from trimtab.testing import Cluster

NOW = datetime.now(UTC).replace(microsecond=0)
DAY = timedelta(days=1)


def old(left: timedelta) -> Authority:
    """An authority with so much left of its life."""
    return Authority.make("test", now=NOW + left - AUTHORITY_LIFETIME)


def steps(data: dict[str, bytes], *, days: int) -> list[dict[str, bytes]]:
    """What the Secret holds on each of the days to come."""
    found = []
    for day in range(days):
        data = rotated(data, title="test", now=NOW + day * DAY) or data
        found.append(data)
    return found


def trusts(pem: bytes, certificate: bytes) -> bool:
    """Whether OpenSSL knows the authority of a certificate, of those in a text."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cadata=pem.decode())
    return ssl.PEM_cert_to_DER_cert(certificate.decode()) in context.get_ca_certs(
        binary_form=True
    )


def test_an_authority_with_time_left_is_left_alone() -> None:
    assert rotated(old(FOLLOWED_BEFORE + DAY).data(), title="", now=NOW) is None


def test_the_next_authority_is_trusted_for_a_day_before_it_signs() -> None:
    first = old(FOLLOWED_BEFORE - DAY)
    days = steps(first.data(), days=5)
    assert days[0][AUTHORITY] == first.pem, "the old one signs"
    assert days[1][AUTHORITY] == days[0][NEXT], "the next one does, a day later"
    assert days[1] == days[4], "and then nothing changes"
    for before, after in pairwise(days):
        assert trusts(authority_of(before).pem, after[AUTHORITY])
        assert trusts(authority_of(after).pem, before[AUTHORITY])
    assert days[1][FORMER] == first.pem


def test_an_authority_without_time_left_is_followed_at_once() -> None:
    first = old(RIPENS)
    (data,) = steps(first.data(), days=1)
    assert data[AUTHORITY] != first.pem
    assert trusts(authority_of(data).pem, first.pem), "until it has expired"
    assert authority_of(data).expires > NOW + FOLLOWED_BEFORE


def test_no_certificate_outlives_its_authority() -> None:
    first = old(5 * DAY)
    assert first.issue("w", now=NOW).expires == first.expires


def test_what_has_expired_is_trusted_no_more() -> None:
    gone, going = old(-DAY), old(RIPENS)
    data = {**going.data(), FORMER: gone.pem}
    held = rotated(data, title="", now=NOW)
    assert held is not None
    assert held[FORMER] == going.pem


async def test_every_keyring_trusts_the_next_authority_before_it_signs(
    cluster: Cluster, namespace: str
) -> None:
    async with Client(load(kubeconfig=cluster.kubeconfig)) as client:
        pool, worker = await furnished(client, namespace)
        first = old(FOLLOWED_BEFORE - DAY)
        name = authority_name(pool.metadata.name)
        meta = {"name": name, "namespace": namespace}
        secret: dict[str, object] = {"apiVersion": "v1", "kind": "Secret"}
        await client.create({**secret, "metadata": meta, "data": first.data()})
        one, two = keyring(client, now=NOW), keyring(client, now=NOW)
        pair = (await one.authority(pool)).issue("w", now=NOW)
        assert trusts(first.pem, first.pem)
        held = await client.get(Secret, name, namespace=namespace)
        assert held.data[AUTHORITY] == first.pem
        assert trusts((await two.authority(pool)).pem, held.data[NEXT])
        later = keyring(client, now=NOW + RIPENS)
        signs = await later.authority(pool)
        assert signs.pem.startswith(held.data[NEXT])
        assert trusts(signs.pem, first.pem), "certificates of the old one are good"
        assert pair.expires < first.expires
        await client.create(await later.secret(worker, pool=pool))
        target = await later.target(worker)
        assert trusts(target.ca, first.pem)
        assert trusts(target.ca, held.data[NEXT])
        assert secrets.RENEW_BEFORE > RIPENS > 10 * LOOK_AGAIN
