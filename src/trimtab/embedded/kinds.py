"""Kinds: one served version of one resource, with all that is particular to it.

The registry treats built-in and custom kinds alike; what differs between them (types,
defaults, rules, columns) is behind :class:`Kind`.

Objects are stored as the JSON that is served: a built-in object begins with its kind
and apiVersion, so that an item of a list, which has neither there, is the same bytes
without their beginning.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from trimtab.embedded import builtin, definition_checks, definitions
from trimtab.embedded.conform import conform
from trimtab.embedded.crds import CustomKind
from trimtab.embedded.facts import ServedResource
from trimtab.embedded.managed import Reset
from trimtab.embedded.resets import resets_of
from trimtab.embedded.status import FieldProblem, GroupResource
from trimtab.embedded.types import Type

Plain = dict[str, Any]
DEFINITION = "CustomResourceDefinition"
Allocate = Callable[[str, Any], Any]

# Kinds that a PUT creates if they are not there.
CREATED_BY_UPDATE = frozenset(
    {
        ("", "Endpoints"),
        ("", "Event"),
        ("", "LimitRange"),
        ("", "Service"),
        ("coordination.k8s.io", "Lease"),
        ("events.k8s.io", "Event"),
        ("node.k8s.io", "RuntimeClass"),
        ("rbac.authorization.k8s.io", "ClusterRole"),
        ("rbac.authorization.k8s.io", "ClusterRoleBinding"),
        ("rbac.authorization.k8s.io", "Role"),
        ("rbac.authorization.k8s.io", "RoleBinding"),
    }
)
# Built-in kinds whose PUT must say which version it replaces.
CONDITIONAL = frozenset(
    {
        ("admissionregistration.k8s.io", "MutatingAdmissionPolicy"),
        ("admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding"),
        ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"),
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"),
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding"),
        ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"),
        ("apiextensions.k8s.io", DEFINITION),
        ("apiregistration.k8s.io", "APIService"),
        ("coordination.k8s.io", "Lease"),
        ("node.k8s.io", "RuntimeClass"),
        ("policy", "PodDisruptionBudget"),
        ("storage.k8s.io", "CSIDriver"),
        ("storage.k8s.io", "CSINode"),
        ("storage.k8s.io", "CSIStorageCapacity"),
        ("storage.k8s.io", "VolumeAttachment"),
    }
)
# Where etcd has kinds whose path there is not the name of the resource.
ETCD_PATHS = {
    "endpoints": "services/endpoints",
    "ingresses": "ingress",
    "nodes": "minions",
    "replicationcontrollers": "controllers",
    "services": "services/specs",
}


class Kind:
    """One served version of one resource."""

    def __init__(
        self,
        resource: ServedResource,
        type: Type,
        *,
        custom: CustomKind | None = None,
        stored: str = "",
    ) -> None:
        self.resource = resource
        self.type = type
        self.custom = custom
        self.group = resource.group
        self.version = resource.version
        self.kind = resource.kind
        self.plural = resource.plural
        self.namespaced = resource.namespaced
        self.api_version = resource.api_version
        self.about = GroupResource(resource.group, resource.plural)
        self.named = GroupResource(resource.group, resource.kind)
        self.prefix = f"{resource.group or 'core'}/{resource.plural}/"
        self.stored_version = stored or resource.api_version
        self.has_status = resource.subresource("status") is not None
        name = (resource.group, resource.kind)
        self.created_by_update = name in CREATED_BY_UPDATE
        self.conditional = custom is not None or name in CONDITIONAL
        self.head = _head(self.kind, self.api_version, custom=custom is not None)
        self.stored_head = _head(
            self.kind, self.stored_version, custom=custom is not None
        )

    def key(self, namespace: str, name: str) -> str:
        """Where an object is stored."""
        if self.namespaced:
            return f"{self.prefix}{namespace}/{name}"
        return f"{self.prefix}{name}"

    def within(self, namespace: str) -> str:
        """How the keys of a namespace's objects begin; of all, if it is empty."""
        if self.namespaced and namespace:
            return f"{self.prefix}{namespace}/"
        return self.prefix

    def etcd_key(self, namespace: str, name: str) -> str:
        """Where a real server keeps an object, as its refusals say."""
        path = ETCD_PATHS.get(self.plural, self.plural)
        if self.custom is not None or self.group.startswith("api"):
            path = f"{self.group}/{self.plural}"
        within = f"{namespace}/" if self.namespaced else ""
        return f"/registry/{path}/{within}{name}"

    def encode(self, obj: Plain) -> bytes:
        """The bytes to store: the head first, then everything else."""
        body = {key: obj[key] for key in obj if key not in ("kind", "apiVersion")}
        return self.stored_head + msgspec.json.encode(body)[1:]

    def served(self, value: bytes) -> bytes:
        """Stored bytes as an object of this version."""
        if self.head == self.stored_head:
            return value
        obj = self.decode(value)
        body = {key: obj[key] for key in obj if key not in ("kind", "apiVersion")}
        return self.head + msgspec.json.encode(body)[1:]

    def item(self, value: bytes) -> bytes:
        """Stored bytes as an item of a list."""
        if self.custom is not None:
            return self.served(value)
        return b"{" + value[len(self.stored_head) :]

    def decode(self, value: bytes) -> Plain:
        """Stored bytes as a plain object of this version.

        The schema may have changed since they were written, or be another version's.
        """
        obj: Plain = msgspec.json.decode(value)
        if self.custom is not None:
            self.custom.read(obj)
        obj["apiVersion"] = self.api_version
        return obj

    def conform(self, obj: Plain, again: Callable[[], Plain]) -> list[str]:
        """Drop what the kind does not have, in place; the fields nobody knows.

        ``again`` makes the same object anew, for when something was dropped.

        Errors: ``conform.Mistyped`` for a value that its field cannot hold.
        """
        if self.custom is not None:
            return self.custom.conform(obj)
        if not builtin.has_shape(self.group, self.kind, self.version):
            return conform(self.type, obj)
        if not builtin.shape(self.group, self.kind, obj):
            return []
        return conform(self.type, again())

    def resets(self, subresource: str) -> Reset | None:
        """The fields that a write cannot touch, and so does not own."""
        custom = self.custom is not None
        if custom and not self.has_status:
            return None
        return resets_of(self.group, self.kind, subresource, custom=custom)

    def default(self, obj: Plain) -> None:
        if self.custom is not None:
            self.custom.default(obj)
        elif self.kind == DEFINITION:
            definitions.set_defaults(obj)
        else:
            builtin.set_defaults(self.group, self.kind, obj)

    def prepare(
        self, obj: Plain, old: Plain | None, *, subresource: str, allocate: Allocate
    ) -> None:
        if self.kind == DEFINITION:
            definitions.prepare(obj, old, subresource=subresource)
        elif self.custom is None:
            builtin.prepare(
                self.group,
                self.kind,
                obj,
                old,
                subresource=subresource,
                allocate=allocate,
            )

    def validate(
        self, obj: Plain, old: Plain | None, *, subresource: str, warnings: list[str]
    ) -> list[FieldProblem]:
        """What is wrong with an object; what is forgiven is added to the warnings."""
        if self.custom is not None:
            return self.custom.validate(
                obj, old, subresource=subresource, warnings=warnings
            )
        if self.kind == DEFINITION:
            if subresource and old is not None:
                return definition_checks.status_problems(obj, old)
            return definition_checks.problems(obj, old)
        return builtin.validate(
            self.group, self.kind, obj, old, subresource=subresource
        )

    def warnings(self, obj: Plain, old: Plain | None, *, subresource: str) -> list[str]:
        """What whoever writes a good object is warned of."""
        if subresource:
            return []
        if self.custom is not None:
            return self.custom.warnings(obj, old)
        return definitions.warnings(obj, old) if self.kind == DEFINITION else []

    def generation(self, obj: Plain, old: Plain | None, *, subresource: str) -> int:
        """The generation of an object once it is stored; 0 if the kind has none."""
        if self.custom is None and self.kind != DEFINITION:
            return builtin.generation(
                self.group, self.kind, obj, old, subresource=subresource
            )
        if old is None:
            return 1
        left_out = {"metadata", "apiVersion", "kind"}
        if self.has_status:
            left_out.add("status")
        changed = any(
            obj.get(key) != old.get(key) for key in (obj.keys() | old.keys()) - left_out
        )
        return int(old["metadata"].get("generation", 0)) + changed

    def fields(self, obj: Plain) -> Mapping[str, str]:
        if self.custom is not None:
            return self.custom.fields(obj)
        return builtin.fields(self.group, self.kind, obj)

    def supported_fields(self) -> frozenset[str]:
        if self.custom is not None:
            return self.custom.supported_fields()
        return builtin.supported_fields(self.group, self.kind)

    def field_error(self, field: str) -> str:
        if self.custom is not None:
            return f"field label not supported: {field}"
        return builtin.field_error(self.group, self.kind, field)

    def columns(self) -> Sequence[Any]:
        if self.custom is not None:
            return self.custom.columns()
        return builtin.columns(self.group, self.kind)

    def row(self, obj: Plain, *, now: datetime) -> list[Any]:
        if self.custom is not None:
            return self.custom.row(obj, now=now)
        return builtin.row(self.group, self.kind, obj, now=now)


def _head(kind: str, api_version: str, *, custom: bool) -> bytes:
    """How the JSON of an object begins; the real server sorts those of custom kinds."""
    pairs = {"kind": kind, "apiVersion": api_version}
    if custom:
        pairs = {"apiVersion": api_version, "kind": kind}
    return msgspec.json.encode(pairs)[:-1] + b","
