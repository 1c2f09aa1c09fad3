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
from trimtab.embedded.facts import ServedResource, definitions
from trimtab.embedded.kinds import Kind, Plain
from trimtab.embedded.managed import after_update, with_entries
from trimtab.embedded.metadata import metadata_of
from trimtab.embedded.patching import patched
from trimtab.embedded.registry import Registry
from trimtab.embedded.requests import ApiRequest
from trimtab.embedded.status import ApiProblem
from trimtab.embedded.types import Type
from trimtab.embedded.writes import (
    APPLY_PATCH,
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
UNTYPED = (
    'no kind is registered for the type v1.Scale in scheme "pkg/runtime/scheme.go:111"'
)
NOT_SAID = -(2**31)
"""How many are wished for of a custom object that does not say."""
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
        wanted: Plain = {}
        if request.method == "PUT":
            wanted = _read(request, write)
            _check_name(write, wanted)
        obj, row = self._registry.read(kind, write.namespace, write.name)
        if request.method == "GET":
            return Outcome(obj=scale_of(kind, obj))
        path = _path(kind)
        known = deepcopy(obj)
        said = _has(known, path)
        if not said:  # what is not there may be written, but not read
            set_replicas(kind, known, 0)
        before = scale_of(kind, known)
        if not said and kind.custom is not None:
            before["spec"] = {"replicas": NOT_SAID}
        metadata_of(before)["managedFields"] = scalefields.to_scale(
            metadata_of(obj).get("managedFields"),
            api_version=kind.api_version,
            replicas=path,
        )
        scale = self._changed(request, write, before, wanted)
        scale = self._registry.chain.mutated(write, UPDATE, scale, before)
        self._check(write, scale, before)
        changed = deepcopy(obj)
        set_replicas(kind, changed, _replicas(scale))
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
        replicas = _replicas(scale)
        if replicas == NOT_SAID and write.kind.custom is not None:
            where = ".".join(each.removeprefix("f:") for each in _path(write.kind))
            raise status.bad_request(
                f"the spec replicas field {status.quoted(f'.{where}')} cannot be empty"
            )
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
            shown = before if metadata_of(before)["managedFields"] else _unowned(before)
            after = patched(_of_scale(write), shown, request.body, media)
            _check_name(write, after)
        elif write.kind.custom is not None and not _says_version(request):
            return _unowned(after)  # the real server cannot tell what changed
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


def _read(request: ApiRequest, write: Write) -> Plain:
    """The scale in a body; where one of a custom object is wrong is not told."""
    media = request.headers.get("content-type", bodies.JSON)
    try:
        return reading.read(_of_scale(write), request.body, media)
    except ApiProblem as problem:
        if write.kind.custom is not None and problem.code == 400:
            raise status.bad_request(UNTYPED) from None
        raise


def _of_scale(write: Write) -> Write:
    """A write of the scale itself, which is read as an object of its own kind."""
    return msgspec.structs.replace(write, kind=_scale_kind())


@lru_cache(maxsize=1)
def _scale_kind() -> Kind:
    resource = ServedResource(
        group=SCALE.group,
        version="v1",
        kind=KIND,
        plural="scales",
        singular="scale",
        namespaced=True,
        verbs=("get", "patch", "update"),
        definition=scale_type().name,
    )
    return Kind(resource, scale_type())


def _says_version(request: ApiRequest) -> bool:
    media = request.headers.get("content-type", bodies.JSON)
    return bool(bodies.decode(request.body, media).get("apiVersion"))


def _unowned(scale: Plain) -> Plain:
    return with_entries(scale, None)


def _replicas(scale: Plain) -> int:
    return int((scale.get("spec") or {}).get("replicas", 0))


def _check_name(write: Write, scale: Plain) -> None:
    meta = metadata_of(scale)
    if meta.get("name") != write.name:
        raise misnamed(meta, write)


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
