"""Laws of quantities: what Go's implementation does, and what arithmetic demands.

``data/quantities.json`` was recorded from k8s.io/apimachinery. Where Go's answer is
not the value it documents (an overflow, a suffix that it does not have), the test says
what ours is instead.
"""

from __future__ import annotations

import copy
import json
import pickle
import re
import sys
import time
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.api.codec import decode, encode
from trimtab.api.objects import Object
from trimtab.api.quantity import Format, Quantity

RECORDED = json.loads(
    (Path(__file__).parent / "data" / "quantities.json").read_text("utf-8")
)
ACCEPTED = [fact for fact in RECORDED["facts"] if "error" not in fact]
REFUSED = [fact["input"] for fact in RECORDED["facts"] if "error" in fact]
NUMBERS = [fact for fact in ACCEPTED if re.match(r"[+-]?\.?[0-9]", fact["input"])]
NO_NUMBERS = [fact["input"] for fact in ACCEPTED if fact not in NUMBERS]

INT64 = 2**63 - 1
FORMATS: list[Format] = ["DecimalSI", "BinarySI", "DecimalExponent"]

nanos = st.one_of(
    st.integers(-(10**30), 10**30),
    st.integers(-(10**6), 10**6).map(lambda n: n * 10**9),
    st.integers(-(2**33), 2**33).map(lambda n: n * 2**30 * 10**9),
    st.integers(-(10**12), 10**12),
)
quantities = st.builds(
    lambda n, form: Quantity(Fraction(n, 10**9), format=form),
    nanos,
    st.sampled_from(FORMATS),
)
texts = st.from_regex(
    r"[+-]?([0-9]{1,25}(\.[0-9]{0,12})?|\.[0-9]{1,12})"
    r"([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,2})?",
    fullmatch=True,
)


def survives_go(canonical: str, exact: Fraction) -> bool:
    """Whether Go's text is the value: past 999E it drops the suffix it lacks."""
    return Quantity(canonical).fraction == exact


def test_a_text_has_the_value_format_and_canonical_form_that_go_gives_it() -> None:
    assert len(NUMBERS) > 500
    for fact in NUMBERS:
        quantity, exact = Quantity(fact["input"]), Fraction(fact["exact"])
        assert quantity.fraction == exact, fact
        assert quantity.format == fact["format"], fact
        if survives_go(fact["canonical"], exact):
            assert str(quantity) == fact["canonical"], fact
        else:
            assert abs(exact) >= 10**21, fact
            assert Quantity(str(quantity)) == quantity, fact


def test_whole_and_milli_values_are_those_of_go_where_go_does_not_overflow() -> None:
    for fact in NUMBERS:
        quantity = Quantity(fact["input"])
        if 0 <= int(quantity) <= INT64:
            assert int(quantity) == fact["value"], fact
        if 0 <= quantity.milli <= INT64:
            assert quantity.milli == fact["milli"], fact


def test_what_go_refuses_is_refused_in_one_sentence() -> None:
    assert len(REFUSED) > 50
    for text in REFUSED:
        with pytest.raises(ValueError, match=r"is not a quantity; write") as error:
            Quantity(text)
        assert "\n" not in str(error.value), text
        assert str(error.value).endswith("."), text


def test_a_suffix_without_a_number_is_not_a_zero() -> None:
    # Go reads "m" and "+" as zero, against its own grammar and the published pattern.
    assert "m" in NO_NUMBERS
    for text in NO_NUMBERS:
        assert re.search(Quantity.__schema__()["pattern"], text) is None, text
        with pytest.raises(ValueError, match="is not a quantity"):
            Quantity(text)


def test_arithmetic_agrees_with_go_in_value_and_in_format() -> None:
    assert len(RECORDED["arithmetic"]) > 150
    for fact in RECORDED["arithmetic"]:
        left, right = Quantity(fact["left"]), Quantity(fact["right"])
        results = {
            "sum": left + right,
            "difference": left - right,
            "negated": -left,
            "times7": left * 7,
        }
        for name, result in results.items():
            if survives_go(fact[name], result.fraction):
                assert str(result) == fact[name], (name, fact)
            else:
                assert Quantity(str(result)) == result, (name, fact)
                assert abs(result.fraction) > INT64, (name, fact)
        assert (left > right) - (left < right) == fact["compare"], fact


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("16384Mi", "16Gi"),
        ("1.5Gi", "1536Mi"),
        ("1.5", "1500m"),
        ("0.1", "100m"),
        ("1000m", "1"),
        ("1024", "1024"),
        ("0.5Ki", "512"),
        ("1.1Ki", "1126400m"),
        ("1000000", "1M"),
        ("12e6", "12e6"),
        ("12000000e0", "12e6"),
        ("0.1n", "1n"),
        ("-0.1n", "-1n"),
        ("+5.", "5"),
        (".5", "500m"),
        ("8Ei", "9223372036854775807"),
        ("-8Ei", "-9223372036854775807"),
        ("1000E", "1000E"),
    ],
)
def test_the_canonical_form_is_without_fraction_and_with_the_largest_suffix(
    text: str, canonical: str
) -> None:
    assert str(Quantity(text)) == canonical
    assert repr(Quantity(text)) == f"Quantity({canonical!r})"


