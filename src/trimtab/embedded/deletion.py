"""Deletion: at once, after a grace, or when the last finalizer is gone.

These are decisions about one object; what follows from them for others is in
:mod:`trimtab.embedded.lifecycle`.
"""

from __future__ import annotations

from copy import deepcopy
from datetime import datetime, timedelta
from typing import Any

import msgspec

from trimtab.api.times import rfc3339
from trimtab.embedded import definitions, status
from trimtab.embedded.kinds import DEFINITION, Kind, Plain
from trimtab.embedded.metadata import metadata_of
from trimtab.embedded.patches import json_kind
from trimtab.embedded.requests import ApiRequest
from trimtab.embedded.status import GroupResource

ORPHAN = "orphan"
FOREGROUND = "foregroundDeletion"
GRACE_OF_PODS = 30
LASTING_NAMESPACES = frozenset({"default", "kube-system", "kube-public"})
POLICIES = ("Foreground", "Background", "Orphan")
ORPHANING = frozenset({"batch/jobs/", "core/replicationcontrollers/"})
"""Kinds whose dependents stay unless somebody says otherwise."""
SHOWN = frozenset(
    {
        *("core/namespaces/", "core/persistentvolumeclaims/", "core/pods/"),
        *("core/persistentvolumes/", "core/podtemplates/", "core/resourcequotas/"),
        *("core/serviceaccounts/", "core/services/"),
        *("storage.k8s.io/csidrivers/", "storage.k8s.io/csinodes/"),
        *("storage.k8s.io/storageclasses/", "storage.k8s.io/volumeattachments/"),
        "storage.k8s.io/volumeattributesclasses/",
        *("resource.k8s.io/deviceclasses/", "resource.k8s.io/resourceclaims/"),
        "resource.k8s.io/resourceclaimtemplates/",
        "resource.k8s.io/resourceslices/",
    }
)
"""Kinds of which an object that is gone is answered, not only that it is gone."""


BOTH = "orphanDependents and deletionPropagation cannot be both set"
TYPES: dict[str, tuple[tuple[type, ...], str]] = {
    "gracePeriodSeconds": ((int,), "int64"),
    "propagationPolicy": ((str,), "v1.DeletionPropagation"),
    "orphanDependents": ((bool,), "bool"),
    "preconditions": ((dict,), "v1.Preconditions"),
    "preconditions.uid": ((str,), "types.UID"),
    "preconditions.resourceVersion": ((str,), "string"),
    "dryRun": ((list,), "[]string"),
}


class Preconditions(msgspec.Struct, frozen=True):
    uid: str | None = None
    resourceVersion: str | None = None


class DeleteOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How a deletion is wanted; in the body of the request, or in its query."""

    gracePeriodSeconds: int | None = None
    propagationPolicy: str | None = None
    orphanDependents: bool | None = None
    preconditions: Preconditions | None = None
    dryRun: tuple[str, ...] = ()

    @property
    def dry_run(self) -> bool:
        return bool(self.dryRun)

    @property
    def policy(self) -> str | None:
        if self.orphanDependents is not None:
            return "Orphan" if self.orphanDependents else "Background"
        return self.propagationPolicy


def in_query(request: ApiRequest) -> Plain:
    """The options that the query of a delete without a body says."""
    query = request.query
    plain: Plain = {}
    grace = request.number("gracePeriodSeconds")
    if grace is not None:
        plain["gracePeriodSeconds"] = grace
    if query.get("propagationPolicy"):
        plain["propagationPolicy"] = query["propagationPolicy"]
    if query.get("orphanDependents"):
        plain["orphanDependents"] = request.flag("orphanDependents")
    if "dryRun" in query:
        plain["dryRun"] = [query["dryRun"]]
    return plain


def delete_options(plain: Plain) -> DeleteOptions:
    """The options of a delete; 400 or 422 for those that make no sense."""
    _check_types(plain)
    options = msgspec.convert(plain, DeleteOptions)
    problems = []
    if options.orphanDependents is not None and options.propagationPolicy is not None:
        problems.append(
            status.invalid("propagationPolicy", options.propagationPolicy, BOTH)
        )
    if options.propagationPolicy not in (None, *POLICIES):
        problems.append(
            status.not_supported(
                "propagationPolicy",
                options.propagationPolicy,
                (*POLICIES, "nil"),
            )
        )
    if options.dryRun not in ((), ("All",)):
        problems.append(status.not_supported("dryRun", list(options.dryRun), ("All",)))
    if problems:
        kind = GroupResource("meta.k8s.io", "DeleteOptions")
        raise status.invalid_object(kind, "", problems)
    return options


def _check_types(plain: Plain) -> None:
    for path, (types, name) in TYPES.items():
        value: Any = plain
        for key in path.split("."):
            value = value.get(key) if isinstance(value, dict) else None
        wrong = isinstance(value, bool) and bool not in types
        if value is not None and (wrong or not isinstance(value, types)):
            struct = path.rpartition(".")[0]
            raise status.bad_request(
                f"json: cannot unmarshal {json_kind(value)} into Go struct field "
                f"{struct.capitalize() or 'DeleteOptions'}.{path} of type {name}"
            )


class Deletion:
    """What a deletion makes of an object."""

    def check(self, kind: Kind, name: str, old: Plain, options: DeleteOptions) -> None:
        """Refuse what may not be deleted, or is not what the caller thinks it is."""
        if kind.prefix == "core/namespaces/" and name in LASTING_NAMESPACES:
            raise status.forbidden(
                kind.about, name, "this namespace may not be deleted"
            )
        wanted = options.preconditions
        if wanted is None:
            return
        meta = metadata_of(old)
        if wanted.uid is not None and wanted.uid != meta.get("uid"):
            raise status.conflict(
                kind.named,
                name,
                f"the UID in the precondition ({wanted.uid}) does not match the UID in "
                f"record ({meta.get('uid')}). The object might have been deleted and "
                "then recreated",
            )
        version = wanted.resourceVersion
        if version is not None and version != meta.get("resourceVersion"):
            raise status.conflict(
                kind.named,
                name,
                f"the ResourceVersion in the precondition ({version}) does not match "
                f"the ResourceVersion in record ({meta.get('resourceVersion')}). The "
                "object might have been modified",
            )

    def mark(
        self, kind: Kind, old: Plain, options: DeleteOptions, *, now: datetime
    ) -> tuple[Plain, bool]:
        """The object as being deleted (the same one if it is already), or gone."""
        obj = deepcopy(old)
        meta = metadata_of(obj)
        if kind.kind == DEFINITION and not meta.get("deletionTimestamp"):
            definitions.terminating(obj, now=rfc3339(now))
        finalizers = _finalizers(kind, meta, options.policy)
        grace = _grace(kind, obj, options)
        held = bool(finalizers) or _held_by_spec(kind, obj)
        if not held and grace == 0:
            if kind.prefix == "core/pods/" and not meta.get("deletionTimestamp"):
                meta["generation"] = meta.get("generation", 0) + 1
            if kind.prefix == "core/pods/":
                meta["deletionTimestamp"] = rfc3339(now)
                meta["deletionGracePeriodSeconds"] = 0
            return obj, True
        if finalizers:
            meta["finalizers"] = finalizers
        else:
            meta.pop("finalizers", None)
        running = meta.get("deletionGracePeriodSeconds")
        if not meta.get("deletionTimestamp"):
            if meta.get("generation"):
                meta["generation"] += 1
        elif running is not None and grace >= running:
            return (old if obj == old else obj), False
        meta["deletionTimestamp"] = rfc3339(now + timedelta(seconds=grace))
        meta["deletionGracePeriodSeconds"] = grace
        if kind.prefix == "core/namespaces/":
            obj.setdefault("status", {})["phase"] = "Terminating"
            meta.pop("deletionGracePeriodSeconds")
        return obj, False

    def is_pending(self, kind: Kind, old: Plain, marked: Plain) -> bool:
        """Whether a pod is being deleted already, and no sooner than it is wanted."""
        return marked is old and kind.prefix == "core/pods/"

    def shown(self, kind: Kind, old: Plain, options: DeleteOptions) -> Plain:
        """The options as those see them who are asked about a deletion."""
        shown: Plain = {"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1"}
        given = msgspec.to_builtins(options)
        if kind.prefix == "core/pods/":
            given["gracePeriodSeconds"] = _grace(kind, old, options)
        wanted = given.get("preconditions") or {}
        if kind.prefix == "core/namespaces/":
            wanted["uid"] = wanted.get("uid") or metadata_of(old).get("uid")
        given.pop("preconditions")
        given = {k: v for k, v in given.items() if v not in (None, (), [])}
        if wanted or options.preconditions is not None:
            given["preconditions"] = {k: v for k, v in wanted.items() if v is not None}
        return shown | given

    def is_done(self, kind: Kind, obj: Plain) -> bool:
        """Whether nothing holds an object any more that is being deleted."""
        meta = metadata_of(obj)
        return bool(
            meta.get("deletionTimestamp")
            and not meta.get("finalizers")
            and not meta.get("deletionGracePeriodSeconds")
            and not _held_by_spec(kind, obj)
        )


def _held_by_spec(kind: Kind, obj: Plain) -> bool:
    """A namespace has finalizers of its own kind, in its spec."""
    if kind.prefix != "core/namespaces/":
        return False
    return bool((obj.get("spec") or {}).get("finalizers"))


def _finalizers(kind: Kind, meta: Plain, policy: str | None) -> list[str]:
    finalizers: list[str] = list(meta.get("finalizers") or ())
    decided = ORPHAN in finalizers or FOREGROUND in finalizers
    if policy is None and kind.prefix in ORPHANING and not decided:
        policy = "Orphan"
    if policy is None:
        return finalizers
    kept = [each for each in finalizers if each not in (ORPHAN, FOREGROUND)]
    if policy == "Orphan":
        kept.append(ORPHAN)
    if policy == "Foreground":
        kept.append(FOREGROUND)
    return kept


def _grace(kind: Kind, obj: Plain, options: DeleteOptions) -> int:
    """Seconds that a pod has to end; everything else ends at once."""
    if kind.prefix != "core/pods/":
        return 0
    spec, state = obj.get("spec") or {}, obj.get("status") or {}
    if not spec.get("nodeName") or state.get("phase") in ("Succeeded", "Failed"):
        return 0
    if options.gracePeriodSeconds is not None:
        given = options.gracePeriodSeconds
        return given if given >= 0 else 1
    return int(spec.get("terminationGracePeriodSeconds", GRACE_OF_PODS))


def deleted(kind: Kind, name: str, old: Plain) -> Plain:
    """What answers a deletion which is done: mostly a ``Status``."""
    if kind.prefix in SHOWN:
        return old
    details = {
        "name": name,
        "group": kind.group,
        "kind": kind.plural,
        "uid": metadata_of(old).get("uid", ""),
    }
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": {key: value for key, value in details.items() if value},
    }
