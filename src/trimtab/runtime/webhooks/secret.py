"""The Secret: where the replicas of an operator share their certificates.

The first replica makes it, the others read and watch it; every change is a
compare-and-swap, so whoever is late finds that the others were faster. One that is
deleted is made again from what is in memory, with the next certificate announced.
"""

from __future__ import annotations

import asyncio
import logging
from base64 import b64encode
from collections.abc import Callable, Collection
from datetime import datetime, timedelta
from random import Random
from typing import Any, NamedTuple

import msgspec

from trimtab.api.kinds.core import Secret
from trimtab.api.resource import Metadata
from trimtab.cache import Scope
from trimtab.cache.informer import Informer
from trimtab.client import Client
from trimtab.client.credentials import Guarded
from trimtab.client.errors import Conflict, NotFound, TrimtabError
from trimtab.runtime.definitions import OPERATOR_LABEL
from trimtab.runtime.webhooks import rotation
from trimtab.runtime.webhooks.certificates import About, Issued, issue, joined, split
from trimtab.runtime.webhooks.rotation import Kept, Wish

ABOUT = "about.json"
TYPE = "kubernetes.io/tls"
DONE = {
    Wish.MAKE: "a new one is made and served",
    Wish.ANNOUNCE: "the next one is made, and its authority is to be trusted",
    Wish.PROMOTE: "the next one is trusted, and is served from now on",
    Wish.TIDY: "an authority that has expired is forgotten",
}
ROUNDS = 8
"""More steps at once than any state is away from being steady."""

logger = logging.getLogger("trimtab.runtime.webhooks")


class NotOurs(TrimtabError):
    """There is a Secret of that name which somebody else made."""


class Material(Guarded, frozen=True, kw_only=True):
    """What a server is to serve, and whom API servers are to trust."""

    serving: bytes
    """Key and certificates, in one text."""
    bundle: tuple[bytes, ...] | None
    """The authorities; None: somebody else tells the API servers."""
    waiting: bool = False
    """Whether a next certificate waits for its authority to be trusted."""


class Terms(NamedTuple):
    """What certificates are made for."""

    operator: str
    names: tuple[str, ...]
    lifetime: timedelta


