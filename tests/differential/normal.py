"""What may differ between two servers that answer alike: the one closed list.

Everything that is not named here must be the same: status, the headers that clients
read, the body, the events of a watch in their order, and the managed fields. A name in
a path is a key, ``*`` any one key or index, ``**`` any number of them.

What has an identity is named by its first appearance, not hidden: two answers that
carry the same ``uid`` or ``resourceVersion`` here carry the same one there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

import yaml

from tests.differential.wire import JSON, Plain, Reply

HEADERS = (
    "allow",
    "cache-control",
    "content-encoding",
    "content-type",
    "location",
    "retry-after",
    "warning",
    "www-authenticate",
    "x-content-type-options",
)
"""The headers that clients read; what else a server sends is its own affair."""

IDENTITIES = (
    "**.metadata.uid",
    "**.ownerReferences.*.uid",
    "details.uid",
    "**.metadata.resourceVersion",
)
"""Named by first appearance; of a list, the version is only said to be there."""

TIMES = (
    "**.metadata.creationTimestamp",
    "**.metadata.deletionTimestamp",
    "**.managedFields.*.time",
    "**.conditions.*.lastTransitionTime",
    "status.startTime",
)
"""RFC 3339 with whole seconds or microseconds, whenever it was."""

TOKENS = ("metadata.continue",)
"""Opaque to clients."""

ADDRESSES = (
    "**.spec.clusterIP",
    "**.spec.clusterIPs.*",
    "**.spec.ports.*.nodePort",
    "serverAddressByClientCIDRs.*.serverAddress",
)
"""Chosen at random by either server, or where it listens."""

COLUMNS = ("Age", "Created At", "Last Seen", "First Seen", "Cluster-IP")
"""Columns of tables whose cells tell how long ago something was, or an address."""

TEXTS = (
    # The versions and uids that a message repeats, and names made of generateName.
    (re.compile(r"Too large resource version: \d+, current: \d+"), "Too large: R of R"),
    (re.compile(r"UID in (precondition|object meta): [0-9a-f-]{36}"), r"UID in \1: U"),
    (re.compile(r"ResourceVersion in record \(\d+\)"), "ResourceVersion in record (R)"),
    # In the object that a refused patch comes to, which a message shows as JSON.
    (re.compile(r'\\"resourceVersion\\":\\"\d+'), "resourceVersion: R"),
    (re.compile(r'\\"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\\"'), "T"),
    (re.compile(r'\\"10\.0\.\d+\.\d+\\"'), "A"),
    (re.compile(r"too old resource version: \d+ \(\d+\)"), "too old: R of R"),
    (re.compile(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"), "U"),
    (re.compile(r"\b[Mm]ade-[bcdfghjklmnpqrstvwxz2456789]{5}\b"), "made-G"),
)
"""In every text of an answer."""

PROSE = ("**.columnDefinitions.*.description",)
"""Sentences for people, which are not copied."""

ORDERS = ("details.causes", "**.managedFields")
"""Causes come from walking a map, so in a random order (messages that repeat causes are
sorted too). Managed fields are in the order of their seconds, which begin at any time:
that each server keeps that order is looked at before they are put into another."""

WALKED = "differential.example/"
"""The group whose resources discovery tells in a random order: custom ones."""

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{6})?Z")


class Numbers:
    """The identities of one server: which answer was the first to have each."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, str], str] = {}
        self._answer = 0
        self._places: dict[str, int] = {}

    def next_answer(self) -> None:
        """What is seen from now on is in another answer."""
        self._answer += 1
        self._places.clear()

    def of(self, sort: str, value: str) -> str:
        if (sort, value) not in self._seen:
            place = self._places[sort] = self._places.get(sort, 0) + 1
            self._seen[sort, value] = f"<{sort} {self._answer}.{place}>"
        return self._seen[sort, value]


def answer(reply: Reply, numbers: Numbers) -> Plain:
    """A reply in the form in which two servers are compared."""
    numbers.next_answer()
    told: Plain = {"status": reply.status}
    headers = {name: reply.header(name) for name in HEADERS if reply.header(name)}
    told["headers"] = headers
    told["body"] = body(reply, numbers)
    return told


def body(reply: Reply, numbers: Numbers) -> Any:
    """The body, read if it is JSON or YAML."""
    media = "".join(reply.header("content-type"))
    text = reply.body.decode(errors="backslashreplace")
    if not text:
        return ""
    if media.startswith(JSON):
        return tidy(reply.obj, numbers)
    if "yaml" in media:
        return tidy(yaml.load(text, Loader=yaml.BaseLoader), numbers)
    return _plain_text(text)


