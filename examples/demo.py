"""The demo: one small operator, from its classes to a cluster and back, then films.

It prints the CRD of ``website.py``, starts an API server on this machine, installs the
CRD and runs the operator: a Website goes in, a Deployment comes out, the status says
so. Then ``scoring.py`` has a clip scored, and in ``training.py`` a model learns from
such scores, which is drawn. ``--cluster=real`` takes etcd and kube-apiserver instead,
where they are at hand (``make test-cluster`` builds them).
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

import yaml

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from examples import scoring, training
from examples.website import Website, WebsiteSpec
from trimtab import Client, Metadata, crd, load
from trimtab.client import NotFound, WatchEvent
from trimtab.kinds import Deployment
from trimtab.testing import ClusterError, Kind, cluster

OPERATOR = Path(__file__).with_name("website.py")


async def established(client: Client) -> None:
    """Install the CRD and wait until the server serves it."""
    await client.create(crd(Website))
    async with asyncio.timeout(30):
        while True:
            try:
                await client.get(Website, "none")
            except NotFound as error:
                if error.details.kind == "websites":
                    return
            await asyncio.sleep(0.1)


async def reported(client: Client, *, wished: int) -> Website:
    """The site once its status says what is wished for."""
    async with asyncio.timeout(30):
        async with client.watch(Website, initial_events=True) as events:
            async for event in events:
                if isinstance(event, WatchEvent) and (
                    event.object.status.wished == wished
                ):
                    return event.object
    raise RuntimeError("the watch ended before the status came; run the demo again")


async def on_a_cluster(kind: Kind, *, plot: Path | None) -> None:
    async with (
        cluster(kind) as control_plane,
        Client(load(kubeconfig=control_plane.kubeconfig)) as client,
    ):
        print(f"It answers at {control_plane.server}.")
        await established(client)
        print(f"The CRD is installed; now: trimtab run {OPERATOR.name}", flush=True)
        operator = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "trimtab", "run", str(OPERATOR), "--port", "0"),
            *("--kubeconfig", str(control_plane.kubeconfig), "--log", "warning"),
        )
        try:
            await show(client)
        finally:
            operator.terminate()
            await operator.wait()
        print("The operator has stopped, and its lease is free.")
        print("Now a clip is made, spoiled and scored.", flush=True)
        await scoring.show(client, control_plane.kubeconfig)
        if plot is not None:
            print("Now a model learns from scores.", flush=True)
            await training.show(client, control_plane.kubeconfig, plot=plot)


async def show(client: Client) -> None:
    """Wish for a site, then for more of it, and tell what became of it."""
    await client.create(
        Website(
            metadata=Metadata(name="shop"),
            spec=WebsiteSpec(image="example.com/shop:1", replicas=2),
        )
    )
    await reported(client, wished=2)
    await client.patch(Website, "shop", {"spec": {"replicas": 3}})
    site = await reported(client, wished=3)
    deployment = await client.get(Deployment, "shop")
    print(f"{site} wishes for {site.spec.replicas} copies,")
    print(f"{deployment} has been told to run {deployment.spec.replicas},")
    print(f"and the status says so: {site.status}.")


def main() -> int:
    parser = argparse.ArgumentParser(description="Run one small operator.")
    parser.add_argument("--cluster", choices=("embedded", "real"), default="embedded")
    parser.add_argument(
        "--plot",
        type=Path,
        default=Path(tempfile.gettempdir()) / "trimtab-training.png",
        help="where the course of the training is drawn (default: %(default)s)",
    )
    parser.add_argument(
        "--no-training", action="store_true", help="leave out the model that learns"
    )
    options = parser.parse_args()
    kind: Kind = options.cluster
    print("The CRD of class Website:\n")
    print(yaml.safe_dump(crd(Website), sort_keys=False))
    print(f"Starting an API server ({kind}) to run the operator on.", flush=True)
    try:
        plot = None if options.no_training else options.plot
        asyncio.run(on_a_cluster(kind, plot=plot))
    except ClusterError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
