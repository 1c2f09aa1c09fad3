"""Laws of certificates under load: they come and go, and no request notices."""

from __future__ import annotations

import asyncio
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.runtime.webhooks.balancing import balancing
from tests.runtime.webhooks.sites import (
    OldSite,
    Site,
    client_of,
    counts,
    down,
    local,
    operator,
    page,
    ready,
    replica,
    served,
    serving,
    up,
)
from trimtab import Client
from trimtab.api.kinds.core import Secret
from trimtab.client.errors import NotFound
from trimtab.runtime.manager import Manager
from trimtab.runtime.webhooks.certificates import Issued, issue, split
from trimtab.runtime.webhooks.configurations import (
    MutatingWebhookConfiguration as Configuration,
)
from trimtab.runtime.webhooks.routing import Router
from trimtab.testing import Cluster, eventually

OLD = {
    "apiVersion": OldSite.apiVersion,
    "kind": "Site",
    "metadata": {"name": "a"},
    "spec": {"host": "h", "port": "1"},
}


class Load:
    """Requests, one after the other, each of which must be answered well."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.count = 0

    async def run(self) -> None:
        while True:
            made = await self._client.create(page("a"), dry_run=True)
            assert made.metadata.annotations["asked"] == "CREATE"
            await self._client.create(OLD, dry_run=True)
            self.count += 1
            await asyncio.sleep(0.03)

    async def goes_on(self) -> None:
        """Wait for a few requests that begin from now on."""
        before = self.count
        await eventually(lambda: self.count > before + 5)


def alone(*managers: Manager) -> None:
    """Have each answer end its connection, so that every request is a handshake."""
    for manager in managers:
        assert manager.webhooks is not None
        manager.webhooks.server.ending = True


async def test_certificates_are_replaced_under_load_without_a_failed_request(
    cluster: Cluster, namespace: str
) -> None:
    app = operator()
    app.converts(OldSite, Site)(up).back(down)
    async with balancing() as balancer, served(app, cluster, namespace) as client:
        # A third of the life is what a machine may stall for before it has expired.
        options = local(url=balancer.url, lifetime=9.0, settle=0.3)
        async with (
            client_of(cluster, namespace) as beside,
            replica(app, cluster, client, options) as one,
            replica(app, cluster, beside, options) as other,
        ):
            balancer.replicas += [one, other]
            await ready(one, client)
            await ready(other, client)
            alone(one, other)
            load, seen = Load(client), dict[bytes, None]()

            async def renewed() -> bool:
                found = await client.get(Secret, "pages-webhooks")
                seen[found.data["tls.crt"]] = None
                return len(seen) > 1

            async with asyncio.TaskGroup() as group:
                task = group.create_task(load.run())
                await eventually(renewed, within=30, every=0.1)
                await load.goes_on()
                task.cancel()
            # Every request was a handshake, with one replica or the other.
            assert balancer.taken > load.count > 5
            found = await client.get(Configuration, f"pages-{namespace}")
            # Those that are still good, and not all that there ever were.
            assert len(split(found.webhooks[0].clientConfig.caBundle)) <= 3


async def test_renewals_that_follow_each_other_fail_no_request_under_load(
    cluster: Cluster, namespace: str
) -> None:
    """The second begins the moment that the first one is served."""
    app = operator()
    app.converts(OldSite, Site)(up).back(down)
    async with balancing() as balancer, served(app, cluster, namespace) as client:
        options = local(url=balancer.url, settle=1.0)
        async with (
            client_of(cluster, namespace) as beside,
            replica(app, cluster, client, options) as one,
            replica(app, cluster, beside, options) as other,
        ):
            balancer.replicas += [one, other]
            await ready(one, client)
            await ready(other, client)
            alone(one, other)
            load = Load(client)
            async with asyncio.TaskGroup() as group:
                task = group.create_task(load.run())
                for _ in range(2):
                    await renewed(client)
                    await load.goes_on()
                task.cancel()
            assert balancer.taken > load.count


async def renewed(client: Client) -> None:
    """Delete the Secret, and wait until another certificate is served."""
    before = await client.get(Secret, "pages-webhooks")
    await client.delete(Secret, "pages-webhooks")

    async def other() -> bool:
        try:
            found = await client.get(Secret, "pages-webhooks")
        except NotFound:
            return False
        return found.data["tls.crt"] != before.data["tls.crt"]

    await eventually(other, within=20)


async def test_a_replica_that_ends_under_load_fails_no_request(
    cluster: Cluster, namespace: str
) -> None:
    app = operator()
    app.converts(OldSite, Site)(up).back(down)
    async with balancing() as balancer, served(app, cluster, namespace) as client:
        options = local(url=balancer.url, linger=0.5)
        async with (
            client_of(cluster, namespace) as beside,
            replica(app, cluster, client, options) as stays,
        ):
            balancer.replicas.append(stays)
            await ready(stays, client)
            load = Load(client)
            async with asyncio.TaskGroup() as group:
                async with replica(app, cluster, beside, options) as goes:
                    await eventually(goes.ready.is_set)
                    balancer.replicas[:] = [goes]
                    alone(stays)  # so that the next request goes to the other one
                    task = group.create_task(load.run())
                    answered = router(goes).outcomes
                    await eventually(lambda: answered.total() > 10)
                    # A Service leads to who is not ending.
                    goes.stop()
                    balancer.replicas[:] = [stays]
                await load.goes_on()
                task.cancel()


def router(manager: Manager) -> Router:
    assert manager.webhooks is not None
    return manager.webhooks.router


async def test_a_deleted_secret_begins_a_renewal_that_nobody_notices(
    cluster: Cluster, namespace: str
) -> None:
    app = operator()
    options = local(settle=0.2)
    async with serving(app, cluster, namespace, options) as (client, manager):
        alone(manager)
        before = await client.get(Secret, "pages-webhooks")
        assert before.type == "kubernetes.io/tls"
        await client.delete(Secret, "pages-webhooks")

        async def replaced() -> bool:
            await counts(client)
            try:
                found = await client.get(Secret, "pages-webhooks")
            except NotFound:
                return False
            return found.data["tls.crt"] != before.data["tls.crt"]

        await eventually(replaced)
        await counts(client)


async def test_a_secret_of_somebody_else_is_left_alone(
    cluster: Cluster, namespace: str
) -> None:
    app = operator()
    async with served(app, cluster, namespace) as client:
        body = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "pages-webhooks"},
            "stringData": {"mine": "yes"},
        }
        await client.create(body)
        said = "is not one that the operator pages made for its webhooks; name another"
        with pytest.raises(ExceptionGroup) as failed:
            async with replica(app, cluster, client, local()) as manager:
                await eventually(manager.ready.is_set, within=3)
        assert said in str(leaf(failed.value))
        assert (await client.get(Secret, "pages-webhooks")).data == {"mine": b"yes"}


def leaf(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def write(folder: Path, issued: Issued) -> None:
    """Replace the files as a volume does: all of them appear at once."""
    made = folder / issued.made.isoformat()
    made.mkdir()
    for name, data in (
        ("tls.crt", issued.certificate),
        ("tls.key", issued.key),
        ("ca.crt", issued.authority),
    ):
        (made / name).write_bytes(data)
    link = folder / "next"
    link.symlink_to(made)
    link.rename(folder / "current")


def certificate(issued: Issued | bytes) -> bytes:
    pem = issued if isinstance(issued, bytes) else issued.certificate
    return ssl.PEM_cert_to_DER_cert(pem.decode())


async def shown(manager: Manager) -> bytes:
    """The certificate that the webhooks show to who asks."""
    assert manager.webhooks is not None
    port = manager.webhooks.server.port
    text = await asyncio.to_thread(ssl.get_server_certificate, ("127.0.0.1", port))
    return certificate(text.encode())


async def test_files_are_served_and_replaced_when_they_change(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    day, now = timedelta(days=1), datetime.now(UTC)
    one = issue(["127.0.0.1"], lifetime=day, now=now)
    two = issue(["127.0.0.1"], lifetime=day, now=now + timedelta(minutes=1))
    write(tmp_path, one)
    app = operator()
    options = local(certificates=str(tmp_path / "current"), settle=0.2)
    async with serving(app, cluster, namespace, options) as (client, manager):
        alone(manager)
        assert await shown(manager) == certificate(one)
        # One that is of no use changes nothing.
        broken = tmp_path / "current" / "tls.key"
        broken.write_bytes(two.key)
        write(tmp_path, two)

        async def replaced() -> bool:
            await counts(client)
            return await shown(manager) == certificate(two)

        await eventually(replaced)
        await counts(client)
        with pytest.raises(NotFound):
            await client.get(Secret, "pages-webhooks")
