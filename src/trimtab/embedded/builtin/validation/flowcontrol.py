"""Flow control: which requests are told apart, and how many of each may run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from trimtab.embedded.builtin.internal import internal
from trimtab.embedded.builtin.validation import meta, texts
from trimtab.embedded.builtin.validation.problems import Found

JSON = Mapping[str, Any]

GROUP: Final = "flowcontrol.apiserver.k8s.io"
_LAST: Final = 10000
_MOST_QUEUES: Final = 10_000_000
_MOST_BITS: Final = 60
_VERBS: Final = (
    *("create", "delete", "deletecollection", "get", "list", "patch"),
    *("proxy", "update", "watch"),
)
_KINDS: Final = {"ServiceAccount": "serviceAccount", "User": "user", "Group": "group"}
_ROUNDTRIP: Final = "flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares"
_EVERYTHING: Final = ["*"]


def _everyone(*groups: str) -> list[JSON]:
    """The rules of a schema that takes all requests of some groups of users."""
    resources = {
        "verbs": _EVERYTHING,
        "apiGroups": _EVERYTHING,
        "resources": _EVERYTHING,
        "clusterScope": True,
        "namespaces": _EVERYTHING,
    }
    paths = {"verbs": _EVERYTHING, "nonResourceURLs": _EVERYTHING}
    subjects = [{"kind": "Group", "group": {"name": each}} for each in groups]
    return [
        {
            "subjects": subjects,
            "resourceRules": [resources],
            "nonResourceRules": [paths],
        }
    ]


SCHEMAS: Final[dict[str, JSON]] = {
    "exempt": {
        "priorityLevelConfiguration": {"name": "exempt"},
        "matchingPrecedence": 1,
        "rules": _everyone("system:masters"),
    },
    "catch-all": {
        "priorityLevelConfiguration": {"name": "catch-all"},
        "matchingPrecedence": _LAST,
        "distinguisherMethod": {"type": "ByUser"},
        "rules": _everyone("system:unauthenticated", "system:authenticated"),
    },
}
"""The schemas that are always there and always the same."""
LEVELS: Final[dict[str, JSON]] = {
    "exempt": {
        "type": "Exempt",
        "exempt": {"nominalConcurrencyShares": 0, "lendablePercent": 0},
    },
    "catch-all": {
        "type": "Limited",
        "limited": {
            "nominalConcurrencyShares": 5,
            "limitResponse": {"type": "Reject"},
            "lendablePercent": 0,
        },
    },
}


def create_schema(found: Found, obj: JSON) -> None:
    metadata, spec = obj["metadata"], obj["spec"]
    meta.created(found, metadata, namespaced=False, name=texts.subdomain)
    name = metadata.get("name", "")
    _precedence(found, spec["matchingPrecedence"], name)
    method = spec.get("distinguisherMethod")
    if method is not None and method["type"] not in ("ByNamespace", "ByUser"):
        path, shown = "spec.distinguisherMethod.type", internal(_METHOD, method)
        found.unsupported(path, shown, ("ByNamespace", "ByUser"))
    level, path = spec["priorityLevelConfiguration"]["name"], _LEVEL_NAME
    if level:
        found.each(path, level, texts.subdomain(level))
    else:
        found.required(path, "must reference a priority level")
    for index, rule in enumerate(spec.get("rules") or ()):
        _rule(found, rule, f"spec.rules[{index}]")
    if name in SCHEMAS and spec != SCHEMAS[name]:
        shown = internal("flowcontrol.FlowSchemaSpec", spec)
        found.invalid("spec", shown, f"spec of '{name}' must equal the fixed value")
    _conditions(found, obj)


_METHOD: Final = "flowcontrol.FlowDistinguisherMethod"
_LEVEL_NAME: Final = "spec.priorityLevelConfiguration.name"


def update_schema(found: Found, obj: JSON, old: JSON) -> None:
    create_schema(found, obj)


def status_update(found: Found, obj: JSON, old: JSON) -> None:
    """The status of both kinds."""
    _conditions(found, obj)


def _conditions(found: Found, obj: JSON) -> None:
    seen: set[str] = set()
    for index, each in enumerate((obj.get("status") or {}).get("conditions") or ()):
        path, kind = f"status.conditions[{index}].type", each.get("type", "")
        if kind in seen:
            found.duplicate(path, kind)
        seen.add(kind)
        if not kind:
            found.required(path)


def _precedence(found: Found, value: int, name: str) -> None:
    path = "spec.matchingPrecedence"
    if value <= 0:
        found.invalid(path, value, "must be a positive value")
    if value > _LAST:
        found.invalid(path, value, f"must not be greater than {_LAST}")
    if value == 1 and name != "exempt":
        detail = "only the schema named 'exempt' may have matchingPrecedence 1"
        found.invalid(path, value, detail)


def _rule(found: Found, rule: JSON, path: str) -> None:
    subjects = rule.get("subjects") or ()
    for index, subject in enumerate(subjects):
        _subject(found, subject, f"{path}.subjects[{index}]")
    if not subjects:
        detail = "subjects must contain at least one value"
        found.required(f"{path}.subjects", detail)
    resources = rule.get("resourceRules") or ()
    others = rule.get("nonResourceRules") or ()
    if not resources and not others:
        detail = "at least one of resourceRules and nonResourceRules has to be "
        found.required(path, f"{detail}non-empty")
    for index, each in enumerate(resources):
        _resource_rule(found, each, f"{path}.resourceRules[{index}]")
    for index, each in enumerate(others):
        _path_rule(found, each, f"{path}.nonResourceRules[{index}]")


def _subject(found: Found, subject: JSON, path: str) -> None:
    kind = subject["kind"]
    if kind not in _KINDS:
        found.unsupported(f"{path}.kind", kind, ("Group", "ServiceAccount", "User"))
        return
    field = _KINDS[kind]
    named, where = subject.get(field), f"{path}.{field}"
    if named is None:
        found.required(where, f"{field} is required when subject kind is '{kind}'")
    elif not named["name"]:
        found.required(f"{where}.name")
    elif kind == "ServiceAccount" and named["name"] != "*":
        found.each(f"{where}.name", named["name"], texts.subdomain(named["name"]))
    if kind == "ServiceAccount" and named is not None:
        _namespace(found, named["namespace"], f"{where}.namespace")
    for other, name in _KINDS.items():
        if other != kind and name in subject:
            detail = f"{name} is forbidden when subject kind is not '{other}'"
            found.forbidden(f"{path}.{name}", detail)


def _namespace(found: Found, value: str, path: str) -> None:
    if value:
        found.each(path, value, texts.label(value))
    else:
        found.required(path, "must specify namespace for service account")


def _verbs(found: Found, verbs: Sequence[str], path: str) -> None:
    if not verbs:
        found.required(path, "verbs must contain at least one value")
    elif "*" in verbs:
        _alone(found, verbs, path, "verbs")
    elif not {*verbs} <= {*_VERBS}:
        found.unsupported(path, verbs, _VERBS)


def _alone(found: Found, values: Sequence[str], path: str, others: str) -> None:
    if "*" in values and len(values) > 1:
        detail = f"if '*' is present, must not specify other {others}"
        found.invalid(path, values, detail)


def _resource_rule(found: Found, rule: JSON, path: str) -> None:
    _verbs(found, rule["verbs"] or (), f"{path}.verbs")
    for field, one, many in (
        ("apiGroups", "api group", "api groups"),
        ("resources", "resource", "resources"),
    ):
        if not rule[field]:
            detail = f"resource rules must supply at least one {one}"
            found.required(f"{path}.{field}", detail)
        else:
            _alone(found, rule[field], f"{path}.{field}", many)
    namespaces, where = rule.get("namespaces") or [], f"{path}.namespaces"
    if not namespaces and not rule.get("clusterScope"):
        detail = "resource rules that are not cluster scoped must supply at least one "
        found.required(where, f"{detail}namespace")
    elif "*" in namespaces:
        _alone(found, namespaces, where, "namespaces")
    else:
        intro = "each member of this list must be '*' or a DNS-1123 label; "
        for index, each in enumerate(namespaces):
            told = tuple(intro + problem for problem in texts.label(each))
            found.each(f"{where}[{index}]", each, told)


def _path_rule(found: Found, rule: JSON, path: str) -> None:
    _verbs(found, rule["verbs"] or (), f"{path}.verbs")
    paths, where = rule["nonResourceURLs"] or [], f"{path}.nonResourceURLs"
    if not paths:
        found.required(where, "nonResourceURLs must contain at least one value")
    elif "*" in paths:
        _alone(found, paths, where, "non-resource URLs")
    else:
        for index, each in enumerate(paths):
            if problem := _path_problem(each):
                found.invalid(f"{where}[{index}]", each, problem)


def _path_problem(path: str) -> str:
    if not path:
        return "must not be empty"
    if path == "/":
        return ""
    if not path.startswith("/"):
        return "must start with slash"
    if " " in path:
        return "must not contain white-space"
    if "//" in path:
        return "must not contain double slash"
    stars = path.count("*")
    if stars > 1 or (stars == 1 and not path.endswith("/*")):
        return "wildcard can only do suffix matching"
    return ""


def create_level(found: Found, obj: JSON) -> None:
    metadata, spec = obj["metadata"], obj["spec"]
    meta.created(found, metadata, namespaced=False, name=texts.subdomain)
    if _ROUNDTRIP in (metadata.get("annotations") or ()):
        detail = f"annotation '{_ROUNDTRIP}' is forbidden"
        found.forbidden("metadata.annotations", detail)
    name = metadata.get("name", "")
    _level(found, spec, name)
    if name in LEVELS:
        free = {"exempt"} if name == "exempt" else set()
        fixed = {key: each for key, each in LEVELS[name].items() if key not in free}
        if {key: each for key, each in spec.items() if key not in free} != fixed:
            but = " except the 'spec.exempt' field" if free else ""
            shown = internal("flowcontrol.PriorityLevelConfigurationSpec", spec)
            detail = f"spec of '{name}'{but} must equal the fixed value"
            found.invalid("spec", shown, detail)
    _conditions(found, obj)


def update_level(found: Found, obj: JSON, old: JSON) -> None:
    create_level(found, obj)


def _level(found: Found, spec: JSON, name: str) -> None:
    kind = spec["type"]
    if (name == "exempt") != (kind == "Exempt"):
        detail = "must be 'Exempt' if and only if `name` is 'exempt'"
        found.invalid("spec.type", kind, detail)
    exempt, limited = spec.get("exempt"), spec.get("limited")
    if kind == "Exempt":
        if limited is not None:
            detail = "must be nil if the type is not Limited"
            found.forbidden("spec.limited", detail)
        if exempt is not None:
            _shares(found, exempt, "spec.exempt")
            _lendable(found, exempt, "spec.exempt")
    elif kind == "Limited":
        if exempt is not None:
            found.forbidden("spec.exempt", "must be nil if the type is Limited")
        if limited is None:
            detail = "must not be empty when type is Limited"
            found.required("spec.limited", detail)
        else:
            _limited(found, limited)
    else:
        found.choice("spec.type", kind, ("Exempt", "Limited"))


def _shares(found: Found, given: JSON, path: str) -> None:
    if given.get("nominalConcurrencyShares", 0) < 0:
        value, detail = given["nominalConcurrencyShares"], "must be a non-negative "
        found.invalid(f"{path}.nominalConcurrencyShares", value, f"{detail}integer")


def _lendable(found: Found, given: JSON, path: str) -> None:
    value = given.get("lendablePercent", 0)
    if not 0 <= value <= 100:
        detail = "must be between 0 and 100, inclusive"
        found.invalid(f"{path}.lendablePercent", value, detail)


def _limited(found: Found, limited: JSON) -> None:
    path = "spec.limited"
    _shares(found, limited, path)
    _response(found, limited["limitResponse"], f"{path}.limitResponse")
    _lendable(found, limited, path)
    borrowed = limited.get("borrowingLimitPercent", 0)
    if borrowed < 0:
        detail = "if specified, must be a non-negative integer"
        found.invalid(f"{path}.borrowingLimitPercent", borrowed, detail)


def _response(found: Found, response: JSON, path: str) -> None:
    kind, queuing, where = response["type"], response.get("queuing"), f"{path}.queuing"
    if kind == "Reject":
        if queuing is not None:
            detail = "must be nil if limited.limitResponse.type is not Limited"
            found.forbidden(where, detail)
    elif kind == "Queue":
        if queuing is None:
            detail = "must not be empty if limited.limitResponse.type is Limited"
            found.required(where, detail)
        else:
            _queuing(found, queuing, where)
    else:
        found.choice(f"{path}.type", kind, ("Queue", "Reject"))


def _queuing(found: Found, queuing: JSON, path: str) -> None:
    length, queues = queuing["queueLengthLimit"], queuing["queues"]
    hand, where = queuing["handSize"], f"{path}.handSize"
    if length <= 0:
        found.invalid(f"{path}.queueLengthLimit", length, "must be positive")
    if queues <= 0:
        found.invalid(f"{path}.queues", queues, "must be positive")
    elif queues > _MOST_QUEUES:
        detail = f"must not be greater than {_MOST_QUEUES}"
        found.invalid(f"{path}.queues", queues, detail)
    if hand <= 0:
        found.invalid(where, hand, "must be positive")
    elif hand > queues:
        found.invalid(where, hand, f"should not be greater than queues ({queues})")
    elif math.ceil(math.log2(queues) * hand) > _MOST_BITS:
        found.invalid(
            where,
            hand,
            f"required entropy bits of deckSize {queues} and handSize {hand} should "
            f"not be greater than {_MOST_BITS}",
        )
