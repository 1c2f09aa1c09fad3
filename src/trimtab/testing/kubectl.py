"""The real kubectl, bound to one kubeconfig."""

import asyncio
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import msgspec

from trimtab.testing.errors import KubectlFailed

WITHIN = 60.0
"""Seconds that one call may take, unless the caller says otherwise."""

SECRET_FLAGS = ("--token", "--password")
"""Flags whose value never goes into an error message."""


class Kubectl(msgspec.Struct, frozen=True, kw_only=True):
    """How to run kubectl against one cluster, and against no other by accident."""

    program: Path
    kubeconfig: Path
    cache: Path
    """For what kubectl learns by discovery. The user's own cache is keyed by address
    and kept for hours, while test clusters reuse addresses within minutes."""

    async def run(
        self, *arguments: str, stdin: str | None = None, within: float = WITHIN
    ) -> str:
        """Run kubectl and return what it printed.

        Errors: `KubectlFailed` with its stderr, or when `within` seconds have passed;
        kubectl is killed then, as it is when the caller is cancelled.
        """
        process = await asyncio.create_subprocess_exec(
            *self._command(arguments),
            stdin=asyncio.subprocess.PIPE if stdin is not None else subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=_environment(),
        )
        given = stdin.encode() if stdin is not None else None
        try:
            async with asyncio.timeout(within) as limit:
                out, err = await process.communicate(given)
        except TimeoutError:
            if not limit.expired():
                raise
            raise _too_slow(arguments, within) from None
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        return _output(arguments, process.returncode, out, err)

    def run_blocking(self, *arguments: str, within: float = WITHIN) -> str:
        """`run` for where there is no event loop, such as a session's fixture."""
        try:
            done = subprocess.run(
                self._command(arguments),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                env=_environment(),
                timeout=within,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise _too_slow(arguments, within) from None
        return _output(arguments, done.returncode, done.stdout, done.stderr)

    def _command(self, arguments: Sequence[str]) -> list[str]:
        return [
            str(self.program),
            f"--kubeconfig={self.kubeconfig}",
            f"--cache-dir={self.cache}",
            *arguments,
        ]


def _environment() -> dict[str, str]:
    # A user's kuberc can change defaults and aliases, which is for people, not tests.
    return {**os.environ, "KUBECTL_KUBERC": "false"}


def _output(arguments: Sequence[str], code: int | None, out: bytes, err: bytes) -> str:
    if code:
        said = err.decode(errors="replace").strip()
        shown = _shown(arguments)
        raise KubectlFailed(f"`{shown}` ended with code {code}: {said}", stderr=said)
    return out.decode(errors="replace")


def _too_slow(arguments: Sequence[str], within: float) -> KubectlFailed:
    return KubectlFailed(
        f"`{_shown(arguments)}` was not done in {within:g} s and was killed."
    )


def _shown(arguments: Sequence[str]) -> str:
    """The command as it may be shown to people."""
    words, hide = ["kubectl"], False
    for argument in arguments:
        flag, equals, _ = argument.partition("=")
        secret = flag in SECRET_FLAGS
        words.append("…" if hide else f"{flag}=…" if secret and equals else argument)
        hide = secret and not equals
    return " ".join(words)
