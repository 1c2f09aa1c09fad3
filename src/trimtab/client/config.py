"""The configuration of a client: which API server, whom to trust, and who to be.

:func:`load` finds it where kubectl would: in the file that is named, in the files of
``$KUBECONFIG``, in ``~/.kube/config``, or in the pod that this process runs in.
"""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Mapping

import msgspec

from trimtab.client.credentials import (
    Credentials,
    Guarded,
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
from trimtab.client.execplugin import ExecPlugin
from trimtab.client.incluster import (
    check_namespace,
    environment_proxy,
    in_cluster,
    proxy_address,
    server_address,
    why_not,
)
from trimtab.client.kubeconfig import (
    Cluster,
    Context,
    Entry,
    Kubeconfig,
    User,
    Where,
    read,
    read_all,
)

# The letters of an HTTP token, without the % that begins an escape.
HEADER_LETTERS = frozenset(
    b"!#$&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
)
ARGUMENTS = Where("The arguments")


class Impersonation(msgspec.Struct, frozen=True, kw_only=True):
    """Whom to act as; the real credentials must be allowed to."""

    user: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = {}

    def __post_init__(self) -> None:
        if not self.user:
            raise ConfigError("An impersonation has no user; name one to act as.")
        if not all(fits_header(value) for _, value in self.headers()):
            raise ConfigError(
                "An impersonation has a line break or a control character in it; "
                "remove it."
            )

    def headers(self) -> tuple[tuple[str, str], ...]:
        """The headers, of which some names occur several times."""
        found = [("Impersonate-User", self.user)]
        if self.uid:
            found.append(("Impersonate-Uid", self.uid))
        found += [("Impersonate-Group", group) for group in self.groups]
        for key, values in self.extra.items():
            name = f"Impersonate-Extra-{_escaped(key)}"
            found += [(name, value) for value in values]
        return tuple(found)


def _escaped(key: str) -> str:
    """``key`` with every byte that a header's name cannot have as %XX."""
    return "".join(
        chr(byte) if byte in HEADER_LETTERS else f"%{byte:02X}"
        for byte in key.encode("utf-8", "surrogatepass")
    )


class Config(Guarded, frozen=True, kw_only=True):
    """All that a client needs to know about one API server.

    ``server`` is ``https://host:port`` and perhaps a path, without a slash at the end;
    ``http://`` too, and then no credentials are sent. ``proxy`` is an HTTP proxy.
    ``source`` tells people where all this came from.
    """

    server: str
    tls: TlsMaterial
    credentials: Credentials
    namespace: str
    proxy: str | None
    impersonate: Impersonation | None
    source: str

    def shown(self) -> Mapping[str, object]:
        """All but the secrets."""
        return {
            "server": self.server,
            "tls": self.tls,
            "credentials": self.credentials,
            "namespace": self.namespace,
            "proxy": self.proxy and re.sub(r"//.*@", "//…@", self.proxy),
            "impersonate": self.impersonate and self.impersonate.user,
            "source": self.source,
        }


def load(
    *,
    kubeconfig: str | os.PathLike[str] | None = None,
    context: str | None = None,
    cluster: str | None = None,
    user: str | None = None,
    namespace: str | None = None,
    impersonate: Impersonation | None = None,
    environ: Mapping[str, str] | None = None,
) -> Config:
    """The configuration that kubectl would use here.

    Flow: the file ``kubeconfig``, which must exist; else the files of ``$KUBECONFIG``
    that exist, merged; else ``~/.kube/config``; and if these choose no cluster, the
    service account of the pod. ``context``, ``cluster``, ``user`` and ``namespace``
    choose in place of what the file says, ``impersonate`` in place of ``as``.

    Guarantees: nothing runs and nothing is sent; files that tokens and certificates
    stand in are read.

    Errors: :class:`ConfigError`, one sentence that names the file and the key.
    """
    environ = os.environ if environ is None else environ
    explicit = os.fspath(kubeconfig) if kubeconfig else None
    found = _find(explicit, environ)
    asked = [name for name in (context, cluster, user) if name]
    if found.current or asked:
        picked = _pick(found, context=context, cluster=cluster, user=user)
        config = _bind(picked, environ, namespace=namespace)
        if impersonate is not None:
            config = msgspec.structs.replace(config, impersonate=impersonate)
        return config
    if explicit is not None:
        raise (Where(explicit) / "current-context").wrong(
            "is not set; set it (kubectl config use-context) or choose a context."
        )
    if reason := why_not(environ):
        raise _nothing(found, environ, reason=reason)
    return in_cluster(namespace=namespace, impersonate=impersonate, environ=environ)


def _find(explicit: str | None, environ: Mapping[str, str]) -> Kubeconfig:
    if explicit is None:
        return read_all(_places(environ))
    try:
        return read(explicit)
    except FileNotFoundError:
        raise Where(explicit).wrong(
            "does not exist; name a kubeconfig that does."
        ) from None


def _places(environ: Mapping[str, str]) -> list[str]:
    """The files to look at; ``$KUBECONFIG``, if it is set, replaces the usual one."""
    if listed := environ.get("KUBECONFIG"):
        return listed.split(os.pathsep)
    home = environ.get("HOME") or environ.get("USERPROFILE")
    return [os.path.join(home, ".kube", "config")] if home else []


def _nothing(
    found: Kubeconfig, environ: Mapping[str, str], *, reason: str
) -> ConfigError:
    variable = "KUBECONFIG is" if environ.get("KUBECONFIG") else "KUBECONFIG is not"
    looked = [
        f"{place} {'has no current-context' if place in found.files else 'is missing'}"
        for place in _places(environ)
        if place
    ] or ["there is no home folder"]
    return ConfigError(
        f"No cluster is configured: {variable} set, {', '.join(looked)}, and this is "
        f"no pod ({reason}); name a kubeconfig, or set KUBECONFIG to one."
    )


class _Picked(msgspec.Struct, frozen=True, kw_only=True):
    """What one context of a kubeconfig comes to."""

    cluster: Cluster
    user: User
    context: Context
    source: str


def _pick(
    found: Kubeconfig, *, context: str | None, cluster: str | None, user: str | None
) -> _Picked:
    """The entries that the context and the arguments name."""
    chosen, label = Context(where=ARGUMENTS), "no context"
    reference = (context, ARGUMENTS / "context") if context else found.current
    if reference is not None:
        chosen = _look_up(found.contexts, *reference, kind="context", found=found)
        label = f"context {reference[0]}"
    cluster_where = (ARGUMENTS if cluster else chosen.where) / "cluster"
    cluster_name = cluster or chosen.cluster
    if not cluster_name:
        raise cluster_where.wrong("is missing; name a cluster there.")
    user_where = (ARGUMENTS if user else chosen.where) / "user"
    user_name = user or chosen.user
    anonymous = User(where=user_where)
    return _Picked(
        cluster=_look_up(
            found.clusters, cluster_name, cluster_where, kind="cluster", found=found
        ),
        user=_look_up(found.users, user_name, user_where, kind="user", found=found)
        if user_name
        else anonymous,
        context=chosen,
        source=f"{', '.join(found.files)} ({label})",
    )


def _look_up(
    entries: Mapping[str, Entry],
    name: str,
    where: Where,
    *,
    kind: str,
    found: Kubeconfig,
) -> Entry:
    if name in entries:
        return entries[name]
    files = "" if where.file in found.files else f" in {', '.join(found.files)}"
    place = files if found.files else " because there is no kubeconfig"
    raise where.wrong(
        f'names "{name}", but no {kind} has that name{place}; '
        "add it or correct the name."
    )


def _bind(
    picked: _Picked, environ: Mapping[str, str], *, namespace: str | None
) -> Config:
    """The configuration of one cluster and one user."""
    cluster, user, context = picked.cluster, picked.user, picked.context
    if not cluster.server:
        raise (cluster.where / "server").wrong("is missing; give the server's address.")
    server = server_address(cluster.server, source=str(cluster.where / "server"))
    named = namespace or context.namespace or "default"
    place = ARGUMENTS if namespace else context.where
    own_proxy = cluster.proxy_url and proxy_address(
        cluster.proxy_url, source=str(cluster.where / "proxy-url")
    )
    _check_user(user)
    files = TlsFiles(TlsMaterial())
    credentials: Credentials = Static()
    if server.startswith("https:"):  # as in client-go nothing secret goes in the clear
        files = _tls(cluster, user)
        credentials = _credentials(user, cluster, server, files, environ)
    return Config(
        server=server,
        tls=files.material,
        credentials=credentials,
        namespace=check_namespace(named, source=str(place / "namespace")),
        proxy=own_proxy or environment_proxy(server, environ),
        impersonate=_impersonation(user),
        source=picked.source,
    )


def _check_user(user: User) -> None:
    """Refuse what kubectl refuses, and what would leave the user without a name."""
    where = user.where
    if user.auth_provider:
        raise (where / "auth-provider").wrong(
            "is no longer supported by Kubernetes clients; use an exec plugin instead."
        )
    if user.exec is not None:
        user.exec.check()
    named = user.username or user.password
    if named and (user.token or user.token_file):
        raise where.wrong(
            "has both a token and a username or password; keep one of them."
        )
    _only_one(
        where,
        "client-certificate",
        user.client_certificate,
        user.client_certificate_data,
    )
    _only_one(where, "client-key", user.client_key, user.client_key_data)
    has_certificate = user.client_certificate or user.client_certificate_data
    has_key = user.client_key or user.client_key_data
    if bool(has_certificate) != bool(has_key):
        missing = "client-key" if has_certificate else "client-certificate"
        raise (where / missing).wrong(
            f"is missing, and so is {missing}-data; a certificate needs its key."
        )
    if not user.as_user and (user.as_uid or user.as_groups or user.as_user_extra):
        raise (where / "as").wrong(
            "is missing, but as-uid, as-groups or as-user-extra is set; "
            "name the user to act as."
        )


def _only_one(where: Where, key: str, path: str, data: bytes) -> None:
    if path and data:
        raise (where / key).wrong(f"and {key}-data are both set; keep one of them.")


def _tls(cluster: Cluster, user: User) -> TlsFiles:
    """The TLS material of both, and the files that it must be read from again."""
    _only_one(
        cluster.where,
        "certificate-authority",
        cluster.certificate_authority,
        cluster.certificate_authority_data,
    )
    paths: dict[str, str] = {}
    sources: dict[str, str] = {}

    def part(
        field: str, where: Where, key: str, path: str, data: bytes
    ) -> bytes | None:
        source = where / (f"{key}-data" if data else key)
        sources[f"{field}_source"] = str(source)
        if data or not path:
            return data or None
        paths[field] = where.file_path(path)
        return read_file(paths[field], source=str(source))

    material = TlsMaterial(
        ca=part(
            "ca",
            cluster.where,
            "certificate-authority",
            cluster.certificate_authority,
            cluster.certificate_authority_data,
        ),
        certificate=part(
            "certificate",
            user.where,
            "client-certificate",
            user.client_certificate,
            user.client_certificate_data,
        ),
        key=part(
            "key", user.where, "client-key", user.client_key, user.client_key_data
        ),
        server_name=cluster.tls_server_name or None,
        insecure=cluster.insecure_skip_tls_verify,
        **sources,
    )
    if material.insecure and material.ca is not None:
        raise (cluster.where / "insecure-skip-tls-verify").wrong(
            "is true although a certificate authority is set; remove one of them."
        )
    return TlsFiles(material, paths=paths)


def _credentials(
    user: User,
    cluster: Cluster,
    server: str,
    files: TlsFiles,
    environ: Mapping[str, str],
) -> Credentials:
    """A token, else a name and password, else a certificate, else the exec plugin."""
    if user.token_file:
        source = str(user.where / "tokenFile")
        path = user.where.file_path(user.token_file)
        token = TokenFile(path, source=source, fallback=user.token or None, files=files)
        if not user.token:
            token.read()
        return token
    if user.token:
        return Static(bearer(user.token, source=str(user.where / "token")), files=files)
    if user.username or user.password:
        return Static(basic(user.username, user.password), files=files)
    if user.exec is None or files.material.certificate is not None:
        return Static(files=files)
    info = _cluster_info(cluster, server, files.material)
    return ExecPlugin(user.exec, files=files, environ=environ, cluster=info)


def _cluster_info(
    cluster: Cluster, server: str, material: TlsMaterial
) -> Mapping[str, object]:
    """The cluster as an exec plugin wants to be told about it."""
    authority = base64.b64encode(material.ca).decode("ascii") if material.ca else ""
    optional: dict[str, object] = {
        "tls-server-name": cluster.tls_server_name,
        "insecure-skip-tls-verify": cluster.insecure_skip_tls_verify,
        "certificate-authority-data": authority,
        "proxy-url": cluster.proxy_url,
        "disable-compression": cluster.disable_compression,
    }
    present = {key: value for key, value in optional.items() if value}
    return {"server": server, **present, "config": cluster.exec_config}


def _impersonation(user: User) -> Impersonation | None:
    if not user.as_user:
        return None
    try:
        return Impersonation(
            user=user.as_user,
            uid=user.as_uid,
            groups=user.as_groups,
            extra=dict(user.as_user_extra),
        )
    except ConfigError:
        raise (user.where / "as").wrong(
            "or a key beside it that begins with as- has a line break or a control "
            "character in it; remove it."
        ) from None
