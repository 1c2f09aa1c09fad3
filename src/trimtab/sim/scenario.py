"""Scenarios: which operator is simulated, in what company, and what must hold.

For most operators ``Scenario(app)`` says enough: what its objects look like is guessed
from their schema, and the laws that hold for any operator are checked. Whatever cannot
be guessed is a field of this struct.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from random import Random
from typing import Any, TypeAlias

import msgspec

from trimtab.api.resource import Resource
from trimtab.client.errors import TrimtabError
from trimtab.runtime.definitions import Definition
from trimtab.runtime.operator import Operator
from trimtab.sim.plan import FAULTS, FaultKind
from trimtab.sim.programs import Main, Program
from trimtab.sim.server import ObjectChange, Plain, Server

Sample: TypeAlias = Callable[[Random], Plain]
"""Makes the body of an object; its name, namespace and labels are given to it."""
Always: TypeAlias = Callable[[Server, ObjectChange], Iterable[str] | None]
"""A law that is checked within every write: it yields a sentence where it is broken. A
class is made anew for each run, and what it makes is called; so it may remember."""
Finally: TypeAlias = Callable[[Server], Iterable[str] | None]
"""A law about the state at rest."""


class BadScenario(TrimtabError):
    """The scenario cannot be simulated as it is described."""


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """What ``trimtab sim`` runs."""

    operator: Operator | None = None
    """Default: there is none, only programs."""
    programs: Sequence[Program] = ()
    """What runs beside it."""
    images: Mapping[str, Main] = {}
    """What runs in model pods, by the name of their image without path and tag."""
    name: str = ""
    """Default: the operator's, or the first program's."""
    replicas: int = 3
    """Processes of the operator, if there is one. Default 3."""
    objects: int = 5
    """Objects that people make in one run. Default 5."""
    seconds: float = 90.0
    """Virtual seconds in which people act and things go wrong. Default 90."""
    rest: float = 420.0
    """Seconds without a write that count as rest while something waits in a queue:
    longer than the longest pause between two tries of the runtime (300 s, and jitter).
    Default 420."""
    quiet: float = 45.0
    """Seconds without a write that count as rest if nothing waits in a queue: longer
    than the longest time for which a program lets something lie. Default 45."""
    skew: float = 2.0
    """Seconds that the clocks of replicas are wrong, at the most. Default 2."""
    patience: float = 1800.0
    """Seconds within which it must have come to rest once nothing goes wrong any more.
    Default half an hour."""
    samples: dict[type[Resource], Sample] = {}
    """How to make objects whose schema does not say enough."""
    kinds: Sequence[type[Resource]] = ()
    """What people make. Default: whatever the operator reconciles."""
    installs: Sequence[type[Resource]] = ()
    """Kinds that must be there and that nobody reconciles or makes by hand."""
    namespaces: Sequence[str] = ()
    """Namespaces that must be there besides ``default`` and those of the scopes."""
    faults: Sequence[FaultKind] = FAULTS
    """What may go wrong. Default: all of it."""
    always: Sequence[Always] = ()
    """Own laws, checked within every write."""
    at_rest: Sequence[Finally] = ()
    """Own laws, checked when all is at rest."""
    same: bool = True
    """Whether it must end as an undisturbed run of the same acts does. Default: yes."""
    ignore: Sequence[str] = ()
    """Dotted fields whose value may depend on what went wrong, such as
    ``status.attempts``; they are left out when the end is compared with that of an
    undisturbed run."""
    keeps: Sequence[type[Resource]] = ()
    """Kinds of which something may stay when all that the operator reconciles is
    deleted: a volume that outlives its database. Default: nothing stays."""

    @property
    def title(self) -> str:
        first = self.programs[0].name if self.programs else "nothing"
        return self.name or (self.operator.name if self.operator else first)

    @property
    def made(self) -> tuple[type[Resource], ...]:
        """The kinds that people make."""
        reconciled = dict.fromkeys(each.kind for each in self.definitions)
        return tuple(self.kinds) or tuple(reconciled)

    @property
    def definitions(self) -> tuple[Definition, ...]:
        """What the operator reconciles, and how."""
        return tuple(self.operator.controllers()) if self.operator else ()

    @property
    def elects(self) -> bool:
        """Whether replicas of the operator elect a leader."""
        return self.operator is not None and self.operator.leader

    @property
    def operators(self) -> int:
        """How many replicas are an operator's: the first ones."""
        return self.replicas if self.operator else 0

    @property
    def talking(self) -> int:
        """How many replicas of programs faults may strike: the next ones."""
        return sum(each.replicas for each in self.programs if each.struck)


def resource_of(kind: Any) -> str:
    """How the server's keys of a kind begin: ``group/resource``."""
    info = kind.__resource__
    return f"{info.group or 'core'}/{info.plural}"


def path_of(kind: Any, namespace: str = "", name: str = "") -> str:
    """Where objects of a kind are."""
    info = kind.__resource__
    root = (
        f"/apis/{info.group}/{info.version}" if info.group else f"/api/{info.version}"
    )
    place = f"/namespaces/{namespace}" if info.namespaced and namespace else ""
    return f"{root}{place}/{info.plural}" + (f"/{name}" if name else "")


def is_builtin(kind: type[Resource]) -> bool:
    """Whether the server has a kind by itself."""
    group = kind.__resource__.group
    return "." not in group or group.endswith(".k8s.io")
