"""Laws of conversion, told by the server that stores one version and serves two."""

from __future__ import annotations

from typing import Any

import pytest

from tests.runtime.webhooks.sites import (
    GROUP,
    OldSite,
    Site,
    SiteSpec,
    down,
    operator,
    serving,
    up,
)
from trimtab import Metadata, crd
from trimtab.client import Client
from trimtab.client.errors import ServerError
from trimtab.testing import Cluster, eventually


def site(version: str, name: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": f"{GROUP}/{version}",
        "kind": "Site",
        "metadata": {"name": name},
        "spec": spec,
    }


async def stored_as(client: Client, version: str) -> None:
    """Have the server store one of the versions, and wait until it does."""
    definition = crd(OldSite, Site)
    del definition["spec"]["conversion"]
    for each in definition["spec"]["versions"]:
        each["storage"] = each["name"] == version
    await client.apply(definition, manager="trimtab-testing", force=True)


async def test_objects_of_two_stored_versions_are_read_and_written_in_both(
    cluster: Cluster, namespace: str
) -> None:
    app = operator()
    app.converts(OldSite, Site)(up).back(down)
    async with serving(app, cluster, namespace) as (client, _):
        await stored_as(client, "v1")

        async def converts() -> bool:
            made = await client.create(site("v2", "x", address="h:1"), dry_run=True)
            return bool(made["spec"].get("address"))

        await eventually(converts)
        old = await client.create(site("v1", "a", host="h", port="1", note="n"))
        await stored_as(client, "v2")
        await client.create(site("v2", "b", address="i:2", color="red"))
        news = [each async for each in client.list(Site, namespace=namespace)]
        assert [each.spec.address for each in news] == ["h:1", "i:2"]
        olds = [each async for each in client.list(OldSite, namespace=namespace)]
        assert [(each.spec.host, each.spec.note) for each in olds] == [
            ("h", "n"),
            ("i", ""),
        ]
        # A write in the new version loses nothing that only the old one knows.
        await client.patch(Site, "a", {"spec": {"address": "j:3", "color": "blue"}})
        found = await client.get(OldSite, "a")
        assert (found.spec.host, found.spec.port, found.spec.note) == ("j", "3", "n")
        await client.patch(OldSite, "a", {"spec": {"port": "4"}})
        new = await client.get(Site, "a")
        assert (new.spec.address, new.spec.color) == ("j:4", "blue")
        await client.patch(OldSite, "b", {"spec": {"note": "m"}})
        assert (await client.get(Site, "b")).spec == SiteSpec(
            address="i:2", color="red"
        )
        assert (await client.get(OldSite, "b")).spec.note == "m"
        assert old["metadata"]["uid"] == new.metadata.uid
        for name in "ab":
            await client.delete(Site, name)


async def test_what_cannot_be_converted_is_named(
    cluster: Cluster, namespace: str
) -> None:
    app = operator()

    @app.converts(OldSite, Site)
    def strict(old: OldSite) -> Site:
        if old.spec.host == "bad":
            raise KeyError("secret")
        return up(old)

    strict.back(down)
    async with serving(app, cluster, namespace) as (client, _):
        await stored_as(client, "v2")

        async def refuses() -> bool:
            said = rf"Site {namespace}/a cannot be converted to {GROUP}/v2: its "
            with pytest.raises(ServerError, match=said + "function raised KeyError"):
                await client.create(site("v1", "a", host="bad"), dry_run=True)
            return True

        await eventually(refuses)
        made = await client.create(
            Site(metadata=Metadata(name="b"), spec=SiteSpec(address="h:1"))
        )
        assert made.spec.address == "h:1"
        await client.delete(Site, "b")
