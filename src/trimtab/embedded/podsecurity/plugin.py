"""The plugin: holds pods against the level of their namespace.

Pods that break it are refused; whoever writes what would make such pods is warned, and
so is whoever raises the level of a namespace whose pods break the new one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

import msgspec

from trimtab.embedded import status
from trimtab.embedded.chain import CREATE, UPDATE, Attributes
from trimtab.embedded.kinds import Plain
from trimtab.embedded.podsecurity.levels import PREFIX, Level, Policy, policy_of
from trimtab.embedded.rbac.escalation import Guard
from trimtab.embedded.store import Change, Store
from trimtab.embedded.writes import Write

NAMESPACES = "core/namespaces/"
PODS = "core/pods/"
MARK = PREFIX.encode()
UNSEEN = frozenset(
    {
        *("exec", "attach", "binding", "eviction", "log", "portforward", "proxy"),
        "status",
    }
)
MOST = 3000
"""So many pods are looked at when the level of their namespace is raised."""
TEMPLATES: dict[str, tuple[str, ...]] = {
    "core/podtemplates/": ("template",),
    "core/replicationcontrollers/": ("spec", "template"),
    "apps/replicasets/": ("spec", "template"),
    "apps/deployments/": ("spec", "template"),
    "apps/daemonsets/": ("spec", "template"),
    "apps/statefulsets/": ("spec", "template"),
    "batch/jobs/": ("spec", "template"),
    "batch/cronjobs/": ("spec", "jobTemplate", "spec", "template"),
}


class PodSecurity:
    """The policies of the namespaces of a store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._policies: dict[str, Policy] = {}
        for row in store.range(NAMESPACES):
            self._learn(row.key, row.value)
        store.subscribe(self._seen)

    @property
    def active(self) -> bool:
        return bool(self._policies)

    def mutate(self, attributes: Attributes) -> None:
        """Nothing is changed."""

    def validate(self, attributes: Attributes) -> None:
        """Refuse, or warn of, what goes against the level of a namespace."""
        prefix, obj = attributes.kind.prefix, attributes.obj
        if attributes.operation not in (CREATE, UPDATE) or obj is None:
            return
        policy = self._policies.get(attributes.namespace)
        if policy is None:
            return
        if prefix == PODS and attributes.subresource not in UNSEEN:
            self._pod(attributes, obj, policy)
        elif prefix in TEMPLATES and not attributes.subresource:
            template: Any = obj
            for key in TEMPLATES[prefix]:
                template = (template or {}).get(key)
            if template:
                _warn(attributes, policy, template)

    def _seen(self, change: Change) -> None:
        if change.key.startswith(NAMESPACES):
            self._learn(change.key, change.value)

    def _learn(self, key: str, value: bytes | None) -> None:
        name = key.removeprefix(NAMESPACES)
        self._policies.pop(name, None)
        if value is not None and MARK in value:
            policy, _ = policy_of(_labels(msgspec.json.decode(value)))
            if not policy.is_nothing:
                self._policies[name] = policy

    def _pod(self, attributes: Attributes, pod: Plain, policy: Policy) -> None:
        old = attributes.old
        if old is not None and attributes.operation == UPDATE and _is_same(pod, old):
            return
        found = policy.enforce.findings(pod["metadata"], pod["spec"])
        if found:
            name = pod["metadata"].get("name") or attributes.name
            told = f'violates PodSecurity "{policy.enforce}": {_told(found)}'
            raise status.forbidden(attributes.kind.about, name, told)
        _warn(attributes, policy, pod)

    def guard(self, write: Write) -> Guard | None:
        """What is asked before a namespace is stored; None for every other kind.

        A namespace says what its level is, so it is looked at before there is any.
        """
        if write.kind.prefix != NAMESPACES or write.subresource:
            return None
        return partial(self._namespace, write)

    def _namespace(self, write: Write, obj: Plain, old: Plain | None) -> None:
        name = obj["metadata"].get("name") or write.name
        before = _labels(old) if old is not None else {}
        policy, problems = policy_of(_labels(obj))
        known, had = policy_of(before)
        if problems and problems != had:
            raise status.invalid_object(write.kind.named, name, problems)
        new, was = policy.enforce, known.enforce
        lower = new.version == was.version and new.rank <= was.rank
        if old is not None and new.name != "privileged" and not lower:
            write.warnings.extend(self._existing(name, new))

    def _existing(self, namespace: str, level: Level) -> list[str]:
        """What the pods that are there do against a level, those alike together."""
        rows = self._store.range(f"{PODS}{namespace}/")
        pods = _prioritized([msgspec.json.decode(row.value) for row in rows])
        guilty: dict[str, list[str]] = {}
        for pod in pods[:MOST]:
            found = level.findings(pod["metadata"], pod["spec"])
            if found:
                reasons = ", ".join(reason for reason, _ in found)
                guilty.setdefault(reasons, []).append(pod["metadata"]["name"])
        told = []
        if len(pods) > MOST:
            told.append(
                "new PodSecurity enforce level only checked against the first "
                f"{MOST} of {len(pods)} existing pods"
            )
        if guilty:
            told.append(
                f'existing pods in namespace "{namespace}" violate the new '
                f'PodSecurity enforce level "{level}"'
            )
        return [*told, *sorted(_counted(each, guilty[each]) for each in guilty)]


def _counted(reasons: str, names: list[str]) -> str:
    others = len(names) - 1
    more = f" (and {others} other pod{'s' if others > 1 else ''})" if others else ""
    return f"{min(names)}{more}: {reasons}"


def _prioritized(pods: Iterable[Plain]) -> list[Plain]:
    """One pod of each controller first, then the others."""
    first: list[Plain] = []
    others: list[Plain] = []
    seen: set[str] = set()
    for pod in pods:
        owners = pod["metadata"].get("ownerReferences") or ()
        uid = next((each["uid"] for each in owners if each.get("controller")), None)
        (others if uid in seen else first).append(pod)
        if uid is not None:
            seen.add(uid)
    return [*first, *others]


def _labels(obj: Plain) -> Mapping[str, str]:
    return obj["metadata"].get("labels") or {}


def _warn(attributes: Attributes, policy: Policy, pod: Plain) -> None:
    found = policy.warn.findings(pod.get("metadata") or {}, pod.get("spec") or {})
    if found:
        told = f'would violate PodSecurity "{policy.warn}": {_told(found)}'
        attributes.warnings.append(told)


def _told(found: Iterable[tuple[str, str]]) -> str:
    return ", ".join(f"{reason} ({detail})" for reason, detail in found)


def _is_same(pod: Plain, old: Plain) -> bool:
    """Whether a change of a pod is none that matters: containers and their images."""

    def images(obj: Plain, field: str) -> list[Any]:
        return [each.get("image") for each in obj["spec"].get(field) or ()]

    if any(images(pod, each) != images(old, each) for each in _ORDERED):
        return False
    known = {
        each["name"]: each.get("image")
        for each in old["spec"].get("ephemeralContainers") or ()
    }
    return all(
        known.get(each["name"], "") == each.get("image")
        for each in pod["spec"].get("ephemeralContainers") or ()
    )


_ORDERED = ("containers", "initContainers")
