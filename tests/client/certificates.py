"""Certificates for servers in tests: a good one, and one for each way to be bad."""

from __future__ import annotations

import datetime
import ipaddress
import ssl
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import Literal, NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

Flaw = Literal["none", "expired", "other name", "unknown authority"]

HOUR = datetime.timedelta(hours=1)
WEEK = datetime.timedelta(days=7)


class Pair(NamedTuple):
    """A certificate and its key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    def pem(self) -> bytes:
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    def key_pem(self) -> bytes:
        return self.key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )


@lru_cache(maxsize=4)
def authority(name: str) -> Pair:
    """An authority that nobody trusts who was not told to."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = _name(name)
    builder = _builder(subject, subject, key.public_key(), ends=WEEK).add_extension(
        x509.BasicConstraints(ca=True, path_length=0), critical=True
    )
    return Pair(builder.sign(key, hashes.SHA256()), key)


@lru_cache(maxsize=8)
def server_context(flaw: Flaw = "none") -> ssl.SSLContext:
    """What a server on 127.0.0.1 presents to its clients."""
    pair = _server(flaw)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pair.pem"
        path.touch(mode=0o600)
        path.write_bytes(pair.pem() + pair.key_pem())
        context.load_cert_chain(path)
    return context


def _server(flaw: Flaw) -> Pair:
    issuer = authority("strangers" if flaw == "unknown authority" else "tests")
    key = ec.generate_private_key(ec.SECP256R1())
    names: list[x509.GeneralName] = [x509.DNSName("elsewhere.example")]
    if flaw != "other name":
        names = [
            x509.IPAddress(ipaddress.ip_address("127.0.0.1")),
            x509.DNSName("localhost"),
            x509.DNSName("api.example"),
        ]
    builder = _builder(
        _name("server"),
        issuer.certificate.subject,
        key.public_key(),
        ends=-HOUR if flaw == "expired" else WEEK,
    ).add_extension(x509.SubjectAlternativeName(names), critical=False)
    return Pair(builder.sign(issuer.key, hashes.SHA256()), key)


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey,
    *,
    ends: datetime.timedelta,
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - 2 * HOUR)
        .not_valid_after(now + ends)
    )
