"""Fitting: whether a pod may go to a node, and who would have to leave for it.

Pure: what the scheduler knows goes in, a verdict in kube-scheduler's words comes out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from trimtab.api.kinds import Node, Taint, Toleration, WholePod
from trimtab.api.quantity import Quantity
from trimtab.kubelet.statuses import is_sidecar

UNSCHEDULABLE = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
BLOCKING = ("NoSchedule", "NoExecute")
NO_CLAIMS = "no new claims to deallocate"
NO_VICTIMS = "No preemption victims found for incoming pod"
NO_HELP = "Preemption is not helpful for scheduling"
NOT_ELIGIBLE = "preemption: not eligible due to preemptionPolicy=Never."

Amounts = dict[str, Quantity]


class Demand(msgspec.Struct, frozen=True, kw_only=True):
    """What a pod asks of a node, and what it is worth."""

    name: str
    uid: str
    amounts: Amounts
    priority: int = 0


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """Where a pod goes; or why nowhere, and who could leave for it."""

    node: str = ""
    message: str = ""
    victims: tuple[Demand, ...] = ()
    nominated: str = ""


def demand(pod: WholePod) -> Demand:
    """What a pod asks for: its containers and sidecars, or a larger init container."""
    spec = pod.spec
    total = _sum(each.resources.requests for each in spec.containers)
    beside: Amounts = {}
    most: Amounts = {}
    for each in spec.initContainers:
        requests = dict(each.resources.requests)
        if is_sidecar(each):
            beside = _sum((beside, requests))
        else:
            most = _most(most, _sum((beside, requests)))
    total = _most(_sum((total, beside)), most)
    if spec.resources is not None:
        total |= dict(spec.resources.requests)
    return Demand(
        name=pod.metadata.name,
        uid=pod.metadata.uid,
        amounts=total,
        priority=spec.priority or 0,
    )


def _sum(parts: Iterable[Mapping[str, Quantity]]) -> Amounts:
    total: Amounts = {}
    for part in parts:
        for name, amount in part.items():
            total[name] = total[name] + amount if name in total else amount
    return total


def _most(one: Amounts, other: Amounts) -> Amounts:
    made = dict(one)
    for name, amount in other.items():
        if name not in made or made[name] < amount:
            made[name] = amount
    return made


def choose(
    pod: WholePod, nodes: Iterable[Node], held: Mapping[str, Iterable[Demand]]
) -> Verdict:
    """The emptiest node that a pod fits on, or why there is none."""
    asked = demand(pod)
    best: tuple[int, str] | None = None
    reasons: Counter[str] = Counter()
    count = 0
    crowded = []
    for node in nodes:
        count += 1
        name = node.metadata.name
        refused = _refusals(pod, node)
        present = list(held.get(name, ()))
        short = [] if refused else _shortages(asked, node, present)
        if short:
            crowded.append((node, present))
        reasons.update(refused or short)
        if not refused and not short and (best is None or len(present) < best[0]):
            best = len(present), name
    if best is not None:
        return Verdict(node=best[1])
    if not count:
        return Verdict(message="no nodes available to schedule pods")
    return _nowhere(pod, asked, reasons, count, crowded)


def _nowhere(
    pod: WholePod,
    asked: Demand,
    reasons: Counter[str],
    count: int,
    crowded: list[tuple[Node, list[Demand]]],
) -> Verdict:
    message = _available(count, reasons)
    if pod.spec.preemptionPolicy == "Never":
        return Verdict(message=f"{message} {NO_CLAIMS}, {NOT_ELIGIBLE}")
    for node, present in crowded:
        victims = _victims(asked, node, present)
        if victims:
            return Verdict(
                message=message, victims=victims, nominated=node.metadata.name
            )
    found = sum(not _shortages(asked, node, []) for node, _ in crowded)
    useless = _available(count, Counter({NO_VICTIMS: found, NO_HELP: count - found}))
    return Verdict(message=f"{message} {NO_CLAIMS}, preemption: {useless}")


def _available(count: int, reasons: Counter[str]) -> str:
    words = sorted(f"{times} {why}" for why, times in reasons.items() if times)
    return f"0/{count} nodes are available: {', '.join(words)}."


def _refusals(pod: WholePod, node: Node) -> list[str]:
    """What keeps a pod off a node however empty it is."""
    if node.spec.unschedulable and not _tolerates(pod, UNSCHEDULABLE):
        return ["node(s) were unschedulable"]
    for taint in node.spec.taints:
        if taint.effect in BLOCKING and not _tolerates(pod, taint):
            return ["node(s) had untolerated taint(s)"]
    labels = node.metadata.labels
    wanted = pod.spec.nodeSelector
    chosen = all(labels.get(key) == value for key, value in wanted.items())
    if not chosen or not _affine(pod, node):
        return ["node(s) didn't match Pod's node affinity/selector"]
    return []


def _tolerates(pod: WholePod, taint: Taint) -> bool:
    return any(_matches(each, taint) for each in pod.spec.tolerations)


def _matches(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if (toleration.operator or "Equal") == "Exists":
        return True
    return bool(toleration.key) and toleration.value == taint.value


def _affine(pod: WholePod, node: Node) -> bool:
    """Required node affinity: one of its terms holds, with all it says."""
    affinity = (pod.spec.affinity or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if not required:
        return True
    return any(_holds(term, node) for term in required.get("nodeSelectorTerms") or ())


def _holds(term: dict[str, Any], node: Node) -> bool:
    fields = {"metadata.name": node.metadata.name}
    said = term.get("matchExpressions") or [], term.get("matchFields") or []
    if not any(said):
        return False
    return all(_meets(each, node.metadata.labels) for each in said[0]) and all(
        _meets(each, fields) for each in said[1]
    )


def _meets(expression: dict[str, Any], labels: Mapping[str, str]) -> bool:
    value = labels.get(expression["key"])
    values = expression.get("values") or []
    match expression["operator"]:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt":
            return value is not None and int(value) > int(values[0])
        case "Lt":
            return value is not None and int(value) < int(values[0])
    return False


def _shortages(asked: Demand, node: Node, present: list[Demand]) -> list[str]:
    free = node.status.allocatable
    found = []
    places = free.get("pods")
    if places is not None and len(present) + 1 > int(places):
        found.append("Too many pods")
    for name, amount in asked.amounts.items():
        taken = _sum([{name: amount}, *(_only(each, name) for each in present)])
        if name not in free or free[name] < taken[name]:
            found.append(f"Insufficient {name}")
    return found


def _only(held: Demand, name: str) -> Amounts:
    return {name: held.amounts[name]} if name in held.amounts else {}


def _victims(asked: Demand, node: Node, present: list[Demand]) -> tuple[Demand, ...]:
    """The least that must leave: all lower ones, less those that fit beside."""
    lower = sorted(
        (each for each in present if each.priority < asked.priority),
        key=lambda each: each.priority,
        reverse=True,
    )
    stay = [each for each in present if each.priority >= asked.priority]
    if not lower or _shortages(asked, node, stay):
        return ()
    leaving = []
    for each in lower:
        if _shortages(asked, node, [*stay, each]):
            leaving.append(each)
        else:
            stay.append(each)
    return tuple(leaving)
