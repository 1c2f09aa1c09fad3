"""Admission: what may come into a namespace, and what pods get on the way in.

The plugins that a real server has on by default and that clients see the work of:
namespaces must be there, pods get a service account with its token, a priority,
tolerations and the limits of their namespace.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from trimtab.embedded import status
from trimtab.embedded.definitions import is_true
from trimtab.embedded.kinds import Kind, Plain
from trimtab.embedded.limits import apply_limits, claim_complaints
from trimtab.embedded.metadata import metadata_of
from trimtab.embedded.status import GroupResource
from trimtab.embedded.store import Store

NAMESPACES = "core/namespaces/"
ACCOUNTS = "core/serviceaccounts/"
LIMITS = "core/limitranges/"
PRIORITIES = "scheduling.k8s.io/priorityclasses/"
PODS = "core/pods/"
CLAIMS = "core/persistentvolumeclaims/"
TOKEN_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"
TOLERATED = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
TOLERATED_SECONDS = 300
TOKEN_SECONDS = 3607
TERMINATING = "create not allowed while custom resource definition is terminating"


class Admission:
    """Asked about each object before it is written."""

    def __init__(self, store: Store, *, name: Callable[[str], str]) -> None:
        self._store = store
        self._name = name

    def create(self, kind: Kind, obj: Plain, namespace: str) -> None:
        """Admit a new object, or say why not; may add to it."""
        if kind.prefix == PRIORITIES:
            self._check_default(kind, obj)
        if kind.custom is not None and is_true(kind.custom.crd, "Terminating"):
            raise status.forbidden(kind.about, _name(obj), TERMINATING)
        if not kind.namespaced:
            return
        self._check_namespace(kind, obj, namespace)
        if kind.prefix == CLAIMS:
            self._limits(kind, obj, namespace)
        if kind.prefix == PODS:
            self._limits(kind, obj, namespace)
            self._account(kind, obj, namespace)
            self._priority(kind, obj)
            _tolerate(obj)

    def update(self, kind: Kind, obj: Plain, old: Plain) -> None:
        """Admit a change, or say why not; may add to it."""
        if kind.prefix == PRIORITIES:
            self._check_default(kind, obj)
        if kind.prefix == PODS:
            for field in ("priority", "preemptionPolicy"):
                if field in old["spec"]:
                    obj["spec"].setdefault(field, old["spec"][field])

    def _read(self, key: str) -> Plain | None:
        row = self._store.get(key)
        return None if row is None else msgspec.json.decode(row.value)

    def _check_namespace(self, kind: Kind, obj: Plain, namespace: str) -> None:
        found = self._read(NAMESPACES + namespace)
        if found is None:
            raise status.not_found(GroupResource("", "namespaces"), namespace)
        if not metadata_of(found).get("deletionTimestamp"):
            return
        name = _name(obj)
        problem = status.forbidden(
            kind.about,
            name,
            f"unable to create new content in namespace {namespace} because it is "
            "being terminated",
        )
        problem.add_cause(
            reason="NamespaceTerminating",
            message=f"namespace {namespace} is being terminated",
            field="metadata.namespace",
        )
        raise problem

    def _limits(self, kind: Kind, obj: Plain, namespace: str) -> None:
        rows = self._store.range(f"{LIMITS}{namespace}/")
        ranges = [msgspec.json.decode(row.value) for row in rows]
        if not ranges:
            return
        check = claim_complaints if kind.prefix == CLAIMS else apply_limits
        complaints = check(obj, ranges)
        if complaints:
            text = complaints[0]
            if len(complaints) > 1:
                text = f"[{', '.join(complaints)}]"
            raise status.forbidden(kind.about, _name(obj), text)

    def _account(self, kind: Kind, obj: Plain, namespace: str) -> None:
        """The pod's service account, and a volume with a token of it."""
        spec = obj["spec"]
        name = spec.get("serviceAccountName") or "default"
        spec["serviceAccountName"] = spec["serviceAccount"] = name
        account = self._read(f"{ACCOUNTS}{namespace}/{name}")
        if account is None:
            raise status.forbidden(
                kind.about,
                _name(obj),
                f"error looking up service account {namespace}/{name}: serviceaccount "
                f"{status.quoted(name)} not found",
            )
        secrets = account.get("imagePullSecrets")
        if secrets and not spec.get("imagePullSecrets"):
            spec["imagePullSecrets"] = secrets
        wanted = spec.get("automountServiceAccountToken")
        if wanted is None:
            wanted = account.get("automountServiceAccountToken")
        if wanted is not False:
            self._mount_token(spec)

    def _mount_token(self, spec: Plain) -> None:
        volume = self._name("kube-api-access-")
        mounted = False
        for container in _containers(spec):
            mounts = container.setdefault("volumeMounts", [])
            if all(each.get("mountPath") != TOKEN_PATH for each in mounts):
                mount = {"name": volume, "readOnly": True, "mountPath": TOKEN_PATH}
                mounts.append(mount)
                mounted = True
        if mounted:
            spec.setdefault("volumes", []).append(
                {"name": volume, "projected": _token_sources()}
            )

    def _priority(self, kind: Kind, obj: Plain) -> None:
        spec = obj["spec"]
        name = spec.get("priorityClassName", "")
        found = self._read(PRIORITIES + name) if name else self._default_priority()
        if name and found is None:
            raise status.forbidden(
                kind.about,
                _name(obj),
                f"no PriorityClass with name {name} was found",
            )
        if found is not None and not name:
            spec["priorityClassName"] = metadata_of(found)["name"]
        value = found["value"] if found is not None else 0
        given = spec.get("priority")
        if given is not None and given != value:
            raise status.forbidden(
                kind.about,
                _name(obj),
                f"the integer value of priority ({given}) must not be provided in pod "
                f"spec; priority admission controller computed {value} from the given "
                "PriorityClass name",
            )
        spec["priority"] = value
        policy = (found or {}).get("preemptionPolicy", "PreemptLowerPriority")
        given = spec.setdefault("preemptionPolicy", policy)
        if given != policy:
            raise status.forbidden(
                kind.about,
                _name(obj),
                f"the string value of PreemptionPolicy ({given}) must not be provided "
                f"in pod spec; priority admission controller computed {policy} from "
                "the given PriorityClass name",
            )

    def _check_default(self, kind: Kind, obj: Plain) -> None:
        """One class at most is that of pods that name none."""
        default = self._default_priority() if obj.get("globalDefault") else None
        if default is not None and _name(default) != _name(obj):
            raise status.forbidden(
                kind.about,
                _name(obj),
                f"PriorityClass {_name(default)} is already marked as default. Only "
                "one default can exist",
            )

    def _default_priority(self) -> Plain | None:
        defaults = [
            obj
            for row in self._store.range(PRIORITIES)
            if (obj := msgspec.json.decode(row.value)).get("globalDefault")
        ]
        return min(defaults, key=lambda obj: int(obj["value"]), default=None)


