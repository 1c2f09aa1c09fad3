"""Who may call what: each method needs a role, and a role is a right of RBAC.

Methods of gRPC and requests of HTTP are in one table. Deny by default: what has no line
here is refused for everybody.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, NamedTuple, Protocol

from trimtab.api import Resource
from trimtab.client.errors import TrimtabError
from trimtab.operators.vmafx.kinds import VmafxJob, VmafxNode


class Role(NamedTuple):
    """A role, and the verb on a kind whose right stands for it."""

    name: str
    verb: str
    kind: type[Resource]


READER = Role("reader", "get", VmafxJob)
WRITER = Role("writer", "create", VmafxJob)
ADMIN = Role("admin", "deletecollection", VmafxJob)
NODE = Role("node", "work", VmafxNode)

_READ = (READER, WRITER, ADMIN)
_WRITE = (WRITER, ADMIN)
_NODE = (NODE,)

METHODS: dict[str, tuple[Role, ...]] = {
    "/vmafx.controller.v1.VmafxController/SubmitJob": _WRITE,
    "/vmafx.controller.v1.VmafxController/GetJob": _READ,
    "/vmafx.controller.v1.VmafxController/CancelJob": _WRITE,
    "/vmafx.controller.v1.VmafxController/StreamJobs": _READ,
    "/vmafx.controller.v1.VmafxController/RegisterNode": _NODE,
    "/vmafx.controller.v1.VmafxController/Heartbeat": _NODE,
    "/vmafx.controller.v1.VmafxController/PullWork": _NODE,
    "/vmafx.controller.v1.VmafxController/ReportResult": _NODE,
    "/vmafx.v1.VmafxScoring/Score": _WRITE,
    "/vmafx.v1.VmafxScoring/ScoreStream": _WRITE,
    "/vmafx.v1.VmafxScoring/Health": _READ,
    "POST /v1/score": _WRITE,
}

PREFIX: Final = "vmafx:"
"""What the name of a role begins with in a token."""
OPEN: Final = frozenset({"GET /healthz", "GET /readyz", "GET /metrics"})
"""What is answered without asking who it is: probes and scrapes show no token."""


class Denied(TrimtabError):
    """The caller has none of the roles that a method needs."""


class Everybody:
    """A judge who lets everybody do everything: for one's own machine."""

    async def allows(
        self, token: str, verb: str, kind: type[Resource], *, namespace: str
    ) -> bool:
        """Yes."""
        return True


class Judge(Protocol):
    """Who knows whether the owner of a token has a right."""

    async def allows(
        self, token: str, verb: str, kind: type[Resource], *, namespace: str
    ) -> bool: ...


async def allows(judge: Judge, token: str, method: str, *, namespace: str) -> bool:
    """Whether the owner of a token has one of the roles that a method needs."""
    for role in METHODS.get(method, ()):
        if await judge.allows(token, role.verb, role.kind, namespace=namespace):
            return True
    return False


async def check(judge: Judge, token: str, method: str, *, namespace: str) -> None:
    """Let a call pass, or say why not.

    Errors: :class:`Denied`, which names the roles; those of the judge when it does not
    know the token.
    """
    if not await allows(judge, token, method, namespace=namespace):
        raise _denied(method)


def check_names(names: Collection[str], method: str) -> None:
    """Let pass who has one of the roles that a method needs, by their names in tokens.

    Errors: :class:`Denied`, which names the roles.
    """
    if not any(f"{PREFIX}{role.name}" in names for role in METHODS.get(method, ())):
        raise _denied(method)


def _denied(method: str) -> Denied:
    names = " or ".join(role.name for role in METHODS.get(method, ()))
    return Denied(
        f"This needs the role of {names or 'nobody'}, which the caller does not have."
    )
