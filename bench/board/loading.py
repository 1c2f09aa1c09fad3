"""Loading: objects that are made once, with their status, many at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from bench.peers.scoreboard_probe import size_of
from trimtab.client import Client

WRITERS = 32
"""Objects that are being created at once; more do not make the server faster."""


class Written(NamedTuple):
    """An object to be created, and the status that is reported of it then."""

    body: dict[str, Any]
    status: dict[str, Any] | None = None

    @property
    def size(self) -> int:
        """What a program adds to its checksum for it."""
        return size_of(self.body | {"status": self.status})


class Loaded(NamedTuple):
    """What was created: how many, their part of the checksum, and uids by name."""

    objects: int
    checksum: int
    uids: dict[str, str]

    def __add__(self, other: object) -> Loaded:
        assert isinstance(other, Loaded)
        return Loaded(self.objects + other.objects, self.checksum + other.checksum, {})


async def create(client: Client, objects: Iterable[Written]) -> Loaded:
    """Create all, in any order; two writes for whatever has a status."""
    uids: dict[str, str] = {}
    sizes: list[int] = []
    left = iter(objects)
    async with asyncio.TaskGroup() as group:
        for _ in range(WRITERS):
            group.create_task(_write(client, left, uids, sizes))
    return Loaded(len(sizes), sum(sizes), uids)


async def _write(
    client: Client, left: Iterator[Written], uids: dict[str, str], sizes: list[int]
) -> None:
    """Take the next object until there is none."""
    for each in left:
        metadata = each.body["metadata"]
        made = await client.create(each.body, manager="backend")
        uids[metadata["name"]] = made["metadata"]["uid"]
        if each.status is None:
            continue
        sizes.append(each.size)
        info = await client.discover(each.body["apiVersion"], each.body["kind"])
        await client.patch(
            info,
            metadata["name"],
            {"status": each.status},
            namespace=metadata["namespace"],
            subresource="status",
            manager="operator",
        )
