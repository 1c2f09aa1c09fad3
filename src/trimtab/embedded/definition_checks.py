"""Definition checks: what is wrong with a CustomResourceDefinition, in the real words.

The real server looks at an older form of the object, in which what all versions share
stands at the top: so complaints about the schema of the only version name
``spec.validation``, not ``spec.versions[0].schema``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from trimtab.embedded import goschema, status
from trimtab.embedded.builtin.validation import meta as rules
from trimtab.embedded.builtin.validation import texts
from trimtab.embedded.builtin.validation.problems import Found
from trimtab.embedded.conversion_checks import choice_problems, conversion_problems
from trimtab.embedded.definitions import APPROVAL, approval, is_protected, is_true
from trimtab.embedded.schema_checks import validation_problems
from trimtab.embedded.status import FieldProblem
from trimtab.embedded.version_checks import (
    column_problems,
    selectable_problems,
    subresource_problems,
    version_problems,
)

Plain = Mapping[str, Any]

_SHARED: Final = (
    *("schema", "subresources"),
    *("additionalPrinterColumns", "selectableFields"),
)


def problems(crd: Plain, old: Plain | None = None) -> list[FieldProblem]:
    """What is wrong with a new definition, or with a changed one.

    Assumptions: defaults are set, and the status is what the server wrote.
    """
    found = list(_metadata_problems(crd, old))
    spec = crd["spec"]
    found += _spec_problems(spec, old)
    if old is not None:
        found += _frozen_problems(crd, old)
    state = crd.get("status") or {}
    accepted = state.get("acceptedNames") or {}
    found += _name_problems(accepted, "status.acceptedNames")
    found += _stored_problems(state.get("storedVersions") or [], spec)
    found += _approval_problems(crd, old)
    if spec.get("preserveUnknownFields") and not (
        old is not None and old["spec"].get("preserveUnknownFields")
    ):
        detail = (
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in "
            "spec.versions[*].schema instead"
        )
        found.append(status.invalid("spec.preserveUnknownFields", True, detail))
    return found


def status_problems(crd: Plain, old: Plain) -> list[FieldProblem]:
    """What is wrong with a changed status."""
    found: list[FieldProblem] = list(_metadata_problems(crd, old))
    accepted = (crd.get("status") or {}).get("acceptedNames") or {}
    return [*found, *_name_problems(accepted, "status.acceptedNames")]


def _metadata_problems(crd: Plain, old: Plain | None) -> Iterator[FieldProblem]:
    found = Found()
    metadata, spec = crd["metadata"], crd["spec"]
    if old is not None:
        rules.common_update(found, metadata, old["metadata"], namespaced=False)
        rules.updated(found, {**metadata, "finalizers": ()}, old["metadata"])
        yield from found
        return
    name = metadata.get("name")
    if not name:
        found.required("metadata.name", "name or generateName is required")
    else:
        found.each("metadata.name", name, texts.subdomain(name))
        wanted = (
            f"{(spec.get('names') or {}).get('plural', '')}.{spec.get('group', '')}"
        )
        if name != wanted:
            detail = 'must be spec.names.plural+"."+spec.group'
            found.invalid("metadata.name", name, detail)
    rules.common(found, {**metadata, "name": "fakename"}, namespaced=False)
    yield from found


def shared_form(spec: Plain) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """What all versions have in common, and the versions without that."""
    versions = [dict(each) for each in spec.get("versions") or ()]
    shared: dict[str, Any] = {}
    for word in _SHARED:
        values = [each.get(word) or None for each in versions]
        if word in ("schema", "subresources"):
            values = [each.get(word) for each in versions]
        if values and all(value == values[0] for value in values):
            shared[word] = values[0]
            for each in versions:
                each.pop(word, None)
    return shared, versions


def _spec_problems(spec: Plain, old: Plain | None) -> Iterator[FieldProblem]:
    yield from _group_problems(spec.get("group") or "")
    yield from choice_problems(
        "spec.scope", spec.get("scope") or "", ("Cluster", "Namespaced")
    )
    shared, versions = shared_form(spec)
    common = shared.get("schema")
    if not (common and common.get("openAPIV3Schema") is not None):
        for index, version in enumerate(versions):
            if (version.get("schema") or {}).get("openAPIV3Schema") is None:
                where = f"spec.versions[{index}].schema.openAPIV3Schema"
                yield status.required(where)
    unchanged = _unchanged_schemas(spec, old)
    for index, version in enumerate(versions):
        path = f"spec.versions[{index}]"
        yield from version_problems(version, shared, path, unchanged)
    yield from _version_list_problems(spec, versions)
    yield from _wanted_names(spec.get("names") or {})
    yield from _name_problems(spec.get("names") or {}, "spec.names")
    yield from _shared_problems(spec, shared, unchanged)
    yield from conversion_problems(spec.get("conversion") or {})


def _unchanged_schemas(spec: Plain, old: Plain | None) -> frozenset[str]:
    """The versions whose schema was accepted before."""
    if old is None:
        return frozenset()
    before = {
        each["name"]: each.get("schema") for each in old["spec"].get("versions") or ()
    }
    return frozenset(
        each["name"]
        for each in spec.get("versions") or ()
        if each.get("name") in before and each.get("schema") == before[each["name"]]
    )


def _group_problems(group: str) -> Iterator[FieldProblem]:
    if not group:
        yield status.required("spec.group")
    elif texts.subdomain(group):
        yield status.invalid("spec.group", group, ",".join(texts.subdomain(group)))
    elif "." not in group:
        detail = "should be a domain with at least one dot"
        yield status.invalid("spec.group", group, detail)


def _version_list_problems(
    spec: Plain, versions: list[dict[str, Any]]
) -> Iterator[FieldProblem]:
    given = [each.get("name") or "" for each in versions]
    shown = None if "versions" not in spec else list(map(goschema.version, versions))
    if len(set(given)) != len(given):
        detail = "must contain unique version names"
        yield status.invalid("spec.versions", shown, detail)
    if sum(bool(each.get("storage")) for each in versions) != 1:
        detail = "must have exactly one version marked as storage version"
        yield status.invalid("spec.versions", shown, detail)
    if given and given[0] and texts.label_1035(given[0]):
        detail = ",".join(texts.label_1035(given[0]))
        yield status.invalid("spec.version", given[0], detail)


def _wanted_names(given: Plain) -> Iterator[FieldProblem]:
    for field in ("plural", "singular", "kind", "listKind"):
        if not given.get(field):
            yield status.required(f"spec.names.{field}")


def _name_problems(given: Plain, path: str) -> Iterator[FieldProblem]:
    for field in ("plural", "singular"):
        name = given.get(field) or ""
        if name and texts.label_1035(name):
            detail = ",".join(texts.label_1035(name))
            yield status.invalid(f"{path}.{field}", name, detail)
    for field in ("kind", "listKind"):
        name = given.get(field) or ""
        if name and texts.label_1035(name.lower()):
            said = ",".join(texts.label_1035(name.lower()))
            detail = f"may have mixed case, but should otherwise match: {said}"
            yield status.invalid(f"{path}.{field}", name, detail)
    for index, name in enumerate(given.get("shortNames") or ()):
        if texts.label_1035(name):
            detail = ",".join(texts.label_1035(name))
            yield status.invalid(f"{path}.shortNames[{index}]", name, detail)
    kind = given.get("kind")
    if kind and kind == given.get("listKind"):
        detail = "kind and listKind may not be the same"
        yield status.invalid(f"{path}.listKind", kind, detail)
    for index, name in enumerate(given.get("categories") or ()):
        if texts.label_1035(name):
            detail = ",".join(texts.label_1035(name))
            yield status.invalid(f"{path}.categories[{index}]", name, detail)


def _shared_problems(
    spec: Plain, shared: Plain, unchanged: frozenset[str]
) -> Iterator[FieldProblem]:
    """What all versions have in common, which the real server calls ``validation``."""
    versions: Sequence[Plain] = spec.get("versions") or ()
    yield from validation_problems(
        shared.get("schema"),
        "spec.validation",
        with_status=any(
            (each.get("subresources") or {}).get("status") is not None
            for each in versions
        ),
        trusted=bool(versions) and versions[0].get("name") in unchanged,
    )
    parts = shared.get("subresources")
    yield from subresource_problems(parts, "spec.subresources")
    for index, column in enumerate(shared.get("additionalPrinterColumns") or ()):
        where = f"spec.additionalPrinterColumns[{index}]"
        yield from column_problems(column, where)
    fields = shared.get("selectableFields")
    if fields:
        raw = (shared.get("schema") or {}).get("openAPIV3Schema")
        if shared.get("schema") is None:
            detail = "may only be set when validations.schema is included"
            yield status.invalid("spec.selectableFields", "", detail)
        else:
            yield from selectable_problems(fields, raw or {}, "spec.selectableFields")


def _frozen_problems(crd: Plain, old: Plain) -> Iterator[FieldProblem]:
    new, before = crd["spec"], old["spec"]
    named, had = new.get("names") or {}, before.get("names") or {}
    values = [
        ("spec.group", new.get("group"), before.get("group")),
        ("spec.names.plural", named.get("plural"), had.get("plural")),
    ]
    if is_true(old, "Established"):
        values = [
            ("spec.scope", new.get("scope"), before.get("scope")),
            ("spec.names.kind", named.get("kind"), had.get("kind")),
            *values,
        ]
    for path, value, previous in values:
        if (value or "") != (previous or ""):
            yield status.invalid(path, value or "", texts.IMMUTABLE)


def _stored_problems(stored: list[str], spec: Plain) -> Iterator[FieldProblem]:
    path = "status.storedVersions"
    if not stored:
        detail = "must have at least one stored version"
        yield status.invalid(path, None, detail)
        return
    versions = spec.get("versions") or ()
    for version in versions:
        if version.get("storage") and version["name"] not in stored:
            detail = f"must have the storage version {version['name']}"
            yield status.invalid(path, stored, detail)
    there = {each["name"] for each in versions}
    for index, name in enumerate(stored):
        if name not in there:
            detail = (
                f"missing from spec.versions; {name} was previously a storage version, "
                "and must remain in spec.versions until a storage migration ensures no "
                f"data remains persisted in {name} and removes {name} from "
                "status.storedVersions"
            )
            yield status.invalid(f"{path}[{index}]", name, detail)


def _approval_problems(crd: Plain, old: Plain | None) -> Iterator[FieldProblem]:
    if not is_protected(crd["spec"].get("group") or ""):
        return
    state, detail = approval(crd)
    if old is not None and approval(old)[0] == state:
        return
    path = f"metadata.annotations[{APPROVAL}]"
    said = (crd["metadata"].get("annotations") or {}).get(APPROVAL) or ""
    if state == "invalid":
        yield status.invalid(path, said, detail)
    elif state == "missing":
        yield status.required(path, detail)
