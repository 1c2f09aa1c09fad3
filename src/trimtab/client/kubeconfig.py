"""The kubeconfig: files read, checked and merged into one, as kubectl does it.

Every value keeps the file and the key it came from, so that a complaint about it can
name both. Types are checked for the whole file; whether a cluster or a user makes sense
is the concern of whoever picks it.
"""

from __future__ import annotations

import base64
import binascii
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar

import msgspec

from trimtab.client.credentials import Guarded
from trimtab.client.errors import ConfigError
from trimtab.client.execplugin import GROUP, ExecSpec

SIZE_LIMIT = 8 << 20
# libyaml recurses; past some ten thousand levels it would take the process with it.
DEPTH_LIMIT = 100
# An alias can name a value that has aliases in it, and so on: small text, huge value.
NODE_LIMIT = 10_000
# Per cluster settings for exec plugins stand in the extension of this name.
EXEC_EXTENSION = f"{GROUP}/exec"

# Of YAML's many plain scalars that are not text: the ones that kubectl knows too.
KEPT_TAGS = ("null", "bool", "merge")
NUMBERS = {
    "int": re.compile(r"[-+]?(0x[0-9a-fA-F]+|0b[01]+|0o?[0-7]+|0|[1-9][0-9_]*)$"),
    "float": re.compile(r"[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)$"),
}

Entry = TypeVar("Entry")


class Where(msgspec.Struct, frozen=True):
    """A place in a kubeconfig: the file, and the path of keys in it."""

    file: str
    path: str = ""

    def __str__(self) -> str:
        return f"{self.file}: {self.path}" if self.path else self.file

    def __truediv__(self, key: str) -> Where:
        return Where(self.file, f"{self.path}.{key}" if self.path else key)

    def __getitem__(self, index: int) -> Where:
        return Where(self.file, f"{self.path}[{index}]")

    def wrong(self, sentence: str) -> ConfigError:
        """The complaint about what stands here."""
        return ConfigError(f"{self} {sentence}")

    def file_path(self, value: str) -> str:
        """The path ``value``, which is relative to the folder of this file."""
        return os.path.join(os.path.abspath(os.path.dirname(self.file)), value)


class Cluster(Guarded, frozen=True, kw_only=True):
    """How to reach and to recognise an API server."""

    where: Where
    server: str = ""
    tls_server_name: str = ""
    insecure_skip_tls_verify: bool = False
    certificate_authority: str = ""
    certificate_authority_data: bytes = b""
    proxy_url: str = ""
    disable_compression: bool = False
    exec_config: object = None

    def shown(self) -> Mapping[str, object]:
        """Its place; addresses may carry passwords."""
        return {"where": str(self.where)}


