"""Laws of reading and merging kubeconfigs, with kubectl itself as the judge."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.client.errors import ConfigError
from trimtab.client.kubeconfig import (
    DEPTH_LIMIT,
    SIZE_LIMIT,
    Context,
    Kubeconfig,
    Where,
    merge,
    read,
    read_all,
)

FIRST = """\
apiVersion: v1
kind: Config
preferences: {}
clusters:
- name: shared
  cluster: {server: "https://first:6443", certificate-authority: pki/ca.crt}
- name: only-first
  cluster: {server: "https://only-first", insecure-skip-tls-verify: true}
users:
- name: shared
  user: {tokenFile: ../token, as: jane, as-groups: [dev, "12"]}
contexts:
- name: 2024-01-01
  context: {cluster: shared, user: shared}
"""
SECOND = """\
clusters:
- name: shared
  cluster: {server: "https://second", tls-server-name: never-taken}
- name: only-second
  cluster: {server: "https://only-second", certificate-authority-data: Y2VydA==}
users:
- name: shared
  user: {token: never-taken, client-key: never-taken}
- name: robot
  user:
    exec:
      apiVersion: client.authentication.k8s.io/v1beta1
      command: ./bin/login
      args: [a, b]
      env: [{name: A, value: b}]
current-context: 12:30
contexts:
- name: 12:30
  context: {cluster: only-second, user: robot, namespace: web}
---
clusters: the second document is nobody's
"""
THIRD = '{\n\t"current-context": "never-taken", "users": null, "unknown": [1]\n}\n'

# What `kubectl config view --raw --flatten=false -o json` says of the three (v1.32).
RECORDED: dict[str, Any] = {
    "kind": "Config",
    "apiVersion": "v1",
    "preferences": {},
    "clusters": [
        {
            "name": "only-first",
            "cluster": {
                "server": "https://only-first",
                "insecure-skip-tls-verify": True,
            },
        },
        {
            "name": "only-second",
            "cluster": {
                "server": "https://only-second",
                "certificate-authority-data": "Y2VydA==",
            },
        },
        {
            "name": "shared",
            "cluster": {
                "server": "https://first:6443",
                "certificate-authority": "pki/ca.crt",
            },
        },
    ],
    "users": [
        {
            "name": "robot",
            "user": {
                "exec": {
                    "command": "./bin/login",
                    "args": ["a", "b"],
                    "env": [{"name": "A", "value": "b"}],
                    "apiVersion": "client.authentication.k8s.io/v1beta1",
                    "provideClusterInfo": False,
                    "interactiveMode": "IfAvailable",
                }
            },
        },
        {
            "name": "shared",
            "user": {"tokenFile": "../token", "as": "jane", "as-groups": ["dev", "12"]},
        },
    ],
    "contexts": [
        {
            "name": "12:30",
            "context": {"cluster": "only-second", "user": "robot", "namespace": "web"},
        },
        {"name": "2024-01-01", "context": {"cluster": "shared", "user": "shared"}},
    ],
    "current-context": "12:30",
}


def written(folder: Path, *texts: str) -> list[str]:
    """Each text in a file of a folder of its own."""
    paths = []
    for index, text in enumerate(texts):
        path = folder / str(index) / "config"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        paths.append(str(path))
    return paths


def kubectl_view(paths: list[str]) -> Any:
    """What kubectl makes of the files; None where there is no kubectl."""
    program = shutil.which("kubectl")
    if program is None:
        return None
    ran = subprocess.run(
        [program, "config", "view", "--raw", "--flatten=false", "-o", "json"],
        env={"KUBECONFIG": os.pathsep.join(paths), "PATH": os.environ["PATH"]},
        capture_output=True,
        check=True,
        timeout=30,
    )
    return json.loads(ran.stdout)


def view(config: Kubeconfig) -> dict[str, Any]:
    """The merged kubeconfig in the words of kubectl, for what both know."""

    def entries(kind: str, table: dict[str, Any], names: dict[str, str]) -> list[Any]:
        return [
            {
                "name": name,
                kind: {
                    wire: value
                    for field, wire in names.items()
                    if (value := plain(getattr(table[name], field)))
                },
            }
            for name in sorted(table)
        ]

    return {
        "clusters": entries("cluster", config.clusters, CLUSTER_KEYS),
        "users": entries("user", config.users, USER_KEYS),
        "contexts": entries("context", config.contexts, CONTEXT_KEYS),
        "current-context": config.current[0] if config.current else "",
    }


CLUSTER_KEYS = {
    "server": "server",
    "tls_server_name": "tls-server-name",
    "insecure_skip_tls_verify": "insecure-skip-tls-verify",
    "certificate_authority": "certificate-authority",
    "certificate_authority_data": "certificate-authority-data",
    "proxy_url": "proxy-url",
}
USER_KEYS = {
    "token": "token",
    "token_file": "tokenFile",
    "client_key": "client-key",
    "client_key_data": "client-key-data",
    "username": "username",
    "password": "password",
    "as_user": "as",
    "as_groups": "as-groups",
    "as_user_extra": "as-user-extra",
    "exec": "exec",
}
CONTEXT_KEYS = {"cluster": "cluster", "user": "user", "namespace": "namespace"}


def plain(value: Any) -> Any:
    """A value as kubectl prints it; an exec entry by the keys that both have."""
    if isinstance(value, bytes):
        return msgspec.to_builtins(value)
    if isinstance(value, tuple):
        pairs = bool(value) and isinstance(value[0], tuple)
        return {k: list(v) for k, v in value} if pairs else list(value)
    if hasattr(value, "api_version"):
        return [value.api_version, list(value.args), value.interactive_mode]
    return value


def comparable(said: dict[str, Any]) -> dict[str, Any]:
    """kubectl's words without empty values, and of exec what ``plain`` keeps."""
    found: dict[str, Any] = {"current-context": said.get("current-context") or ""}
    for key in ("clusters", "users", "contexts"):
        found[key] = []
        for entry in sorted(said.get(key) or [], key=lambda each: each["name"]):
            kind = key.removesuffix("s")
            inner = {k: v for k, v in entry[kind].items() if v}
            if plugin := inner.get("exec"):
                keys = ("apiVersion", "args", "interactiveMode")
                inner["exec"] = [plugin[key] for key in keys]
            if extra := inner.get("as-user-extra"):
                inner["as-user-extra"] = {k: v or [] for k, v in extra.items()}
            found[key].append({"name": entry["name"], kind: inner})
    return found


