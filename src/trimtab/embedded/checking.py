"""Checking: whether an applied value fits its plan, in the words of the real server.

This is not validation, which comes later and says more. It is what must hold for a
merge to mean anything: maps where maps belong, no undeclared fields, no two items of a
list with the same key.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from trimtab.embedded.comparing import kind_of
from trimtab.embedded.fieldsets import element_text
from trimtab.embedded.gotext import plain, quoted
from trimtab.embedded.plans import (
    ANY,
    LIST,
    MAP,
    OPEN,
    MalformedItem,
    Plan,
    element_of,
)

_TYPES = {
    bool: "bool",
    int: "int64",
    float: "float64",
    str: "string",
    dict: "map[string]interface {}",
    list: "[]interface {}",
}

Problem = tuple[str, str]
"""A path and what is wrong there."""


def problems_of(value: Any, plan: Plan) -> list[Problem]:
    """What is wrong with an applied value; empty if nothing is."""
    return list(_check(value, plan, ""))


def summary(problems: list[Problem]) -> str:
    """Problems in one message."""
    texts = [f"{path}: {text}" if path else text for path, text in problems]
    return texts[0] if len(texts) == 1 else "\n  ".join(["errors:", *texts])


def _check(value: Any, plan: Plan, path: str) -> Iterator[Problem]:
    if value is None or (plan.kind == ANY and not plan.fields):
        return
    kind = kind_of(value, plan)
    if kind == MAP:
        if not isinstance(value, dict):
            yield path, f"expected map, got &{{{plain(value)}}}"
        else:
            yield from _check_map(value, plan, path)
    elif kind == LIST:
        if not isinstance(value, list):
            yield path, f"expected list, got &{{{plain(value)}}}"
        else:
            yield from _check_list(value, plan, path)
    elif problem := _scalar_problem(value, plan.scalar):
        yield path, problem


def _scalar_problem(value: Any, scalar: str) -> str:
    if scalar == "string":
        if not isinstance(value, str):
            shown = f"&value.valueUnstructured{{Value:{_syntax(value)}}}"
            return f"expected string, got {shown}"
    elif scalar == "numeric":
        if not isinstance(value, (int, float)) or isinstance(value, bool):
            return f"expected numeric (int or float), got {_TYPES[type(value)]}"
    elif scalar == "boolean":
        if not isinstance(value, bool):
            return f"expected boolean, got &{{{plain(value)}}}"
    elif not scalar and isinstance(value, (dict, list)):
        return f"expected any scalar, got &{{{plain(value)}}}"
    return ""


def _check_map(value: dict[str, Any], plan: Plan, path: str) -> Iterator[Problem]:
    for name in sorted(value):
        inner = plan.fields.get(name) or plan.element
        if inner is None:
            yield f"{path}.{name}", "field not declared in schema"
            return
        contents = value[name]
        # Most are sound scalars, for which a generator costs more than the check.
        if inner.kind == "scalar" and (
            contents is None or not _scalar_problem(contents, inner.scalar)
        ):
            continue
        yield from _check(contents, inner, f"{path}.{name}")


def _check_list(value: list[Any], plan: Plan, path: str) -> Iterator[Problem]:
    inner = plan.element or OPEN
    if plan.atomic or plan.kind == ANY:
        for place, item in enumerate(value):
            yield from _check(item, inner, f"{path}[{place}]")
        return
    seen: set[str] = set()
    for place, item in enumerate(value):
        try:
            element = element_of(item, plan)
        except MalformedItem as problem:
            yield path, f"element {place}: {problem}"
            return
        where = element_text(element)
        if element in seen:
            yield path, f"duplicate entries for key {where}"
        seen.add(element)
        yield from _check(item, inner, f"{path}{where}")


def _syntax(value: Any) -> str:
    """A value as Go's ``%#v`` prints it."""
    if isinstance(value, dict):
        items = (f"{quoted(key)}:{_syntax(value[key])}" for key in sorted(value))
        return f"map[string]interface {{}}{{{', '.join(items)}}}"
    if isinstance(value, list):
        return f"[]interface {{}}{{{', '.join(map(_syntax, value))}}}"
    if value is None:
        return "interface {}(nil)"
    return quoted(value) if isinstance(value, str) else plain(value)
