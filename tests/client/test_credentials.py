"""Laws of credentials and TLS material, with real certificates and real handshakes."""

from __future__ import annotations

import asyncio
import datetime
import ipaddress
import logging
import os
import ssl
import tempfile
from pathlib import Path

import msgspec
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.client.credentials import (
    FILE_LIMIT,
    REREAD_AFTER,
    Static,
    TlsFiles,
    TlsMaterial,
    TokenFile,
    basic,
    bearer,
    fits_header,
    read_file,
)
from trimtab.client.errors import ConfigError

secrets = st.text("abcdefghijklmnopqrstuvwxyz0123456789", min_size=12)


def pem(key: ec.EllipticCurvePrivateKey, passphrase: bytes | None = None) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(passphrase)
        if passphrase
        else serialization.NoEncryption(),
    )


class Authority:
    """A certificate authority for one test."""

    def __init__(self, name: str = "test", parent: Authority | None = None) -> None:
        self.private = ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self._parent = parent or self
        self.certificate = self._signed(self.name, self.private, authority=True)

    def issue(
        self, name: str, *alternatives: str, days: int = 1
    ) -> tuple[bytes, bytes]:
        """A certificate and its key."""
        private = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        issued = self._signed(
            subject, private, alternatives=alternatives, days=days, by=self
        )
        return issued, pem(private)

    def _signed(
        self,
        subject: x509.Name,
        private: ec.EllipticCurvePrivateKey,
        *,
        alternatives: tuple[str, ...] = (),
        days: int = 1,
        authority: bool = False,
        by: Authority | None = None,
    ) -> bytes:
        by = by or self._parent
        begin = datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=2)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(by.name)
            .public_key(private.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(begin)
            .not_valid_after(begin + datetime.timedelta(days=2 + days))
            .add_extension(x509.BasicConstraints(authority, None), critical=True)
        )
        if alternatives:
            names = [_alternative(each) for each in alternatives]
            builder = builder.add_extension(
                x509.SubjectAlternativeName(names), critical=False
            )
        signed = builder.sign(by.private, hashes.SHA256())
        return signed.public_bytes(serialization.Encoding.PEM)


def _alternative(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


async def handshake(
    material: TlsMaterial,
    server: tuple[bytes, bytes],
    folder: Path,
    *,
    clients: bytes | None = None,
) -> str | None:
    """Shake hands on loopback; the client's name as the server saw it."""
    chain, key = folder / "server.crt", folder / "server.key"
    chain.write_bytes(server[0])
    key.write_bytes(server[1])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(chain, key)
    if clients is not None:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cadata=clients.decode())
    seen: asyncio.Queue[str | None] = asyncio.Queue()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = writer.get_extra_info("peercert") or {}
        subject = dict(pair[0] for pair in peer.get("subject", ()))
        seen.put_nowait(subject.get("commonName"))
        writer.close()

    listening = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    async with listening:
        port = listening.sockets[0].getsockname()[1]
        reader, writer = await asyncio.open_connection(
            "127.0.0.1",
            port,
            ssl=material.context(),
            server_hostname=material.server_name or "127.0.0.1",
        )
        try:
            await reader.read()
            return await seen.get()
        finally:
            writer.close()
            await writer.wait_closed()


async def test_a_client_certificate_reaches_the_server(
    authority: Authority, tmp_path: Path
) -> None:
    certificate, key = authority.issue("somebody")
    material = TlsMaterial(ca=authority.certificate, certificate=certificate, key=key)
    server = authority.issue("server", "127.0.0.1")
    clients = authority.certificate
    assert await handshake(material, server, tmp_path, clients=clients) == "somebody"


async def test_a_server_of_another_authority_is_refused(
    authority: Authority, tmp_path: Path
) -> None:
    server = Authority("other").issue("server", "127.0.0.1")
    with pytest.raises(ssl.SSLCertVerificationError):
        await handshake(TlsMaterial(ca=authority.certificate), server, tmp_path)


