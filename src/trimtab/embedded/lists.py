"""Lists: one consistent state, whole or in pages, filtered on the way.

A list is of one revision: the newest, or the one that a continue token or the client
names. Pages of an older revision come from the store's history, for as long as it
remembers them.
"""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Iterable, Iterator

import msgspec

from trimtab.embedded import jsontext, status
from trimtab.embedded.jsontext import Malformed
from trimtab.embedded.patches import json_kind
from trimtab.embedded.requests import ApiRequest
from trimtab.embedded.status import ApiProblem, FieldProblem, GroupResource
from trimtab.embedded.store import Compacted, Store

SCAN = 200
EXPIRED = (
    "The provided continue parameter is too old to display a consistent list result. "
    "You can start a new list without the continue parameter, or use the continue "
    "token in this response to retrieve the remainder of the results. Continuing with "
    "the provided token results in an inconsistent list - objects that were created, "
    "modified, or deleted between the time the first chunk was returned and now may "
    "show up in the list."
)
NOT_OLDER = "NotOlderThan"
TOKEN_VERSION = "meta.k8s.io/v1"
_NO_BASE64 = re.compile("[^A-Za-z0-9_-]")
Convert = Callable[[Iterable[bytes]], Iterable[bytes]]
LIST_OPTIONS = GroupResource("meta.k8s.io", "ListOptions")


class Token(msgspec.Struct, frozen=True):
    """Where the next page begins: the revision of the list and the last key given."""

    revision: int = msgspec.field(name="rv", default=0)
    after: str = msgspec.field(name="start", default="")
    version: str = msgspec.field(name="v", default=TOKEN_VERSION)

    def text(self) -> str:
        return urlsafe_b64encode(msgspec.json.encode(self)).decode().rstrip("=")

    @classmethod
    def parse(cls, text: str) -> Token:
        """The token in a text; 400 for one that no server has given."""
        try:
            return _token(_bytes(text))
        except (Malformed, ValueError) as problem:
            raise status.bad_request(
                f"invalid continue token: continue key is not valid: {problem}"
            ) from None


def _bytes(text: str) -> bytes:
    wrong = _NO_BASE64.search(text)
    if wrong or len(text) % 4 == 1:
        place = wrong.start() if wrong else len(text) - 1
        raise ValueError(f"illegal base64 data at input byte {place}")
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _token(raw: bytes) -> Token:
    """What a token says, or what the real server says about it."""
    told = jsontext.decode(raw)
    if not isinstance(told, dict | None):
        of = "Go value of type storage.continueToken"
        raise ValueError(f"json: cannot unmarshal {json_kind(told)} into {of}")
    told = told or {}
    for key, type, name in (("v", str, "string"), ("rv", int, "int64")):
        if not isinstance(told.get(key), type | None):
            of = f"Go struct field continueToken.{key} of type {name}"
            raise ValueError(f"json: cannot unmarshal {json_kind(told[key])} into {of}")
    version = told.get("v") or ""
    if version != TOKEN_VERSION:
        raise ValueError(f"server does not recognize this encoded version {version}")
    if not told.get("rv"):
        raise ValueError(f"incorrect encoded start resourceVersion (version {version})")
    if not told.get("start"):
        raise ValueError(f"encoded start key empty (version {version})")
    return Token(told["rv"], str(told["start"]))


class ListRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Which state is listed, from where, and how much of it."""

    revision: int = 0
    """0: the newest."""
    after: str = ""
    limit: int = 0


class ListPage(msgspec.Struct, kw_only=True):
    """A page: its objects, and what the list's metadata says."""

    values: Iterator[bytes] | list[bytes]
    revision: int
    next: str = ""
    remaining: int | None = None

    def metadata(self) -> dict[str, object]:
        meta: dict[str, object] = {"resourceVersion": str(self.revision)}
        if self.next:
            meta["continue"] = self.next
        if self.remaining:
            meta["remainingItemCount"] = self.remaining
        return meta


