"""Records what a real API server makes of built-in objects with a random flaw.

Objects that it takes are changed in one place at random, after the types of that
place, and it is asked whether they may be created so, or changed into that. Written is
``tests/embedded/data/builtin_random.jsonl.gz``, as ``record_builtin_facts.py`` does;
the same seed asks the same.

So, with the programs that ``hack/cluster/build.py`` builds::

    PYTHONPATH=src:. python hack/record_builtin_random.py [seed [changes of each kind]]
"""

from __future__ import annotations

import asyncio
import copy
import gzip
import json
import random
import sys
from collections.abc import Iterator
from typing import Any

from hack import record_builtin_facts as facts
from hack.builtin_cases.case import JSON, Case
from trimtab.client.config import load
from trimtab.client.http import HttpTransport
from trimtab.testing.cluster import cluster
from trimtab.testing.options import Options

ANSWERS = facts.FACTS.with_name("builtin_random.jsonl.gz")
SHAPES: dict[str, dict[str, str]] = json.loads(
    (facts.ROOT / "src/trimtab/embedded/builtin/data/shapes.json").read_text()
)
Path = tuple[str | int, ...]

WORDS = (
    "|a|A b|x.y/z|a-b|None|0|10.0.0.5|fd00::1|10.0.0.0/8|Always|Never|ClusterIP|"
    "NodePort|ExternalName|Exists|In|NotIn|Equal|RollingUpdate|Recreate|OnDelete|"
    "Indexed|NonIndexed|Pod|TCP|Deployment|apps/v1|Opaque|25%|*|kubernetes.io/tls|"
    "Local|Localhost|Resource|Prefix|https://a.b|*/5 * * * *|linux|windows|Bound"
).split("|")
KEYS = ("a", "b c", "cpu", "memory", "storage", "x.com/y")
VALUES: dict[str, tuple[Any, ...]] = {
    "s": tuple(WORDS),
    "i": (0, 1, -1, 80, 30000, 70000, 5, 2**31 - 1),
    "b": (True, False),
    "f": (1.5,),
    "y": ("AAEC", "eA=="),
    "q": ("1", "0", "-1", "1500m", "1Gi", "0.0001", 5),
    "x": (1, 80, "http", "25%", -1),
    "t": ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05.5+01:00"),
    "u": ("2026-01-02T03:04:05.000001Z",),
    "d": ("1m",),
    "j": ({"a": 1},),
}
METADATA = frozenset(("labels", "annotations", "finalizers"))
AVOIDED = frozenset(
    (
        "matchConditions",
        *("currentCPUUtilizationPercentage", "ipFamilies", "ipFamilyPolicy"),
        *("clusterIP", "clusterIPs", "nodePort", "healthCheckNodePort"),
        "deprecated.daemonset.template.generation",
        # Who asks is known to the server, and what a namespace is meant for.
        *("username", "uid", "groups", "extra", "adminAccess"),
        # Features that are off: what is dropped counts as a change.
        *("bools", "ints", "strings", "versions", "nodeAllocatableResourceMappings"),
    )
)
"""What is known to be different (see the list of limits), or each time."""


def plain(code: str) -> str:
    """A type without how its field is written."""
    return code.lstrip("!?*").rpartition("~")[2].lstrip("!?*")


def value(code: str, choose: random.Random, depth: int = 0) -> Any:
    """Something of a type; None where nothing would be left of it."""
    code = plain(code)
    if code[0] in VALUES:
        return choose.choice(VALUES[code[0]])
    if code[0] == "[":
        made = [
            value(code[1:], choose, depth + 1) for _ in range(choose.choice((1, 2)))
        ]
        return [each for each in made if each is not None] or None
    if code[0] == "{":
        inner = value(code[1:], choose, depth + 1)
        return None if inner is None else {choose.choice(KEYS): inner}
    fields = {}
    for name, inner_code in SHAPES[code[1:]].items():
        if name not in AVOIDED and choose.random() < 0.5 / (depth + 1):
            inner = value(inner_code, choose, depth + 1)
            if inner is not None:
                fields[name] = inner
    return fields or None


def places(code: str, given: Any, path: Path = ()) -> Iterator[tuple[Path, str]]:
    """Every field of an object, there or not, with its type."""
    code = plain(code)
    if path:
        yield path, code
    if given is None:
        return
    if code[0] == "@":
        for name, inner in SHAPES[code[1:]].items():
            yield from places(inner, given.get(name), (*path, name))
    elif code[0] == "[":
        for index, each in enumerate(given):
            yield from places(code[1:], each, (*path, index))
    elif code[0] == "{":
        for name, each in given.items():
            yield from places(code[1:], each, (*path, name))


