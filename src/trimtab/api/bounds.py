"""Bounds: what a :class:`Schema` adds to the schema of a type, and whether it fits.

Each keyword fits some JSON types only; a server ignores or refuses the others, so they
are refused here, where the field can be named.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from trimtab.api.annotations import Refuse
from trimtab.api.objects import Rule, Schema
from trimtab.api.paths import find

SCALARS: Final = ("string", "integer", "number", "boolean", "int-or-string")

_NUMBERS: Final = ("integer", "number")
_TEXTS: Final = ("string", "int-or-string")
_KEYWORDS: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "minimum": ("minimum", _NUMBERS),
    "maximum": ("maximum", _NUMBERS),
    "exclusive_minimum": ("exclusiveMinimum", _NUMBERS),
    "exclusive_maximum": ("exclusiveMaximum", _NUMBERS),
    "multiple_of": ("multipleOf", _NUMBERS),
    "min_length": ("minLength", _TEXTS),
    "max_length": ("maxLength", _TEXTS),
    "pattern": ("pattern", _TEXTS),
    "format": ("format", ("string", *_NUMBERS)),
    "min_items": ("minItems", ("array",)),
    "max_items": ("maxItems", ("array",)),
    "min_properties": ("minProperties", ("object",)),
    "max_properties": ("maxProperties", ("object",)),
    "list_type": ("x-kubernetes-list-type", ("array",)),
    "list_keys": ("x-kubernetes-list-map-keys", ("array",)),
    "map_type": ("x-kubernetes-map-type", ("object",)),
    "embedded_resource": ("x-kubernetes-embedded-resource", ("object",)),
    "preserve_unknown": ("x-kubernetes-preserve-unknown-fields", ("object", "any")),
}
_PAIRS: Final = (
    ("minimum", "maximum"),
    ("minLength", "maxLength"),
    ("minItems", "maxItems"),
    ("minProperties", "maxProperties"),
)
_FORMATS: Final[Mapping[str, frozenset[str]]] = {
    "integer": frozenset({"int32", "int64"}),
    "number": frozenset({"float", "double"}),
    # What kube-apiserver checks; of any other it warns.
    "string": frozenset(
        "bsonobjectid uri email hostname ipv4 ipv6 cidr mac uuid uuid3 uuid4 uuid5 "
        "isbn isbn10 isbn13 creditcard ssn hexcolor rgbcolor byte password date "
        "duration date-time k8s-short-name k8s-long-name".split()
    ),
}
_REASONS: Final = (
    "FieldValueInvalid",
    "FieldValueForbidden",
    "FieldValueRequired",
    "FieldValueDuplicate",
)
_NOTHING: Final = Schema()


def json_type(schema: Mapping[str, Any]) -> str:
    """What a schema describes: a JSON type, ``int-or-string``, or ``any``."""
    if schema.get("x-kubernetes-int-or-string"):
        return "int-or-string"
    return str(schema.get("type", "any"))


def merged(notes: Iterable[Schema]) -> Schema:
    """One note out of several: the later one wins, and rules add up."""
    facts: dict[str, Any] = {}
    for note in notes:
        for name in note.__struct_fields__:
            value = getattr(note, name)
            if name == "rules":
                facts[name] = (*facts.get(name, ()), *value)
            elif value != getattr(_NOTHING, name):
                facts[name] = value
    return Schema(**facts)


def add_bounds(schema: dict[str, Any], note: Schema, *, refuse: Refuse) -> None:
    """Write a note into the schema of a type.

    Errors: what ``refuse`` makes, for a keyword that does not fit the type, contradicts
    another, or that a server would not take.
    """
    kind = json_type(schema)
    for attribute, (key, fitting) in _KEYWORDS.items():
        value = getattr(note, attribute)
        if value == getattr(_NOTHING, attribute):
            continue
        if kind not in fitting:
            raise refuse(
                f"{attribute} does not fit a JSON {kind}; it goes with "
                f"{' or '.join(fitting)}"
            )
        if attribute in ("format", "pattern", "list_type"):
            _refuse_another(schema, key, value, attribute, kind, refuse)
        schema[key] = list(value) if isinstance(value, tuple) else _number(value)
    _check_ranges(schema, refuse)
    _check_texts(schema, kind, refuse)
    if kind == "array":
        _check_list(schema, refuse)
    if note.embedded_resource:
        _check_embedded(schema, refuse)
    if note.preserve_unknown and "additionalProperties" in schema:
        raise refuse("preserve_unknown needs dict[str, Any] or a class")
    if note.rules:
        if not _is_typed(schema):
            raise refuse("a rule needs a typed value; put it on the class instead")
        # A class may have rules of its own already.
        rules = schema.setdefault("x-kubernetes-validations", [])
        rules += [_rule(rule, schema, refuse) for rule in note.rules]


def _refuse_another(
    schema: dict[str, Any],
    key: str,
    value: Any,
    attribute: str,
    kind: str,
    refuse: Refuse,
) -> None:
    has = schema.get(key)
    if has is not None and has != value and kind not in _NUMBERS:
        raise refuse(f"the type has the {attribute} {has!r} already, so drop {value!r}")


def _number(value: Any) -> Any:
    """A whole float as an integer: a server would print it so."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def _check_ranges(schema: dict[str, Any], refuse: Refuse) -> None:
    for low, high in _PAIRS:
        if low in schema and high in schema and schema[low] > schema[high]:
            raise refuse(f"{low} {schema[low]} is above {high} {schema[high]}")
        for key in (low, high):
            if key not in schema:
                continue
            bound = schema[key]
            if low != "minimum" and (not isinstance(bound, int) or bound < 0):
                raise refuse(f"{key} must be a whole number from 0 on, not {bound}")
            if not math.isfinite(bound):
                raise refuse(f"{key} must be finite, not {bound}")
    for exclusive, bound in (
        ("exclusiveMinimum", "minimum"),
        ("exclusiveMaximum", "maximum"),
    ):
        if exclusive in schema and bound not in schema:
            raise refuse(
                f"{exclusive} says that the {bound} is left out; give that too"
            )
    if schema.get("multipleOf", 1) <= 0:
        raise refuse(f"multipleOf must be above 0, not {schema['multipleOf']}")
    if schema.get("type") == "integer":
        _check_integers(schema, refuse)


