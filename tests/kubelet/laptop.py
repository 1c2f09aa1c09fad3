"""A node for a test: a kubelet in this process, on the run's cluster."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import msgspec

from trimtab import Client, load
from trimtab.api.kinds import Event, Node, Pod
from trimtab.client import NotFound
from trimtab.kubelet.assembly import Assembly, Parts
from trimtab.kubelet.images import Images
from trimtab.kubelet.site import KubeletOptions
from trimtab.runtime.backoff import Backoff
from trimtab.testing import Cluster
from trimtab.testing.waiting import eventually

Plain = dict[str, Any]

QUICK = Backoff(first=0.05, factor=2.0, cap=60.0, jitter=0.0)
PODS = Pod.__resource__
FOREVER = ["sleep", "1000"]


def container(command: list[str] | None = None, **more: Any) -> Plain:
    made = {"name": "main", "image": "local", **more}
    return {**made, "command": command} if command else made


def shell(script: str, **more: Any) -> Plain:
    return container(["sh", "-c", script], **more)


class Laptop:
    """One node, one namespace, and short words for what tests do with them."""

    def __init__(
        self, client: Client, assembly: Assembly, namespace: str, name: str
    ) -> None:
        self.client = client
        self.assembly = assembly
        self.kubelet = assembly.kubelet
        self.namespace = namespace
        self.name = name

    async def create(
        self, name: str, *containers: Plain, metadata: Plain | None = None, **spec: Any
    ) -> Plain:
        """Make a pod that may run only here."""
        return await self.client.create(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {
                    "name": name,
                    "namespace": self.namespace,
                    **(metadata or {}),
                },
                "spec": {
                    "nodeSelector": {"kubernetes.io/hostname": self.name},
                    "containers": list(containers) or [container(FOREVER)],
                    "restartPolicy": "Never",
                    "terminationGracePeriodSeconds": 5,
                    **spec,
                },
            }
        )

    async def get(self, name: str) -> Plain:
        return await self.client.get(PODS, name, namespace=self.namespace)

    async def until(
        self, name: str, check: Callable[[Plain], Any], *, within: float = 10.0
    ) -> Plain:
        """The pod when it is as wished for; the last status is in the failure."""
        last: Plain = {}

        async def look() -> Plain | None:
            nonlocal last
            last = await self.get(name)
            return last if check(last) else None

        try:
            found = await eventually(look, within=within, every=0.05)
        except AssertionError as error:
            status = msgspec.json.encode(last.get("status", {})).decode()
            raise AssertionError(f"{name} never was: {status}") from error
        assert found is not None
        return found

    async def phase(self, name: str, phase: str) -> Plain:
        return await self.until(name, lambda pod: pod["status"].get("phase") == phase)

    async def ready(self, name: str) -> Plain:
        return await self.until(name, lambda pod: condition(pod, "Ready") == "True")

    async def gone(self, name: str) -> None:
        async def look() -> bool:
            try:
                await self.get(name)
            except NotFound:
                return True
            return False

        await eventually(look, every=0.05)

    async def delete(self, name: str, **options: Any) -> None:
        await self.client.delete(PODS, name, namespace=self.namespace, **options)

    async def logs(self, name: str) -> str:
        """What a container said so far, from the node's own files."""
        pod = await self.get(name)
        run = self.kubelet.runs[pod["metadata"]["uid"]]
        log = run.mains[0].log
        assert log is not None
        lines = log.path.read_text().splitlines()
        return "".join(line.split(" ", 3)[3] + "\n" for line in lines)

    async def event(self, name: str, reason: str, words: str = "") -> str:
        """The message of an Event of a pod, when it has come."""

        async def look() -> str | None:
            found = self.client.list(Event, namespace=self.namespace)
            async for each in found:
                about = each.involvedObject.name == name
                if about and each.reason == reason and words in each.message:
                    return each.message
            return None

        message = await eventually(look, every=0.1, describe=f"{reason} of {name}")
        assert message is not None
        return message


def condition(pod: Plain, type: str) -> str:
    for each in pod["status"].get("conditions") or ():
        if each["type"] == type:
            return str(each["status"])
    return ""


def state(pod: Plain, index: int = 0) -> Plain:
    statuses = pod["status"].get("containerStatuses") or [{"state": {}}]
    found: Plain = statuses[index]["state"]
    return found


def waiting_for(pod: Plain, index: int = 0) -> str:
    return str(state(pod, index).get("waiting", {}).get("reason", ""))


def marked(uid: str) -> list[int]:
    """The processes on this machine that belong to a pod."""
    mark = f"TRIMTAB_POD_UID={uid}".encode()
    found = []
    for name in filter(str.isdecimal, os.listdir("/proc")):
        with suppress(OSError):
            if mark in Path(f"/proc/{name}/environ").read_bytes():
                found.append(int(name))
    return found


@asynccontextmanager
async def laptop(
    cluster: Cluster,
    namespace: str,
    folder: Path,
    *,
    images: Images | None = None,
    parts: Parts | None = None,
    **options: Any,
) -> AsyncIterator[Laptop]:
    """A node that is ready, and gone with all its processes at the end."""
    random = Random(namespace)
    name = f"node-{random.getrandbits(40):x}"
    settings = KubeletOptions(
        **{
            "name": name,
            "folder": folder / "kubelet",
            "images": images or Images(),
            "restart": QUICK,
            "pull": QUICK,
            "farewell": 0.2,
            **options,
        }
    )
    async with Client(load(kubeconfig=cluster.kubeconfig)) as client:
        assembly = Assembly(
            client,
            settings,
            random=random,
            now=lambda: datetime.now(UTC),
            parts=parts or Parts(workloads=False, services=False),
        )
        assembly.job_pauses = QUICK
        try:
            async with asyncio.TaskGroup() as group:
                task = group.create_task(assembly.run())
                ready = group.create_task(assembly.kubelet.ready.wait())
                await asyncio.wait((task, ready), return_when=asyncio.FIRST_COMPLETED)
                try:
                    if ready.done():
                        yield Laptop(client, assembly, namespace, settings.name)
                finally:
                    task.cancel()
                    ready.cancel()
        finally:
            # Also of a test that failed: pods of the next one would be put on it.
            with suppress(NotFound):
                await client.delete(Node, settings.name)
