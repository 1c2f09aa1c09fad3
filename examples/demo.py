"""The demo: one small operator, from its classes to a cluster and back.

It prints the CRD that the classes below make, starts an API server on this machine,
installs the CRD and runs the operator: a Website goes in, a Deployment comes out, and
the status says so. ``--cluster=real`` takes etcd and kube-apiserver instead, where they
are at hand (``make test-cluster`` builds them).
"""

from __future__ import annotations

import argparse
import asyncio
import sys

import yaml

from trimtab import Client, Metadata, Resource, Spec, Status, crd, field, load, owner_of
from trimtab.api import LabelSelector
from trimtab.client import NotFound, WatchEvent
from trimtab.kinds import (
    Container,
    Deployment,
    DeploymentSpec,
    PodSpec,
    PodTemplateSpec,
)
from trimtab.testing import ClusterError, Kind, cluster

MANAGER = "websites"


class WebsiteSpec(Spec):
    """What somebody wants on the web."""

    image: str = field(min_length=1, doc="The container image to serve.")
    replicas: int = field(default=1, minimum=0, maximum=100)


class WebsiteStatus(Status):
    """What the operator made of it."""

    deployment: str = ""
    wished: int = 0


class Website(Resource, group="example.com", version="v1", short="web"):
    """A website, and how many copies of it should run."""

    spec: WebsiteSpec
    status: WebsiteStatus = WebsiteStatus()


def deployment_for(site: Website) -> Deployment:
    labels = {"website": site.metadata.name}
    return Deployment(
        metadata=Metadata(
            name=site.metadata.name,
            namespace=site.metadata.namespace,
            labels=labels,
            ownerReferences=[owner_of(site)],
        ),
        spec=DeploymentSpec(
            replicas=site.spec.replicas,
            selector=LabelSelector(matchLabels=labels),
            template=PodTemplateSpec(
                metadata=Metadata(labels=labels),
                spec=PodSpec(containers=[Container(name="web", image=site.spec.image)]),
            ),
        ),
    )


async def reconcile(client: Client, site: Website) -> None:
    """Look at what is, make what should be, say what was made."""
    deployment = await client.apply(deployment_for(site), manager=MANAGER)
    await client.apply_status(
        Website,
        site.metadata.name,
        WebsiteStatus(
            deployment=deployment.metadata.name, wished=deployment.spec.replicas or 0
        ),
        namespace=site.metadata.namespace,
        manager=MANAGER,
    )


async def operate(client: Client) -> None:
    """Reconcile every Website, now and whenever its spec changes."""
    seen: dict[tuple[str, str], int] = {}
    async with client.watch(Website, initial_events=True) as events:
        async for event in events:
            if not isinstance(event, WatchEvent) or event.type == "DELETED":
                continue
            site = event.object
            if seen.get(site.key) != site.metadata.generation:
                seen[site.key] = site.metadata.generation
                await reconcile(client, site)


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


async def on_a_cluster(kind: Kind) -> None:
    async with (
        cluster(kind) as control_plane,
        Client(load(kubeconfig=control_plane.kubeconfig)) as client,
        asyncio.TaskGroup() as tasks,
    ):
        print(f"It answers at {control_plane.server}.")
        await established(client)
        print("The CRD is installed; the operator runs.")
        operator = tasks.create_task(operate(client))
        site = Website(
            metadata=Metadata(name="shop"),
            spec=WebsiteSpec(image="example.com/shop:1", replicas=2),
        )
        await client.create(site)
        await reported(client, wished=2)
        await client.patch(Website, "shop", {"spec": {"replicas": 3}})
        site = await reported(client, wished=3)
        deployment = await client.get(Deployment, "shop")
        print(f"{site} wishes for {site.spec.replicas} copies,")
        print(f"{deployment} has been told to run {deployment.spec.replicas},")
        print(f"and the status says so: {site.status}.")
        operator.cancel()


def main() -> int:
    parser = argparse.ArgumentParser(description="Run one small operator.")
    parser.add_argument("--cluster", choices=("embedded", "real"), default="embedded")
    kind: Kind = parser.parse_args().cluster
    print("The CRD of class Website:\n")
    print(yaml.safe_dump(crd(Website), sort_keys=False))
    print(f"Starting an API server ({kind}) to run the operator on.", flush=True)
    try:
        asyncio.run(on_a_cluster(kind))
    except ClusterError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
