"""Certificates: an authority for one certificate, which nobody can use for a second.

An authority is made, signs one certificate for a server, and its key is forgotten: what
is not kept cannot be stolen. A renewal makes a new authority. P-256 keys take a
fraction of a millisecond to make. What makes certificates is imported when one is made;
reading takes no more than :mod:`ssl`.
"""

from __future__ import annotations

import ipaddress
import re
import ssl
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from typing import TYPE_CHECKING

import msgspec

from trimtab.client.credentials import Guarded
from trimtab.client.errors import TrimtabError

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec

SKEW = timedelta(hours=1)
"""For API servers whose clock is behind ours."""
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
    from cryptography import x509
    from cryptography.x509.oid import ExtendedKeyUsageOID

    served = tuple(names)
    # Certificates count in seconds; a part of one is not worth less than none.
    expires = (now + lifetime + timedelta(seconds=1)).replace(microsecond=0)
    above, below = _new_key(), _new_key()
    title = _name("trimtab-webhooks-authority")
    authority = (
        _builder(title, title, above, above, now=now, expires=expires)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs=True), critical=True)
    )
    # A common name has 64 characters at most; who asks goes by the others.
    leaf = (
        _builder(_name(served[0][:64]), title, below, above, now=now, expires=expires)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs=False), critical=True)
        .add_extension(
            x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False
        )
        .add_extension(
            x509.SubjectAlternativeName([_general(each) for each in served]),
            critical=False,
        )
    )
    return Issued(
        authority=_signed(authority, above),
        certificate=_signed(leaf, above),
        key=_key_pem(below),
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


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    signer: ec.EllipticCurvePrivateKey,
    *,
    now: datetime,
    expires: datetime,
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
        .not_valid_before(now - SKEW)
        .not_valid_after(expires)
        .add_extension(own, critical=False)
        .add_extension(above, critical=False)
    )


def _signed(
    builder: x509.CertificateBuilder, signer: ec.EllipticCurvePrivateKey
) -> bytes:
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.serialization import Encoding

    return builder.sign(signer, hashes.SHA256()).public_bytes(Encoding.PEM)


def _usage(*, signs: bool) -> x509.KeyUsage:
    from cryptography import x509

    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=signs,
        crl_sign=signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _name(text: str) -> x509.Name:
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _general(name: str) -> x509.GeneralName:
    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


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
