"""The exec plugin: a command of the user's that prints credentials when asked.

It is what `kubectl` runs for cloud providers and single sign-on
(``client.authentication.k8s.io``, v1 and v1beta1). The command gets an
``ExecCredential`` in ``KUBERNETES_EXEC_INFO`` and prints one with a status: a token, a
client certificate with its key, or both, and perhaps the time at which they end.
"""

from __future__ import annotations

import asyncio
import datetime
import os
import re
import time
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Annotated

import msgspec

from trimtab.client.commands import CommandFailed, output
from trimtab.client.credentials import (
    NO_HEADERS,
    Guarded,
    TlsFiles,
    TlsMaterial,
    bearer,
)
from trimtab.client.errors import ConfigError

GROUP = "client.authentication.k8s.io"
VERSIONS = (f"{GROUP}/v1", f"{GROUP}/v1beta1")
INFO_VARIABLE = "KUBERNETES_EXEC_INFO"

TIMEOUT = 60.0
# Somebody may have to find a phone and type a code from it.
INTERACTIVE_TIMEOUT = 600.0
OUTPUT_LIMIT = 1 << 20
COMPLAINT_LIMIT = 1 << 10
# A credential is renewed this long before it ends, or a tenth of its life before.
MARGIN = 30.0

# What looks like a token in a plugin's complaint: a JSON Web Token, or a bearer header.
TOKEN = re.compile(r"eyJ[\w-]+(\.[\w-]*)*|(?<=[Bb]earer )\S+")
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
SECRET_ARGUMENT = re.compile(
    r"[^=]*(?:secret|password|token|key)[^=]*=(.+)", re.I | re.S
)


class ExecSpec(Guarded, frozen=True, kw_only=True):
    """The ``exec`` entry of a kubeconfig's user.

    ``command`` is a bare name, looked up on PATH, or an absolute path. ``source`` is
    the file and key that errors name.
    """

    command: str
    api_version: str
    interactive_mode: str
    source: str
    args: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    install_hint: str = ""
    provide_cluster_info: bool = False

    def shown(self) -> Mapping[str, object]:
        """The command; its arguments and environment may hold secrets."""
        return {"command": self.command, "api_version": self.api_version}

    def secrets(self) -> list[str]:
        """What a complaint of the command must not repeat, the longest first."""
        found = [value for _, value in self.env]
        found += [
            match[1] for match in map(SECRET_ARGUMENT.fullmatch, self.args) if match
        ]
        return sorted(
            (value for value in found if len(value) >= 8), key=len, reverse=True
        )

    def check(self) -> None:
        """Raise :class:`ConfigError` unless the entry says all that a run takes."""
        if not self.command:
            raise ConfigError(f"{self.source}.command is missing; name the command.")
        if self.api_version not in VERSIONS:
            raise ConfigError(
                f"{self.source}.apiVersion must be {' or '.join(VERSIONS)}; "
                "set it to the one that the command speaks."
            )
        if self.interactive_mode not in ("Never", "IfAvailable", "Always"):
            raise ConfigError(
                f"{self.source}.interactiveMode must be Never, IfAvailable or Always; "
                "set it to Never if the command asks nobody anything."
            )
        for index, (name, _) in enumerate(self.env):
            if not name or "=" in name:
                raise ConfigError(
                    f"{self.source}.env[{index}].name is missing or has a = in it; "
                    "name the variable."
                )


class _Status(Guarded, frozen=True):
    token: str | None = None
    clientCertificateData: str | None = None
    clientKeyData: str | None = None
    expirationTimestamp: Annotated[datetime.datetime, msgspec.Meta(tz=True)] | None = (
        None
    )


class _Answer(msgspec.Struct, frozen=True):
    apiVersion: str = ""
    kind: str = ""
    status: _Status | None = None


class _Credential(Guarded, frozen=True, kw_only=True):
    """What one run of the command gave."""

    headers: Mapping[str, str]
    certificate: bytes | None
    key: bytes | None
    renew_at: float | None  # on the wall clock, as the command's own answer is


