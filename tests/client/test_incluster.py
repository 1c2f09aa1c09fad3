"""Laws of the in-cluster configuration, and of the proxies of a process."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.client.test_credentials import Authority
from trimtab.client.config import Impersonation
from trimtab.client.errors import ConfigError
from trimtab.client.incluster import (
    check_namespace,
    environment_proxy,
    in_cluster,
    proxy_address,
    server_address,
    why_not,
)

ENVIRON = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "token").write_text("service-account-token\n")
    (tmp_path / "ca.crt").write_bytes(Authority().certificate)
    (tmp_path / "namespace").write_text("web\n")
    return tmp_path


async def test_a_pod_uses_its_service_account(folder: Path) -> None:
    config = in_cluster(environ=ENVIRON, folder=folder)
    assert config.server == "https://10.0.0.1:443"
    assert config.namespace == "web"
    assert config.source == "in-cluster"
    assert config.proxy is None
    assert config.impersonate is None
    assert config.tls.ca == (folder / "ca.crt").read_bytes()
    assert not config.tls.insecure
    config.tls.context()
    assert await config.credentials.headers() == {
        "Authorization": "Bearer service-account-token"
    }
    assert "service-account-token" not in repr(config)


async def test_a_rotated_token_and_authority_are_taken_up(folder: Path) -> None:
    config = in_cluster(environ=ENVIRON, folder=folder)
    refused = await config.credentials.headers()
    assert await config.credentials.tls() is config.tls
    (folder / "token").write_text("renewed")
    (folder / "ca.crt").write_bytes(Authority("new").certificate)
    assert await config.credentials.headers() is refused
    config.credentials.invalidate(refused)
    assert await config.credentials.headers() == {"Authorization": "Bearer renewed"}
    material = await config.credentials.tls()
    assert material is not None
    assert material.ca == (folder / "ca.crt").read_bytes() != config.tls.ca


@pytest.mark.parametrize(
    ("host", "server"),
    [
        ("fd00::1", "https://[fd00::1]:443"),
        ("kubernetes.default.svc", "https://kubernetes.default.svc:443"),
    ],
)
def test_the_address_may_be_ipv6_or_a_name(
    folder: Path, host: str, server: str
) -> None:
    environ = {**ENVIRON, "KUBERNETES_SERVICE_HOST": host}
    assert in_cluster(environ=environ, folder=folder).server == server


@pytest.mark.parametrize(
    ("argument", "variable", "file", "expected"),
    [
        ("asked", "variable", "file", "asked"),
        (None, "variable", "file", "variable"),
        (None, "", "file", "file"),
        (None, "", " \n", "default"),
        (None, "", None, "default"),
    ],
)
def test_the_namespace_is_the_nearest_one_that_is_set(
    folder: Path, argument: str | None, variable: str, file: str | None, expected: str
) -> None:
    if file is None:
        (folder / "namespace").unlink()
    else:
        (folder / "namespace").write_text(file)
    environ = {**ENVIRON, "POD_NAMESPACE": variable}
    config = in_cluster(environ=environ, folder=folder, namespace=argument)
    assert config.namespace == expected


def test_impersonation_is_taken_along(folder: Path) -> None:
    jane = Impersonation(user="jane")
    config = in_cluster(environ=ENVIRON, folder=folder, impersonate=jane)
    assert config.impersonate is jane


@pytest.mark.parametrize("missing", ["HOST", "PORT"])
def test_a_missing_variable_is_named(folder: Path, missing: str) -> None:
    environ = {k: v for k, v in ENVIRON.items() if not k.endswith(missing)}
    reason = f"KUBERNETES_SERVICE_{missing} is not set"
    assert why_not(environ, folder=str(folder)) == reason
    with pytest.raises(ConfigError, match=reason):
        in_cluster(environ=environ, folder=folder)


@pytest.mark.parametrize(
    ("name", "contents", "message"),
    [
        ("token", None, "{folder}/token does not exist; run it in a pod"),
        ("token", "", "The service account's {folder}/token has an empty token"),
        ("ca.crt", None, "The service account's {folder}/ca.crt cannot be read ("),
        ("namespace", "No!", "The service account's {folder}/namespace cannot name a"),
    ],
)
def test_a_bad_file_is_named(
    folder: Path, name: str, contents: str | None, message: str
) -> None:
    if contents is None:
        (folder / name).unlink()
    else:
        (folder / name).write_text(contents)
    with pytest.raises(ConfigError, match=re.escape(message.format(folder=folder))):
        in_cluster(environ=ENVIRON, folder=folder)


def test_a_bad_authority_is_named_when_a_context_is_made(folder: Path) -> None:
    (folder / "ca.crt").write_text("nothing")
    config = in_cluster(environ=ENVIRON, folder=folder)
    with pytest.raises(
        ConfigError, match=f"The service account's {folder}/ca.crt holds"
    ):
        config.tls.context()


def test_a_bad_address_is_named_by_its_variables(folder: Path) -> None:
    environ = {**ENVIRON, "KUBERNETES_SERVICE_PORT": "https"}
    with pytest.raises(ConfigError, match=r"^KUBERNETES_SERVICE_HOST and KUBERNETES_"):
        in_cluster(environ=environ, folder=folder)


@pytest.mark.parametrize(
    ("address", "server"),
    [
        ("https://h:6443", "https://h:6443"),
        ("https://h/", "https://h"),
        ("https://h/a/b//", "https://h/a/b"),
        ("https://h/a?b=c#d", "https://h/a"),
        ("http://127.0.0.1:8001", "http://127.0.0.1:8001"),
        ("https://[fd00::1]:6443", "https://[fd00::1]:6443"),
    ],
)
def test_an_address_has_one_form(address: str, server: str) -> None:
    assert server_address(address, source="here") == server
    assert server_address(server, source="here") == server


@pytest.mark.parametrize(
    "address",
    [
        "",
        "h",
        "h:6443",
        "//h",
        "https://",
        "ftp://h",
        "https://h:x",
        "https://h:99999",
        "https://[::1",
        "https://h\n",
        "https://a b",
        "https://h:0",
        "https:///path",
    ],
)
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(ConfigError, match=r"^here is not the address of a server"):
        server_address(address, source="here")


def test_an_address_with_a_password_is_refused_unseen() -> None:
    with pytest.raises(ConfigError, match=r"^here has a user or a password") as refused:
        server_address("https://jane:hunter2@h", source="here")
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize("name", ["a", "a-b", "0", "a" * 63])
def test_a_name_of_a_namespace_is_kept(name: str) -> None:
    assert check_namespace(name, source="here") == name


@pytest.mark.parametrize("name", ["", "-", "A", "a.b", "a" * 64, "a/b", "a\n", "é"])
def test_what_cannot_name_a_namespace_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=r"^here cannot name a namespace"):
        check_namespace(name, source="here")


def test_only_http_proxies_are_taken() -> None:
    for address in ("http://p:3128", "https://u:p@p"):
        assert proxy_address(address, source="here") == address
    for address in ("socks5://p", "SOCKS5h://u:hunter2@p"):
        with pytest.raises(ConfigError, match=r"^here is a SOCKS proxy, which") as e:
            proxy_address(address, source="here")
        assert "hunter2" not in str(e.value)
    for address in ("p:3128", "ftp://u:hunter2@p", "http://", "http://u:hunter2@p:x"):
        with pytest.raises(
            ConfigError, match=r"^here is not the address of a pro"
        ) as e:
            proxy_address(address, source="here")
        assert "hunter2" not in str(e.value)


@pytest.mark.parametrize(
    ("server", "environ", "proxy"),
    [
        ("https://h", {}, None),
        ("https://h", {"HTTPS_PROXY": "http://p"}, "http://p"),
        ("https://h", {"https_proxy": "p:3128"}, "http://p:3128"),
        (
            "https://h",
            {"HTTPS_PROXY": "http://a", "https_proxy": "http://b"},
            "http://a",
        ),
        ("https://h", {"HTTP_PROXY": "http://p"}, None),
        ("http://h", {"HTTP_PROXY": "http://p"}, "http://p"),
        ("http://h", {"HTTPS_PROXY": "http://p"}, None),
        ("https://localhost:6443", {"HTTPS_PROXY": "http://p"}, None),
        ("https://127.1.2.3", {"HTTPS_PROXY": "http://p"}, None),
        ("https://[::1]:6443", {"HTTPS_PROXY": "http://p"}, None),
    ],
)
def test_the_environment_chooses_a_proxy_as_go_does(
    server: str, environ: dict[str, str], proxy: str | None
) -> None:
    assert environment_proxy(server, environ) == proxy


@pytest.mark.parametrize(
    ("server", "excluded", "direct"),
    [
        ("https://a.example.com", "*", True),
        ("https://a.example.com", "other,*", True),
        ("https://a.example.com", "example.com", True),
        ("https://example.com", "example.com", True),
        ("https://example.com", ".example.com", False),
        ("https://a.example.com", ".example.com", True),
        ("https://a.example.com", "*.example.com", True),
        ("https://example.com", "*.example.com", False),
        ("https://badexample.com", "example.com", False),
        ("https://A.Example.com", " EXAMPLE.com ,", True),
        ("https://example.com", "example.com:443", True),
        ("https://example.com:6443", "example.com:443", False),
        ("https://example.com:6443", "example.com:6443", True),
        ("https://10.0.0.1", "10.0.0.1", True),
        ("https://10.0.0.1:6443", "10.0.0.1:6443", True),
        ("https://10.0.0.1:6443", "10.0.0.1:443", False),
        ("https://10.0.0.1", "10.0.0.0/8", True),
        ("https://10.0.0.1", "10.0.0.7/8", True),
        ("https://11.0.0.1", "10.0.0.0/8", False),
        ("https://10.0.0.1", "0.0.1", False),
        ("https://[fd00::1]:6443", "fd00::1", True),
        ("https://[fd00::1]:6443", "[fd00::1]:6443", True),
        ("https://[fd00::1]:6443", "[fd00::1]:443", False),
        ("https://[fd00::1]", "fd00::/8", True),
        ("https://[fd00::1]", "10.0.0.0/8", False),
        ("https://example.com", "10.0.0.0/8", False),
        ("https://example.com", "nonsense/8,:443,[", False),
    ],
)
def test_no_proxy_is_read_as_go_reads_it(
    server: str, excluded: str, direct: bool
) -> None:
    for name in ("NO_PROXY", "no_proxy"):
        environ = {"HTTPS_PROXY": "http://p", name: excluded}
        assert (environment_proxy(server, environ) is None) == direct


def test_a_bad_proxy_of_the_environment_is_named() -> None:
    with pytest.raises(ConfigError, match=r"^HTTPS_PROXY is a SOCKS proxy"):
        environment_proxy("https://h", {"https_proxy": "socks5://p"})
