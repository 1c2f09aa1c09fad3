"""Scenarios: which operator is simulated, in what company, and what must hold.

For most operators ``Scenario(app)`` says enough: what its objects look like is guessed
from their schema, and the laws that hold for any operator are checked. Whatever cannot
be guessed is a field of this struct.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from random import Random
from typing import Any, TypeAlias

import msgspec

from trimtab.api.resource import Resource
from trimtab.client.errors import TrimtabError
from trimtab.runtime.operator import Operator
from trimtab.sim.plan import FAULTS, FaultKind
from trimtab.sim.server import ObjectChange, Plain, Server

Sample: TypeAlias = Callable[[Random], Plain]
"""Makes the body of an object; its name, namespace and labels are given to it."""
Always: TypeAlias = Callable[[Server, ObjectChange], Iterable[str] | None]
"""A law that is checked within every write: it yields a sentence where it is broken."""
Finally: TypeAlias = Callable[[Server], Iterable[str] | None]
"""A law about the state at rest."""


class BadScenario(TrimtabError):
    """The scenario cannot be simulated as it is described."""


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """What ``trimtab sim`` runs."""

    operator: Operator
    name: str = ""
    """Default: the operator's."""
    replicas: int = 3
    """Processes of the operator. Default 3."""
    objects: int = 5
    """Objects that people make in one run. Default 5."""
    seconds: float = 90.0
    """Virtual seconds in which people act and things go wrong. Default 90."""
    rest: float = 420.0
    """Seconds without a write that count as rest while something waits in a queue:
    longer than the longest pause between two tries of the runtime (300 s, and jitter).
    Default 420."""
    patience: float = 1800.0
    """Seconds within which it must have come to rest once nothing goes wrong any more.
    Default half an hour."""
    samples: dict[type[Resource], Sample] = {}
    """How to make objects whose schema does not say enough."""
    kinds: Sequence[type[Resource]] = ()
    """What people make. Default: whatever the operator reconciles."""
    namespaces: Sequence[str] = ()
    """Namespaces that must be there besides ``default`` and those of the scopes."""
    faults: Sequence[FaultKind] = FAULTS
    """What may go wrong. Default: all of it."""
    always: Sequence[Always] = ()
    """Own laws, checked within every write."""
    at_rest: Sequence[Finally] = ()
    """Own laws, checked when all is at rest."""
    ignore: Sequence[str] = ()
    """Dotted fields whose value may depend on what went wrong, such as
    ``status.attempts``; they are left out when the end is compared with that of an
    undisturbed run."""
    keeps: Sequence[type[Resource]] = ()
    """Kinds of which something may stay when all that the operator reconciles is
    deleted: a volume that outlives its database. Default: nothing stays."""

    @property
    def title(self) -> str:
        return self.name or self.operator.name

    @property
    def made(self) -> tuple[type[Resource], ...]:
        """The kinds that people make."""
        return tuple(self.kinds) or self.operator.kinds()


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
