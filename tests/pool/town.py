"""A town for a test: a cluster with a node, gateways as processes, and their clients.

The workers are real: each is the worker program in a pod of the process kubelet, and
keeps a record of whom it served.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any

from tests.kubelet.laptop import Laptop, laptop
from trimtab import Client
from trimtab.api import codec
from trimtab.api.kinds import ConfigMap, Lease, Pod, Secret
from trimtab.client import NotFound
from trimtab.pool.client import Pool
from trimtab.pool.gateway.service import NAME
from trimtab.pool.keyring import TYPE
from trimtab.pool.kinds import (
    KINDS,
    LABEL_POOL,
    LABEL_ROLE,
    LABEL_WORKER,
    Worker,
    WorkerPool,
)
from trimtab.pool.replica import LEADER
from trimtab.pool.states import TERMINAL
from trimtab.testing import Cluster
from trimtab.testing.operating import install
from trimtab.testing.waiting import eventually

SOURCE = Path(__file__).resolve().parents[2]
LEASE = 5.0

Plain = dict[str, Any]


def pool_of(
    name: str, namespace: str, records: Path, arguments: Sequence[str], **spec: Any
) -> Plain:
    """A pool whose workers are the worker program itself."""
    command = [sys.executable, "-m", "trimtab.pool.worker", *arguments]
    record = str(records / "$(TRIMTAB_WORKER).jsonl")
    container = {
        "name": "worker",
        "image": "local",
        "command": [*command, "--record", record, "--grace", "2"],
        "env": [{"name": "PYTHONPATH", "value": f"{SOURCE / 'src'}:{SOURCE}"}],
        "readinessProbe": {
            "httpGet": {"path": "/healthz", "port": 8443, "scheme": "HTTPS"},
            "periodSeconds": 1,
        },
    }
    return {
        "apiVersion": "trimtab.dev/v1alpha1",
        "kind": "WorkerPool",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "template": {
                "spec": {
                    "containers": [container],
                    "terminationGracePeriodSeconds": 2,
                }
            },
            "shapes": [{"name": "small", "cpu": "1", "memory": "120Mi"}],
            **spec,
        },
    }


class Door:
    """One gateway process."""

    def __init__(
        self, process: asyncio.subprocess.Process, port: int, *, name: str
    ) -> None:
        self.process = process
        self.name = name
        self.url = f"https://127.0.0.1:{port}"

    @property
    def lives(self) -> bool:
        return self.process.returncode is None

    def is_called(self, incarnation: str) -> bool:
        """Whether an incarnation is this process's."""
        return incarnation.rpartition("-")[0] == self.name

    @property
    def pid(self) -> int:
        return self.process.pid

    async def kill(self) -> None:
        """End it as a crash would."""
        self.process.send_signal(signal.SIGKILL)
        await self.process.wait()

    async def stop(self) -> int:
        """End it in order; its exit code."""
        if self.process.returncode is None:
            self.process.send_signal(signal.SIGTERM)
        return await self.process.wait()