def modelled(contents: list[Any]) -> dict[str, Any]:
    """What kubectl would say, by its documentation: the first to name a thing wins."""
    found: dict[str, Any] = {}
    for file in reversed(contents):
        for key, value in file.items():
            if key == "current-context":
                found[key] = value or found.get(key)
            else:
                table = {each["name"]: each for each in found.get(key, ())}
                table |= {each["name"]: each for each in value or ()}
                found[key] = list(table.values())
    return found


def test_files_merge_as_kubectl_merges_them(tmp_path: Path) -> None:
    paths = written(tmp_path, FIRST, SECOND, THIRD)
    paths.insert(1, str(tmp_path / "missing"))
    said = kubectl_view(paths)
    assert said in (None, RECORDED), "the record is out of date"
    assert view(read_all(paths)) == comparable(RECORDED)


names = st.sampled_from(["a", "b", "c"])
words = st.sampled_from(["", "x", "https://y", "2024-01-01", "z: z", "über"])


def named(kind: str, fields: dict[str, st.SearchStrategy[Any]]) -> Any:
    inner = st.fixed_dictionaries({}, optional=fields)
    entry: Any = st.fixed_dictionaries({"name": names, kind: inner})
    return st.none() | st.lists(entry, max_size=3, unique_by=lambda each: each["name"])


files = st.fixed_dictionaries(
    {},
    optional={
        "clusters": named(
            "cluster",
            {
                "server": words,
                "certificate-authority": words,
                "certificate-authority-data": st.sampled_from(["", "eHl6"]),
                "insecure-skip-tls-verify": st.booleans() | st.none(),
            },
        ),
        "users": named(
            "user",
            {
                "token": words,
                "tokenFile": words | st.none(),
                "as": words,
                "as-groups": st.lists(words, max_size=2) | st.none(),
                "as-user-extra": st.dictionaries(
                    names, st.lists(words, max_size=2) | st.none(), max_size=2
                ),
            },
        ),
        "contexts": named("context", {"cluster": names, "user": names}),
        "current-context": st.sampled_from(["", "a", "b"]),
    },
)


merges = st.lists(files, min_size=1, max_size=3)


