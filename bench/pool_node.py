"""A node for the bench of the worker pool: a kubelet with room for all its workers."""

from __future__ import annotations

import argparse
import asyncio
from datetime import UTC, datetime
from pathlib import Path
from random import Random

from trimtab.client import Client, load
from trimtab.kubelet.assembly import Assembly, Parts
from trimtab.kubelet.images import Images
from trimtab.kubelet.site import KubeletOptions

PLENTY = {"cpu": "10000", "memory": "100000Gi"}


async def main(options: argparse.Namespace) -> None:
    settings = KubeletOptions(
        name="bench",
        folder=options.folder,
        images=Images(),
        capacity=PLENTY,
        pods=10_000,
        cgroups=False,  # ten millicores each are what they ask for, not what they get
    )
    async with Client(load(kubeconfig=options.kubeconfig)) as client:
        await Assembly(
            client,
            settings,
            random=Random(),
            now=lambda: datetime.now(UTC),
            parts=Parts(workloads=False, services=False),
        ).run()


if __name__ == "__main__":
    made = argparse.ArgumentParser()
    made.add_argument("--kubeconfig", type=Path, required=True)
    made.add_argument("--folder", type=Path, required=True)
    asyncio.run(main(made.parse_args()))