def _check_integers(schema: dict[str, Any], refuse: Refuse) -> None:
    """A server refuses every value of an integer whose bounds are not integers."""
    reach = _INTEGERS.get(schema["format"], math.inf)
    for key in ("minimum", "maximum", "multipleOf"):
        bound = schema.get(key, 0)
        if not isinstance(bound, int) or not -reach <= bound < reach:
            raise refuse(f"{key} {bound} is no {schema['format']}, as its field is")


def _check_texts(schema: dict[str, Any], kind: str, refuse: Refuse) -> None:
    form = schema.get("format")
    if form is not None and kind in _FORMATS and form not in _FORMATS[kind]:
        raise refuse(
            f"no server checks the format {form!r} of a JSON {kind}; use one of "
            f"{', '.join(sorted(_FORMATS[kind]))}, or a pattern"
        )
    if "pattern" in schema:
        _check_pattern(schema["pattern"], refuse)


# The server's expressions are RE2, whose parser Python lacks: what RE2 does not know is
# found in what is left of a pattern without its escapes and character classes.
_ESCAPES = re.compile(r"\\(?:[pPx]\{[^}]*\}|[^1-9])")
_CLASSES = re.compile(r"\[\^?\]?[^\]]*\]")
_NOT_RE2 = re.compile(r"\(\?(?:[=!>(]|<[=!]|P=)|\\[1-9]|[*+?}]\+")
_ONLY_RE2 = re.compile(r"\\[pPzQEC]|\[\[:|\\x\{")
_REPEATS = re.compile(r"\{(\d+)(?:,(\d*))?\}")


