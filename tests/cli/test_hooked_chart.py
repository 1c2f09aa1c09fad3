"""A chart with webhooks, installed by a real helm on a real server.

The command of its container runs here, under its service account. The server reaches it
by an address, for no Service leads anywhere in a cluster without nodes.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.cli.helm import Helm
from tests.cli.test_chart import charted
from tests.client.clusters import client_of
from tests.examples.scenarios import EXAMPLES, HOOKED, example, is_refused
from trimtab.client import Client
from trimtab.client.errors import NotFound
from trimtab.runtime.webhooks.configurations import KINDS, CustomResourceDefinition
from trimtab.testing import Cluster, eventually

NAME = "house-reservations"
DEFINITION = "reservations.example.com"
ROOT = Path(__file__).resolve().parents[2]
pytestmark = [
    pytest.mark.cluster("real"),
    pytest.mark.timeout(120),
    pytest.mark.usefixtures("modules"),
]


@pytest.fixture
def helm(cluster: Cluster, tmp_path: Path) -> Helm:
    return Helm(cluster, tmp_path)


def command(arguments: list[str]) -> list[str]:
    """What the container runs, where no Service leads."""
    here = {
        "--host": "127.0.0.1",
        "--port": "0",
        "--webhook-port": "0",
        "--webhook-service": "",
    }
    made = [str(EXAMPLES / each) if ".py" in each else each for each in arguments]
    made = [each for each in made if each.partition("=")[0] not in here]
    assert len(made) == len(arguments) - len(here), arguments
    more = [f"{name}={value}" for name, value in here.items() if value]
    return [*made, *more, "--webhook-url=https://127.0.0.1:0"]


@asynccontextmanager
async def operating(
    cluster: Cluster, admin: Client, folder: Path
) -> AsyncIterator[bytearray]:
    """The release's own command under its own account, and what it says."""
    namespace = admin.config.namespace
    deployments = await admin.discover("apps/v1", "Deployment")
    found: Any = await admin.get(deployments, NAME)
    (container,) = found["spec"]["template"]["spec"]["containers"]
    content = json.loads(cluster.kubeconfig.read_text())
    token = (await admin.token(NAME, namespace=namespace)).token
    content["users"][0]["user"] = {"token": token}
    kubeconfig = folder / "account"
    kubeconfig.touch(mode=0o600)
    kubeconfig.write_text(json.dumps(content))
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "trimtab", *command(container["args"])),
        *(f"--kubeconfig={kubeconfig}", f"--namespace={namespace}"),
        cwd=folder,
        stdin=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    said = bytearray()

    async def read() -> None:
        assert process.stderr is not None
        while data := await process.stderr.read(4096):
            said.extend(data)

    async with asyncio.TaskGroup() as group:
        reading = group.create_task(read())
        try:
            yield said
            process.terminate()
            assert await asyncio.wait_for(process.wait(), 30) == 0, said.decode()
        finally:
            if process.returncode is None:
                process.kill()
            await reading


async def configured(client: Client) -> list[str]:
    """The webhooks that the server is told of, by name."""
    name = f"reservations-{client.config.namespace}"
    found = []
    for kind in KINDS.values():
        try:
            made: Any = await client.get(kind, name)
        except NotFound:
            continue
        found += [each.name for each in made.webhooks]
    return sorted(found)


async def test_a_chart_with_webhooks_is_installed_is_asked_is_upgraded_and_goes(
    helm: Helm,
    cluster: Cluster,
    namespace: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    chart = charted(capsys, tmp_path, "reservations", "--version=1.0.0")
    assert "0 chart(s) failed" in helm("lint", "--strict", str(chart))
    place, app = f"--namespace={namespace}", example("reservations")
    names = [f"filled.{DEFINITION}", f"fits.{DEFINITION}"]
    async with client_of(cluster, namespace=namespace) as admin:
        narrow = ("--set", f"namespaces={{{namespace}}}")
        await asyncio.to_thread(helm, "install", "house", str(chart), place, *narrow)
        async with operating(cluster, admin, tmp_path) as said:
            await HOOKED["reservations"](admin, app)
            assert await configured(admin) == names
            charted(capsys, tmp_path, "reservations", "--version=1.1.0")
            flags = ("--set", "replicas=2", "--reuse-values")
            # Helm, which knows the configurations as empty, leaves them as they are.
            await asyncio.to_thread(helm, "upgrade", "house", str(chart), place, *flags)
            assert await configured(admin) == names
            await HOOKED["reservations"](admin, app)
            await asyncio.to_thread(helm, "uninstall", "house", place)
            # What helm takes away, an operator that still runs does not bring back.
            gone = b"is declared at the next start"
            await eventually(lambda: said.count(gone) == len(KINDS), within=20)
            assert await configured(admin) == []
        await taken_away(cluster, admin, app)


async def taken_away(cluster: Cluster, admin: Client, app: Any) -> None:
    """Nobody is asked any more; conversions are given up as the page says."""
    new, old = app.kinds()

    async def nobody_is_asked() -> bool:
        return not await is_refused(admin, new, "crowd")

    await eventually(nobody_is_asked)
    page = " ".join((ROOT / "docs" / "webhooks.md").read_text().split())
    patch = '{"spec":{"conversion":{"strategy":"None","webhook":null}}}'
    typed = f"kubectl patch crd NAME --type=merge -p '{patch}'"
    assert typed in page
    await cluster.kubectl("patch", "crd", DEFINITION, "--type=merge", "-p", patch)

    async def is_readable() -> bool:
        return [each async for each in admin.list(old)] == []

    await eventually(is_readable)
    await admin.delete(CustomResourceDefinition, DEFINITION)
