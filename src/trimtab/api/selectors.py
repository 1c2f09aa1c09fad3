"""Selectors: which objects are meant, by their labels or by their fields.

:class:`Selector` and :class:`FieldSelector` have the grammar and the semantics of the
API server, so that a cache filters exactly as the watch that feeds it.
:class:`LabelSelector` is the form that specs hold.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Literal, NamedTuple, NoReturn, final, get_args

import msgspec

from trimtab.api.names import check_label_key, check_label_value
from trimtab.api.objects import Object

Operator = Literal["=", "==", "!=", "in", "notin", "exists", "!", ">", "<"]

_OPERATORS_OF_SPECS: Final[Mapping[str, Operator]] = {
    "In": "in",
    "NotIn": "notin",
    "Exists": "exists",
    "DoesNotExist": "!",
}


class LabelSelectorRequirement(Object):
    """One expression of a :class:`LabelSelector`."""

    key: str
    operator: str
    values: list[str] = []


class LabelSelector(Object, map_type="atomic"):
    """A selection by labels as specs hold it; all parts must match."""

    matchLabels: dict[str, str] = {}
    matchExpressions: list[LabelSelectorRequirement] = []


class Requirement(NamedTuple):
    """One condition on one label. The values are sorted, each of them once."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()

    def __str__(self) -> str:
        match self.operator:
            case "exists":
                return self.key
            case "!":
                return f"!{self.key}"
            case "in" | "notin":
                return f"{self.key} {self.operator} ({','.join(self.values)})"
            case _:
                return f"{self.key}{self.operator}{self.values[0]}"


