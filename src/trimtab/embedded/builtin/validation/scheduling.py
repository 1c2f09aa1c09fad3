"""Scheduling: where pods may run: tolerations, affinity, spreading, node selectors."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from trimtab.embedded.builtin.validation import meta, texts
from trimtab.embedded.builtin.validation.problems import Found

JSON = Mapping[str, Any]

EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_WEIGHT: Final = "must be in the range 1-100"
_OPERATOR: Final = "not a valid selector operator"


def tolerations(found: Found, given: list[JSON] | None, path: str) -> None:
    """Which taints a pod puts up with."""
    for index, each in enumerate(given or ()):
        where, key = f"{path}[{index}]", each.get("key", "")
        operator, effect = each.get("operator", ""), each.get("effect", "")
        if key:
            found.each(f"{where}.key", key, texts.key(key))
        elif operator != "Exists":
            detail = (
                "operator must be Exists when `key` is empty, which means "
                '"match all values and all keys"'
            )
            found.invalid(f"{where}.operator", operator, detail)
        if "tolerationSeconds" in each and effect != "NoExecute":
            detail = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            found.invalid(f"{where}.effect", effect, detail)
        _toleration_value(found, operator, each.get("value", ""), where)
        if effect and effect not in EFFECTS:
            found.unsupported(f"{where}.effect", effect, EFFECTS)


_is_decimal = re.compile(r"0|-?[1-9][0-9]*", re.ASCII).fullmatch


def _toleration_value(found: Found, operator: str, value: str, path: str) -> None:
    if operator in ("", "Equal"):
        if problems := texts.label_value(value):
            found.invalid(f"{path}.operator", value, ";".join(problems))
    elif operator == "Exists":
        if value:
            detail = "value must be empty when `operator` is 'Exists'"
            found.invalid(f"{path}.operator", value, detail)
    elif operator in ("Lt", "Gt"):
        allowed = ("Equal", "Exists", "Lt", "Gt")
        found.unsupported(f"{path}.operator", operator, allowed)
    else:
        found.unsupported(f"{path}.operator", operator, ("Equal", "Exists"))


def taints(found: Found, given: list[JSON] | None, path: str) -> None:
    """What a node holds against pods."""
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(given or ()):
        where, key, effect = f"{path}[{index}]", taint["key"], taint["effect"]
        found.each(f"{where}.key", key, texts.key(key))
        value = taint.get("value", "")
        if problems := texts.label_value(value):
            found.invalid(f"{where}.value", value, ";".join(problems))
        found.choice(f"{where}.effect", effect, EFFECTS)
        if (key, effect) in seen:
            shown = {"Key": key, "Value": value, "Effect": effect, "TimeAdded": None}
            detail = "taints must be unique by key and effect pair"
            found.duplicate(where, shown, detail)
        seen.add((key, effect))


def node_selector(
    found: Found, given: JSON, path: str, *, any_value: bool = False
) -> None:
    """Terms of which a node has to meet one."""
    where = f"{path}.nodeSelectorTerms"
    terms = given["nodeSelectorTerms"]
    if not terms:
        found.required(where, "must have at least one node selector term")
    for index, term in enumerate(terms or ()):
        node_selector_term(found, term, f"{where}[{index}]", any_value=any_value)


def node_selector_term(
    found: Found, term: JSON, path: str, *, any_value: bool = False
) -> None:
    for index, each in enumerate(term.get("matchExpressions") or ()):
        where = f"{path}.matchExpressions[{index}]"
        _requirement(found, each, where, any_value=any_value)
    for index, each in enumerate(term.get("matchFields") or ()):
        _field_requirement(found, each, f"{path}.matchFields[{index}]")


def _requirement(found: Found, given: JSON, path: str, *, any_value: bool) -> None:
    operator, values = given["operator"], given.get("values") or ()
    where = f"{path}.values"
    if operator in ("In", "NotIn"):
        if not values:
            detail = "must be specified when `operator` is 'In' or 'NotIn'"
            found.required(where, detail)
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            detail = (
                "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            )
            found.forbidden(where, detail)
    elif operator in ("Gt", "Lt"):
        if len(values) != 1:
            detail = "must be specified single value when `operator` is 'Lt' or 'Gt'"
            found.required(where, detail)
    else:
        found.invalid(f"{path}.operator", operator, _OPERATOR)
    found.each(f"{path}.key", given["key"], texts.key(given["key"]))
    if not any_value:
        for index, value in enumerate(values):
            found.each(f"{where}[{index}]", value, texts.label_value(value))


def _field_requirement(found: Found, given: JSON, path: str) -> None:
    operator, values = given["operator"], given.get("values") or ()
    if operator not in ("In", "NotIn"):
        found.invalid(f"{path}.operator", operator, _OPERATOR)
    elif len(values) != 1:
        detail = (
            "must be only one value when `operator` is 'In' or 'NotIn' for node field "
            "selector"
        )
        found.required(f"{path}.values", detail)
    if given["key"] != "metadata.name":
        found.invalid(f"{path}.key", given["key"], "not a valid field selector key")
        return
    for index, value in enumerate(values):
        found.each(f"{path}.values[{index}]", value, texts.subdomain(value))


def affinity(found: Found, given: JSON | None, path: str) -> None:
    """To which nodes and pods a pod is drawn, and from which it keeps away."""
    if not given:
        return
    if "nodeAffinity" in given:
        _node_affinity(found, given["nodeAffinity"], f"{path}.nodeAffinity")
    for name in ("podAffinity", "podAntiAffinity"):
        if name in given:
            _pod_affinity(found, given[name], f"{path}.{name}")


def _node_affinity(found: Found, given: JSON, path: str) -> None:
    if _REQUIRED in given:
        node_selector(found, given[_REQUIRED], f"{path}.{_REQUIRED}")
    for index, term in enumerate(given.get(_PREFERRED) or ()):
        where = f"{path}.{_PREFERRED}[{index}]"
        if not 1 <= term["weight"] <= 100:
            found.invalid(f"{where}.weight", term["weight"], _WEIGHT)
        preference = term["preference"]
        node_selector_term(found, preference, f"{where}.preference", any_value=True)


def _pod_affinity(found: Found, given: JSON, path: str) -> None:
    for index, term in enumerate(given.get(_REQUIRED) or ()):
        _term(found, term, f"{path}.{_REQUIRED}[{index}]")
    for index, weighted in enumerate(given.get(_PREFERRED) or ()):
        where = f"{path}.{_PREFERRED}[{index}]"
        if not 1 <= weighted["weight"] <= 100:
            found.invalid(f"{where}.weight", weighted["weight"], _WEIGHT)
        _term(found, weighted["podAffinityTerm"], f"{where}.podAffinityTerm")


def _term(found: Found, term: JSON, path: str) -> None:
    selector = term.get("labelSelector")
    meta.selector(found, selector, f"{path}.labelSelector")
    meta.selector(found, term.get("namespaceSelector"), f"{path}.namespaceSelector")
    for name in term.get("namespaces") or ():
        found.each(f"{path}.namespace", name, texts.label(name))
    same, other = term.get("matchLabelKeys"), term.get("mismatchLabelKeys")
    if same or other:
        label_keys(found, same, other, selector, path)
    key = term["topologyKey"]
    if not key:
        found.required(f"{path}.topologyKey", "can not be empty")
    found.each(f"{path}.topologyKey", key, texts.key(key))


def label_keys(
    found: Found,
    same: list[str] | None,
    other: list[str] | None,
    selector: JSON | None,
    path: str,
) -> None:
    """Labels of the pod itself that extend a selector."""
    for name, keys in (("matchLabelKeys", same), ("mismatchLabelKeys", other)):
        if keys and selector is None:
            detail = "must not be specified when labelSelector is not set"
            found.forbidden(f"{path}.{name}", detail)
        elif keys:
            for index, key in enumerate(keys):
                found.each(f"{path}.{name}[{index}]", key, texts.key(key))
    if selector is not None:
        _not_selected_twice(found, same or [], selector, path)
    for index, key in enumerate(same or ()):
        if key in (other or ()):
            detail = "exists in both matchLabelKeys and mismatchLabelKeys"
            found.invalid(f"{path}.matchLabelKeys[{index}]", key, detail)


def _not_selected_twice(
    found: Found, keys: list[str], selector: JSON, path: str
) -> None:
    places = {key: index for index, key in enumerate(keys)}
    selected = set(selector.get("matchLabels") or ())
    for expression in selector.get("matchExpressions") or ():
        key = expression["key"]
        if key in places and key in selected:
            detail = "exists in both matchLabelKeys and labelSelector"
            found.invalid(f"{path}[{places[key]}]", key, detail)
        selected.add(key)


def spreading(found: Found, given: list[JSON] | None, path: str) -> None:
    """How pods are spread over the parts of a cluster."""
    constraints = given or []
    for index, each in enumerate(constraints):
        where, action = f"{path}[{index}]", each["whenUnsatisfiable"]
        if each["maxSkew"] <= 0:
            found.invalid(f"{where}.maxSkew", each["maxSkew"], texts.NOT_POSITIVE)
        if not each["topologyKey"]:
            found.required(f"{where}.topologyKey", "can not be empty")
        actions = ("DoNotSchedule", "ScheduleAnyway")
        found.one_of(f"{where}.whenUnsatisfiable", action, actions)
        _not_repeated(found, each, constraints[index + 1 :], where)
        _domains(found, each, where)
        for name in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            if name in each:
                found.one_of(f"{where}.{name}", each[name], ("Honor", "Ignore"))
        selector, keys = each.get("labelSelector"), each.get("matchLabelKeys")
        if keys:
            label_keys(found, keys, None, selector, where)
        meta.selector(found, selector, f"{where}.labelSelector")


def _not_repeated(found: Found, this: JSON, others: list[JSON], path: str) -> None:
    pair = (this["topologyKey"], this["whenUnsatisfiable"])
    if any((each["topologyKey"], each["whenUnsatisfiable"]) == pair for each in others):
        where = f"{path}.{{topologyKey, whenUnsatisfiable}}"
        found.duplicate(where, f"{{{pair[0]}, {pair[1]}}}")


def _domains(found: Found, each: JSON, path: str) -> None:
    least, action = each.get("minDomains"), each["whenUnsatisfiable"]
    if least is None:
        return
    found.positive(f"{path}.minDomains", least)
    if action != "DoNotSchedule":
        detail = (
            f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
        )
        found.invalid(f"{path}.minDomains", least, detail)
