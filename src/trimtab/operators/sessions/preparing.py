"""Preparing: what a runner is told and given, brought together before there is one.

What does not depend on one another is done at once. A session that waits for a warm
worker is prepared meanwhile, so that the worker is told as soon as it is there. What
was prepared is kept for that one start; another process prepares it anew.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from trimtab.cache import Key
from trimtab.operators.sessions import copies, facts, podspec
from trimtab.operators.sessions.access import Access
from trimtab.operators.sessions.decisions import Seen
from trimtab.operators.sessions.environment import KUBERNETES_TOKEN, Facts
from trimtab.operators.sessions.kinds import AgenticSession
from trimtab.operators.sessions.profiles import Profile, Registry
from trimtab.operators.sessions.settings import Settings
from trimtab.operators.sessions.variables import Reads, variables
from trimtab.runtime import Context

Plain = dict[str, Any]
KEPT: Final = 256
"""Starts that are remembered; one that was forgotten is prepared again."""


class Ground(msgspec.Struct, frozen=True, kw_only=True):
    """What a session finds in its project."""

    facts: Facts
    reads: Reads

    def __repr__(self) -> str:
        return f"Ground({self.facts})"


class Prepared(msgspec.Struct, frozen=True, kw_only=True):
    """A runner that only has to be made. No repr has its tokens."""

    of: object
    ground: Ground
    body: Plain
    """The pod that it would have."""
    token: str
    """What it shows to the API server."""

    def __repr__(self) -> str:
        return f"Prepared({self.of})"

    async def environment(self) -> dict[str, str]:
        """The variables of its runner, as a kubelet would make them."""
        return await variables(self.ground.reads, self.body["spec"]["containers"][0])


def start_of(seen: Seen) -> object:
    """All that what is prepared depends on, but for what is in secrets."""
    metadata, status, project = seen.session.metadata, seen.status, seen.project
    return (
        metadata.uid,
        metadata.generation,
        frozenset(metadata.annotations.items()),
        (status.startTime, status.restarts, status.firstStartedAt),
        project.metadata.resourceVersion if project is not None else "",
    )


class Preparer:
    """Prepares starts.

    Flow: ``ground``, which says whether a session can start at all, then ``prepare``;
    ``kept`` is what an earlier look at the same start came to; ``forget`` when there is
    a runner, or nobody wants one.
    """

    def __init__(
        self, settings: Settings, *, access: Access, registry: Registry
    ) -> None:
        self._settings = settings
        self._access = access
        self._registry = registry
        self._kept: dict[Key, Prepared] = {}

    def kept(self, seen: Seen) -> Prepared | None:
        """What was prepared for this very start, in this process."""
        found = self._kept.get(seen.session.key)
        return found if found is not None and found.of == start_of(seen) else None

    def keep(self, session: AgenticSession, prepared: Prepared) -> None:
        """Remember what was prepared until it is of use."""
        if len(self._kept) >= KEPT:
            del self._kept[next(iter(self._kept))]
        self._kept[session.key] = prepared

    def forget(self, session: AgenticSession) -> None:
        self._kept.pop(session.key, None)

    async def ground(self, seen: Seen, ctx: Context) -> Ground:
        """What is there for a session, secrets that are copied for it included.

        Errors: :class:`facts.Missing` for what it cannot start without.
        """
        client, namespace = ctx.client, seen.session.metadata.namespace
        reads = Reads(client, namespace)
        copied = await copies.ensure(
            client, namespace, project=seen.project, settings=self._settings
        )
        found = await facts.gather(
            reads,
            seen.session,
            settings=self._settings,
            registry=self._registry,
            copied=copied,
        )
        return Ground(facts=found, reads=reads)

    async def prepare(self, seen: Seen, ctx: Context, ground: Ground) -> Prepared:
        """Tokens that are new, and the pod that would be made."""
        secret = await self._access.issue(ctx, seen.session)
        ground.reads.put(secret)
        body = podspec.pod(
            seen.session,
            project=seen.project,
            settings=self._settings,
            profile=self.profile(seen.session),
            facts=ground.facts,
        )
        token = secret.data[KUBERNETES_TOKEN].decode()
        return Prepared(of=start_of(seen), ground=ground, body=body, token=token)

    def profile(self, session: AgenticSession) -> Profile:
        """What kind of runner a session has."""
        return self._registry.of(session)
