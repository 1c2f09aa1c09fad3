"""Records what a real kubelet, and a real Job controller, say of pods and Jobs.

To make the record again, on a cluster whose node has the images `localhost/busybox:1`
(its entry point is a shell) and `localhost/pyslim:1` (a Python)::

    python -m hack.record_kubelet KUBECONFIG [NAME...]
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from tests.kubelet import employing, telling
from trimtab import Client, load

AT_ONCE = 18
SETTLE = 3.0
"""Seconds for the last events of Jobs to come."""


async def main(kubeconfig: str, names: list[str]) -> None:
    """Play every scenario and write down what was told."""
    pods = [each for each in telling.scenarios() if not names or each in names]
    jobs = [each for each in employing.plays() if not names or each in names]
    async with Client(load(kubeconfig=Path(kubeconfig))) as client:
        told = telling.recorded() if names else {}
        for first in range(0, len(pods), AT_ONCE):
            space = await namespace(client, f"words-{first}")
            some = pods[first : first + AT_ONCE]
            heard, missed = await telling.perform(client, space, some)
            told |= heard
            for name, why in missed.items():
                print(f"{name} did not get there: {why}")
        write(telling.RECORDED, told)
        told = employing.recorded() if names else {}
        write(employing.RECORDED, told | await played(client, jobs))


async def played(client: Client, names: list[str]) -> dict[str, Any]:
    space, known = await namespace(client, "words-jobs"), employing.plays()
    plays = (employing.play(client, space, name, known[name]) for name in names)
    await asyncio.gather(*plays)
    await asyncio.sleep(SETTLE)
    return {name: await employing.told(client, space, name) for name in names}


async def namespace(client: Client, name: str) -> str:
    meta = {"name": name}
    await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": meta})
    await asyncio.sleep(1)  # until there is a service account
    return name


def write(path: Path, told: Mapping[str, Any]) -> None:
    text = msgspec.json.encode(dict(sorted(told.items())))
    path.write_bytes(msgspec.json.format(text, indent=1) + b"\n")
    print(f"{path.name}: {len(told)} told, {path.stat().st_size} bytes")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2:]))
