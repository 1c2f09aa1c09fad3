"""Publishing: OpenAPI documents as they are asked for, and as clients keep them.

A document has a hash, which the index of all documents tells. Whoever asks for that
hash may keep what they get for ever; whoever asks for an older one is sent on.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import msgspec

from trimtab.embedded import bodies, facts, openapi_protobuf, openapi_third
from trimtab.embedded.answers import Answer, Headers
from trimtab.embedded.bodies import JSON
from trimtab.embedded.catalog import Catalog
from trimtab.embedded.metadata import metadata_of
from trimtab.embedded.openapi import OpenApi, custom_schemas
from trimtab.embedded.requests import ApiRequest

ANY = ("", "*/*", "application/*", JSON)
KEPT = timedelta(days=365)
TEXT = "text/plain; charset=utf-8"
TIME = "%a, %d %b %Y %H:%M:%S UTC"
VARY = ("Vary", "Accept")

Document = dict[str, Any]


class Publishing:
    """The documents of a catalog, made anew when it changes."""

    def __init__(self, catalog: Catalog, *, now: Callable[[], datetime]) -> None:
        self._catalog = catalog
        self._now = now
        self._documents = OpenApi((), definitions=facts.definitions())
        self._revision = -1
        self._second: dict[str, bytes] = {}
        self._second_hash = ""

    def answer(self, request: ApiRequest) -> Answer | None:
        """What is at a path below ``/openapi``; None if there is nothing."""
        self._refresh()
        parts = request.path.strip("/").split("/")[1:]
        if parts == ["v2"]:
            return self._answer_second(request)
        if parts == ["v3"]:
            body = bodies.encode(self._documents.v3_index())
            # As the real server says it, which does not say what it is.
            return _matched(request, TEXT, lambda: body, hash=_hash(body))
        if parts[:2] == ["v3", "api"] and len(parts) == 3:
            return self._answer_third(request, "", parts[2])
        if parts[:2] == ["v3", "apis"] and len(parts) == 4:
            return self._answer_third(request, parts[2], parts[3])
        return None

    def _answer_second(self, request: ApiRequest) -> Answer:
        media = _media(request, openapi_protobuf.MEDIA, openapi_protobuf.DEPRECATED)
        if not media:
            return _unacceptable()
        body = self._encoded_second(media)
        if not self._second_hash:
            self._second_hash = _hash(self._encoded_second(JSON))
        return _matched(request, media, lambda: body, hash=self._second_hash)

    def _encoded_second(self, media: str) -> bytes:
        if media not in self._second:
            encode = msgspec.json.encode if media == JSON else openapi_protobuf.encode
            self._second[media] = encode(self._documents.v2())
        return self._second[media]

    def _answer_third(
        self, request: ApiRequest, group: str, version: str
    ) -> Answer | None:
        told = self._documents.v3_hash(group, version)
        if not told:
            return None
        media = _media(request, openapi_third.MEDIA, openapi_third.DEPRECATED)
        if not media:
            return _unacceptable()
        asked = request.query.get("hash", "")
        if asked and asked != told:
            place = self._documents.v3_url(group, version)
            return Answer(
                status=301,
                content_type=media,
                headers=(VARY, _tag(told), ("Location", place)),
            )
        encode = msgspec.json.encode if media == JSON else openapi_third.encode
        return _matched(
            request,
            media,
            lambda: encode(self._documents.v3(group, version) or {}),
            hash=told,
            headers=self._lasting() if asked else (),
        )

    def _lasting(self) -> Headers:
        """That a document never changes, because its address has its hash."""
        until = (self._now() + KEPT).strftime(TIME)
        return (("Cache-Control", "public, immutable"), ("Expires", until))

    def _refresh(self) -> None:
        if self._revision == self._catalog.revision:
            return
        custom: dict[str, Any] = {}
        seen = set()
        for kind in self._catalog.custom_kinds():
            name = metadata_of(kind.crd)["name"]
            if name not in seen:
                seen.add(name)
                custom.update(custom_schemas(kind.crd))
        resources = tuple(self._catalog.resources())
        self._documents = self._documents.changed(resources, custom=custom)
        self._revision = self._catalog.revision
        self._second.clear()
        self._second_hash = ""


def _matched(
    request: ApiRequest,
    media: str,
    body: Callable[[], bytes],
    *,
    hash: str,
    headers: Headers = (),
) -> Answer:
    """A document, or only that it is still the one which the client has."""
    headers = (VARY, _tag(hash), *headers)
    known = [each.strip() for each in _known(request).split(",")]
    if f'"{hash}"' in known or "*" in known:
        return Answer(status=304, content_type=media, headers=headers)
    return Answer(content_type=media, headers=headers, body=body())


def _known(request: ApiRequest) -> str:
    return request.headers.get("if-none-match", "").replace("W/", "")


def _media(request: ApiRequest, protobuf: str, deprecated: str) -> str:
    """The encoding that a client likes best of two; empty if it takes neither."""
    for choice in bodies.choices(request.headers.get("accept", "")):
        media = choice.partition(";")[0].strip()
        if media in ANY:
            return JSON
        if media in (protobuf, deprecated):
            return protobuf
    return ""


def _unacceptable() -> Answer:
    return Answer(status=406, content_type=TEXT, headers=(VARY,))


def _tag(hash: str) -> tuple[str, str]:
    return ("Etag", f'"{hash}"')


def _hash(body: bytes) -> str:
    return hashlib.sha512(body).hexdigest().upper()
