"""What an operator declares to be open is open for as long as its handlers run."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.runtime.operating import Shop, here, shop
from trimtab import Context, Operator
from trimtab.testing import Cluster, running


async def test_what_is_opened_is_there_for_every_handler_and_closed_at_the_end(
    cluster: Cluster, namespace: str
) -> None:
    app = Operator("shops")
    said: list[str] = []

    @asynccontextmanager
    async def channel() -> AsyncIterator[None]:
        said.append("open")
        yield
        said.append("closed")

    @app.reconciles(Shop, scope=here(namespace))
    async def look(site: Shop, ctx: Context) -> None:
        said.append(site.metadata.name)
        ctx.condition("Seen", True, reason="Looked")

    app.opens(channel)
    assert said == []  # to declare is not to open
    async with running(app, cluster, namespace) as run:
        await run.client.create(shop("one"))
        await run.condition(Shop, "one", "Seen")
    assert (said[0], said[-1]) == ("open", "closed")
    assert set(said[1:-1]) == {"one"}
