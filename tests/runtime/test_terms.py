"""Of a term that is over nothing is kept, whatever was still to come in it."""

from __future__ import annotations

import asyncio
import gc
import weakref

from tests.runtime.operating import Shop, client_in, here, manager_of, options, shop
from trimtab import Context, Operator, Result
from trimtab.testing import Cluster, eventually


async def test_the_queue_of_a_term_goes_with_it_though_timers_are_due_later(
    cluster: Cluster, namespace: str
) -> None:
    app = Operator("terms", leader=False)

    @app.reconciles(Shop, scope=here(namespace))
    async def look(site: Shop, ctx: Context) -> Result:
        return ctx.done(after=3600.0)

    async with client_in(cluster, namespace) as client:
        await client.create(shop("corner"))
        manager = manager_of(app, cluster, client, options=options(namespace))
        [controller] = manager.controllers
        controller.watch(manager.cache)
        async with asyncio.TaskGroup() as group:
            caches = group.create_task(manager.cache.run())
            term = group.create_task(controller.run())
            await eventually(lambda: controller.history.of((namespace, "corner")))
            assert controller.queue is not None
            queue = weakref.ref(controller.queue)
            term.cancel()
            await asyncio.wait([term])
            caches.cancel()
        del term
        gc.collect()
        assert queue() is None
