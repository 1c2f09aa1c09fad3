"""Faults: a switch for tests, with which a server fails in ways that it should not.

Give a :class:`Faults` to the server (or to the driver of the in-process transport) and
plant what is to go wrong. There is no way to reach it over HTTP::

    faults = Faults()
    async with Server(faults=faults) as server:
        faults.plant(Fault(verb="patch", resource="pods", code=500))
        faults.plant(Fault(verb="create", when="after", cut=True))

The first of these makes the next patch of a pod fail, and nothing was written. The
second carries out the next create and cuts the connection instead of answering: the
client cannot know. ``skip`` and ``times`` say which of the matching requests are meant.

Watches can be cut when they have begun, after some events, or all of them at any
moment (:meth:`Faults.cut_watches`). :meth:`Faults.expire_history` makes the server
forget every revision but the newest, so that watches and pages of older ones expire.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, Protocol

import msgspec

from trimtab.embedded.requests import ApiRequest, Target, target_of
from trimtab.embedded.status import ApiProblem

When = Literal["before", "after"]

VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch"}
REASONS = {
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    409: "Conflict",
    410: "Expired",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """Which requests go wrong, and how."""

    verb: str = ""
    """``get``, ``list``, ``watch``, ``create``, ``update``, ``patch``, ``delete`` or
    ``deletecollection``; empty for any."""
    resource: str = ""
    """``pods``, ``deployments.apps``, ``pods/status``; empty for any."""
    namespace: str = ""
    """Empty for any."""
    name: str = ""
    """The object's name as in the path, so not for a create; empty for any."""
    skip: int = 0
    """So many matching requests pass first."""
    times: int = 1
    """So many are hit then; 0 for all of them."""

    delay: float = 0.0
    """Seconds that pass first, whatever else happens."""
    when: When = "before"
    """Whether the rest happens in place of the request, or once it is carried out."""
    code: int = 0
    """An HTTP status to fail with; 0 for no failure."""
    reason: str = ""
    """Of the ``Status`` that is sent; by default what belongs to the code."""
    message: str = "a fault that a test has planted"
    retry_after: int = 0
    """Seconds, for the header ``Retry-After``."""
    cut: bool = False
    """End the connection in place of an answer."""
    events: int = 0
    """For a watch that is cut ``after`` it has begun: so many events come first."""

    def matches(self, verb: str, target: Target | None) -> bool:
        """Whether a request is of those that are meant, apart from their number."""
        if self.verb and self.verb != verb:
            return False
        if target is None:
            return not (self.resource or self.namespace or self.name)
        return (
            (not self.resource or self.resource == resource_name(target))
            and (not self.namespace or self.namespace == target.namespace)
            and (not self.name or self.name == target.name)
        )

    def problem(self) -> ApiProblem | None:
        """The failure to answer with, if there is one."""
        if not self.code:
            return None
        reason = self.reason or REASONS.get(self.code, "InternalError")
        return ApiProblem(self.code, reason, self.message, retry_after=self.retry_after)


class Planted:
    """A fault that waits for its requests."""

    def __init__(self, fault: Fault) -> None:
        self.fault = fault
        self.seen = 0
        """How many requests matched."""

    @property
    def hits(self) -> int:
        """How many requests it made go wrong."""
        beyond = max(0, self.seen - self.fault.skip)
        return min(beyond, self.fault.times) if self.fault.times else beyond

    def take(self) -> bool:
        """Count a matching request; True if it is to go wrong."""
        before = self.hits
        self.seen += 1
        return self.hits > before


class Cuttable(Protocol):
    """A watch under way."""

    target: Target | None

    def cut(self) -> None: ...


class Faults:
    """What is planted at one server."""

    def __init__(self) -> None:
        self._planted: list[Planted] = []
        self._watches: set[Cuttable] = set()
        self._forget: Callable[[], None] | None = None

    def __bool__(self) -> bool:
        """Whether anything is planted."""
        return bool(self._planted)

    def attach(self, forget: Callable[[], None]) -> None:
        """Used by the server: how its history is forgotten."""
        self._forget = forget

    def plant(self, fault: Fault) -> Planted:
        """From now on; of several that match, the one planted first hits."""
        planted = Planted(fault)
        self._planted.append(planted)
        return planted

    def clear(self) -> None:
        """Nothing goes wrong any more."""
        self._planted.clear()

    def take(self, request: ApiRequest) -> Fault | None:
        """What is to happen to a request; it counts as one of those that matched."""
        target = target_of(request.path)
        verb = verb_of(request, target)
        hit: Fault | None = None
        for planted in self._planted:
            if planted.fault.matches(verb, target) and hit is None and planted.take():
                hit = planted.fault
        return hit

    def cut_watches(self, resource: str = "", *, namespace: str = "") -> int:
        """Cut the connections of watches under way; says how many there were."""
        meant = Fault(resource=resource, namespace=namespace)
        found = [each for each in self._watches if meant.matches("watch", each.target)]
        for watch in found:
            watch.cut()
        return len(found)

    def expire_history(self) -> None:
        """Have the server forget all of its past, as if it had gone on for long."""
        if self._forget is None:
            raise RuntimeError("These faults belong to no server yet.")
        self._forget()

    def begun(self, watch: Cuttable) -> None:
        """Used by the server: a watch is under way."""
        self._watches.add(watch)

    def ended(self, watch: Cuttable) -> None:
        """Used by the server: it is over."""
        self._watches.discard(watch)


def resource_name(target: Target) -> str:
    """How faults name a resource: ``pods``, ``deployments.apps``, ``pods/status``."""
    name = f"{target.resource}.{target.group}" if target.group else target.resource
    return f"{name}/{target.subresource}" if target.subresource else name


def verb_of(request: ApiRequest, target: Target | None) -> str:
    """The verb of the Kubernetes API that a request is."""
    method = request.method
    if target is None:
        return method.lower()
    if method in ("GET", "HEAD"):
        if request.flag("watch"):
            return "watch"
        return "get" if target.name else "list"
    if method == "DELETE":
        return "delete" if target.name else "deletecollection"
    return VERBS.get(method, method.lower())
