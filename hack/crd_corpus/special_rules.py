"""Rules about changes, rules that no server accepts, and rules that cost too much."""

from __future__ import annotations

from collections.abc import Iterator

from hack.crd_corpus.cases import EITHER, KEEP, KEYS, LIST_TYPE, RULES, Case, rule
from hack.crd_corpus.schemas import array, integer, record, string, table

_NOT_RULES = (
    "",
    "self.",
    "self.a +",
    "self.nope == 1",
    "nope == 1",
    "self.a == 'x'",
    "self.a + 'x' == 'x'",
    "self.s > 1",
    "self.a",
    "'text'",
    "self.l.all(x, x > 1)",
    "self.l.all(x)",
    "self.s.nope()",
    "nope(self.a)",
    "self.s.matches('(')",
    "self.s.startsWith(1)",
    "has(self)",
    "has(self.a.b)",
    "has(self['a'])",
    "self.a.b == 1",
    "self.l[0].x == 1",
    "self.l['a'] == 'b'",
    "self['a'] == 1",
    "[1, 'a'].size() == 2",
    "{'a': 1, 'b': 'c'}.size() == 2",
    "{1: 2, 'b': 3}.size() == 2",
    "self.a == 1 ? 1 : 'x'",
    "self.a ? true : false",
    "!self.a",
    "-self.s == 'x'",
    "self.a && true",
    "timestamp('nope') == timestamp('nope')",
    "duration('nope') == duration('nope')",
    "1 in 2",
    "self == null",
    "self.a == null",
    "self.s in self.l && self.a in self.l",
    "self.l.map(x, x)",
    "self.l.filter(x, x)",
    "self.a == 1u",
    "self.a < 1.5",
    "self.a == 1.5",
    "self.a + 1.5 > 1.0",
    "x.y.z",
    "self.l.exists(self.a, true)",
    "authorizer.path('/').check('get').allowed()",
    "self.a == 99999999999999999999",
    "self.s == 'unterminated",
    'self.s == "a" b',
    "self.a === 1",
    "(self.a == 1",
    "self.a == 1)",
    "self.l[0 == 'a'",
    "@",
    "self.a = 1",
    "self.for == 1",
    "for == 1",
    "Msg{a: 1} == self",
    "self.l == [1]",
    "self.l == []",
    "self.s == self.a",
    "oldSelf.a == self.a.b",
    "self.f == 1 && self.f == 'x'",
    "type(self) == map",
    "self.a.size() == 1",
    "size(self.a) == 1",
    "self.l.join(1) == ''",
    "dyn(1) + 'x' == 1",
    "optional.of(self.a) == 1",
    "self.?nope == optional.none()",
    "cel.bind(x, self.a, x > 1)",
    "math.greatest(1, 2) == 2",
    "base64.encode(b'a') == 'YQ=='",
    "true\n&& 'a' == 1",
    "'a' == 1 && 'b' == 2",
    "quantity(1) == quantity('1')",
    "ip('1.2.3.4') == '1.2.3.4'",
)


def _transitions() -> Iterator[Case]:
    yield Case(
        integer(),
        [rule("self == oldSelf", message="immutable")],
        [5],
        [(1, 1), (1, 2)],
    )
    yield Case(integer(), [rule("self >= oldSelf")], [5], [(1, 2), (2, 1)])
    yield Case(
        integer(),
        [rule("oldSelf.hasValue() || self > 3", optionalOldSelf=True)],
        [3, 4],
        [(1, 2), (4, 1)],
    )
    yield Case(
        integer(),
        [rule("!oldSelf.hasValue() || oldSelf.value() <= self", optionalOldSelf=True)],
        [3],
        [(4, 5), (4, 1)],
    )
    yield Case(
        integer(),
        [rule("oldSelf.orValue(3) == 3", optionalOldSelf=True)],
        [3],
        [(4, 4), (4, 5)],
    )
    yield Case(
        record({"a": integer(), "b": record({"c": integer()})}),
        [
            rule("!has(oldSelf.a) || has(self.a)"),
            rule("oldSelf.?b.?c.orValue(0) < 5"),
        ],
        [{}],
        [({"a": 1}, {}), ({"a": 1}, {"a": 2}), ({"b": {"c": 7}}, {})],
    )
    keyed = array(
        record(
            {
                "k": string(),
                "v": integer(**{RULES: [rule("self >= oldSelf")]}),
            },
            required=["k"],
        ),
        maxItems=5,
        **{LIST_TYPE: "map", KEYS: ["k"]},
    )
    yield Case(
        keyed,
        [rule("true")],
        [],
        [
            ([{"k": "a", "v": 2}], [{"k": "b", "v": 0}, {"k": "a", "v": 1}]),
            ([{"k": "a", "v": 2}], [{"k": "a", "v": 3}]),
        ],
    )


