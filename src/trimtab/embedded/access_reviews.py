"""Access reviews: what they ask about, and what is wrong with how they ask."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from trimtab.api.selectors import (
    FieldSelector,
    LabelSelector,
    LabelSelectorRequirement,
    Selector,
)
from trimtab.embedded import status
from trimtab.embedded.gotext import Struct
from trimtab.embedded.kinds import Plain
from trimtab.embedded.rbac.attributes import Attributes, path_attributes
from trimtab.embedded.status import FieldProblem

LOCAL = "LocalSubjectAccessReview"
SELF = "SelfSubjectAccessReview"
RESOURCE, PATH = "spec.resourceAttributes", "spec.nonResourceAttributes"
SELECTORS = ("fieldSelector", "labelSelector")
OPERATORS = {"In": "=", "NotIn": "!="}


def attributes_in(spec: Plain) -> Attributes:
    """The action that a review without problems asks about."""
    found = spec.get("resourceAttributes")
    if found is None:
        found = spec["nonResourceAttributes"]
        return path_attributes(found.get("verb", ""), found.get("path", ""))
    names = ("verb", "group", "resource", "subresource", "namespace", "name")
    return Attributes(**{name: found.get(name, "") for name in names})


def problems_in(kind: str, obj: Plain) -> list[FieldProblem]:
    """What is wrong with a review."""
    spec = obj.get("spec") or {}
    found = list(_spec_problems(kind, spec))
    meta = obj["metadata"]
    ignored = {"managedFields", "namespace"} if kind == LOCAL else {"managedFields"}
    if any(meta[key] for key in meta.keys() - ignored):
        detail = "must be empty" + (" except for namespace" if kind == LOCAL else "")
        found.append(status.invalid("metadata", Struct(meta), detail))
    if kind == LOCAL:
        found += _local_problems(spec, meta.get("namespace", ""))
    return found


def _spec_problems(kind: str, spec: Plain) -> Iterator[FieldProblem]:
    resource = spec.get("resourceAttributes")
    path = spec.get("nonResourceAttributes")
    if resource is not None and path is not None:
        detail = "cannot be specified in combination with resourceAttributes"
        yield status.invalid(PATH, _shown(path), detail)
    if resource is None and path is None:
        detail = (
            "exactly one of nonResourceAttributes or resourceAttributes must be "
            "specified"
        )
        yield status.invalid(RESOURCE, None, detail)
    if kind != SELF and not spec.get("user") and not spec.get("groups"):
        detail = "at least one of user or group must be specified"
        yield status.invalid("spec.user", "", detail)
    for name in SELECTORS:
        selector = (resource or {}).get(name)
        if selector is not None:
            yield from _selector_problems(f"{RESOURCE}.{name}", selector)


def _local_problems(spec: Plain, namespace: str) -> Iterator[FieldProblem]:
    resource = spec.get("resourceAttributes")
    path = spec.get("nonResourceAttributes")
    if resource is not None and resource.get("namespace", "") != namespace:
        given = resource.get("namespace", "")
        detail = "must match metadata.namespace"
        yield status.invalid(f"{RESOURCE}.namespace", given, detail)
    if path is not None:
        detail = "disallowed on this kind of request"
        yield status.invalid(PATH, _shown(path), detail)


def _selector_problems(where: str, selector: Plain) -> Iterator[FieldProblem]:
    raw, requirements = selector.get("rawSelector"), selector.get("requirements")
    if raw and requirements:
        detail = "may not specified at the same time as requirements"
        yield status.invalid(f"{where}.rawSelector", raw, detail)
    if not raw and not requirements:
        detail = f"when {where} is specified, requirements or rawSelector is required"
        yield status.required(f"{where}.requirements", detail)


def _shown(path: Plain) -> Struct:
    return Struct(Path=path.get("path", ""), Verb=path.get("verb", ""))


def evaluation_error(spec: Plain) -> str:
    """Which selectors of a review could not be read, and so did not count."""
    resource = spec.get("resourceAttributes") or {}
    told = []
    for name, read, reads in (
        ("fieldSelector", FieldSelector.from_string, _reads_field),
        ("labelSelector", Selector.from_string, _reads_label),
    ):
        selector = resource.get(name) or {}
        ignored = _ignored(selector, read, reads)
        if ignored:
            told.append(f"{RESOURCE}.{name} {ignored} due to parse error")
    return "; ".join(told)


def _ignored(
    selector: Plain, read: Callable[[str], Any], reads: Callable[[Plain], bool]
) -> str:
    raw = selector.get("rawSelector") or ""
    if raw:
        try:
            read(raw)
        except ValueError:
            return "ignored"
    good = [reads(each) for each in selector.get("requirements") or ()]
    if all(good):
        return ""
    return "partially ignored" if any(good) else "ignored"


def _reads_field(requirement: Plain) -> bool:
    one = len(requirement.get("values") or ()) == 1
    return one and requirement.get("operator") in OPERATORS


def _reads_label(requirement: Plain) -> bool:
    try:
        wanted = msgspec.convert(requirement, LabelSelectorRequirement)
        Selector.from_wire(LabelSelector(matchExpressions=[wanted]))
    except ValueError:
        return False
    return True
