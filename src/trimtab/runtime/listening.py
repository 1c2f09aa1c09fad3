"""Listening: what the runtime's own servers have in common, below what they answer."""

from __future__ import annotations

import asyncio
import errno

from trimtab.client.errors import TrimtabError


class CannotListen(TrimtabError):
    """The address cannot be had."""


def sentence(what: str, host: str, port: int, error: Exception, *, other: str) -> str:
    """Why an address cannot be had; ``other`` is how to choose another port."""
    where = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
        return (
            f"{what} cannot listen on {where}: another program has that port."
            f" Stop it, or choose another {other}."
        )
    return (
        f"{what} cannot listen on {where}: {error}."
        " Choose an address of this machine and a port that this user may have."
    )


class Timed:
    """A connection that has one timer, for whatever may hang."""

    _transport: asyncio.Transport | None = None
    _timer: asyncio.TimerHandle | None = None

    def abort(self) -> None:
        """End the connection without a farewell."""
        if self._transport is not None:
            self._transport.abort()

    def _limit(self, seconds: float | None) -> None:
        """Let the connection live for so long, unless something happens."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if seconds is not None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(seconds, self.abort)
