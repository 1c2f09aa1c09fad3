"""Scoring roots: the folders that inputs may lie in. Without any, all are refused."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import SplitResult, unquote, urlsplit

import msgspec

from trimtab.operators.vmafx.problems import BadInput
from trimtab.operators.vmafx.sources import is_remote, named


class Roots(msgspec.Struct, frozen=True):
    """Folders, and addresses that begin so; what is below one of them may be read.

    Guarantees: a link counts as what it points to. Two dots do not lead out.
    """

    allowed: tuple[str, ...] = ()

    def check(self, text: str) -> None:
        """Let an input pass.

        Errors: :class:`BadInput` for one that is below no root, also when there are
        no roots at all.
        """
        inside = self._remote(text) if is_remote(text) else self._local(text)
        if not inside:
            raise BadInput(
                f"{named(text)} is outside of the scoring roots: ask for its folder to "
                "be made one, or move it."
            )

    def _remote(self, text: str) -> bool:
        asked = urlsplit(text)
        if ".." in unquote(asked.path).split("/"):
            return False
        return any(_below(asked.path, root.path) for root in self._addresses(asked))

    def _addresses(self, asked: SplitResult) -> list[SplitResult]:
        parts = [urlsplit(root) for root in self.allowed if is_remote(root)]
        return [
            root
            for root in parts
            if (root.scheme, root.netloc) == (asked.scheme, asked.netloc)
        ]

    def _local(self, text: str) -> bool:
        path = unquote(urlsplit(text).path) if text.startswith("file://") else text
        real = Path(path).resolve()
        folders = (Path(root).resolve() for root in self.allowed if not is_remote(root))
        return any(real.is_relative_to(folder) for folder in folders)


def _below(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip("/") + "/")