class ExecPlugin:
    """Credentials from a command.

    Flow: the first call runs the command and the answer is kept until shortly before
    its ``expirationTimestamp``, or until ``invalidate``.

    Guarantees: at most one run at a time, shared by all who wait for it; if the caller
    that started it is cancelled, the run is ended and another one that waits starts
    anew. No shell, bounded time, bounded output, nothing left running on a failure.

    Errors: :class:`ConfigError` names the file, the key and the command, with the end
    of what the command wrote to its standard error.
    """

    def __init__(
        self,
        spec: ExecSpec,
        *,
        files: TlsFiles,
        environ: Mapping[str, str],
        cluster: Mapping[str, object] | None = None,
        timeout: float | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._spec = spec
        self._files = files
        self._environ = environ
        self._cluster = cluster if spec.provide_cluster_info else None
        self._timeout = timeout
        self._clock = clock
        self._held: _Credential | None = None
        self._running: asyncio.Future[_Credential | ConfigError | None] | None = None
        self._tls: tuple[_Credential, TlsMaterial, TlsMaterial] | None = None

    def __repr__(self) -> str:
        return f"ExecPlugin({self._spec!r})"

    async def headers(self) -> Mapping[str, str]:
        return (await self._credential()).headers

    async def tls(self) -> TlsMaterial | None:
        held = await self._credential()
        base = self._files.current()
        if held.certificate is None:
            return base if self._files.rotates else None
        if self._tls is None or self._tls[0] is not held or self._tls[1] is not base:
            self._tls = (held, base, self._material(held, base))
        return self._tls[2]

    def invalidate(self, refused: Mapping[str, str] | None = None) -> None:
        self._files.expire()
        held = self._held
        if held is not None and (refused is None or refused is held.headers):
            self._held = None

    def _material(self, held: _Credential, base: TlsMaterial) -> TlsMaterial:
        says = f'{self._spec.source}: the answer of "{self._spec.command}"'
        return msgspec.structs.replace(
            base,
            certificate=held.certificate,
            key=held.key,
            certificate_source=f"{says}, status.clientCertificateData,",
            key_source=f"{says}, status.clientKeyData,",
        )

    async def _credential(self) -> _Credential:
        """What is held, else what the run under way gives, else a run of our own."""
        while True:
            held = self._held
            if held is not None and not self._ends(held):
                return held
            if self._running is None:
                return await self._lead()
            # Shielded: whoever gives up waiting must not take the result from others.
            outcome = await asyncio.shield(self._running)
            if isinstance(outcome, ConfigError):
                raise ConfigError(*outcome.args)
            if outcome is not None:
                return outcome

    def _ends(self, held: _Credential) -> bool:
        return held.renew_at is not None and self._clock() >= held.renew_at

    async def _lead(self) -> _Credential:
        """Run the command for everybody who waits."""
        running = asyncio.get_running_loop().create_future()
        self._running = running
        try:
            self._held = held = await self._run()
            running.set_result(held)
            return held
        except ConfigError as error:
            running.set_result(error)
            raise
        finally:
            self._running = None
            if not running.done():
                running.set_result(None)  # cancelled: one of those who wait goes on

    async def _run(self) -> _Credential:
        interactive = self._interactive()
        limit = self._timeout or (INTERACTIVE_TIMEOUT if interactive else TIMEOUT)
        try:
            printed = await output(
                *(self._program(), *self._spec.args),
                within=limit,
                environment=self._environment(interactive=interactive),
                most=OUTPUT_LIMIT,
                terminal=interactive,
            )
        except CommandFailed as error:
            if error.__cause__ is not None:
                raise self._unstartable(error) from None
            raise self._wrong(str(error), complaint=error.complaint) from None
        return self._parse(printed)

    def _interactive(self) -> bool:
        """Whether the command may talk to the person at the terminal."""
        mode = self._spec.interactive_mode
        terminal = mode != "Never" and _is_terminal()
        if mode == "Always" and not terminal:
            raise ConfigError(
                f"{self._spec.source}.interactiveMode is Always, but standard input is "
                "not a terminal here; use credentials that need nobody to type."
            )
        return terminal

    def _program(self) -> str:
        """The absolute path of the command, found as client-go finds it."""
        command = self._spec.command
        if os.sep in command:
            return command
        import shutil  # seldom needed, and it brings the compressors along

        found = shutil.which(command, path=self._environ.get("PATH", ""))
        if found is None or not os.path.isabs(found):
            raise self._absent("on PATH")
        return found

    def _environment(self, *, interactive: bool) -> dict[str, str]:
        spec: dict[str, object] = {"interactive": interactive}
        if self._cluster is not None:
            spec["cluster"] = self._cluster
        info = {
            "kind": "ExecCredential",
            "apiVersion": self._spec.api_version,
            "spec": spec,
        }
        encoded = msgspec.json.encode(info).decode()
        return {**self._environ, **dict(self._spec.env), INFO_VARIABLE: encoded}

    def _unstartable(self, error: CommandFailed) -> ConfigError:
        if isinstance(error.__cause__, FileNotFoundError):
            return self._absent("there")
        return ConfigError(f"{self._named()} {error}; correct the entry.")

    def _absent(self, place: str) -> ConfigError:
        advice = _clean(self._spec.install_hint) or "install it or correct the command."
        return ConfigError(f"{self._named()} is not {place}; {advice}")

    def _named(self) -> str:
        return f'{self._spec.source}.command: the exec plugin "{self._spec.command}"'

    def _parse(self, printed: bytes) -> _Credential:
        try:
            answer = msgspec.json.decode(printed, type=_Answer)
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
            # Only a path into the answer, such as $.status.token, is fit to be shown.
            at = re.search(r"`(\$\.[A-Za-z.]+)`", str(error))
            what = f"a wrong value at {at[1]}" if at else "no JSON object"
            raise self._wrong(f"printed {what} instead of an ExecCredential") from None
        if answer.kind != "ExecCredential":
            raise self._wrong("printed something that is not an ExecCredential")
        if answer.apiVersion != self._spec.api_version:
            raise self._wrong(
                f"answered in another version than {self._spec.api_version}, which "
                "the kubeconfig's apiVersion asks for"
            )
        return self._accept(answer.status or _Status())

    def _accept(self, status: _Status) -> _Credential:
        certificate, key = status.clientCertificateData, status.clientKeyData
        if bool(certificate) != bool(key):
            raise self._wrong("answered with a certificate or a key, but not with both")
        if not status.token and not certificate:
            raise self._wrong("answered without a token and without a certificate")
        headers: Mapping[str, str] = MappingProxyType(dict(NO_HEADERS))
        if status.token:
            said = f'{self._spec.source}: the answer of "{self._spec.command}"'
            headers = bearer(status.token, source=said)
        return _Credential(
            headers=headers,
            certificate=certificate.encode() if certificate else None,
            key=key.encode() if key else None,
            renew_at=self._renew_at(status.expirationTimestamp),
        )

    def _renew_at(self, ends: datetime.datetime | None) -> float | None:
        if ends is None:
            return None
        life = max(0.0, ends.timestamp() - self._clock())
        return ends.timestamp() - min(MARGIN, life / 10)

    def _wrong(self, what: str, *, complaint: str = "") -> ConfigError:
        for secret in self._spec.secrets():
            complaint = complaint.replace(secret, "…")
        complaint = _clean(complaint)
        said = f" It said: {complaint}" if complaint else ""
        return ConfigError(f"{self._named()} {what}; run it by hand to see why.{said}")


def _is_terminal() -> bool:
    try:
        return os.isatty(0)
    except OSError:
        return False


def _clean(text: str) -> str:
    """``text`` on one line without control characters or tokens, and then bounded.

    The bound comes last, so that a token is hidden whole and not cut in two first.
    """
    text = " ".join(TOKEN.sub("…", CONTROL.sub("", text)).split())
    return text.encode()[-COMPLAINT_LIMIT:].decode("utf-8", "ignore")
