"""Sequences: random histories of one object, written to by several managers."""

from __future__ import annotations

import copy
from random import Random
from typing import Any

from hack.apply_corpus import parts as made
from hack.apply_corpus.kinds import Kind
from hack.apply_corpus.parts import JSON, LAST_APPLIED, filled, put, remembered

MANAGERS = ("alice", "bob", "kubectl", "")
_VERBS = {
    "apply": 46,
    "update": 14,
    "merge": 14,
    "json": 10,
    "strategic": 12,
    "reset": 2,
    "claim": 2,
}
_STATUS_SHARE = 0.2
_CLAIMED = "2020-02-02T02:02:02Z"


class Sequence:
    """One history: asks for one step after another, and hears what came of it."""

    def __init__(self, kind: Kind, *, name: str, seed: int, steps: int) -> None:
        self.kind = kind
        self.name = name
        self.steps = steps
        self.random = Random(seed)
        self.live: JSON | None = None
        self.times: dict[str, str] = {_CLAIMED: _CLAIMED}
        """What is written down for each time that the server wrote."""

    def next(self) -> JSON:
        """The next request."""
        if self.live is None:
            verb = self.random.choice(("create", "create", "apply"))
            return self._step(verb, subresource="")
        is_status = bool(self.kind.status) and self.random.random() < _STATUS_SHARE
        verb = self.random.choices([*_VERBS], weights=[*_VERBS.values()])[0]
        if verb == "strategic" and not self.kind.strategic:
            verb = "merge"
        if is_status and verb in ("reset", "claim"):
            verb = "update"
        return self._step(verb, subresource="status" if is_status else "")

    def heard(self, answer: JSON) -> None:
        """The object as the server has it now."""
        self.live = answer

    def _step(self, verb: str, *, subresource: str) -> JSON:
        manager = self.random.choice(MANAGERS)
        if verb == "apply":
            manager = manager or "carol"
        parts = self.kind.status if subresource else self.kind.parts
        step: JSON = {"verb": verb, "manager": manager, "subresource": subresource}
        if verb == "apply":
            step["force"] = self.random.random() < 0.5
            step["body"] = self._intent(parts, subresource)
        else:
            step["body"] = self._written(verb, parts)
        return {key: value for key, value in step.items() if value != ""}

    def _intent(self, parts: made.Parts, subresource: str) -> JSON:
        base = self.kind.named(self.name)
        # Sometimes the intent lacks what an object must have: others have set it.
        if not subresource and (self.live is None or self.random.random() < 0.6):
            base = {**base, **copy.deepcopy(self.kind.base)}
        return filled(self.random, parts, base)

    def _written(self, verb: str, parts: made.Parts) -> Any:
        if verb == "create":
            return self._fresh(parts)
        assert self.live is not None
        if verb == "merge" or verb == "strategic":
            return made.merge_patch(self.random, parts)
        if verb == "json":
            return made.json_patch(self.random, parts, self.live)
        if verb == "reset":
            entries: list[JSON] = [{}] if self.random.random() < 0.5 else []
            metadata = {**self.live["metadata"], "managedFields": entries}
            return {**self.live, "metadata": metadata}
        body = made.changed(self.random, parts, self.live)
        if verb == "claim":
            put(body, ("metadata", "managedFields"), self._claims())
        elif self.random.random() < 0.5:
            body["metadata"].pop("managedFields", None)
        return body

    def _fresh(self, parts: made.Parts) -> JSON:
        base = {**self.kind.named(self.name), **copy.deepcopy(self.kind.base)}
        body = filled(self.random, parts, base, most=10)
        if self.random.random() < 0.3:
            intent = copy.deepcopy(body)
            put(body, ("metadata", "annotations", LAST_APPLIED), remembered(intent))
        return body

    def _claims(self) -> list[JSON]:
        """Entries that a client made up."""
        return [
            {
                "manager": "dora",
                "operation": self.random.choice(("Apply", "Update")),
                "apiVersion": self.kind.api_version,
                "time": _CLAIMED,
                "fieldsType": "FieldsV1",
                "fieldsV1": {"f:metadata": {"f:labels": {"f:a": {}, ".": {}}}},
            }
        ]


class Crowd(Sequence):
    """A history with more managers than there may be entries."""

    def next(self) -> JSON:
        if self.live is None:
            return self._step("create", subresource="")
        step = self._step(self.random.choice(("update", "merge")), subresource="")
        return {**step, "manager": f"m{self.random.randint(10, 40)}"}


class Scaled(Sequence):
    """A history in which the scale is written to as well as the object itself."""

    def next(self) -> JSON:
        if self.live is None or self.random.random() < 0.4:
            return super().next()
        verb = self.random.choice(("apply", "update", "merge"))
        manager = self.random.choice(MANAGERS) or "carol"
        spec = {"spec": {"replicas": self.random.randint(1, 3)}}
        scale = {
            "apiVersion": "autoscaling/v1",
            "kind": "Scale",
            "metadata": self.kind.named(self.name)["metadata"],
            **spec,
        }
        step: JSON = {"verb": verb, "manager": manager, "subresource": "scale"}
        if verb == "apply":
            step["force"] = self.random.random() < 0.5
        return {**step, "body": spec if verb == "merge" else scale}