@settings(deadline=None)
@given(merges)
def test_any_files_merge_by_the_documented_rules(contents: list[Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        texts = [yaml.safe_dump(each, allow_unicode=True) for each in contents]
        paths = written(Path(folder), *texts)
        assert view(read_all(paths)) == comparable(modelled(contents))


@settings(max_examples=10, deadline=None)
@given(merges)
def test_any_files_merge_as_kubectl_merges_them(contents: list[Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        texts = [yaml.safe_dump(each, allow_unicode=True) for each in contents]
        paths = written(Path(folder), *texts)
        said = kubectl_view(paths) or modelled(contents)
        assert view(read_all(paths)) == comparable(said)


def entries_of(file: str) -> st.SearchStrategy[dict[str, Context]]:
    return st.dictionaries(
        names, st.builds(Context, where=st.just(Where(file)), cluster=names)
    )


configs = st.builds(
    Kubeconfig,
    contexts=st.sampled_from(["one", "two", "three"]).flatmap(entries_of),
    current=st.none() | st.tuples(names, st.just(Where("file"))),
    files=st.lists(names, max_size=2).map(tuple),
)


@settings(deadline=None)
@given(configs, configs, configs)
def test_merging_is_associative(a: Kubeconfig, b: Kubeconfig, c: Kubeconfig) -> None:
    assert merge(merge(a, b), c) == merge(a, merge(b, c))


@settings(deadline=None)
@given(configs)
def test_merging_nothing_changes_nothing(config: Kubeconfig) -> None:
    assert merge(config, Kubeconfig()) == merge(Kubeconfig(), config) == config


@settings(deadline=None)
@given(configs, configs)
def test_the_first_to_set_a_value_wins(first: Kubeconfig, second: Kubeconfig) -> None:
    merged = merge(first, second)
    assert merged.current == (first.current or second.current)
    assert merged.contexts.keys() == first.contexts.keys() | second.contexts.keys()
    for name, context in merged.contexts.items():
        assert context == first.contexts.get(name, second.contexts.get(name))


def one(folder: Path, text: str | bytes) -> Kubeconfig:
    path = folder / "config"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read(str(path))


@pytest.mark.parametrize("text", ["", "\n", "# nothing\n---\n", "null", "{}"])
def test_an_empty_file_is_an_empty_kubeconfig(tmp_path: Path, text: str) -> None:
    config = one(tmp_path, text)
    assert msgspec.structs.replace(config, files=()) == Kubeconfig()


def test_a_file_is_read_once_however_often_it_is_listed(tmp_path: Path) -> None:
    (path,) = written(tmp_path, FIRST)
    assert read_all([path, "", path]).files == (path,)


def test_paths_start_at_the_file_they_stand_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path, FIRST, SECOND)
    monkeypatch.chdir(tmp_path)
    config = read_all(["0/config", "1/config"])
    cluster, robot = config.clusters["shared"], config.users["robot"]
    authority = cluster.where.file_path(cluster.certificate_authority)
    assert authority == str(tmp_path / "0/pki/ca.crt")
    assert robot.exec is not None
    assert robot.exec.command == str(tmp_path / "1/bin/login")
    assert cluster.where.file_path("/etc/ca.crt") == "/etc/ca.crt"


@pytest.mark.parametrize("fast", [True, False])
@pytest.mark.parametrize(
    ("plain_text", "is_text"),
    [
        ("2024-01-01", True),
        ("2001-12-14t21:59:43.10-05:00", True),
        ("12:30", True),
        ("=", True),
        ("1.2.3", True),
        ("arn:aws:eks:eu-west-1:0123:cluster/x", True),
        ("0x1F", False),
        ("017", False),
        ("08", False),
        ("1_000", False),
        (".5", False),
        ("-1.", False),
        ("yes", False),
        ("true", False),
    ],
)
def test_what_is_text_to_kubectl_is_text_here(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    plain_text: str,
    is_text: bool,
    fast: bool,
) -> None:
    if not fast:
        monkeypatch.delattr(yaml, "CSafeLoader", raising=False)
    text = f"current-context: {plain_text}\n"
    if is_text:
        current = one(tmp_path, text).current
        assert current is not None
        assert current[0] == plain_text
    else:
        with pytest.raises(ConfigError, match="current-context must be text, not"):
            one(tmp_path, text)


WRONG = [
    ("- a", "config must be a map of keys and values, not a list."),
    ("kind: Pod", "config: kind is not Config, so this is no kubeconfig"),
    ("apiVersion: v2", "config: apiVersion is not v1"),
    ("clusters: {a: b}", "config: clusters must be a list, not a map."),
    ("clusters: text", "config: clusters must be a list, not text."),
    ("clusters: [[]]", "config: clusters[0] must be a map of keys and values, not a"),
    ("clusters: [{}]", "config: clusters[0].name is missing; give the cluster a name."),
    (
        "users: [{name: 5}]",
        "config: users[0].name must be text, not a number; quote it.",
    ),
    ("users: [{name: a}, {name: a}]", 'config: users[1].name is "a", which an entry'),
    ("users: [{name: a, user: 1}]", "config: users[0].user must be a map of keys and"),
    (
        "users: [{name: a, user: {token: 123456789}}]",
        "config: users[0].user.token must be text, not a number",
    ),
    (
        "users: [{name: a, user: {password: [x]}}]",
        "config: users[0].user.password must be text, not a list",
    ),
    (
        "users: [{name: a, user: {password: !!binary eA==}}]",
        "config: users[0].user.password must be text, not a tag",
    ),
    (
        'users: [{name: a, user: {token: "a\\0b"}}]',
        "config: users[0].user.token has a character in it that text cannot have",
    ),
    (
        "users: [{name: a, user: {as-groups: [a, {}]}}]",
        "config: users[0].user.as-groups[1] must be text, not a map",
    ),
    (
        "users: [{name: a, user: {as-user-extra: {k: v}}}]",
        "config: users[0].user.as-user-extra.k must be a list, not text.",
    ),
    (
        "users: [{name: a, user: {exec: {args: x}}}]",
        "config: users[0].user.exec.args must be a list, not text.",
    ),
    (
        "users: [{name: a, user: {exec: {provideClusterInfo: sure}}}]",
        "config: users[0].user.exec.provideClusterInfo must be true or false, not text",
    ),
    (
        "users: [{name: a}, {name: b, user: {client-key-data: c2VjcmV0a2V5!}}]",
        "config: users[1].user.client-key-data is not valid base64",
    ),
    (
        "users: [{name: b, user: {client-key-data: é}}]",
        "config: users[0].user.client-key-data is not valid base64",
    ),
    (
        'clusters: [{name: a, cluster: {insecure-skip-tls-verify: "true"}}]',
        "config: clusters[0].cluster.insecure-skip-tls-verify must be true or false",
    ),
    (
        "contexts: [{name: a, context: [b]}]",
        "config: contexts[0].context must be a map",
    ),
    ("a: *b", "config is not valid YAML in line 1, column 4; mend it there"),
    ("a: 1\n\tb: 2", "config is not valid YAML in line 2, column 1; mend it there"),
    ("a: !tag b", "config is not valid YAML in line 1, column 4; mend it there"),
    ("? [a]\n: b", "config is not valid YAML in line 1"),
    (f"a: {'9' * 5000}", "config is not YAML text"),
]


@pytest.mark.parametrize("fast", [True, False])
@pytest.mark.parametrize(("text", "message"), WRONG)
def test_what_is_wrong_is_named_with_its_file_and_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, message: str, fast: bool
) -> None:
    if not fast:
        monkeypatch.delattr(yaml, "CSafeLoader", raising=False)
    with pytest.raises(ConfigError) as wrong:
        one(tmp_path, text)
    assert str(wrong.value).startswith(f"{tmp_path}/{message}")
    assert str(wrong.value).endswith((".", ")."))


@pytest.mark.parametrize("fast", [True, False])
@pytest.mark.parametrize(
    "line",
    [
        "password: *hunter2secret",
        "password: !hunter2secret x",
        "password: @hunter2secret",
        "password: [hunter2secret",
        "password: {hunter2secret: {hunter2secret: x}}",
        "client-key-data: hunter2secret!",
        'password: "hunter2secret',
        "password: hunter2secret: x",
        "client-key-data: |\n      hunter2secret\n      \thunter2secret\n   x",
    ],
)
def test_no_complaint_quotes_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, fast: bool
) -> None:
    if not fast:
        monkeypatch.delattr(yaml, "CSafeLoader", raising=False)
    with pytest.raises(ConfigError) as wrong:
        one(tmp_path, f"users:\n- name: a\n  user:\n    {line}\n")
    assert "hunter2secret" not in str(wrong.value)
    assert wrong.value.__cause__ is None
    assert wrong.value.__context__ is None or wrong.value.__suppress_context__


@pytest.mark.parametrize("deep", [DEPTH_LIMIT + 1, 200_000])
def test_nesting_is_bounded_before_it_can_hurt(tmp_path: Path, deep: int) -> None:
    with pytest.raises(ConfigError, match="is nested more than"):
        one(tmp_path, b"[" * deep + b"]" * deep)


def test_a_file_is_bounded(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is larger than 8 MiB"):
        one(tmp_path, b"#" * (SIZE_LIMIT + 1))


@pytest.mark.parametrize(
    "extension",
    [
        "&a [*a]",
        (
            "[&a [1,1,1,1,1,1,1,1,1,1], &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a], "
            "&c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b], [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]]"
        ),
    ],
)
def test_aliases_cannot_make_a_value_endless(tmp_path: Path, extension: str) -> None:
    name = "client.authentication.k8s.io/exec"
    with pytest.raises(ConfigError, match=r"extensions\[0\].extension has more than"):
        one(
            tmp_path,
            "clusters: [{name: a, cluster: {extensions: "
            f"[{{name: {name}, extension: {extension}}}]}}}}]",
        )


def test_an_extension_that_json_cannot_carry_is_refused(tmp_path: Path) -> None:
    name = "client.authentication.k8s.io/exec"
    with pytest.raises(ConfigError, match=r"extension cannot be written as JSON"):
        one(
            tmp_path,
            "clusters: [{name: a, cluster: {extensions: "
            f"[{{name: {name}, extension: {{true: x}}}}]}}}}]",
        )


def test_what_cannot_be_read_is_an_error_and_what_is_missing_is_not(
    tmp_path: Path,
) -> None:
    (path,) = written(tmp_path, FIRST)
    with pytest.raises(ConfigError, match=r"cannot be read \(Is a directory\)"):
        read_all([str(tmp_path), path])
    with pytest.raises(ConfigError, match="cannot be read"):
        read("a\0b")
    assert read_all([f"{path}/below", str(tmp_path / "no")]) == Kubeconfig()
    with pytest.raises(FileNotFoundError):
        read(f"{path}/below")


def test_a_pipe_can_be_a_kubeconfig() -> None:
    receiving, sending = os.pipe()
    with open(receiving, "rb"), open(sending, "wb") as file:
        file.write(FIRST.encode())
        file.close()
        assert set(read(f"/dev/fd/{receiving}").users) == {"shared"}


scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
keys = st.sampled_from(
    [
        "clusters",
        "users",
        "contexts",
        "name",
        "user",
        "cluster",
        "context",
        "exec",
        "token",
        "client-key-data",
        "env",
        "args",
        "extensions",
        "as-user-extra",
        "kind",
    ]
)
trees = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=4)
    ),
    max_leaves=12,
)


