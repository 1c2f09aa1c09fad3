"""The certificate that a gateway shows: one that was given, or one that it makes.

What it makes is signed by an authority in the Secret ``vmafx-gateway-ca``, which all
replicas share; whom to trust is in the ConfigMap ``vmafx-gateway``, for nodes to mount.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import grpc

from trimtab.api import Metadata
from trimtab.client import Client, ConfigError, TrimtabError
from trimtab.kinds import ConfigMap
from trimtab.operators.vmafx.kinds import GATEWAY_NAME as NAME
from trimtab.pool import secrets
from trimtab.pool.keyring import authority_name, stored_authority
from trimtab.pool.secrets import Pair
from trimtab.runtime.remote import credentials
from trimtab.runtime.webhooks.serving import CannotServe, load_pair, new_context

RENEW_SECONDS: Final = 3600.0

log = logging.getLogger(__name__)


class Certificate:
    """The certificate of a gateway, for both of its ports.

    Flow: ``load`` before anything is served; ``run`` in a task has it renewed: files
    are read again, and one of its own is made again before it expires.

    Guarantees: connections that stand go on, and those that follow get the new one.

    Errors: :class:`ConfigError` for files that cannot be read, or are no pair.
    """

    def __init__(
        self,
        client: Client,
        *,
        namespace: str,
        now: Callable[[], datetime],
        names: tuple[str, ...] = (),
        files: tuple[Path, Path] | None = None,
    ) -> None:
        self._client = client
        self._namespace = namespace
        self._now = now
        self._names = names
        self._files = files
        self._pair: Pair
        self.context = new_context()

    async def load(self) -> None:
        """Have a certificate, and show it from now on."""
        pair = self._given(*self._files) if self._files else await self._made()
        pem = pair.private + b"\n" + pair.certificate
        try:
            load_pair(new_context(), pem)  # a bad one changes nothing
            load_pair(self.context, pem)
        except CannotServe:
            raise ConfigError(
                "The certificate of the gateway and its key do not belong together, or "
                "cannot be read: name two PEM files that do."
            ) from None
        self._pair = pair

    async def run(self) -> None:
        """Renew it, until cancelled."""
        while True:
            await asyncio.sleep(RENEW_SECONDS)
            try:
                if self._files or secrets.is_due(self._pair.expires, now=self._now()):
                    await self.load()
            except TrimtabError as error:
                log.warning("The certificate was not renewed: %s", error)

    def credentials(self) -> grpc.ServerCredentials:
        """The same, for gRPC: asked for with every connection."""

        def shown() -> tuple[bytes, bytes]:
            pair = self._pair
            return pair.private, pair.certificate

        return credentials(shown)

    def _given(self, certificate: Path, key: Path) -> Pair:
        try:
            return Pair(
                certificate=certificate.read_bytes(),
                private=key.read_bytes(),
                expires=self._now() + secrets.LIFETIME,
            )
        except OSError as error:
            reason = (error.strerror or "no reason given").lower()
            raise ConfigError(
                f"{error.filename}, of the gateway's TLS, cannot be read: {reason}; "
                "name another file."
            ) from error

    async def _made(self) -> Pair:
        if find_spec("cryptography") is None:
            raise ConfigError(
                "A gateway makes its own certificate with cryptography, which is not "
                "installed: pip install 'trimtab[webhooks]', or name a certificate and "
                "a key."
            )
        authority = await stored_authority(
            self._client,
            Metadata(name=authority_name(NAME), namespace=self._namespace),
            title="vmafx gateway",
            now=self._now,
        )
        published = ConfigMap(
            metadata=Metadata(name=NAME, namespace=self._namespace),
            data={secrets.AUTHORITY: authority.pem.decode()},
        )
        await self._client.apply(published, manager=NAME, force=True)
        return authority.issue(*self._names, now=self._now())
