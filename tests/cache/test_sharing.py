"""Sharing: equal texts become one, and nothing else about an object changes."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from trimtab.api import Object, codec
from trimtab.cache.sharing import COPIES, KEYS, LONGEST, SETS, Texts, sharer
from trimtab.kinds import Pod

LABELS = st.dictionaries(
    st.sampled_from(["app", "team", "hash"]), st.sampled_from(["a", "b", "cc", ""])
)


def pod(number: int, *, labels: dict[str, str] | None = None) -> Pod:
    plain = {
        "metadata": {
            "name": f"pod-{number}",
            "namespace": "town",
            "uid": f"uid-{number}",
            "labels": labels or {"app": "web", "hash": f"hash-{number}"},
            "ownerReferences": [
                {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "n", "uid": "u"}
            ],
        },
        "status": {
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": "True"}],
            "containerStatuses": [{"name": "main", "imageID": f"image-{number % 3}"}],
        },
    }
    return codec.decode(Pod, msgspec.json.encode(plain))


def test_equal_texts_of_two_objects_become_one() -> None:
    share = sharer(Pod)
    first, second = pod(1), pod(2)
    assert first.status.phase is not second.status.phase
    share(first, None)
    share(second, None)
    assert first.status.phase is second.status.phase
    assert first.metadata.labels["app"] is second.metadata.labels["app"]
    owners = [each.metadata.ownerReferences[0] for each in (first, second)]
    assert owners[0].kind is owners[1].kind
    names = [each.status.containerStatuses[0].name for each in (first, second)]
    assert names[0] is names[1]


@given(st.lists(LABELS, min_size=1, max_size=30))
def test_an_object_that_shares_its_texts_equals_itself(
    several: list[dict[str, str]],
) -> None:
    share = sharer(Pod)
    for number, labels in enumerate(several):
        shared = pod(number, labels=labels)
        share(shared, None)
        assert shared == pod(number, labels=labels)
        assert list(shared.metadata.labels) == list(labels or {"app": "", "hash": ""})


@given(LABELS, LABELS)
def test_what_has_not_changed_is_what_was_kept_before(
    before: dict[str, str], after: dict[str, str]
) -> None:
    share = sharer(Pod)
    old, new = pod(1, labels=before), pod(1, labels=after)
    share(old, None)
    share(new, old)
    assert new == pod(1, labels=after)
    assert old == pod(1, labels=before)
    assert new.status is old.status
    assert (new.metadata is old.metadata) == ((before or None) == (after or None))
    assert new.metadata.ownerReferences is old.metadata.ownerReferences


def test_a_field_with_too_many_texts_is_left_alone_and_forgotten() -> None:
    texts = Texts()
    for number in range(COPIES + 1):
        texts.add(f"text {number}")
    assert not texts.repeat
    assert not texts.copies


def test_a_long_text_is_not_remembered() -> None:
    texts = Texts()
    texts.add("x" * (LONGEST + 1))
    assert not texts.copies


def test_the_keys_that_are_told_apart_are_bounded() -> None:
    share = sharer(Pod)
    for number in range(KEYS * 3):
        share(pod(number, labels={f"key-{number}": "value"}), None)
    assert sum(len(each) for each in maps_of(share)) == KEYS


def maps_of(share: object) -> Iterator[dict[str, Texts]]:
    """The maps by key inside of a sharer."""
    found = [share]
    while found:
        each = found.pop()
        for cell in getattr(each, "__closure__", None) or ():
            inside = cell.cell_contents
            if isinstance(inside, dict):
                yield inside
            elif isinstance(inside, list):
                found += [part for _, part in inside]
            elif callable(inside):
                found.append(inside)


class Checked(Object):
    type: str = ""
    count: int = 0


class Dated(Object):
    type: str = ""
    at: datetime | None = None


class Report(Object):
    checks: tuple[Checked, ...] = ()
    list_of: list[Checked] = []
    dated: tuple[Dated, ...] = ()


CHECKS = st.lists(
    st.builds(Checked, type=st.sampled_from("abc"), count=st.integers(0, 2)), max_size=4
)


def copied(report: Report) -> Report:
    return msgspec.json.decode(msgspec.json.encode(report), type=Report)


@given(st.lists(st.tuples(CHECKS, CHECKS), min_size=1, max_size=10))
def test_equal_structs_of_plain_values_become_one(
    several: list[tuple[list[Checked], list[Checked]]],
) -> None:
    share = sharer(Report)
    kept: dict[tuple[bool, Checked], Checked] = {}
    kept_sets: dict[tuple[Checked, ...], tuple[Checked, ...]] = {}
    for one, other in several:
        plain = Report(checks=tuple(one), list_of=other)
        shared = copied(plain)
        share(shared, None)
        assert shared == plain
        assert (type(shared.checks), type(shared.list_of)) == (tuple, list)
        same = kept_sets.setdefault(shared.checks, shared.checks)
        assert same is shared.checks
        for field in (shared.checks, shared.list_of):
            for check in field:
                assert kept.setdefault((field is shared.checks, check), check) is check


def test_structs_that_can_be_told_apart_although_they_are_equal_stay_apart() -> None:
    share = sharer(Report)
    moment = datetime(2026, 1, 1, 12, tzinfo=UTC)
    elsewhere = moment.astimezone(timezone(timedelta(hours=1)))
    reports = [Report(dated=(Dated(at=each),)) for each in (moment, elsewhere)]
    for report in reports:
        share(report, None)
    assert reports[0] == reports[1]
    assert reports[1].dated[0].at is elsewhere


def test_structs_that_do_not_repeat_are_not_remembered() -> None:
    share = sharer(Report)
    for number in range(SETS + 1):
        share(Report(checks=(Checked(count=number),)), None)
    again = Report(checks=(Checked(count=1),))
    before = again.checks
    share(again, None)
    assert again.checks is before
