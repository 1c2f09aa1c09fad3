"""What a process finds around it: the service account of its pod, and its proxies.

Beside them stand the checks of what comes from there and from kubeconfigs alike: the
address of a server or of a proxy, and the name of a namespace.
"""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, urlsplit

from trimtab.client.credentials import TlsFiles, TlsMaterial, TokenFile, read_file
from trimtab.client.errors import ConfigError

if TYPE_CHECKING:
    from trimtab.client.config import Config, Impersonation

FOLDER = "/var/run/secrets/kubernetes.io/serviceaccount"
HOST_VARIABLE = "KUBERNETES_SERVICE_HOST"
PORT_VARIABLE = "KUBERNETES_SERVICE_PORT"
NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


def in_cluster(
    *,
    namespace: str | None = None,
    impersonate: Impersonation | None = None,
    environ: Mapping[str, str] | None = None,
    folder: str | os.PathLike[str] | None = None,
) -> Config:
    """The configuration of a process that runs in a pod.

    The namespace is the argument, else ``POD_NAMESPACE``, else the service account's.
    ``folder`` is where the service account's files are, if not in the usual place.

    Guarantees: the token is read again at most once a minute and after a 401, the CA
    certificate at most once a minute; a file that is missing for a moment does no harm.

    Errors: :class:`ConfigError` names the variable or the file that is missing.
    """
    from trimtab.client.config import Config  # which itself needs this module

    environ = os.environ if environ is None else environ
    place = os.fspath(FOLDER if folder is None else folder)
    if reason := why_not(environ, folder=place):
        raise ConfigError(
            f"This process cannot use the in-cluster configuration: {reason}; run it "
            "in a pod that has a service account, or use a kubeconfig."
        )
    server = _server(environ)
    authority = os.path.join(place, "ca.crt")
    material = TlsMaterial(
        ca=read_file(authority, source=f"The service account's {authority}"),
        ca_source=f"The service account's {authority}",
    )
    files = TlsFiles(material, paths={"ca": authority})
    path = os.path.join(place, "token")
    token = TokenFile(path, source=f"The service account's {path}", files=files)
    token.read()
    return Config(
        server=server,
        tls=material,
        credentials=token,
        namespace=_namespace(namespace, environ, place),
        proxy=environment_proxy(server, environ),
        impersonate=impersonate,
        source="in-cluster",
    )


def why_not(environ: Mapping[str, str], *, folder: str | None = None) -> str | None:
    """What is missing for the in-cluster configuration; None if it can be used."""
    for name in (HOST_VARIABLE, PORT_VARIABLE):
        if not environ.get(name):
            return f"{name} is not set"
    token = os.path.join(FOLDER if folder is None else folder, "token")
    return None if os.path.isfile(token) else f"{token} does not exist"


def _server(environ: Mapping[str, str]) -> str:
    host, port = environ[HOST_VARIABLE], environ[PORT_VARIABLE]
    if ":" in host:
        host = f"[{host}]"
    return server_address(
        f"https://{host}:{port}", source=f"{HOST_VARIABLE} and {PORT_VARIABLE}"
    )


def _namespace(asked: str | None, environ: Mapping[str, str], folder: str) -> str:
    if asked:
        return check_namespace(asked, source="The argument namespace")
    if named := environ.get("POD_NAMESPACE"):
        return check_namespace(named, source="POD_NAMESPACE")
    path = os.path.join(folder, "namespace")
    if not os.path.isfile(path):
        return "default"
    source = f"The service account's {path}"
    text = read_file(path, source=source).decode("utf-8", "replace").strip()
    return check_namespace(text, source=source) if text else "default"


def check_namespace(name: str, *, source: str) -> str:
    """``name``, if it can be the name of a namespace."""
    if NAMESPACE.fullmatch(name):
        return name
    raise ConfigError(
        f"{source} cannot name a namespace; use at most 63 lower case letters, digits "
        "and hyphens, with a letter or digit at both ends."
    )


def server_address(address: str, *, source: str) -> str:
    """``address`` in the form that :class:`Config` promises."""
    parts = _url(address)
    if parts is None or parts.scheme not in ("http", "https"):
        raise ConfigError(
            f"{source} is not the address of a server; write https://host:port."
        )
    if "@" in parts.netloc:
        raise ConfigError(
            f"{source} has a user or a password in it; put them in the user's entry."
        )
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"


def _url(text: str) -> SplitResult | None:
    """The parts of a URL with a host; None if it is none."""
    if not text.isprintable() or " " in text:
        return None
    try:
        parts = urlsplit(text)
        return parts if parts.hostname and parts.port != 0 else None
    except ValueError:
        return None


def proxy_address(address: str, *, source: str) -> str:
    """``address``, if it is that of a proxy which we can use."""
    parts = _url(address)
    scheme = address.partition("://")[0].lower()
    if scheme.startswith("socks"):
        raise ConfigError(
            f"{source} is a SOCKS proxy, which is not supported; name an HTTP proxy."
        )
    if parts is None or parts.scheme not in ("http", "https"):
        raise ConfigError(
            f"{source} is not the address of a proxy; write http://host:port."
        )
    return address


def environment_proxy(server: str, environ: Mapping[str, str]) -> str | None:
    """The proxy that ``HTTPS_PROXY`` or ``HTTP_PROXY`` asks for, as Go reads them.

    The scheme of ``server`` says which of the two. Never for this machine itself, nor
    for what ``NO_PROXY`` lists.
    """
    name = f"{server.partition(':')[0].upper()}_PROXY"
    address = environ.get(name) or environ.get(name.lower())
    excluded = environ.get("NO_PROXY") or environ.get("no_proxy") or ""
    if not address or _goes_direct(server, excluded):
        return None
    if "://" not in address:
        address = f"http://{address}"
    return proxy_address(address, source=name)


def _goes_direct(server: str, excluded: str) -> bool:
    parts = urlsplit(server)
    host = (parts.hostname or "").lower()
    port = str(parts.port or {"http": 80, "https": 443}[parts.scheme])
    address = _ip(host)
    if host == "localhost" or (address is not None and address.is_loopback):
        return True
    return any(
        _excludes(entry, host=host, port=port, address=address)
        for entry in _entries(excluded)
    )


def _entries(excluded: str) -> Iterator[str]:
    return filter(None, (entry.strip().lower() for entry in excluded.split(",")))


def _ip(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def _excludes(
    entry: str,
    *,
    host: str,
    port: str,
    address: ipaddress.IPv4Address | ipaddress.IPv6Address | None,
) -> bool:
    """Whether one entry of ``NO_PROXY`` is about this host: a name, address or net."""
    if entry == "*":
        return True
    if "/" in entry:
        try:
            return address is not None and address in ipaddress.ip_network(
                entry, strict=False
            )
        except ValueError:
            return False
    name, wanted_port = entry, ""
    if _ip(entry) is None and (found := re.fullmatch(r"\[?(.*?)\]?:(\d*)", entry)):
        name, wanted_port = found[1], found[2]
    if wanted_port not in ("", port) or not name:
        return False
    if address is not None:
        return _ip(name) == address
    name = name.removeprefix("*") if name.startswith("*.") else name
    return host.endswith(name if name.startswith(".") else f".{name}") or host == name
