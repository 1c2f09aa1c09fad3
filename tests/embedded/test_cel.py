"""Rules are compiled, judged and bounded as on a real server, and speak its words.

It was asked, by `hack/record_crd_facts.py`. What it says of a mistake in the syntax of
an expression comes from a generated parser that mends the text as it goes; that is
followed for the mistakes in the corpus, not for every one that can be made.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hack.crd_corpus.definitions import definition
from hack.crd_corpus.schemas import array, integer, record, table
from tests.embedded.crd_replay import (
    JSON,
    changed,
    created,
    defined,
    facts,
    recorded,
    stored,
)
from trimtab.embedded import cel
from trimtab.embedded.crds import CustomKind
from trimtab.embedded.expressions.checking import Scope
from trimtab.embedded.expressions.compiling import Program
from trimtab.embedded.expressions.complaints import ExpressionError
from trimtab.embedded.expressions.kinds import DYN, INT, STRING, list_of
from trimtab.embedded.expressions.values import EvaluationError, OverBudget
from trimtab.embedded.schemas import schema_of

RULES = "x-kubernetes-validations"
LIST_TYPE = "x-kubernetes-list-type"
CASES = facts("rules")
JUDGED = [index for index, case in enumerate(CASES) if case["objects"]]
CHANGED = [index for index, case in enumerate(CASES) if case.get("changes")]
PLENTY = 1_000_000


def named(index: int) -> str:
    """What a case is called: its first rule."""
    spec = CASES[index]["crd"]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    value = spec["properties"]["spec"]["properties"]["value"]
    return f"{index}: {value[RULES][0]['rule'][:50]}"


def kind_of(value: JSON, *rules: JSON, **more: Any) -> CustomKind:
    """A kind in whose spec ``x`` has rules."""
    schema = record({"spec": record({"x": {**value, RULES: list(rules)}})})
    return CustomKind(definition("things", schema, **more), "v1")


def said(kind: CustomKind, value: Any, old: Any = None) -> list[str]:
    """What the rules say of a value."""
    obj = stored(kind, {"spec": {"x": value}})
    before = None if old is None else stored(kind, {"spec": {"x": old}})
    return [str(each) for each in kind.validate(obj, before)]


def evaluated(text: str, **values: Any) -> Any:
    """The value of an expression over variables of any type."""
    program = Program(text, Scope(dict.fromkeys(values, DYN), {}))
    return program.evaluate(list(values.values()), budget=PLENTY)[0]


@pytest.mark.parametrize("index", range(len(CASES)), ids=named)
def test_a_rule_compiles_exactly_if_it_does_on_a_real_server(index: int) -> None:
    case = CASES[index]
    mine, real = defined(case["crd"]), recorded(case["answer"])
    assert mine.code == real.code
    assert mine.causes == real.causes
    assert mine.warnings == real.warnings


@pytest.mark.parametrize("index", JUDGED, ids=named)
def test_a_rule_judges_values_as_on_a_real_server(index: int) -> None:
    case = CASES[index]
    kind = CustomKind(case["crd"], "v1")
    for each in case["objects"]:
        assert created(kind, each["object"]) == recorded(each["answer"])


@pytest.mark.parametrize("index", CHANGED, ids=named)
def test_a_rule_judges_changes_as_on_a_real_server(index: int) -> None:
    case = CASES[index]
    kind = CustomKind(case["crd"], "v1")
    for place, each in enumerate(case["changes"]):
        if "refused" in each:
            continue  # the old object could not be stored in the first place
        mine = changed(kind, each["old"], each["object"], name=f"old-{place}")
        assert mine == recorded(each["answer"])


def test_a_broken_rule_says_itself_unless_it_says_something_else() -> None:
    assert said(kind_of(integer(), {"rule": "self > 3"}), 1) == [
        "spec.x: Invalid value: 1: failed rule: self > 3"
    ]
    other = kind_of(integer(), {"rule": "self > 3", "message": "too small"})
    assert said(other, 1) == ["spec.x: Invalid value: 1: too small"]
    made = kind_of(
        integer(), {"rule": "self > 3", "messageExpression": "'got ' + string(self)"}
    )
    assert said(made, 1) == ["spec.x: Invalid value: 1: got 1"]


def test_a_message_that_cannot_be_made_gives_way_to_the_one_that_is_written() -> None:
    rule = {
        "rule": "self.a > 3",
        "message": "written",
        "messageExpression": "string(self.b)",
    }
    kind = kind_of(record({"a": integer(), "b": integer()}), rule)
    assert said(kind, {"a": 1}) == ["spec.x: Invalid value: written"]


def test_a_reason_and_a_path_are_what_the_rule_says() -> None:
    rule = {
        "rule": "self.a > 3",
        "message": "no",
        "reason": "FieldValueForbidden",
        "fieldPath": ".a",
    }
    kind = kind_of(record({"a": integer()}), rule)
    assert said(kind, {"a": 1}) == ["spec.x.a: Forbidden: no"]


def test_a_rule_about_the_old_value_waits_for_a_change() -> None:
    kind = kind_of(integer(), {"rule": "self == oldSelf", "message": "fixed"})
    assert said(kind, 1) == []
    assert said(kind, 1, old=1) == []
    assert said(kind, 2, old=1) == ["spec.x: Invalid value: 2: fixed"]


def test_a_rule_that_can_do_without_the_old_value_is_always_judged() -> None:
    rule = {"rule": "oldSelf.orValue(0) < self", "optionalOldSelf": True}
    kind = kind_of(integer(), rule)
    assert said(kind, 1) == []
    assert said(kind, 0)
    assert said(kind, 2, old=1) == []
    assert said(kind, 2, old=3)


def test_items_and_values_are_judged_each_on_its_own() -> None:
    rule = {RULES: [{"rule": "self > 3", "message": "low"}]}
    listed = kind_of(array(integer(**rule), maxItems=3), {"rule": "true"})
    assert said(listed, [4, 1]) == ["spec.x[1]: Invalid value: 1: low"]
    tabled = kind_of(table(integer(**rule), maxProperties=3), {"rule": "true"})
    assert said(tabled, {"a.b": 1, "c": 4}) == [
        "spec.x[a.b]: Invalid value: 1: low",
    ]


def test_what_is_unchanged_is_only_warned_of() -> None:
    kind = kind_of(record({"a": integer(), "b": integer()}), {"rule": "self.a > 3"})
    bad = stored(kind, {"spec": {"x": {"a": 1}}})
    warnings: list[str] = []
    assert kind.validate(bad, bad, warnings=warnings) == []
    assert warnings == ["spec.x: Invalid value: failed rule: self.a > 3"]
    worse = stored(kind, {"spec": {"x": {"a": 1, "b": 2}}})
    assert kind.validate(worse, bad)


def test_a_value_that_makes_no_sense_to_a_rule_is_refused_not_let_through() -> None:
    kind = kind_of(record({"a": integer()}), {"rule": "self.a > 3"})
    assert said(kind, {}) == [
        'spec.x: Invalid value: "object": no such key: a evaluating rule: self.a > 3'
    ]


def test_judging_ends_although_a_rule_would_not() -> None:
    cubic = "self.all(a, self.all(b, self.all(c, self.all(d, a + b + c + d >= 0))))"
    kind = kind_of(array(integer()), {"rule": cubic})
    began = time.process_time()
    (refusal,) = said(kind, list(range(2000)))
    assert "cost limit exceeded" in refusal
    assert time.process_time() - began < 20  # without a limit it would be years


def test_long_texts_cost_more_than_short_ones() -> None:
    program = Program("self.contains('a')", Scope({"self": STRING}, {}))
    costs = [
        program.evaluate(["b" * size], budget=PLENTY)[1] for size in (10, 1000, 100_000)
    ]
    assert costs == sorted(set(costs))


def test_a_budget_is_never_overdrawn() -> None:
    program = Program("self.all(x, x > 0)", Scope({"self": list_of(INT)}, {}))
    _, cost = program.evaluate([[1] * 100], budget=PLENTY)
    assert 100 < cost < 2000
    with pytest.raises(OverBudget):
        program.evaluate([[1] * 100], budget=50)


def test_all_rules_of_an_object_share_one_budget() -> None:
    long = "self.all(a, self.all(b, a + b >= 0))"
    inner = array(integer(), maxItems=1000, **{RULES: [{"rule": long}]})
    kind = kind_of(array(inner, maxItems=1000), {"rule": "true"})
    found = said(kind, [list(range(330))] * 14)
    assert found
    assert cel.PER_OBJECT >= cel.PER_RULE
    assert "running out of cost budget" in found[-1]


def test_rules_are_compiled_once_for_a_kind() -> None:
    schema = schema_of(record({"x": integer(**{RULES: [{"rule": "self > 1"}]})}))
    rules = cel.rules_of(schema)
    assert rules is not None
    assert rules.problems({"x": 1}, None, None) == rules.problems({"x": 1}, None, None)
    assert cel.rules_of(schema_of(record({"x": integer()}))) is None


# The language itself.


@given(st.integers(-(2**63), 2**63 - 1), st.integers(-(2**63), 2**63 - 1))
def test_integers_have_64_bits(one: int, other: int) -> None:
    total = one + other
    if -(2**63) <= total < 2**63:
        assert evaluated("a + b", a=one, b=other) == total
    else:
        with pytest.raises(EvaluationError, match="overflow"):
            evaluated("a + b", a=one, b=other)


@given(st.integers(-100, 100), st.integers(-100, 100).filter(bool))
def test_division_goes_towards_zero(one: int, other: int) -> None:
    quotient, rest = (
        evaluated("a / b", a=one, b=other),
        evaluated("a % b", a=one, b=other),
    )
    assert quotient * other + rest == one
    assert abs(quotient) == abs(one) // abs(other)


@given(st.lists(st.integers(-5, 5)), st.integers(-5, 5))
def test_macros_do_what_their_names_say(items: list[int], mark: int) -> None:
    values = {"l": items, "m": mark}
    assert evaluated("l.all(x, x > m)", **values) is all(x > mark for x in items)
    assert evaluated("l.exists(x, x > m)", **values) is any(x > mark for x in items)
    assert evaluated("l.filter(x, x > m)", **values) == [x for x in items if x > mark]
    assert evaluated("l.map(x, x * 2)", **values) == [x * 2 for x in items]
    one = sum(x == mark for x in items) == 1
    assert evaluated("l.exists_one(x, x == m)", **values) is one


@given(st.text(), st.text(max_size=3))
def test_texts_are_counted_in_characters(text: str, part: str) -> None:
    values = {"s": text, "p": part}
    assert evaluated("size(s)", **values) == len(text)
    assert evaluated("s.contains(p)", **values) is (part in text)
    assert evaluated("s.startsWith(p)", **values) is text.startswith(part)
    assert evaluated("s.indexOf(p)", **values) == text.find(part)
    assert evaluated("s + p", **values) == text + part


@given(st.booleans(), st.booleans())
def test_logic_forgives_an_error_that_does_not_matter(one: bool, other: bool) -> None:
    bad = "1 / 0 == 1"
    assert evaluated(f"a || ({bad})", a=True) is True
    assert evaluated(f"({bad}) || a", a=True) is True
    assert evaluated(f"a && ({bad})", a=False) is False
    with pytest.raises(EvaluationError, match="divi"):
        evaluated(f"a && ({bad})", a=True)
    assert evaluated("a && b || !a && !b", a=one, b=other) is (one == other)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("dyn(1) == 1.0", True),
        ("dyn(1) == 'a'", False),
        ("{'a': dyn(1)} == {'a': dyn(1.0)}", True),
        ("[dyn(1), dyn(2u)] == [dyn(1.0), dyn(2)]", True),
        ("'a' in {'a': 1}", True),
        ("null == null", True),
        ("type(1u) == uint", True),
        ("b'\\xff' == b'\\377'", True),
        ("duration('90m') == duration('1h30m')", True),
        (
            "string(timestamp('2020-01-01T00:00:00Z') + duration('24h'))",
            "2020-01-02T00:00:00Z",
        ),
        ("[1, 2].map(x, [1, 2].map(y, x * y))", [[1, 2], [2, 4]]),
        ("optional.of(1).orValue(2)", 1),
        ("[?optional.none(), 1]", [1]),
        ("{?'a': optional.of(1), ?'b': optional.none()}", {"a": 1}),
        ("'%d %s'.format([1, 'a'])", "1 a"),
        ("quantity('1Gi').isGreaterThan(quantity('1G'))", True),
        ("ip('::1').isLoopback()", True),
        ("semver('1.10.0').isGreaterThan(semver('1.9.0'))", True),
        ("url('https://a.example:8/b?c=d').getHostname()", "a.example"),
        ("'a,b'.split(',').join('-')", "a-b"),
        ("[3, 1, 2].sort()", [1, 2, 3]),
    ],
)
def test_an_expression_has_its_value(text: str, value: Any) -> None:
    assert evaluated(text) == value


@pytest.mark.parametrize(
    ("text", "place"),
    [("self.", "1:6"), ("1 +\n 'a'", "1:3"), ("(1", "1:3"), ("nope", "1:1")],
)
def test_a_mistake_is_shown_at_its_place(text: str, place: str) -> None:
    with pytest.raises(ExpressionError, match=f"ERROR: <input>:{place}: "):
        Program(text, Scope({"self": DYN}, {}))


@given(st.text(alphabet="self.a()[]{}!&|+-*/%?:,'\"0123 \n<>=", max_size=30))
def test_any_text_is_either_an_expression_or_a_mistake(text: str) -> None:
    try:
        program = Program(text, Scope({"self": DYN}, {}))
    except ExpressionError:
        return
    with suppress(EvaluationError):
        program.evaluate([{"a": 1}], budget=PLENTY)


@pytest.mark.parametrize(
    "text",
    ["(" * 5000 + "1" + ")" * 5000, "1" + " + 1" * 5000, "a" + ".b" * 5000],
)
def test_an_expression_that_is_too_deep_is_refused(text: str) -> None:
    with pytest.raises(ExpressionError, match="recursion"):
        Program(text, Scope({"a": DYN}, {}))
