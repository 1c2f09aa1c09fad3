"""Metadata: names, labels, annotations, owners and finalizers of every object.

The rules come in two layers, as in the real server: those of the kind, with the kind's
idea of a name, and those for every object, which only need a name that fits a URL.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from trimtab.embedded.builtin.validation import texts
from trimtab.embedded.builtin.validation.problems import Found, go_json
from trimtab.embedded.builtin.validation.texts import NameCheck

ANNOTATIONS_LIMIT: Final = 256 * 1024
_STANDARD_FINALIZERS: Final = ("kubernetes", "orphan", "foregroundDeletion")
_FROZEN: Final = (
    "name",
    "namespace",
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
)


def created(
    found: Found,
    meta: Mapping[str, Any],
    *,
    namespaced: bool,
    name: NameCheck,
    qualified: bool = True,
) -> None:
    """The kind's own rules for the metadata of an object.

    A few kinds take finalizers that are not ``qualified``.
    """
    _names(found, meta, name, texts.prefix_of(name))
    if not found.settled:
        _common(found, meta, namespaced=namespaced)
    if qualified:
        qualified_finalizers(found, meta)


def common(found: Found, meta: Mapping[str, Any], *, namespaced: bool) -> None:
    """What is asked of every object, after the rules of its kind."""
    _names(found, meta, texts.path_segment, texts.path_segment_prefix)
    _common(found, meta, namespaced=namespaced)


def qualified_finalizers(found: Found, meta: Mapping[str, Any]) -> None:
    """Finalizers are Kubernetes' own, or have a prefix."""
    for index, finalizer in enumerate(meta.get("finalizers") or ()):
        if "/" not in finalizer and finalizer not in _STANDARD_FINALIZERS:
            found.invalid(
                f"metadata.finalizers[{index}]",
                finalizer,
                "name is neither a standard finalizer name nor is it fully qualified",
            )


def _names(
    found: Found, meta: Mapping[str, Any], name: NameCheck, prefix: NameCheck
) -> None:
    if generate := meta.get("generateName"):
        found.each("metadata.generateName", generate, prefix(generate))
    given = meta.get("name")
    if not given:
        found.required("metadata.name", "name or generateName is required")
    else:
        found.each("metadata.name", given, name(given))


def _common(found: Found, meta: Mapping[str, Any], *, namespaced: bool) -> None:
    namespace = meta.get("namespace")
    if namespaced:
        if not namespace:
            found.required("metadata.namespace")
        else:
            found.each("metadata.namespace", namespace, texts.label(namespace))
    elif namespace:
        found.forbidden("metadata.namespace", "not allowed on this type")
    found.not_negative("metadata.generation", meta.get("generation"))
    labels(found, meta.get("labels"), "metadata.labels")
    notes(found, meta.get("annotations"), "metadata.annotations")
    _owners(found, meta.get("ownerReferences"))
    _finalizers(found, meta.get("finalizers"))
    _managed(found, meta.get("managedFields"))


def labels(found: Found, given: Mapping[str, str] | None, path: str) -> None:
    """Keys and values of labels, or of a selector of that form."""
    if not given:
        return
    for key, value in given.items():
        if problems := texts.key(key):
            found.each(path, key, problems)
        if problems := texts.label_value(value):
            found.each(path, value, problems)


def notes(found: Found, given: Mapping[str, str] | None, path: str) -> None:
    """Keys of annotations, in any case, and their size."""
    if not given:
        return
    size = 0
    for key, value in given.items():
        if problems := texts.key(key.lower()):
            found.each(path, key, problems)
        size += _size(key) + _size(value)
    if size > ANNOTATIONS_LIMIT:
        found.too_long(path, ANNOTATIONS_LIMIT)


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _owners(found: Found, owners: list[dict[str, Any]] | None) -> None:
    path, controller = "metadata.ownerReferences", ""
    for owner in owners or ():
        version = owner["apiVersion"]
        if not version or version.count("/") > 1 or version == "/":
            detail = "version must not be empty"
            found.invalid(f"{path}.apiVersion", version, detail)
        for field in ("kind", "name", "uid"):
            if not owner[field]:
                found.invalid(f"{path}.{field}", owner[field], "must not be empty")
        if version == "v1" and owner["kind"] == "Event":
            detail = "/v1, Kind=Event is disallowed from being an owner"
            found.invalid(path, _owner(owner), detail)
        if owner.get("controller"):
            this = f"{owner['kind']}/{owner['name']}"
            if controller:
                detail = (
                    "Only one reference can have Controller set to true. Found "
                    f'"true" in references for {controller} and {this}'
                )
                found.invalid(path, [_owner(each) for each in owners or ()], detail)
            else:
                controller = this