@given(texts)
def test_every_text_of_the_grammar_reads_as_its_value(text: str) -> None:
    quantity = Quantity(text)
    parts = re.fullmatch(r"([+-]?[0-9.]+)(.*)", text)
    assert parts is not None
    number, suffix = Fraction(Decimal(parts[1])), parts[2]
    binary = {f"{c}i": 1024**n for n, c in enumerate("KMGTPE", start=1)}
    steps = enumerate(["n", "u", "m", "", "k", "M", "G", "T", "P", "E"], start=-3)
    decimal = {c: Fraction(1000) ** n for n, c in steps}
    if suffix in binary:
        exact = number * binary[suffix]
        exact = max(min(exact, Fraction(INT64)), Fraction(-INT64))
    elif suffix in decimal:
        exact = number * decimal[suffix]
    else:
        exact = number * Fraction(10) ** int(suffix[1:])
    error = abs(quantity.fraction) - abs(exact)
    assert 0 <= error < Fraction(1, 10**9)
    assert quantity.fraction * exact >= 0


@given(quantities)
def test_the_canonical_form_reads_back_as_the_same_quantity(quantity: Quantity) -> None:
    text = str(quantity)
    assert Quantity(text) == quantity
    assert "." not in text
    assert re.search(Quantity.__schema__()["pattern"], text)


@given(quantities)
def test_canonicalising_twice_changes_nothing(quantity: Quantity) -> None:
    once = str(Quantity(str(quantity)))
    assert str(Quantity(once)) == once
    # A binary quantity that no binary suffix divides prints none, and the text alone
    # cannot say which family it was of: 125000 bytes are 125k when read again.
    if quantity.format != "BinarySI" or once.endswith("i"):
        assert once == str(quantity)


@given(quantities, quantities, quantities)
def test_addition_is_a_commutative_group(a: Quantity, b: Quantity, c: Quantity) -> None:
    assert a + b == b + a
    assert (a + b) + c == a + (b + c)
    assert a + Quantity(0) == a
    assert not a + -a
    assert a - b == a + -b
    assert sum([a, b, c]) == a + b + c


@given(quantities, st.integers(-50, 50))
def test_multiplication_is_repeated_addition(a: Quantity, times: int) -> None:
    repeated = sum([a] * abs(times)) or Quantity(0)
    assert a * times == times * a == (repeated if times >= 0 else -repeated)


@given(quantities, quantities)
def test_order_and_equality_are_those_of_the_value(a: Quantity, b: Quantity) -> None:
    x, y = a.fraction, b.fraction
    assert (a == b) is (x == y)
    assert (a != b) is (x != y)
    assert (a < b) is (x < y)
    assert (a <= b) is (x <= y)
    assert (a > b) is (x > y)
    assert (a >= b) is (x >= y)


@given(nanos)
def test_equal_quantities_have_equal_hashes_whatever_their_format(value: int) -> None:
    number = Fraction(value, 10**9)
    made = {Quantity(number, format=form) for form in FORMATS}
    assert len(made) == 1


@given(quantities, quantities.filter(bool))
def test_division_is_the_exact_ratio(a: Quantity, b: Quantity) -> None:
    assert a / b == a.fraction / b.fraction


def test_division_by_nothing_says_so() -> None:
    with pytest.raises(ZeroDivisionError, match=r"^1Gi cannot be divided"):
        Quantity("1Gi") / Quantity("0")


@given(quantities)
def test_rounding_goes_away_from_zero(quantity: Quantity) -> None:
    for rounded, exact in (
        (int(quantity), quantity.fraction),
        (quantity.milli, quantity.fraction * 1000),
    ):
        assert abs(exact) <= abs(rounded) < abs(exact) + 1
        assert rounded * exact >= 0


@given(st.fractions())
def test_what_is_finer_than_a_nano_is_rounded_away_from_zero(value: Fraction) -> None:
    error = abs(Quantity(value).fraction) - abs(value)
    assert 0 <= error < Fraction(1, 10**9)


@given(st.decimals(allow_nan=False, allow_infinity=False, places=9))
def test_a_decimal_keeps_its_value(value: Decimal) -> None:
    assert Quantity(value).fraction == Fraction(value)


@given(st.integers())
def test_an_int_keeps_its_value_and_takes_the_format_it_is_given(value: int) -> None:
    assert int(Quantity(value)) == value
    assert Quantity(value, format="BinarySI").format == "BinarySI"


