"""Scales: how many of something are wished for, read and written apart from the rest.

A scale is an object of its own kind whose fields stand elsewhere: it is made from the
object that is scaled, changed like any object, and what changed is carried back.
"""

from __future__ import annotations

from copy import deepcopy
from functools import lru_cache
from typing import Any

import msgspec

from trimtab.api.selectors import Selector
from trimtab.embedded import bodies, intents, reading, scalefields, status
from trimtab.embedded.chain import UPDATE
from trimtab.embedded.conform import Mistyped, conform
from trimtab.embedded.facts import definitions
from trimtab.embedded.kinds import Kind, Plain
from trimtab.embedded.managed import after_update, with_entries
from trimtab.embedded.metadata import metadata_of
from trimtab.embedded.patches import PatchError, json_patch, merge_patch
from trimtab.embedded.patching import (
    JSON_PATCH,
    MERGE_PATCH,
    STRATEGIC_PATCH,
    check_media,
    refused,
)
from trimtab.embedded.patching import decode as decode_patch
from trimtab.embedded.registry import Registry
from trimtab.embedded.requests import ApiRequest
from trimtab.embedded.status import ApiProblem
from trimtab.embedded.types import Type
from trimtab.embedded.writes import (
    APPLY_PATCH,
    Misfit,
    Outcome,
    Write,
    misnamed,
    other_uid,
)

KIND = "Scale"
KEPT = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
NOT_CUSTOM = (
    "failed to create manager for existing fields: failed to convert live object (/; "
    "autoscaling/v1, Kind=Scale) to proper version: request to convert CR to an "
    "invalid group/version: autoscaling/v1"
)
"""The real server cannot apply the scale of a custom object, either."""
SCALE = status.GroupResource("autoscaling", KIND)


@lru_cache(maxsize=1)
def scale_type() -> Type:
    return definitions().of("autoscaling", "v1", KIND)