async def test_an_expired_server_is_refused(
    authority: Authority, tmp_path: Path
) -> None:
    server = authority.issue("server", "127.0.0.1", days=-1)
    with pytest.raises(ssl.SSLCertVerificationError, match="expired"):
        await handshake(TlsMaterial(ca=authority.certificate), server, tmp_path)


async def test_a_server_that_has_only_a_common_name_is_refused(
    authority: Authority, tmp_path: Path
) -> None:
    material = TlsMaterial(ca=authority.certificate, server_name="kubernetes")
    with pytest.raises(ssl.SSLCertVerificationError):
        await handshake(material, authority.issue("kubernetes"), tmp_path)


async def test_the_server_name_is_what_is_verified(
    authority: Authority, tmp_path: Path
) -> None:
    server = authority.issue("server", "kubernetes.default")
    right = TlsMaterial(ca=authority.certificate, server_name="kubernetes.default")
    await handshake(right, server, tmp_path)
    with pytest.raises(ssl.SSLCertVerificationError):
        await handshake(TlsMaterial(ca=authority.certificate), server, tmp_path)


async def test_only_the_insecure_flag_turns_verification_off(
    authority: Authority, tmp_path: Path
) -> None:
    server = Authority("other").issue("server", "elsewhere")
    await handshake(TlsMaterial(insecure=True), server, tmp_path)
    for material in (TlsMaterial(), TlsMaterial(ca=authority.certificate)):
        context = material.context()
        assert context.verify_mode is ssl.CERT_REQUIRED
        assert context.check_hostname
        assert context.minimum_version is ssl.TLSVersion.TLSv1_2


async def test_an_intermediate_authority_can_be_the_anchor(
    authority: Authority, tmp_path: Path
) -> None:
    below = Authority("below", parent=authority)
    server = below.issue("server", "127.0.0.1")
    await handshake(TlsMaterial(ca=below.certificate), server, tmp_path)


async def test_a_bundle_may_hold_comments_and_certificates_it_cannot_read(
    authority: Authority, tmp_path: Path
) -> None:
    broken = b"-----BEGIN CERTIFICATE-----\nbm90IG9uZQ==\n-----END CERTIFICATE-----\n"
    bundle = "Autorité de certification\n".encode() + broken + authority.certificate
    server = authority.issue("server", "127.0.0.1")
    await handshake(TlsMaterial(ca=bundle), server, tmp_path)


@pytest.mark.parametrize(
    "bundle",
    [
        b"",
        b"no pem",
        b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
        b"-----BEGIN CERTIFICATE-----\n\xff\n-----END CERTIFICATE-----\n",
        b"-----BEGIN CERTIFICATE-----\n",
    ],
)
def test_a_bundle_without_a_certificate_is_an_error_that_names_it(
    bundle: bytes,
) -> None:
    with pytest.raises(ConfigError, match=r"^config: ca holds no PEM certificate"):
        TlsMaterial(ca=bundle, ca_source="config: ca").context()


def pair(certificate: bytes, key: bytes) -> TlsMaterial:
    return TlsMaterial(
        insecure=True,
        certificate=certificate,
        key=key,
        certificate_source="config: cert",
        key_source="config: key",
    )


def test_a_bad_certificate_and_a_bad_key_are_told_apart(authority: Authority) -> None:
    certificate, key = authority.issue("somebody")
    body = key.splitlines()[1]
    with pytest.raises(ConfigError, match=r"^config: cert is not a PEM certificate"):
        pair(certificate.replace(b"M", b"!"), key).context()
    with pytest.raises(ConfigError, match=r"^config: cert is not a PEM certificate"):
        pair(b"", key).context()
    with pytest.raises(ConfigError, match=r"^config: key is not a PEM private") as bad:
        pair(certificate, key.replace(b"BEGIN PRIVATE", b"BEGIN OTHER")).context()
    assert body.decode() not in str(bad.value)


