"""Shapes: what values a field of a fuzzed kind may have, as strategies.

A shape is a schema cut down to the fields that are interesting, with few values for
each, so that writers meet in them. A little of what is drawn is wrong: null, another
type, a key twice.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tests.differential.wire import Plain

WORDS = ("a", "b", "c")
Values = st.SearchStrategy[Any]

ODD: Values = st.sampled_from([None, "x", 1, True, 1.5, [], {}, ["x"], {"a": "x"}])
"""What a field is seldom given, whatever it is."""

ANYTHING: Values = st.recursive(
    st.sampled_from([None, "x", "y", 1, 2, True, 1.5]),
    lambda inner: st.one_of(
        st.lists(inner, max_size=2),
        st.dictionaries(st.sampled_from(WORDS), inner, max_size=2),
    ),
    max_leaves=4,
)


def values(schema: Plain, *, odd: bool = True) -> Values:
    """Values of a field, mostly good ones."""
    good = _good(schema)
    if not odd or not schema.get("odd", True):
        return good
    odds = ODD if schema.get("null", True) else ODD.filter(lambda value: value)
    # One in sixteen or so.
    return st.integers(0, 15).flatmap(lambda draw: odds if draw == 0 else good)


def _good(schema: Plain) -> Values:
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if schema.get("x-kubernetes-int-or-string"):
        return st.sampled_from([1, 2, "1", "50%"])
    sort = schema.get("type")
    if sort == "object" and "properties" in schema:
        return _fields(schema)
    if sort == "object":
        element = values(schema["additionalProperties"])
        return st.dictionaries(st.sampled_from(WORDS), element, max_size=2)
    if sort == "array":
        return _items(schema)
    return _scalar(schema, sort)


def _scalar(schema: Plain, sort: Any) -> Values:
    if sort == "string":
        return st.sampled_from(WORDS)
    if sort == "integer":
        return st.sampled_from([1, 2, 3])
    if sort == "number":
        return st.sampled_from([1, 1.5, 2.0])
    if sort == "boolean":
        return st.booleans()
    return ANYTHING


def _fields(schema: Plain) -> Values:
    properties = schema["properties"]
    always = {
        key: values(properties[key], odd=False) for key in schema.get("required", ())
    }
    optional = {
        key: values(each) for key, each in properties.items() if key not in always
    }
    if len(optional) < 4:
        return st.fixed_dictionaries(always, optional=optional)
    # Of many fields, few: so that two writers meet now and then.
    names = st.lists(st.sampled_from(sorted(optional)), max_size=3, unique=True)
    return names.flatmap(
        lambda chosen: st.fixed_dictionaries(
            {**always, **{name: optional[name] for name in chosen}}
        )
    )


def _items(schema: Plain) -> Values:
    items = st.lists(values(schema["items"]), max_size=3)
    keys = schema.get("x-kubernetes-list-map-keys")
    if not keys and schema.get("x-kubernetes-list-type") != "set":
        return items
    # A key twice is refused: seldom, so that most lists are good.
    return st.tuples(items, st.integers(0, 9)).map(
        lambda drawn: drawn[0] if drawn[1] == 0 else _once(drawn[0], keys)
    )


def _once(items: list[Any], keys: list[str] | None) -> list[Any]:
    seen: list[Any] = []
    kept = []
    for item in items:
        key = item
        if keys and isinstance(item, dict):
            key = [item.get(name, ...) for name in keys]
        if key not in seen:
            seen.append(key)
            kept.append(item)
    return kept