def _check_pattern(pattern: str, refuse: Refuse) -> None:
    bare = _CLASSES.sub("[]", _ESCAPES.sub("", pattern))
    if _NOT_RE2.search(bare):
        raise refuse(
            f"the pattern {pattern!r} looks around or back, which RE2 does not know; "
            "say it in a rule"
        )
    counts = (count for match in _REPEATS.findall(bare) for count in match)
    if any(int(count) > 1000 for count in counts if count):
        raise refuse(f"RE2 repeats at most 1000 times, in the pattern {pattern!r}")
    if _ONLY_RE2.search(pattern):
        return
    try:
        re.compile(pattern)
    except re.error as error:
        raise refuse(f"the pattern {pattern!r} is not valid: {error}") from None


def _check_list(schema: dict[str, Any], refuse: Refuse) -> None:
    # Said aloud where nobody chose, so that nobody expects two writers to be merged.
    list_type = schema.setdefault("x-kubernetes-list-type", "atomic")
    keys, items = schema.get("x-kubernetes-list-map-keys", []), schema["items"]
    if (list_type == "map") != bool(keys):
        raise refuse("list_type='map' and list_keys need each other")
    if list_type != "atomic" and items.get("nullable"):
        raise refuse(f"a list of type {list_type} cannot hold None")
    if list_type == "set" and json_type(items) not in SCALARS:
        # A CRD may say so of atomic objects, but then no apply of them succeeds.
        raise refuse("the items of a set must be scalars; use list_type='map'")
    if len(set(keys)) < len(keys):
        raise refuse("list_keys names a key twice")
    for key in keys:
        _check_key(key, items, refuse)


def _check_key(key: str, items: Mapping[str, Any], refuse: Refuse) -> None:
    held = items.get("properties", {}).get(key)
    if held is None:
        raise refuse(f"list_keys names {key!r}, which the items do not have")
    if json_type(held) not in SCALARS or held.get("nullable"):
        raise refuse(f"the list key {key!r} must be a scalar that is never None")
    if key not in items.get("required", ()) and "default" not in held:
        raise refuse(
            f"the list key {key!r} must be required or have a default that is not "
            "empty; in a status, where there are no defaults, it must be required"
        )


def _check_embedded(schema: dict[str, Any], refuse: Refuse) -> None:
    properties = schema.get("properties", {})
    named = all(
        properties.get(name, {}).get("type") == "string"
        for name in ("apiVersion", "kind")
    )
    if not named and (properties or "additionalProperties" in schema):
        raise refuse(
            "embedded_resource needs dict[str, Any], or a class with apiVersion and "
            "kind; a Resource is one by itself"
        )


def _rule(rule: Rule, schema: dict[str, Any], refuse: Refuse) -> dict[str, Any]:
    if not rule.rule.strip():
        raise refuse("a rule is empty")
    if rule.message is not None and (
        not rule.message.strip() or "\n" in rule.message.strip()
    ):
        raise refuse(f"the message of the rule {rule.rule!r} must be one line")
    if "\n" in rule.rule.strip() and rule.message is None:
        raise refuse(f"the rule {rule.rule!r} spans lines, so it needs a message")
    if rule.reason is not None and rule.reason not in _REASONS:
        raise refuse(f"{rule.reason!r} is no reason; use one of {', '.join(_REASONS)}")
    if rule.optional_old_self is not None and "oldSelf" not in rule.rule:
        raise refuse(f"the rule {rule.rule!r} does not use oldSelf, optional or not")
    if rule.field_path is not None and not _leads(rule.field_path, schema):
        raise refuse(f"the fieldPath {rule.field_path!r} of a rule leads nowhere")
    out = {
        "rule": rule.rule,
        "message": rule.message,
        "messageExpression": rule.message_expression,
        "reason": rule.reason,
        "fieldPath": rule.field_path,
        "optionalOldSelf": rule.optional_old_self,
    }
    return {key: value for key, value in out.items() if value is not None}


def stuck(schema: Mapping[str, Any], *, within: str = "") -> str | None:
    """A rule that compares with what was, where a server cannot tell what was that.

    Items are told apart only in a list of type map, fields only in a map that is not
    atomic.
    """
    if within:
        for rule in schema.get("x-kubernetes-validations", ()):
            if re.search(r"\boldSelf\b", rule["rule"]):
                return f"the rule {rule['rule']!r} uses oldSelf, but it is in {within}"
    if schema.get("x-kubernetes-list-type", "map") != "map":
        within = within or "an atomic list"
    if schema.get("x-kubernetes-map-type") == "atomic":
        within = within or "an atomic map"
    inner = (schema.get("items"), schema.get("additionalProperties"))
    held = [each for each in (*schema.get("properties", {}).values(), *inner) if each]
    return next((bad for each in held if (bad := stuck(each, within=within))), None)