@final
class Selector:
    """A selection by labels: immutable, hashable, cheap to ask. Empty means all.

    ``notin`` and ``!=`` match where the label is absent. ``str()`` gives the canonical
    text, which is what a server prints and what a request sends; it reads back as an
    equal selector.
    """

    __slots__ = ("_equal", "_tests", "requirements")

    requirements: tuple[Requirement, ...]
    _equal: tuple[tuple[str, str], ...]
    _tests: tuple[Callable[[Mapping[str, str]], bool], ...]

    def __init__(self, requirements: Iterable[Requirement] = ()) -> None:
        """Check and sort requirements; :meth:`from_string` and others read them.

        Errors: ``ValueError`` when a key, a value or a number of values is not valid.
        """
        checked = sorted(map(_checked, requirements), key=lambda each: each.key)
        equal = [each for each in checked if each.operator in ("=", "==")]
        others = [each for each in checked if each.operator not in ("=", "==")]
        set_slot = object.__setattr__
        set_slot(self, "requirements", tuple(checked))
        set_slot(self, "_equal", tuple((each.key, each.values[0]) for each in equal))
        set_slot(self, "_tests", tuple(map(_test, others)))

    @classmethod
    def from_string(cls, text: str) -> Selector:
        """Read ``a=b, c!=d, e in (x,y), f notin (z), g, !h, i>1, j<9``.

        Errors: ``ValueError`` with what is wrong and where.
        """
        return cls(_Parser(text).requirements())

    @classmethod
    def from_wire(cls, selector: LabelSelector | None) -> Selector:
        """Read what a spec holds. No selector selects nothing; an empty one, all.

        Errors: ``ValueError`` with the expression and what is wrong in it.
        """
        if selector is None:
            return cls.nothing()
        wanted = [Requirement(k, "=", (v,)) for k, v in selector.matchLabels.items()]
        return cls(wanted + [_of_spec(each) for each in selector.matchExpressions])

    @classmethod
    def from_mapping(cls, labels: Mapping[str, str]) -> Selector:
        """Select the objects that carry all these labels.

        Errors: ``ValueError`` when a key or a value could not be a label.
        """
        return cls(Requirement(key, "=", (value,)) for key, value in labels.items())

    @classmethod
    def nothing(cls) -> Selector:
        """Select no object.

        It asks for a label to be there and to be absent. The grammar has no other word
        for it: sent as an empty text it would select every object there is.
        """
        key = "trimtab.dev/nothing"
        return cls((Requirement(key, "exists"), Requirement(key, "!")))

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether an object with these labels is selected."""
        for key, value in self._equal:
            if labels.get(key) != value:
                return False
        # all() over a generator would take half as long again.
        for test in self._tests:  # noqa: SIM110
            if not test(labels):
                return False
        return True

    def __and__(self, other: Selector) -> Selector:
        """Select what both select."""
        if not isinstance(other, Selector):
            return NotImplemented
        new = [each for each in other.requirements if each not in self.requirements]
        return Selector((*self.requirements, *new))

    def __bool__(self) -> bool:
        """Whether this restricts anything at all."""
        return bool(self.requirements)

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))

    def __repr__(self) -> str:
        return f"Selector({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Selector):
            return NotImplemented
        return self.requirements == other.requirements

    def __hash__(self) -> int:
        return hash(self.requirements)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError("A Selector does not change; make a new one.")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError("A Selector does not change; make a new one.")

    def __reduce__(self) -> tuple[Any, ...]:
        return (Selector, (self.requirements,))


def _of_spec(expression: LabelSelectorRequirement) -> Requirement:
    operator = _OPERATORS_OF_SPECS.get(expression.operator)
    if operator is None:
        raise ValueError(
            f"{expression.operator!r} is not an operator of a label selector; use "
            f"{', '.join(_OPERATORS_OF_SPECS)}."
        )
    return Requirement(expression.key, operator, tuple(expression.values))


def _checked(requirement: Requirement) -> Requirement:
    key, operator, given = requirement
    check_label_key(key, what="The label key")
    values = tuple(sorted(set(given)))
    for value in values:
        check_label_value(value, what=f"The value of the label {key}")
    if operator in ("exists", "!"):
        if values:
            raise ValueError(f"Asking whether the label {key} exists takes no values.")
    elif operator in ("in", "notin"):
        if not values:
            raise ValueError(f"{operator!r} needs a value to compare {key} with.")
    elif len(values) != 1:
        raise ValueError(f"{operator!r} needs exactly one value to compare {key} with.")
    elif operator in (">", "<") and _integer(values[0]) is _NOT_ONE:
        raise ValueError(f"{key}{operator}{values[0]} needs a whole number of 64 bits.")
    return Requirement(key, operator, values)


def _test(requirement: Requirement) -> Callable[[Mapping[str, str]], bool]:
    """A requirement as a function; equality has its own path in ``matches``."""
    key, operator, values = requirement
    wanted = frozenset(values)
    match operator:
        case "exists":
            return lambda labels: key in labels
        case "!":
            return lambda labels: key not in labels
        case "in":
            return lambda labels: labels.get(key) in wanted
        case "notin" | "!=":
            return lambda labels: labels.get(key) not in wanted
        case _:
            bound = _integer(values[0])
            if operator == ">":
                return lambda labels: _integer(labels.get(key, "")) > bound
            return lambda labels: _integer(labels.get(key, "")) < bound


_is_integer = re.compile(r"[+-]?[0-9]{1,256}").fullmatch
# It is neither above nor below any number, which is what a text without one is.
_NOT_ONE: Final = math.nan


def _integer(text: str) -> float:
    """The text as an ``int`` of 64 bits, or ``_NOT_ONE``."""
    number = int(text) if _is_integer(text) else _NOT_ONE
    return number if -(2**63) <= number < 2**63 else _NOT_ONE


_tokens_of = re.compile(r"==|!=|[=!(),<>]|[^ \t\r\n=!(),<>]+").findall
_BINARY: Final[Mapping[str, Operator]] = {
    each: each for each in get_args(Operator) if each not in ("exists", "!")
}
_END: Final = ""


class _Parser:
    """The grammar of label selectors, one method for each of its rules.

    ``in`` and ``notin`` are operators only where one can stand: ``in in (in)`` is a
    selector.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: list[str] = [*_tokens_of(text), _END]
        self._next = 0

    def requirements(self) -> list[Requirement]:
        found: list[Requirement] = []
        if self._peek() == _END:
            return found
        while True:
            found.append(self._requirement())
            if self._take_one_of(",", _END) == _END:
                return found

    def _requirement(self) -> Requirement:
        if self._peek() == "!":
            self._take()
            return Requirement(self._word("a key"), "!")
        key = self._word("a key")
        if self._peek() in (",", _END):
            return Requirement(key, "exists")
        operator = _BINARY.get(token := self._take())
        if operator is None:
            raise self._unexpected(token, "one of =, ==, !=, in, notin, < and >")
        values = self._set() if operator in ("in", "notin") else (self._value(_END),)
        return Requirement(key, operator, values)

    def _set(self) -> tuple[str, ...]:
        self._take_one_of("(")
        values = [self._value(")")]
        while self._take_one_of(",", ")") == ",":
            values.append(self._value(")"))
        return tuple(values)

    def _value(self, end: str) -> str:
        return "" if self._peek() in (",", end) else self._word("a value")

    def _word(self, what: str) -> str:
        token = self._take()
        if token == _END or token[0] in "=!(),<>":
            raise self._unexpected(token, what)
        return token

    def _take_one_of(self, *wanted: str) -> str:
        token = self._take()
        if token not in wanted:
            raise self._unexpected(token, " or ".join(map(_shown, wanted)))
        return token

    def _peek(self) -> str:
        return self._tokens[self._next]

    def _take(self) -> str:
        self._next += 1
        return self._tokens[self._next - 1]

    def _unexpected(self, token: str, wanted: str) -> ValueError:
        return ValueError(
            f"The label selector {self._text[:200]!r} is not valid: there should be "
            f"{wanted} in the place of {_shown(token)}."
        )