def tidy(told: Any, numbers: Numbers) -> Any:
    """An object, a list, a Status or a Table without what may differ."""
    is_list = isinstance(told, dict) and ("items" in told or "rows" in told)
    if isinstance(told, dict) and str(told.get("groupVersion")).startswith(WALKED):
        told["resources"] = sorted(told["resources"], key=repr)
    if is_list and told.get("kind") == "Table":
        hide_columns(told, told.get("columnDefinitions") or ())
    return _walk(told, (), numbers, is_list)


def _walk(value: Any, path: tuple[str, ...], numbers: Numbers, is_list: bool) -> Any:
    if isinstance(value, dict):
        value = _named(value)
        made = {
            key: _walk(each, (*path, key), numbers, is_list)
            for key, each in sorted(value.items())
        }
        return made
    if isinstance(value, list):
        made_list = [
            _walk(each, (*path, str(index)), numbers, is_list)
            for index, each in enumerate(value)
        ]
        if _fits(path, ORDERS):
            made_list.sort(key=repr)
        if path[-1:] == ("managedFields",) and value != sorted(value, key=_since):
            made_list.append("<out of order>")
        return made_list
    return _leaf(value, path, numbers, is_list)


def _since(entry: Plain) -> tuple[str, ...]:
    """Where an entry of managed fields stands among the others."""
    keys = ("operation", "time", "manager", "apiVersion", "subresource")
    return tuple(str(entry.get(key, "")) for key in keys)


def _leaf(value: Any, path: tuple[str, ...], numbers: Numbers, is_list: bool) -> Any:
    if _fits(path, ADDRESSES) and value not in ("", "None", 0):
        return "<address>"
    if not isinstance(value, str):
        return value
    if _fits(path, PROSE):
        return "<prose>"
    if _fits(path, TIMES):
        return "<time>" if _TIME.fullmatch(value) else value
    if _fits(path, TOKENS) and value:
        return "<token>"
    if _fits(path, IDENTITIES) and value:
        sort = "version" if path[-1] == "resourceVersion" else "uid"
        if is_list and path == ("metadata", "resourceVersion"):
            return "<version>" if value.isdigit() and value != "0" else value
        return numbers.of(sort, value)
    return _plain_text(value)


def _plain_text(text: str) -> str:
    for pattern, stand_in in TEXTS:
        text = pattern.sub(stand_in, text)
    if " field not declared in schema" in text:
        # It ends the walk over a map: what else is told is a matter of luck.
        text = f"{text.partition('): ')[0]}): field not declared in schema"
    if ": errors:\n  " in text:
        start, _, several = text.partition(": errors:\n  ")
        text = f"{start}: errors: {sorted(map(str.strip, several.splitlines()))}"
    if " is invalid: [" in text:
        start, _, several = text.partition(" is invalid: [")
        text = f"{start} is invalid: {sorted(several[:-1].split(', '))}"
    return text


def _named(value: Plain) -> Plain:
    """Metadata whose name was made of its generateName, without the random end."""
    start, name = value.get("generateName") or "", value.get("name")
    if isinstance(name, str) and len(name) > 5 and start.startswith(name[:-5]):
        return {**value, "name": f"{name[:-5]}<five letters>"}
    return value


def hide_columns(table: Plain, definitions: Iterable[Plain]) -> None:
    """Hide the cells of a table that may differ; of a watch, only the first event
    defines the columns."""
    columns = [each["name"] for each in definitions]
    for row in table.get("rows") or ():
        for index, name in enumerate(columns):
            if name in COLUMNS and row["cells"][index] not in ("<unknown>", "None"):
                row["cells"][index] = "<cell>"


def _matcher(pattern: str) -> Callable[[str], bool]:
    parts = [re.escape(part) for part in pattern.split(".")]
    text = r"\.".join(parts).replace(r"\*\*\.", r"(?:.*\.)?").replace(r"\*", "[^.]*")
    return lambda path: re.fullmatch(text, path) is not None


_MATCHERS = {
    pattern: _matcher(pattern)
    for pattern in (*IDENTITIES, *TIMES, *TOKENS, *ADDRESSES, *PROSE, *ORDERS)
}


def _fits(path: tuple[str, ...], patterns: Iterable[str]) -> bool:
    joined = ".".join(path)
    return any(_MATCHERS[pattern](joined) for pattern in patterns)
