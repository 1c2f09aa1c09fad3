"""Laws of ``trimtab run`` with several operators: one process, one set of endpoints."""

from __future__ import annotations

import asyncio
import re
import signal
from pathlib import Path

from tests.cli.test_run import OPERATOR as STALLS
from tests.cli.test_run import ran
from tests.client.clusters import client_of, defines
from trimtab import Metadata, Resource, crd
from trimtab.cli.asking import ask
from trimtab.kinds import ConfigMap
from trimtab.testing import Cluster, eventually

# A kind of its own: other tests want theirs not to be there.
OPERATOR = STALLS.replace("run.example.com", "several.example.com")


class Stall(Resource, group="several.example.com", version="v1"):
    """The kind that the operators have."""


async def test_two_operators_run_in_one_process_in_their_namespaces_only(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    """Both make what they make for one object, and neither sees other namespaces."""
    first, second = tmp_path / "stalls.py", tmp_path / "tills.py"
    first.write_text(OPERATOR)
    other = OPERATOR.replace('Operator("stalls")', 'Operator("tills")')
    name = "name=site.metadata.name"
    second.write_text(other.replace(name, f"{name} + '-till'"))
    async with client_of(cluster, namespace=namespace) as client:
        await defines(client, crd(Stall))
        flags = ("--port=0", f"--namespace={namespace}", f"--namespaces={namespace}")
        async with ran(first, cluster, str(second), *flags) as running:
            await client.create(Stall(metadata=Metadata(name="fish")))

            async def are_made() -> bool:
                found = client.list(ConfigMap, namespace=namespace)
                names = {each.metadata.name async for each in found}
                return {"fish", "fish-till"} <= names

            await eventually(are_made, within=20)
            url = await running.says(r"(http://127.0.0.1:\d+)")
            metrics = await asyncio.to_thread(ask, url, "metrics")
            leaders = re.findall(rb'is_leader\{operator="(\w+)"\} 1.0', metrics or b"")
            assert sorted(leaders) == [b"stalls", b"tills"]
            assert await running.stop(signal.SIGTERM) == 0
    assert "Traceback" not in running.said.decode()
