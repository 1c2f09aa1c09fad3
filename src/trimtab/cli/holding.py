"""Holding: a worker of a pool, for as long as a claim is there or a command runs."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from trimtab.cli import common

if TYPE_CHECKING:
    from trimtab.client import Client
    from trimtab.pool.kinds import WorkerClaimStatus

LOOK_SECONDS = 0.2


async def claimed(options: argparse.Namespace) -> str:
    """Make a claim and wait until it is bound; what to tell about it.

    Errors: a sentence why it was not; the claim is gone then.
    """
    from trimtab.api import Metadata
    from trimtab.client import Client, TrimtabError
    from trimtab.pool.kinds import WorkerClaim, WorkerClaimSpec

    config = common.config_of(options, namespace=options.namespace)
    async with Client(config) as client:
        wanted = WorkerClaimSpec(
            pool=options.pool, tenant=options.tenant, shape=options.shape
        )
        metadata = Metadata(generateName=f"{options.pool}-")
        claim = await client.create(WorkerClaim(metadata=metadata, spec=wanted))
        name, bound = claim.metadata.name, False
        try:
            status = await _settled(client, name, within=options.wait)
            bound = status.state == "Bound"
            if not bound:
                told = [each.message for each in status.conditions.values()]
                why = " ".join(told) or await _unseen(client, options)
                raise TrimtabError(f"The claim {name} was not bound: {why}")
        finally:
            if not bound:
                await client.delete(WorkerClaim, name)
    return (
        f"Worker {status.worker} is yours: {status.address}; its token is in the Secret"
        f" {status.tokenSecret}.\nGive it back with: trimtab pool release {name}"
    )


async def _unseen(client: Client, options: argparse.Namespace) -> str:
    """Why nobody has said anything of a claim."""
    from trimtab.client import NotFound
    from trimtab.pool.kinds import WorkerPool

    try:
        await client.get(WorkerPool, options.pool)
    except NotFound:  # its definition is there, or no claim could have been made
        return f"there is no pool {options.pool} in {client.config.namespace}."
    return (
        f"no worker was free within {options.wait:g} s, or no gateway runs (trimtab "
        f"pool serve); trimtab pool explain {options.pool} says more."
    )


async def _settled(client: Client, name: str, *, within: float) -> WorkerClaimStatus:
    """The status of a claim when it is bound or has failed, or the time is up."""
    import asyncio

    from trimtab.pool.kinds import WorkerClaim

    loop = asyncio.get_running_loop()
    ends = loop.time() + within
    while True:
        status = (await client.get(WorkerClaim, name)).status
        if status.state != "Pending" or loop.time() >= ends:
            return status
        await asyncio.sleep(LOOK_SECONDS)


async def unclaimed(options: argparse.Namespace) -> str:
    """Delete a claim; what to tell about it, or nothing if there is none."""
    from trimtab.client import Client, NotFound
    from trimtab.pool.kinds import WorkerClaim

    config = common.config_of(options, namespace=options.namespace)
    async with Client(config) as client:
        try:
            await client.delete(WorkerClaim, options.worker)
        except NotFound:
            return ""
    return f"{options.worker} is given back."


async def acquired(options: argparse.Namespace) -> int:
    """Have a worker while a command runs, or until a signal comes; the exit code."""
    from trimtab.client import Client
    from trimtab.pool.client import Pool

    config = common.config_of(options, namespace=options.namespace)
    async with Client(config) as client:
        account, namespace = options.service_account, client.config.namespace
        token = (await client.token(account, namespace=namespace)).token
        ca = options.ca or await _published(client)
        pool = Pool.connect(
            options.gateway, pool=f"{namespace}/{options.pool}", token=token, ca=ca
        )
        async with (
            pool,
            pool.acquire(
                tenant=options.tenant, shape=options.shape, wait=options.wait
            ) as worker,
        ):
            return await _with_worker(worker, options.command)


async def _published(client: Client) -> bytes:
    """The authority of the gateway's certificate."""
    from trimtab.api.kinds import ConfigMap
    from trimtab.client import ConfigError, NotFound
    from trimtab.pool.gateway.service import NAME
    from trimtab.pool.secrets import AUTHORITY

    try:
        found = await client.get(ConfigMap, NAME)
    except NotFound:
        raise ConfigError(
            f"No gateway has published its authority in the ConfigMap {NAME}: name its"
            " file with --ca, or the gateway's namespace with --namespace."
        ) from None
    return found.data[AUTHORITY].encode()


async def _with_worker(worker: Any, command: list[str]) -> int:
    import asyncio
    import os
    import tempfile

    from trimtab.runtime.signals import Signals

    print(f"Worker {worker.name} is yours: {worker.address} port {worker.port}.")
    with Signals() as signals, tempfile.NamedTemporaryFile() as ca:
        if not command:
            print("Control-C gives it back.", flush=True)
            await signals.stopped.wait()
            return 0
        ca.write(worker.granted.ca.encode())
        ca.flush()
        found = {
            "ADDRESS": worker.address,
            "PORT": str(worker.port),
            "NAME": worker.name,
            "EPOCH": str(worker.epoch),
            "TOKEN": worker.token,
            "CA": ca.name,
        }
        own = {f"TRIMTAB_WORKER_{name}": value for name, value in found.items()}
        process = await asyncio.create_subprocess_exec(
            *command, env={**os.environ, **own}
        )
        try:
            return await process.wait()
        finally:
            if process.returncode is None:
                process.terminate()
                await process.wait()
