"""Laws of the examples: they do what they say, as they stand."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.client.clusters import client_of
from tests.runtime.operating import running
from trimtab import crd
from trimtab.api import codec
from trimtab.cli.loading import operator_in
from trimtab.client.errors import NotFound
from trimtab.kinds import Deployment
from trimtab.testing import Cluster, eventually

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def test_the_demo_runs_from_the_classes_to_a_status_and_back() -> None:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "demo.py"), "--cluster=embedded"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    for said in (
        "kind: CustomResourceDefinition",
        "now: trimtab run website.py",
        "Website default/shop wishes for 3 copies,",
        "Deployment default/shop has been told to run 3,",
        "The operator has stopped, and its lease is free.",
    ):
        assert said in done.stdout


async def test_the_first_page_makes_a_deployment_and_says_so(
    cluster: Cluster, namespace: str
) -> None:
    app = operator_in(EXAMPLES / "website.py")
    (website,) = app.kinds()
    async with client_of(cluster, namespace=namespace) as client:
        await client.create(crd(website))

        async def is_served() -> bool:
            try:
                await client.list(website).next_page()
            except NotFound:
                return False
            return True

        await eventually(is_served)
        async with running(app, cluster, client):
            spec = {"image": "example.com/shop:1", "replicas": 2}
            body = {"metadata": {"name": "shop"}, "spec": spec}
            await client.create(codec.convert(website, body))

            async def is_reported() -> bool:
                found = await client.get(website.__resource__, "shop")
                return bool(found.get("status", {}).get("wished") == 2)

            await eventually(is_reported)
            made = await client.get(Deployment, "shop")
            assert made.spec.replicas == 2
            assert made.metadata.ownerReferences[0].kind == "Website"