def test_a_key_of_another_certificate_is_an_error(authority: Authority) -> None:
    certificate, _ = authority.issue("somebody")
    _, other = authority.issue("somebody")
    with pytest.raises(ConfigError, match=r"^config: key is not the key of"):
        pair(certificate, other).context()


def test_a_key_with_a_passphrase_is_an_error_and_never_a_prompt(
    authority: Authority,
) -> None:
    certificate, key = authority.issue("somebody")
    private = serialization.load_pem_private_key(key, None)
    assert isinstance(private, ec.EllipticCurvePrivateKey)
    with pytest.raises(ConfigError, match=r"^config: key is protected by a passphrase"):
        pair(certificate, pem(private, b"hunter2")).context()


def test_a_key_does_not_touch_a_folder_where_the_system_lets_us(
    authority: Authority, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    if hasattr(os, "memfd_create"):
        pair(*authority.issue("somebody")).context()
    else:
        with pytest.raises(ConfigError, match="cannot be handed to OpenSSL"):
            pair(*authority.issue("somebody")).context()


def test_a_key_that_needs_a_file_leaves_none_behind(
    authority: Authority, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def forbidden(name: str) -> int:
        raise PermissionError(name)

    modes: list[int] = []
    made = tempfile.mkstemp

    def mkstemp(prefix: str) -> tuple[int, str]:
        descriptor, path = made(prefix=prefix)
        modes.append(os.stat(path).st_mode & 0o777)
        return descriptor, path

    monkeypatch.setattr(os, "memfd_create", forbidden, raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(tempfile, "mkstemp", mkstemp)
    certificate, key = authority.issue("somebody")
    pair(certificate, key).context()
    with pytest.raises(ConfigError):
        pair(certificate, b"").context()
    assert modes == [0o600] * 4
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    with pytest.raises(ConfigError, match="cannot be handed to OpenSSL"):
        pair(certificate, key).context()


@settings(deadline=None)
@given(secrets, secrets)
def test_no_repr_shows_a_secret(key: str, token: str) -> None:
    material = TlsMaterial(
        ca=key.encode(), certificate=key.encode(), key=key.encode(), server_name="name"
    )
    headers = bearer(token, source="here")
    shown = [
        repr(material),
        str(material),
        f"{material}",
        repr(list(material.__rich_repr__())),
        repr(TlsFiles(material, paths={"key": "path"})),
        repr(Static(headers, files=TlsFiles(material))),
        repr(Static(basic(token, key))),
        repr(TokenFile("path", source="here", fallback=token)),
    ]
    assert not any(key in text or token in text for text in shown)


@settings(deadline=None)
@given(st.text())
def test_what_fits_a_header_cannot_end_it(value: str) -> None:
    assert not (fits_header(value) and set(value) & set("\r\n\0"))
    assert fits_header("Jürgen\t(système)")


class Clock:
    """Time on the running loop, moved by hand."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        loop = asyncio.get_running_loop()
        monkeypatch.setattr(loop, "time", lambda: self.now)


async def test_a_token_file_is_read_again_once_a_minute_and_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(monkeypatch)
    file = tmp_path / "token"
    file.write_text("first\n")
    token = TokenFile(str(file), source="config: tokenFile")
    first = await token.headers()
    assert first == {"Authorization": "Bearer first"}
    file.write_text("second")
    clock.now += REREAD_AFTER - 1
    assert await token.headers() is first
    clock.now += 1
    assert await token.headers() == {"Authorization": "Bearer second"}


async def test_a_refused_token_is_read_again_at_the_next_call(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("first")
    token = TokenFile(str(file), source="config: tokenFile")
    first = await token.headers()
    file.write_text("second")
    token.invalidate(first)
    second = await token.headers()
    assert second == {"Authorization": "Bearer second"}
    file.write_text("third")
    token.invalidate(first)  # somebody else's, refused before the renewal
    assert await token.headers() is second
    token.invalidate()
    assert await token.headers() == {"Authorization": "Bearer third"}


async def test_a_token_file_that_is_gone_leaves_the_last_token(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "token"
    file.write_text("wholesecret")
    token = TokenFile(str(file), source="config: tokenFile")
    await token.headers()
    for contents in (None, "", "two\nlines"):
        file.unlink(missing_ok=True)
        if contents is not None:
            file.write_text(contents)
        token.invalidate()
        assert await token.headers() == {"Authorization": "Bearer wholesecret"}
    assert len(caplog.records) == 3
    assert "wholesecret" not in caplog.text


async def test_the_file_wins_over_the_token_beside_it(tmp_path: Path) -> None:
    file = tmp_path / "token"
    token = TokenFile(str(file), source="config: tokenFile", fallback="beside")
    assert await token.headers() == {"Authorization": "Bearer beside"}
    file.write_text("inside")
    token.invalidate()
    assert await token.headers() == {"Authorization": "Bearer inside"}


async def test_without_any_token_the_error_names_the_key(tmp_path: Path) -> None:
    token = TokenFile(str(tmp_path / "none"), source="config: users[0].user.tokenFile")
    expected = r"^config: users\[0\].user.tokenFile cannot be read"
    with pytest.raises(ConfigError, match=expected):
        await token.headers()


@settings(deadline=None)
@given(secrets, st.sampled_from(["\n", "\r", "\0", "\x1b"]))
def test_a_token_that_would_break_a_header_is_refused_unseen(
    token: str, letter: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        bearer(f"{token}{letter}{token}", source="here")
    assert token not in str(refused.value)


def test_a_file_is_read_up_to_a_bound(tmp_path: Path) -> None:
    file = tmp_path / "large"
    file.write_bytes(b"x" * FILE_LIMIT)
    assert len(read_file(str(file), source="here")) == FILE_LIMIT
    file.write_bytes(b"x" * (FILE_LIMIT + 1))
    with pytest.raises(ConfigError, match=r"^here is a file of more than"):
        read_file(str(file), source="here")


@pytest.mark.parametrize("value", ["secretvalue", "secretvalue\0", "s" * 5000])
def test_a_secret_in_the_place_of_a_file_name_is_not_shown(value: str) -> None:
    with pytest.raises(ConfigError) as refused:
        read_file(value, source="here")
    assert value not in str(refused.value)
    assert refused.value.__cause__ is None


async def test_rotated_files_are_taken_up_as_a_pair(
    authority: Authority,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = Clock(monkeypatch)
    paths = {"certificate": tmp_path / "crt", "key": tmp_path / "key"}
    first, second = authority.issue("first"), authority.issue("second")
    paths["certificate"].write_bytes(first[0])
    paths["key"].write_bytes(first[1])
    material = TlsMaterial(certificate=first[0], key=first[1], insecure=True)
    files = TlsFiles(material, paths={name: str(path) for name, path in paths.items()})
    credentials = Static(files=files)
    assert await credentials.tls() is material

    paths["certificate"].write_bytes(second[0])
    credentials.invalidate()
    with caplog.at_level(logging.WARNING):
        assert await credentials.tls() is material, "half a rotation is not taken"
    assert "is not the key of" in caplog.text

    paths["key"].write_bytes(second[1])
    clock.now += REREAD_AFTER - 1
    assert await credentials.tls() is material
    clock.now += 1
    fresh = await credentials.tls()
    assert fresh == msgspec.structs.replace(
        material, certificate=second[0], key=second[1]
    )
    credentials.invalidate()
    assert await credentials.tls() is fresh

    paths["key"].unlink()
    credentials.invalidate()
    assert await credentials.tls() is fresh


async def test_material_that_cannot_change_is_left_to_the_configuration() -> None:
    assert await Static().tls() is None
    assert await Static(files=TlsFiles(TlsMaterial())).tls() is None


def test_a_password_is_encoded_as_basic_authentication_says() -> None:
    pair = basic("Aladdin", "open sesame")
    assert pair == {"Authorization": "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="}