@settings(deadline=None)
@given(tree=trees, raw=st.binary(max_size=64), structured=st.booleans())
def test_no_file_gets_past_as_anything_but_a_kubeconfig_or_an_error(
    tmp_path_factory: pytest.TempPathFactory, tree: Any, raw: bytes, structured: bool
) -> None:
    folder = tmp_path_factory.getbasetemp()
    data = yaml.safe_dump(tree, allow_unicode=True).encode() if structured else raw
    with suppress(ConfigError):
        assert isinstance(one(folder, data), Kubeconfig)


words = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), max_size=8)
values = st.none() | st.booleans() | st.integers(-(2**40), 2**40) | words | st.just("ü")
maps = st.dictionaries(
    keys,
    st.recursive(
        values,
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=4)
        ),
        max_leaves=12,
    ),
    max_size=4,
)


@settings(deadline=None)
@given(tree=maps)
def test_json_is_read_as_the_yaml_that_it_is(
    tmp_path_factory: pytest.TempPathFactory, tree: dict[str, Any]
) -> None:
    folder = tmp_path_factory.getbasetemp()
    text = json.dumps(tree, ensure_ascii=False)
    read_as: list[Any] = []
    for start in ("", "# so that it is not taken for JSON\n"):
        try:
            read_as.append(one(folder, (start + text).encode()))
        except ConfigError as error:
            read_as.append(str(error))
    assert read_as[0] == read_as[1]


