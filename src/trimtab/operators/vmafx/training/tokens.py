"""Tokens of trainers: whoever changes something in one shows its own.

One key for each installation is in a Secret beside the operator. A token is made of it
and of the training, so nobody has to keep one: the operator and the gateway make it,
the gateway tells it to nodes, and a trainer knows its digest only.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
from random import Random
from typing import Final

from trimtab.api import Metadata
from trimtab.client import AlreadyExists, Client, NotFound, TrimtabError
from trimtab.kinds import Secret
from trimtab.operators.vmafx.training.kinds import VmafxModelTraining

SECRET: Final = "vmafx-trainers"
"""The Secret with the key, in the namespace of the operator and of the gateway."""
ENTRY: Final = "key"
SIZE: Final = 32
LIFETIME: Final = 30.0
"""Seconds after which the key is read again: another may have been put there."""
DIGEST: Final = "sha256:"
"""What a digest begins with, so that nobody takes it for a token."""


class BadKey(TrimtabError):
    """The Secret is there, and there is no key in it."""


def token_of(key: bytes, training: VmafxModelTraining) -> str:
    """What is shown to the trainer of a training; one that is made anew has another."""
    who = "/".join((*training.key, training.metadata.uid))
    return hmac.digest(key, who.encode(), "sha256").hex()


def digest_of(token: str) -> str:
    """What a trainer knows a token by; it can be seen by anybody."""
    return DIGEST + hashlib.sha256(token.encode()).hexdigest()


def bearer(token: str) -> tuple[tuple[str, str], ...]:
    """The headers of a request that shows a token; none without one."""
    return (("Authorization", f"Bearer {token}"),) if token else ()


class Key:
    """The key of an installation, as it was read last.

    Flow: ``fresh`` before ``token``; it asks the server only if what it knows is old.

    Guarantees: of any number who make the first key, one does, and all have that one.
    What was known stays known while the server does not answer.

    Assumptions: ``random`` is a ``SystemRandom``: whoever can foresee it can make
    tokens.

    Errors: the client's own; :class:`BadKey`; ``NotFound`` without a ``random`` to make
    one with.
    """

    def __init__(
        self, client: Client, *, namespace: str, random: Random | None = None
    ) -> None:
        self._client = client
        self._namespace = namespace
        self._random = random
        self._content = b""
        self._until = 0.0

    @property
    def is_known(self) -> bool:
        return bool(self._content)

    async def fresh(self) -> None:
        """Read the key if it is not known, or old; make it if there is none."""
        now = asyncio.get_running_loop().time()
        if self._content and now < self._until:
            return
        self._content = await self._found_or_made()
        self._until = now + LIFETIME

    def forget(self) -> None:
        """Somebody did not accept it: the next ``fresh`` reads it again."""
        self._until = 0.0

    def token(self, training: VmafxModelTraining) -> str:
        """What is shown to the trainer of a training; another has another."""
        assert self._content, "it was read before"
        return token_of(self._content, training)

    async def _found_or_made(self) -> bytes:
        try:
            return await self._read()
        except NotFound:
            if self._random is None:
                raise
        where = Metadata(name=SECRET, namespace=self._namespace)
        made = self._random.randbytes(SIZE)
        try:
            await self._client.create(
                Secret(metadata=where, type="Opaque", data={ENTRY: made})
            )
            return made
        except AlreadyExists:  # somebody else was first
            return await self._read()

    async def _read(self) -> bytes:
        found = await self._client.get(Secret, SECRET, namespace=self._namespace)
        content = found.data.get(ENTRY, b"")
        if len(content) < SIZE:
            raise BadKey(
                f"The Secret {self._namespace}/{SECRET} has no {ENTRY} of at least "
                f"{SIZE} bytes: delete it, and the operator makes another."
            )
        return content
