"""The keyring: each pool's certificate authority, and each worker's own keys.

The authority is kept in the Secret ``<pool>-ca``, owned by the pool. Two replicas that
make it at one moment end with the same: the second one's create is refused, and it
reads. A worker's keys are read from its Secret once.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from random import Random
from typing import Final, Generic, TypeVar

from trimtab.api import Metadata, Resource, owner_of
from trimtab.api.kinds import Secret
from trimtab.client import AlreadyExists, Client, NotFound
from trimtab.pool import secrets
from trimtab.pool.calls import CallFailed, Target
from trimtab.pool.kinds import LABEL_POOL, LABEL_WORKER, Worker, WorkerPool
from trimtab.pool.secrets import Authority

AUTHORITIES: Final = 256
KEYS: Final = 16 * 1024
"""So many are held in memory; what is over that is read again when it is needed."""
TYPE: Final = "trimtab.dev/worker"

T = TypeVar("T")


def authority_name(pool: str) -> str:
    """The Secret of a pool's authority."""
    return f"{pool}-ca"


class Recent(Generic[T]):
    """What was used last, by key, and no more than a number of them."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._kept: dict[str, T] = {}

    def get(self, key: str) -> T | None:
        if (found := self._kept.pop(key, None)) is not None:
            self._kept[key] = found
        return found

    def put(self, key: str, value: T) -> T:
        self._kept.pop(key, None)
        self._kept[key] = value
        if len(self._kept) > self._limit:
            del self._kept[next(iter(self._kept))]
        return value


class SecretKeyring:
    """Keeps keys in Secrets.

    Guarantees: at most one authority is ever made for a pool, unless its Secret is
    deleted. No key shows in a repr or in a message.

    Assumptions: ``random`` is a ``SystemRandom``; whoever can foresee it can make
    tokens.
    """

    def __init__(
        self, client: Client, *, now: Callable[[], datetime], random: Random
    ) -> None:
        self._client = client
        self._now = now
        self._random = random
        self._authorities: Recent[Authority] = Recent(AUTHORITIES)
        self._targets: Recent[Target] = Recent(KEYS)
        self._shared: dict[bytes, bytes] = {}

    async def authority(self, pool: Resource) -> Authority:
        """The authority of a pool that was read from the server, made if need be."""
        uid = pool.metadata.uid
        known = self._authorities.get(uid)
        return known or self._authorities.put(uid, await self._found_or_made(pool))

    async def secret(self, worker: Worker, *, pool: WorkerPool) -> Secret:
        """The Secret that a new worker gets, under its own name; nothing is created."""
        name, uid = worker.metadata.name, worker.metadata.uid
        authority = await self.authority(pool)
        data, expires = secrets.worker_data(
            name, uid, authority=authority, now=self._now(), random=self._random
        )
        return Secret(
            metadata=Metadata(
                name=name,
                namespace=worker.metadata.namespace,
                labels={LABEL_POOL: worker.spec.pool, LABEL_WORKER: name},
                annotations={secrets.EXPIRES: expires.isoformat(timespec="seconds")},
                ownerReferences=[owner_of(worker)],
            ),
            type=TYPE,
            data=data,
        )

    async def renew(self, worker: Worker, *, pool: WorkerPool) -> datetime:
        """Make a worker's certificate again if it is due; when it expires then."""
        name, namespace = worker.metadata.name, worker.metadata.namespace
        found = await self._client.get(Secret, name, namespace=namespace)
        expires = secrets.expires(found.metadata.annotations)
        if expires is not None and not secrets.is_due(expires, now=self._now()):
            return expires
        authority = await self.authority(pool)
        data, expires = secrets.renewed(
            dict(found.data), authority=authority, now=self._now()
        )
        made = Secret(metadata=Metadata(name=name), data=data)
        text = expires.isoformat(timespec="seconds")
        body = {
            "metadata": {
                "resourceVersion": found.metadata.resourceVersion,
                "annotations": {secrets.EXPIRES: text},
            },
            "data": made.data,
        }
        await self._client.patch(Secret, name, body, namespace=namespace)
        return expires

    async def target(self, worker: Worker) -> Target:
        """Whom to call for a worker whose status has an address.

        Errors: :class:`CallFailed` when its Secret is gone or cannot be read.
        """
        uid, status = worker.metadata.uid, worker.status
        known = self._targets.get(uid)
        if known is not None and known.address == status.address:
            return known
        name, namespace = worker.metadata.name, worker.metadata.namespace
        try:
            found = await self._client.get(Secret, name, namespace=namespace)
            key, ca = found.data[secrets.KEY], found.data[secrets.AUTHORITY]
        except (NotFound, KeyError) as error:
            raise CallFailed(
                f"The keys of worker {namespace}/{name} cannot be read ({error}), so it"
                " cannot be called; it is replaced."
            ) from error
        target = Target(
            name=name,
            uid=uid,
            address=status.address,
            port=status.port or 0,
            ca=self._same(ca),
            key=key,
            bearer=secrets.control(key, uid),
        )
        return self._targets.put(uid, target)

    def token(self, target: Target, *, checkout: str, epoch: int) -> str:
        """What the holder of a checkout shows to the worker."""
        return secrets.token(target.key, target.uid, checkout, epoch)

    def _same(self, pem: bytes) -> bytes:
        """The same bytes for all workers of a pool, not a copy for each."""
        if len(self._shared) > AUTHORITIES:
            self._shared.clear()
        return self._shared.setdefault(pem, pem)

    async def _found_or_made(self, pool: Resource) -> Authority:
        name = pool.metadata.name
        return await stored_authority(
            self._client,
            Metadata(
                name=authority_name(name),
                namespace=pool.metadata.namespace,
                labels={LABEL_POOL: name},
                ownerReferences=[owner_of(pool, controller=False)],
            ),
            title=f"pool {name}",
            now=self._now,
        )


async def stored_authority(
    client: Client, metadata: Metadata, *, title: str, now: Callable[[], datetime]
) -> Authority:
    """The authority that a Secret holds; it is made if there is none."""
    name, namespace = metadata.name, metadata.namespace
    try:
        found = await client.get(Secret, name, namespace=namespace)
    except NotFound:
        made = Authority.make(title, now=now())
        try:
            await client.create(
                Secret(metadata=metadata, type="Opaque", data=made.data())
            )
            return made
        except AlreadyExists:
            found = await client.get(Secret, name, namespace=namespace)
    return Authority.of_data(dict(found.data))
