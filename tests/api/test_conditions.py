"""Laws of conditions: one of each type, times that mean something, bounded size."""

from __future__ import annotations

import copy
import itertools
import pickle
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.api.bounds import violation
from trimtab.api.codec import convert, decode, encode
from trimtab.api.conditions import MESSAGE_LIMIT, Condition, Conditions
from trimtab.api.objects import Status, wire
from trimtab.api.schema import structural

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
LATER = NOW + timedelta(minutes=1)

names = st.sampled_from(["Ready", "Healthy", "Synced"])
moments = st.none() | st.sampled_from([NOW, LATER, LATER + timedelta(days=1)])
stated = st.builds(
    Condition,
    type=names,
    status=st.sampled_from(["True", "False", "Unknown"]),
    reason=st.just("Why"),
    lastTransitionTime=moments,
)
lists = st.lists(stated, max_size=6)


class Shown(Status):
    conditions: Conditions = Conditions()
    other: int = 0


def ready(status: Any = True, **more: Any) -> Conditions:
    given: dict[str, Any] = {"reason": "Because", "now": NOW} | more
    return Conditions().set("Ready", status, **given)


@given(lists)
def test_each_type_is_there_once(items: list[Condition]) -> None:
    conditions = Conditions(items)
    assert sorted(conditions) == sorted({item.type for item in items})
    assert conditions.had_duplicates == (len(conditions) < len(items))


@given(lists)
def test_of_duplicates_the_latest_stays_and_the_last_in_a_tie(
    items: list[Condition],
) -> None:
    epoch = datetime.min.replace(tzinfo=UTC)
    for name, kept in Conditions(items).items():
        same = [item for item in items if item.type == name]
        latest = max(item.lastTransitionTime or epoch for item in same)
        assert (
            kept
            == [item for item in same if (item.lastTransitionTime or epoch) == latest][
                -1
            ]
        )


@given(lists)
def test_the_order_is_that_of_first_sight(items: list[Condition]) -> None:
    assert list(Conditions(items)) == list(dict.fromkeys(item.type for item in items))


@given(lists)
def test_what_is_written_reads_back_the_same(items: list[Condition]) -> None:
    conditions = Conditions(items)
    back = decode(Shown, encode(Shown(conditions=conditions))).conditions
    assert back == conditions
    assert list(back) == list(conditions)
    assert not back.had_duplicates


@given(lists)
def test_equality_and_hash_do_not_depend_on_order(items: list[Condition]) -> None:
    one = Conditions(items)
    for order in itertools.permutations(one.values()):
        assert Conditions(order) == one
        assert hash(Conditions(order)) == hash(one)


@given(lists, names, st.sampled_from([True, False, None]))
def test_stating_the_same_again_is_the_same_object(
    items: list[Condition], name: str, status: bool | None
) -> None:
    once = Conditions(items).set(name, status, reason="Why", now=NOW)
    assert once.set(name, status, reason="Why", now=LATER) is once


def test_the_time_changes_only_with_the_status() -> None:
    first = ready()
    other = first.set("Ready", True, reason="Other", message="news", now=LATER)
    assert other["Ready"].lastTransitionTime == NOW
    assert (other["Ready"].reason, other["Ready"].message) == ("Other", "news")
    turned = other.set("Ready", False, reason="Other", now=LATER)
    assert turned["Ready"].lastTransitionTime == LATER


def test_a_condition_without_a_time_gets_one_when_it_is_stated_again() -> None:
    known = Conditions([Condition(type="Ready", status="True", reason="Why")])
    assert known.set("Ready", True, reason="Why", now=NOW)["Ready"] == Condition(
        type="Ready", status="True", reason="Why", lastTransitionTime=NOW
    )


def test_the_generation_that_was_seen_is_part_of_the_statement() -> None:
    first = ready(observed_generation=1)
    second = first.set(
        "Ready", True, reason="Because", now=LATER, observed_generation=2
    )
    assert second["Ready"].observedGeneration == 2
    assert second["Ready"].lastTransitionTime == NOW


@pytest.mark.parametrize(
    ("status", "word"),
    [
        (True, "True"),
        (False, "False"),
        (None, "Unknown"),
        ("True", "True"),
        ("False", "False"),
        ("Unknown", "Unknown"),
    ],
)
def test_a_status_is_one_of_three_words(status: Any, word: str) -> None:
    assert ready(status)["Ready"].status == word
    assert ready(status).is_true("Ready") == (word == "True")


@pytest.mark.parametrize("status", ["true", "", 1, 0, 2.0, []])
def test_any_other_status_is_refused(status: Any) -> None:
    with pytest.raises(ValueError, match="is not the status of a condition"):
        ready(status)


@pytest.mark.parametrize("reason", ["", "no spaces", "1st", "End,", "x" * 1025, "é"])
def test_a_reason_that_a_server_refuses_is_refused(reason: str) -> None:
    with pytest.raises(ValueError, match="is not the reason of a condition"):
        ready(reason=reason)


@pytest.mark.parametrize("type", ["", "a b", "-a", "x" * 317, "A/b/c"])
def test_a_type_that_a_server_refuses_is_refused(type: str) -> None:
    with pytest.raises(ValueError, match="is not the type of a condition"):
        Conditions().set(type, True, reason="Why", now=NOW)


