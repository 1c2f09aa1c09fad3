"""Certificates: an authority of one's own, and what it signs.

P-256 keys, because they take a fraction of a millisecond to make where RSA takes a
second. All that is kept or handed out is PEM.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from trimtab.client.credentials import Guarded
from trimtab.client.errors import TrimtabError
from trimtab.embedded.issuing import template

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec

AUTHORITY_LIFETIME = timedelta(days=3650)
LIFETIME = timedelta(days=365)
# For clients whose clock is behind ours.
SKEW = timedelta(hours=1)


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
        if _loaded(pair.certificate).public_key() != _loaded_key(key).public_key():
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
    return _key_pem(_new_key())


def is_key(pem: bytes) -> bool:
    """Whether a text is a private key such as :func:`new_key` makes."""
    try:
        _loaded_key(pem)
    except ValueError:
        return False
    return True


class Authority:
    """A certificate authority that nothing trusts but what it was made for."""

    def __init__(self, pair: Pair) -> None:
        self.pair = pair
        self._certificate = _loaded(pair.certificate)
        self._key = _loaded_key(pair.key)

    @classmethod
    def make(cls, common_name: str, *, now: datetime) -> Authority:
        """A new one."""
        from cryptography import x509

        key = _new_key()
        name = _name(common_name, ())
        usage = _usage(key_cert_sign=True, crl_sign=True, digital_signature=True)
        builder = (
            _builder(subject=name, issuer=name, key=key, signer=key)
            .not_valid_before(now - SKEW)
            .not_valid_after(now + AUTHORITY_LIFETIME)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(usage, critical=True)
        )
        return cls(_signed(builder, key=key, signer=key))

    def issue_server(
        self, common_name: str, *, names: Collection[str], now: datetime
    ) -> Pair:
        """A certificate for a server that is reached under these names."""
        from cryptography import x509
        from cryptography.x509.oid import ExtendedKeyUsageOID

        key = _new_key()
        alternatives = x509.SubjectAlternativeName([_general(each) for each in names])
        builder = self._leaf(key, _name(common_name, ()), now).add_extension(
            x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False
        )
        builder = builder.add_extension(alternatives, critical=False)
        return _signed(builder, key=key, signer=self._key)

    def issue_client(
        self, common_name: str, *, groups: Sequence[str], now: datetime
    ) -> Pair:
        """A certificate for a client, whose user and groups it names."""
        from cryptography import x509
        from cryptography.x509.oid import ExtendedKeyUsageOID

        key = _new_key()
        builder = self._leaf(key, _name(common_name, groups), now).add_extension(
            x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False
        )
        return _signed(builder, key=key, signer=self._key)

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

        try:
            _loaded(pair.certificate).verify_directly_issued_by(self._certificate)
        except (InvalidSignature, ValueError, TypeError):
            return False
        return True

    def _leaf(
        self, key: ec.EllipticCurvePrivateKey, subject: x509.Name, now: datetime
    ) -> x509.CertificateBuilder:
        from cryptography import x509

        issuer = self._certificate.subject
        ends = min(now + LIFETIME, self._certificate.not_valid_after_utc)
        return (
            _builder(subject=subject, issuer=issuer, key=key, signer=self._key)
            .not_valid_before(now - SKEW)
            .not_valid_after(ends)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), True)
            .add_extension(_usage(digital_signature=True), critical=True)
        )


def expiry(pair: Pair) -> datetime:
    """When a certificate ends."""
    return _loaded(pair.certificate).not_valid_after_utc


def names_of(pair: Pair) -> frozenset[str]:
    """The names and addresses that a server's certificate is for."""
    from cryptography import x509

    try:
        found = _loaded(pair.certificate).extensions.get_extension_for_class(
            x509.SubjectAlternativeName
        )
    except x509.ExtensionNotFound:
        return frozenset()
    return frozenset(str(each.value) for each in found.value)


def _general(name: str) -> x509.GeneralName:
    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _name(common_name: str, groups: Sequence[str]) -> x509.Name:
    """Kubernetes reads the user from the common name, groups from organizations."""
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, each) for each in groups]
    return x509.Name([*parts, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _builder(
    *,
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    signer: ec.EllipticCurvePrivateKey,
) -> x509.CertificateBuilder:
    from cryptography import x509

    own = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    above = x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key())
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .add_extension(own, critical=False)
        .add_extension(above, critical=False)
    )


def _signed(
    builder: x509.CertificateBuilder,
    *,
    key: ec.EllipticCurvePrivateKey,
    signer: ec.EllipticCurvePrivateKey,
) -> Pair:
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.serialization import Encoding

    certificate = builder.sign(signer, hashes.SHA256())
    return Pair(certificate.public_bytes(Encoding.PEM), _key_pem(key))


def _usage(
    *,
    digital_signature: bool = False,
    key_cert_sign: bool = False,
    crl_sign: bool = False,
) -> x509.KeyUsage:
    from cryptography import x509

    return x509.KeyUsage(
        digital_signature=digital_signature,
        key_cert_sign=key_cert_sign,
        crl_sign=crl_sign,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _new_key() -> ec.EllipticCurvePrivateKey:
    from cryptography.hazmat.primitives.asymmetric import ec

    return ec.generate_private_key(ec.SECP256R1())


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    from cryptography.hazmat.primitives import serialization

    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def _loaded(pem: bytes) -> x509.Certificate:
    from cryptography import x509

    return x509.load_pem_x509_certificate(pem)


def _loaded_key(pem: bytes) -> ec.EllipticCurvePrivateKey:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    try:
        key = serialization.load_pem_private_key(pem, password=None)
    except TypeError:  # it is encrypted
        raise ValueError("the key needs a passphrase") from None
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise ValueError("the key is of another kind")
    return key