def list_request(request: ApiRequest, *, current: int) -> ListRequest:
    """What a query asks for; all combinations of version, match, limit and continue."""
    limit = max(0, request.number("limit") or 0)
    request.number("timeoutSeconds")
    after = request.query.get("continue", "")
    version = request.query.get("resourceVersion", "")
    match = request.query.get("resourceVersionMatch", "")
    problems = _problems(request, version, match, after)
    if problems:
        raise status.invalid_object(LIST_OPTIONS, "", problems)
    if version == "0":
        limit = 0  # the real server answers from its cache, which has no pages
    if after:
        token = Token.parse(after)
        if version not in ("", "0"):
            raise status.bad_request(
                "specifying resource version is not allowed when using continue"
            )
        return ListRequest(revision=token.revision, after=token.after, limit=limit)
    try:
        asked = number_of(version)
    except ApiProblem as problem:
        text = f"invalid resource version: {problem.message}"
        raise status.bad_request(text) from None
    if asked > current:
        raise too_large_version(asked, current)
    exact = match == "Exact" or (not match and asked > 0 and limit > 0)
    return ListRequest(revision=asked if exact else 0, limit=limit)


def number_of(version: str) -> int:
    """A resource version as the number that it is; 500 as the real server says it."""
    if version in ("", "0"):
        return 0
    if not (version.isascii() and version.isdecimal()):
        detail = f"strconv.ParseUint: parsing {status.quoted(version)}: invalid syntax"
        problem = status.invalid("resourceVersion", version, detail)
        raise ApiProblem(500, "", str(problem))
    return int(version)


def too_large_version(asked: int, current: int) -> ApiProblem:
    """A revision from the future: the real server waits a moment, then says this."""
    return ApiProblem(
        504,
        "Timeout",
        f"Timeout: Too large resource version: {asked}, current: {current}",
        causes=[
            {
                "reason": "ResourceVersionTooLarge",
                "message": "Too large resource version",
            }
        ],
        retry_after=1,
    )


def _problems(
    request: ApiRequest, version: str, match: str, after: str
) -> list[FieldProblem]:
    problems = _match_problems(version, match, after) if match else []
    if "sendInitialEvents" in request.query:
        detail = "sendInitialEvents is forbidden for list"
        problems.append(status.forbidden_value("sendInitialEvents", detail))
    return problems


def _match_problems(version: str, match: str, after: str) -> list[FieldProblem]:
    field = "resourceVersionMatch"
    problems = []
    if not version:
        detail = f"{field} is forbidden unless resourceVersion is provided"
        problems.append(status.forbidden_value(field, detail))
    if after:
        detail = f"{field} is forbidden when continue is provided"
        problems.append(status.forbidden_value(field, detail))
    if match not in ("Exact", "NotOlderThan"):
        allowed = ("Exact", "NotOlderThan", "")
        problems.append(status.not_supported(field, match, allowed))
    if match == "Exact" and version == "0":
        detail = f'{field} "exact" is forbidden for resourceVersion "0"'
        problems.append(status.forbidden_value(field, detail))
    return problems


def wants_initial(request: ApiRequest) -> bool:
    """Whether a watch begins with what is there; 422 for options that do not fit."""
    field = "resourceVersionMatch"
    match = request.query.get(field, "")
    sending = request.flag("sendInitialEvents")
    asked = "sendInitialEvents" in request.query
    if not asked and not match:
        # Older clients mean this by a watch from nowhere.
        sending = asked = request.query.get("resourceVersion", "") in ("", "0")
        match = NOT_OLDER if asked else ""
    details = []
    if asked and match != NOT_OLDER:
        details.append(f"sendInitialEvents requires setting {field} to {NOT_OLDER}")
    if match and not asked:
        details.append(
            f"{field} is forbidden for watch unless sendInitialEvents is provided"
        )
    problems = [status.forbidden_value(field, detail) for detail in details]
    if match and match != NOT_OLDER:
        problems.append(status.not_supported(field, match, (NOT_OLDER,)))
    if match and request.query.get("continue"):
        detail = f"{field} is forbidden when continue is provided"
        problems.append(status.forbidden_value(field, detail))
    if problems:
        raise status.invalid_object(LIST_OPTIONS, "", problems)
    return sending


