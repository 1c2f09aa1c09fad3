"""Content: files of the workspace, read and written by their paths."""

from __future__ import annotations

from base64 import b64decode
from http import HTTPStatus
from pathlib import Path
from typing import Final

import msgspec

from trimtab.operators.sessions.runner.agent import Failed, inside
from trimtab.runtime.asks import Answer, Ask, json_answer

LARGEST: Final = 1 << 20
LISTED: Final = 10_000


class Write(msgspec.Struct, frozen=True, kw_only=True):
    path: str
    content: str = ""
    encoding: str = ""


class Content:
    """Answers questions about the files below a folder, and about no others.

    Errors: ``Failed`` for a path that leads out of it, or that cannot be used.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def answer(self, ask: Ask) -> Answer:
        """The answer to any request below ``/content``."""
        path = ask.query.get("path", "")
        try:
            match ask.method, ask.path:
                case "GET", "/content/list":
                    return self._list(path)
                case "GET", "/content/file":
                    return self._file(path)
                case "POST", "/content/write":
                    return self._write(msgspec.json.decode(ask.body, type=Write))
                case (("DELETE" | "POST"), "/content/delete"):
                    inside(self._folder, path).unlink(missing_ok=True)
                    return json_answer({"message": "It is gone."})
        except (OSError, ValueError) as error:
            if isinstance(error, msgspec.DecodeError):
                raise
            reason = getattr(error, "strerror", None) or "it is no text of that form"
            raise Failed(f"{path[:80]!r} cannot be used: {reason}.") from error
        missing = {"detail": f"There is no {ask.method} {ask.path}."}
        return json_answer(missing, status=HTTPStatus.NOT_FOUND)

    def _list(self, path: str) -> Answer:
        place = inside(self._folder, path)
        found = sorted(place.iterdir())[:LISTED]
        return json_answer(
            {
                "items": [
                    {
                        "name": each.name,
                        "path": str(each.relative_to(self._folder.resolve())),
                        "isDir": each.is_dir(),
                        "size": each.lstat().st_size,
                    }
                    for each in found
                ]
            }
        )

    def _file(self, path: str) -> Answer:
        with inside(self._folder, path).open("rb") as file:
            body = file.read(LARGEST + 1)
        if len(body) > LARGEST:
            raise Failed(f"{path[:80]!r} is larger than {LARGEST} bytes.")
        return Answer(body=body, type="application/octet-stream")

    def _write(self, asked: Write) -> Answer:
        plain = asked.content.encode()
        body = b64decode(plain, validate=True) if asked.encoding == "base64" else plain
        place = inside(self._folder, asked.path)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(body)
        return json_answer({"message": "It is written."})
