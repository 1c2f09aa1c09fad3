"""Objects of custom kinds are judged as a real server judges them, in its words.

It was asked, by `hack/record_crd_facts.py`.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hack.crd_corpus.definitions import definition
from hack.crd_corpus.schemas import Maker, array, integer, record, string, table
from hack.crd_corpus.values import Filler
from tests.embedded.crd_replay import (
    JSON,
    Answer,
    causes,
    changed,
    created,
    facts,
    recorded,
    stored,
)
from trimtab.embedded import formats, gotext, quickcheck, status, validation
from trimtab.embedded.crds import CustomKind
from trimtab.embedded.patterns import PatternError, compiled
from trimtab.embedded.schemas import schema_of

LIST_TYPE = "x-kubernetes-list-type"
KEYS = "x-kubernetes-list-map-keys"
RULES = "x-kubernetes-validations"
EVERYTHING = facts("everything")
WHOLE = CustomKind(EVERYTHING["crd"], "v1")


def comparable(answer: Answer) -> Answer:
    """An answer without the order of causes, which the real server leaves to chance.

    The key of a map is left out of the place that a struct cannot be read at: Go names
    only fields there.
    """
    message = answer.message.replace("ObjectMeta.labels.a ", "ObjectMeta.labels ")
    return msgspec.structs.replace(answer.unordered(), message=message)


def differences(pairs: Any) -> list[tuple[Any, Answer, Answer]]:
    """What was asked and answered, where our own answer is another."""
    return [
        (asked, mine, real)
        for asked, mine, real in pairs
        if comparable(mine) != comparable(real)
    ]


def kind_of(spec: JSON, **more: Any) -> CustomKind:
    return CustomKind(definition("things", record({"spec": spec}), **more), "v1")


def complaints(kind: CustomKind, spec: JSON, old: JSON | None = None) -> list[str]:
    """What is said of an object, as the causes of a Status."""
    obj = stored(kind, {"spec": spec})
    before = None if old is None else stored(kind, {"spec": old})
    return [f"{each.field}: {each.body}" for each in kind.validate(obj, before)]


@pytest.mark.parametrize("check", ["Warn", "Strict", "Ignore"])
def test_an_object_meets_the_fate_it_meets_on_a_real_server(check: str) -> None:
    asked = [each for each in EVERYTHING["objects"] if each["check"] == check]
    assert len(asked) > 10
    assert not differences(
        (
            each["object"],
            created(WHOLE, each["object"], check=check),
            recorded(each["answer"]),
        )
        for each in asked
    )


@pytest.mark.parametrize("index", range(len(facts("random"))))
def test_random_objects_of_random_schemas_meet_the_same_fate(index: int) -> None:
    case = facts("random")[index]
    kind = CustomKind(case["crd"], "v1")
    assert not differences(
        (each["object"], created(kind, each["object"]), recorded(each["answer"]))
        for each in case["objects"]
    )


def test_a_replacement_meets_the_same_fate() -> None:
    assert not differences(
        (
            each,
            changed(WHOLE, each["old"], each["object"], name=f"old-{index}"),
            recorded(each["answer"]),
        )
        for index, each in enumerate(EVERYTHING["changes"])
    )


def test_a_status_meets_the_same_fate() -> None:
    assert not differences(
        (
            each,
            changed(
                WHOLE,
                {"spec": {}},
                {"status": each["status"]},
                part="status",
                name="with-status",
            ),
            recorded(each["answer"]),
        )
        for each in EVERYTHING["statuses"]
    )


def test_what_was_wrong_before_is_forgiven_where_a_real_server_forgives() -> None:
    (case,) = facts("ratcheting")
    kind = CustomKind(case["crd"], "v1")
    assert not differences(
        (
            each["object"],
            changed(kind, case["old"], each["object"], name="old"),
            recorded(each["answer"]),
        )
        for each in case["changes"]
    )


def test_the_order_of_causes_is_the_real_one_where_there_is_one() -> None:
    """One list in one field has an order; the fields of an object have none."""
    seen = 0
    for each in EVERYTHING["objects"]:
        real = recorded(each["answer"])
        fields = {json.loads(cause)["field"].split("[")[0] for cause in real.causes}
        if len(fields) == 1 and len(real.causes) > 1:
            seen += 1
            mine = created(WHOLE, each["object"], check=each["check"])
            assert mine.causes == real.causes
    assert seen


def test_the_whole_message_of_a_refusal_is_the_real_one() -> None:
    named = status.GroupResource(WHOLE.resource.group, WHOLE.resource.kind)
    seen = 0
    for each in EVERYTHING["objects"]:
        body = each["answer"]["body"]
        if len(body.get("details", {}).get("causes", ())) != 1:
            continue
        seen += 1
        obj = stored(WHOLE, each["object"])
        obj.pop("status", None)
        found = status.invalid_object(named, "it", WHOLE.validate(obj))
        assert found.message == body["message"]
    assert seen > 100


@given(st.integers(0, 10**6), st.floats(0, 0.4))
def test_the_quick_check_accepts_exactly_what_has_no_problems(
    seed: int, mistakes: float
) -> None:
    raw = Maker(seed % 997).root()
    schema = schema_of(raw)
    body = Filler(seed).body(raw, mistakes=mistakes)
    found = validation.problems(schema, body)
    assert quickcheck.check_of(schema)(body) is (not found), found


@pytest.mark.parametrize(
    ("schema", "value", "said"),
    [
        (
            integer(maximum=10),
            11,
            "Invalid value: 11: spec.x in body should be less than or equal to 10",
        ),
        (
            string(enum=["red", "green"]),
            "pink",
            'Unsupported value: "pink": supported values: "red", "green"',
        ),
        (
            integer(),
            "a",
            'Invalid value: "string": spec.x in body must be of type integer: "string"',
        ),
        (string(maxLength=2), "abc", "Too long: may not be more than 2 bytes"),
        (
            array(integer(), maxItems=1),
            [1, 2],
            "Too many: 2: must have at most 1 item",
        ),
        (
            array(string(), **{LIST_TYPE: "set"}),
            ["a", "a"],
            'Duplicate value: "a"',
        ),
    ],
)
def test_a_mistake_is_told_in_the_real_words(
    schema: JSON, value: Any, said: str
) -> None:
    found = complaints(kind_of(record({"x": schema})), {"x": value})
    assert len(found) == 1
    assert found[0].endswith(said)


def test_a_required_field_is_named() -> None:
    kind = kind_of(record({"x": string()}, required=["x"]))
    assert complaints(kind, {}) == ["spec.x: Required value"]


def test_the_key_of_a_list_that_is_a_map_occurs_once() -> None:
    items = record({"k": string(), "v": integer()}, required=["k"])
    kind = kind_of(record({"x": array(items, **{LIST_TYPE: "map", KEYS: ["k"]})}))
    twice = [{"k": "a"}, {"k": "b"}, {"k": "a", "v": 1}]
    assert complaints(kind, {"x": twice}) == [
        'spec.x[2]: Duplicate value: {"k":"a"}',
    ]


def test_duplicates_that_were_there_before_are_forgiven() -> None:
    kind = kind_of(record({"x": array(string(), **{LIST_TYPE: "set"}), "y": integer()}))
    twice = {"x": ["a", "a"]}
    assert complaints(kind, twice)
    assert complaints(kind, {**twice, "y": 1}, old=twice) == []
    assert complaints(kind, twice, old={"x": ["a"]})


def test_rules_wait_until_the_object_is_what_they_expect() -> None:
    spec = record({"x": integer()}, **{RULES: [{"rule": "self.x > 3"}]})
    found = complaints(kind_of(spec), {"x": "a"})
    assert len(found) == 2
    assert "some validation rules were not checked" in found[1]


def test_judging_never_changes_an_object() -> None:
    for seed in range(30):
        raw = Maker(seed).root()
        kind = CustomKind(definition("randoms", raw), "v1")
        obj = stored(kind, Filler(seed).body(raw, mistakes=0.1))
        before = json.dumps(obj)
        kind.validate(obj)
        assert json.dumps(obj) == before


def test_an_object_of_another_kind_is_refused_before_anything_else() -> None:
    kind = kind_of(record({"x": integer()}))
    obj = stored(kind, {"spec": {"x": "a"}})
    obj["kind"] = "Other"
    (problem,) = kind.validate(obj)
    assert problem.body == 'Invalid value: "Other": must be Thing'


def test_a_deep_path_names_lists_by_position_and_maps_by_key() -> None:
    spec = record({"t": table(array(record({"x": integer(maximum=1)})))})
    found = complaints(kind_of(spec), {"t": {"k.e": [{}, {"x": 2}]}})
    assert [each.partition(": ")[0] for each in found] == ["spec.t.k.e[1].x"]


# Patterns: Go's syntax and meaning.


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        ("^a$", "a", True),
        ("^a$", "a\n", False),  # Python's $ would match before the last newline
        (r"\d", "٣", False),  # Go's \d is ASCII
        (r"^\w+$", "ä", False),
        (r"\p{L}", "ä", True),
        (r"^\pN$", "٣", True),
        (r"\Aab\z", "ab", True),
        ("[[:alpha:]]+", "1", False),
        ("(?i)ABC", "abc", True),
        ("(?s).", "\n", True),
        (".", "\n", False),
        ("(?U)a+", "aa", True),
        (r"\Q.*\E", ".*", True),
        (r"\Q.*\E", "ab", False),
        (r"\x{1F600}", "😀", True),
        ("[^a]", "\n", True),
        ("(?P<name>a)b", "ab", True),
        (r"a{2,3}", "aa", True),
        ("a{,3}", "a{,3}", True),  # not a repetition in Go
    ],
)
def test_a_pattern_means_what_it_means_in_go(
    pattern: str, text: str, matches: bool
) -> None:
    assert bool(compiled(pattern).search(text)) is matches


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("(", "missing closing ): `(`"),
        ("a)", "unexpected ): `a)`"),
        ("[a", "missing closing ]: `[a`"),
        ("[b-a]", "invalid character class range: `b-a`"),
        ("*", "missing argument to repetition operator: `*`"),
        ("a**", "invalid nested repetition operator: `**`"),
        ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
        (r"\8", r"invalid escape sequence: `\8`"),
        ("a{1001}", "invalid repeat count: `{1001}`"),
        (r"\p{Nope}", r"invalid character class range: `\p{Nope}`"),
        ("a\\", "trailing backslash at end of expression: ``"),
    ],
)
def test_a_pattern_that_go_refuses_is_refused_in_its_words(
    pattern: str, said: str
) -> None:
    with pytest.raises(PatternError) as error:
        compiled(pattern)
    assert str(error.value) == f"error parsing regexp: {said}"


# Texts: values as Go prints them.


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (1.5, "1.5"),
        (1e6, "1e+06"),
        (123456.0, "123456"),
        (1e20, "1e+20"),
        (1e-7, "1e-07"),
        (3.0, "3"),
    ],
)
def test_a_float_is_printed_as_go_prints_it(value: float, said: str) -> None:
    assert gotext.number(value) == said


@given(st.text())
def test_a_quoted_text_is_one_line_of_json_like_text(text: str) -> None:
    quoted = gotext.quoted(text)
    assert quoted[0] == quoted[-1] == '"'
    assert quoted.isprintable()


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists))
def test_json_is_what_go_would_write(value: Any) -> None:
    text = gotext.json_text(value)
    assert json.loads(text) == value
    assert not set(text) & set("<>&")


@pytest.mark.parametrize(
    ("form", "good", "bad"),
    [
        ("date", "2020-02-29", "2021-02-29"),
        ("date-time", "2020-01-02T03:04:05Z", "2020-01-02"),
        ("datetime", "2020-01-02t03:04:05.6+01:00", "x"),
        ("uuid", "123e4567-e89b-12d3-a456-426614174000", "123e4567"),
        ("ipv4", "1.2.3.4", "::1"),
        ("ipv6", "::1", "1.2.3.4"),
        ("cidr", "10.0.0.0/8", "10.0.0.0"),
        ("email", "a@b.c", "a"),
        ("hostname", "a.example", "a_b!"),
        ("duration", "1h", "1y2z"),
        ("byte", "YWJj", "YWJ"),
        ("mac", "01:02:03:04:05:06", "01:02"),
        ("k8s-short-name", "a-b", "A"),
    ],
)
def test_a_format_tells_good_texts_from_bad_ones(
    form: str, good: str, bad: str
) -> None:
    schema = schema_of(string(format=form))
    assert not validation.problems(schema, good)
    assert validation.problems(schema, bad)
    assert formats.known("string", form)


def test_a_format_that_nobody_knows_says_nothing() -> None:
    assert not validation.problems(schema_of(string(format="money")), "x")
    assert not formats.known("string", "money")


def test_causes_have_the_reasons_of_a_real_status() -> None:
    kind = kind_of(record({"x": integer(maximum=1)}, required=["y"]))
    obj = stored(kind, {"spec": {"x": 5}})
    reasons = {json.loads(each)["reason"] for each in causes(kind.validate(obj))}
    assert reasons == {"FieldValueInvalid", "FieldValueRequired"}