class Scales:
    """The scales of a registry's objects."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def handle(self, request: ApiRequest, write: Write) -> Outcome:
        """Read, replace, patch or apply the scale of an object.

        Guarantees: the object changes in nothing but its number of replicas and in
        who owns that.
        """
        kind = write.kind
        media = request.headers.get("content-type", bodies.JSON).split(";")[0].strip()
        wanted: Plain = {}
        if request.method == "PATCH" and media != APPLY_PATCH:
            check_media(kind, media)
        if request.method == "PUT":
            wanted = bodies.decode(request.body, media, kind=KIND)
            _conform(wanted)
            _check_name(write, wanted)
        obj, row = self._registry.read(kind, write.namespace, write.name)
        if request.method == "GET":
            return Outcome(obj=scale_of(kind, obj))
        path = _path(kind)
        known = deepcopy(obj)
        if not _has(known, path):  # what is not there may be written, but not read
            set_replicas(kind, known, 0)
        before = scale_of(kind, known)
        metadata_of(before)["managedFields"] = scalefields.to_scale(
            metadata_of(obj).get("managedFields"),
            api_version=kind.api_version,
            replicas=path,
        )
        scale = self._changed(request, write, before, wanted)
        scale = self._registry.chain.mutated(write, UPDATE, scale, before)
        self._check(write, scale, before)
        changed = deepcopy(obj)
        set_replicas(kind, changed, (scale.get("spec") or {}).get("replicas", 0))
        meta = metadata_of(changed)
        meta["resourceVersion"] = metadata_of(scale).get("resourceVersion", "")
        meta["managedFields"] = scalefields.from_scale(
            meta.get("managedFields"),
            metadata_of(scale).get("managedFields"),
            api_version=kind.api_version,
            replicas=path,
        )

        def review(made: Plain) -> None:
            if self._registry.chain.listens(write):
                old = scale_of(kind, known)
                self._registry.chain.review(write, UPDATE, scale_of(kind, made), old)

        made = self._registry.replace_scaled(write, changed, obj, row, review=review)
        return Outcome(obj=scale_of(kind, made))

    def _check(self, write: Write, scale: Plain, before: Plain) -> None:
        meta, known = metadata_of(scale), metadata_of(before)
        replicas = (scale.get("spec") or {}).get("replicas", 0)
        if replicas < 0 and write.kind.custom is None:
            problem = status.invalid(
                "spec.replicas", replicas, "must be greater than or equal to 0"
            )
            raise status.invalid_object(SCALE, write.name, [problem])
        if meta.get("uid", known["uid"]) not in ("", known["uid"]):
            raise other_uid(write, meta["uid"], known["uid"])

    def _changed(
        self, request: ApiRequest, write: Write, before: Plain, after: Plain
    ) -> Plain:
        """The scale as the request wants it, with who owns what of it then."""
        media = request.headers.get("content-type", bodies.JSON).split(";")[0].strip()
        if request.method == "PATCH" and media == APPLY_PATCH:
            intent, lines = reading.intent_of(request.body)
            scale = self._applied(write, before, intent)
            reading.complain_of_lines(write, lines)
            return scale
        if request.method == "PATCH":
            shown = before
            if write.kind.custom is not None:  # nobody owns anything of such a scale
                shown = with_entries(before, None)
            after = _patched(shown, decode_patch(request.body, media), media)
            _check_name(write, after)
        return after_update(
            before,
            after,
            type=scale_type(),
            api_version=scalefields.SCALE_VERSION,
            manager=write.manager,
            subresource="scale",
            now=self._registry.stamps.time(),
        )

    def _applied(self, write: Write, before: Plain, intent: Plain) -> Plain:
        if write.kind.custom is not None:
            raise ApiProblem(500, "", NOT_CUSTOM)
        intents.check(write, intent, type=(scalefields.SCALE_VERSION, KIND))
        return intents.applied(
            write,
            before,
            intent,
            type=scale_type(),
            api_version=scalefields.SCALE_VERSION,
            now=self._registry.stamps.time(),
        )


def _patched(before: Plain, patch: Any, media: str) -> Plain:
    try:
        if media == JSON_PATCH:
            after = json_patch(deepcopy(before), patch)
        elif media in (MERGE_PATCH, STRATEGIC_PATCH):
            after = merge_patch(deepcopy(before), patch)
        else:
            raise status.unsupported_media_type((JSON_PATCH, MERGE_PATCH, APPLY_PATCH))
    except PatchError as error:
        raise refused(error) from None
    if not isinstance(after, dict):
        raise ApiProblem(422, "Invalid", "the patch does not leave an object")
    text = msgspec.json.encode(after).decode()
    try:
        _conform(after)
    except Misfit as misfit:
        problem = status.invalid("patch", text, misfit.detail)
        nothing = status.GroupResource("", "")
        raise status.invalid_object(nothing, "", [problem]) from None
    return after


def _check_name(write: Write, scale: Plain) -> None:
    meta = metadata_of(scale)
    if meta.get("name") != write.name:
        raise misnamed(meta, write)


def _conform(scale: Plain) -> None:
    version, kind = scalefields.SCALE_VERSION, scale.setdefault("kind", KIND)
    given = scale.setdefault("apiVersion", version)
    handled = f'{kind} in version "v1" cannot be handled as a Scale: '
    if (given, kind) != (version, KIND):
        raise Misfit(
            handled,
            f'no kind "{kind}" is registered for version "{given}" in scheme '
            '"pkg/runtime/scheme.go:111"',
        )
    try:
        conform(scale_type(), scale)
    except Mistyped as problem:
        raise Misfit(handled, str(problem)) from None


def scale_of(kind: Kind, obj: Plain) -> Plain:
    """The scale of an object: how many are wished for, how many there are."""
    if kind.custom is not None:
        wished, present, selector = kind.custom.scale(obj)
    else:
        state = obj.get("status") or {}
        wished = (obj.get("spec") or {}).get("replicas", 0)
        present = state.get("replicas", 0)
        selector = _selector_text((obj.get("spec") or {}).get("selector"))
    meta = metadata_of(obj)
    state_of: Plain = {"replicas": present or 0}
    if selector:
        state_of["selector"] = selector
    return {
        "kind": KIND,
        "apiVersion": scalefields.SCALE_VERSION,
        "metadata": {key: meta[key] for key in KEPT if key in meta},
        "spec": {"replicas": wished} if wished else {},
        "status": state_of,
    }


def _selector_text(selector: Any) -> str:
    from trimtab.api.codec import convert
    from trimtab.api.selectors import LabelSelector

    if not isinstance(selector, dict):
        return ""
    if "matchLabels" in selector or "matchExpressions" in selector:
        return str(Selector.from_wire(convert(LabelSelector, selector)))
    return ",".join(f"{key}={value}" for key, value in sorted(selector.items()))


def set_replicas(kind: Kind, obj: Plain, replicas: int) -> None:
    if kind.custom is not None:
        kind.custom.set_scale(obj, replicas)
    else:
        obj.setdefault("spec", {})["replicas"] = replicas


def _has(obj: Any, path: tuple[str, ...]) -> bool:
    for step in path:
        if not isinstance(obj, dict) or step.removeprefix("f:") not in obj:
            return False
        obj = obj[step.removeprefix("f:")]
    return True


def _path(kind: Kind) -> tuple[str, ...]:
    """Where a kind has its replicas, as managed fields write it."""
    place: Any = {}
    set_replicas(kind, place, 1)
    path = []
    while isinstance(place, dict):
        ((name, place),) = place.items()
        path.append(f"f:{name}")
    return tuple(path)
