"""The world that a scripted server serves: objects, their history, one revision."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any, NamedTuple

GROUP, VERSION, KIND, PLURAL = "conformance.example.com", "v1", "Widget", "widgets"
NAMESPACE = "default"
END_MARK = {"k8s.io/initial-events-end": "true"}


class Event(NamedTuple):
    """One change: what a watch would be told of it, and when it happened."""

    revision: int
    type: str
    name: str
    data: bytes
    """The object as JSON."""

    @property
    def line(self) -> bytes:
        return b'{"type":"%s","object":%s}\n' % (self.type.encode(), self.data)


class Item(NamedTuple):
    """An object that there is."""

    revision: int
    uid: str
    data: bytes


class World:
    """What is true. An informer is right when it agrees, and was never wrong between.

    Names are those of objects in one namespace; every change has its own revision.
    """

    def __init__(self, *, padding: int = 0) -> None:
        self.revision = 1000
        self.compacted = 0
        """Revisions up to this one are forgotten."""
        self.served = True
        """Whether there is such a kind at all."""
        self.objects: dict[str, Item] = {}
        self.history: list[Event] = []
        self.deletions: Counter[str] = Counter()
        """How often each object was deleted: nobody may report more."""
        self._padding = "x" * padding
        self._made = 0

    def create(self, *names: str) -> None:
        for name in names:
            self._made += 1
            self._write("ADDED", name, uid=f"uid-{self._made}")

    def touch(self, *names: str) -> None:
        """Change objects that are there."""
        for name in names:
            self._write("MODIFIED", name, uid=self.objects[name].uid)

    def delete(self, *names: str) -> None:
        for name in names:
            uid = self.objects.pop(name).uid
            self.deletions[name] += 1
            self._happens("DELETED", name, uid)

    def destroy_kind(self) -> None:
        """The definition goes, and with it all objects; nobody is told of each."""
        for name in self.objects:
            self.deletions[name] += 1
        self.objects.clear()
        self.served = False
        self.revision += 1
        self.compact()

    def restore_kind(self) -> None:
        self.served = True
        self.revision += 1

    def compact(self) -> None:
        """Forget all history."""
        self.compacted = self.revision
        self.history.clear()

    def since(self, revision: int) -> list[Event]:
        return [each for each in self.history if each.revision > revision]

    def truth(self) -> dict[str, str]:
        """What an informer must have: revisions by key."""
        return {
            f"{NAMESPACE}/{name}": str(each.revision)
            for name, each in self.objects.items()
        }

    def bookmark(self, *, end: bool = False) -> bytes:
        """The line that says how far a watch has come."""
        metadata: dict[str, Any] = {"resourceVersion": str(self.revision)}
        if end:
            metadata["annotations"] = END_MARK
        obj = {"apiVersion": f"{GROUP}/{VERSION}", "kind": KIND, "metadata": metadata}
        return json.dumps({"type": "BOOKMARK", "object": obj}).encode() + b"\n"

    def _write(self, kind: str, name: str, *, uid: str) -> None:
        data = self._happens(kind, name, uid)
        self.objects[name] = Item(self.revision, uid, data)

    def _happens(self, kind: str, name: str, uid: str) -> bytes:
        self.revision += 1
        obj = {
            "apiVersion": f"{GROUP}/{VERSION}",
            "kind": KIND,
            "metadata": {
                "name": name,
                "namespace": NAMESPACE,
                "uid": uid,
                "resourceVersion": str(self.revision),
                "creationTimestamp": "2026-01-01T00:00:00Z",
            },
            "spec": {"padding": self._padding},
        }
        data = json.dumps(obj, separators=(",", ":")).encode()
        self.history.append(Event(self.revision, kind, name, data))
        return data