def _owner(owner: Mapping[str, Any]) -> dict[str, Any]:
    """In the order in which Go prints it."""
    order = ("apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion")
    return {field: owner[field] for field in order if field in owner}


def _finalizers(found: Found, finalizers: list[str] | None) -> None:
    if not finalizers:
        return
    for finalizer in finalizers:
        found.each("metadata.finalizers", finalizer, texts.key(finalizer))
    if "orphan" in finalizers and "foregroundDeletion" in finalizers:
        detail = "finalizer orphan and foregroundDeletion cannot be both set"
        found.invalid("metadata.finalizers", finalizers, detail)


def _managed(found: Found, entries: list[dict[str, Any]] | None) -> None:
    for index, entry in enumerate(entries or ()):
        operation = entry.get("operation", "")
        if operation not in ("Apply", "Update"):
            path = f"metadata.managedFields[{index}]"
            detail = "must be `Apply` or `Update`"
            found.invalid(f"{path}.operation", operation, detail)
        if entry.get("fieldsType", "FieldsV1") != "FieldsV1":
            path = f"metadata.managedFields[{index}]"
            detail = "must be `FieldsV1`"
            found.invalid(f"{path}.fieldsType", entry["fieldsType"], detail)


def common_update(
    found: Found, meta: Mapping[str, Any], old: Mapping[str, Any], *, namespaced: bool
) -> None:
    """What is asked of every changed object, before the rules of its kind."""
    common(found, meta, namespaced=namespaced)
    _update(found, meta, old)
    found.settled = not found


def updated(
    found: Found,
    meta: Mapping[str, Any],
    old: Mapping[str, Any],
    *,
    qualified: bool = True,
) -> None:
    """The kind's own rules for the metadata of a changed object."""
    if not found.settled:
        _update(found, meta, old)
    if qualified:
        qualified_finalizers(found, meta)


def _update(found: Found, meta: Mapping[str, Any], old: Mapping[str, Any]) -> None:
    if old.get("deletionTimestamp"):
        _no_new_finalizers(found, meta, old)
    if not meta.get("resourceVersion"):
        path = "metadata.resourceVersion"
        found.invalid(path, "", "must be specified for an update")
    if meta.get("generation", 0) < old.get("generation", 0):
        generation = meta.get("generation", 0)
        found.invalid("metadata.generation", generation, "must not be decremented")
    for field in _FROZEN:
        if meta.get(field) != old.get(field):
            value = meta.get(field, "" if field in ("namespace", "uid") else None)
            found.invalid(f"metadata.{field}", value, texts.IMMUTABLE)
    labels(found, meta.get("labels"), "metadata.labels")
    notes(found, meta.get("annotations"), "metadata.annotations")
    _owners(found, meta.get("ownerReferences"))
    _managed(found, meta.get("managedFields"))


def _no_new_finalizers(
    found: Found, meta: Mapping[str, Any], old: Mapping[str, Any]
) -> None:
    before = old.get("finalizers") or ()
    new = sorted({each for each in meta.get("finalizers") or () if each not in before})
    if new:
        listed = "[]string{" + go_json(new)[1:-1].replace(",", ", ") + "}"
        found.forbidden(
            "metadata.finalizers",
            "no new finalizers can be added if the object is being deleted, found new "
            f"finalizers {listed}",
        )


def selector(found: Found, given: Mapping[str, Any] | None, path: str) -> None:
    """A label selector with expressions."""
    if not given:
        return
    labels(found, given.get("matchLabels"), f"{path}.matchLabels")
    for index, expression in enumerate(given.get("matchExpressions") or ()):
        _expression(found, expression, f"{path}.matchExpressions[{index}]")


def _expression(found: Found, expression: Mapping[str, Any], path: str) -> None:
    operator, values = expression["operator"], expression.get("values") or ()
    if operator in ("In", "NotIn"):
        if not values:
            detail = "must be specified when `operator` is 'In' or 'NotIn'"
            found.required(f"{path}.values", detail)
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            detail = (
                "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            )
            found.forbidden(f"{path}.values", detail)
    else:
        found.invalid(f"{path}.operator", operator, "not a valid selector operator")
    found.each(f"{path}.key", expression["key"], texts.key(expression["key"]))
    for index, value in enumerate(values):
        found.each(f"{path}.values[{index}]", value, texts.label_value(value))
