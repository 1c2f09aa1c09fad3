"""Laws of finding and binding a configuration."""

from __future__ import annotations

import base64
import json
import os
import ssl
import sys
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import msgspec
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.client.test_credentials import Authority
from trimtab.client import incluster
from trimtab.client.config import Config, Impersonation, load
from trimtab.client.credentials import Static, TlsFiles, TlsMaterial, bearer
from trimtab.client.errors import ConfigError

V1 = "client.authentication.k8s.io/v1"


def kubeconfig(
    folder: Path,
    *,
    user: dict[str, Any] | None = None,
    cluster: dict[str, Any] | None = None,
    context: dict[str, Any] | None = None,
    name: str = "config",
    current: str = "main",
    **more: Any,
) -> str:
    """A file with one cluster, one user and one context, which is the current one."""
    cluster = {"server": "https://example.com:6443", **(cluster or {})}
    content = {
        "clusters": [{"name": "prod", "cluster": cluster}],
        "users": [{"name": "jane", "user": user or {}}],
        "contexts": [
            {
                "name": "main",
                "context": {"cluster": "prod", "user": "jane", **(context or {})},
            }
        ],
        "current-context": current,
        **more,
    }
    path = folder / name
    path.write_text(yaml.safe_dump(content))
    return str(path)


def loaded(path: str, **arguments: Any) -> Config:
    return load(kubeconfig=path, environ={}, **arguments)


def refusal(path: str | None, **arguments: Any) -> str:
    arguments.setdefault("environ", {})
    with pytest.raises(ConfigError) as wrong:
        load(kubeconfig=path, **arguments)
    assert str(wrong.value).count("\n") == 0
    return str(wrong.value)


async def headers(config: Config) -> dict[str, str]:
    return dict(await config.credentials.headers())


async def test_a_kubeconfig_becomes_a_configuration(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path, user={"token": "abc"}, context={"namespace": "web"})
    config = load(kubeconfig=Path(path), environ={})
    assert config.server == "https://example.com:6443"
    assert config.namespace == "web"
    assert config.source == f"{path} (context main)"
    assert config.proxy is None
    assert config.impersonate is None
    assert config.tls.context().verify_mode is ssl.CERT_REQUIRED
    assert await headers(config) == {"Authorization": "Bearer abc"}
    assert await config.credentials.tls() is None


def test_the_places_are_looked_at_in_the_order_of_kubectl(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".kube").mkdir()
    home = kubeconfig(tmp_path / ".kube")
    listed = kubeconfig(tmp_path, name="listed")
    named = kubeconfig(tmp_path, name="named")
    pod = tmp_path / "pod"
    pod.mkdir()
    (pod / "token").write_text("token")
    (pod / "ca.crt").write_bytes(Authority().certificate)
    monkeypatch.setattr(incluster, "FOLDER", str(pod))
    environ = {
        "HOME": str(tmp_path),
        "KUBECONFIG": f"{tmp_path}/missing{os.pathsep}{listed}",
        "KUBERNETES_SERVICE_HOST": "10.0.0.1",
        "KUBERNETES_SERVICE_PORT": "443",
    }
    assert load(kubeconfig=named, environ=environ).source.startswith(named)
    assert load(environ=environ).source == f"{listed} (context main)"
    assert load(kubeconfig="", environ=environ).source == f"{listed} (context main)"
    environ["KUBECONFIG"] = ""
    assert load(environ=environ).source == f"{home} (context main)"
    environ["KUBECONFIG"] = f"{tmp_path}/missing"
    found = load(environ=environ, namespace="web", impersonate=Impersonation(user="x"))
    assert found.source == "in-cluster", "KUBECONFIG replaces the file of the home"
    assert (found.namespace, found.impersonate) == ("web", Impersonation(user="x"))
    del environ["KUBECONFIG"]
    kubeconfig(tmp_path / ".kube", current="")
    assert load(environ=environ).source == "in-cluster", "nothing was chosen"


def test_the_environment_of_the_process_is_the_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", kubeconfig(tmp_path))
    assert load().server == "https://example.com:6443"


def test_nothing_found_is_one_sentence_with_every_place(tmp_path: Path) -> None:
    empty = kubeconfig(tmp_path, current="")
    assert refusal(None, environ={"HOME": "/home/x"}) == (
        "No cluster is configured: KUBECONFIG is not set, /home/x/.kube/config is "
        "missing, and this is no pod (KUBERNETES_SERVICE_HOST is not set); "
        "name a kubeconfig, or set KUBECONFIG to one."
    )
    listed = f"{tmp_path}/a{os.pathsep}{os.pathsep}{empty}"
    assert (
        f"KUBECONFIG is set, {tmp_path}/a is missing, {empty} has no current-context, "
        in refusal(None, environ={"KUBECONFIG": listed})
    )
    assert "there is no home folder" in refusal(None)