def flawed(
    base: JSON, shape: str, choose: random.Random, *, status: bool
) -> tuple[JSON, str] | None:
    """An object that is different in one place, and which."""
    found = [
        (path, code)
        for path, code in places(f"@{shape}", base)
        if len(path) > 1
        and (path[0] == "status") == status
        and (path[0] != "metadata" or path[1] in METADATA)
        and not AVOIDED & set(path)
    ]
    if not found:
        return None
    (path, code), made = choose.choice(found), copy.deepcopy(base)
    target: Any = made
    for key in path[:-1]:
        target = target[key]
    last: Any = path[-1]
    there = isinstance(target, list) or last in target
    if there and len(target) > 1 and choose.random() < 0.25:
        del target[last]
        return made, f"{path} gone"
    new = value(code, choose)
    if new is None:
        return None
    target[last] = new
    return made, f"{path} {json.dumps(new)}"


def bases() -> dict[str, list[JSON]]:
    """Objects that have been taken, by kind."""
    found: dict[str, list[JSON]] = {}
    for line in gzip.decompress(facts.FACTS.read_bytes()).splitlines():
        row = json.loads(line)
        if "object" in row and "old" not in row and row["kind"] != "v1/Namespace":
            row["request"]["metadata"].pop("generateName", None)
            row["request"]["metadata"]["name"] = "r"
            found.setdefault(row["kind"], []).append(row["request"])
    return found


async def ask(
    server: facts.Server, kind: str, base: JSON, shape: str, choose: random.Random
) -> list[JSON]:
    """About creating one with a flaw, and about changing a good one into it."""
    rows = []
    code, old = await server.ask("POST", server.path(kind), base)
    if code >= 300:
        return []
    await server.remove(kind, old)
    if made := flawed(base, shape, choose, status=False):
        case = Case(kind=kind, name=f"create {made[1]}", create=made[0])
        rows.append(await facts.record(server, case))
    code, old = await server.ask("POST", server.path(kind), base)
    old["metadata"].pop("managedFields", None)
    uid, created = old["metadata"]["uid"], old["metadata"]["creationTimestamp"]
    for part in ("", "status") if "status" in SHAPES[shape] else ("",):
        made = flawed(old, shape, choose, status=bool(part))
        if made is None:
            continue
        path = server.path(kind, old["metadata"]["name"], part)
        code, body = await server.ask("PUT", path, made[0], query={"dryRun": "All"})
        if code in (404, 409):  # there is no such part, or the server wrote meanwhile
            continue
        rows.append(
            {
                "kind": kind,
                "name": f"update {made[1]}",
                "subresource": part,
                "old": facts.plain(old, uid, created),
                "request": facts.plain(made[0], uid, created),
                **facts.answer(code, body, uid, created),
            }
        )
    await server.remove(kind, old)
    return rows


async def main() -> None:
    """Start a server, ask, write."""
    seed, count = (*map(int, sys.argv[1:]), 1, 10)[:2] if sys.argv[1:] else (1, 10)
    choose, flags = (
        random.Random(seed),
        f"--disable-admission-plugins={','.join(facts.PLUGINS)}",
    )
    definitions = {
        f"{each['group']}/{each['version']}/{each['kind']}".lstrip("/"): each
        for each in map(json.loads, facts.RESOURCES.read_text().splitlines())
    }
    rows: list[JSON] = []
    async with cluster("real", options=Options(apiserver_flags=(flags,))) as ready:
        transport = HttpTransport(load(kubeconfig=ready.kubeconfig))
        server = facts.Server(transport)
        for kind, objects in sorted(bases().items()):
            shape = definitions[kind]["definition"].removeprefix("io.k8s.api.")
            shape = shape.removeprefix("io.k8s.kube-aggregator.pkg.apis.")
            for _ in range(count):
                base = copy.deepcopy(choose.choice(objects))
                rows += await ask(server, kind, base, shape, choose)
        await transport.close()
    lines = [json.dumps(row, separators=(",", ":"), sort_keys=True) for row in rows]
    ANSWERS.write_bytes(gzip.compress(("\n".join(lines) + "\n").encode(), mtime=0))
    print(f"{len(rows)} answers in {ANSWERS}")


if __name__ == "__main__":
    asyncio.run(main())
