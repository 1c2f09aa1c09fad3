"""Classes: limit ranges and classes that new objects are held against, kept decoded.

Every pod that is created is held against the limit ranges of its namespace, a priority
class and perhaps a runtime class; claims and ingresses that name no class get the
default one. They are few and change seldom, so they are kept here decoded, and the
store tells when one changes.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Sequence
from typing import Any

import msgspec

from trimtab.embedded.store import Change, Store

Plain = dict[str, Any]
LIMITS = "core/limitranges/"
PRIORITIES = "scheduling.k8s.io/priorityclasses/"
RUNTIMES = "node.k8s.io/runtimeclasses/"
STORAGES = "storage.k8s.io/storageclasses/"
INGRESSES = "networking.k8s.io/ingressclasses/"
PREFIXES = (LIMITS, PRIORITIES, RUNTIMES, STORAGES, INGRESSES)
DEFAULTS = {
    STORAGES: (
        "storageclass.kubernetes.io/is-default-class",
        "storageclass.beta.kubernetes.io/is-default-class",
    ),
    INGRESSES: ("ingressclass.kubernetes.io/is-default-class",),
}
"""The annotations that make a class the default one."""


class Classes:
    """The limit ranges and classes of a store.

    Guarantees: a change in the store counts from the very next question. What is given
    out belongs to the index, and is not to be changed.
    """

    def __init__(self, store: Store) -> None:
        self._objects: dict[str, Plain] = {}
        self._limits: dict[str, list[str]] = {}
        for prefix in PREFIXES:
            for row in store.range(prefix):
                self._put(row.key, row.value)
        self._default = self._find_default()
        store.subscribe(self._seen)

    def limits(self, namespace: str) -> Sequence[Plain]:
        """The limit ranges of a namespace, in the order of their names."""
        keys = self._limits.get(namespace)
        return [self._objects[key] for key in keys] if keys else ()

    def priority(self, name: str) -> Plain | None:
        return self._objects.get(PRIORITIES + name)

    @property
    def default_priority(self) -> Plain | None:
        """That of pods which name none: the lowest of those that say so."""
        return self._default

    def runtime(self, name: str) -> Plain | None:
        return self._objects.get(RUNTIMES + name)

    def storage(self, name: str) -> Plain | None:
        return self._objects.get(STORAGES + name)

    def default_of(self, prefix: str) -> str:
        """The name of the default storage or ingress class: the newest of several."""
        found = [
            obj["metadata"]
            for key, obj in self._objects.items()
            if key.startswith(prefix) and _is_default(obj, DEFAULTS[prefix])
        ]
        found.sort(key=lambda meta: str(meta["name"]))
        found.sort(key=lambda meta: str(meta["creationTimestamp"]), reverse=True)
        return str(found[0]["name"]) if found else ""

    def _seen(self, change: Change) -> None:
        if not change.key.startswith(PREFIXES):
            return
        if change.value is None:
            self._drop(change.key)
        else:
            self._put(change.key, change.value)
        if change.key.startswith(PRIORITIES):
            self._default = self._find_default()

    def _put(self, key: str, value: bytes) -> None:
        new = key not in self._objects
        self._objects[key] = msgspec.json.decode(value)
        if new and key.startswith(LIMITS):
            insort(self._limits.setdefault(_namespace(key), []), key)

    def _drop(self, key: str) -> None:
        self._objects.pop(key, None)
        if key.startswith(LIMITS):
            keys = self._limits.get(_namespace(key), [])
            if key in keys:
                keys.remove(key)
            if not keys:
                self._limits.pop(_namespace(key), None)

    def _find_default(self) -> Plain | None:
        defaults = [
            obj
            for key, obj in self._objects.items()
            if key.startswith(PRIORITIES) and obj.get("globalDefault")
        ]
        return min(defaults, key=_place, default=None)


def _place(obj: Plain) -> tuple[int, str]:
    return int(obj["value"]), str(obj["metadata"]["name"])


def _is_default(obj: Plain, annotations: Sequence[str]) -> bool:
    notes = obj["metadata"].get("annotations") or {}
    return any(notes.get(each) == "true" for each in annotations)


def _namespace(key: str) -> str:
    return key.removeprefix(LIMITS).partition("/")[0]
