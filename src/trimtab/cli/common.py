"""What commands share: the arguments that name a source or a cluster, and YAML."""

from __future__ import annotations

import argparse
import os
from collections.abc import Coroutine, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from trimtab.client import Config

T = TypeVar("T")
INTERRUPTED = 130
"""What a shell says of a program that Control-C ended: 128 and SIGINT."""
ENDPOINTS = "http://127.0.0.1:8080"


def add_source(made: argparse.ArgumentParser, *, several: bool = False) -> None:
    """The file or module of an operator."""
    made.add_argument(
        "source",
        nargs="+" if several else None,
        metavar="FILE|MODULE",
        help="the operator's file, or the name of its module",
    )
    made.add_argument("--operator", metavar="NAME", help="which, if there are several")


def add_cluster(made: argparse.ArgumentParser) -> None:
    """How to find the API server."""
    made.add_argument("--kubeconfig", metavar="FILE", help="instead of $KUBECONFIG")
    made.add_argument("--context", metavar="NAME", help="a context of the kubeconfig")


def add_log(made: argparse.ArgumentParser) -> None:
    """What is logged."""
    made.add_argument(
        "--log",
        default="info",
        choices=("debug", "info", "warning", "error"),
        help="what is logged (default: info)",
    )


def add_url(made: argparse.ArgumentParser) -> None:
    """Where the operator's endpoints are."""
    made.add_argument(
        "--url",
        default=ENDPOINTS,
        type=_url,
        metavar="URL",
        help="the operator's endpoints; in a cluster, those that kubectl port-forward "
        f"brings here (default: {ENDPOINTS})",
    )


def _url(text: str) -> str:
    from urllib.parse import urlsplit

    parts = urlsplit(text)
    try:
        valid = parts.scheme == "http" and parts.hostname and parts.port != 0
    except ValueError:
        valid = False
    if not valid:
        raise argparse.ArgumentTypeError(f"{text!r} is no URL such as {ENDPOINTS}")
    return text.rstrip("/")


def config_of(options: argparse.Namespace, *, namespace: str | None = None) -> Config:
    """The API server that the arguments name."""
    from trimtab.client import load

    return load(
        kubeconfig=options.kubeconfig, context=options.context, namespace=namespace
    )


def names(text: str) -> tuple[str, ...]:
    """Names with commas between."""
    found = tuple(dict.fromkeys(part.strip() for part in text.split(",")))
    if not all(found):
        raise argparse.ArgumentTypeError(f"{text!r} is not a list: a,b,c")
    return found


def whole(text: str) -> int:
    if text.isdecimal() and int(text) < 1 << 31:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 on")


def count(text: str) -> int:
    if text.isdecimal() and 0 < int(text) < 1 << 31:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 on")


def port(text: str) -> int:
    if text.isdecimal() and int(text) < 1 << 16:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is not a port: give 0 to 65535")


def port_or_none(text: str) -> int:
    return -1 if text == "-1" else port(text)


def seconds(text: str) -> float:
    """A time that is long enough to mean something."""
    try:
        found = float(text)
    except ValueError:
        found = 0.0
    if 0.0 < found < 1e9:
        return found
    raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0")


def documents(objects: Iterable[Any]) -> str:
    """Objects as one text of YAML documents, in the order of their keys."""
    import yaml

    return yaml.safe_dump_all(objects, sort_keys=False, width=88, allow_unicode=True)


def contents(file: os.PathLike[str], *, what: str) -> bytes:
    """What is in a file that an argument names.

    Errors: ``ConfigError``, which says what the file was to be.
    """
    from trimtab.client.errors import ConfigError

    try:
        with open(file, "rb") as opened:
            return opened.read()
    except OSError as error:
        reason = (error.strerror or "no reason given").lower()
        raise ConfigError(
            f"{file}, {what}, cannot be read: {reason}; name another file."
        ) from error


def check_certificate(
    certificate: os.PathLike[str] | None, key: os.PathLike[str] | None
) -> None:
    """Refuse files that cannot be shown, before anything is served.

    Errors: ``ConfigError``.
    """
    import ssl

    from trimtab.client.errors import ConfigError

    if certificate is None and key is None:
        return
    if certificate is None or key is None:
        raise ConfigError("A certificate needs its key: give --certificate and --key.")
    contents(certificate, what="the certificate")
    contents(key, what="the key of the certificate")
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key)
    except ssl.SSLError as error:
        raise ConfigError(
            f"{certificate} and {key} are no certificate and its key "
            f"({error.reason or 'no PEM'}): name two PEM files that belong together."
        ) from error


@contextmanager
def needing(extra: str, *, what: str) -> Iterator[None]:
    """Say what to install if something is imported here that is not installed."""
    from trimtab.client.errors import ConfigError

    try:
        yield
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"{what} needs {error.name}, which is not installed: "
            f"pip install 'trimtab[{extra}]'."
        ) from error


def running(work: Coroutine[Any, Any, T]) -> T:
    """Run asynchronous work; the failure itself, out of its task groups."""
    import asyncio

    try:
        return asyncio.run(work)
    except ExceptionGroup as failures:
        error: Exception = failures
        while isinstance(error, ExceptionGroup):
            error = error.exceptions[0]
        raise error from failures
