"""Playing: the corpus put to a server, whichever it is, and what it answers."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final

from hack.policy_corpus.bodies import JSON, path_of
from hack.policy_corpus.refused import refused
from hack.policy_corpus.scenarios import CRDS, Request, Scenario, scenarios
from hack.policy_corpus.typed import probe, typed
from trimtab.client import load
from trimtab.client import transport as wire
from trimtab.client.http import HttpTransport
from trimtab.testing import Cluster, eventually

Answers = dict[str, list[JSON]]
"""By scenario, in the order of its requests."""
_VOLATILE: Final = ("uid", "creationTimestamp", "resourceVersion")
_LIMIT: Final = 1 << 24
_STAMP: Final = re.compile(r"(?<=[a-z])[0-9]{3,}(?=[.,])")


class Player:
    """Asks one server."""

    def __init__(self, transport: HttpTransport) -> None:
        self._transport = transport

    async def ask(self, request: Request) -> JSON:
        """Code, body and warnings, without what differs from one run to the next."""
        body = None if request.body is None else json.dumps(request.body).encode()
        sent = wire.Request(
            method=request.method,
            path=request.path,
            query=tuple(request.query.items()),
            headers=(
                ("Accept", "application/json"),
                ("Content-Type", request.media),
                *([("Impersonate-User", request.user)] if request.user else []),
            ),
            body=body,
        )
        response = await self._transport.send(sent, progress=wire.Progress())
        try:
            text = bytes(await response.read(limit=_LIMIT))
        finally:
            response.close()
        found = json.loads(text) if text.startswith(b"{") else {"text": text.decode()}
        return {
            "code": response.status,
            "body": _settled(found),
            "warnings": list(response.headers("Warning")),
        }

    async def make(self, path: str, body: JSON) -> None:
        """Create something that has to be there."""
        answer = await self.ask(Request(method="POST", path=path, body=body))
        assert answer["code"] == 201, (path, answer)


def _settled(found: JSON) -> JSON:
    metadata = found.get("metadata") or {}
    for key in _VOLATILE:
        metadata.pop(key, None)
    for entry in metadata.get("managedFields") or ():
        entry.pop("time", None)
    generated = metadata.get("generateName")
    if generated:
        metadata["name"] = generated
    return found


@asynccontextmanager
async def playing(cluster: Cluster) -> AsyncIterator[Player]:
    """A player for the length of the block."""
    transport = HttpTransport(load(kubeconfig=cluster.kubeconfig))
    try:
        yield Player(transport)
    finally:
        await transport.close()


async def tried(cluster: Cluster) -> list[JSON]:
    """What a server says to each object of the corpus, without storing any."""
    async with playing(cluster) as player:
        dry = {"dryRun": "All"}
        return [
            await player.ask(
                Request(method="POST", path=path_of(each), body=each, query=dry)
            )
            for each in refused()
        ]


async def played(
    cluster: Cluster, settled: Callable[[Answers], Awaitable[bool]]
) -> Answers:
    """What a server says to each request, once all policies are in use.

    ``settled`` is asked with the answers to the first request of each scenario, which
    is only tried, until it is content with them.
    """
    made = list(scenarios())
    async with playing(cluster) as player:
        for scenario in made:
            await _set_up(player, scenario)
        while not await settled(await _first(player, made)):
            pass
        return {
            each.name: [await player.ask(request) for request in each.requests]
            for each in made
        }


async def _first(player: Player, made: list[Scenario]) -> Answers:
    found: Answers = {}
    for scenario in made:
        first = scenario.requests[0]
        dry = Request(
            method=first.method,
            path=first.path,
            body=first.body,
            media=first.media,
            user=first.user,
            query={**first.query, "dryRun": "All"},
        )
        found[scenario.name] = [await player.ask(dry)]
    return found


async def _set_up(player: Player, scenario: Scenario) -> None:
    for path, body in scenario.setup:
        await player.make(path, body)
        if body.get("kind") == "CustomResourceDefinition":
            await served(player, body)


async def served(player: Player, crd: JSON) -> None:
    """Wait until the objects of a definition can be made."""
    spec = crd["spec"]
    for version in spec["versions"]:
        where = f"/apis/{spec['group']}/{version['name']}/{spec['names']['plural']}"
        listed = Request(method="GET", path=where)

        async def is_served(listed: Request = listed) -> bool:
            return bool((await player.ask(listed))["code"] == 200)

        await eventually(is_served, within=30)


async def checked(cluster: Cluster) -> list[JSON]:
    """What is found in each typed policy of the corpus, on a cluster with controllers.

    The names of types, which differ from one run to the next, are cut short.
    """
    found = []
    async with playing(cluster) as player:
        for scenario in scenarios():
            for path, body in scenario.setup:
                if scenario.name == "custom" and path == CRDS:
                    await player.make(path, body)
                    await served(player, body)
        await _custom_kinds_are_known(player)
        for policy in typed():
            await player.make(path_of(policy), policy)
        for policy in typed():
            where = f"{path_of(policy)}/{policy['metadata']['name']}"
            found.append(await _status(player, where))
            await player.ask(Request(method="DELETE", path=where))
    return found


async def _custom_kinds_are_known(player: Player) -> None:
    """The controller that checks knows the kind: a real one forgets its map of kinds
    twice a minute, and checks each policy once, by the map that it has then."""
    tries = 0

    async def is_known() -> bool:
        nonlocal tries
        tries += 1
        policy = probe(tries)
        where = f"{path_of(policy)}/{policy['metadata']['name']}"
        await player.make(path_of(policy), policy)
        status = await _status(player, where)
        await player.ask(Request(method="DELETE", path=where))
        return bool(status["typeChecking"].get("expressionWarnings"))

    await eventually(is_known, within=60, every=0.5)


async def _status(player: Player, where: str) -> JSON:
    status: JSON = {}

    async def is_checked() -> bool:
        nonlocal status
        answer = await player.ask(Request(method="GET", path=where))
        status = answer["body"].get("status") or {}
        return "observedGeneration" in status

    await eventually(is_checked, within=30)
    shortened: JSON = json.loads(_STAMP.sub("", json.dumps(status)))
    return shortened


async def cleared(cluster: Cluster) -> None:
    """Take away what was set up, so that nobody else is asked by these policies."""
    async with playing(cluster) as player:
        for scenario in scenarios():
            for path, body in reversed(scenario.setup):
                where = f"{path}/{body['metadata']['name']}"
                await player.ask(Request(method="DELETE", path=where))
