"""Protection: the controller that lets volumes and claims go when nobody uses them.

Each gets a finalizer on its way in. Once its deletion is wanted, the finalizer goes as
soon as nobody uses the object any more, as the controllers of a real cluster do it.
"""

from __future__ import annotations

from contextlib import suppress

import msgspec

from trimtab.embedded.catalog import Catalog
from trimtab.embedded.finalizers import CLAIMS, FINALIZERS, VOLUMES
from trimtab.embedded.kinds import Plain
from trimtab.embedded.metadata import metadata_of
from trimtab.embedded.registry import Registry
from trimtab.embedded.status import ApiProblem
from trimtab.embedded.store import Change, Store

PODS = "core/pods/"
# What all objects concerned have in their JSON; most others are not even looked at.
MARK = b'"deletionTimestamp"'


class Protection:
    """Which objects wait to be let go."""

    def __init__(self, store: Store, *, catalog: Catalog, registry: Registry) -> None:
        self._store = store
        self._catalog = catalog
        self._registry = registry
        self._waiting: dict[str, None] = {}
        self._due = True

    def start(self) -> None:
        """Find those that wait, then follow the changes of the store."""
        for prefix in FINALIZERS:
            for row in self._store.range(prefix):
                self._look(row.key, row.value)
        self._store.subscribe(self._seen)

    def step(self) -> bool:
        """Let go of what nobody uses; True if there is more to do."""
        if not self._due:
            return False
        self._due = False
        for key in list(self._waiting):
            with suppress(ApiProblem):  # gone meanwhile
                self._follow(key)
        return self._due

    def _seen(self, change: Change) -> None:
        if change.key.startswith(tuple(FINALIZERS)):
            self._waiting.pop(change.key, None)
            if change.value is not None:
                self._look(change.key, change.value)
            self._due = self._due or bool(self._waiting)
        elif self._waiting and change.key.startswith(PODS):
            self._due = True

    def _look(self, key: str, value: bytes) -> None:
        if MARK in value:
            meta = metadata_of(msgspec.json.decode(value))
            finalizer = FINALIZERS[_prefix(key)]
            if meta.get("deletionTimestamp") and finalizer in meta.get(
                "finalizers", ()
            ):
                self._waiting[key] = None

    def _follow(self, key: str) -> None:
        kind, row = self._catalog.by_prefix(key), self._store.get(key)
        if kind is None or row is None or self._is_used(key, kind.decode(row.value)):
            return

        def release(obj: Plain) -> None:
            meta, finalizer = metadata_of(obj), FINALIZERS[_prefix(key)]
            kept = [each for each in meta.get("finalizers", ()) if each != finalizer]
            meta.pop("finalizers", None)
            if kept:
                meta["finalizers"] = kept

        self._registry.amend(kind, key, release)

    def _is_used(self, key: str, obj: Plain) -> bool:
        if key.startswith(VOLUMES):
            return (obj.get("status") or {}).get("phase") == "Bound"
        meta = metadata_of(obj)
        if key.startswith(CLAIMS):
            pods = self._store.range(f"{PODS}{meta['namespace']}/")
            return any(_uses(msgspec.json.decode(row.value), obj) for row in pods)
        return any(
            _names(msgspec.json.decode(row.value), meta["name"])
            for prefix in (CLAIMS, VOLUMES)
            for row in self._store.range(prefix)
        )


def _prefix(key: str) -> str:
    return next(each for each in FINALIZERS if key.startswith(each))


def _uses(pod: Plain, claim: Plain) -> bool:
    """Whether a pod that has a node mounts a claim."""
    spec, name = pod["spec"], metadata_of(claim)["name"]
    if not spec.get("nodeName"):
        return False
    for volume in spec.get("volumes") or ():
        if (volume.get("persistentVolumeClaim") or {}).get("claimName") == name:
            return True
        own = f"{metadata_of(pod)['name']}-{volume['name']}"
        if "ephemeral" in volume and own == name and not _is_over(pod):
            return True
    return False


def _is_over(pod: Plain) -> bool:
    meta = metadata_of(pod)
    gone = meta.get("deletionTimestamp") and not meta.get("deletionGracePeriodSeconds")
    return bool(gone)


def _names(obj: Plain, name: str) -> bool:
    """Whether a volume or a claim has these attributes, or is to have them."""
    state = obj.get("status") or {}
    target = (state.get("modifyVolumeStatus") or {}).get(
        "targetVolumeAttributesClassName"
    )
    return name in (
        obj["spec"].get("volumeAttributesClassName"),
        state.get("currentVolumeAttributesClassName"),
        target,
    )