class Town:
    """What a test does with it."""

    def __init__(self, cluster: Cluster, here: Laptop, folder: Path) -> None:
        self.cluster = cluster
        self.client: Client = here.client
        self.namespace = here.namespace
        self.records = folder / "records"
        self.records.mkdir(exist_ok=True)
        self.doors: list[Door] = []
        self._logs: list[Path] = []
        self._folder = folder

    async def open(self, *arguments: str, kubeconfig: Path | None = None) -> Door:
        """Start a gateway, and wait until it serves."""
        name = f"gateway-{len(self._logs)}"
        path = self._folder / f"{name}.log"
        self._logs.append(path)
        with path.open("wb") as log:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "trimtab", "pool", "serve", "--port", "0"),
                *("--kubeconfig", str(kubeconfig or self.cluster.kubeconfig)),
                *("--namespace", self.namespace, "--namespaces", self.namespace),
                *("--lease", str(LEASE), "--grace", "1", "--period", "0.5"),
                *("--keep", "2", "--endpoints", "-1", *arguments),
                stderr=log,
                env={
                    **os.environ,
                    "PYTHONPATH": str(SOURCE / "src"),
                    "POD_NAME": name,
                },
            )

        def port() -> int:
            said = path.read_text(errors="replace")
            assert process.returncode is None, said
            served = re.search(r"Serving on \S+ port (\d+)", said)
            return int(served[1]) if served else 0

        found = await eventually(port, within=30.0, every=0.1)
        door = Door(process, found, name=name)
        self.doors.append(door)
        return door

    async def led(self) -> Door:
        """The gateway that leads, as soon as one that lives does."""
        door = await eventually(self._leader, within=30.0)
        assert door is not None
        return door

    async def _leader(self) -> Door | None:
        try:
            lease = await self.client.get(Lease, LEADER, namespace=self.namespace)
        except NotFound:
            return None
        holder = lease.spec.holderIdentity or ""
        living = (door for door in self.doors if door.lives)
        return next((door for door in living if door.is_called(holder)), None)

    def log(self) -> str:
        """What the gateways said, for whoever reads a failure."""
        return "\n".join(
            path.read_text(errors="replace")[-5000:] for path in self._logs
        )

    async def scraped(self) -> str:
        """The metrics of the gateway that was started last with ``--endpoints 0``."""
        port = re.findall(r"metrics on \S+ port (\d+)", self.log())[-1]
        reader, writer = await asyncio.open_connection("127.0.0.1", int(port))
        writer.write(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        try:
            return (await reader.read()).decode()
        finally:
            writer.close()

    async def command(self, *arguments: str) -> str:
        """What ``trimtab pool`` prints."""
        verb, *rest = arguments
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "trimtab", "pool", verb),
            *("--kubeconfig", str(self.cluster.kubeconfig)),
            *("--namespace", self.namespace, *rest),
            stdout=asyncio.subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(SOURCE / "src")},
        )
        said, _ = await process.communicate()
        assert process.returncode == 0
        return said.decode()

    async def make(self, name: str, *arguments: str, **spec: Any) -> None:
        """Make a pool; the arguments are its workers'."""
        plain = pool_of(name, self.namespace, self.records, arguments, **spec)
        await self.client.create(codec.decode(WorkerPool, codec.encode(plain)))

    async def connect(self, pool: str, *doors: Door | str, seed: int = 1) -> Pool:
        token = (await self.client.token("clients", namespace=self.namespace)).token
        found = await self.client.get(ConfigMap, NAME, namespace=self.namespace)
        chosen = doors or self.doors
        return Pool.connect(
            [each if isinstance(each, str) else each.url for each in chosen],
            pool=f"{self.namespace}/{pool}",
            token=token,
            ca=found.data["ca.crt"].encode(),
            random=Random(seed),
        )

    async def allow(self) -> None:
        """Make a service account that may have workers."""
        rbac = "rbac.authorization.k8s.io"
        meta = {"name": "clients", "namespace": self.namespace}
        account: Plain = {"apiVersion": "v1", "kind": "ServiceAccount"}
        await self.client.create({**account, "metadata": meta})
        verbs = ["acquire", "get", "drain"]
        rule = {"apiGroups": ["trimtab.dev"], "resources": ["workerpools"]}
        role: Plain = {"apiVersion": f"{rbac}/v1", "kind": "Role", "metadata": meta}
        await self.client.create({**role, "rules": [{**rule, "verbs": verbs}]})
        subject = {"kind": "ServiceAccount", "name": "clients"}
        binding: Plain = {
            "apiVersion": f"{rbac}/v1",
            "kind": "RoleBinding",
            "metadata": meta,
            "roleRef": {"apiGroup": rbac, "kind": "Role", "name": "clients"},
            "subjects": [{**subject, "namespace": self.namespace}],
        }
        await self.client.create(binding)

    # What is there

    async def workers(self, pool: str = "") -> list[Worker]:
        labels = f"{LABEL_POOL}={pool}" if pool else LABEL_POOL
        found = self.client.list(Worker, namespace=self.namespace, labels=labels)
        return [each async for each in found]

    async def states(self, pool: str = "") -> Counter[str]:
        return Counter(each.status.state.value for each in await self.workers(pool))

    async def until(self, pool: str, *, within: float = 60.0, **counts: int) -> None:
        """Wait until there are so many workers of these states."""

        async def look() -> bool:
            states = await self.states(pool)
            return all(
                states[name.replace("_", "-")] == count
                for name, count in counts.items()
            )

        try:
            await eventually(look, within=within, every=0.1)
        except AssertionError as error:
            text = f"{dict(await self.states(pool))}, wanted {counts}\n{self.log()}"
            raise AssertionError(text) from error

    async def pods(self) -> list[str]:
        """The uids of the workers' pods."""
        found = self.client.list(Pod, namespace=self.namespace, labels=LABEL_WORKER)
        return [each.metadata.uid async for each in found]

    async def leftovers(self) -> dict[str, list[str]]:
        """Pods, secrets and rows of workers that are still there."""
        pods = self.client.list(Pod, namespace=self.namespace, labels=LABEL_WORKER)
        secrets = self.client.list(
            Secret, namespace=self.namespace, fields=f"type={TYPE}"
        )
        return {
            "pods": [each.metadata.name async for each in pods],
            "secrets": [each.metadata.name async for each in secrets],
            "workers": [
                f"{each.metadata.name} {each.status.state.value}"
                for each in await self.workers()
                if each.status.state not in TERMINAL
            ],
        }

    async def traces(self) -> list[str]:
        """Ended rows, and Leases of holders and of gateways that are no more."""
        rows = [each.metadata.name for each in await self.workers()]
        found = self.client.list(Lease, namespace=self.namespace, labels=LABEL_ROLE)
        named = [each.spec.holderIdentity or "" async for each in found]
        living = [door for door in self.doors if door.lives]
        return rows + [
            name for name in named if not any(door.is_called(name) for door in living)
        ]

    async def empty(self, *, within: float = 90.0) -> None:
        """Wait until nothing of any worker is left."""

        async def look() -> bool:
            return not any((await self.leftovers()).values())

        try:
            await eventually(look, within=within, every=0.2)
        except AssertionError as error:
            text = f"{await self.leftovers()}\n{self.log()}"
            raise AssertionError(text) from error

    def witnessed(self) -> list[Plain]:
        """What the workers themselves saw, in each worker's own order."""
        return [
            json.loads(line)
            for path in sorted(self.records.iterdir())
            for line in path.read_text().splitlines()
        ]

    async def want(self, pool: str, **spec: Any) -> None:
        """Change what a pool wants."""
        body = {"spec": spec}
        await self.client.patch(WorkerPool, pool, body, namespace=self.namespace)


@asynccontextmanager
async def town(
    cluster: Cluster, namespace: str, folder: Path, **options: Any
) -> AsyncIterator[Town]:
    """A town without gateways and pools; all processes are gone at the end."""
    plenty = {"cpu": "100", "memory": "1000Gi"}
    async with laptop(cluster, namespace, folder, capacity=plenty, **options) as here:
        await install(here.client, *KINDS)
        made = Town(cluster, here, folder)
        await made.allow()
        try:
            yield made
        except BaseException:
            print(made.log())  # pytest shows it with the failure
            raise
        finally:
            for door in made.doors:
                if door.lives:
                    await door.kill()
