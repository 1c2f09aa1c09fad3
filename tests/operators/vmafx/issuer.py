"""An issuer of tokens around a test: real keys, a real certificate, real https."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

import jwt
from aiohttp import web
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from trimtab.operators.vmafx.tenancy.judging import Entry
from trimtab.operators.vmafx.tenancy.kinds import VmafxTenantSpec
from trimtab.testing import pki

Private = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey


@lru_cache(maxsize=4)
def rsa_key(number: int) -> rsa.RSAPrivateKey:
    """A key that took long to make: one for all tests."""
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


class Issuer:
    """Signs tokens, and shows its keys at an address of https."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.keys: dict[str, Private] = {"first": rsa_key(0)}
        self.shown: dict[str, Private] = dict(self.keys)
        """The keys that it publishes; those that it signs with are others' business."""
        self.asked = 0
        self.status = 200
        self.location = ""
        self.held: asyncio.Event | None = None
        """While it is there, and not set, no answer comes."""
        self.url = ""

    @property
    def authority(self) -> bytes:
        return (self._folder / "ca.crt").read_bytes()

    def rotate(self, name: str, key: Private | None = None) -> None:
        """Sign with a new key from now on; the old one is still shown."""
        made = key or ec.generate_private_key(ec.SECP256R1())
        self.keys = {name: made}
        self.shown = {**self.shown, **self.keys}

    def token(self, tenant: str = "acme", *roles: str, **changes: Any) -> str:
        """A token of somebody of a tenant; changes of None are claims left out."""
        [(name, key)] = self.keys.items()
        now = int(datetime.now(UTC).timestamp())
        claims = {
            "iss": self.url,
            "aud": "vmafx",
            "sub": "somebody",
            "iat": now,
            "exp": now + 600,
            "tid": tenant,
            "vmafx_roles": list(roles),
            **changes,
        }
        kept = {name: value for name, value in claims.items() if value is not None}
        algorithm = "RS256" if isinstance(key, rsa.RSAPrivateKey) else "ES256"
        return jwt.encode(kept, key, algorithm, headers={"kid": name})

    def jwk(self, name: str) -> dict[str, Any]:
        key = self.shown[name].public_key()
        kind = jwt.algorithms.RSAAlgorithm
        made: dict[str, Any]
        if isinstance(key, rsa.RSAPublicKey):
            made = kind.to_jwk(key, as_dict=True)
        else:
            made = jwt.algorithms.ECAlgorithm.to_jwk(key, as_dict=True)
        return {**made, "kid": name, "use": "sig"}

    def public_pem(self, name: str = "first") -> bytes:
        return (
            self.shown[name]
            .public_key()
            .public_bytes(
                serialization.Encoding.PEM,
                serialization.PublicFormat.SubjectPublicKeyInfo,
            )
        )

    async def _keys(self, request: web.Request) -> web.Response:
        self.asked += 1
        if self.held is not None:
            await self.held.wait()
        headers = {"Location": self.location} if self.location else {}
        keys = [self.jwk(name) for name in self.shown]
        body = json.dumps({"keys": keys}) if self.status == 200 else "no"
        return web.Response(status=self.status, headers=headers, text=body)

    async def _moved(self, request: web.Request) -> web.Response:
        return web.Response(status=302, headers={"Location": "/keys"})

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[Issuer]:
        """Its server, while the block runs."""
        pki.Authority(self._folder).issue(
            "issuer", common_name="issuer", names=("localhost", "127.0.0.1")
        )
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(
            self._folder / "issuer.crt", self._folder / "issuer.key"
        )
        application = web.Application()
        application.router.add_get("/keys", self._keys)
        application.router.add_get("/moved", self._moved)
        runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
        await site.start()
        self.url = f"https://localhost:{runner.addresses[0][1]}"
        try:
            yield self
        finally:
            if self.held is not None:
                self.held.set()
            await runner.cleanup()

    def spec(self, tenant: str = "acme", **changes: Any) -> VmafxTenantSpec:
        """A tenant that it vouches for."""
        import msgspec

        oidc = {
            "issuer": self.url,
            "jwksEndpoint": f"{self.url}/keys",
            "audience": "vmafx",
            **changes.pop("oidc", {}),
        }
        plain = {"tenantId": tenant, "oidc": oidc, **changes}
        return msgspec.convert(plain, VmafxTenantSpec)

    def entry(self, tenant: str = "acme", **changes: Any) -> Entry:
        """The same, as it is written down."""
        return Entry(tenant, self.spec(tenant, **changes))
