"""Laws of evidence: the end of a log, whatever a node makes of the question."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.operators.sessions.pods import container, ended, pod, running, waiting
from trimtab.client import TrimtabError
from trimtab.operators.sessions import evidence
from trimtab.operators.sessions.kinds import APP


class Node:
    """A node as the client shows it: its lines, and then an error or nothing more."""

    def __init__(self, *lines: bytes, then: str = "") -> None:
        self.lines = lines
        self.then = then
        self.asked: list[Any] = []

    @asynccontextmanager
    async def logs(self, name: str, **options: Any) -> AsyncIterator[Any]:
        self.asked.append(options["container"])
        yield self._lines()

    async def _lines(self) -> AsyncIterator[bytes]:
        for line in self.lines:
            yield line
        if self.then == "hangs":
            await asyncio.Event().wait()
        if self.then:
            raise TrimtabError(self.then)


async def told(node: Any, found: Any) -> str:
    return await evidence.tail(node, found)


async def test_the_end_of_a_long_log_is_kept_and_not_its_beginning() -> None:
    node = Node(*(b"line %d" % number for number in range(5000)))
    said = await told(node, pod(container(ended(1))))
    assert said.endswith("line 4999")
    assert len(said) <= evidence.LARGEST


async def test_what_a_terminal_would_obey_or_nobody_can_read_is_not_kept() -> None:
    node = Node(b"\x1b[31mred\x00", b"caf\xff\xfe")
    said = await told(node, pod(container(ended(1))))
    assert all(each.isprintable() for each in said.replace("\n", ""))


@pytest.mark.parametrize("then", ["hangs", "there is no such log"])
async def test_a_node_that_fails_delays_nobody_and_what_came_is_kept(
    then: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evidence, "_SECONDS", 0.05)
    node = Node(b"first", then=then)
    assert await told(node, pod(container(ended(1)))) == "first"


async def test_it_is_the_log_of_the_container_that_it_is_about() -> None:
    node = Node()
    hydrate = container(ended(1), "init-hydrate")
    await told(node, pod(container(waiting("PodInitializing")), first=(hydrate,)))
    await told(node, pod(container(ended(1)), container(running(), "state-sync")))
    assert node.asked == ["init-hydrate", APP]


async def test_where_nothing_ran_nobody_is_asked() -> None:
    node = Node()
    assert await told(node, pod(node="")) == ""
    assert await told(node, pod(container(waiting("ErrImagePull")))) == ""
    assert node.asked == []
