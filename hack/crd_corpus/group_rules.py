"""Rules for lists, maps and objects."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hack.crd_corpus.cases import JSON, KEEP, KEYS, LIST_TYPE, RULES, Case, rule
from hack.crd_corpus.schemas import array, integer, record, string, table

_NUMBERS = array(integer(), maxItems=10)
_WORDS = array(string(maxLength=5), maxItems=10)


def _over(schema: JSON, written: str, *values: Any) -> Case:
    return Case(schema, [rule(written)], list(values))


def _lists() -> Iterator[Case]:
    yield _over(_NUMBERS, "self.all(x, x > 0)", [1, 2], [0], [])
    yield _over(_NUMBERS, "self.exists(x, x == 2)", [1, 2], [0], [])
    yield _over(_NUMBERS, "self.exists_one(x, x == 2)", [1, 2], [2, 2], [])
    yield _over(_NUMBERS, "self.existsOne(x, x == 2)", [1, 2])
    yield _over(_NUMBERS, "self.map(x, x * 2) == [2, 4]", [1, 2], [2])
    yield _over(_NUMBERS, "self.map(x, x > 1, x * 2) == [4]", [1, 2], [2, 2])
    yield _over(_NUMBERS, "self.filter(x, x > 1).size() == 1", [1, 2], [2, 2])
    yield _over(_NUMBERS, "self[0] == 1", [1, 2], [2], [])
    yield _over(_NUMBERS, "self[size(self) - 1] == 2", [1, 2], [1], [])
    yield _over(_NUMBERS, "self + [3] == [1, 3]", [1], [2])
    yield _over(_NUMBERS, "2 in self", [1, 2], [1])
    yield _over(_NUMBERS, "self.sum() == 3", [1, 2], [1], [])
    yield _over(_NUMBERS, "self.min() == 1 && self.max() == 2", [2, 1], [3], [])
    yield _over(_NUMBERS, "self.isSorted()", [1, 2], [2, 1], [])
    yield _over(
        _NUMBERS, "self.indexOf(2) == 1 && self.lastIndexOf(2) == 2", [1, 2, 2], [2]
    )
    yield _over(_NUMBERS, "self.all(x, 10 / x > 1)", [1, 5], [0], [0, 9])
    yield _over(_NUMBERS, "self.exists(x, 10 / x > 1)", [0, 1], [0], [0, 9])
    yield _over(_NUMBERS, "self.all(i, v, v > i)", [1, 2], [1, 1])
    yield _over(_NUMBERS, "self.exists(i, v, v == i)", [5, 1], [1])
    yield _over(_NUMBERS, "self.transformList(i, v, i + v) == [1, 3]", [1, 2], [2])
    yield _over(_NUMBERS, "self.transformMap(i, v, v * 2)[0] == 2", [1, 2], [2], [])
    yield _over(_NUMBERS, "self.transformMapEntry(i, v, {v: i})[5] == 0", [5], [6])
    yield _over(_NUMBERS, "self.slice(1, 2) == [2]", [1, 2], [1, 3, 4], [1])
    yield _over(_NUMBERS, "self.distinct() == [1, 2]", [1, 2, 1], [2])
    yield _over(_NUMBERS, "self.sort() == [1, 2]", [2, 1], [2])
    yield _over(_NUMBERS, "self.sortBy(x, -x) == [2, 1]", [1, 2], [2])
    yield _over(_NUMBERS, "self.reverse() == [2, 1]", [1, 2], [2])
    yield _over(_NUMBERS, "lists.range(3) == self", [0, 1, 2], [0])
    yield _over(_NUMBERS, "[self, [3]].flatten() == [1, 3]", [1], [2])
    yield _over(_NUMBERS, "self.first().orValue(9) == 1", [1, 2], [])
    yield _over(_NUMBERS, "sets.contains(self, [1, 2])", [2, 1, 3], [1])
    yield _over(_NUMBERS, "sets.equivalent(self, [1, 2])", [2, 1, 1], [1])
    yield _over(_NUMBERS, "sets.intersects(self, [1, 2])", [2], [3])
    yield _over(_NUMBERS, "self[?0].hasValue() && self[?0].value() == 1", [1], [2], [])
    yield _over(_NUMBERS, "self[?5].orValue(7) == 7", [1])
    yield _over(_WORDS, "self.all(x, x.size() < 3)", ["a"], ["abcd"])
    yield _over(_WORDS, "self.map(x, x + '!').join(',') == 'a!,b!'", ["a", "b"], ["c"])
    yield _over(_WORDS, "self.isSorted() && self.max() == 'b'", ["a", "b"], ["b", "a"])
    yield _over(_WORDS, "self.exists(x, x in ['a', 'b'])", ["a"], ["c"])
    yield _over(_WORDS, "size(self.map(x, [x, x])) == 1", ["a"], [])


def _listed() -> Iterator[Case]:
    yield Case(
        array(string(), maxItems=5, **{LIST_TYPE: "set"}),
        [rule("self == ['a', 'b']")],
        [["b", "a"], ["a"]],
    )
    yield Case(
        array(string(), maxItems=5, **{LIST_TYPE: "set"}),
        [rule("self + ['a'] == ['a', 'b']")],
        [["b", "a"], ["b"], ["c"]],
    )
    pairs = array(
        record({"k": string(), "v": integer()}, required=["k"]),
        maxItems=5,
        **{LIST_TYPE: "map", KEYS: ["k"]},
    )
    yield Case(
        pairs, [rule("self.all(x, has(x.v))")], [[{"k": "a"}], [{"k": "a", "v": 1}]]
    )
    yield Case(pairs, [rule("self == self.map(x, x)")], [[{"k": "a"}]])
    yield Case(
        pairs,
        [rule("self == oldSelf || size(self) > size(oldSelf)")],
        [],
        [
            ([{"k": "a"}, {"k": "b"}], [{"k": "b"}, {"k": "a"}]),
            ([{"k": "a"}], [{"k": "b"}]),
            ([{"k": "a"}], [{"k": "b"}, {"k": "c"}]),
        ],
    )
    yield Case(
        array(array(integer(), maxItems=3), maxItems=3),
        [rule("self.all(r, r.all(c, c > 0))")],
        [[[1]], [[0]]],
    )
    yield Case(
        array(string(nullable=True, maxLength=3), maxItems=3),
        [rule("self.all(x, x != null)")],
        [["a"], [None]],
    )
    items = integer(**{RULES: [rule("self > 3", message="too small")]})
    yield Case(array(items, maxItems=5), [rule("true")], [[4, 5], [3, 4, 1]])


_SHAPE = record(
    {
        "low": integer(),
        "high": integer(),
        "name": string(maxLength=5),
        "null": string(nullable=True, maxLength=5),
        "sub": record({"x": integer()}),
        "x-dash": integer(),
        "dot.ted": integer(),
        "sl/ash": integer(),
        "in": integer(),
        "under__score": integer(),
        "1st": integer(),
        "list": array(string(maxLength=4), maxItems=4),
    }
)


def _of(written: str, *values: Any, **more: Any) -> Case:
    return Case(_SHAPE, [rule(written, **more)], list(values))


def _fields() -> Iterator[Case]:
    yield _of(
        "self.low <= self.high",
        {"low": 1, "high": 2},
        {"low": 3, "high": 2},
        {"low": 1},
    )
    yield _of("has(self.low)", {"low": 0}, {})
    yield _of(
        "!has(self.null) || self.null == 'a'",
        {"null": None},
        {"null": "a"},
        {"null": "b"},
        {},
    )
    yield _of("!has(self.sub.x)", {"sub": {"x": 1}}, {"sub": {}}, {})
    yield _of("has(self.sub) && self.sub.x == 1", {"sub": {"x": 1}}, {"sub": {}}, {})
    yield _of("self.x__dash__dash == 1", {"x-dash": 1})
    yield _of("self.x__dash__dash__ == 1", {"x-dash": 1})
    yield _of("self.x__dash__dash == 1 || true", {})
    yield _of("self.`x-dash` == 1", {"x-dash": 1}, {"x-dash": 2})
    yield _of(
        "self.dot__dot__ted == 1 && self.sl__slash__ash == 2",
        {"dot.ted": 1, "sl/ash": 2},
    )
    yield _of("self.__in__ == 1", {"in": 1}, {"in": 2})
    yield _of("self.under__underscores__score == 1", {"under__score": 1}, {})
    yield _of("self.?low.orValue(5) == 5", {}, {"low": 5}, {"low": 6})
    yield _of("self.?sub.?x.orValue(5) == 5", {}, {"sub": {}}, {"sub": {"x": 6}})
    yield _of("self.?sub.x.hasValue()", {}, {"sub": {}}, {"sub": {"x": 6}})
    yield _of("self.?low.optMap(v, v * 2).orValue(0) == 4", {"low": 2}, {})
    yield _of("self.?sub.optFlatMap(s, s.?x).orValue(0) == 4", {"sub": {"x": 4}}, {})
    yield _of("self.?low.or(optional.of(3)).value() == 3", {}, {"low": 3}, {"low": 4})
    yield _of("optional.none().hasValue() || optional.ofNonZeroValue(0).hasValue()", {})
    yield _of("[?self.?low, 1] == [1]", {}, {"low": 1})
    yield _of("{?'a': self.?low, 'b': 1} == {'b': 1}", {}, {"low": 1})
    yield _of("[?self.low, 1] == [1]", {"low": 1})


def _messages() -> Iterator[Case]:
    yield _of("self.low == 1", {"low": 1}, {"low": 2}, message="low must be one")
    yield _of("self.low == 1", {"low": 2}, message="  spaces  ")
    yield _of(
        "self.low == 1", {"low": 2}, messageExpression="'low is ' + string(self.low)"
    )
    yield _of(
        "self.low == 1",
        {"low": 2},
        message="static",
        messageExpression="'low is ' + string(self.low)",
    )
    yield _of(
        "self.low == 1",
        {"low": 2},
        message="static",
        messageExpression="string(self.high)",
    )
    yield _of("self.low == 1", {"low": 2}, messageExpression="''")
    yield _of("self.low == 1", {"low": 2}, messageExpression="'a\\nb'")
    yield _of("self.low == 1", {"low": 2}, message="m", reason="FieldValueForbidden")
    yield _of("self.low == 1", {"low": 2}, message="m", reason="FieldValueRequired")
    yield _of("self.low == 1", {"low": 2}, message="m", reason="FieldValueDuplicate")
    yield _of(
        "self.low == 1",
        {"low": 2},
        message="m",
        reason="FieldValueInvalid",
        fieldPath=".low",
    )
    yield _of("self.low == 1", {"low": 2}, message="m", fieldPath=".sub.x")
    yield _of("self.low == 1", {"low": 2}, message="m", fieldPath="['x-dash']")
    yield _of("self.low == 1", {"low": 2}, message="m", fieldPath=".list")


def _wholes() -> Iterator[Case]:
    yield _of("self == {'low': 1}", {"low": 1})
    yield _of("self.sub == self.sub", {"sub": {"x": 1}}, {})
    yield _of(
        "self.list.exists(x, x == self.name)",
        {"list": ["a"], "name": "a"},
        {"list": ["a"], "name": "b"},
        {"list": []},
    )
    yield _of(
        "[self.low, self.high].all(x, x > 0)",
        {"low": 1, "high": 2},
        {"low": 0, "high": 1},
    )
    yield _of("{'a': self.low}['a'] == 1 && {'a': 1}.a == 1", {"low": 1})
    yield _of(
        "{'a': 1, 'b': 2}.all(k, k in ['a', 'b']) && {1: 2}[1] == self.low", {"low": 2}
    )
    yield _of("self.low == 1 &&\n self.high == 2", {"low": 1}, message="lines")
    yield _of("self.low == 1 // comment", {"low": 1})
    yield _of("dyn(self.low) == 'x' || dyn(self.low) == 1", {"low": 1}, {"low": 2})
    yield _of(
        "self.low == 1 || self.high == 2", {"high": 2}, {"low": 1}, {"high": 3}, {}
    )
    yield _of("self.low == 1 && self.high == 2", {"high": 3}, {"low": 2}, {})
    yield _of(
        "(has(self.low) ? self.low : 0) + (has(self.high) ? self.high : 0) == 3",
        {"low": 1, "high": 2},
        {},
    )


def _tables() -> Iterator[Case]:
    yield Case(
        table(integer(), maxProperties=5),
        [rule("self.all(k, self[k] > 0)")],
        [{"a": 1}, {"a": 0}, {}],
    )
    yield Case(
        table(integer(), maxProperties=5),
        [rule("'a' in self && self['a'] == 1")],
        [{"a": 1}, {"b": 1}],
    )
    yield Case(
        table(integer(), maxProperties=5), [rule("self.a == 1")], [{"a": 1}, {"b": 1}]
    )
    yield Case(
        table(integer(), maxProperties=5), [rule("has(self.a)")], [{"a": 1}, {"b": 1}]
    )
    yield Case(
        table(integer(), maxProperties=5),
        [rule("self.all(k, v, v > 0 && k != 'z')")],
        [{"a": 1}, {"z": 1}],
    )
    yield Case(
        table(integer(), maxProperties=5),
        [rule("self.map(k, self[k]).sum() == 3")],
        [{"a": 1, "b": 2}, {}],
    )
    yield Case(
        table(integer(), maxProperties=5),
        [rule("self.transformMap(k, v, v + 1) == {'a': 2}")],
        [{"a": 1}, {"a": 2}],
    )
    yield Case(
        table(integer(), maxProperties=5),
        [rule("size(self) == 1 && self == {'a': 1}")],
        [{"a": 1}, {"b": 1}],
    )
    values = integer(**{RULES: [rule("self > 3", message="too small")]})
    yield Case(
        table(values, maxProperties=5), [rule("true")], [{"a": 4}, {"a": 3, "b.c": 1}]
    )


def _kept() -> Iterator[Case]:
    kept = {"type": "object", KEEP: True, "properties": {"a": integer()}}
    yield Case(kept, [rule("self.a == 1")], [{"a": 1, "b": 2}, {"a": 2}])
    yield Case(kept, [rule("self.b == 1")], [{"b": 1}])
    yield Case(
        record({"free": {KEEP: True}, "a": integer()}),
        [rule("has(self.free)")],
        [{"a": 1}],
    )
    yield Case(
        record({"free": {KEEP: True}, "a": integer()}),
        [rule("self == oldSelf")],
        [],
        [({"free": 1}, {"free": 1}), ({"free": 1}, {"free": 2})],
    )
    embedded = {"type": "object", "x-kubernetes-embedded-resource": True, KEEP: True}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}
    yield Case(
        embedded,
        [rule("self.kind == 'Pod' && self.metadata.name == 'a'")],
        [pod, {**pod, "kind": "Node"}],
    )
    yield Case(embedded, [rule("self.metadata.labels == {}")], [pod])


def group_rules() -> Iterator[Case]:
    """Every case of this family."""
    yield from (*_lists(), *_listed(), *_fields(), *_messages(), *_wholes())
    yield from (*_tables(), *_kept())