@given(st.text(max_size=3000) | st.text("aé🙂", min_size=1000, max_size=2000))
def test_a_message_has_at_most_a_kibibyte_and_keeps_its_beginning(message: str) -> None:
    kept = ready(message=message)["Ready"].message
    size = len(message.encode())
    assert len(kept.encode()) <= MESSAGE_LIMIT
    if size <= MESSAGE_LIMIT:
        assert kept == message
    else:
        assert kept.endswith("…")
        assert message.startswith(kept[:-1])
        assert len(kept.encode()) > MESSAGE_LIMIT - 4


def test_half_a_surrogate_pair_does_not_fail_a_write() -> None:
    conditions = ready(message="a\ud800b")
    assert conditions["Ready"].message == "a?b"
    assert encode(Shown(conditions=conditions))


def test_times_are_whole_seconds_in_utc() -> None:
    zone = timezone(timedelta(hours=2))
    moment = datetime(2026, 1, 2, 5, 4, 5, 999, tzinfo=zone)
    conditions = ready(now=moment)
    assert conditions["Ready"].lastTransitionTime == NOW
    with pytest.raises(ValueError, match="no time zone"):
        ready(now=datetime(2026, 1, 1))  # noqa: DTZ001 (the point)


def test_removing_what_is_not_there_is_the_same_object() -> None:
    conditions = ready()
    assert conditions.remove("Other") is conditions
    assert conditions.remove("Ready") == Conditions()


def test_changes_do_not_forget_that_the_server_has_duplicates() -> None:
    twice = Conditions([Condition(type="A"), Condition(type="A"), Condition(type="B")])
    assert twice.had_duplicates
    assert twice.set("C", True, reason="Why", now=NOW).had_duplicates
    assert twice.remove("B").had_duplicates
    assert not ready().had_duplicates


def test_conditions_are_a_mapping_that_does_not_change() -> None:
    conditions = ready()
    assert conditions.get("Other") is None
    assert "Ready" in conditions
    with pytest.raises(KeyError):
        conditions["Other"]
    with pytest.raises(AttributeError, match="use set"):
        conditions.had_duplicates = True
    with pytest.raises(AttributeError, match="use set"):
        del conditions.had_duplicates
    assert conditions != {"Ready": conditions["Ready"]}
    assert repr(conditions) == "Conditions(Ready=True)"


def test_copies_are_the_same_and_pickles_are_equal() -> None:
    twice = Conditions([Condition(type="A"), Condition(type="A")])
    assert copy.copy(twice) is twice
    assert copy.deepcopy(twice) is twice
    back = pickle.loads(pickle.dumps(twice))
    assert back == twice
    assert back.had_duplicates


@pytest.mark.parametrize("text", [b"{}", b'{"conditions":null}', b'{"conditions":[]}'])
def test_none_at_all_reads_as_the_empty_map_and_is_not_written(text: bytes) -> None:
    read = decode(Shown, text)
    assert read.conditions == Conditions()
    assert "conditions" not in wire(read)


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ({}, Condition()),
        ({"type": "A"}, Condition(type="A")),
        ({"type": "A", "status": None}, Condition(type="A")),
        ({"type": "A", "status": "Odd"}, Condition(type="A", status="Odd")),
        (
            {"type": "A", "status": "True", "lastTransitionTime": None},
            Condition(type="A", status="True"),
        ),
        (
            {"type": "A", "status": "True", "lastTransitionTime": "yesterday"},
            Condition(type="A", status="True"),
        ),
        (
            {"type": "A", "status": "True", "message": None, "lastProbeTime": 3},
            Condition(type="A", status="True"),
        ),
        ({"type": "x" * 80, "status": "True"}, Condition(type="x" * 80, status="True")),
    ],
)
def test_what_others_wrote_stays_readable(item: Any, expected: Condition) -> None:
    read = convert(Shown, {"conditions": [item, None]}).conditions
    assert list(read.values()) == [expected]


def test_a_time_without_a_zone_is_taken_as_utc() -> None:
    items = [
        {"type": "A", "status": "True", "lastTransitionTime": "2026-01-02T03:04:05"},
        {"type": "A", "status": "False", "lastTransitionTime": "2026-01-02T03:04:04Z"},
    ]
    read = convert(Shown, {"conditions": items}).conditions
    assert read.is_true("A")
    [written] = wire(Shown(conditions=read))["conditions"]
    assert written["lastTransitionTime"] == "2026-01-02T03:04:05Z"


def test_what_is_no_list_is_refused_naming_its_path() -> None:
    with pytest.raises(msgspec.ValidationError, match=r"a list, not dict.*conditions"):
        decode(Shown, b'{"conditions":{"a":1}}')


@given(lists, names, st.text(max_size=2000))
def test_what_was_stated_fits_the_schema(
    items: list[Condition], name: str, message: str
) -> None:
    conditions = Conditions().set(name, True, reason="Why", message=message, now=NOW)
    schema = structural(Shown)["properties"]["conditions"]
    assert violation(schema, conditions.__encode__()) is None


def test_the_schema_is_a_map_by_type() -> None:
    schema = structural(Shown)["properties"]["conditions"]
    assert schema["x-kubernetes-list-type"] == "map"
    assert schema["x-kubernetes-list-map-keys"] == ["type"]
    assert set(schema["items"]["required"]) == {
        *("type", "status", "lastTransitionTime", "reason", "message")
    }
    assert schema["items"]["properties"]["message"]["maxLength"] == MESSAGE_LIMIT


def test_the_words_that_every_object_repeats_are_kept_once() -> None:
    text = b'{"conditions":[{"type":"Ready to go","status":"True"}]}'
    one, two = decode(Shown, text).conditions, decode(Shown, text).conditions
    assert one["Ready to go"].type is two["Ready to go"].type
    assert one["Ready to go"].status is two["Ready to go"].status
