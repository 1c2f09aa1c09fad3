"""Admission policies: whether they and their bindings can mean anything.

Their expressions are compiled, so that whoever writes a policy learns what is wrong
with it, and not those whose requests it is asked about.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from trimtab.embedded.builtin.validation import admissionbindings as bindings
from trimtab.embedded.builtin.validation import texts
from trimtab.embedded.builtin.validation.matchconditions import conditions, told
from trimtab.embedded.builtin.validation.problems import Found
from trimtab.embedded.expressions.checking import Scope
from trimtab.embedded.expressions.reading import RESERVED
from trimtab.embedded.policies.compiled import (
    ANNOTATION,
    ANYTHING,
    CONDITION,
    CONFIGURATION,
    MESSAGE,
    PATCH,
    compiled,
)
from trimtab.embedded.policies.environment import Environment

JSON = Mapping[str, Any]

_FAILURES: Final = ("Fail", "Ignore")
_REASONS: Final = ("Forbidden", "Invalid", "RequestEntityTooLarge")
_PATCHES: Final = {
    "ApplyConfiguration": ("applyConfiguration", CONFIGURATION),
    "JSONPatch": ("jsonPatch", PATCH),
}
_NAME = re.compile("[_a-zA-Z][_a-zA-Z0-9]*")
_LINES = re.compile("[\n\r]+")
_MOST_NOTES: Final = 20
_LONGEST_NOTE: Final = 5 * 1024
_EITHER: Final = "validations or auditAnnotations must contain at least one item"


def create_validating(found: Found, obj: JSON) -> None:
    bindings.metadata(found, obj)
    _validating(found, obj, None)


def update_validating(found: Found, obj: JSON, old: JSON) -> None:
    bindings.metadata(found, obj)
    _validating(found, obj, old)


def create_mutating(found: Found, obj: JSON) -> None:
    bindings.metadata(found, obj)
    _mutating(found, obj["spec"], None)


def update_mutating(found: Found, obj: JSON, old: JSON) -> None:
    bindings.metadata(found, obj)
    _mutating(found, obj["spec"], old["spec"])


def _validating(found: Found, obj: JSON, old: JSON | None) -> None:
    spec = obj["spec"]
    environment = _common(found, spec, old["spec"] if old else None, composed=None)
    checks = spec.get("validations") or []
    notes = spec.get("auditAnnotations") or []
    if not checks and not notes:
        found.required("spec.validations", _EITHER)
        found.required("spec.auditAnnotations", _EITHER)
    for index, check in enumerate(checks):
        _check(found, check, environment, f"spec.validations[{index}]")
    if len(notes) > _MOST_NOTES:
        shown = [
            {"Key": each["key"], "ValueExpression": each["valueExpression"]}
            for each in notes
        ]
        detail = f"must not have more than {_MOST_NOTES} auditAnnotations"
        found.invalid("spec.auditAnnotations", shown, detail)
    seen: set[str] = set()
    for index, note in enumerate(notes):
        where = f"spec.auditAnnotations[{index}]"
        _note(found, obj["metadata"].get("name", ""), note, environment, where)
        if note["key"] in seen:
            found.duplicate(f"{where}.key", note["key"])
        seen.add(note["key"])


def _mutating(found: Found, spec: JSON, old: JSON | None) -> None:
    environment = _common(found, spec, old, composed=True)
    changes = spec.get("mutations") or []
    if not changes:
        found.required("spec.mutations", "mutations must contain at least one item")
    for index, change in enumerate(changes):
        _change(found, change, environment, f"spec.mutations[{index}]")
    again = spec.get("reinvocationPolicy") or ""
    found.choice("spec.reinvocationPolicy", again, ("IfNeeded", "Never"))


def _common(
    found: Found, spec: JSON, old: JSON | None, *, composed: bool | None
) -> Environment:
    """What both kinds of policies have; the environment has the variables in it."""
    found.choice("spec.failurePolicy", spec.get("failurePolicy"), _FAILURES)
    params = spec.get("paramKind")
    if params is not None:
        _param_kind(found, params, "spec.paramKind")
    _constraints(found, spec.get("matchConstraints"), changing=composed is True)
    same = old is not None and all(
        (spec.get(each) or None) == (old.get(each) or None)
        for each in ("matchConditions", "paramKind")
    )
    if not same:
        given = spec.get("matchConditions") or []
        conditions(found, given, "spec.matchConditions", params=params is not None)
    variables = spec.get("variables") or []
    environment = Environment(
        params=params is not None,
        composed=bool(variables) if composed is None else composed,
    )
    for index, variable in enumerate(variables):
        _variable(found, variable, environment, f"spec.variables[{index}]")
    return environment


def _constraints(found: Found, given: JSON | None, *, changing: bool) -> None:
    path = "spec.matchConstraints"
    if given is None:
        found.required(path)
        return
    bindings.match(found, given, path)
    if not given.get("resourceRules"):
        found.required(f"{path}.resourceRules")
    if changing:
        bindings.only_changing(found, given, path)


def _param_kind(found: Found, given: JSON, path: str) -> None:
    version, kind = given.get("apiVersion") or "", given.get("kind") or ""
    where = f"{path}.apiVersion"
    if not version:
        found.required(where)
    elif version.count("/") > 1:
        found.invalid(where, version, f"unexpected GroupVersion string: {version}")
    else:
        group, _, bare = version.rpartition("/")
        if group and (wrong := texts.subdomain(group)):
            found.invalid(where, group, ",".join(wrong))
        if not bare:
            found.invalid(where, version, "version must be specified")
        elif wrong := texts.label_1035(bare):
            found.invalid(where, bare, ",".join(wrong))
    if not kind:
        found.required(f"{path}.kind")
    elif wrong := texts.label_1035(kind.lower()):
        detail = "may have mixed case, but should otherwise match: "
        found.invalid(f"{path}.kind", kind, detail + ",".join(wrong))


def _variable(found: Found, given: JSON, environment: Environment, path: str) -> None:
    name, text = given.get("name") or "", given.get("expression") or ""
    if not name.strip():
        found.required(f"{path}.name", "name is not specified")
    elif not _NAME.fullmatch(name) or name in RESERVED:
        found.invalid(f"{path}.name", name, "must be a valid CEL identifier")
    if not text.strip():
        found.required(f"{path}.expression", "expression is not specified")
        return
    made = compiled(text, environment.scope(), ANYTHING)
    environment.add(name, made.type)
    told(found, made, f"{path}.expression")


def _check(found: Found, given: JSON, environment: Environment, path: str) -> None:
    text = given.get("expression") or ""
    if not text.strip():
        found.required(f"{path}.expression", "expression is not specified")
    else:
        made = compiled(text, environment.scope(), CONDITION)
        told(found, made, f"{path}.expression")
    _message(found, given, environment.scope(authorizer=False), path)
    reason = given.get("reason")
    if reason is not None:
        found.one_of(f"{path}.reason", reason, _REASONS)


def _message(found: Found, given: JSON, scope: Scope, path: str) -> None:
    text = given.get("messageExpression") or ""
    if text and not text.strip():
        detail = "must be non-empty if specified"
        found.invalid(f"{path}.messageExpression", text, detail)
    elif text:
        made = compiled(text, scope, MESSAGE)
        told(found, made, f"{path}.messageExpression")
    message = given.get("message") or ""
    if message and not message.strip():
        found.invalid(f"{path}.message", message, "must be non-empty if specified")
    elif _LINES.search(message.strip()):
        found.invalid(f"{path}.message", message, "must not contain line breaks")


def _note(
    found: Found, owner: str, given: JSON, environment: Environment, path: str
) -> None:
    key, text = given.get("key") or "", given.get("valueExpression") or ""
    if owner:
        full = f"{owner}/{key}"
        found.each(f"{path}.key", full, texts.key(full))
    else:
        found.invalid(f"{path}.key", key, "requires metadata.name be non-empty")
    where, bare = f"{path}.valueExpression", text.strip()
    if not bare:
        found.required(where, "valueExpression is not specified")
    elif len(bare.encode()) > _LONGEST_NOTE:
        found.required(where, f"must not exceed {_LONGEST_NOTE} bytes in length")
    else:
        made = compiled(bare, environment.scope(), ANNOTATION)
        told(found, made, where, shown=text)


def _change(found: Found, given: JSON, environment: Environment, path: str) -> None:
    kind = given.get("patchType") or ""
    if kind not in _PATCHES:
        found.choice(f"{path}.patchType", kind, tuple(_PATCHES))
        return
    field, returns = _PATCHES[kind]
    if given.get(field) is None:
        detail = f"must be specified when patchType is {kind}"
        found.required(f"{path}.{field}", detail)
    else:
        where = f"{path}.{field}.expression"
        text = (given[field].get("expression") or "").strip()
        if text:
            scope = environment.scope(patches=True)
            told(found, compiled(text, scope, returns), where)
        else:
            found.required(where)
    for other, _ in _PATCHES.values():
        if other != field and given.get(other) is not None:
            detail = f"must not be specified when patchType is {kind}"
            found.invalid(f"{path}.{other}", f"{{{other}}}", detail)


def status_validating(found: Found, obj: JSON, old: JSON) -> None:
    """What was found by checking the types of its expressions."""
    status = obj.get("status") or {}
    warnings = (status.get("typeChecking") or {}).get("expressionWarnings") or ()
    for problem in _warnings(warnings):
        found.required(problem)


def _warnings(given: Sequence[JSON]) -> Iterator[str]:
    for index, warning in enumerate(given):
        path = f"status.typeChecking.expressionWarnings[{index}]"
        if not warning.get("warning"):
            yield f"{path}.warning"
        if not (warning.get("fieldRef") or "").strip():
            yield f"{path}.fieldRef"
