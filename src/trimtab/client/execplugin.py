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
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Annotated, Any

import msgspec

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
# More is kept than shown, so that a token is hidden whole and not cut in two first.
COMPLAINT_KEPT = 1 << 13
# A command may leave a child behind that keeps its pipes open; once the command is
# gone, what it wrote is there within this time.
DRAIN = 1.0
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
        process = await self._execute(interactive=interactive)
        code = process.code
        if code != 0:
            how = f"exit code {code}" if code > 0 else f"signal {-code}"
            raise self._wrong(f"failed with {how}", complaint=process.complaint())
        return self._parse(bytes(process.output))

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

    async def _execute(self, *, interactive: bool) -> _Process:
        loop = asyncio.get_running_loop()
        limit = self._timeout or (INTERACTIVE_TIMEOUT if interactive else TIMEOUT)
        process = _Process(loop, alone=not interactive)
        try:
            async with asyncio.timeout(limit):
                await loop.subprocess_exec(
                    lambda: process,
                    self._program(),
                    *self._spec.args,
                    stdin=None if interactive else subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    # A person must see the prompt; otherwise we keep the end of it.
                    stderr=None if interactive else subprocess.PIPE,
                    env=self._environment(interactive=interactive),
                    start_new_session=not interactive,
                )
                await process.finished
        except TimeoutError:
            raise self._wrong(
                f"did not finish within {limit:g} s and was stopped",
                complaint=process.complaint(),
            ) from None
        except (OSError, ValueError) as error:
            raise self._unstartable(error) from None
        finally:
            await process.end()
        if process.overflow:
            raise self._wrong(f"printed more than {OUTPUT_LIMIT} bytes and was stopped")
        return process

    def _program(self) -> str:
        """The absolute path of the command, found as client-go finds it."""
        command = self._spec.command
        if os.sep in command:
            return command
        import shutil  # seldom needed, and it brings the compressors along

        found = shutil.which(command, path=self._environ.get("PATH", ""))
        if found is None or not os.path.isabs(found):
            raise FileNotFoundError
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

    def _unstartable(self, error: Exception) -> ConfigError:
        where = f'{self._spec.source}.command: the exec plugin "{self._spec.command}"'
        hint = _clean(self._spec.install_hint)
        if isinstance(error, FileNotFoundError):
            place = "there" if os.sep in self._spec.command else "on PATH"
            advice = hint or "install it or correct the command."
            return ConfigError(f"{where} is not {place}; {advice}")
        reason = getattr(error, "strerror", None) or "an argument has a NUL in it"
        return ConfigError(f"{where} cannot be started ({reason}); correct the entry.")

    def _parse(self, output: bytes) -> _Credential:
        try:
            answer = msgspec.json.decode(output, type=_Answer)
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
        return ConfigError(
            f'{self._spec.source}.command: the exec plugin "{self._spec.command}" '
            f"{what}; run it by hand to see why.{said}"
        )


class _Process(asyncio.SubprocessProtocol):
    """One run of a command: what it printed, within bounds, and its end."""

    def __init__(self, loop: asyncio.AbstractEventLoop, *, alone: bool) -> None:
        self.output = bytearray()
        self.overflow = False
        self.finished: asyncio.Future[None] = loop.create_future()
        self._exited: asyncio.Future[None] = loop.create_future()
        self._complaint = b""
        self._loop = loop
        self._alone = alone  # the leader of a process group of its own
        self._transport: Any = None

    @property
    def code(self) -> int:
        """The exit code; negative for a signal."""
        code = self._transport.get_returncode()
        return -signal.SIGKILL if code is None else int(code)

    def complaint(self) -> str:
        """The end of what it wrote to its standard error."""
        return self._complaint.decode("utf-8", "replace")

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == 2:
            self._complaint = (self._complaint + data)[-COMPLAINT_KEPT:]
        elif len(self.output) + len(data) > OUTPUT_LIMIT:
            self.overflow = True
            self._finish()
        else:
            self.output += data

    def process_exited(self) -> None:
        if not self._exited.done():
            self._exited.set_result(None)
        self._loop.call_later(DRAIN, self._finish)

    def connection_lost(self, exc: Exception | None) -> None:
        self._finish()

    def _finish(self) -> None:
        if not self.finished.done():
            self.finished.set_result(None)

    async def end(self) -> None:
        """Leave nothing behind: neither a process that still runs nor an open pipe."""
        if self._transport is None:
            return
        if not self._exited.done():
            self._kill()
            await asyncio.wait([self._exited], timeout=DRAIN)
        self._transport.close()

    def _kill(self) -> None:
        try:
            if self._alone:
                os.killpg(self._transport.get_pid(), signal.SIGKILL)
            else:
                self._transport.kill()
        except (ProcessLookupError, PermissionError):
            pass  # it is gone already


def _is_terminal() -> bool:
    try:
        return os.isatty(0)
    except OSError:
        return False


def _clean(text: str) -> str:
    """``text`` bounded, on one line, without control characters or tokens."""
    text = " ".join(TOKEN.sub("…", CONTROL.sub("", text)).split())
    return text.encode()[-COMPLAINT_LIMIT:].decode("utf-8", "ignore")
