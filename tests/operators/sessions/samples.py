"""Sessions and settings for tests, as they come from a server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from trimtab.api.codec import convert
from trimtab.client import Client, NotFound, load
from trimtab.operators.sessions.environment import Facts
from trimtab.operators.sessions.kinds import KINDS, AgenticSession, ProjectSettings
from trimtab.operators.sessions.podspec import pod
from trimtab.operators.sessions.profiles import Profile
from trimtab.operators.sessions.settings import RUNNER_SECRETS, Settings
from trimtab.testing import Cluster, eventually, install

UID = "11111111-2222-3333-4444-555555555555"
FACTS = Facts(secrets=frozenset({RUNNER_SECRETS}))


def session(
    spec: dict[str, Any] | None = None,
    *,
    name: str = "fix-tests",
    status: dict[str, Any] | None = None,
    annotations: dict[str, str] | None = None,
) -> AgenticSession:
    body = {
        "metadata": {
            "name": name,
            "namespace": "team",
            "uid": UID,
            "annotations": annotations or {},
        },
        "spec": spec or {},
        "status": status or {},
    }
    return convert(AgenticSession, body)


def project(**spec: Any) -> ProjectSettings:
    body = {"metadata": {"namespace": "team"}, "spec": {"groupAccess": [], **spec}}
    return convert(ProjectSettings, body)


def made(
    of: AgenticSession | None = None,
    *,
    settings: Settings | None = None,
    profile: Profile | None = None,
    facts: Facts = FACTS,
    project: ProjectSettings | None = None,
) -> dict[str, Any]:
    """The pod of a session."""
    return pod(
        of or session(),
        project=project,
        settings=settings or Settings(),
        profile=profile or Profile(),
        facts=facts,
    )


def container(pod: dict[str, Any], name: str = "ambient-code-runner") -> dict[str, Any]:
    spec = pod["spec"]
    found = [*spec["containers"], *spec["initContainers"]]
    return next(each for each in found if each["name"] == name)


def variables(pod: dict[str, Any], name: str = "ambient-code-runner") -> dict[str, Any]:
    """What a container is told: texts, and references as they are."""
    return {
        each["name"]: each.get("value", each.get("valueFrom"))
        for each in container(pod, name)["env"]
    }


@asynccontextmanager
async def client_in(cluster: Cluster, namespace: str) -> AsyncIterator[Client]:
    """A client of the test's cluster that has the kinds of sessions."""
    config = load(kubeconfig=cluster.kubeconfig, namespace=namespace)
    async with Client(config) as client:
        await install(client, *KINDS)
        await eventually(partial(_listed, client), describe="the kinds are listed")
        yield client


async def _listed(client: Client) -> bool:
    try:
        for kind in KINDS:
            await client.discover(kind.apiVersion, kind.kind)
    except NotFound:
        return False
    return True
