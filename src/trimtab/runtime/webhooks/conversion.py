"""Conversion: objects from version to version, with nothing lost on the way.

The functions that an operator declares see typed objects; whatever a version has no
place for would be gone after a round trip. So each object carries, in the annotation
``trimtab.dev/kept``, what the way back would not bring back: of each version that it
was converted from, the parts that differ, as they were and as they would come back. On
the way back they are put in place again, unless somebody has changed what they are
about in the meantime.

Metadata is no matter of versions: it is carried over as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import msgspec

from trimtab.api.codec import convert
from trimtab.api.objects import wire
from trimtab.api.resource import Resource
from trimtab.runtime.webhooks.declarations import Conversion
from trimtab.runtime.webhooks.patches import merged, same
from trimtab.runtime.webhooks.review import NotAReview

Plain = dict[str, Any]

KEPT = "trimtab.dev/kept"
HEAD = frozenset({"apiVersion", "kind", "metadata"})
REVIEW = ("apiextensions.k8s.io/v1", "ConversionReview")


class Step(NamedTuple):
    """One function, from one version to the next, and the one that leads back."""

    source: type[Resource]
    target: type[Resource]
    forward: Callable[[Any], Any]
    backward: Callable[[Any], Any]


class Asked(msgspec.Struct, frozen=True):
    """The ``request`` of a ConversionReview."""

    uid: str
    desiredAPIVersion: str
    objects: list[Plain]


class Envelope(msgspec.Struct, frozen=True):
    """A ConversionReview that asks."""

    apiVersion: str
    kind: str
    request: Asked


class CannotConvert(Exception):
    """An object that stays in its version; says which one and why."""


class Converter:
    """Converts objects along the declared steps, over several if need be.

    Assumptions: the declarations were checked: each step has its way back.
    """

    def __init__(self, conversions: Iterable[Conversion]) -> None:
        self._steps: list[Step] = []
        for each in conversions:
            assert each.down is not None, "declarations are checked before"
            self._steps.append(Step(each.old, each.new, each.up, each.down))
            self._steps.append(Step(each.new, each.old, each.down, each.up))

    def convert(self, obj: Plain, to: str) -> Plain:
        """An object in another version of its kind.

        Guarantees: converted there and back, it is what it was, with any field that
        either version does not know; if it was changed in between, so is the rest of
        it. The object that was given stays as it is.

        Errors: :class:`CannotConvert`.
        """
        for step in self._route(obj, to):
            try:
                obj = converted(obj, step)
            except Exception as error:
                raise CannotConvert(_sentence(obj, to, error)) from error
        return obj

    def _route(self, obj: Plain, to: str) -> list[Step]:
        """The shortest way; each step is taken at most once."""
        start = obj.get("apiVersion")
        group = to.partition("/")[0]
        kind = obj.get("kind")
        known = [
            each
            for each in self._steps
            if (each.source.__resource__.group, each.source.kind) == (group, kind)
        ]
        routes: list[tuple[Any, list[Step]]] = [(start, [])]
        seen = {start}
        for here, route in routes:
            if here == to:
                return route
            for step in known:
                after = step.target.apiVersion
                if step.source.apiVersion == here and after not in seen:
                    seen.add(after)
                    routes.append((after, [*route, step]))
        raise CannotConvert(
            f"{_named(obj)} is {start}, and no declared conversion leads to {to}."
        )


def converted(obj: Plain, step: Step) -> Plain:
    """An object, one step on."""
    metadata, kept = _opened(obj)
    source = convert(step.source, obj)
    made = _body(wire(_made(step.forward, source, step.target)))
    held = kept.pop(step.target.__resource__.version, None)
    if held is not None:
        made = merged(held.get("is", {}), held.get("was", {}), made)
    whole = {**step.target.__head__, "metadata": metadata, **made}
    there = convert(step.target, whole)
    # What would come back if nothing happened, and what it would lack.
    back = _body(wire(_made(step.backward, there, step.source)))
    was, now = _apart(back, _body(obj))
    version = step.source.__resource__.version
    kept.pop(version, None)
    if was or now:
        kept[version] = {"is": now, "was": was}
    return {**whole, "metadata": _closed(metadata, kept)}


def _made(function: Callable[[Any], Any], obj: Any, wanted: type[Resource]) -> Any:
    made = function(obj)
    if not isinstance(made, wanted):
        name = getattr(function, "__name__", repr(function))
        raise TypeError(f"{name} returned {type(made).__name__}, not {wanted.__name__}")
    return made


def _body(obj: Plain) -> Plain:
    return {key: value for key, value in obj.items() if key not in HEAD}


def _apart(one: Plain, other: Plain) -> tuple[Plain, Plain]:
    """What of two objects differs, without what they have in common."""
    left, right = {}, {}
    for key in {**one, **other}:
        if key not in other:
            left[key] = one[key]
        elif key not in one:
            right[key] = other[key]
        elif isinstance(one[key], dict) and isinstance(other[key], dict):
            was, now = _apart(one[key], other[key])
            if was:
                left[key] = was
            if was or now:
                right[key] = now
        elif not same(one[key], other[key]):
            left[key], right[key] = one[key], other[key]
    return left, right


def _opened(obj: Plain) -> tuple[Plain, Plain]:
    """An object's metadata without what is kept there, and that."""
    metadata = dict(obj.get("metadata") or {})
    annotations = dict(metadata.get("annotations") or {})
    text = annotations.pop(KEPT, None)
    if text is None:
        return metadata, {}
    metadata["annotations"] = annotations
    if not annotations:
        del metadata["annotations"]
    try:
        kept = msgspec.json.decode(text, type=dict[str, dict[str, Plain]])
    except msgspec.MsgspecError:
        kept = {}  # Somebody's hand was there; what the fields say still holds.
    return metadata, kept


