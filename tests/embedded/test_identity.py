"""Laws of a server's keys and certificates, and of the kubeconfig with them."""

from __future__ import annotations

import asyncio
import os
import ssl
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from trimtab.client.config import load
from trimtab.client.credentials import TlsMaterial
from trimtab.embedded import access
from trimtab.embedded.access import KubeconfigForeign, kubeconfig
from trimtab.embedded.certificates import Authority, Pair, expiry, names_of
from trimtab.embedded.files import FileProblem
from trimtab.embedded.identity import (
    ACCOUNTS,
    ADMIN,
    AUTHORITY,
    RENEW_BEFORE,
    SERVER,
    Identity,
    IdentityDamaged,
)

NOW = datetime.now(UTC)
FILES = (AUTHORITY, SERVER, ADMIN, ACCOUNTS)


def client_context(identity: Identity, pair: Pair | None) -> ssl.SSLContext:
    material = TlsMaterial(ca=identity.ca)
    if pair is not None:
        material = msgspec.structs.replace(
            material, certificate=pair.certificate, key=pair.key
        )
    return material.context()


async def shake(
    server: ssl.SSLContext, client: ssl.SSLContext, *, name: str = "127.0.0.1"
) -> dict[str, Any] | None:
    """Make one TLS connection; what the server knows of its client."""
    peer: asyncio.Future[dict[str, Any] | None]
    peer = asyncio.get_running_loop().create_future()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer.set_result(writer.get_extra_info("peercert"))
        writer.write(b"hello")
        writer.close()

    listening = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=server)
    port = listening.sockets[0].getsockname()[1]
    try:
        async with asyncio.timeout(10):
            reader, writer = await asyncio.open_connection(
                "127.0.0.1", port, ssl=client, server_hostname=name
            )
            try:
                assert await reader.read() == b"hello"
            finally:
                writer.close()
            return await peer
    finally:
        listening.close()


async def test_the_administrator_comes_in_with_its_certificate() -> None:
    identity = Identity(None, now=NOW)
    client = client_context(identity, identity.administrator)
    peer = await shake(identity.context(), client)
    assert peer is not None
    assert peer["subject"] == (
        (("organizationName", "system:masters"),),
        (("commonName", "admin"),),
    )


async def test_a_client_without_a_certificate_connects_as_nobody() -> None:
    identity = Identity(None, now=NOW)
    assert not await shake(identity.context(), client_context(identity, None))


@pytest.mark.parametrize(
    "name",
    ["localhost", "kubernetes.default.svc", "kubernetes", "build.example.com"],
)
async def test_the_server_proves_every_name_it_is_reached_under(name: str) -> None:
    identity = Identity(None, now=NOW, names=["build.example.com"])
    await shake(identity.context(), client_context(identity, None), name=name)


async def test_the_server_proves_no_other_name() -> None:
    identity = Identity(None, now=NOW)
    client = client_context(identity, None)
    with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
        await shake(identity.context(), client, name="elsewhere.example.com")


async def refused(identity: Identity, pair: Pair) -> None:
    """The server ends the handshake, which a client of TLS 1.3 notices as it reads."""
    with pytest.raises((ssl.SSLError, ConnectionError, AssertionError)):
        await shake(identity.context(), client_context(identity, pair))


async def test_certificates_of_another_authority_do_not_connect() -> None:
    stranger = Identity(None, now=NOW).administrator
    await refused(Identity(None, now=NOW), stranger)


async def test_a_server_s_certificate_is_no_client_s() -> None:
    identity = Identity(None, now=NOW)
    await refused(identity, identity.server)


async def test_a_certificate_that_has_ended_does_not_connect() -> None:
    long_ago = NOW - timedelta(days=800)
    identity = Identity(None, now=NOW)
    authority = Authority(identity._authority.pair)
    old = authority.issue_client("admin", groups=("system:masters",), now=long_ago)
    await refused(identity, old)


async def test_old_tls_does_not_connect() -> None:
    identity = Identity(None, now=NOW)
    assert identity.context().minimum_version == ssl.TLSVersion.TLSv1_2


def test_what_is_kept_is_the_same_after_a_restart(tmp_path: Path) -> None:
    first = Identity(tmp_path / "pki", now=NOW)
    second = Identity(tmp_path / "pki", now=NOW)
    assert first.ca == second.ca
    assert first.server == second.server
    assert first.administrator == second.administrator
    assert first.signing_key == second.signing_key