def _name(obj: Plain) -> str:
    """What an object is called in a refusal."""
    meta = metadata_of(obj)
    return str(meta.get("name") or meta.get("generateName") or "")


def _containers(spec: Plain) -> Iterator[Plain]:
    yield from spec.get("initContainers") or ()
    yield from spec.get("containers") or ()


def _token_sources() -> Plain:
    namespace = {"apiVersion": "v1", "fieldPath": "metadata.namespace"}
    sources: list[dict[str, Any]] = [
        {"serviceAccountToken": {"expirationSeconds": TOKEN_SECONDS, "path": "token"}},
        {
            "configMap": {
                "name": "kube-root-ca.crt",
                "items": [{"key": "ca.crt", "path": "ca.crt"}],
            }
        },
        {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": namespace}]}},
    ]
    return {"sources": sources, "defaultMode": 420}


def _tolerate(obj: Plain) -> None:
    """A pod stays five minutes on a node that is not ready, or as it says."""
    tolerations = obj["spec"].setdefault("tolerations", [])
    for key in TOLERATED:
        known = any(
            each.get("key", key) == key
            and each.get("effect", "NoExecute") == "NoExecute"
            for each in tolerations
        )
        if not known:
            tolerations.append(
                {
                    "key": key,
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": TOLERATED_SECONDS,
                }
            )
