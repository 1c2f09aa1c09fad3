"""Laws of words: what a real kubelet says of a pod, ours says too."""

from __future__ import annotations

import asyncio
import difflib
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from tests.client.clusters import client_of
from tests.kubelet.laptop import laptop
from tests.kubelet.telling import Plain, Scenario, Stage, recorded, scenarios, stage
from trimtab.kinds import Node
from trimtab.kubelet.images import Image, Images
from trimtab.kubelet.site import KubeletOptions
from trimtab.testing import Cluster

WITHIN = 100.0
USUAL = KubeletOptions(name="", folder=Path(), images=Images())


def lines(told: Plain) -> list[str]:
    return msgspec.json.format(msgspec.json.encode(told), indent=1).decode().split("\n")


def differences(name: str, told: Plain, real: Plain) -> Iterator[str]:
    named = difflib.unified_diff(lines(real), lines(told), f"{name} real", "ours", n=1)
    return (line.rstrip("\n") for line in named)


async def story(here: Stage, name: str, play: Scenario, real: Plain) -> list[str]:
    """How what is said of a pod differs from the record, once all is said."""
    try:
        async with asyncio.timeout(WITHIN):
            await here.play(name, play)
            await here.until_told(name, real)
    except TimeoutError:
        return list(differences(name, here.told(name), real))
    return []


async def without_nodes(cluster: Cluster) -> None:
    """Why a pod fits nowhere is said of all nodes: other tests may have left some."""
    async with client_of(cluster, namespace="default") as client:
        for node in [each async for each in client.list(Node)]:
            await client.delete(Node, node.metadata.name)


@pytest.mark.timeout(180)
async def test_a_pods_life_is_told_in_the_words_of_a_real_kubelet(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    real, plays = recorded(), scenarios()
    assert list(real) == sorted(plays)
    images = Images(
        {
            "localhost/busybox": Image(command=["sh"]),
            "localhost/pyslim": Image(command=["python3"]),
        }
    )
    await without_nodes(cluster)
    pauses: Plain = {"restart": USUAL.restart, "pull": USUAL.pull, "housekeeping": 1.0}
    async with laptop(cluster, namespace, tmp_path, images=images, **pauses) as node:
        async with stage(node.client, namespace) as here:
            found = await asyncio.gather(
                *(story(here, name, plays[name], real[name]) for name in real)
            )
    assert not any(found), "\n".join(line for each in found for line in each)
