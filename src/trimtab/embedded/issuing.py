"""Issuing: a certificate for a request, for just the usages that it names."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cryptography import x509

USAGES = {
    "signing": "digital_signature",
    "digital signature": "digital_signature",
    "content commitment": "content_commitment",
    "key encipherment": "key_encipherment",
    "key agreement": "key_agreement",
    "data encipherment": "data_encipherment",
    "cert sign": "key_cert_sign",
    "crl sign": "crl_sign",
    "encipher only": "encipher_only",
    "decipher only": "decipher_only",
}
PURPOSES = {"server auth": "SERVER_AUTH", "client auth": "CLIENT_AUTH"}
# For clients whose clock is behind ours; short ones do not end earlier for it.
BACKDATE = timedelta(minutes=5)
SHORT = timedelta(hours=8)


def template(
    request: x509.CertificateSigningRequest,
    *,
    usages: Collection[str],
    lifetime: timedelta,
    last: datetime,
    now: datetime,
) -> x509.CertificateBuilder:
    """What is to be signed, but for the issuer; it ends with its authority."""
    from cryptography import x509

    ends = now + lifetime - (BACKDATE if lifetime >= SHORT else timedelta())
    builder = (
        x509.CertificateBuilder()
        .subject_name(request.subject)
        .public_key(request.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - BACKDATE)
        .not_valid_after(min(ends, last))
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    )
    for extension, critical in _extensions(request, usages):
        builder = builder.add_extension(extension, critical=critical)
    return builder


def _extensions(
    request: x509.CertificateSigningRequest, usages: Collection[str]
) -> list[tuple[x509.ExtensionType, bool]]:
    from cryptography import x509
    from cryptography.x509.oid import ExtendedKeyUsageOID

    found: list[tuple[x509.ExtensionType, bool]] = []
    named = {USAGES[each] for each in usages if each in USAGES}
    if named:
        flags = {each: each in named for each in USAGES.values()}
        if not flags["key_agreement"]:
            flags["encipher_only"] = flags["decipher_only"] = False
        found.append((x509.KeyUsage(**flags), True))
    purposes = [PURPOSES[each] for each in usages if each in PURPOSES]
    if purposes:
        oids = [getattr(ExtendedKeyUsageOID, each) for each in sorted(purposes)]
        found.append((x509.ExtendedKeyUsage(oids), False))
    for extension in request.extensions:
        if isinstance(extension.value, x509.SubjectAlternativeName):
            found.append((extension.value, extension.critical))
    return found
