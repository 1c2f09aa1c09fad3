"""Discovery: which resources a server has, asked once and kept for a bounded time.

The aggregated form (two requests in all) is asked for; a server that does not have it
answers with the legacy form, which takes one more request for each group and version.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

import msgspec

from trimtab.api.resource import Info
from trimtab.client.budget import budget, remaining
from trimtab.client.calls import Calls
from trimtab.client.errors import DeadlineExceeded, Forbidden, NotFound, ServerError
from trimtab.client.transport import Request

AGGREGATED = (
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,"
    "application/json"
)
# How long an answer is believed, and how soon a kind that was not there may be asked
# for again: a CRD may have come in the meantime.
LIFETIME = 600.0
MISS_LIFETIME = 2.0
MAX_RESOURCES = 50_000

logger = logging.getLogger("trimtab.client")


class _ResponseKind(msgspec.Struct):
    kind: str = ""


class _Resource(msgspec.Struct):
    resource: str = ""
    responseKind: _ResponseKind | None = None
    scope: str = ""


class _Version(msgspec.Struct):
    version: str = ""
    resources: list[_Resource] | None = None


class _Name(msgspec.Struct, frozen=True):
    name: str = ""


class _Group(msgspec.Struct):
    metadata: _Name = _Name()
    versions: list[_Version] | None = None
    name: str = ""


class _LegacyVersion(msgspec.Struct):
    groupVersion: str = ""


class _LegacyGroup(msgspec.Struct):
    versions: list[_LegacyVersion] | None = None


class _Groups(msgspec.Struct):
    """The answer of ``/api`` or ``/apis`` in either form."""

    kind: str = ""
    items: list[_Group] | None = None
    groups: list[_LegacyGroup] | None = None
    versions: list[str] | None = None


class _LegacyResource(msgspec.Struct):
    name: str
    kind: str
    namespaced: bool = False


class _LegacyResources(msgspec.Struct):
    groupVersion: str = ""
    resources: list[_LegacyResource] | None = None


class Discovery:
    """What a server serves, by apiVersion and kind."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._table: dict[tuple[str, str], Info] = {}
        self._asked_at = float("-inf")
        self._asking: asyncio.Future[None] | None = None

    async def find(
        self, api_version: str, kind: str, *, deadline: float | None = None
    ) -> Info:
        """The resource of a kind; asks the server again if it is not known (any more).

        Errors: :class:`NotFound` with the apiVersion and kind in its text.
        """
        found = self._table.get((api_version, kind))
        if self._age() > (MISS_LIFETIME if found is None else LIFETIME):
            await self.refresh(deadline=deadline)
            found = self._table.get((api_version, kind))
        if found is None:
            raise NotFound(
                f"the server has no {kind} in {api_version}; install its CRD, or check "
                "the spelling of apiVersion and kind",
                status=404,
                reason="NotFound",
            )
        return found

    async def all(self, *, deadline: float | None = None) -> Sequence[Info]:
        """Every resource that the server has."""
        if self._age() > LIFETIME:
            await self.refresh(deadline=deadline)
        return tuple(self._table.values())

    def _age(self) -> float:
        return asyncio.get_running_loop().time() - self._asked_at

    async def refresh(self, *, deadline: float | None = None) -> None:
        """Ask the server; callers that come meanwhile wait for the same answer.

        Guarantees: each caller's deadline holds for all of it, for the waiting and for
        the several requests together; who asks and fails fails alone.
        """
        with budget(self._calls.seconds(deadline)):
            before = self._asked_at
            while self._asking is not None:
                await _patiently(self._asking)
                if self._asked_at > before:
                    return  # else whoever asked has failed, and it is our turn
            self._asking = asyncio.get_running_loop().create_future()
            try:
                await self._ask()
            finally:
                self._asking.set_result(None)
                self._asking = None

    async def _ask(self) -> None:
        found = await self._of("/api") + await self._of("/apis")
        self._table = {
            (info.api_version, info.kind): info for info in found[:MAX_RESOURCES]
        }
        self._asked_at = asyncio.get_running_loop().time()

    async def _of(self, root: str) -> list[Info]:
        groups = await self._calls.call(
            Request(method="GET", path=root, headers=(("Accept", AGGREGATED),)),
            verb="discover",
            into=_Groups,
        )
        if groups.items is not None:
            return _aggregated(groups.items)
        versions = list(groups.versions or ())
        for group in groups.groups or ():
            versions += [version.groupVersion for version in group.versions or ()]
        found: list[Info] = []
        for version in versions:
            try:
                found += await self._legacy(f"{root}/{version}")
            except (NotFound, Forbidden, ServerError) as error:
                # One extension that is down must not hide all that is up.
                logger.warning("%s; its kinds are unknown until it answers.", error)
        return found

    async def _legacy(self, path: str) -> list[Info]:
        listed = await self._calls.call(
            Request(method="GET", path=path), verb="discover", into=_LegacyResources
        )
        group, _, version = listed.groupVersion.rpartition("/")
        return [
            Info(
                group=group,
                version=version,
                kind=each.kind,
                plural=each.name,
                namespaced=each.namespaced,
            )
            for each in listed.resources or ()
            if "/" not in each.name
        ]


async def _patiently(asking: asyncio.Future[None]) -> None:
    """Wait for who asks, for as long as our own budget allows."""
    try:
        async with asyncio.timeout(remaining()):
            await asyncio.shield(asking)
    except TimeoutError as error:
        raise DeadlineExceeded(
            "GET /apis: another call asks the server what it has, and got no answer in "
            "the time that this one had; is the server overloaded?"
        ) from error


def _aggregated(groups: Sequence[_Group]) -> list[Info]:
    return [
        Info(
            group=group.metadata.name,
            version=version.version,
            kind=each.responseKind.kind,
            plural=each.resource,
            namespaced=each.scope == "Namespaced",
        )
        for group in groups
        for version in group.versions or ()
        for each in version.resources or ()
        if each.responseKind is not None
    ]