def test_numbers_that_are_not_exact_or_not_finite_are_refused() -> None:
    for inexact in (0.1, True, None, b"1"):
        with pytest.raises(TypeError, match="use a str, int, Decimal or Fraction"):
            Quantity(inexact)  # type: ignore[arg-type]
    for endless in (Decimal("NaN"), Decimal("Infinity")):
        with pytest.raises(ValueError, match="must be finite"):
            Quantity(endless)


def test_quantities_do_not_mix_with_bare_numbers() -> None:
    one: Any = Quantity(1)
    assert one != 1
    mistakes: list[Callable[[], object]] = [
        lambda: one + 1,
        lambda: 1 + one,
        lambda: one - 1,
        lambda: one * 1.5,
        lambda: one / 2,
        lambda: one < 2,
    ]
    for mistake in mistakes:
        with pytest.raises(TypeError):
            mistake()


@pytest.mark.parametrize(
    "text",
    [
        "1e2000000000",
        "-1e9223372036854775807",
        "1e-2000000000",
        "9" * 1_000_000,
        "0." + "0" * 1_000_000 + "1",
        "0." + "0" * 1_000_000 + "1e1000001",
        "1." + "9" * 1_000_000 + "Ki",
        "1e" + "0" * 1_000_000 + "3",
        "9" * 1_000_000 + "Ei",
    ],
    ids=lambda text: f"{text[:12]}({len(text)})",
)
def test_no_text_costs_more_than_reading_it(text: str) -> None:
    before = time.process_time()
    quantity = Quantity(text)
    assert Quantity(str(quantity)) == quantity
    assert quantity + quantity >= quantity or quantity < Quantity(0)
    assert time.process_time() - before < 1
    assert sys.getsizeof(quantity._nanos) < 1000


def test_past_a_thousand_digits_a_quantity_saturates() -> None:
    largest = Quantity("1e1000")
    assert Quantity("1e1001") == largest == largest + largest == largest * 10**100
    assert -largest == Quantity("-9e5000")
    assert Quantity("9e999") < largest


def test_a_long_fraction_is_read_to_its_last_digit() -> None:
    zeros = "0" * 5000
    assert Quantity(f"1.{zeros}") == Quantity("1")
    assert Quantity(f"1.{zeros}1") == Quantity("1000000001n")
    assert Quantity(f"0.{zeros}1e5001") == Quantity("1")
    assert Quantity(f"0.{zeros}1") == Quantity("1n")
    assert Quantity(f"1.{zeros}1Ki") == Quantity("1024000000001n")


class Box(Object):
    """A struct with quantities in it."""

    limits: dict[str, Quantity] = {}
    size: Quantity | None = None


def test_json_strings_and_numbers_decode_and_canonical_text_is_written() -> None:
    box = decode(Box, b'{"limits":{"cpu":0.5,"pods":110,"big":1e22},"size":" 1024Mi "}')
    assert box.limits["cpu"] == Quantity("500m")
    assert box.limits["pods"] == Quantity(110)
    assert box.limits["big"] == Quantity("10000E")
    assert json.loads(encode(box)) == {
        "limits": {"cpu": "500m", "pods": "110", "big": "10e21"},
        "size": "1Gi",
    }


@pytest.mark.parametrize("value", [b'"1.5 Gi"', b"true", b"[]", b'""'])
def test_a_bad_quantity_in_json_is_an_error_that_names_the_path(value: bytes) -> None:
    with pytest.raises(msgspec.ValidationError, match=r"\$\.size"):
        decode(Box, b'{"size":' + value + b"}")


@given(quantities)
def test_a_quantity_survives_json_pickle_and_copy(quantity: Quantity) -> None:
    assert decode(Box, encode(Box(size=quantity))).size == quantity
    for again in (
        pickle.loads(pickle.dumps(quantity)),
        copy.copy(quantity),
        copy.deepcopy(quantity),
    ):
        assert again == quantity
        assert str(again) == str(quantity)


def test_a_quantity_does_not_change() -> None:
    quantity = Quantity("1Gi")
    changes: list[Callable[[], None]] = [
        lambda: setattr(quantity, "_nanos", 0),
        lambda: delattr(quantity, "_format"),
        lambda: setattr(quantity, "colour", "red"),
    ]
    for change in changes:
        with pytest.raises(AttributeError, match="does not change"):
            change()
    assert str(quantity) == "1Gi"


def test_equal_texts_share_one_value_in_memory() -> None:
    assert Quantity("137Mi") is Quantity("137Mi")
    assert not hasattr(Quantity("137Mi"), "__dict__")


def test_the_schema_is_the_one_that_kubernetes_generates() -> None:
    schema = Quantity.__schema__()
    assert schema["anyOf"] == [{"type": "integer"}, {"type": "string"}]
    assert schema["x-kubernetes-int-or-string"] is True
    assert re.search(schema["pattern"], "1.5Gi")
    assert not re.search(schema["pattern"], "1.5GiB")
