"""Laws of Jobs: which failures count, which successes are enough, and what is said."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kubelet.employing import Play, play, plays, recorded, told
from tests.kubelet.laptop import Laptop, laptop
from tests.kubelet.test_words import differences
from trimtab.api.codec import convert
from trimtab.api.kinds import PodStatus
from trimtab.api.resource import Metadata
from trimtab.kubelet.assembly import Parts
from trimtab.kubelet.workloads.kinds import TemplatePod
from trimtab.kubelet.workloads.policies import Judged, enough, judged, parsed, spans
from trimtab.testing import Cluster
from trimtab.testing.waiting import eventually

Plain = dict[str, Any]

NUMBERS = st.sets(st.integers(0, 60))


@given(NUMBERS)
def test_indexes_are_read_as_they_are_written(numbers: set[int]) -> None:
    assert parsed(spans(sorted(numbers))) == numbers


@given(NUMBERS, NUMBERS.filter(bool), st.integers(1, 61))
def test_a_rule_is_met_by_all_its_indexes_or_by_so_many_of_them(
    done: set[int], needed: set[int], count: int
) -> None:
    rule: Plain = {"succeededIndexes": spans(sorted(needed))}
    assert bool(enough({"rules": [rule]}, done, 61)) is (needed <= done)
    some = {"rules": [{**rule, "succeededCount": count}]}
    met = bool(done) and (needed <= done or len(needed & done) >= count)
    assert bool(enough(some, done, 61)) is met
    any_of = {"rules": [{"succeededCount": count}]}
    assert bool(enough(any_of, done, 61)) is (bool(done) and len(done) >= count)


def failed(*codes: int, disrupted: str = "") -> TemplatePod:
    ends = [{"terminated": {"exitCode": code}} if code else {} for code in codes]
    status = {
        "phase": "Failed",
        "containerStatuses": [
            {"name": f"c{number}", "state": end} for number, end in enumerate(ends)
        ],
        "conditions": [{"type": "DisruptionTarget", "status": disrupted or "False"}],
    }
    return TemplatePod(
        metadata=Metadata(name="p", namespace="n"), status=convert(PodStatus, status)
    )


def test_the_first_rule_that_matches_says_what_a_failure_means() -> None:
    codes = {"operator": "In", "values": [3, 4], "containerName": "c1"}
    others = {"operator": "NotIn", "values": [9]}
    policy: Plain = {
        "rules": [
            {"action": "FailJob", "onExitCodes": codes},
            {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]},
            {"action": "Count", "onExitCodes": others},
        ]
    }
    said = "Container c1 for pod n/p failed with exit code 4 matching FailJob rule"
    assert judged(policy, failed(1, 4)) == Judged("FailJob", f"{said} at index 0")
    assert judged(policy, failed(4, 0, disrupted="True")).action == "Ignore"
    assert not judged(policy, failed(4, disrupted="True")).counts
    assert judged(policy, failed(4)).action == "Count"
    assert judged(policy, failed(9)) == Judged()
    assert judged(None, failed(1)).counts


async def story(node: Laptop, name: str, what: Play, real: Plain) -> list[str]:
    """How what is said of a Job differs from the record, once all is said."""
    ours: Plain = {}

    async def same() -> bool:
        nonlocal ours
        ours = await told(node.client, node.namespace, name)
        return ours == real

    try:
        await play(node.client, node.namespace, name, what)
        await eventually(same, within=15, every=0.3)
    except AssertionError:
        return list(differences(name, ours, real))
    return []


@pytest.mark.timeout(90)
async def test_a_jobs_life_is_told_in_the_words_of_the_real_controller(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    real, known = recorded(), plays()
    assert list(real) == sorted(known)
    parts = Parts(services=False)
    async with laptop(cluster, namespace, tmp_path, parts=parts) as node:
        found = await asyncio.gather(
            *(story(node, name, known[name], real[name]) for name in real)
        )
    assert not any(found), "\n".join(line for each in found for line in each)
