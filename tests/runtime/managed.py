"""An operator as a process of its own, with a lease that is quickly lost.

It says on a line when it has reconciled something. SIGTERM stops it gracefully.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.runtime.operating import Shop, here, manager_of, options
from tests.runtime.replicas import SOURCE
from trimtab import Client, Context, Operator, load
from trimtab.runtime.signals import Signals
from trimtab.testing import Cluster

ROOT = SOURCE.removesuffix("/src")


async def main(kubeconfig: str, namespace: str) -> None:
    app = Operator("shops")

    @app.reconciles(Shop, scope=here(namespace))
    async def tell(site: Shop, ctx: Context) -> None:
        print(site.metadata.name, flush=True)

    async with Client(load(kubeconfig=kubeconfig, namespace=namespace)) as client:
        quick = options(namespace, duration=3.0)
        manager = manager_of(app, kubeconfig, client, options=quick)
        with Signals(manager.stop):
            await manager.run()


@asynccontextmanager
async def beside(
    cluster: Cluster, namespace: str
) -> AsyncIterator[asyncio.subprocess.Process]:
    """The operator in a process of its own, which is killed at the end."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.runtime.managed"),
        *(str(cluster.kubeconfig), namespace),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": SOURCE},
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