def test_a_kubeconfig_of_json_does_not_take_yaml_into_memory(tmp_path: Path) -> None:
    (path,) = written(tmp_path, '{"kind": "Config", "users": []}')
    code = (
        "import sys; from trimtab.client.kubeconfig import read; "
        f"read({path!r}); print('yaml' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout == "False\n"


secrets = st.text("abcdefghijklmnopqrstuvwxyz0123456789", min_size=12)


@settings(deadline=None)
@given(secrets, secrets)
def test_no_repr_of_an_entry_shows_a_secret(token: str, other: str) -> None:
    from trimtab.client.execplugin import ExecSpec
    from trimtab.client.kubeconfig import Cluster, User

    where = Where("file", "users[0].user")
    plugin = ExecSpec(
        command="login",
        api_version="v1",
        interactive_mode="Never",
        source="file",
        args=(token,),
        env=(("A", other),),
    )
    user = User(
        where=where,
        token=token,
        password=other,
        client_key_data=other.encode(),
        exec=plugin,
    )
    cluster = Cluster(where=where, server=f"https://u:{token}@h", proxy_url=other)
    config = Kubeconfig(users={"a": user}, clusters={"b": cluster})
    for shown in (repr(config), str(user), repr(plugin), repr(cluster)):
        assert token not in shown
        assert other not in shown
