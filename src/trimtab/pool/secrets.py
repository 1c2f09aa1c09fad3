"""Secrets: what lets a gateway, a worker and its one client know each other.

Each pool has a certificate authority of its own (Secret ``<pool>-ca``), and each worker
a Secret with a certificate for its name, signed by that authority, and a key for HMACs
that nobody shares with another worker. A client's token is an HMAC over worker,
checkout and epoch: it is worth nothing for another worker, or after the next checkout.

``cryptography`` is imported when a certificate is made, not before.
"""

from __future__ import annotations

import hmac
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from datetime import datetime, timedelta
from random import Random
from typing import TYPE_CHECKING, Final

from trimtab.api.times import parse_rfc3339
from trimtab.client.credentials import Guarded
from trimtab.client.errors import TrimtabError

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec

AUTHORITY_LIFETIME: Final = timedelta(days=3650)
LIFETIME: Final = timedelta(days=30)
RENEW_BEFORE: Final = timedelta(days=10)
"""A certificate is made again when it has less than this left."""
KEY_BYTES: Final = 32

# The names in the data of a Secret.
KEY, UID, NAME = "key", "uid", "name"
CERTIFICATE, PRIVATE, AUTHORITY = "tls.crt", "tls.key", "ca.crt"
AUTHORITY_PRIVATE: Final = "ca.key"
EXPIRES: Final = "trimtab.dev/certificate-expires"
"""The annotation of a Secret that tells when its certificate does."""


class NoCertificates(TrimtabError):
    """No certificate can be made here."""


def token(key: bytes, worker_uid: str, checkout: str, epoch: int) -> str:
    """What the client of one checkout shows to its worker."""
    return _mac(key, "use", worker_uid, checkout, str(epoch))


def control(key: bytes, worker_uid: str) -> str:
    """What a gateway shows to a worker: to begin, to clean, to activate, to ask."""
    return _mac(key, "control", worker_uid)


def verify(shown: str, expected: str) -> bool:
    """Whether a token is the expected one, in a time that tells nothing about it."""
    return hmac.compare_digest(shown.encode(), expected.encode())


def _mac(key: bytes, *parts: str) -> str:
    # No part can hold a NUL, so no two lists of parts make the same text.
    if any("\0" in part for part in parts):
        raise ValueError("no part of a token may hold a NUL")
    digest = hmac.digest(key, "\0".join(parts).encode(), "sha256")
    return urlsafe_b64encode(digest).rstrip(b"=").decode()


class Pair(Guarded, frozen=True, kw_only=True):
    """A certificate and its key, as PEM."""

    certificate: bytes
    private: bytes
    expires: datetime

    def shown(self) -> dict[str, object]:
        return {"expires": self.expires}


class Authority:
    """The certificate authority of one pool."""

    def __init__(self, certificate: bytes, private: bytes) -> None:
        self.pem = certificate
        """Whom clients and gateways trust: its own certificate, and perhaps those of
        authorities before and after it."""
        self._private = private
        self._parts: tuple[x509.Certificate, ec.EllipticCurvePrivateKey] | None = None

    def __repr__(self) -> str:
        return "Authority()"

    @classmethod
    def make(cls, title: str, *, now: datetime) -> Authority:
        """A new one; trusted by nobody who was not told to."""
        _require()
        from trimtab.client import certifying

        key, name = certifying.new_key(), certifying.name(f"trimtab {title}"[:64])
        until = now + AUTHORITY_LIFETIME
        made = certifying.authority(name, key, now=now, until=until)
        return cls(made, certifying.key_pem(key))

    @classmethod
    def of_data(cls, data: dict[str, bytes]) -> Authority:
        """The one that a Secret holds."""
        if not (data.get(AUTHORITY) and data.get(AUTHORITY_PRIVATE)):
            raise NoCertificates(
                f"The Secret of the pool's authority has no {AUTHORITY} or no "
                f"{AUTHORITY_PRIVATE}; delete it, and a new one is made."
            )
        return cls(data[AUTHORITY], data[AUTHORITY_PRIVATE])

    def beside(self, others: bytes) -> Authority:
        """The same one, beside which others are trusted."""
        return Authority(self.pem + others, self._private)

    @property
    def expires(self) -> datetime:
        """When nobody trusts it any more."""
        return self._certificate().not_valid_after_utc

    @property
    def made(self) -> datetime:
        """When it was made."""
        from trimtab.client.certifying import SKEW

        return self._certificate().not_valid_before_utc + SKEW

    def data(self) -> dict[str, bytes]:
        """What goes into its Secret."""
        return {AUTHORITY: self.pem, AUTHORITY_PRIVATE: self._private}

    def issue(self, *names: str, now: datetime, lifetime: timedelta = LIFETIME) -> Pair:
        """A certificate for a server that is reached under these names."""
        _require()
        from trimtab.client import certifying

        above, signer = self._loaded()
        key, until = (
            certifying.new_key(),
            min(now + lifetime, above.not_valid_after_utc),
        )
        made = certifying.certificate(
            certifying.name(names[0][:64]),
            key,
            issuer=above.subject,
            signer=signer,
            now=now,
            until=until,
            names=names,
        )
        private = certifying.key_pem(key)
        return Pair(certificate=made, private=private, expires=until)

    def _certificate(self) -> x509.Certificate:
        """Its own; others come after it."""
        _require()
        from trimtab.client import certifying

        return certifying.read(self.pem)

    def _loaded(self) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
        if self._parts is None:
            _require()
            from trimtab.client import certifying

            try:
                key = certifying.read_key(self._private)
            except ValueError as error:
                raise NoCertificates(
                    "The key of the pool's authority is not one that this program "
                    "makes; delete its Secret, and a new one is made."
                ) from error
            self._parts = self._certificate(), key
        return self._parts


def worker_data(
    name: str, uid: str, *, authority: Authority, now: datetime, random: Random
) -> tuple[dict[str, bytes], datetime]:
    """The data of a new worker's Secret, and when its certificate expires.

    Assumptions: ``random`` is a ``SystemRandom``, except in a simulation: the key is
    all that keeps a stranger from making tokens.
    """
    pair = authority.issue(name, now=now)
    data = {
        KEY: random.randbytes(KEY_BYTES),
        UID: uid.encode(),
        NAME: name.encode(),
        **_served(pair, authority),
    }
    return data, pair.expires


def renewed(
    data: dict[str, bytes], *, authority: Authority, now: datetime
) -> tuple[dict[str, bytes], datetime]:
    """The same Secret with a new certificate; the key for HMACs stays."""
    pair = authority.issue(data[NAME].decode(), now=now)
    return {**data, **_served(pair, authority)}, pair.expires


def expires(annotations: Mapping[str, str]) -> datetime | None:
    """When the certificate of a Secret does, by its annotation; None if that is bad."""
    try:
        return parse_rfc3339(annotations.get(EXPIRES, ""))
    except ValueError:
        return None


def is_due(expires: datetime, *, now: datetime) -> bool:
    """Whether a certificate is to be made again."""
    return expires - now < RENEW_BEFORE


def _served(pair: Pair, authority: Authority) -> dict[str, bytes]:
    return {
        CERTIFICATE: pair.certificate,
        PRIVATE: pair.private,
        AUTHORITY: authority.pem,
    }


def _require() -> None:
    """Refuse in one sentence where the package that makes certificates is missing."""
    try:
        import cryptography.x509  # noqa: F401
    except ImportError as error:
        raise NoCertificates(
            "Workers need certificates, and the package cryptography is not installed:"
            " install trimtab[pool]."
        ) from error
