"""Policies of a Job: which failures count, and which successes are enough.

Pure functions; the words are those of Kubernetes' own controller.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from trimtab.api.kinds.pods import ContainerStatus
from trimtab.kubelet.workloads.kinds import Plain, TemplatePod

FAIL_JOB, FAIL_INDEX, IGNORE = "FailJob", "FailIndex", "Ignore"


class Judged(NamedTuple):
    """What the failure of a pod means."""

    action: str = ""
    """What the first rule that matches says; empty if none does."""
    message: str = ""

    @property
    def counts(self) -> bool:
        """Whether it is one of the failures that a Job may have so many of."""
        return self.action != IGNORE


def judged(policy: Plain | None, pod: TemplatePod) -> Judged:
    """What a Job's ``podFailurePolicy`` says of a pod that failed."""
    where = f"{pod.metadata.namespace}/{pod.metadata.name}"
    for number, rule in enumerate((policy or {}).get("rules") or ()):
        tail = f"matching {rule['action']} rule at index {number}"
        if rule.get("onExitCodes"):
            found = _by_exit_code(pod, rule["onExitCodes"])
            if found is not None:
                name, code = found
                text = f"Container {name} for pod {where} failed with exit code {code}"
                return Judged(rule["action"], f"{text} {tail}")
        elif condition := _by_condition(pod, rule.get("onPodConditions") or ()):
            return Judged(
                rule["action"], f"Pod {where} has condition {condition} {tail}"
            )
    return Judged()


def _by_exit_code(pod: TemplatePod, wanted: Plain) -> tuple[str, int] | None:
    each: ContainerStatus
    for each in (*pod.status.containerStatuses, *pod.status.initContainerStatuses):
        ended = each.state.terminated
        if ended is None or not ended.exitCode:
            continue
        if wanted.get("containerName") not in (None, each.name):
            continue
        if (ended.exitCode in wanted["values"]) is (wanted["operator"] == "In"):
            return each.name, ended.exitCode
    return None


def _by_condition(pod: TemplatePod, patterns: Iterable[Plain]) -> str:
    wanted = {(each["type"], each.get("status") or "True") for each in patterns}
    for type, condition in pod.status.conditions.items():
        if (type, condition.status) in wanted:
            return type
    return ""


def enough(policy: Plain | None, completed: Collection[int], completions: int) -> str:
    """Which rule of a ``successPolicy`` the completed indexes meet, in a sentence."""
    if not completed:
        return ""
    for number, rule in enumerate((policy or {}).get("rules") or ()):
        needed, count = rule.get("succeededIndexes"), rule.get("succeededCount")
        wanted = set(range(completions)) if needed is None else parsed(needed)
        wanted &= set(range(completions))
        have = len(wanted & set(completed))
        whole = needed is not None and have == len(wanted)
        if wanted and (whole or (count is not None and have >= count)):
            return f"Matched rules at index {number}"
    return ""


def spans(numbers: Sequence[int]) -> str:
    """Numbers as a Job's status has them: 1,3-5,7."""
    made: list[str] = []
    start = 0
    while start < len(numbers):
        end = start
        while end + 1 < len(numbers) and numbers[end + 1] == numbers[end] + 1:
            end += 1
        first, last = numbers[start], numbers[end]
        joint = "-" if end - start > 1 else ","
        made.append(str(first) if first == last else f"{first}{joint}{last}")
        start = end + 1
    return ",".join(made)


def parsed(text: str) -> set[int]:
    """The numbers that such a text means; what is no number is left out."""
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        if first.isdecimal() and (last or first).isdecimal():
            found.update(range(int(first), int(last or first) + 1))
    return found
