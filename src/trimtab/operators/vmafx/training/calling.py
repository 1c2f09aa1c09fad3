"""Calling a trainer: over its HTTP, within a few seconds."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import msgspec

from trimtab.client import TrimtabError
from trimtab.client.calling import Caller, NoReply, Place, Reply
from trimtab.operators.vmafx.training.mirror import SaidHistory
from trimtab.operators.vmafx.training.tokens import bearer

BUDGET: Final = 5.0
"""Seconds for a call as a whole, connecting included."""
MOST: Final = 1 << 20
_JSON: Final = (("Content-Type", "application/json"),)


class Declined(TrimtabError):
    """A trainer answered that it did not do it."""


class NotKnown(TrimtabError):
    """A trainer does not know the token: it, or we, have not heard of a new one."""


class Trainers:
    """The way to all trainers: one HTTP client, for as long as :meth:`open` lasts."""

    def __init__(self, *, budget: float = BUDGET) -> None:
        self._budget = budget
        self._http: Caller | None = None

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Have the client, while the block runs."""
        calls = self._http = Caller()
        try:
            yield
        finally:
            self._http = None
            await calls.close()

    async def status(self, address: str) -> bytes | None:
        """What a trainer says of itself; None if it says nothing."""
        try:
            reply = await self._call(address, "GET", "/status")
        except NoReply:
            return None
        return reply.body if reply.status == 200 else None

    async def history(self, address: str) -> SaidHistory | None:
        """What a trainer knows of the past; None if it says nothing of it."""
        if not address:
            return None
        try:
            reply = await self._call(address, "GET", "/history")
            return msgspec.json.decode(reply.body, type=SaidHistory)
        except (NoReply, msgspec.DecodeError):
            return None

    async def pause(self, address: str, *, wanted: bool, token: str) -> None:
        """Have a trainer learn, or not. Errors: as :meth:`roll_back`."""
        await self._told(address, "/pause" if wanted else "/resume", {}, token)

    async def roll_back(self, address: str, version: str, *, token: str) -> None:
        """Have a trainer go on from an earlier version.

        Errors: :class:`Declined`; :class:`NotKnown`; ``NoReply`` without an answer.
        """
        await self._told(address, "/rollback", {"version": version}, token)

    async def _told(
        self, address: str, path: str, body: dict[str, str], token: str
    ) -> None:
        data = msgspec.json.encode(body)
        reply = await self._call(address, "POST", path, data, token)
        if reply.status == 401:
            raise NotKnown("The trainer does not know its token yet: it is told again.")
        if reply.status not in (200, 202, 204):
            said = reply.body[:500].decode(errors="replace").strip()
            raise Declined(f"The trainer refused {path}: {said or reply.status}")

    async def _call(
        self,
        address: str,
        method: str,
        path: str,
        body: bytes | None = None,
        token: str = "",
    ) -> Reply:
        assert self._http is not None, "it is open while the operator runs"
        return await self._http.call(
            place_of(address),
            method,
            path,
            headers=(*(_JSON if body is not None else ()), *bearer(token)),
            body=body,
            within=self._budget,
            limit=MOST,
        )


def place_of(address: str) -> Place:
    """The place that is written as HOST:PORT."""
    host, _, port = address.rpartition(":")
    return Place(host=host.strip("[]"), port=int(port), name=address, tls=False)