def test_a_named_file_must_be_there_and_choose_something(tmp_path: Path) -> None:
    missing = f"{tmp_path}/missing"
    expected = f"{missing} does not exist; name a kubeconfig that does."
    assert refusal(missing) == expected
    path = kubeconfig(tmp_path, current="")
    assert refusal(path) == (
        f"{path}: current-context is not set; set it (kubectl config use-context) or "
        "choose a context."
    )
    assert loaded(path, context="main").source == f"{path} (context main)"


def test_arguments_choose_in_place_of_the_file(tmp_path: Path) -> None:
    path = kubeconfig(
        tmp_path,
        clusters=[
            {"name": "prod", "cluster": {"server": "https://prod"}},
            {"name": "test", "cluster": {"server": "https://test"}},
        ],
        users=[
            {"name": "jane", "user": {"as": "root"}},
            {"name": "robot", "user": {"as": "robot"}},
        ],
    )
    config = loaded(path, cluster="test", user="robot", namespace="web")
    assert (config.server, config.namespace) == ("https://test", "web")
    assert config.impersonate == Impersonation(user="robot")
    kitty = Impersonation(user="kitty", groups=("cats",))
    assert loaded(path, impersonate=kitty).impersonate == kitty
    bare = kubeconfig(tmp_path, name="bare", contexts=[], current="")
    config = loaded(bare, cluster="prod")
    assert config.source == f"{bare} (no context)"
    assert isinstance(config.credentials, Static)


def test_a_name_that_names_nothing_is_an_error_where_it_stands(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path, context={"cluster": "gone"})
    assert refusal(path) == (
        f'{path}: contexts[0].context.cluster names "gone", but no cluster has that '
        "name; add it or correct the name."
    )
    path = kubeconfig(tmp_path, context={"user": "gone"})
    assert f'{path}: contexts[0].context.user names "gone"' in refusal(path)
    path = kubeconfig(tmp_path, current="gone")
    assert f'{path}: current-context names "gone", but no context' in refusal(path)
    path = kubeconfig(tmp_path, context={"cluster": ""})
    assert f"{path}: contexts[0].context.cluster is missing" in refusal(path)
    path = kubeconfig(tmp_path)
    assert refusal(path, context="gone") == (
        'The arguments: context names "gone", but no context has that name in '
        f"{path}; add it or correct the name."
    )
    assert f'cluster names "gone", but no cluster has that name in {path}' in refusal(
        path, cluster="gone"
    )
    assert f'user names "gone", but no user has that name in {path}' in refusal(
        path, user="gone"
    )
    assert "no context has that name because there is no kubeconfig" in refusal(
        None, context="gone"
    )


def test_a_context_without_a_user_is_anonymous(tmp_path: Path) -> None:
    config = loaded(kubeconfig(tmp_path, context={"user": None}))
    assert isinstance(config.credentials, Static)


def wrong_users(folder: Path) -> list[tuple[dict[str, Any], str]]:
    certificate, key = Authority().issue("jane")
    data = base64.b64encode(certificate).decode()
    (folder / "crt").write_bytes(certificate)
    (folder / "key").write_bytes(key)
    plugin = {"apiVersion": V1, "command": "x", "interactiveMode": "Never"}
    return [
        ({"auth-provider": {"name": "gcp"}}, "auth-provider is no longer supported"),
        ({"auth-provider": {}, "exec": plugin}, "auth-provider is no longer supported"),
        ({"exec": {**plugin, "command": ""}}, "exec.command is missing"),
        ({"exec": {**plugin, "apiVersion": None}}, "exec.apiVersion must be"),
        ({"exec": {"command": "x", "apiVersion": V1}}, "exec.interactiveMode must be"),
        ({"exec": {**plugin, "env": [{}]}}, "exec.env[0].name is missing"),
        ({"token": "a", "exec": {}}, "exec.command is missing"),
        ({"token": "t0psecret", "password": "hunter2"}, " has both a token and a user"),
        (
            {"tokenFile": "key", "username": "hunter2"},
            " has both a token and a username",
        ),
        ({"tokenFile": "t0psecret"}, "tokenFile cannot be read (No such file or dir"),
        ({"tokenFile": "key"}, "tokenFile has a token with a line break"),
        ({"token": "t0psecret\nx"}, "token has a token with a line break"),
        (
            {"client-certificate": "crt"},
            "client-key is missing, and so is client-key-d",
        ),
        ({"client-key": "key"}, "client-certificate is missing, and so is client-cert"),
        (
            {"client-certificate": "crt", "client-certificate-data": data},
            "client-certificate and client-certificate-data are both set",
        ),
        (
            {"client-key": "key", "client-key-data": data, "client-certificate": "crt"},
            "client-key and client-key-data are both set",
        ),
        (
            {"client-certificate": "crt", "client-key": "t0psecret"},
            "client-key cannot be read (No such file or directory)",
        ),
        ({"as-groups": ["a"]}, "as is missing, but as-uid, as-groups or as-user-extra"),
        ({"as": "a\nb"}, "as or a key beside it that begins with as- has a line break"),
        ({"as": "a", "as-user-extra": {"k": ["\r"]}}, "as or a key beside it that"),
    ]