def list_page(
    store: Store,
    prefix: str,
    asked: ListRequest,
    matches: Callable[[bytes], bool] | None,
    *,
    convert: Convert | None = None,
) -> ListPage:
    """One page; 410 with a token to go on with if its revision is forgotten.

    With ``convert`` objects are matched, and given, as it makes them.
    """
    revision = asked.revision or store.revision
    try:
        if matches is not None and convert is not None:
            return _converted(store, prefix, asked, revision, matches, convert)
        if not asked.limit:
            values = _scan(store, prefix, asked.after, revision, matches)
            return ListPage(values=values, revision=revision)
        return _limited(store, prefix, asked, revision, matches)
    except Compacted:
        if not asked.after:
            raise status.expired(
                "The resourceVersion for the provided list is too old."
            ) from None
        problem = status.expired(EXPIRED)
        problem.next = Token(store.revision, asked.after).text()
        raise problem from None


def _limited(
    store: Store,
    prefix: str,
    asked: ListRequest,
    revision: int,
    matches: Callable[[bytes], bool] | None,
) -> ListPage:
    found: list[bytes] = []
    last = asked.after
    current = _as_of(store, revision)
    while len(found) < asked.limit:
        wanted = SCAN if matches else asked.limit - len(found)
        rows = store.range(prefix, after=last, limit=wanted, revision=current)
        for row in rows:
            if matches is None or matches(row.value):
                found.append(row.value)
                last = row.key
                if len(found) == asked.limit:
                    break
        else:
            if len(rows) < wanted:
                return ListPage(values=found, revision=revision)
            last = rows[-1].key
    remaining = store.count(prefix, after=last, revision=current)
    if not remaining:
        return ListPage(values=found, revision=revision)
    return ListPage(
        values=found,
        revision=revision,
        next=Token(revision, last).text(),
        remaining=None if matches else remaining,
    )


def _converted(
    store: Store,
    prefix: str,
    asked: ListRequest,
    revision: int,
    matches: Callable[[bytes], bool],
    convert: Convert,
) -> ListPage:
    """A page of converted objects; all are converted at once to know which fit."""
    rows = store.range(prefix, after=asked.after, revision=_as_of(store, revision))
    shown = zip(rows, convert([row.value for row in rows]), strict=True)
    found = [(row.key, value) for row, value in shown if matches(value)]
    limit = asked.limit or len(rows) + 1
    values = [value for _, value in found[:limit]]
    if len(found) < limit or found[limit - 1][0] == rows[-1].key:
        return ListPage(values=values, revision=revision)
    token = Token(revision, found[limit - 1][0])
    return ListPage(values=values, revision=revision, next=token.text())


def _as_of(store: Store, revision: int) -> int:
    """0 where the newest state is meant: that one is quicker to read."""
    return 0 if revision == store.revision else revision


def _scan(
    store: Store,
    prefix: str,
    after: str,
    revision: int,
    matches: Callable[[bytes], bool] | None,
) -> Iterator[bytes]:
    """All objects of a revision, read in pieces, so that none is kept longer."""
    rows = store.range(
        prefix, after=after, limit=SCAN, revision=_as_of(store, revision)
    )

    def values() -> Iterator[bytes]:
        piece = rows
        while piece:
            for row in piece:
                if matches is None or matches(row.value):
                    yield row.value
            if len(piece) < SCAN:
                return
            piece = store.range(
                prefix,
                after=piece[-1].key,
                limit=SCAN,
                revision=_as_of(store, revision),
            )

    return values()
