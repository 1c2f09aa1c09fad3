"""Certificates: an authority of one's own, and what it signs.

P-256 keys, because they take a fraction of a millisecond to make where RSA takes a
second. All that is kept or handed out is PEM.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from trimtab.client.credentials import Guarded
from trimtab.client.errors import TrimtabError
from trimtab.embedded.issuing import template

if TYPE_CHECKING:
    from cryptography import x509

AUTHORITY_LIFETIME = timedelta(days=3650)
LIFETIME = timedelta(days=365)


class CryptographyMissing(TrimtabError):
    """The package that makes certificates is not installed."""


class Pair(Guarded, frozen=True):
    """A certificate and its private key, in PEM."""

    certificate: bytes
    key: bytes

    def shown(self) -> Mapping[str, object]:
        return {"certificate": self.certificate}

    @property
    def pem(self) -> bytes:
        """Both in one text, so that one file holds what belongs together."""
        return self.key + self.certificate

    @classmethod
    def parse(cls, pem: bytes) -> Pair:
        """The two parts of one text; ``ValueError`` if they do not belong together."""
        mark = b"-----BEGIN CERTIFICATE-----"
        key, found, rest = pem.partition(mark)
        pair = cls(found + rest, key)
        from trimtab.client import certifying

        own = certifying.read(pair.certificate).public_key()
        if own != certifying.read_key(key).public_key():
            raise ValueError("the key is not the certificate's")
        return pair


def require_cryptography() -> None:
    """Say what to install if certificates cannot be made here."""
    try:
        import cryptography.x509  # noqa: F401
    except ImportError as error:
        raise CryptographyMissing(
            "The embedded API server needs the package cryptography for its "
            "certificates, which is not installed: pip install 'trimtab[embedded]'."
        ) from error


def new_key() -> bytes:
    """A private key."""
    from trimtab.client import certifying

    return certifying.key_pem(certifying.new_key())


def is_key(pem: bytes) -> bool:
    """Whether a text is a private key such as :func:`new_key` makes."""
    from trimtab.client import certifying

    try:
        certifying.read_key(pem)
    except ValueError:
        return False
    return True


class Authority:
    """A certificate authority that nothing trusts but what it was made for."""

    def __init__(self, pair: Pair) -> None:
        from trimtab.client import certifying

        self.pair = pair
        self._certificate = certifying.read(pair.certificate)
        self._key = certifying.read_key(pair.key)

    @classmethod
    def make(cls, common_name: str, *, now: datetime) -> Authority:
        """A new one."""
        from trimtab.client import certifying

        key, name = certifying.new_key(), certifying.name(common_name)
        until = now + AUTHORITY_LIFETIME
        made = certifying.authority(name, key, now=now, until=until)
        return cls(Pair(made, certifying.key_pem(key)))

    def issue_server(
        self, common_name: str, *, names: Collection[str], now: datetime
    ) -> Pair:
        """A certificate for a server that is reached under these names."""
        return self._issued(common_name, (), names=names, now=now)

    def issue_client(
        self, common_name: str, *, groups: Sequence[str], now: datetime
    ) -> Pair:
        """A certificate for a client, whose user and groups it names."""
        return self._issued(common_name, groups, names=(), now=now)

    def issue(
        self,
        request: x509.CertificateSigningRequest,
        *,
        usages: Collection[str],
        lifetime: timedelta,
        now: datetime,
    ) -> bytes:
        """A certificate, PEM, for a request whose key stays with whoever made it."""
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.serialization import Encoding

        above = x509.AuthorityKeyIdentifier.from_issuer_public_key(
            self._key.public_key()
        )
        last = self._certificate.not_valid_after_utc
        builder = (
            template(request, usages=usages, lifetime=lifetime, last=last, now=now)
            .issuer_name(self._certificate.subject)
            .add_extension(above, critical=False)
        )
        return builder.sign(self._key, hashes.SHA256()).public_bytes(Encoding.PEM)

    def signed(self, pair: Pair) -> bool:
        """Whether a certificate is one of ours."""
        from cryptography.exceptions import InvalidSignature

        from trimtab.client import certifying

        try:
            certifying.read(pair.certificate).verify_directly_issued_by(
                self._certificate
            )
        except (InvalidSignature, ValueError, TypeError):
            return False
        return True

    def _issued(
        self,
        common_name: str,
        groups: Sequence[str],
        *,
        names: Collection[str],
        now: datetime,
    ) -> Pair:
        from trimtab.client import certifying

        key = certifying.new_key()
        made = certifying.certificate(
            certifying.name(common_name, groups),
            key,
            issuer=self._certificate.subject,
            signer=self._key,
            now=now,
            until=min(now + LIFETIME, self._certificate.not_valid_after_utc),
            names=names,
        )
        return Pair(made, certifying.key_pem(key))


def expiry(pair: Pair) -> datetime:
    """When a certificate ends."""
    from trimtab.client import certifying

    return certifying.read(pair.certificate).not_valid_after_utc


def names_of(pair: Pair) -> frozenset[str]:
    """The names and addresses that a server's certificate is for."""
    from cryptography import x509

    from trimtab.client import certifying

    try:
        found = certifying.read(pair.certificate).extensions.get_extension_for_class(
            x509.SubjectAlternativeName
        )
    except x509.ExtensionNotFound:
        return frozenset()
    return frozenset(str(each.value) for each in found.value)
