"""Selecting: random selectors and pages over the same objects of two servers."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from hypothesis import strategies as st

from tests.differential import normal
from tests.differential.kinds import sample
from tests.differential.normal import Numbers
from tests.differential.scenario import Run, compared
from tests.differential.wire import Plain, Wire

PLURALS = ("secrets", "things")
_KEYS = ("app", "tier", "a.b/c", "App", "-bad", "")
_VALUES = ("x", "y", "1", "2", "", "-", "A_b", "x" * 64)
_SIGNS = ("=", "==", "!=", " in ", " notin ", ">", "<", " ", "", "!", ",", "(", ")")
_FIELDS = ("metadata.name", "metadata.namespace", "type", "spec.color", "data", "")

Queries = st.SearchStrategy[str]


def _labels() -> Queries:
    key, value = st.sampled_from(_KEYS), st.sampled_from(_VALUES)
    several = st.lists(value, max_size=3).map(lambda each: f"({','.join(each)})")
    good = st.one_of(
        key,
        key.map(lambda each: f"!{each}"),
        st.tuples(key, st.sampled_from(("=", "==", "!=", ">", "<")), value).map(
            "".join
        ),
        st.tuples(key, st.sampled_from((" in ", " notin ")), several).map("".join),
    )
    wild = st.lists(st.sampled_from(_KEYS + _VALUES + _SIGNS), max_size=6)
    return st.one_of(
        st.lists(good, min_size=1, max_size=3).map(",".join), wild.map("".join)
    )


def _fields() -> Queries:
    values = st.sampled_from(("o1", "o2", "Opaque", "red", "", "a,b", r"a\,b", "a=b"))
    signs = st.sampled_from(("=", "==", "!=", ">", ""))
    term = st.tuples(st.sampled_from(_FIELDS), signs, values).map("".join)
    return st.lists(term, min_size=1, max_size=2).map(",".join)


def queries() -> st.SearchStrategy[Plain]:
    """A list of a kind: by labels and fields, and in pages of some size."""
    return st.fixed_dictionaries(
        {
            "plural": st.sampled_from(PLURALS),
            "labels": st.one_of(st.just(""), _labels()),
            "fields": st.one_of(st.just(""), st.just(""), _fields()),
            "limit": st.sampled_from((0, 0, 1, 2, 3, 5)),
        }
    )


def furnish(wire: Wire) -> None:
    """Make the objects that are selected among."""
    do = Run(wire, "selecting")
    do.prepare("POST", "/api/v1/namespaces", {"metadata": {"name": "selecting"}})
    every: list[dict[str, str]] = [
        {"app": "x", "tier": "1"},
        {"app": "y", "tier": "2"},
        {"app": "", "a.b/c": "A_b"},
        {"tier": "x"},
        {"App": "x"},
        {},
    ]
    for plural in PLURALS:
        for number, labels in enumerate(every):
            made: dict[str, Any] = sample(plural, f"o{number}", labels=labels)
            if plural == "things" and number % 2:
                made["spec"]["color"] = "red"
            do.prepare("POST", plural, made)


def differences(here: Wire, there: Wire, query: Plain) -> list[str]:
    """Where two servers differ in what they list, page by page."""
    return compared(_pages(here, query), _pages(there, query), "")


def _pages(wire: Wire, query: Plain) -> list[Plain]:
    do, told, token = Run(wire, "selecting"), [], ""
    while True:
        target = (
            f"{query['plural']}?labelSelector={quote(query['labels'])}"
            f"&fieldSelector={quote(query['fields'])}"
        )
        if query["limit"]:
            target += f"&limit={query['limit']}"
        if token:
            target += f"&continue={quote(token)}"
        reply = do.prepare("GET", target)
        page = normal.answer(reply, Numbers())
        told.append(page)
        if reply.status != 200:
            return told
        page["body"]["items"] = [
            each["metadata"]["name"] for each in page["body"]["items"]
        ]
        token = reply.obj["metadata"].get("continue", "")
        if not token:
            return told
