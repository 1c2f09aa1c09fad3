"""The settings of remote mode: which controller, and how it knows who we are.

The names are those of vmafx. What makes no sense together stops the operator at its
start, and not at the first job.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from trimtab.client import ConfigError
from trimtab.operators.vmafx.calling import read

_ADDRESS = "VMAFX_CONTROLLER_GRPC_ADDR"
_WEB = "VMAFX_CONTROLLER_HTTP_ADDR"
_TLS = "VMAFX_CONTROLLER_TLS"
_CA = "VMAFX_CONTROLLER_CA_FILE"
_NAME = "VMAFX_CONTROLLER_SERVER_NAME"
_TOKEN = "VMAFX_CONTROLLER_TOKEN"
_TOKEN_FILE = "VMAFX_CONTROLLER_TOKEN_FILE"
_AS_FAILED = "VMAFX_CANCELLED_AS_FAILED"
_YES, _NO = ("1", "t", "true"), ("", "0", "f", "false")


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Where the controller is, and what it is shown. No repr has the token."""

    address: str
    # Of its HTTP; a field of braces is the namespace of the object that asks.
    web: str = "http://vmafx-controller.{namespace}.svc.cluster.local:8080"
    trainer: str = "http://vmafx-trainer-{name}.{namespace}.svc.cluster.local:9091"
    tls: bool = False
    # PEM; without, those that the system trusts.
    authority: bytes | None = None
    server_name: str = ""
    token: str = ""
    token_file: Path | None = None
    # For programs that know no phase Cancelled.
    cancelled_as_failed: bool = False

    def __repr__(self) -> str:
        return f"Settings({self.address!r})"


def settings_of(environment: Mapping[str, str]) -> Settings:
    """What the environment says of the controller that it names.

    Errors: :class:`ConfigError` for what makes no sense together.
    """
    address = environment[_ADDRESS]
    tls = _is_on(environment, _TLS)
    authority, name = environment.get(_CA, ""), environment.get(_NAME, "")
    token, file = environment.get(_TOKEN, ""), environment.get(_TOKEN_FILE, "")
    if not tls and (authority or name):
        given = _CA if authority else _NAME
        raise ConfigError(f"{given} needs {_TLS}=true: without it, nobody is verified.")
    if token and file:
        raise ConfigError(f"{_TOKEN} and {_TOKEN_FILE} are both set: name one token.")
    made = Settings(
        address=address,
        tls=tls,
        authority=_authority(Path(authority)) if authority else None,
        server_name=name,
        token=token,
        token_file=Path(file) if file else None,
        cancelled_as_failed=_is_on(environment, _AS_FAILED),
    )
    web = environment.get(_WEB, "").rstrip("/")
    if not web:
        return made
    url = web if "://" in web else f"http://{web}"
    return msgspec.structs.replace(made, web=url)


def _is_on(environment: Mapping[str, str], name: str) -> bool:
    value = environment.get(name, "").lower()
    if value not in _YES + _NO:
        raise ConfigError(f"{name} is true or false, and not {value}.")
    return value in _YES


def _authority(file: Path) -> bytes:
    try:
        content = file.read_bytes()
    except OSError as error:
        reason = (error.strerror or "no reason given").lower()
        raise ConfigError(f"{_CA} cannot be read: {file}: {reason}.") from error
    if b"-----BEGIN CERTIFICATE-----" not in content:
        raise ConfigError(f"{_CA} names {file}, which holds no certificate.")
    return content


def token_of(settings: Settings, *, now: datetime) -> str:
    """The token as it is now, because it is renewed in place; empty without one.

    Errors: :class:`ConfigError` for a file that cannot be read, and for a token that
    has expired: it is not to be sent.
    """
    file = settings.token_file
    found = read(file) if file else settings.token
    ends = _expiry(found)
    if ends is not None and ends <= now:
        where = str(file) if file else _TOKEN
        raise ConfigError(
            f"The token in {where} expired at {ends:%Y-%m-%dT%H:%M:%SZ}: renew it."
        )
    return found


class _Claims(msgspec.Struct):
    exp: float | None = None


def _expiry(token: str) -> datetime | None:
    """When a token ends, if it is one that says so."""
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        body = base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4))
        ends = msgspec.json.decode(body, type=_Claims).exp
        return None if ends is None else datetime.fromtimestamp(ends, UTC)
    except (ValueError, OverflowError, OSError):  # no JWT that we could read
        return None
