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
from trimtab.embedded.requests import ApiRequest
from trimtab.embedded.status import GroupResource

ORPHAN = "orphan"
FOREGROUND = "foregroundDeletion"
GRACE_OF_PODS = 30
LASTING_NAMESPACES = frozenset({"default", "kube-system", "kube-public"})
POLICIES = ("Background", "Foreground", "Orphan")


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


def delete_options(request: ApiRequest, body: Plain | None) -> DeleteOptions:
    """The options of a request; 400 or 422 for those that make no sense."""
    plain: dict[str, Any] = dict(body or {})
    if not body:
        query = request.query
        grace = request.number("gracePeriodSeconds")
        if grace is not None:
            plain["gracePeriodSeconds"] = grace
        if query.get("propagationPolicy"):
            plain["propagationPolicy"] = query["propagationPolicy"]
        if query.get("orphanDependents"):
            plain["orphanDependents"] = request.flag("orphanDependents")
    if "dryRun" in request.query:
        plain["dryRun"] = [request.query["dryRun"]]
    try:
        options = msgspec.convert(plain, DeleteOptions)
    except msgspec.ValidationError as error:
        raise status.bad_request(f"invalid DeleteOptions: {error}") from None
    problems = []
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
        finalizers = _finalizers(meta, options.policy)
        grace = _grace(kind, obj, options)
        held = bool(finalizers) or _held_by_spec(kind, obj)
        if not held and grace == 0:
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


def _finalizers(meta: Plain, policy: str | None) -> list[str]:
    finalizers: list[str] = list(meta.get("finalizers") or ())
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
        return max(0, options.gracePeriodSeconds)
    return int(spec.get("terminationGracePeriodSeconds", GRACE_OF_PODS))


def deleted(kind: Kind, name: str, old: Plain) -> Plain:
    """The ``Status`` that answers a deletion which is done."""
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