def _matched() -> Iterator[Case]:
    valued = table(
        integer(**{RULES: [rule("self >= oldSelf")]}),
        maxProperties=4,
    )
    yield Case(
        valued,
        [rule("true")],
        [],
        [({"a": 2}, {"a": 1, "b": 0}), ({"a": 2}, {"b": 0})],
    )
    # An object that was stored before a rule would refuse it may stay as it is.
    yield Case(
        record({"a": integer(), "b": integer()}),
        [rule("self.a < 5")],
        [],
        [({"a": 1, "b": 1}, {"a": 9, "b": 2}), ({"a": 1}, {"a": 1, "b": 2})],
    )


def _wrong() -> Iterator[Case]:
    shape = record({"a": integer(), "s": string(), "l": array(string()), "f": EITHER})
    for written in _NOT_RULES:
        yield Case(shape, [rule(written, message="m" if "\n" in written else "")], [])
    for more in (
        {"message": " "},
        {"message": "a\nb"},
        {"messageExpression": " "},
        {"messageExpression": "self.nope"},
        {"messageExpression": "self.a"},
        {"messageExpression": "1 +"},
        {"reason": "Nope"},
        {"fieldPath": " "},
        {"fieldPath": ".a\n"},
        {"fieldPath": ".nope"},
        {"fieldPath": "a"},
        {"fieldPath": ".l[0]"},
        {"optionalOldSelf": True},
    ):
        yield Case(shape, [rule("self.a == 1", **more)], [])
    yield Case(shape, [rule("self.a == 1\n", message="")], [])
    yield Case(shape, [rule("self.a ==\n1")], [])


def _misplaced() -> Iterator[Case]:
    old = {RULES: [rule("self == oldSelf")]}
    yield Case(array(integer(**old), maxItems=3), [rule("true")], [])
    yield Case(array(record({"a": integer(**old)}), maxItems=3), [rule("true")], [])
    yield Case(
        array(integer(), maxItems=3, **{LIST_TYPE: "set"}),
        [rule("self == oldSelf")],
        [],
    )
    yield Case(integer(default=5), [rule("self < 3")], [])
    yield Case(
        integer(default=5),
        [rule("oldSelf.hasValue() || self < 3", optionalOldSelf=True)],
        [],
    )
    yield Case({KEEP: True}, [rule("true")], [])


def _unbounded() -> Iterator[Case]:
    yield Case(array(string()), [rule("self.all(x, self.all(y, x == y))")], [])
    yield Case(
        array(array(string())), [rule("self.all(x, x.all(y, y.all(z, z == 'a')))")], []
    )
    yield Case(
        array(string(**{RULES: [rule("self.matches('^a+$')")]})),
        [rule("true")],
        [],
    )
    yield Case(
        array(
            string(
                maxLength=100,
                **{RULES: [rule("self.contains('a')")]},
            ),
            maxItems=1000,
        ),
        [rule("self.all(x, self.exists(y, x == y))")],
        [],
    )
    yield Case(string(), [rule("self.contains(self)")], [])
    yield Case(string(), [rule("self.size() < 10"), rule("self.matches(self)")], [])
    yield Case(table(string()), [rule("self.all(k, self[k].contains(k))")], [])


def _costs() -> Iterator[Case]:
    many = array(integer(), maxItems=1000)
    cubic = "self.all(a, self.all(b, self.all(c, a + b + c >= 0)))"
    yield Case(array(integer(), maxItems=200), [rule(cubic)], [list(range(150))])
    yield Case(many, [rule("self.all(a, self.all(b, a + b >= 0))")], [list(range(900))])
    yield Case(array(integer(), maxItems=100), [rule(cubic)], [list(range(90))])


def _deep() -> Iterator[Case]:
    for written in (
        "true" + " && true" * 300,
        "false" + " || true" * 300,
        "1" + " + 1" * 40 + " > 0",
        "1" + " + 1" * 260 + " > 0",
        "'a'" + ".trim()" * 260 + " == 'a'",
        "[1]" + "[0]" * 260 + " == 1",
        "(" * 40 + "true" + ")" * 40,
        "(" * 300 + "true" + ")" * 300,
        "[" * 300 + "]" * 300 + " == []",
        "-" * 301 + "self < 1",
        "!" * 301 + "(self < 1)",
        "true ? true : " * 20 + "true",
        "true ? true : " * 300 + "true",
        "true" + " " * 100000,
        "true" + " " * 99990,
    ):
        yield Case(integer(), [rule(written)], [])


def special_rules() -> Iterator[Case]:
    """Every case of this family."""
    yield from (*_transitions(), *_matched(), *_wrong(), *_misplaced())
    yield from (*_unbounded(), *_costs(), *_deep())
