"""Keys of issuers: read by https, kept for a while, and asked for anew with restraint.

What was read is believed for a quarter of an hour, and for a day while it cannot be
read again. A token that names an unknown key may be the first after a rotation, or one
of a flood: so it has the keys read again, but never twice within the cooldown.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from typing import Any, Final, Protocol
from urllib.parse import urljoin, urlsplit

import jwt
import msgspec
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from trimtab.client import TrimtabError
from trimtab.client.calling import Place, Reply
from trimtab.operators.vmafx.tenancy.judging import endpoint_problem
from trimtab.operators.vmafx.tenancy.tokens import Key

FRESH: Final = 15 * 60.0
KEPT: Final = 24 * 3600.0
COOLDOWN: Final = 10.0
DEADLINE: Final = 5.0
MOST_BYTES: Final = 256 * 1024
MOST_KEYS: Final = 64
MOST_ISSUERS: Final = 1024
_HOPS: Final = 3
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
# A shorter one is no proof, and a longer one a way to keep us busy.
_RSA_BITS: Final = range(2048, 8192 + 1)

log = logging.getLogger(__name__)


class NoKeys(TrimtabError):
    """The keys of an issuer cannot be had at present."""


class Calls(Protocol):
    """Who sends a request; :class:`trimtab.client.calling.Caller` does."""

    async def call(
        self, place: Place, method: str, path: str, *, within: float, limit: int
    ) -> Reply: ...


class _Shelf:
    """The keys of one address."""

    def __init__(self) -> None:
        self.keys: tuple[Key, ...] = ()
        self.read = float("-inf")
        self.tried = float("-inf")
        self.problem = "nobody has read them yet."
        """Why they could not be read last; empty if they were."""
        self.reading: asyncio.Future[None] | None = None

    def has(self, id: str) -> bool:
        return any(id in ("", key.id) for key in self.keys)


class Keys:
    """The keys of many issuers, by where they are read.

    Flow: ``run`` in a task group; until then nothing is read, and who asks waits.

    Guarantees: an address is asked at most once in a ``COOLDOWN``, whatever tokens
    claim; nobody waits while the last answer will do. Reading is a task of its own: a
    caller that hangs up neither ends nor repeats it.

    Errors: :class:`NoKeys` when there are none that may still be believed.
    """

    def __init__(self, calls: Calls, *, ca: bytes | None = None) -> None:
        self._calls = calls
        self._group: asyncio.TaskGroup | None = None
        self._ca = ca
        self._shelves: dict[str, _Shelf] = {}

    async def run(self) -> None:
        """Read what is asked for, until cancelled."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            for url, shelf in self._shelves.items():
                if shelf.reading is not None:  # asked for before there was a group
                    group.create_task(self._read(url, shelf))
            try:
                await asyncio.get_running_loop().create_future()
            finally:
                self._group = None

    async def get(self, url: str, *, id: str) -> tuple[Key, ...]:
        """All keys that are read at an address, for a token that names one of them."""
        shelf = self._shelf(url)
        now = asyncio.get_running_loop().time()
        is_fresh = now - shelf.read < FRESH
        is_usable = now - shelf.read < KEPT
        if not (is_fresh and shelf.has(id)):
            self._begin(url, shelf, now)
            # In an outage that is known of, what is kept is used without waiting.
            will_do = is_usable and shelf.has(id) and (is_fresh or shelf.problem)
            if shelf.reading is not None and not will_do:
                await asyncio.wait([shelf.reading], timeout=2 * DEADLINE)
        now = asyncio.get_running_loop().time()
        if now - shelf.read >= KEPT or (shelf.problem and not shelf.has(id)):
            raise NoKeys(f"The keys at {url} cannot be read: {shelf.problem}")
        return shelf.keys

    def keep(self, urls: Iterable[str]) -> None:
        """Forget what is read from other addresses than these."""
        for url in self._shelves.keys() - set(urls):
            del self._shelves[url]

    def _shelf(self, url: str) -> _Shelf:
        if (found := self._shelves.pop(url, None)) is None:
            found = _Shelf()
            if len(self._shelves) >= MOST_ISSUERS:
                del self._shelves[next(iter(self._shelves))]
        self._shelves[url] = found  # the last: who was not asked for goes first
        return found

    def _begin(self, url: str, shelf: _Shelf, now: float) -> None:
        if shelf.reading is not None or now - shelf.tried < COOLDOWN:
            return
        shelf.tried = now
        shelf.reading = asyncio.get_running_loop().create_future()
        if self._group is not None:
            self._group.create_task(self._read(url, shelf))

    async def _read(self, url: str, shelf: _Shelf) -> None:
        began, reading = asyncio.get_running_loop().time(), shelf.reading
        try:
            async with asyncio.timeout(DEADLINE):
                shelf.keys = parsed(await self._fetched(url))
            shelf.read, shelf.problem = began, ""
        except TimeoutError:
            shelf.problem = f"it does not answer within {DEADLINE:g} s."
        except TrimtabError as error:
            shelf.problem = f"{error}."
        except Exception as error:
            # An address may be such that nothing can be at it: it is one tenant's.
            shelf.problem = f"it cannot be asked ({type(error).__name__})."
        finally:
            shelf.reading = None
            if reading is not None:
                reading.set_result(None)
        if shelf.problem:
            log.warning("The keys at %s cannot be read: %s", url, shelf.problem)

    async def _fetched(self, url: str) -> bytes:
        """The answer at the end of the redirects, all of them by https."""
        for _ in range(_HOPS):
            if problem := endpoint_problem(url):
                raise NoKeys(problem.rstrip("."))
            parts = urlsplit(url)
            host, path = parts.hostname or "", parts.path or "/"
            place = Place(host=host, port=parts.port or 443, name=host, ca=self._ca)
            reply = await self._calls.call(
                place,
                "GET",
                f"{path}?{parts.query}" if parts.query else path,
                within=DEADLINE,
                limit=MOST_BYTES,
            )
            if reply.status == 200:
                return reply.body
            target = reply.head.all("location")
            if reply.status not in _REDIRECTS or not target:
                raise NoKeys(f"it answers {reply.status}")
            url = urljoin(url, target[0])
        raise NoKeys(f"it redirects {_HOPS} times")


