"""Certifying: authorities and what they sign, as X.509 in PEM.

P-256 keys, because they take a fraction of a millisecond to make where RSA takes a
second. This imports ``cryptography``: who makes certificates imports it when the first
one is due.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, TypeAlias

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

Key: TypeAlias = ec.EllipticCurvePrivateKey

SKEW: Final = timedelta(hours=1)
"""For clients whose clock is behind ours."""


def new_key() -> Key:
    """A private key."""
    return ec.generate_private_key(ec.SECP256R1())


def key_pem(key: Key, *, traditional: bool = False) -> bytes:
    """A private key as text, also in the form that came before PKCS #8."""
    form = serialization.PrivateFormat.PKCS8
    if traditional:
        form = serialization.PrivateFormat.TraditionalOpenSSL
    return key.private_bytes(
        serialization.Encoding.PEM, form, serialization.NoEncryption()
    )


def read_key(pem: bytes) -> Key:
    """The private key that a text is; ``ValueError`` for one that is not ours."""
    try:
        key = serialization.load_pem_private_key(pem, password=None)
    except TypeError:  # it is encrypted
        raise ValueError("the key needs a passphrase") from None
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise ValueError("the key is of another kind")
    return key


def read(pem: bytes) -> x509.Certificate:
    """The certificate that a text is, or begins with."""
    return x509.load_pem_x509_certificate(pem)


def name(common_name: str, groups: Sequence[str] = ()) -> x509.Name:
    """Kubernetes reads the user from the common name, groups from organizations."""
    parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, each) for each in groups]
    return x509.Name([*parts, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def authority(title: x509.Name, key: Key, *, now: datetime, until: datetime) -> bytes:
    """The certificate of an authority that signs for nobody but servers and clients."""
    builder = _builder(title, key, now=now, until=until)
    return _signed(builder, issuer=title, signer=key, signs=True)


def certificate(
    subject: x509.Name,
    key: Key,
    *,
    issuer: x509.Name,
    signer: Key,
    now: datetime,
    until: datetime,
    names: Collection[str] = (),
) -> bytes:
    """One for a server that is reached under these names, without any for a client."""
    builder = _builder(subject, key, now=now, until=until)
    purpose = ExtendedKeyUsageOID.CLIENT_AUTH
    if names:
        purpose = ExtendedKeyUsageOID.SERVER_AUTH
        others = x509.SubjectAlternativeName([_reached_under(each) for each in names])
        builder = builder.add_extension(others, critical=False)
    builder = builder.add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
    return _signed(builder, issuer=issuer, signer=signer, signs=False)


def _builder(
    subject: x509.Name, key: Key, *, now: datetime, until: datetime
) -> x509.CertificateBuilder:
    own = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before((now - SKEW).astimezone(UTC))
        .not_valid_after(until.astimezone(UTC))
        .add_extension(own, critical=False)
    )


def _signed(
    builder: x509.CertificateBuilder, *, issuer: x509.Name, signer: Key, signs: bool
) -> bytes:
    above = x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key())
    limits = x509.BasicConstraints(ca=signs, path_length=0 if signs else None)
    made = (
        builder.issuer_name(issuer)
        .add_extension(above, critical=False)
        .add_extension(limits, critical=True)
        .add_extension(_usage(signs=signs), critical=True)
        .sign(signer, hashes.SHA256())
    )
    return made.public_bytes(serialization.Encoding.PEM)


def _reached_under(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(text))
    except ValueError:
        return x509.DNSName(text)


def _usage(*, signs: bool) -> x509.KeyUsage:
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
