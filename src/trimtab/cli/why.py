"""``trimtab why``: what made an object reconcile, and what it waits for."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from trimtab.cli import common

ABOUT = """
Ask a running operator about one object: what last made it reconcile and how that ended,
what it waits for and until when, what went wrong so far. Who wrote which of its fields,
and when, comes from the API server of the kubeconfig, if that can be reached.
"""


def add(commands: argparse._SubParsersAction[Any]) -> None:
    """Describe the arguments."""
    made = commands.add_parser("why", help="explain an object", description=ABOUT)
    made.set_defaults(run=run)
    made.add_argument("kind", metavar="KIND", help="Website, website or websites")
    made.add_argument("name", metavar="NAME", help="the object's name")
    made.add_argument(
        "-n",
        "--namespace",
        metavar="NAME",
        help="where it is (default: the context's namespace, else default)",
    )
    common.add_url(made)
    common.add_cluster(made)


def run(options: argparse.Namespace) -> int:
    """Print what is known."""
    namespace, fields = common.running(_fields(options))
    told = _told(options, namespace)
    lines = [line for each in told for line in explained(each)]
    print("\n".join([*lines, *fields]))
    return 0


def _told(options: argparse.Namespace, namespace: str) -> list[dict[str, Any]]:
    """What the operator says; a kind in no namespace is asked for without one."""
    from trimtab.cli import asking

    path = ("debug", "why", options.kind)
    found = asking.ask_json(options.url, *path, namespace, options.name)
    if found is None:
        raise asking.NoAnswer(
            f"The operator at {options.url} reconciles no {options.kind} (name the "
            "kind or its plural), or does not answer questions from here."
        )
    if not any(each["cached"] for each in found["controllers"]):
        other = asking.ask_json(options.url, *path, options.name)
        if other is not None and any(each["cached"] for each in other["controllers"]):
            found = other
    controllers: list[dict[str, Any]] = found["controllers"]
    return controllers


def explained(told: dict[str, Any]) -> Iterator[str]:
    """One controller's answer, in sentences."""
    yield f"{told['object']}, by the controller {told['controller']}:"
    if not told["cached"]:
        yield "  It is not there, or outside of the controller's scope."
    if told.get("paused"):
        yield "  It is paused: remove the annotation trimtab.dev/paused to go on."
    if not told.get("leads", True):
        yield "  This replica does not lead; ask the one that does for more."
    yield f"  last     {_last(told['last'])}"
    yield f"  next     {_next(told.get('waiting'))}"
    if errors := told.get("errors"):
        ago = _ago(errors["secondsAgo"])
        yield f"  errors   {errors['count']}, the last {ago}: {errors['last']}"
    else:
        yield "  errors   none since this process began"


def _last(last: dict[str, Any] | None) -> str:
    if last is None:
        return "not reconciled since this process began"
    causes = "; ".join(last["causes"]) or "no cause"
    writes = f"{last['writes']} write" + ("" if last["writes"] == 1 else "s")
    text = f"{_ago(last['secondsAgo'])}, because of: {causes}; {last['outcome']} "
    text += f"in {last['seconds']:.3f} s with {writes}"
    return f"{text}: {last['error']}" if last.get("error") else text


def _next(waiting: dict[str, Any] | None) -> str:
    if waiting is None:
        return "nothing is reconciled in this replica now"
    parts = ["it is being reconciled now"] if waiting["working"] else []
    if waiting["dueInSeconds"] is not None:
        seconds = max(0.0, waiting["dueInSeconds"])
        causes = "; ".join(waiting["causes"]) or "no cause"
        parts.append(f"in {seconds:.1f} s, because of: {causes}")
    elif not parts:
        parts.append("when something changes")
    if waiting["failures"]:
        parts.append(f"failed {waiting['failures']} times in a row")
    if waiting["held"]:
        parts.append("put off until something about it is new")
    return "; ".join(parts)


def _ago(seconds: float) -> str:
    return f"{seconds:.1f} s ago" if seconds < 120 else f"{seconds / 60:.0f} min ago"


async def _fields(options: argparse.Namespace) -> tuple[str, list[str]]:
    """The namespace, and who wrote which fields, as far as that can be found out."""
    from trimtab.client import Client
    from trimtab.client.errors import TrimtabError

    namespace = options.namespace
    try:
        config = common.config_of(options, namespace=namespace)
        namespace = config.namespace
        async with Client(config) as client:
            found = await _found(client, options.kind)
            obj = await client.get(found, options.name, deadline=5.0)
            return namespace, list(written(obj))
    except TrimtabError as error:
        return namespace or "default", [f"Who wrote it cannot be told: {error}"]


async def _found(client: Any, kind: str) -> Any:
    """The resource of a kind as people name it."""
    from trimtab.client.errors import NotFound

    for each in await client.discovery.all(deadline=5.0):
        if kind.lower() in (each.kind.lower(), each.plural):
            return each
    raise NotFound(f"the server has no {kind}", status=404, reason="NotFound")


def written(obj: dict[str, Any]) -> Iterator[str]:
    """Who wrote which fields, and when, from ``managedFields``."""
    yield "Written by:"
    for entry in obj["metadata"].get("managedFields") or ():
        part = f" ({entry['subresource']})" if entry.get("subresource") else ""
        when = entry.get("time", "at a time unknown")
        fields = ", ".join(sorted(_paths(entry.get("fieldsV1") or {})))
        yield f"  {when}  {entry.get('manager', '?')}{part}: {fields or 'nothing'}"


DEPTH = 3


def _paths(tree: dict[str, Any], above: str = "", depth: int = 0) -> Iterator[str]:
    """The fields of a set, a few levels deep."""
    names = {key[2:]: inner for key, inner in tree.items() if key.startswith("f:")}
    if not names or depth == DEPTH:
        if above:
            yield above
        return
    for name, inner in names.items():
        yield from _paths(inner, f"{above}.{name}" if above else name, depth + 1)
