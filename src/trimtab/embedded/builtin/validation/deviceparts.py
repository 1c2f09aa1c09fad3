"""Parts that claims, classes and slices of devices have in common."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from trimtab.embedded.builtin.validation import sources, texts
from trimtab.embedded.builtin.validation.problems import Found, go_json
from trimtab.embedded.expressions.checking import Scope
from trimtab.embedded.expressions.compiling import Program
from trimtab.embedded.expressions.complaints import ExpressionError
from trimtab.embedded.expressions.kinds import (
    BOOL,
    DYN,
    OPAQUE,
    STRING,
    map_of,
    struct,
)

JSON = Mapping[str, Any]
Check = Callable[[Found, Any, str], None]

EFFECTS: Final = ("NoExecute", "NoSchedule", "None")
_LONGEST_POOL: Final = 253
_LONGEST_IDENTIFIER: Final = 32
_LONGEST_EXPRESSION: Final = 10 * 1024
_MOST_CONDITIONS: Final = 4
_IDENTIFIER: Final = "[A-Za-z_][A-Za-z0-9_]*"
_is_identifier = re.compile(_IDENTIFIER).fullmatch
_DEVICE: Final = Scope(
    {"device": struct("kubernetes.DRADevice")},
    {
        "kubernetes.DRADevice": {
            "driver": STRING,
            "attributes": map_of(STRING, map_of(STRING, DYN)),
            "capacity": map_of(STRING, map_of(STRING, OPAQUE["quantity"])),
            "allowMultipleAllocations": BOOL,
        }
    },
)


def items(
    found: Found,
    given: Sequence[Any] | None,
    path: str,
    check: Check,
    *,
    most: int = -1,
    key: Callable[[Any], Any] | None = None,
) -> None:
    """Each of a list that is not too long and, if there is a key, has none twice."""
    given = given or ()
    if 0 <= most < len(given):
        found.too_many(path, len(given), most)
        return
    for index, each in enumerate(given):
        check(found, each, f"{path}[{index}]")
    seen = []
    for index, each in enumerate(given):
        if key is None:
            return
        if key(each) in seen:
            found.duplicate(f"{path}[{index}]", key(each))
        seen.append(key(each))


def label(found: Found, value: str, path: str) -> None:
    found.each(path, value, texts.label(value))


def pool(found: Found, name: str, path: str) -> None:
    if not name:
        found.required(path)
        return
    if len(name) > _LONGEST_POOL:
        found.too_long(path, _LONGEST_POOL)
    for part in name.split("/"):
        found.each(path, part, texts.subdomain(part))


def qualified(found: Found, name: str, path: str) -> None:
    """An identifier, with a domain or without."""
    parts = name.split("/")
    if len(parts) == 1:
        _identifier(found, name, path)
    elif len(parts) == 2:
        if parts[0]:
            sources.driver_name(found, parts[0], path)
        else:
            found.invalid(path, "", "the domain must not be empty")
        if parts[1]:
            _identifier(found, parts[1], path)
        else:
            found.invalid(path, "", "the name must not be empty")


def fully_qualified(found: Found, name: str, path: str) -> None:
    qualified(found, name, path)
    if "/" not in name:
        detail = "a fully qualified name must be a domain and a name separated by a "
        found.invalid(path, name, f"{detail}slash")


def _identifier(found: Found, value: str, path: str) -> None:
    if len(value) > _LONGEST_IDENTIFIER:
        found.too_long(path, _LONGEST_IDENTIFIER)
    if not _is_identifier(value):
        found.invalid(
            path,
            value,
            "a valid C identifier must start with alphabetic character or '_', "
            "followed by a string of alphanumeric characters or '_' (e.g. 'my_name',  "
            "or 'MY_NAME',  or 'MyName', regex used for validation is "
            f"'{_IDENTIFIER}')",
        )


def opaque(found: Found, config: JSON, path: str) -> None:
    """What a driver is told, in words of its own."""
    given, where = config.get("opaque"), f"{path}.opaque"
    if given is None:
        found.required(where)
        return
    sources.driver_name(found, given["driver"], f"{where}.driver")
    raw(found, given.get("parameters"), f"{where}.parameters")


def raw(found: Found, value: Any, path: str, *, longest: int = 10 * 1024) -> None:
    if value is None:
        found.required(path)
    elif len(go_json(value)) > longest:
        found.too_long(path, longest)
    elif not isinstance(value, dict):
        found.invalid(path, "<value omitted>", "must be a valid JSON object")


def selectors(found: Found, given: Sequence[JSON] | None, path: str) -> None:
    items(found, given, path, _selector, most=32)


def _selector(found: Found, selector: JSON, path: str) -> None:
    cel = selector.get("cel")
    if cel is None:
        found.required(f"{path}.cel")
        return
    where, expression = f"{path}.cel.expression", cel["expression"]
    if len(expression.encode()) > _LONGEST_EXPRESSION:
        found.too_long(where, _LONGEST_EXPRESSION)
    elif problem := _problem(expression):
        found.invalid(where, expression, problem)


@lru_cache(maxsize=256)
def _problem(expression: str) -> str:
    """Why an expression cannot choose devices; empty if it can."""
    try:
        kind = Program(expression, _DEVICE).type
    except ExpressionError as error:
        return f"compilation failed: {error}"
    if kind in (BOOL, DYN):
        return ""
    return f"must evaluate to bool or the unknown type, not {kind}"


def taint(found: Found, given: JSON, path: str) -> None:
    found.each(f"{path}.key", given["key"], texts.key(given["key"]))
    if value := given.get("value"):
        found.each(f"{path}.value", value, texts.label_value(value))
    found.choice(f"{path}.effect", given["effect"], EFFECTS)


def tolerations(found: Found, given: Sequence[JSON] | None, path: str) -> None:
    for index, each in enumerate(given or ()):
        _toleration(found, each, f"{path}[{index}]")


def _toleration(found: Found, given: JSON, path: str) -> None:
    if key := given.get("key"):
        found.each(f"{path}.key", key, texts.key(key))
    operator, value = given.get("operator", ""), given.get("value", "")
    if operator == "Exists" and value:
        detail = "must be empty for operator `Exists`"
        found.invalid(f"{path}.value", value, detail)
    elif operator == "Equal":
        found.each(f"{path}.value", value, texts.label_value(value))
    found.choice(f"{path}.operator", operator, ("Equal", "Exists"))
    if effect := given.get("effect"):
        found.one_of(f"{path}.effect", effect, EFFECTS)


def binding_conditions(found: Found, given: JSON, path: str) -> None:
    """What has to become true, and what must not, before a pod is bound."""
    good, bad = "bindingConditions", "bindingFailureConditions"
    lists = {name: given.get(name) or [] for name in (good, bad)}

    def named(found: Found, value: str, path: str) -> None:
        found.each(path, value, texts.key(value))

    for name, values in lists.items():
        items(found, values, f"{path}.{name}", named, most=_MOST_CONDITIONS)
    for name, values in lists.items():
        for index, each in enumerate(values):
            where = f"{path}.{name}[{index}]"
            if each in values[:index]:
                found.duplicate(where, each)
            if name == bad and each in lists[good]:
                found.invalid(where, each, f"{bad} must not overlap with {good}")
    for name, other in ((good, bad), (bad, good)):
        if not lists[name] and lists[other]:
            detail = f"{name} are required to use {other}"
            found.invalid(f"{path}.{name}", None, detail)