def test_kept_files_are_for_this_user_only(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        Identity(tmp_path / "data" / "pki", now=NOW)
    finally:
        os.umask(before)
    folder = tmp_path / "data" / "pki"
    assert sorted(each.name for each in folder.iterdir()) == sorted(FILES)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    for each in folder.iterdir():
        assert stat.S_IMODE(each.stat().st_mode) == 0o600


def test_nothing_is_written_for_an_identity_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    Identity(None, now=NOW).context()
    assert not list(tmp_path.iterdir())


def test_certificates_close_to_their_end_are_renewed_at_the_start(
    tmp_path: Path,
) -> None:
    first = Identity(tmp_path, now=NOW)
    later = expiry(first.server) - RENEW_BEFORE + timedelta(hours=1)
    second = Identity(tmp_path, now=later)
    assert second.ca == first.ca, "clients know the authority, so it stays"
    assert second.signing_key == first.signing_key
    assert expiry(second.server) > expiry(first.server)
    assert expiry(second.administrator) > expiry(first.administrator)


async def test_certificates_are_renewed_while_the_server_runs() -> None:
    past = NOW - timedelta(days=330)
    identity = Identity(None, now=past)
    context = identity.context()
    assert not identity.renew(past)
    assert identity.renew(NOW)
    identity.arm(context)
    assert expiry(identity.server) > NOW + timedelta(days=300)
    client = client_context(identity, identity.administrator)
    assert await shake(context, client)
    assert not identity.renew(NOW)


def test_an_authority_at_its_end_is_replaced_with_all_it_signed(
    tmp_path: Path,
) -> None:
    first = Identity(tmp_path, now=NOW)
    second = Identity(tmp_path, now=NOW + timedelta(days=3650))
    assert second.ca != first.ca
    assert Authority(second._authority.pair).signed(second.server)
    assert Authority(second._authority.pair).signed(second.administrator)


def test_other_names_need_another_certificate(tmp_path: Path) -> None:
    first = Identity(tmp_path, now=NOW)
    second = Identity(tmp_path, now=NOW, names=["10.1.2.3"])
    assert second.ca == first.ca
    assert names_of(second.server) - names_of(first.server) == {"10.1.2.3"}


@pytest.mark.parametrize("name", [SERVER, ADMIN])
def test_a_damaged_certificate_is_made_anew(tmp_path: Path, name: str) -> None:
    Identity(tmp_path, now=NOW)
    (tmp_path / name).write_bytes(b"rubbish")
    Identity(tmp_path, now=NOW)
    assert b"BEGIN CERTIFICATE" in (tmp_path / name).read_bytes()


@pytest.mark.parametrize("name", [AUTHORITY, ACCOUNTS])
@pytest.mark.parametrize("content", [b"", b"rubbish", b"-----BEGIN PRIVATE KEY-----\n"])
def test_a_damaged_key_that_others_rely_on_is_left_and_named(
    tmp_path: Path, name: str, content: bytes
) -> None:
    Identity(tmp_path, now=NOW)
    (tmp_path / name).write_bytes(content)
    with pytest.raises(IdentityDamaged, match=name):
        Identity(tmp_path, now=NOW)
    assert (tmp_path / name).read_bytes() == content


def test_a_pair_of_strangers_is_no_pair() -> None:
    one, two = Identity(None, now=NOW), Identity(None, now=NOW)
    mixed = one.server.key + two.server.certificate
    with pytest.raises(ValueError, match="not the certificate's"):
        Pair.parse(mixed)


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FileProblem, match=r"file/pki cannot be used \(Not a dir"):
        Identity(tmp_path / "file" / "pki", now=NOW)


def test_no_key_is_in_a_repr() -> None:
    identity = Identity(None, now=NOW)
    for each in (identity, identity.server, identity.administrator):
        assert "PRIVATE" not in repr(each)


def config(identity: Identity, server: str = "https://127.0.0.1:1") -> dict[str, Any]:
    return kubeconfig(server, ca=identity.ca, administrator=identity.administrator)


def test_a_kubeconfig_is_read_back_by_our_own_client(tmp_path: Path) -> None:
    identity = Identity(None, now=NOW)
    path = tmp_path / "kubeconfig"
    access.write(path, config(identity))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    found = load(kubeconfig=path, environ={})
    assert found.server == "https://127.0.0.1:1"
    assert found.tls.ca == identity.ca
    assert found.tls.certificate == identity.administrator.certificate


OTHERS = """
apiVersion: v1
kind: Config
preferences: {colors: true}
clusters:
- name: work
  cluster: {server: "https://work.example.com"}
- name: trimtab
  cluster: {server: "https://old.example.com"}
contexts:
- name: work
  context: {cluster: work, user: me}
users:
- name: me
  user: {token: secret}
current-context: work
"""


def test_what_a_kubeconfig_says_about_others_stays(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text(OTHERS)
    access.write(path, config(Identity(None, now=NOW)))
    merged = yaml.safe_load(path.read_text())
    assert [each["name"] for each in merged["clusters"]] == ["work", "trimtab"]
    assert merged["clusters"][1]["cluster"]["server"] == "https://127.0.0.1:1"
    assert [each["name"] for each in merged["users"]] == ["me", "trimtab"]
    assert [each["name"] for each in merged["contexts"]] == ["work", "trimtab"]
    assert merged["preferences"] == {"colors": True}
    assert merged["current-context"] == "trimtab"


def test_writing_a_kubeconfig_twice_is_writing_it_once(tmp_path: Path) -> None:
    path, content = tmp_path / "config", config(Identity(None, now=NOW))
    access.write(path, content)
    first = path.read_bytes()
    access.write(path, content)
    assert path.read_bytes() == first


@pytest.mark.parametrize(
    "content",
    [b"not: [a, kubeconfig", b"- a\n- list\n", b"kind: Pod\n", b"\xff\xfe\x00"],
)
def test_a_file_that_is_no_kubeconfig_is_left_as_it_is(
    tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "config"
    path.write_bytes(content)
    with pytest.raises(KubeconfigForeign, match="is not a kubeconfig"):
        access.write(path, config(Identity(None, now=NOW)))
    assert path.read_bytes() == content
    assert [each.name for each in tmp_path.iterdir()] == ["config"]


def test_a_link_to_a_kubeconfig_stays_a_link(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text(OTHERS)
    link.symlink_to(target)
    access.write(link, config(Identity(None, now=NOW)))
    assert link.is_symlink()
    assert "127.0.0.1" in target.read_text()
