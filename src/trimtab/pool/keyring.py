"""The keyring: each pool's certificate authority, and each worker's own keys.

The authority is kept in the Secret ``<pool>-ca``, owned by the pool. Two replicas that
make it at one moment end with the same: the second one's create is refused, and it
reads. Before it expires it is followed by another (:mod:`trimtab.pool.rotating`), of
which everybody hears by looking again now and then. A worker's keys are read from its
Secret once.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from random import Random
from typing import Final, Generic, NamedTuple, TypeVar

import msgspec

from trimtab.api import Metadata, Resource, owner_of
from trimtab.api.kinds import Secret
from trimtab.client import AlreadyExists, Client, NotFound, TrimtabError
from trimtab.pool import secrets
from trimtab.pool.calls import CallFailed, Target
from trimtab.pool.kinds import LABEL_POOL, LABEL_WORKER, Worker, WorkerPool
from trimtab.pool.rotating import authority_of, rotated
from trimtab.pool.secrets import Authority

AUTHORITIES: Final = 256
KEYS: Final = 16 * 1024
"""So many are held in memory; what is over that is read again when it is needed."""
TYPE: Final = "trimtab.dev/worker"
LOOK_AGAIN: Final = timedelta(minutes=10)
"""How old what we know of an authority may be; below what another needs to ripen."""

logger = logging.getLogger("trimtab.pool")

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


class Known(NamedTuple):
    """An authority, and when we looked."""

    authority: Authority
    at: datetime


class SecretKeyring:
    """Keeps keys in Secrets.

    Guarantees: at most one authority at a time signs for a pool, unless its Secret is
    deleted; the next one signs when every keyring has heard of it. No key shows in a
    repr or in a message.

    Assumptions: ``random`` is a ``SystemRandom``; whoever can foresee it can make
    tokens.
    """

    def __init__(
        self, client: Client, *, now: Callable[[], datetime], random: Random
    ) -> None:
        self._client = client
        self._now = now
        self._random = random
        self._authorities: Recent[Known] = Recent(AUTHORITIES)
        """By the uid of the pool."""
        self._targets: Recent[Target] = Recent(KEYS)
        self._shared: dict[bytes, bytes] = {}

    async def authority(self, pool: Resource) -> Authority:
        """The authority of a pool that was read from the server, made if need be."""
        uid, now = pool.metadata.uid, self._now()
        known = self._authorities.get(uid)
        if known is not None and abs(now - known.at) < LOOK_AGAIN:
            return known.authority
        made = await self._found_or_made(pool)
        return self._authorities.put(uid, Known(made, now)).authority

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
        trusted = await self._trusted(worker)
        known = self._targets.get(uid)
        if known is not None and known.address == status.address:
            if trusted is None or known.ca is trusted:
                return known
            return self._targets.put(uid, msgspec.structs.replace(known, ca=trusted))
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
            ca=trusted or self._same(ca),
            key=key,
            bearer=secrets.control(key, uid),
        )
        return self._targets.put(uid, target)

    async def _trusted(self, worker: Worker) -> bytes | None:
        """Whom to trust for a pool's workers; None if only its worker's Secret knows.

        While the API server does not answer, what was known stays.
        """
        uid = next((each.uid for each in worker.metadata.ownerReferences), "")
        known, now = self._authorities.get(uid), self._now()
        if not uid or (known is not None and abs(now - known.at) < LOOK_AGAIN):
            return known.authority.pem if known else None
        if known is not None:  # who comes meanwhile need not look as well
            self._authorities.put(uid, known._replace(at=now))
        pool, namespace = worker.spec.pool, worker.metadata.namespace
        name = authority_name(pool)
        try:
            found = await self._client.get(Secret, name, namespace=namespace)
            made = await _followed(self._client, found, title=_title(pool), now=now)
        except TrimtabError as error:
            logger.warning("The authority %s cannot be read: %s", name, error)
            return known.authority.pem if known else None
        if known is not None and known.authority.pem == made.pem:
            made = known.authority  # the same bytes for all who have them
        return self._authorities.put(uid, Known(made, now)).authority.pem

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
            title=_title(name),
            now=self._now,
        )


def _title(pool: str) -> str:
    return f"pool {pool}"


async def stored_authority(
    client: Client, metadata: Metadata, *, title: str, now: Callable[[], datetime]
) -> Authority:
    """The authority that a Secret holds; it is made if there is none.

    One that expires before long is followed by another, in two steps: see
    :mod:`trimtab.pool.rotating`. Where that fails, the present one does for now.
    """
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
    return await _followed(client, found, title=title, now=now())


async def _followed(
    client: Client, found: Secret, *, title: str, now: datetime
) -> Authority:
    """The authority of a Secret, after the step of its rotation that is due, if any."""
    data, name = rotated(found.data, title=title, now=now), found.metadata.name
    if data is not None:
        try:
            found = await _swapped(client, found, data)
            logger.info("The authority %s is followed by another.", name)
        except TrimtabError as error:
            logger.warning("The authority %s was not rotated: %s", name, error)
    return authority_of(found.data)


async def _swapped(client: Client, found: Secret, data: dict[str, bytes]) -> Secret:
    """The Secret with other data, if nobody else has written it."""
    gone = {key: None for key in found.data if key not in data}
    body = {
        "metadata": {
            "uid": found.metadata.uid,
            "resourceVersion": found.metadata.resourceVersion,
        },
        "data": {**Secret(metadata=Metadata(), data=data).data, **gone},
    }
    name, namespace = found.metadata.name, found.metadata.namespace
    return await client.patch(Secret, name, body, namespace=namespace)
