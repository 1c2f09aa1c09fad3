"""Laws of times and durations: Kubernetes' text forms, Go's durations, no clock.

``data/times.json`` was recorded from Go's ``time`` and k8s.io/apimachinery.
"""

from __future__ import annotations

import ast
import copy
import json
import pickle
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.api import times
from trimtab.api.codec import decode, encode
from trimtab.api.objects import Object
from trimtab.api.times import Duration, MicroTime, parse_rfc3339, rfc3339

RECORDED = json.loads(
    (Path(__file__).parent / "data" / "times.json").read_text("utf-8")
)
GO_ALONE = {
    # An offset of a day is not RFC 3339 and no zone.
    "2026-01-02T00:00:00+24:00",
    # Go's zero value, which it writes as null.
    "0001-01-01T00:00:00Z",
}
LOWER_CASE = "2026-01-02t03:04:05z"

INT64 = 2**63 - 1
zones = st.integers(-14 * 60, 14 * 60).map(lambda n: timezone(timedelta(minutes=n)))
moments = st.datetimes(
    min_value=datetime(2, 1, 1),  # noqa: DTZ001 - hypothesis adds the zone
    max_value=datetime(9998, 12, 31),  # noqa: DTZ001
    timezones=zones,
)
durations = st.integers(-INT64 - 1, INT64).map(Duration.of_nanoseconds)
small = st.integers(-(2**40), 2**40).map(Duration.of_nanoseconds)


def test_a_time_is_read_and_written_as_the_server_does() -> None:
    for fact in RECORDED["times"]:
        text = fact["input"]
        if text in GO_ALONE:
            continue
        if "time" in fact:
            assert rfc3339(parse_rfc3339(text)) == fact["time"], fact
        elif text != LOWER_CASE:
            with pytest.raises(ValueError, match=r"is not (an RFC 3339|a real) time"):
                parse_rfc3339(text)
        if "micro" in fact:
            assert MicroTime.__decode__(text).__encode__() == fact["micro"], fact


def test_small_letters_are_rfc_3339_too() -> None:
    # A custom resource's date-time may hold them; the server's own types may not.
    assert parse_rfc3339(LOWER_CASE) == parse_rfc3339(LOWER_CASE.upper())


@given(moments)
def test_a_written_time_reads_back_cut_to_whole_seconds(moment: datetime) -> None:
    text = rfc3339(moment)
    assert len(text) == len("2026-01-02T03:04:05Z")
    assert parse_rfc3339(text) == moment.replace(microsecond=0)
    assert parse_rfc3339(text).tzinfo is UTC


@given(moments)
def test_a_micro_time_reads_back_exactly_and_has_six_digits(moment: datetime) -> None:
    micro = MicroTime.of(moment)
    text = micro.__encode__()
    assert micro == moment
    assert len(text) == len("2026-01-02T03:04:05.000000Z")
    assert MicroTime.__decode__(text) == micro
    assert type(MicroTime.__decode__(text)) is MicroTime


@given(moments, st.integers(-(10**9), 10**9))
def test_a_micro_time_behaves_as_the_datetime_it_is(
    moment: datetime, microseconds: int
) -> None:
    micro, step = MicroTime.of(moment), timedelta(microseconds=microseconds)
    assert isinstance(micro, datetime)
    assert type(micro + step) is MicroTime
    assert micro + step == moment + step
    assert micro + step - micro == step
    assert hash(micro) == hash(moment)
    assert (micro < moment + step) is (microseconds > 0)


def test_digits_past_the_microsecond_are_cut_off() -> None:
    text = "2026-01-02T03:04:05.123456999Z"
    assert parse_rfc3339(text).microsecond == 123456
    assert parse_rfc3339("2026-01-02T03:04:05.5Z").microsecond == 500_000


def test_a_time_without_a_zone_is_refused_wherever_it_is_written() -> None:
    naive = datetime(2026, 1, 2)  # noqa: DTZ001
    micro = MicroTime(2026, 1, 2)
    for write in (lambda: rfc3339(naive), lambda: MicroTime.of(naive)):
        with pytest.raises(ValueError, match="has no time zone; give it one"):
            write()
    with pytest.raises(ValueError, match="has no time zone; give it one"):
        micro.__encode__()


def test_an_instant_that_no_datetime_holds_is_an_error_not_a_crash() -> None:
    for text in ("0000-01-01T00:00:00Z", "0001-01-01T00:00:00+05:00"):
        with pytest.raises(ValueError, match="is not a real time"):
            parse_rfc3339(text)


class Lease(Object):
    """A struct with every kind of time in it."""

    acquired: MicroTime | None = None
    created: datetime | None = None
    length: Duration | None = None


def test_each_kind_of_time_has_its_own_wire_form() -> None:
    moment = datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=UTC)
    lease = Lease(acquired=MicroTime.of(moment), created=moment, length=Duration("90m"))
    assert json.loads(encode(lease)) == {
        "acquired": "2026-01-02T03:04:05.000678Z",
        "created": "2026-01-02T03:04:05Z",
        "length": "1h30m0s",
    }
    again = decode(Lease, encode(lease))
    assert type(again.acquired) is MicroTime
    assert again.acquired == moment
    assert again.length == lease.length


