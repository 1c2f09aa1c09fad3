"""The certificates and keys of one test control plane.

Everything is made afresh for each cluster, lives for a week, and is written with mode
0600. P-256 keys, because they take a millisecond to make where RSA takes a second.
"""

import datetime
import ipaddress
import os
from pathlib import Path
from typing import TYPE_CHECKING

from trimtab.testing.errors import ClusterError

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec

LIFETIME = datetime.timedelta(days=7)
SKEW = datetime.timedelta(hours=1)


def make(folder: Path) -> None:
    """Write every key and certificate that a control plane needs into `folder`.

    `ca`, `apiserver` (for 127.0.0.1, ::1 and localhost), `admin` (in the group
    `system:masters`) and `controller-manager` are pairs of `.crt` and `.key`;
    `service-account.key` signs service account tokens.

    Errors: `ClusterError` when the package `cryptography` is not installed.
    """
    try:
        authority = Authority(folder)
    except ImportError as error:
        raise ClusterError(
            "a real test cluster needs the package cryptography for its certificates: "
            "install it with `pip install trimtab[embedded]`."
        ) from error
    authority.issue("apiserver", common_name="kube-apiserver", server=True)
    authority.issue("admin", common_name="admin", group="system:masters")
    authority.issue("controller-manager", common_name="system:kube-controller-manager")
    _write_key(folder / "service-account.key", _new_key())


class Authority:
    """A certificate authority of its own, which nothing else trusts."""

    def __init__(self, folder: Path) -> None:
        from cryptography import x509

        self._folder = folder
        self._key = _new_key()
        self._name = _name("trimtab-test")
        usage = _usage(key_cert_sign=True, crl_sign=True, digital_signature=True)
        builder = (
            self._builder(self._name, self._key)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(usage, critical=True)
        )
        self._save("ca", builder, self._key)

    def issue(
        self, name: str, *, common_name: str, group: str = "", server: bool = False
    ) -> None:
        """Write `<name>.crt` and `<name>.key`, for a server or else for a client."""
        from cryptography import x509
        from cryptography.x509.oid import ExtendedKeyUsageOID as Purpose

        key = _new_key()
        purpose = Purpose.SERVER_AUTH if server else Purpose.CLIENT_AUTH
        builder = (
            self._builder(_name(common_name, group=group), key)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), True)
            .add_extension(_usage(digital_signature=True), critical=True)
            .add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
        )
        if server:
            builder = builder.add_extension(_loopback(), critical=False)
        self._save(name, builder, key)

    def _builder(
        self, subject: "x509.Name", key: "ec.EllipticCurvePrivateKey"
    ) -> "x509.CertificateBuilder":
        from cryptography import x509

        now = datetime.datetime.now(datetime.UTC)
        own, issuer = key.public_key(), self._key.public_key()
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(own)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - SKEW)
            .not_valid_after(now + LIFETIME)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(own), False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer), False
            )
        )

    def _save(
        self,
        name: str,
        builder: "x509.CertificateBuilder",
        key: "ec.EllipticCurvePrivateKey",
    ) -> None:
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.serialization import Encoding

        certificate = builder.sign(self._key, hashes.SHA256())
        _write_key(self._folder / f"{name}.key", key)
        pem = certificate.public_bytes(Encoding.PEM)
        write_private(self._folder / f"{name}.crt", pem)


def write_private(path: Path, content: bytes) -> None:
    """Write a new file that only this user can read."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)


def _new_key() -> "ec.EllipticCurvePrivateKey":
    from cryptography.hazmat.primitives.asymmetric import ec

    return ec.generate_private_key(ec.SECP256R1())


def _write_key(path: Path, key: "ec.EllipticCurvePrivateKey") -> None:
    from cryptography.hazmat.primitives import serialization

    content = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )
    write_private(path, content)


def _name(common_name: str, *, group: str = "") -> "x509.Name":
    """Kubernetes reads the user from the common name, groups from organizations."""
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    parts = [x509.NameAttribute(NameOID.COMMON_NAME, common_name)]
    if group:
        parts.append(x509.NameAttribute(NameOID.ORGANIZATION_NAME, group))
    return x509.Name(parts)


def _loopback() -> "x509.SubjectAlternativeName":
    from cryptography import x509

    addresses = ("127.0.0.1", "::1")
    return x509.SubjectAlternativeName(
        [
            x509.DNSName("localhost"),
            *(x509.IPAddress(ipaddress.ip_address(address)) for address in addresses),
        ]
    )


def _usage(
    *,
    digital_signature: bool = False,
    key_cert_sign: bool = False,
    crl_sign: bool = False,
) -> "x509.KeyUsage":
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
