"""Compiled: an expression of a policy, ready to be evaluated, or why it is not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from trimtab.embedded.expressions.checking import Scope
from trimtab.embedded.expressions.compiling import Program
from trimtab.embedded.expressions.complaints import ExpressionError
from trimtab.embedded.expressions.folding import InstantiationError
from trimtab.embedded.expressions.formatting import type_name
from trimtab.embedded.expressions.kinds import BOOL, NULL, STRING, Type, list_of, struct
from trimtab.embedded.expressions.objects import JSON_PATCH, OBJECT

CONDITION: Final = (BOOL,)
MESSAGE: Final = (STRING,)
ANNOTATION: Final = (STRING, NULL)
CONFIGURATION: Final = (struct(OBJECT),)
PATCH: Final = (list_of(struct(JSON_PATCH)),)
ANYTHING: Final[tuple[Type, ...]] = ()


class Expression(msgspec.Struct, frozen=True, kw_only=True):
    """An expression of a policy."""

    text: str
    program: Program | None = None
    names: tuple[str, ...] = ()
    """What it may speak of, in the order in which values are given."""
    error: str = ""
    """Why there is no program."""
    internal: bool = False
    """Whether that is the fault of the server, as the real one counts it."""

    @property
    def type(self) -> Type | None:
        return None if self.program is None else self.program.type


def compiled(text: str, scope: Scope, returns: Sequence[Type]) -> Expression:
    """An expression that must come to a value of one of these types, if there are
    any."""
    program, error = None, ""
    try:
        program = Program(text, scope)
        found = program.type
    except ExpressionError as mistake:
        return Expression(text=text, error=f"compilation failed: {mistake}")
    except InstantiationError as mistake:
        found, error = mistake.type, f"program instantiation failed: {mistake}"
    if returns and found not in returns:
        return Expression(text=text, error=_misfit(returns, found))
    if program is None:
        return Expression(text=text, error=error, internal=True)
    return Expression(text=text, program=program, names=tuple(scope.variables))


def _misfit(returns: Sequence[Type], found: Type) -> str:
    wanted = [full_name(each) for each in returns]
    if len(wanted) == 1:
        return f"must evaluate to {wanted[0]} but got {full_name(found)}"
    return f"must evaluate to one of [{' '.join(wanted)}] but got {full_name(found)}"


def full_name(type: Type) -> str:
    """A type as Go prints it."""
    name = type_name(type)
    if not type.params:
        return name
    return f"{name}({', '.join(map(full_name, type.params))})"