def test_a_user_that_cannot_work_is_refused(tmp_path: Path) -> None:
    for user, complaint in wrong_users(tmp_path):
        path = kubeconfig(tmp_path, user=user)
        message = refusal(path)
        place = f"{path}: users[0].user"
        glue = "" if complaint.startswith(" ") else "."
        assert message.startswith(f"{place}{glue}{complaint}"), user
        assert "t0psecret" not in message
        assert "hunter2" not in message


@pytest.mark.parametrize(
    ("cluster", "complaint"),
    [
        ({"server": ""}, "server is missing"),
        ({"server": "example.com:6443"}, "server is not the address of a server"),
        ({"server": "https://u:t0psecret@h"}, "server has a user or a password in it"),
        (
            {"proxy-url": "socks5://u:t0psecret@p"},
            "proxy-url is a SOCKS proxy, which is",
        ),
        ({"proxy-url": "p:t0psecret"}, "proxy-url is not the address of a proxy"),
        ({"certificate-authority": "none"}, "certificate-authority cannot be read"),
        (
            {"certificate-authority": "a", "certificate-authority-data": "YQ=="},
            "certificate-authority and certificate-authority-data are both set",
        ),
        (
            {"insecure-skip-tls-verify": True, "certificate-authority-data": "YQ=="},
            "insecure-skip-tls-verify is true although a certificate authority is set",
        ),
    ],
)
def test_a_cluster_that_cannot_work_is_refused(
    tmp_path: Path, cluster: dict[str, Any], complaint: str
) -> None:
    path = kubeconfig(tmp_path, cluster=cluster)
    message = refusal(path)
    assert message.startswith(f"{path}: clusters[0].cluster.{complaint}")
    assert "t0psecret" not in message


def test_a_namespace_that_cannot_be_is_refused(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path, context={"namespace": "a/b"})
    assert refusal(path).startswith(
        f"{path}: contexts[0].context.namespace cannot name a namespace"
    )
    assert "The arguments: namespace cannot name" in refusal(path, namespace="../x")


async def test_files_beside_the_kubeconfig_are_found_from_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = Authority()
    certificate, key = authority.issue("jane")
    (tmp_path / "ca").write_bytes(authority.certificate)
    (tmp_path / "crt").write_bytes(certificate)
    (tmp_path / "key").write_bytes(key)
    kubeconfig(
        tmp_path,
        cluster={"certificate-authority": "ca", "tls-server-name": "kubernetes"},
        user={"client-certificate": "crt", "client-key": str(tmp_path / "key")},
    )
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    config = loaded("../config")
    assert (config.tls.ca, config.tls.certificate, config.tls.key) == (
        authority.certificate,
        certificate,
        key,
    )
    assert config.tls.server_name == "kubernetes"
    config.tls.context()
    assert await config.credentials.tls() is config.tls
    renewed = authority.issue("jane")
    (tmp_path / "crt").write_bytes(renewed[0])
    (tmp_path / "key").write_bytes(renewed[1])
    config.credentials.invalidate()
    material = await config.credentials.tls()
    assert material is not None
    assert material.certificate == renewed[0]


async def test_inline_data_is_decoded_and_named_when_it_is_wrong(
    tmp_path: Path,
) -> None:
    certificate, key = Authority().issue("jane")
    user = {
        "client-certificate-data": base64.b64encode(certificate).decode(),
        "client-key-data": base64.b64encode(key).decode(),
    }
    config = loaded(kubeconfig(tmp_path, user=user))
    assert (config.tls.certificate, config.tls.key) == (certificate, key)
    assert await config.credentials.tls() is None
    config.tls.context()
    user["client-key-data"] = base64.b64encode(b"t0psecret").decode()
    path = kubeconfig(tmp_path, user=user)
    with pytest.raises(ConfigError) as wrong:
        loaded(path).tls.context()
    assert str(wrong.value) == (
        f"{path}: users[0].user.client-key-data is not a PEM private key that can be "
        "read; put the key of the client certificate there."
    )


