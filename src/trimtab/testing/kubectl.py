"""The real kubectl, bound to one kubeconfig."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import msgspec

from trimtab.client.commands import CommandFailed, output
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
        try:
            printed = await output(
                *self._command(arguments),
                within=within,
                environment=_environment(),
                given=None if stdin is None else stdin.encode(),
            )
        except CommandFailed as error:
            raise _failed(arguments, str(error), error.complaint) from None
        return printed.decode(errors="replace")

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
            why = f"did not finish within {within:g} s and was stopped"
            raise _failed(arguments, why) from None
        if done.returncode:
            said = done.stderr.decode(errors="replace")
            raise _failed(arguments, f"failed with exit code {done.returncode}", said)
        return done.stdout.decode(errors="replace")

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


def _failed(arguments: Sequence[str], why: str, said: str = "") -> KubectlFailed:
    said = said.strip()
    ending = f": {said}" if said else "."
    return KubectlFailed(f"`{_shown(arguments)}` {why}{ending}", stderr=said)


def _shown(arguments: Sequence[str]) -> str:
    """The command as it may be shown to people."""
    words, hide = ["kubectl"], False
    for argument in arguments:
        flag, equals, _ = argument.partition("=")
        secret = flag in SECRET_FLAGS
        words.append("…" if hide else f"{flag}=…" if secret and equals else argument)
        hide = secret and not equals
    return " ".join(words)