@pytest.mark.parametrize(
    ("data", "path"),
    [
        (b'{"acquired":"yesterday"}', "acquired"),
        (b'{"acquired":1}', "acquired"),
        (b'{"length":"1 hour"}', "length"),
        (b'{"length":90}', "length"),
    ],
)
def test_a_bad_time_in_json_is_an_error_that_names_the_path(
    data: bytes, path: str
) -> None:
    with pytest.raises(msgspec.ValidationError, match=rf"\$\.{path}"):
        decode(Lease, data)


def test_a_duration_is_read_and_printed_as_go_does() -> None:
    assert len(RECORDED["durations"]) > 200
    for fact in RECORDED["durations"]:
        if "error" in fact:
            with pytest.raises(ValueError, match=r"\.$"):
                Duration(fact["input"])
        else:
            duration = Duration(fact["input"])
            assert duration.nanoseconds == fact["nanoseconds"], fact
            assert str(duration) == fact["text"], fact


@given(durations)
def test_a_printed_duration_reads_back_as_the_same(duration: Duration) -> None:
    assert Duration(str(duration)) == duration
    assert str(Duration(str(duration))) == str(duration)
    assert pickle.loads(pickle.dumps(duration)) == duration
    assert copy.deepcopy(duration) == duration
    assert decode(Lease, encode(Lease(length=duration))).length == duration


@given(small, small, st.integers(-1000, 1000))
def test_durations_add_and_order_as_their_nanoseconds(
    a: Duration, b: Duration, times_: int
) -> None:
    assert (a + b).nanoseconds == a.nanoseconds + b.nanoseconds
    assert a - b == a + -b
    assert (a * times_).nanoseconds == (times_ * a).nanoseconds
    assert (a * times_).nanoseconds == a.nanoseconds * times_
    assert (a < b) is (a.nanoseconds < b.nanoseconds)
    assert (a == b) is (a.nanoseconds == b.nanoseconds)
    assert (hash(a) == hash(b)) or a != b
    assert bool(a) is (a.nanoseconds != 0)


@given(st.timedeltas(timedelta(days=-100_000), timedelta(days=100_000)))
def test_a_timedelta_becomes_a_duration_and_comes_back(delta: timedelta) -> None:
    assert Duration(delta).timedelta == delta


@given(durations)
def test_what_a_timedelta_cannot_hold_is_cut_towards_zero(duration: Duration) -> None:
    microseconds = duration.timedelta // timedelta(microseconds=1)
    lost = duration.nanoseconds - microseconds * 1000
    assert abs(lost) < 1000
    assert lost * duration.nanoseconds >= 0


@given(st.integers(-(10**9), 10**9))
def test_whole_seconds_are_exact(seconds: int) -> None:
    assert Duration(seconds).nanoseconds == seconds * 10**9
    assert Duration(float(seconds)) == Duration(seconds)
    assert Duration(seconds).seconds == seconds


def test_fractions_of_seconds_are_rounded_to_the_nanosecond() -> None:
    assert Duration(0.1) == Duration("100ms")
    assert Duration(1.5).seconds == 1.5
    assert Duration(1e-10) == Duration(0)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Duration(float("nan")),
        lambda: Duration(float("inf")),
        lambda: Duration(1e300),
        lambda: Duration("1000000000h"),
        lambda: Duration("9" * 1_000_000 + "ns"),
        lambda: Duration("2562047h") + Duration("2562047h"),
        lambda: -Duration.of_nanoseconds(-INT64 - 1),
        lambda: Duration("1h") * 10**10,
    ],
)
def test_a_length_that_go_cannot_hold_is_an_error(make: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match=r"\.$") as error:
        make()
    assert len(str(error.value)) < 200


def test_no_text_costs_more_than_reading_it() -> None:
    before = time.process_time()
    assert Duration("0." + "0" * 1_000_000 + "1h") == Duration(0)
    assert Duration("1." + "9" * 1_000_000 + "h") == Duration("2h")
    assert Duration("0" * 1_000_000 + "1h") == Duration("1h")
    assert time.process_time() - before < 1


def test_a_duration_does_not_change_and_does_not_mix_with_numbers() -> None:
    hour: Any = Duration("1h")
    mistakes: list[tuple[type[Exception], Callable[[], object]]] = [
        (AttributeError, lambda: setattr(hour, "nanoseconds", 1)),
        (AttributeError, lambda: delattr(hour, "nanoseconds")),
        (TypeError, lambda: hour + 1),
        (TypeError, lambda: hour - 1),
        (TypeError, lambda: hour * 1.5),
        (TypeError, lambda: hour < 3600),
    ]
    for error, mistake in mistakes:
        with pytest.raises(error):
            mistake()
    assert hour != 3600
    assert repr(hour) == "Duration('1h0m0s')"


def test_the_schemas_are_those_of_kubernetes() -> None:
    assert MicroTime.__schema__() == {"type": "string", "format": "date-time"}
    assert Duration.__schema__() == {"type": "string"}


def test_nothing_here_reads_a_clock() -> None:
    tree = ast.parse(Path(times.__file__).read_text("utf-8"))
    attributes = {n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute)}
    assert not attributes & {"now", "utcnow", "today", "time", "monotonic"}
