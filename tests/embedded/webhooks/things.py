"""Things: a custom kind of two versions, which a webhook converts into each other.

In v1 a host and a port are two fields, in v2 one.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from copy import deepcopy
from typing import Any

from tests.embedded.asking import Asker
from tests.embedded.webhooks.desk import Desk
from trimtab.testing import eventually

Plain = dict[str, Any]
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
FIELDS = {"v1": ("host", "port", "note"), "v2": ("address", "note")}


class Things:
    """Where the kind is served, and what objects of it look like."""

    def __init__(self, ask: Asker, group: str) -> None:
        self.ask = ask
        self.group = group

    def path(self, version: str, name: str = "") -> str:
        path = self.ask.path("things", group=self.group, version=version)
        return f"{path}/{name}" if name else path

    def thing(self, version: str, name: str, **spec: str) -> Plain:
        return {
            "apiVersion": f"{self.group}/{version}",
            "kind": "Thing",
            "metadata": {"name": name},
            "spec": spec,
        }

    @property
    def definition(self) -> str:
        return f"{DEFINITIONS}/things.{self.group}"


def definition(group: str, desk: Desk, *, storage: str = "v1") -> Plain:
    webhook = {
        "clientConfig": desk.client("/convert"),
        "conversionReviewVersions": ["v1"],
    }
    return {
        "metadata": {"name": f"things.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": "things", "singular": "thing", "kind": "Thing"},
            "versions": [_version(each, storage) for each in FIELDS],
            "conversion": {"strategy": "Webhook", "webhook": webhook},
        },
    }


def _version(name: str, storage: str) -> Plain:
    fields = {each: {"type": "string"} for each in FIELDS[name]}
    schema = {
        "type": "object",
        "properties": {
            "spec": {"type": "object", "properties": fields},
            "status": {"type": "object", "properties": {"seen": {"type": "string"}}},
        },
    }
    return {
        "name": name,
        "served": True,
        "storage": name == storage,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
        "selectableFields": [{"jsonPath": f".spec.{FIELDS[name][0]}"}],
    }


def converted(obj: Plain, to: str) -> Plain:
    obj = deepcopy(obj)
    spec = obj.get("spec") or {}
    if to.endswith("v2") and "host" in spec:
        spec["address"] = f"{spec.pop('host')}:{spec.pop('port', '')}"
    if to.endswith("v1") and "address" in spec:
        spec["host"], _, spec["port"] = spec.pop("address").partition(":")
    return {**obj, "apiVersion": to}


def convert(request: Plain) -> Plain:
    to = request["desiredAPIVersion"]
    made = [converted(each, to) for each in request["objects"]]
    return {"result": {"status": "Success"}, "convertedObjects": made}


@asynccontextmanager
async def serving(ask: Asker, desk: Desk) -> AsyncIterator[Things]:
    """The kind is served for the length of the block."""
    things = Things(ask, f"g{secrets.token_hex(4)}.tests.trimtab.dev")
    desk.tell("/convert", convert)
    made = await ask("POST", DEFINITIONS, definition(things.group, desk))
    assert made.status == 201, made.body

    async def served() -> bool:
        return (await ask("GET", things.path("v2"))).status == 200

    await eventually(served, within=20, describe="things are served")
    try:
        yield things
    finally:
        await ask("DELETE", things.definition)
