"""Records how a real API server treats custom resources, for the embedded one to match.

Definitions and objects of :mod:`hack.crd_corpus` are posted to a real control plane;
what it answers (the object with its defaults, or the Status with its causes, and any
warnings) is written down beside what was asked. To make the facts again::

    python -m hack.record_crd_facts

Needs the programs that `make test-cluster` builds. The same corpus gives the same
questions; answers are free of times and identifiers, so a second run changes only the
order of causes where the real server goes over a map, which it does in any order.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import re
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any, Final

from hack.crd_corpus import broken, definitions, ratchets, rules, schemas, values
from hack.crd_corpus.cases import Case, case_definition
from hack.crd_corpus.server import (
    CRDS,
    TABLE,
    Server,
    every,
    filled,
    path_of,
    real_server,
    settled,
    until,
)

JSON = dict[str, Any]

OUTPUT: Final = Path(__file__).resolve().parents[1] / "tests" / "embedded" / "data"
_DRY: Final = {"dryRun": "All"}
# The real server calls the type of an object by the time at which it compiled a rule.
_TYPE_NAME: Final = re.compile(r"selfType\d+")
_RANDOM_SCHEMAS: Final = 24
_RANDOM_OBJECTS: Final = 16


async def record_broken(server: Server) -> list[JSON]:
    """Definitions that are only tried."""

    async def one(label: str, crd: JSON) -> JSON:
        answer = await server.ask("POST", CRDS, crd, fieldValidation="Strict", **_DRY)
        return {"label": label, "crd": crd, "answer": answer}

    return await every(one(label, crd) for label, crd in broken.broken())


async def record_updates(server: Server) -> JSON:
    """A definition that exists, and what becomes of it."""
    crd = definitions.base()
    created = await server.establish(crd)
    path = f"{CRDS}/{crd['metadata']['name']}"

    async def one(label: str, changed: JSON) -> JSON:
        current = await server.raw("GET", path)
        tried = _following(current, changed)
        answer = await server.ask("PUT", path, tried, **_DRY)
        old = settled(current)
        return {"label": label, "old": old, "crd": changed, "answer": answer}

    tries = [await one(label, changed) for label, changed in broken.updates()]
    rivals = [await _rival(server, crd) for crd in definitions.rivals()]
    return {"created": created, "updates": tries, "rivals": rivals}


async def _rival(server: Server, crd: JSON) -> JSON:
    """What becomes of a definition that wants the names of one that is there."""
    await server.ask("POST", CRDS, crd)

    async def judged() -> JSON | None:
        answer = await server.ask("GET", f"{CRDS}/{crd['metadata']['name']}")
        return answer if answer["body"]["status"].get("conditions") else None

    return {"crd": crd, "answer": await until(judged)}


def _following(current: JSON, changed: JSON) -> JSON:
    """The changed object as what replaces the current one."""
    version = current["metadata"]["resourceVersion"]
    return {**changed, "metadata": {**changed["metadata"], "resourceVersion": version}}


async def record_objects(
    server: Server, crd: JSON, bodies: Iterable[JSON], *, check: str = "Warn"
) -> JSON:
    """Creations of objects of one definition."""
    established = await server.establish(crd)
    if established["code"] not in (200, 201):
        return {"crd": crd, "answer": established, "objects": []}
    objects = await every(_created(server, crd, body, check) for body in bodies)
    return {"crd": crd, "answer": established, "objects": objects}


async def _created(server: Server, crd: JSON, body: JSON, check: str) -> JSON:
    posted = filled(crd, body)
    answer = await server.ask(
        "POST", path_of(crd), posted, fieldValidation=check, **_DRY
    )
    return {"object": body, "check": check, "answer": answer}


async def record_changes(
    server: Server, crd: JSON, pairs: list[tuple[Any, Any]]
) -> list[JSON]:
    """Replacements: the old object is stored, the new one only tried."""

    async def one(index: int, old: JSON, new: JSON) -> JSON:
        name = f"old-{index}"
        stored = await server.raw("POST", path_of(crd), filled(crd, old, name=name))
        if stored.get("kind") == "Status":
            return {"old": old, "object": new, "refused": settled(stored)}
        changed = _following(stored, filled(crd, new, name=name))
        path = f"{path_of(crd)}/{name}"
        answer = await server.ask("PUT", path, changed, fieldValidation="Warn", **_DRY)
        return {"old": old, "object": new, "answer": answer}

    return await every(one(index, old, new) for index, (old, new) in enumerate(pairs))


async def record_statuses(server: Server, crd: JSON, statuses: list[Any]) -> list[JSON]:
    """Writes of the status subresource of one stored object."""
    name = "with-status"
    empty = filled(crd, {"spec": {}}, name=name)
    stored = await server.raw("POST", path_of(crd), empty)

    async def one(status: Any) -> JSON:
        body = {"spec": {"digit": 99}, "status": status}
        changed = _following(stored, filled(crd, body, name=name))
        path = f"{path_of(crd)}/{name}/status"
        answer = await server.ask("PUT", path, changed, fieldValidation="Warn", **_DRY)
        return {"status": status, "answer": answer}

    return await every(one(status) for status in statuses)


async def record_everything(server: Server) -> JSON:
    """The schema with every keyword: creations, changes and statuses."""
    crd = definitions.definition(
        "wholes", schemas.everything(), subresources={"status": {}}
    )
    found = await record_objects(server, crd, values.by_hand())
    for check in ("Strict", "Ignore"):
        found["objects"] += await every(
            _created(server, crd, body, check) for body in values.ROOTS
        )
    found["changes"] = await record_changes(server, crd, values.CHANGES)
    found["statuses"] = await record_statuses(server, crd, values.STATUSES)
    return found


async def record_ratcheting(server: Server) -> list[JSON]:
    """Objects that a newer schema refuses, changed while the bad part stays."""
    crd, stored = ratchets.tight(), ratchets.STORED
    await server.establish(ratchets.loose())
    body = filled(crd, {"spec": stored}, name="old")
    old = await server.raw("POST", path_of(crd), body)
    path = f"{CRDS}/{crd['metadata']['name']}"
    updated = await server.ask(
        "PUT", path, _following(await server.raw("GET", path), crd)
    )
    assert updated["code"] == 200, updated

    async def one(change: JSON) -> JSON:
        changed = {"spec": {**stored, **change}}
        tried = _following(old, filled(crd, changed, name="old"))
        answer = await server.ask("PUT", f"{path_of(crd)}/old", tried, **_DRY)
        return {"object": changed, "answer": answer}

    async def refused() -> bool | None:
        """Whether the handler has learnt of the new schema, which a watch tells it."""
        found = await one(ratchets.REFUSED)
        return True if found["answer"]["code"] == 422 else None

    await until(refused)
    changes = [await one(change) for change in ratchets.CHANGES]
    return [{"crd": crd, "old": {"spec": stored}, "changes": changes}]


async def record_random(server: Server) -> list[JSON]:
    """Random schemas with random objects."""

    async def one(seed: int) -> JSON:
        schema = schemas.Maker(seed).root()
        crd = definitions.definition(f"random{seed}s", schema)
        filler = values.Filler(seed)
        bodies = [
            filler.body(schema, mistakes=0.05 * (index % 4))
            for index in range(_RANDOM_OBJECTS)
        ]
        return await record_objects(server, crd, bodies)

    return await every(one(seed) for seed in range(_RANDOM_SCHEMAS))


async def record_rules(server: Server) -> list[JSON]:
    """Rules: does the definition compile, and what does it say of each value?"""

    async def one(index: int, case: Case) -> JSON:
        crd = case_definition(index, case)
        if not case.values and not case.changes:
            answer = await server.ask("POST", CRDS, crd, **_DRY)
            return {"crd": crd, "answer": answer, "objects": []}
        bodies = [{"spec": {"value": value}} for value in case.values]
        found = await record_objects(server, crd, bodies)
        if found["answer"]["code"] == 200:
            pairs = [
                ({"spec": {"value": old}}, {"spec": {"value": new}})
                for old, new in case.changes
            ]
            found["changes"] = await record_changes(server, crd, pairs)
        return found

    return await every(one(index, case) for index, case in enumerate(rules.cases()))


async def record_panels(server: Server) -> JSON:
    """Tables, the scale subresource and what discovery says."""
    crd = definitions.served()
    found = await record_objects(server, crd, definitions.PANELS)
    found["stored"] = [
        await _panel(server, crd, body, f"panel-{index}")
        for index, body in enumerate(definitions.PANELS)
    ]
    listed = await server.raw("GET", f"/apis/{definitions.GROUP}/v1")
    found["discovery"] = [
        each
        for each in listed["resources"]
        if each["name"].partition("/")[0] == "panels"
    ]
    return found


async def _panel(server: Server, crd: JSON, body: JSON, name: str) -> JSON:
    stored = await server.raw("POST", path_of(crd), filled(crd, body, name=name))
    if stored.get("kind") == "Status":
        return {"object": body, "refused": settled(stored)}
    path, other = f"{path_of(crd)}/{name}", f"{path_of(crd, 'v2')}/{name}"
    if body.get("status"):
        written = {**stored, "status": body["status"]}
        await server.ask("PUT", f"{path}/status", written)
    return {
        "object": body,
        "read": (await server.ask("GET", path))["body"],
        "read2": (await server.ask("GET", other))["body"],
        "tables": {"v1": await _table(server, path), "v2": await _table(server, other)},
        "scale": await server.ask("GET", f"{path}/scale"),
    }


async def _table(server: Server, path: str) -> JSON:
    """The columns and the cells, without those that tell how old a thing is."""
    table = await server.raw("GET", path, accept=TABLE)
    columns = table["columnDefinitions"]
    cells = [
        "" if column["type"] == "date" and cell and cell[0] != "<" else cell
        for column, cell in zip(columns, table["rows"][0]["cells"], strict=True)
    ]
    return {"columns": columns, "cells": cells}


def packed(facts: Any) -> bytes:
    text = json.dumps(facts, separators=(",", ":"), ensure_ascii=False, sort_keys=True)
    return gzip.compress(_TYPE_NAME.sub("selfType", text).encode(), mtime=0)


_RECORDERS: Final[dict[str, Callable[[Server], Awaitable[Any]]]] = {
    "crd_broken": record_broken,
    "crd_updates": record_updates,
    "crd_everything": record_everything,
    "crd_random": record_random,
    "crd_ratcheting": record_ratcheting,
    "crd_rules": record_rules,
    "crd_panels": record_panels,
}


async def main() -> None:
    async with real_server() as server:
        for name, recorder in _RECORDERS.items():
            facts = await recorder(server)
            file = OUTPUT / f"{name}.json.gz"
            file.write_bytes(packed(facts))
            print(f"{file}: {file.stat().st_size} bytes")


if __name__ == "__main__":
    asyncio.run(main())
