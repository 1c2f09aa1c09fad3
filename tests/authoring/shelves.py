"""What tests of definitions share: a kind, and definitions that were deployed once."""

from __future__ import annotations

import copy
import secrets
from collections.abc import Callable
from typing import Any, Literal

from trimtab import Metadata, Resource, Rule, Spec, Status, crd, field
from trimtab.api.resource import Info
from trimtab.client import Client
from trimtab.client.errors import NotFound
from trimtab.testing import eventually

Plain = dict[str, Any]
Change = Callable[[Plain], None]


class ShelfSpec(Spec, rules=[Rule(rule="self.boards <= 50", message="too high")]):
    """A shelf as the classes have it now."""

    wood: Literal["oak", "pine"] = "oak"
    boards: int = field(default=3, minimum=1, maximum=99)
    maker: str
    label: dict[str, str] = {}


class ShelfStatus(Status):
    """What became of it."""

    phase: str = ""
    books: int = 0


class Shelf(Resource, group="shelf.example.com", version="v1", plural="shelves"):
    """A kind for the tests of definitions."""

    spec: ShelfSpec
    status: ShelfStatus = ShelfStatus()


def wanted() -> Plain:
    """The definition of the classes, in a group that no other test has."""
    made = crd(Shelf)
    group = f"g{secrets.token_hex(4)}.example.com"
    made["spec"]["group"] = group
    made["metadata"]["name"] = f"shelves.{group}"
    return made


def deployed(definition: Plain, *changes: Change) -> Plain:
    """What was deployed before, when some things were different."""
    made = copy.deepcopy(definition)
    for change in changes:
        change(made)
    return made


def properties(definition: Plain, part: str = "spec") -> Plain:
    version = definition["spec"]["versions"][0]
    found: Plain = version["schema"]["openAPIV3Schema"]["properties"][part]
    return found


def info_of(definition: Plain) -> Info:
    spec = definition["spec"]
    return Info(
        group=spec["group"],
        version=spec["versions"][-1]["name"],
        kind=spec["names"]["kind"],
        plural=spec["names"]["plural"],
    )


async def defined(client: Client, definition: Plain) -> None:
    """Have the server serve it."""
    await client.create(definition)
    info = info_of(definition)

    async def is_served() -> bool:
        try:
            await client.list(info).next_page()
            await client.discovery.refresh()
            await client.discover(info.api_version, info.kind)
        except NotFound:
            return False
        return True

    await eventually(is_served, within=20)


async def put(client: Client, definition: Plain, name: str, **spec: Any) -> None:
    """Store a shelf."""
    info = info_of(definition)
    body = {
        "apiVersion": info.api_version,
        "kind": info.kind,
        "metadata": {"name": name},
        "spec": {"maker": "jo", **spec},
    }
    await client.create(body)


def shelf(name: str) -> Shelf:
    return Shelf(metadata=Metadata(name=name), spec=ShelfSpec(maker="jo"))