def _closed(metadata: Plain, kept: Plain) -> Plain:
    if not kept:
        return metadata
    text = msgspec.json.encode(kept, order="deterministic").decode()
    annotations = {**(metadata.get("annotations") or {}), KEPT: text}
    return {**metadata, "annotations": annotations}


def review(body: bytes, convert: Callable[[Plain, str], Plain]) -> bytes:
    """Answer a ConversionReview.

    Errors: :class:`~trimtab.runtime.webhooks.review.NotAReview`.
    """
    try:
        envelope = msgspec.json.decode(body, type=Envelope)
    except msgspec.MsgspecError as error:
        raise NotAReview(f"The body is no ConversionReview: {error}.") from None
    if (envelope.apiVersion, envelope.kind) != REVIEW:
        raise NotAReview(
            f"The body is a {envelope.kind} of {envelope.apiVersion}; a {REVIEW[1]} "
            f"of {REVIEW[0]} is answered."
        )
    asked = envelope.request
    response: Plain = {"uid": asked.uid}
    try:
        objects = [convert(each, asked.desiredAPIVersion) for each in asked.objects]
        response |= {"result": {"status": "Success"}, "convertedObjects": objects}
    except CannotConvert as error:
        response["result"] = {"status": "Failure", "message": str(error)}
    version, kind = REVIEW
    return msgspec.json.encode(
        {"apiVersion": version, "kind": kind, "response": response}
    )


def _named(obj: Plain) -> str:
    metadata = obj.get("metadata") or {}
    place = "/".join(filter(None, (metadata.get("namespace"), metadata.get("name"))))
    return f"{obj.get('kind')} {place}"


def _sentence(obj: Plain, to: str, error: Exception) -> str:
    # A class's own complaint names the field; another's may hold anything.
    why = str(error) if isinstance(error, msgspec.ValidationError | TypeError) else ""
    told = why or f"its function raised {type(error).__name__}"
    return f"{_named(obj)} cannot be converted to {to}: {told.rstrip('.')}."
