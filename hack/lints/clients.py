"""Rule: clients and connections are handed in; only the wiring makes them.

A client per call never reuses a connection and dials while the work waits.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from hack.lints.source import Finding, Source

HOME = (
    "src/trimtab/client/",
    "src/trimtab/cli/",
    "src/trimtab/cli.py",
    "src/trimtab/testing/",
    "src/trimtab/sim/replica.py",
    # A worker is activated once in its life: nobody would reuse the channel to it.
    "src/trimtab/pool/grpccalls.py",
    # Opened once for the process, by the operator's own declaration.
    "src/trimtab/operators/vmafx/links.py",
)
# By top-level package: what makes a connection, wherever in it the name is found.
FOREIGN: dict[str, frozenset[str]] = {
    "aiohttp": frozenset({"ClientSession", "TCPConnector", "UnixConnector", "request"}),
    "grpc": frozenset({"insecure_channel", "secure_channel"}),
    "http": frozenset({"HTTPConnection", "HTTPSConnection"}),
    "urllib": frozenset({"urlopen"}),
}
# Of these, everything.
FOREIGN_PACKAGES = frozenset({"httpx", "kubernetes", "kubernetes_asyncio", "requests"})
# Wherever in `trimtab` they are imported from; `Client.connect(…)` counts as well.
OURS = frozenset({"Client", "HttpTransport", "connect"})


def makes_a_client(name: str) -> bool:
    package, *rest = name.split(".")
    if package == "trimtab":
        return not OURS.isdisjoint(rest)
    makers = FOREIGN.get(package, frozenset())
    return package in FOREIGN_PACKAGES or not makers.isdisjoint(rest[-1:])


def check(source: Source) -> Iterator[Finding]:
    if source.within(*HOME):
        return
    for call, name in source.calls():
        if makes_a_client(name):
            yield source.finding(
                call,
                f"{name} makes a client of its own: take the one that is handed to you"
                " as a parameter, so that connections are shared and bounded.",
            )
    for node in source.nodes:
        if isinstance(node, ast.ClassDef):
            yield from _inherits(source, node)


def _inherits(source: Source, node: ast.ClassDef) -> Iterator[Finding]:
    for base in node.bases:
        name = source.resolve(base)
        if name and makes_a_client(name):
            yield source.finding(
                base,
                f"class {node.name} is a {name} by another name: wrap the client that"
                " is handed to you, do not make a new kind.",
            )
