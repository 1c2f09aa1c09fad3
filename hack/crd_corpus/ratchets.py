"""Ratchets: a schema, a stricter one, and objects that only the first accepts."""

from __future__ import annotations

import copy
from typing import Any

from hack.crd_corpus.definitions import definition
from hack.crd_corpus.schemas import array, integer, record, string, table

JSON = dict[str, Any]
_RULES = "x-kubernetes-validations"

_LOOSE: JSON = {
    "name": string(),
    "size": integer(),
    "tags": array(string()),
    "keyed": array(
        record({"k": string(), "v": string(), "w": string()}, required=["k"]),
        **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]},
    ),
    "table": table(string()),
    "deep": record({"a": integer(), "b": integer()}),
}

STORED: JSON = {
    "name": "toolong",
    "size": 50,
    "tags": ["bad", "fine"],
    "keyed": [{"k": "a", "v": "bad", "w": "x"}, {"k": "b", "v": "ok"}],
    "table": {"x": "bad", "y": "ok"},
    "deep": {"a": 99, "b": 1},
}

REFUSED: JSON = {"size": 51}
"""What the stricter schema is known to refuse."""

CHANGES: list[JSON] = [
    {},
    {"name": "short"},
    {"name": "abc"},
    REFUSED,
    {"tags": ["bad", "fine", "no"]},
    {"tags": ["bad", "fine"], "size": 5},
    {"keyed": [{"k": "b", "v": "ok"}, {"k": "a", "v": "bad", "w": "x"}]},
    {"keyed": [{"k": "a", "v": "bad", "w": "y"}]},
    {"keyed": [{"k": "a", "v": "bad", "w": "x"}, {"k": "c", "v": "bad"}]},
    {"table": {"x": "bad", "y": "worse"}},
    {"table": {"x": "bad"}},
    {"deep": {"a": 99, "b": 0}},
    {"deep": {"a": 99, "b": 1}, "size": 1},
    {"deep": {"a": 98, "b": 2}},
]


def loose() -> JSON:
    """The definition under which the object is stored."""
    return _definition(copy.deepcopy(_LOOSE))


def tight() -> JSON:
    """The definition under which it is changed."""
    fields = copy.deepcopy(_LOOSE)
    fields["name"]["maxLength"] = 3
    fields["size"]["maximum"] = 10
    fields["tags"]["items"]["maxLength"] = 2
    item = fields["keyed"]["items"]
    item["properties"]["v"]["maxLength"] = 2
    item[_RULES] = [{"rule": "!has(self.w) || self.w == self.v"}]
    fields["keyed"]["maxItems"] = 10
    fields["table"]["additionalProperties"]["maxLength"] = 2
    fields["deep"][_RULES] = [{"rule": "self.a < 10"}]
    fields["deep"]["properties"]["b"]["maximum"] = 1
    return _definition(fields)


def _definition(fields: JSON) -> JSON:
    return definition("ratchets", record({"spec": record(fields)}))
