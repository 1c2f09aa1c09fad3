"""Callers of a trainer: who may change something, by the token that they show.

The token, or its digest (``sha256:`` and 64 digits), is in a file. What counts is what
the file says now, so that a new token needs no restart; a file that cannot be read lets
nobody in.
"""

from __future__ import annotations

import hmac
import logging
import os
import re
from pathlib import Path
from typing import Final

from trimtab.client.errors import ConfigError
from trimtab.operators.vmafx.training.tokens import DIGEST, digest_of

_DIGEST: Final = re.compile(f"{DIGEST}[0-9a-f]{{64}}")
_LONGEST: Final = 4096

logger = logging.getLogger("trimtab.operators.vmafx.training")


class Callers:
    """Knows callers by the token in a file, as it is now.

    Errors: :class:`ConfigError` if there is none at the beginning.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._seen: tuple[int, ...] = ()
        self._digest = ""
        if not self._now():
            raise ConfigError(f"{file} has no token: name another --token-file.")

    def may(self, shown: str) -> bool:
        """Whether this is the token."""
        wanted = self._now()
        return hmac.compare_digest(digest_of(shown), wanted) if wanted else False

    def _now(self) -> str:
        """The digest of the token in the file, read again if that has changed."""
        try:
            found = os.stat(self._file)
            seen = (found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size)
            if seen != self._seen:
                self._digest, self._seen = _read(self._file), seen
        except (OSError, ValueError) as error:
            if self._digest:
                why = getattr(error, "strerror", None) or "it holds none"
                logger.warning("The token cannot be read, so nobody may: %s.", why)
            self._digest, self._seen = "", ()
        return self._digest


def _read(file: Path) -> str:
    """The digest that a file says. Errors: ``ValueError`` if it says none."""
    with file.open("rb") as opened:
        text = opened.read(_LONGEST).decode("ascii").strip()
    found = text if text.startswith(DIGEST) else digest_of(text)
    if not text or not _DIGEST.fullmatch(found):
        raise ValueError("neither a token nor a digest")
    return found