def parsed(body: bytes) -> tuple[Key, ...]:
    """The keys of a JWKS that can verify what we accept; others are left out.

    Errors: :class:`NoKeys` for what is no JWKS.
    """
    try:
        found = msgspec.json.decode(body)["keys"]
        plain = [each for each in found if isinstance(each, dict)][:MOST_KEYS]
    except (msgspec.DecodeError, KeyError, TypeError, ValueError):
        raise NoKeys("it is no JWKS") from None
    return tuple(key for each in plain if (key := _key(each)) is not None)


def _key(jwk: dict[str, Any]) -> Key | None:
    """A public key for signatures, with the one algorithm that it is for.

    A private one is left out: whoever published it has given it away.
    """
    id = jwk.get("kid", "")
    if "d" in jwk or jwk.get("use", "sig") != "sig" or not isinstance(id, str):
        return None
    if "verify" not in jwk.get("key_ops", ["verify"]):
        return None
    try:
        public = _public(jwk)
    except (jwt.PyJWTError, ValueError, TypeError):
        return None
    algorithm = jwk.get("alg")
    if isinstance(public, rsa.RSAPublicKey) and algorithm in (None, "RS256"):
        return Key(id, "RS256", public) if public.key_size in _RSA_BITS else None
    if isinstance(public, ec.EllipticCurvePublicKey) and algorithm in (None, "ES256"):
        return Key(id, "ES256", public)
    return None


def _public(jwk: dict[str, Any]) -> object:
    if jwk.get("kty") == "RSA":
        return jwt.algorithms.RSAAlgorithm.from_jwk(jwk)
    if jwk.get("kty") == "EC" and jwk.get("crv") == "P-256":
        return jwt.algorithms.ECAlgorithm.from_jwk(jwk)
    return None
