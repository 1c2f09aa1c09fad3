"""Records what a real API server makes of writes by several managers, and of patches.

Random histories of :mod:`hack.apply_corpus` are played on a real control plane; what it
answers to each step is written down beside what was asked, with the entries of
``metadata.managedFields``. To make the facts again::

    python -m hack.record_apply_facts

Needs the programs that `make test-cluster` builds. A managed entry's time says at which
step it was written: all histories take a step at a time, more than a second apart,
and times are written down as the number of the step. The questions are the same each
time, so a second run changes nothing unless the server does.
"""

from __future__ import annotations

import asyncio
import copy
import gzip
import json
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from hack.apply_corpus import patches, refusals, things
from hack.apply_corpus.kinds import CONFIG_MAP, DEPLOYMENT, POD, SERVICE, Kind
from hack.apply_corpus.sequences import Crowd, Scaled, Sequence
from trimtab.client.config import load
from trimtab.client.errors import Disconnected
from trimtab.client.http import HttpTransport
from trimtab.client.transport import Progress, Request
from trimtab.testing.cluster import cluster

JSON = dict[str, Any]

OUTPUT = Path(__file__).resolve().parents[1] / "tests" / "embedded" / "data"
_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_PAUSE = 1.1
_TURNS = 16
_STEPS = 7
_COUNTS = (
    (things.THING, 160),
    (CONFIG_MAP, 40),
    (DEPLOYMENT, 70),
    (POD, 40),
    (SERVICE, 40),
)
_SCALED = 24
_CROWDS, _CROWD_STEPS = 6, 20
_METHODS = {"create": "POST", "update": "PUT", "reset": "PUT", "claim": "PUT"}
_TYPES = {
    "apply": "application/apply-patch+yaml",
    "merge": "application/merge-patch+json",
    "json": "application/json-patch+json",
    "strategic": "application/strategic-merge-patch+json",
}


class Server:
    """A real API server."""

    def __init__(self, transport: HttpTransport) -> None:
        self._transport = transport
        self._turns = asyncio.Semaphore(_TURNS)

    async def ask(
        self, method: str, path: str, body: Any = None, kind: str = "", **query: str
    ) -> tuple[int, JSON]:
        """The code and the body of the answer."""
        request = Request(
            method=method,
            path=path,
            query=tuple(query.items()),
            headers=(
                ("Content-Type", kind or "application/json"),
                ("User-Agent", "agent/1"),
            ),
            body=None if body is None else json.dumps(body).encode(),
        )
        async with self._turns:
            try:
                response = await self._transport.send(request, progress=Progress())
            except Disconnected:  # it panics over some patches
                return 0, {}
            try:
                answer: JSON = json.loads(await response.read(limit=1 << 24))
            finally:
                response.close()
        return response.status, answer

    async def play(self, kind: Kind, name: str, step: JSON, **query: str) -> JSON:
        """The step, with what the server answered."""
        verb = step["verb"]
        path = kind.path if verb == "create" else f"{kind.path}/{name}"
        if "subresource" in step:
            path += f"/{step['subresource']}"
        if step.get("manager"):
            query["fieldManager"] = step["manager"]
        if step.get("force"):
            query["force"] = "true"
        method = _METHODS.get(verb, "PATCH")
        code, answer = await self.ask(
            method, path, step["body"], _TYPES.get(verb, ""), **query
        )
        return {**step, "code": code, "answer": answer}


@asynccontextmanager
async def server() -> AsyncIterator[Server]:
    """A fresh server that knows the custom kinds."""
    async with cluster("real") as real:
        transport = HttpTransport(load(kubeconfig=real.kubeconfig))
        try:
            asked = Server(transport)
            for plural, schema in (("things", things.SCHEMA),):
                await asked.ask("POST", _CRDS, things.definition(plural, schema))
            code = 404
            while code != 200:
                await asyncio.sleep(0.1)
                code, _ = await asked.ask("GET", things.THING.path)
            # The handler's schema is made a little after it first answers.
            await asyncio.sleep(1.0)
            yield asked
        finally:
            await transport.close()