def _is_typed(schema: Mapping[str, Any]) -> bool:
    """Whether rules can speak of it: they know no items or values of any type."""
    held = schema.get("items") or schema.get("additionalProperties")
    return json_type(schema) != "any" and (held is None or _is_typed(held))


def _leads(path: str, schema: dict[str, Any]) -> bool:
    try:
        return find(schema, path) is not None
    except ValueError:
        return False


_PYTHON: Final[Mapping[str, tuple[type, ...]]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "int-or-string": (int, str),
}
_INTEGERS: Final = {"int32": 2**31, "int64": 2**63}


def violation(schema: Mapping[str, Any], value: Any) -> str | None:
    """How a JSON value breaks a schema, or None; rules and formats are not run."""
    kind = json_type(schema)
    if value is None:
        return None if kind == "any" or schema.get("nullable") else "is null"
    wrong = isinstance(value, bool) and kind != "boolean"
    if kind != "any" and (wrong or not isinstance(value, _PYTHON[kind])):
        return f"is not a JSON {kind}"
    if "enum" in schema and value not in schema["enum"]:
        return f"is not one of {schema['enum']}"
    if isinstance(value, str):
        return _text_violation(schema, value)
    if isinstance(value, int | float):
        return _number_violation(schema, value)
    if isinstance(value, list):
        return _list_violation(schema, value)
    return _object_violation(schema, value)


def _outside(schema: Mapping[str, Any], size: float, low: str, high: str) -> str | None:
    if low in schema and size < schema[low]:
        return f"is below {low} {schema[low]}"
    if high in schema and size > schema[high]:
        return f"is above {high} {schema[high]}"
    return None


def _text_violation(schema: Mapping[str, Any], value: str) -> str | None:
    pattern = schema.get("pattern")
    if pattern and not _ONLY_RE2.search(pattern) and not re.search(pattern, value):
        return f"does not match the pattern {pattern!r}"
    return _outside(schema, len(value), "minLength", "maxLength")


def _number_violation(schema: Mapping[str, Any], value: float) -> str | None:
    reach = _INTEGERS.get(schema.get("format", ""))
    if reach is not None and not -reach <= value < reach:
        return f"does not fit {schema['format']}"
    for bound, exclusive in (
        ("minimum", "exclusiveMinimum"),
        ("maximum", "exclusiveMaximum"),
    ):
        if schema.get(exclusive) and value == schema[bound]:
            return f"is the {bound}, which is left out"
    multiple = schema.get("multipleOf")
    if multiple and not math.isclose(
        value / multiple, round(value / multiple), abs_tol=1e-9
    ):
        return f"is not a multiple of {multiple}"
    if multiple and multiple < 1 and value == int(value):
        # A server takes it for an integer, and then the factor for one: zero.
        return f"is whole, and a server divides that by {multiple} rounded down to 0"
    return _outside(schema, value, "minimum", "maximum")


def _list_violation(schema: Mapping[str, Any], value: list[Any]) -> str | None:
    for item in value:
        problem = violation(schema.get("items", {}), item)
        if problem:
            return f"holds {item!r}, which {problem}"
    return _outside(schema, len(value), "minItems", "maxItems")


def _object_violation(schema: Mapping[str, Any], value: dict[str, Any]) -> str | None:
    for name in schema.get("required", ()):
        if name not in value:
            return f"lacks {name!r}"
    properties = schema.get("properties", {})
    for name, item in value.items():
        rule = properties.get(name, schema.get("additionalProperties", {}))
        problem = violation(rule, item)
        if problem:
            return f"has {name!r}: {item!r}, which {problem}"
    return _outside(schema, len(value), "minProperties", "maxProperties")