def _shown(token: str) -> str:
    return repr(token) if token else "the end"


class FieldTerm(NamedTuple):
    """One condition on one field."""

    field: str
    value: str
    operator: Literal["=", "!="] = "="

    def __str__(self) -> str:
        escaped = re.sub(r"([\\,=])", r"\\\1", self.value)
        return f"{self.field}{self.operator}{escaped}"


@final
class FieldSelector(msgspec.Struct, frozen=True, gc=False):
    """A selection by fields, such as ``spec.nodeName=a,status.phase!=Running``.

    In values a backslash escapes ``,``, ``=`` and itself. An absent field is an empty
    one. Which fields can be asked for is for the server of a kind to say.
    """

    terms: tuple[FieldTerm, ...] = ()

    def __post_init__(self) -> None:
        for term in self.terms:
            if not _is_field(term.field):
                shown = term.field[:200]
                raise ValueError(f"{shown!r} cannot be the name of a field.")
        in_order = tuple(sorted(self.terms, key=str))
        msgspec.structs.force_setattr(self, "terms", in_order)

    @classmethod
    def from_string(cls, text: str) -> FieldSelector:
        """Read ``a.b=c,d!=e``; ``==`` is another way to write ``=``.

        Errors: ``ValueError`` with what is wrong and where.
        """
        return cls(tuple(map(_field_term, _field_terms_of(text))))

    @classmethod
    def from_mapping(cls, fields: Mapping[str, str]) -> FieldSelector:
        """Select the objects whose fields have all these values."""
        return cls(tuple(FieldTerm(*item) for item in fields.items()))

    def matches(self, getter: Callable[[str], str | None]) -> bool:
        """Whether an object is selected; ``getter`` gives its fields by their paths."""
        return all(
            ((getter(field) or "") == value) is (operator == "=")
            for field, value, operator in self.terms
        )

    def exact(self, field: str) -> str | None:
        """The one value that this field must have; None where others are possible."""
        for term in self.terms:
            if term.field == field and term.operator == "=":
                return term.value
        return None

    def __bool__(self) -> bool:
        """Whether this restricts anything at all."""
        return bool(self.terms)

    def __str__(self) -> str:
        return ",".join(map(str, self.terms))

    def __repr__(self) -> str:
        return f"FieldSelector({str(self)!r})"


_field_terms_of = re.compile(r"(?:[^\\,]|\\.|\\\Z)+", re.DOTALL).findall
_parts_of = re.compile(r"(.*?)(!=|==|=)(.*)", re.DOTALL).fullmatch
_is_escaped = re.compile(r"(?:[^\\,=]|\\[\\,=])*").fullmatch
# Names have no escapes: with any of these in it a term would read back as another.
_is_field = re.compile(r"[^\\,=]*[^\\,=!]").fullmatch


def _field_term(text: str) -> FieldTerm:
    parts = _parts_of(text)
    if parts is None:
        raise ValueError(
            f"The field selector {text[:200]!r} is not valid: write a field, then = or "
            "!=, then a value."
        )
    field, operator, value = parts.groups()
    if not _is_escaped(value):
        raise ValueError(
            f"The field selector {text[:200]!r} is not valid: in a value, write a "
            "backslash before each ',', '=' and '\\'."
        )
    literal = re.sub(r"\\(.)", r"\1", value)
    return FieldTerm(field, literal, "!=" if operator == "!=" else "=")