class User(Guarded, frozen=True, kw_only=True):
    """Who to be."""

    where: Where
    client_certificate: str = ""
    client_certificate_data: bytes = b""
    client_key: str = ""
    client_key_data: bytes = b""
    token: str = ""
    token_file: str = ""
    username: str = ""
    password: str = ""
    as_user: str = ""
    as_uid: str = ""
    as_groups: tuple[str, ...] = ()
    as_user_extra: tuple[tuple[str, tuple[str, ...]], ...] = ()
    auth_provider: bool = False
    exec: ExecSpec | None = None

    def shown(self) -> Mapping[str, object]:
        """Its place, and nothing of what it holds."""
        return {"where": str(self.where)}


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster, a user, and the namespace to start in."""

    where: Where
    cluster: str = ""
    user: str = ""
    namespace: str = ""


class Kubeconfig(msgspec.Struct, frozen=True, kw_only=True):
    """One kubeconfig, from one file or merged from several."""

    clusters: dict[str, Cluster] = {}
    users: dict[str, User] = {}
    contexts: dict[str, Context] = {}
    current: tuple[str, Where] | None = None
    files: tuple[str, ...] = ()


def merge(first: Kubeconfig, second: Kubeconfig) -> Kubeconfig:
    """Both; where they disagree, ``first``.

    Guarantees: as in kubectl an entry is taken whole: of two users of one name nothing
    of the second is used. Associative, and ``Kubeconfig()`` changes nothing.
    """
    return Kubeconfig(
        clusters={**second.clusters, **first.clusters},
        users={**second.users, **first.users},
        contexts={**second.contexts, **first.contexts},
        current=first.current or second.current,
        files=first.files + second.files,
    )


def read_all(paths: Sequence[str]) -> Kubeconfig:
    """The files of ``paths`` that exist, merged; an earlier one wins."""
    merged = Kubeconfig()
    for path in dict.fromkeys(filter(None, paths)):
        try:
            merged = merge(merged, read(path))
        except FileNotFoundError:
            continue
    return merged


def read(path: str) -> Kubeconfig:
    """One file.

    Errors: FileNotFoundError; for everything else :class:`ConfigError`, naming the file
    and the key and never showing a value that may be secret.
    """
    where = Where(path)
    try:
        with open(path, "rb") as file:
            data = file.read(SIZE_LIMIT + 1)
    except (FileNotFoundError, NotADirectoryError):
        raise FileNotFoundError(path) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not a file name"
        raise where.wrong(
            f"cannot be read ({reason}); name a kubeconfig that this user may read."
        ) from None
    if len(data) > SIZE_LIMIT:
        raise where.wrong(
            f"is larger than {SIZE_LIMIT >> 20} MiB; name a kubeconfig instead."
        )
    return _kubeconfig(_Map(where, _parse(data, where)))


def _parse(data: bytes, where: Where) -> object:
    """The first document of a YAML text; JSON is YAML too."""
    if data.startswith(b"{") and data.count(b"{") + data.count(b"[") <= DEPTH_LIMIT:
        # Written by a program, mostly: read without the 1.7 MiB that yaml takes. What
        # is wrong with it, if it is not JSON after all, is said below.
        with suppress(msgspec.DecodeError, UnicodeDecodeError):
            return msgspec.json.decode(data)
    return _parse_yaml(data, where)


def _parse_yaml(data: bytes, where: Where) -> object:
    import yaml

    try:
        loader = _loader()
        _check_depth(yaml.parse(data, Loader=loader), where)
        reader = loader(data)
        try:
            return reader.get_data() if reader.check_data() else None
        finally:
            reader.dispose()
    except yaml.MarkedYAMLError as error:
        # The parser's own words may quote a password that begins with "*" or "!".
        mark = error.problem_mark or error.context_mark
        at = f" in line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise where.wrong(
            f"is not valid YAML{at}; mend it there (tabs cannot indent, and text "
            "that begins with one of *&!@%` needs quotes)."
        ) from None
    except (yaml.YAMLError, ValueError, RecursionError):
        raise where.wrong("is not YAML text; name a kubeconfig instead.") from None


def _loader() -> Any:
    """A loader that takes for text what kubectl takes for text, such as a date."""
    import yaml

    base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

    class Loader(base):  # type: ignore[misc]
        yaml_implicit_resolvers = {
            first: [pair for pair in pairs if pair[0].rpartition(":")[2] in KEPT_TAGS]
            for first, pairs in base.yaml_implicit_resolvers.items()
        }

    for tag, pattern in NUMBERS.items():
        name = f"tag:yaml.org,2002:{tag}"
        Loader.add_implicit_resolver(name, pattern, list("-+.0123456789"))
    return Loader


def _check_depth(events: Iterator[Any], where: Where) -> None:
    import yaml

    depth = 0
    for event in events:
        if isinstance(event, yaml.DocumentEndEvent):
            return
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > DEPTH_LIMIT:
            raise where.wrong(
                f"is nested more than {DEPTH_LIMIT} deep; name a kubeconfig instead."
            )


class _Map:
    """A map of the file, which checks the types of what is taken from it."""

    def __init__(self, where: Where, value: object) -> None:
        if value is not None and not isinstance(value, dict):
            raise where.wrong(f"must be a map of keys and values, not {_kind(value)}.")
        self.where = where
        self._value: dict[object, object] = value or {}

    def has(self, key: str) -> bool:
        return self._value.get(key) is not None

    def text(self, key: str) -> str:
        return _text(self._value.get(key), self.where / key)

    def flag(self, key: str) -> bool:
        value = self._value.get(key)
        if value is None or isinstance(value, bool):
            return bool(value)
        raise (self.where / key).wrong(f"must be true or false, not {_kind(value)}.")

    def data(self, key: str) -> bytes:
        text = self.text(key).replace("\r", "").replace("\n", "")
        try:
            return base64.b64decode(text.encode("ascii"), validate=True)
        except (binascii.Error, UnicodeEncodeError):
            raise (self.where / key).wrong(
                "is not valid base64; encode the PEM file's contents (base64 -w0)."
            ) from None

    def map(self, key: str) -> _Map:
        return _Map(self.where / key, self._value.get(key))

    def items(self, key: str) -> Iterator[tuple[Where, object]]:
        """The entries of a list, each with its place."""
        where, value = self.where / key, self._value.get(key)
        if value is not None and not isinstance(value, list):
            raise where.wrong(f"must be a list, not {_kind(value)}.")
        for index, item in enumerate(value or ()):
            yield where[index], item

    def maps(self, key: str) -> Iterator[_Map]:
        for where, item in self.items(key):
            yield _Map(where, item)

    def texts(self, key: str) -> tuple[str, ...]:
        return tuple(_text(item, where) for where, item in self.items(key))

    def text_lists(self, key: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
        inner = self.map(key)
        names = (_text(name, inner.where) for name in inner._value)
        return tuple((name, inner.texts(name)) for name in names)

    def value(self, key: str) -> object:
        """Any value that JSON can carry; aliases could make it endless."""
        found, left = [self._value.get(key)], NODE_LIMIT
        while found:
            item = found.pop()
            left -= 1
            if left < 0:
                raise (self.where / key).wrong(f"has more than {NODE_LIMIT} values.")
            if isinstance(item, dict | list):
                found.extend(item.values() if isinstance(item, dict) else item)
        try:
            msgspec.json.encode(self._value.get(key))
        except (TypeError, ValueError, RecursionError):
            raise (self.where / key).wrong("cannot be written as JSON.") from None
        return self._value.get(key)


def _text(value: object, where: Where) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        advice = (
            "write one value there" if isinstance(value, dict | list) else "quote it"
        )
        raise where.wrong(f"must be text, not {_kind(value)}; {advice}.")
    if "\0" in value or any("\ud800" <= letter <= "\udfff" for letter in value):
        raise where.wrong("has a character in it that text cannot have; remove it.")
    return value


def _kind(value: object) -> str:
    """What ``value`` is, in words; its contents may be secret."""
    kinds: tuple[tuple[Any, str], ...] = (
        (type(None), "nothing"),
        (bool, "true or false"),
        (int | float, "a number"),
        (dict, "a map"),
        (list, "a list"),
        (str, "text"),
    )
    return next((word for kind, word in kinds if isinstance(value, kind)), "a tag")


def _kubeconfig(root: _Map) -> Kubeconfig:
    for key, wanted in (("apiVersion", "v1"), ("kind", "Config")):
        if root.text(key) not in ("", wanted):
            raise (root.where / key).wrong(
                f"is not {wanted}, so this is no kubeconfig; name a kubeconfig instead."
            )
    current = root.text("current-context")
    return Kubeconfig(
        clusters=_named(root, "clusters", "cluster", _cluster),
        users=_named(root, "users", "user", _user),
        contexts=_named(root, "contexts", "context", _context),
        current=(current, root.where / "current-context") if current else None,
        files=(root.where.file,),
    )


def _named(
    root: _Map, key: str, inner: str, build: Callable[[_Map], Entry]
) -> dict[str, Entry]:
    """A list of named entries, as a map by name."""
    found: dict[str, Entry] = {}
    for entry in root.maps(key):
        name = entry.text("name")
        if not name:
            raise (entry.where / "name").wrong(f"is missing; give the {inner} a name.")
        if name in found:
            raise (entry.where / "name").wrong(
                f'is "{name}", which an entry before it is called already; '
                "rename one of them."
            )
        found[name] = build(entry.map(inner))
    return found


def _cluster(entry: _Map) -> Cluster:
    extensions = {each.text("name"): each for each in entry.maps("extensions")}
    special = extensions.get(EXEC_EXTENSION)
    return Cluster(
        where=entry.where,
        server=entry.text("server"),
        tls_server_name=entry.text("tls-server-name"),
        insecure_skip_tls_verify=entry.flag("insecure-skip-tls-verify"),
        certificate_authority=entry.text("certificate-authority"),
        certificate_authority_data=entry.data("certificate-authority-data"),
        proxy_url=entry.text("proxy-url"),
        disable_compression=entry.flag("disable-compression"),
        exec_config=special.value("extension") if special else None,
    )


def _user(entry: _Map) -> User:
    return User(
        where=entry.where,
        client_certificate=entry.text("client-certificate"),
        client_certificate_data=entry.data("client-certificate-data"),
        client_key=entry.text("client-key"),
        client_key_data=entry.data("client-key-data"),
        token=entry.text("token"),
        token_file=entry.text("tokenFile"),
        username=entry.text("username"),
        password=entry.text("password"),
        as_user=entry.text("as"),
        as_uid=entry.text("as-uid"),
        as_groups=entry.texts("as-groups"),
        as_user_extra=entry.text_lists("as-user-extra"),
        auth_provider=entry.has("auth-provider"),
        exec=_exec(entry.map("exec")) if entry.has("exec") else None,
    )


def _context(entry: _Map) -> Context:
    return Context(
        where=entry.where,
        cluster=entry.text("cluster"),
        user=entry.text("user"),
        namespace=entry.text("namespace"),
    )


def _exec(entry: _Map) -> ExecSpec:
    """The entry as it stands; ``ExecSpec.check`` says whether it can be used."""
    command, version = entry.text("command"), entry.text("apiVersion")
    if os.sep in command:
        command = os.path.normpath(entry.where.file_path(command))
    default = "IfAvailable" if version == f"{GROUP}/v1beta1" else ""
    return ExecSpec(
        source=str(entry.where),
        command=command,
        api_version=version,
        interactive_mode=entry.text("interactiveMode") or default,
        args=entry.texts("args"),
        env=tuple(
            (each.text("name"), each.text("value")) for each in entry.maps("env")
        ),
        install_hint=entry.text("installHint"),
        provide_cluster_info=entry.flag("provideClusterInfo"),
    )
