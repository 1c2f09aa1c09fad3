"""Files: certificates that somebody else renews, in a folder, as cert-manager does.

``tls.crt`` and ``tls.key`` are served. With a ``ca.crt``, and unless cert-manager tells
the API servers itself, a new one is trusted beside the old for a while before anything
is served under it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Mapping
from pathlib import Path

from trimtab.client.credentials import Guarded
from trimtab.client.errors import TrimtabError
from trimtab.runtime.webhooks.certificates import split
from trimtab.runtime.webhooks.secret import Material
from trimtab.runtime.webhooks.serving import CannotServe, load_pair, new_context

EVERY = 1.0
"""Seconds between two looks. A volume of a Secret changes all its files at once."""

logger = logging.getLogger("trimtab.runtime.webhooks")


class NoCertificates(TrimtabError):
    """The folder does not hold what was promised."""


class Found(Guarded, frozen=True):
    """What the files hold."""

    serving: bytes
    authorities: tuple[bytes, ...] = ()

    def shown(self) -> Mapping[str, object]:
        return {"authorities": len(self.authorities)}


class FileSource:
    """Serves what is in a folder, and what comes to be there.

    Guarantees: files that do not belong together, as when only one of them has been
    replaced, change nothing; what was served before goes on.

    Errors: :class:`NoCertificates` when there is nothing to begin with.
    """

    def __init__(self, folder: str, *, injects: bool) -> None:
        self._folder = Path(folder)
        self._injects = injects
        """Whether Trimtab itself tells API servers whom to trust."""
        self._served: Found | None = None
        self._next: Found | None = None
        self._told = ""

    async def run(self) -> None:
        """There is nothing to follow; files are looked at."""

    def due(self) -> float:
        return EVERY

    async def advance(self, *, trusted: Collection[bytes]) -> Material:
        """Look at the files; what to serve then."""
        found = await asyncio.to_thread(self._look)
        if self._served is None:
            self._served = found
        elif found != (self._next or self._served):
            # Back to what is served: there is nothing to wait for any more.
            self._next = found if found != self._served else None
        if self._next is not None and not self._waits(trusted):
            logger.info("The certificate in %s is new; it is served.", self._folder)
            self._served, self._next = self._next, None
        return self._material()

    def _waits(self, trusted: Collection[bytes]) -> bool:
        """Whether what is next needs an authority that is not trusted so far."""
        if self._next is None or not self._injects:
            return False
        return not set(self._next.authorities) <= set(trusted)

    def _material(self) -> Material:
        assert self._served is not None, "it has looked"
        known = [*self._served.authorities]
        known += self._next.authorities if self._next is not None else ()
        return Material(
            serving=self._served.serving,
            bundle=tuple(dict.fromkeys(known)) if self._injects and known else None,
            waiting=self._next is not None,
        )

    def _look(self) -> Found:
        """What is in the folder, if it is good, else what is served already."""
        try:
            found = self._read()
            load_pair(new_context(), found.serving)
        except (OSError, CannotServe) as error:
            why = f"The certificates in {self._folder} cannot be used: {_why(error)}"
            if self._served is None:
                raise NoCertificates(why) from None
            if why != self._told:
                logger.error("%s", why)
                self._told = why
            return self._next or self._served
        self._told = ""
        return found

    def _read(self) -> Found:
        parts = [(self._folder / name).read_bytes() for name in ("tls.key", "tls.crt")]
        try:
            authorities = split((self._folder / "ca.crt").read_bytes())
        except FileNotFoundError:
            authorities = ()
        return Found(b"\n".join(parts), authorities)


def _why(error: Exception) -> str:
    if isinstance(error, OSError):
        return f"{error.filename}: {error.strerror}. It needs tls.crt and tls.key."
    return str(error)
