"""A house for sessions: a cluster with a node, a project, and the operator.

The runners are real: each is the reference runner in a pod of the process kubelet.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any, cast

from msgspec.structs import replace

from tests.kubelet.laptop import Laptop, laptop, marked
from tests.kubelet.machine import Machine
from trimtab import Client, Metadata, load
from trimtab.api.kinds import Event, Namespace, Pod, Secret
from trimtab.cache import Scope
from trimtab.client import NotFound
from trimtab.operators.sessions.kinds import (
    DESIRED,
    KINDS,
    MANAGED,
    AgenticSession,
    AgenticSessionSpec,
)
from trimtab.operators.sessions.names import pod_name
from trimtab.operators.sessions.operator import make
from trimtab.operators.sessions.settings import RUNNER_SECRETS, Limits, Settings
from trimtab.testing import Cluster, eventually
from trimtab.testing.operating import Running, install, running

IMAGE = "trimtab.dev/runner"
PROFILE = {
    "id": "claude-agent-sdk",
    "container": {
        "image": IMAGE,
        "resources": {
            "requests": {"cpu": "10m", "memory": "32Mi"},
            "limits": {"cpu": "2", "memory": "512Mi"},
        },
    },
    "sandbox": {
        "persistence": "none",
        "terminationGracePeriod": 2,
        "seed": {"cloneRepos": False, "hydrateState": False},
    },
}
"""A runner alone: nothing before it and nothing beside it."""
QUICK = Limits(backoff=0.5, image_grace=2.0)


def profile(id: str, **container: Any) -> dict[str, Any]:
    """Another runner, whose container is other than usual."""
    made = {**PROFILE["container"], **container}  # type: ignore[dict-item]
    return {**PROFILE, "id": id, "container": made}


class House:
    """What a test does with it."""

    def __init__(
        self, client: Client, cluster: Cluster, namespace: str, folder: Path
    ) -> None:
        self.client = client
        self.cluster = cluster
        self.namespace = namespace
        self.folder = folder
        self.settings = Settings(
            namespace=namespace,
            runner_image=IMAGE,
            run_as_non_root=False,
            registry_path=str(folder / "registry.json"),
            limits=QUICK,
        )
        self.profile(PROFILE)

    def profile(self, *profiles: dict[str, Any]) -> None:
        """Which runners there are; a session names one by ``RUNNER_TYPE``."""
        Path(self.settings.registry_path).write_text(json.dumps(profiles))

    def limited(self, **limits: Any) -> None:
        """What holds for operators from now on."""
        self.settings = replace(
            self.settings, limits=replace(self.settings.limits, **limits)
        )

    @asynccontextmanager
    async def operated(self) -> AsyncIterator[Running]:
        """The operator, while the block runs."""
        app = make(
            self.settings, random=Random(1), scope=Scope(namespaces=(self.namespace,))
        )
        async with running(app, self.cluster, self.namespace) as run:
            yield run

    @asynccontextmanager
    async def node(self, **options: Any) -> AsyncIterator[Laptop]:
        async with laptop(self.cluster, self.namespace, self.folder, **options) as made:
            yield made

    async def start(self, name: str, **spec: Any) -> AgenticSession:
        """Make a session; its workspace is a folder of the test's."""
        variables = spec.pop("environmentVariables", {})
        work = {"WORKSPACE_PATH": str(self.folder / name), **variables}
        return await self.client.create(
            AgenticSession(
                metadata=Metadata(name=name, namespace=self.namespace),
                spec=AgenticSessionSpec(environmentVariables=work, **spec),
            )
        )

    async def command(self, name: str, phase: str) -> None:
        """Wish for a phase, as the backend does."""
        body = {"metadata": {"annotations": {DESIRED: phase}}}
        await self.client.patch(AgenticSession, name, body, namespace=self.namespace)

    async def get(self, name: str) -> AgenticSession:
        return await self.client.get(AgenticSession, name, namespace=self.namespace)

    async def until(
        self,
        name: str,
        holds: Callable[[AgenticSession], object] | str,
        *,
        within: float = 15.0,
    ) -> AgenticSession:
        """The session when it is in a phase, or as wished for."""
        last: AgenticSession | None = None

        async def look() -> AgenticSession | None:
            nonlocal last
            last = await self.get(name)
            held = last.status.phase == holds if isinstance(holds, str) else holds(last)
            return last if held else None

        try:
            found = await eventually(look, within=within, every=0.05)
        except AssertionError as error:
            raise AssertionError(f"{name} never was: {last and last.status}") from error
        assert found is not None
        return found

    async def pod(self, name: str) -> Pod | None:
        try:
            return await self.client.get(Pod, pod_name(name), namespace=self.namespace)
        except NotFound:
            return None

    async def kill(self, name: str) -> None:
        """End the runner of a session as a crash would."""
        found = await self.pod(name)
        assert found is not None
        for process in marked(found.metadata.uid):
            os.kill(process, signal.SIGKILL)

    async def events(self, name: str) -> list[str]:
        """The reasons of what people were told of a session."""
        listed = self.client.list(Event, namespace=self.namespace)
        return [
            each.reason async for each in listed if each.involvedObject.name == name
        ]


@asynccontextmanager
async def house(
    cluster: Cluster | Machine, namespace: str, folder: Path
) -> AsyncIterator[House]:
    """A project, on a server that knows the kinds; nobody operates it yet."""
    async with AsyncExitStack() as stack:
        config = load(kubeconfig=cluster.kubeconfig, namespace=namespace)
        client = await stack.enter_async_context(Client(config))
        await install(client, *KINDS)
        label = {"metadata": {"labels": {MANAGED: "true"}}}
        await client.patch(Namespace, namespace, label)
        await client.create(
            Secret(
                metadata=Metadata(name=RUNNER_SECRETS, namespace=namespace),
                data={"ANTHROPIC_API_KEY": b"none"},
            )
        )
        # All that is asked of a cluster is where its kubeconfig is.
        yield House(client, cast(Cluster, cluster), namespace, folder)
