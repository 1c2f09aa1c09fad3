"""PEM: the blocks of a text, and the certificates and requests for them inside.

What is read here came from a client; problems are told in the real server's words, as
far as they are not those of a parser.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from cryptography import x509

CERTIFICATE = "CERTIFICATE"
REQUEST = "CERTIFICATE REQUEST"
_block = re.compile(
    rb"(?:^|(?<=\n))-----BEGIN ([^\n]*?)-----[ \t]*\r?\n(.*?)(?:^|(?<=\n))-----END \1"
    rb"-----",
    re.DOTALL,
)


class Block(msgspec.Struct, frozen=True):
    """One block of a text."""

    label: str
    headers: bool
    data: bytes


def blocks(text: bytes) -> Iterator[Block]:
    """All that can be read; what stands around them is passed over."""
    for found in _block.finditer(text):
        label, body = found[1].decode("utf-8", "replace"), found[2]
        headers, gap, rest = body.partition(b"\n\n")
        if not gap or b":" not in headers:
            headers, rest = b"", body
        try:
            data = base64.b64decode(b"".join(rest.split()), validate=True)
        except binascii.Error:
            continue
        yield Block(label, bool(headers), data)


def decoded(value: str) -> bytes:
    """Bytes as JSON has them; those that cannot be read are none."""
    try:
        return base64.b64decode(value)
    except binascii.Error:
        return b""


def signing_request(text: bytes) -> x509.CertificateSigningRequest:
    """A request for a certificate.

    Errors: ``ValueError`` if there is none.
    """
    from cryptography import x509

    block = next(blocks(text), None)
    if block is None or block.label != REQUEST:
        raise ValueError(f"PEM block type must be {REQUEST}")
    try:
        return x509.load_der_x509_csr(block.data)
    except ValueError:
        raise ValueError("asn1: structure error: tags don't match") from None


def check_certificates(text: bytes) -> None:
    """That a text is certificates and nothing else.

    Errors: ``ValueError`` if it is not.
    """
    from cryptography import x509

    found = list(blocks(text))
    for block in found:
        if block.label != CERTIFICATE:
            raise ValueError(
                f'only CERTIFICATE PEM blocks are allowed, found "{block.label}"'
            )
        if block.headers:
            raise ValueError("no PEM block headers are permitted")
        try:
            x509.load_der_x509_certificate(block.data)
        except ValueError:
            raise ValueError("x509: malformed certificate") from None
    if not found:
        raise ValueError("must contain at least one CERTIFICATE PEM block")
