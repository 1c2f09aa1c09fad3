"""Watching: events and their order, starts, bookmarks, forms, refusals."""

from __future__ import annotations

from tests.differential.kinds import sample
from tests.differential.scenario import LAST, Run, encode, scenario
from tests.differential.stories.reading import PARTIAL, TABLE
from tests.differential.wire import JSON, Plain


def _lived(do: Run, plural: str) -> str:
    """A few lives of objects; the version before them."""
    before: str = do.prepare("POST", plural, sample(plural, "before")).obj["metadata"][
        "resourceVersion"
    ]
    do.prepare("POST", plural, sample(plural, labels={"mine": "yes"}))
    do.prepare("POST", plural, sample(plural, "b", finalizers=["a.b/c"]))
    patch: Plain = {"metadata": {"labels": {"mine": "no"}}}
    do.wire.send("PATCH", do.path(f"{plural}/a"), encode(patch), _MERGE)
    do.wire.send("PATCH", do.path(f"{plural}/a"), encode(patch), _MERGE)
    do.prepare("DELETE", f"{plural}/b")
    patch = {"metadata": {"finalizers": None}}
    do.wire.send("PATCH", do.path(f"{plural}/b"), encode(patch), _MERGE)
    patch = {"metadata": {"labels": {"mine": "yes"}}}
    do.wire.send("PATCH", do.path(f"{plural}/a"), encode(patch), _MERGE)
    do.prepare("DELETE", f"{plural}/a")
    do.prepare("POST", plural, sample(plural, "c", labels={"mine": "yes"}))
    do.prepare("POST", plural, sample(plural, LAST, labels={"mine": "yes"}))
    return before


_MERGE = {"Content-Type": "application/merge-patch+json", "User-Agent": "tests/1.0"}


@scenario
def watches_tell_what_happened(do: Run) -> None:
    for plural in ("secrets", "things", "services"):
        before = _lived(do, plural)
        for query in (
            f"watch=1&resourceVersion={before}",
            f"watch=true&resourceVersion={before}&labelSelector=mine%3Dyes",
            f"watch=1&resourceVersion={before}&labelSelector=mine",
            "watch=1",
            "watch=1&resourceVersion=0",
            "watch=1&labelSelector=mine%3Dyes",
        ):
            do.watch(f"{plural}?{query}")
            _anonymous(do, before)
        one = f"fieldSelector=metadata.name%3Da&resourceVersion={before}"
        do.watch(
            f"{plural}?watch=1&{one}", until=lambda event: event["type"] == "DELETED"
        )
        _anonymous(do, before)


def _anonymous(do: Run, before: str) -> None:
    do.story[-1]["asked"] = do.story[-1]["asked"].replace(before, "R")


@scenario
def watches_in_other_forms(do: Run) -> None:
    for plural in ("secrets", "things"):
        before = _lived(do, plural)
        for accept in (PARTIAL, TABLE, f"{JSON};stream=watch", "*/*"):
            do.watch(f"{plural}?watch=1&resourceVersion={before}", accept=accept)
            _anonymous(do, before)


@scenario
def watches_that_start_with_a_list(do: Run) -> None:
    for plural in ("secrets", "things"):
        before = _lived(do, plural)
        start = "watch=1&sendInitialEvents=true&allowWatchBookmarks=true"
        for query in (
            f"{start}&resourceVersionMatch=NotOlderThan",
            f"{start}&resourceVersionMatch=NotOlderThan&resourceVersion=0",
            f"{start}&resourceVersionMatch=NotOlderThan&resourceVersion={before}",
            f"{start}&resourceVersionMatch=NotOlderThan&labelSelector=mine",
            f"{start}&resourceVersionMatch=NotOlderThan&labelSelector=none",
        ):
            do.watch(
                f"{plural}?{query}", until=lambda event: event["type"] == "BOOKMARK"
            )
            _anonymous(do, before)


@scenario
def watches_that_are_refused(do: Run) -> None:
    for plural in ("secrets", "things"):
        do.prepare("POST", plural, sample(plural, LAST))
        for query in (
            "resourceVersion=x",
            "resourceVersion=-1",
            "resourceVersionMatch=Exact",
            "resourceVersionMatch=NotOlderThan",
            "sendInitialEvents=true",
            "sendInitialEvents=true&resourceVersionMatch=Exact",
            "sendInitialEvents=false",
            "sendInitialEvents=true&allowWatchBookmarks=true",
            "sendInitialEvents=odd",
            "timeoutSeconds=x",
            "labelSelector=%3D",
            "fieldSelector=odd%3D1",
            "continue=x",
            "limit=1",
            "allowWatchBookmarks=odd",
            "resourceVersion=1&labelSelector=a,,",
        ):
            do.watch(f"{plural}?watch=1&{query}")
        do("GET", f"{plural}?sendInitialEvents=true")
        do("GET", f"{plural}?watch=0")
        do("GET", f"{plural}?watch=1", accept="application/yaml")
        do("GET", f"{plural}?watch=1", accept="text/html")
    do("GET", "things?watch=odd&timeoutSeconds=1&labelSelector=none")


@scenario
def watches_by_their_old_path(do: Run) -> None:
    for plural in ("secrets", "things"):
        do.prepare("POST", plural, sample(plural, LAST))
        path = do.path(plural).replace("/v1/", "/v1/watch/", 1)
        do.watch(path)
        do.watch(f"{path}/{LAST}")


@scenario
def watches_end_when_their_time_is_up(do: Run) -> None:
    do.prepare("POST", "secrets", sample("secrets"))
    do.watch("secrets?watch=1&timeoutSeconds=1&allowWatchBookmarks=true")


@scenario
def one_object_is_watched_by_its_name(do: Run) -> None:
    for plural in ("secrets", "things"):
        do.prepare("POST", plural, sample(plural))
        do.prepare("POST", plural, sample(plural, LAST))
        do("GET", f"{plural}/a?watch=1&timeoutSeconds=1")
        do.watch(f"{plural}?watch=1&fieldSelector=metadata.name%3D{LAST}")