def test_verification_is_off_only_where_the_file_says_so(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path, cluster={"insecure-skip-tls-verify": True})
    assert loaded(path).tls.context().verify_mode is ssl.CERT_NONE
    path = kubeconfig(tmp_path, cluster={"insecure-skip-tls-verify": False})
    assert loaded(path).tls.context().verify_mode is ssl.CERT_REQUIRED


async def test_of_several_credentials_the_one_that_client_go_takes_is_taken(
    tmp_path: Path,
) -> None:
    (tmp_path / "token").write_text("inside")
    certificate, key = Authority().issue("jane")
    pair = {
        "client-certificate-data": base64.b64encode(certificate).decode(),
        "client-key-data": base64.b64encode(key).decode(),
    }
    plugin = {"exec": {"apiVersion": V1, "command": "x", "interactiveMode": "Never"}}
    beside = {"token": "beside"}
    cases: list[tuple[dict[str, Any], dict[str, str]]] = [
        ({"tokenFile": "token", **beside}, {"Authorization": "Bearer inside"}),
        ({"tokenFile": "none", **beside}, {"Authorization": "Bearer beside"}),
        ({"tokenFile": "token", **plugin}, {"Authorization": "Bearer inside"}),
        ({**beside, **plugin}, {"Authorization": "Bearer beside"}),
        ({**beside, **pair}, {"Authorization": "Bearer beside"}),
        ({**pair, **plugin}, {}),
        ({"username": "a", "password": "b", **plugin}, {"Authorization": "Basic YTpi"}),
        ({}, {}),
    ]
    for user, expected in cases:
        assert await headers(loaded(kubeconfig(tmp_path, user=user))) == expected


async def test_nothing_secret_is_sent_in_the_clear(tmp_path: Path) -> None:
    path = kubeconfig(
        tmp_path,
        cluster={"server": "http://127.0.0.1:8001/", "certificate-authority": "none"},
        user={"token": "abc", "as": "jane"},
    )
    config = loaded(path)
    assert config.server == "http://127.0.0.1:8001"
    assert await headers(config) == {}
    assert config.tls == TlsMaterial()
    assert config.impersonate == Impersonation(user="jane")


def test_the_cluster_s_own_proxy_goes_before_the_environment_s(tmp_path: Path) -> None:
    environ = {"HTTPS_PROXY": "http://theirs"}
    plain = kubeconfig(tmp_path)
    assert load(kubeconfig=plain, environ=environ).proxy == "http://theirs"
    environ["NO_PROXY"] = "example.com"
    assert load(kubeconfig=plain, environ=environ).proxy is None
    own = kubeconfig(tmp_path, cluster={"proxy-url": "http://u:hunter2@ours"})
    config = load(kubeconfig=own, environ=environ)
    assert config.proxy == "http://u:hunter2@ours"
    assert "hunter2" not in repr(config)
    assert "http://…@ours" in repr(config)


async def test_an_exec_plugin_is_told_about_its_cluster(tmp_path: Path) -> None:
    said = tmp_path / "said"
    script = tmp_path / "bin" / "login"
    script.parent.mkdir()
    script.write_text(
        f"#!{sys.executable} -IS\n"
        "import json, os\n"
        "info = os.environ['KUBERNETES_EXEC_INFO']\n"
        f"open({str(said)!r}, 'w').write(info)\n"
        "answer = json.loads(info)\n"
        "answer['status'] = {'token': os.environ['WHO']}\n"
        "print(json.dumps(answer))\n"
    )
    script.chmod(0o755)
    authority = Authority().certificate
    (tmp_path / "ca").write_bytes(authority)
    extension = {"audience": "06e3", "number": 5}
    path = kubeconfig(
        tmp_path,
        cluster={
            "certificate-authority": "ca",
            "proxy-url": "http://proxy",
            "tls-server-name": "kubernetes",
            "extensions": [
                {"name": "other", "extension": {"x": "y"}},
                {"name": "client.authentication.k8s.io/exec", "extension": extension},
            ],
        },
        user={
            "exec": {
                "apiVersion": V1,
                "command": "./bin/login",
                "interactiveMode": "Never",
                "provideClusterInfo": True,
            }
        },
    )
    config = load(kubeconfig=path, environ={"WHO": "jane"})
    assert not said.exists(), "loading runs nothing"
    assert await headers(config) == {"Authorization": "Bearer jane"}
    assert json.loads(said.read_text()) == {
        "kind": "ExecCredential",
        "apiVersion": V1,
        "spec": {
            "interactive": False,
            "cluster": {
                "server": "https://example.com:6443",
                "tls-server-name": "kubernetes",
                "certificate-authority-data": base64.b64encode(authority).decode(),
                "proxy-url": "http://proxy",
                "config": extension,
            },
        },
    }


