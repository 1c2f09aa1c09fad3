"""Asking: questions to the endpoints of an operator that runs somewhere."""

from __future__ import annotations

import http.client
import json
from typing import Any
from urllib.parse import quote, urlsplit

from trimtab.client.errors import TrimtabError

SECONDS = 5.0
LIMIT = 16 * 1024 * 1024


class NoAnswer(TrimtabError):
    """The endpoints of an operator do not answer as they should."""


def ask(url: str, *path: str, method: str = "GET") -> bytes | None:
    """What the endpoints answer; None if they know no such thing (404).

    Errors: :class:`NoAnswer` when nobody is there, or the answer is not one.
    """
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(
        str(parts.hostname), parts.port or 80, timeout=SECONDS
    )
    try:
        where = "/".join(quote(each, safe="") for each in path)
        connection.request(method, f"{parts.path}/{where}")
        answer = connection.getresponse()
        body = answer.read(LIMIT)
    except (OSError, http.client.HTTPException) as error:
        raise NoAnswer(
            f"No operator answers at {url} ({error}); start it with trimtab run, or "
            "name its endpoints with --url."
        ) from error
    finally:
        connection.close()
    if answer.status == http.HTTPStatus.NOT_FOUND:
        return None
    if answer.status != http.HTTPStatus.OK:
        said = body.decode(errors="replace").strip()
        raise NoAnswer(f"{url} answers {answer.status}: {said}")
    return body


def ask_json(url: str, *path: str, method: str = "GET") -> Any:
    """The same, read as JSON."""
    body = ask(url, *path, method=method)
    try:
        return None if body is None else json.loads(body)
    except ValueError as error:
        raise NoAnswer(f"What answers at {url} is no Trimtab operator.") from error