class SecretSource:
    """Keeps the certificates of an operator in a Secret, with all other replicas.

    Flow: ``run()`` in a task group; ``advance()`` whenever ``wake`` was called or
    ``due()`` seconds have passed.

    Guarantees: a certificate is served only after ``advance`` was told that its
    authority is trusted, unless nothing else is good any more.
    """

    def __init__(
        self,
        client: Client,
        name: str,
        terms: Terms,
        *,
        now: Callable[[], datetime],
        random: Random,
        wake: Callable[[], None],
    ) -> None:
        self._client = client
        self._terms = terms
        self._now = now
        self._key = (client.config.namespace, name)
        scope = Scope(namespaces=(self._key[0],), fields=f"metadata.name={name}")
        self._informer = Informer(client, Secret, scope, random=random)
        self._informer.subscribe(lambda _: wake())
        self._last: Kept | None = None
        """What was kept when it was last seen."""

    async def run(self) -> None:
        """Follow the Secret."""
        await self._informer.run()

    def due(self) -> float:
        """Seconds until something is to be done, if nobody else does anything."""
        if self._last is None:
            return 0.0
        return rotation.due(self._last, now=self._now()).total_seconds()

    async def advance(self, *, trusted: Collection[bytes]) -> Material:
        """Do what is due; what to serve then.

        ``trusted`` are the authorities that API servers have trusted for a while.

        Errors: :class:`NotOurs`, and whatever the client raises. Somebody who was
        faster is no error: they are seen in a moment.
        """
        await self._informer.wait_synced()
        for _ in range(ROUNDS):
            secret = self._informer.store.get(self._key)
            kept = read(secret) if secret is not None else None
            wish = self._wish(secret, kept, trusted)
            if wish is Wish.NOTHING and kept is not None:
                self._last = kept
                return material(kept)
            try:
                await self._write(secret, await self._next(wish, kept))
            except (Conflict, NotFound):
                await self._reread(secret)
        raise TrimtabError(
            f"The Secret {'/'.join(self._key)} is changed by others again and again; "
            "give each operator a Secret of its own."
        )

    def _wish(
        self, secret: Secret | None, kept: Kept | None, trusted: Collection[bytes]
    ) -> Wish:
        now, names = self._now(), self._terms.names
        if secret is None and self._last is not None:
            lost = rotation.wish(self._last, names=names, now=now, trusted=())
            return lost if lost in (Wish.MAKE, Wish.PROMOTE) else Wish.ANNOUNCE
        if secret is not None and kept is None:
            self._check_ours(secret)
        return rotation.wish(kept, names=names, now=now, trusted=trusted)

    async def _next(self, wish: Wish, kept: Kept | None) -> Kept:
        now, terms = self._now(), self._terms
        kept = kept or self._last
        logger.info("The certificate of the webhooks: %s.", DONE[wish])
        if wish is Wish.MAKE or kept is None:
            return rotation.begun(await self._issued(terms.names))
        if wish is Wish.PROMOTE:
            return rotation.promoted(kept, now=now)
        if wish is Wish.TIDY:
            return rotation.tidied(kept, now=now)
        names = terms.names
        if not set(names) <= set(kept.current.names):
            # While versions are replaced by others, both are reached by their names.
            names = tuple(dict.fromkeys((*names, *kept.current.names)))
        issued = await self._issued(names)
        before = msgspec.structs.replace(kept, next=None)
        return rotation.announced(before, issued, now=now)

    async def _issued(self, names: tuple[str, ...]) -> Issued:
        now, lifetime = self._now(), self._terms.lifetime
        # The first import of what makes them takes a tenth of a second.
        return await asyncio.to_thread(issue, names, lifetime=lifetime, now=now)

    async def _write(self, secret: Secret | None, kept: Kept) -> None:
        namespace, name = self._key
        data = data_of(kept)
        if secret is None:
            labels = {OPERATOR_LABEL: self._terms.operator}
            meta = Metadata(name=name, namespace=namespace, labels=labels)
            made = await self._client.create(
                Secret(metadata=meta, type=TYPE, data=data)
            )
        else:
            body = {
                "metadata": {"resourceVersion": secret.metadata.resourceVersion},
                "data": {key: None for key in secret.data if key not in data}
                | {key: b64encode(value).decode() for key, value in data.items()},
            }
            made = await self._client.patch(Secret, name, body, namespace=namespace)
        self._informer.store.written(made)

    async def _reread(self, before: Secret | None) -> None:
        """See what somebody did before us; the watch would tell in a moment."""
        namespace, name = self._key
        found = [
            each
            async for each in self._client.list(
                Secret, namespace=namespace, fields=f"metadata.name={name}"
            )
        ]
        for each in found:
            self._informer.store.written(each)
        if not found and before is not None:
            self._informer.store.deleted(self._key, before.metadata.uid)

    def _check_ours(self, secret: Secret) -> None:
        if secret.metadata.labels.get(OPERATOR_LABEL) != self._terms.operator:
            raise NotOurs(
                f"The Secret {'/'.join(self._key)} is not one that the operator "
                f"{self._terms.operator} made for its webhooks; name another one, or "
                "delete it."
            )


def material(kept: Kept) -> Material:
    return Material(
        serving=kept.current.pem,
        bundle=kept.authorities,
        waiting=kept.next is not None,
    )


def data_of(kept: Kept) -> dict[str, bytes]:
    """What is kept, as the data of a Secret; ``tls.*`` and ``ca.crt`` as others do."""
    issued = {"tls": kept.current} | ({"next": kept.next} if kept.next else {})
    about = {
        name: About(names=each.names, made=each.made, expires=each.expires)
        for name, each in issued.items()
    }
    parts: dict[str, bytes] = {
        "ca.crt": joined(kept.authorities),
        ABOUT: msgspec.json.encode(about),
    }
    for name, each in issued.items():
        parts |= {
            f"{name}.crt": each.certificate,
            f"{name}.key": each.key,
            f"{name}-ca.crt": each.authority,
        }
    return parts


def read(secret: Secret) -> Kept | None:
    """What a Secret keeps; None if it is nothing that could be gone by."""
    data = secret.data
    try:
        about = msgspec.json.decode(data[ABOUT], type=dict[str, About])
        return Kept(
            current=_issued(data, about, "tls"),
            next=_issued(data, about, "next") if "next" in about else None,
            authorities=split(data["ca.crt"]),
        )
    except (KeyError, AssertionError, msgspec.MsgspecError):
        return None


def _issued(data: dict[str, bytes], about: dict[str, Any], name: str) -> Issued:
    told: About = about[name]
    return Issued(
        authority=data[f"{name}-ca.crt"],
        certificate=data[f"{name}.crt"],
        key=data[f"{name}.key"],
        names=told.names,
        made=told.made,
        expires=told.expires,
    )