async def play_all(asked: Server, sequences: Iterable[Sequence]) -> list[JSON]:
    """All histories at once, a step at a time."""
    sequences = list(sequences)
    told: list[JSON] = [{"kind": each.kind.name, "steps": []} for each in sequences]
    for number in range(max(each.steps for each in sequences)):
        turns = [
            _turn(asked, each, story, number)
            for each, story in zip(sequences, told, strict=True)
            if number < each.steps
        ]
        await asyncio.gather(*turns)
        await asyncio.sleep(_PAUSE)
    return told


async def _turn(asked: Server, sequence: Sequence, story: JSON, number: int) -> None:
    step = sequence.next()
    if step["verb"] == "create" and sequence.kind.defaults:
        # What the server would fill in is written by the client, so that the object
        # that is created is the object that was sent.
        tried = await asked.play(sequence.kind, sequence.name, step, dryRun="All")
        if tried["code"] == 201:
            step["body"] = _sendable(tried["answer"])
    played = await asked.play(sequence.kind, sequence.name, step)
    if played["code"] < 300 and step.get("subresource") == "scale":
        path = f"{sequence.kind.path}/{sequence.name}"
        _, played["answer"] = await asked.ask("GET", path)
    if played["code"] < 300:
        for entry in _entries(played["answer"]):
            if "time" in entry:
                sequence.times.setdefault(entry["time"], time_of(number))
        sequence.heard(copy.deepcopy(played["answer"]))
    story["steps"].append(_tidied(played, sequence.times))


def _sendable(answer: JSON) -> JSON:
    metadata = answer["metadata"]
    kept = (
        "name",
        "namespace",
        "labels",
        "annotations",
        "finalizers",
        "ownerReferences",
    )
    body = {**answer, "metadata": {k: metadata[k] for k in kept if k in metadata}}
    body.pop("status", None)
    for name in ("clusterIP", "clusterIPs"):  # a dry run has none to give
        (body.get("spec") or {}).pop(name, None)
    return body


def time_of(number: int) -> str:
    """The time that stands for a step."""
    return f"2026-01-01T00:00:{number:02d}Z"


def _entries(object: Any) -> list[JSON]:
    metadata = object.get("metadata") if isinstance(object, dict) else None
    return (metadata or {}).get("managedFields") or []


def _tidied(played: JSON, times: Mapping[str, str]) -> JSON:
    """Without what differs from run to run: times are those of the steps."""
    played = copy.deepcopy(played)
    for each in (played["answer"], played["body"]):
        metadata = each.get("metadata") if isinstance(each, dict) else None
        for name in ("uid", "resourceVersion", "creationTimestamp"):
            (metadata or {}).pop(name, None)
        for entry in _entries(each):
            if "time" in entry:
                entry["time"] = times.get(entry["time"], entry["time"])
        spec = each.get("spec") if isinstance(each, dict) else None
        if isinstance(spec, dict) and "clusterIP" in spec:
            spec.update(clusterIP="10.0.0.9", clusterIPs=["10.0.0.9"])
    details = played["answer"].get("details") or {}
    details.get("causes", []).sort(key=json.dumps)
    return played


def write(name: str, facts: Any) -> None:
    """The facts, the same bytes for the same facts."""
    text = json.dumps(facts, separators=(",", ":")).encode()
    path = OUTPUT / f"{name}.json.gz"
    path.write_bytes(gzip.compress(text, 9, mtime=0))
    print(f"{path.name}: {len(text)} bytes, {path.stat().st_size} compressed")


def histories() -> Iterable[Sequence]:
    seed = 0
    for kind, count in _COUNTS:
        for _ in range(count):
            seed += 1
            yield Sequence(kind, name=f"s{seed}", seed=seed, steps=_STEPS)
    for _ in range(_SCALED):
        seed += 1
        yield Scaled(DEPLOYMENT, name=f"s{seed}", seed=seed, steps=_STEPS)
    for kind in (things.THING, CONFIG_MAP):
        for _ in range(_CROWDS // 2):
            seed += 1
            yield Crowd(kind, name=f"s{seed}", seed=seed, steps=_CROWD_STEPS)


async def main() -> None:
    """Ask everything and write it down."""
    OUTPUT.mkdir(parents=True, exist_ok=True)
    async with server() as asked:
        write("refusals", await refusals.ask(asked))
        write("patches", await patches.ask(asked))
        write("histories", await play_all(asked, histories()))


if __name__ == "__main__":
    asyncio.run(main())
