"""Certificates: an authority for one certificate, which nobody can use for a second.

An authority is made, signs one certificate for a server, and its key is forgotten: what
is not kept cannot be stolen. A renewal makes a new authority. P-256 keys take a
fraction of a millisecond to make. What makes certificates is imported when one is made;
reading takes no more than :mod:`ssl`.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec

import msgspec

from trimtab.client.credentials import Guarded
from trimtab.client.errors import TrimtabError

BLOCK = re.compile(
    rb"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL
)


class CryptographyMissing(TrimtabError):
    """The package that makes certificates is not installed."""


class Issued(Guarded, frozen=True, kw_only=True):
    """A certificate for a server with its key, and the authority that signed it."""

    authority: bytes
    certificate: bytes
    key: bytes
    names: tuple[str, ...]
    made: datetime
    expires: datetime

    def shown(self) -> Mapping[str, object]:
        return {"names": self.names, "expires": self.expires}

    @property
    def pem(self) -> bytes:
        """Key and certificate in one text."""
        return self.key + self.certificate


def require_cryptography() -> None:
    """Refuse to begin what would fail when the first certificate is due.

    Errors: :class:`CryptographyMissing`.
    """
    if find_spec("cryptography") is None:
        raise CryptographyMissing(
            "The certificates of webhooks need the package cryptography: install "
            "trimtab[webhooks], or name a folder of certificates with "
            "--webhook-certificates."
        )


def issue(names: Iterable[str], *, lifetime: timedelta, now: datetime) -> Issued:
    """A new authority, and a certificate for a server that is reached by these names.

    Guarantees: both last for the lifetime, to the second above.
    """
    from trimtab.client import certifying

    served = tuple(names)
    # Certificates count in seconds; a part of one is not worth less than none.
    expires = (now + lifetime + timedelta(seconds=1)).replace(microsecond=0)
    above, below = certifying.new_key(), certifying.new_key()
    title = certifying.name("trimtab-webhooks-authority")
    leaf = certifying.certificate(
        # A common name has 64 characters at most; who asks goes by the others.
        certifying.name(served[0][:64]),
        below,
        issuer=title,
        signer=above,
        now=now,
        until=expires,
        names=served,
    )
    return Issued(
        authority=certifying.authority(title, above, now=now, until=expires),
        certificate=leaf,
        key=certifying.key_pem(below),
        names=served,
        made=now,
        expires=expires,
    )


def split(bundle: bytes) -> tuple[bytes, ...]:
    """The certificates of a bundle, each once, in order."""
    return tuple(dict.fromkeys(each + b"\n" for each in BLOCK.findall(bundle)))


def joined(authorities: Iterable[bytes]) -> bytes:
    return b"".join(dict.fromkeys(authorities))


def expiry(authority: bytes) -> datetime | None:
    """When an authority ends; None if it is none."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        context.load_verify_locations(cadata=authority.decode("ascii"))
        (found,) = context.get_ca_certs()
        seconds = ssl.cert_time_to_seconds(str(found["notAfter"]))
    except (ssl.SSLError, ValueError, KeyError):
        return None
    return datetime.fromtimestamp(seconds, UTC)


def lasting(authorities: Iterable[bytes], *, now: datetime) -> tuple[bytes, ...]:
    """Those that have not expired."""
    return tuple(
        each
        for each in authorities
        if (ends := expiry(each)) is not None and ends > now
    )


class About(msgspec.Struct, frozen=True, kw_only=True):
    """What is written down beside a certificate, so that reading one takes nothing."""

    names: tuple[str, ...]
    made: datetime
    expires: datetime
