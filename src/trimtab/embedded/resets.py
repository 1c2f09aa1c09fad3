"""Resets: which fields a write through a path cannot touch, and so does not own.

A write to an object cannot change its status, one to its status cannot change the rest,
and a few paths have rules of their own. The facts are those of the real server's
strategies; where they are odd, as for the metadata of some kinds, so is this.
"""

from __future__ import annotations

from functools import lru_cache

import msgspec

from trimtab.embedded.fieldsets import LEAF, SELF, FieldSet, Tree, without
from trimtab.embedded.managed import Reset

ANYTHING = "*"
"""In a path that is kept: whatever stands there."""


class Without(msgspec.Struct, frozen=True):
    """All but these fields and what is below them."""

    fields: FieldSet

    def filtered(self, tree: Tree) -> Tree:
        return without(tree, self.fields.tree)


class Only(msgspec.Struct, frozen=True):
    """Only these fields and what is below them."""

    paths: tuple[tuple[str, ...], ...]

    def filtered(self, tree: Tree) -> Tree:
        return _only(tree, self.paths)


def _only(tree: Tree, paths: tuple[tuple[str, ...], ...]) -> Tree:
    kept: Tree = {}
    for element, node in tree.items():
        rest = tuple(path[1:] for path in paths if _matches(path[0], element))
        if not rest:
            continue
        if not node or () in rest:
            kept[element] = node
            continue
        inner = _only(node, rest)
        if SELF in node:
            inner = {SELF: LEAF, **inner} if inner else LEAF
        if inner or SELF in node:
            kept[element] = inner
    return kept


def _matches(wanted: str, element: str) -> bool:
    return wanted in (ANYTHING, element) and element != SELF


_SPEC_AND_METADATA = frozenset(
    {
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"),
        ("flowcontrol.apiserver.k8s.io", "FlowSchema"),
        ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration"),
        ("networking.k8s.io", "ServiceCIDR"),
        ("resource.k8s.io", "DeviceTaintRule"),
        ("resource.k8s.io", "ResourceClaim"),
        ("storage.k8s.io", "VolumeAttachment"),
        ("apiregistration.k8s.io", "APIService"),
    }
)
"""Kinds whose status cannot be written along with metadata."""

_SPEC_AND_STATUS = frozenset(
    {
        ("", "Namespace"),
        ("", "Node"),
        ("", "PersistentVolume"),
        ("", "PersistentVolumeClaim"),
        ("", "Pod"),
        ("", "ReplicationController"),
        ("", "ResourceQuota"),
        ("", "Service"),
        ("apiextensions.k8s.io", "CustomResourceDefinition"),
        ("apps", "DaemonSet"),
        ("apps", "Deployment"),
        ("apps", "ReplicaSet"),
        ("apps", "StatefulSet"),
        ("autoscaling", "HorizontalPodAutoscaler"),
        ("batch", "CronJob"),
        ("batch", "Job"),
        ("networking.k8s.io", "Ingress"),
        ("policy", "PodDisruptionBudget"),
        *_SPEC_AND_METADATA,
    }
)
"""Kinds that have a status of their own."""

_CERTIFICATES, _REQUEST = "certificates.k8s.io", "CertificateSigningRequest"
_ODD: dict[tuple[str, str, str], Reset] = {
    ("apps", "Deployment", "status"): Without(
        FieldSet.named("spec", "metadata.labels")
    ),
    ("", "Pod", "status"): Without(
        FieldSet.named("spec", "metadata.deletionTimestamp", "metadata.ownerReferences")
    ),
    ("", "Pod", "ephemeralcontainers"): Only((("f:spec", "f:ephemeralContainers"),)),
    ("", "Pod", "resize"): Only(
        tuple(
            ("f:spec", f"f:{containers}", ANYTHING, f"f:{field}")
            for containers in ("containers", "initContainers")
            for field in ("resources", "resizePolicy")
        )
    ),
    ("", "Namespace", "finalize"): Without(FieldSet.named("status")),
    (_CERTIFICATES, _REQUEST, ""): Without(FieldSet.named("spec", "status")),
    (_CERTIFICATES, _REQUEST, "status"): Without(
        FieldSet.named("spec", "status.conditions")
    ),
    (_CERTIFICATES, _REQUEST, "approval"): Without(
        FieldSet.named("spec", "status.certificate")
    ),
}


@lru_cache(maxsize=1024)
def resets_of(
    group: str, kind: str, subresource: str = "", *, custom: bool = False
) -> Reset | None:
    """What a write to a kind, or to a subresource of it, resets; None if nothing.

    A custom kind is one with a status subresource.
    """
    odd = _ODD.get((group, kind, subresource))
    if odd is not None:
        return odd
    if not custom and (group, kind) not in _SPEC_AND_STATUS:
        return None
    if subresource == "":
        return Without(FieldSet.named("status"))
    if subresource != "status":
        return None
    if custom or (group, kind) in _SPEC_AND_METADATA:
        return Without(FieldSet.named("spec", "metadata"))
    return Without(FieldSet.named("spec"))
