"""Admission: what may come into a namespace, and what pods get on the way in.

The plugins that a real server has on by default and that clients see the work of:
namespaces must be there, pods get a service account with its token, a priority,
tolerations, the limits of their namespace and what their runtime class adds; a new node
is not ready; claims and ingresses get a class, and volumes are protected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from trimtab.api.quantity import Quantity
from trimtab.embedded import status
from trimtab.embedded.classes import INGRESSES, PRIORITIES, STORAGES, Classes
from trimtab.embedded.definitions import is_true
from trimtab.embedded.finalizers import CLAIMS, FINALIZERS, protect
from trimtab.embedded.kinds import Kind, Plain
from trimtab.embedded.limits import apply_limits, claim_complaints
from trimtab.embedded.metadata import metadata_of
from trimtab.embedded.runtimes import Rejected, apply_runtime
from trimtab.embedded.status import GroupResource
from trimtab.embedded.store import Store

NAMESPACES = "core/namespaces/"
ACCOUNTS = "core/serviceaccounts/"
PODS = "core/pods/"
NODES = "core/nodes/"
INGRESS = "networking.k8s.io/ingresses/"
STORAGE_NOTE = "volume.beta.kubernetes.io/storage-class"
INGRESS_NOTE = "kubernetes.io/ingress.class"
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
        self._classes = Classes(store)

    def create(self, kind: Kind, obj: Plain, namespace: str) -> None:
        """Admit a new object, or say why not; may add to it."""
        if kind.prefix == PRIORITIES:
            self._check_default(kind, obj)
        if kind.prefix in FINALIZERS:
            protect(kind.prefix, obj)
        if kind.custom is not None and is_true(kind.custom.crd, "Terminating"):
            raise status.forbidden(kind.about, _name(obj), TERMINATING)
        if kind.prefix == NODES:
            _taint(obj)
        if not kind.namespaced:
            return
        self._check_namespace(kind, obj, namespace)
        if kind.prefix == CLAIMS:
            self._limits(kind, obj, namespace)
            self._class(obj, "storageClassName", STORAGE_NOTE, STORAGES)
        if kind.prefix == INGRESS:
            self._class(obj, "ingressClassName", INGRESS_NOTE, INGRESSES)
        if kind.prefix == PODS:
            self._limits(kind, obj, namespace)
            self._account(kind, obj, namespace)
            self._priority(kind, obj)
            _tolerate(obj)
            self._runtime(kind, obj)

    def update(self, kind: Kind, obj: Plain, old: Plain) -> None:
        """Admit a change, or say why not; may add to it."""
        if kind.prefix == PRIORITIES:
            self._check_default(kind, obj)
        if kind.prefix == PODS:
            for field in ("priority", "preemptionPolicy"):
                if field in old["spec"]:
                    obj["spec"].setdefault(field, old["spec"][field])
            _tolerate(obj)
        if kind.prefix == CLAIMS:
            self._check_growth(kind, obj, old)

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
        ranges = self._classes.limits(namespace)
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
        classes = self._classes
        found = classes.priority(name) if name else classes.default_priority
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
        default = self._classes.default_priority if obj.get("globalDefault") else None
        if default is not None and _name(default) != _name(obj):
            raise status.forbidden(
                kind.about,
                _name(obj),
                f"PriorityClass {_name(default)} is already marked as default. Only "
                "one default can exist",
            )

    def _class(self, obj: Plain, field: str, note: str, prefix: str) -> None:
        """Who names no class gets the default one, if there is one."""
        if field in obj["spec"] or note in (metadata_of(obj).get("annotations") or ()):
            return
        if name := self._classes.default_of(prefix):
            obj["spec"][field] = name

    def _check_growth(self, kind: Kind, obj: Plain, old: Plain) -> None:
        """A claim that has its volume grows only if its class lets it."""
        bound = (old.get("status") or {}).get("phase") == "Bound"
        if not bound or _size(obj) <= _size(old):
            return
        name = obj["spec"].get("storageClassName")
        found = self._classes.storage(name) if name else None
        if found is None or not found.get("allowVolumeExpansion"):
            raise status.forbidden(
                kind.about,
                _name(obj),
                "only dynamically provisioned pvc can be resized and the storageclass "
                "that provisions the pvc must support resize",
            )

    def _runtime(self, kind: Kind, obj: Plain) -> None:
        spec = obj["spec"]
        name = spec.get("runtimeClassName")
        if name is None and "overhead" not in spec:
            return
        found = None if name is None else self._classes.runtime(name)
        try:
            if name is not None and found is None:
                called = status.quoted(name)
                raise Rejected(f"pod rejected: RuntimeClass {called} not found")
            apply_runtime(spec, found)
        except Rejected as problem:
            raise status.forbidden(kind.about, _name(obj), str(problem)) from None


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


def _taint(node: Plain) -> None:
    """No Pod is placed on a node that has not yet said that it is ready."""
    wanted = {"key": TOLERATED[0], "effect": "NoSchedule"}
    taints = node.setdefault("spec", {}).setdefault("taints", [])
    if not any(wanted.items() <= taint.items() for taint in taints):
        taints.append(wanted)


def _size(claim: Plain) -> Quantity:
    asked = (claim["spec"].get("resources") or {}).get("requests") or {}
    return Quantity(asked.get("storage", 0))


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