def test_impersonation_is_read_from_the_user(tmp_path: Path) -> None:
    user = {
        "as": "jane",
        "as-uid": "42",
        "as-groups": ["dev", "ops"],
        "as-user-extra": {"example.com/Scope": ["a", "b"], "empty": None},
    }
    config = loaded(kubeconfig(tmp_path, user=user))
    assert config.impersonate is not None
    assert config.impersonate.headers() == (
        ("Impersonate-User", "jane"),
        ("Impersonate-Uid", "42"),
        ("Impersonate-Group", "dev"),
        ("Impersonate-Group", "ops"),
        ("Impersonate-Extra-example.com%2FScope", "a"),
        ("Impersonate-Extra-example.com%2FScope", "b"),
    )


@settings(deadline=None)
@given(st.text(min_size=1))
def test_an_extra_key_survives_being_a_header_s_name(key: str) -> None:
    found = Impersonation(user="x", extra={key: ("v",)}).headers()
    name = found[1][0].removeprefix("Impersonate-Extra-")
    assert unquote(name, errors="surrogatepass") == key
    assert name.isascii()
    assert not set(name) & set(' ":;,/()<>=@[]{}?\\')


@pytest.mark.parametrize(
    "wrong", [{"user": ""}, {"user": "a\nb"}, {"user": "a", "groups": ("\r\nX: y",)}]
)
def test_an_impersonation_that_headers_cannot_carry_is_refused(
    wrong: dict[str, Any],
) -> None:
    with pytest.raises(ConfigError, match=r"^An impersonation has"):
        Impersonation(**wrong)


secrets = st.text("abcdefghijklmnopqrstuvwxyz0123456789", min_size=12)


@settings(deadline=None)
@given(secrets, secrets, secrets)
def test_no_repr_of_a_configuration_shows_a_secret(a: str, b: str, c: str) -> None:
    material = TlsMaterial(ca=b"x", certificate=b.encode(), key=c.encode())
    config = Config(
        server="https://h",
        tls=material,
        credentials=Static(bearer(a, source="here"), files=TlsFiles(material)),
        namespace="default",
        proxy=f"http://{b}:{c}@proxy",
        impersonate=Impersonation(user="jane", extra={"scope": (c,)}),
        source="here",
    )
    rich = repr(list(config.__rich_repr__()))
    for shown in (repr(config), str(config), f"{config}", rich):
        assert "jane" in shown
        assert not any(secret in shown for secret in (a, b, c))


@settings(deadline=None)
@given(
    user=st.fixed_dictionaries(
        {},
        optional={
            "token": secrets,
            "password": secrets,
            "client-key-data": secrets,
            "tokenFile": secrets,
            "client-key": secrets,
            "auth-provider": st.fixed_dictionaries({"config": secrets}),
            "exec": st.fixed_dictionaries({"args": st.lists(secrets)}),
        },
    )
)
def test_no_user_makes_load_show_a_secret(
    tmp_path_factory: pytest.TempPathFactory, user: dict[str, Any]
) -> None:
    path = kubeconfig(tmp_path_factory.getbasetemp(), user=user)
    try:
        shown = repr(loaded(path))
    except ConfigError as error:
        shown = str(error)
    for secret in strings(user):
        assert secret not in shown


def strings(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, dict) else value
    return [found for each in inner for found in strings(each)]


def test_a_configuration_cannot_be_changed(tmp_path: Path) -> None:
    config = loaded(kubeconfig(tmp_path))
    with pytest.raises(AttributeError):
        config.server = "https://elsewhere"  # type: ignore[misc]
    assert msgspec.structs.replace(config, namespace="x").namespace == "x"


def test_loading_yaml_is_left_until_a_kubeconfig_is_read() -> None:
    import subprocess

    code = (
        "import sys, trimtab.client.config, trimtab.client.incluster\n"
        "sys.exit('yaml' in sys.modules or 'cryptography' in sys.modules)"
    )
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", code], env=environ, check=True)
