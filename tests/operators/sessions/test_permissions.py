"""The operator under exactly the permissions that it declares."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from random import Random

from tests.authoring.accounts import account, running_as
from tests.operators.sessions.samples import client_in
from trimtab.api import Metadata
from trimtab.authoring.permissions import rules_of
from trimtab.cache import Scope
from trimtab.client import Client, NotFound
from trimtab.kinds import Namespace, Pod, RoleBinding, Secret
from trimtab.operators.sessions.kinds import (
    DESIRED,
    MANAGED,
    SETTINGS,
    AgenticSession,
    ProjectSettings,
)
from trimtab.operators.sessions.operator import make
from trimtab.operators.sessions.settings import (
    LANGFUSE_SECRET,
    RUNNER_SECRETS,
    Settings,
)
from trimtab.testing import Cluster, eventually

DUE = {"name": "often", "settledAt": "2020-01-01T00:00:00Z"}


async def test_a_project_a_start_a_schedule_and_a_stop_need_only_what_is_declared(
    cluster: Cluster, namespace: str
) -> None:
    async with client_in(cluster, namespace) as admin:
        settings = Settings(namespace=f"{namespace}-ops", langfuse=True)
        await _furnish(admin, namespace, settings)
        app = make(settings, random=Random(1), scope=Scope(namespaces=(namespace,)))
        app.leader = False
        rules = rules_of(app, namespace=namespace)
        async with account(cluster, admin, rules, name=namespace) as who:
            async with running_as(who, app, namespace):
                await _lived(admin, who.denied)
            assert who.denied() == []
        await admin.delete(Namespace, settings.namespace)


async def _furnish(admin: Client, namespace: str, settings: Settings) -> None:
    await admin.create(Namespace(metadata=Metadata(name=settings.namespace)))
    for name, place in (
        (LANGFUSE_SECRET, settings.namespace),
        (RUNNER_SECRETS, namespace),
    ):
        made = Metadata(name=name, namespace=place)
        await admin.create(Secret(metadata=made, data={"key": b"one"}))
    label = {"metadata": {"labels": {MANAGED: "true"}}}
    await admin.patch(Namespace, namespace, label)


async def _lived(admin: Client, denied: Callable[[], list[str]]) -> None:
    """What a project sees in its life, or the first part of it that is denied."""

    async def until(holds: Callable[[], Awaitable[object]]) -> None:
        async def so() -> bool:
            try:
                return bool(denied() or await holds())
            except NotFound:
                return False

        await eventually(so, within=20)

    await until(lambda: admin.get(ProjectSettings, SETTINGS))
    state = {"status": {"schedules": [DUE]}}
    await admin.patch(ProjectSettings, SETTINGS, state, subresource="status")
    access = {"groupName": "writers", "role": "admin"}
    schedule = {"name": "often", "cron": "* * * * *", "template": {}}
    spec = {"spec": {"groupAccess": [access], "schedules": [schedule]}}
    await admin.patch(ProjectSettings, SETTINGS, spec)
    await until(lambda: _ran(admin))
    name = (await admin.get(ProjectSettings, SETTINGS)).status.schedules[0].lastSession
    await until(lambda: admin.get(Pod, f"{name}-runner"))
    await admin.patch(ProjectSettings, SETTINGS, {"spec": {"groupAccess": []}})
    stop = {"metadata": {"annotations": {DESIRED: "Stopped"}}}
    await admin.patch(AgenticSession, name, stop)
    await until(lambda: _is(admin, name, "Stopped"))
    await until(lambda: _is_rid_of(admin))


async def _ran(admin: Client) -> bool:
    status = (await admin.get(ProjectSettings, SETTINGS)).status
    return status.groupBindingsCreated == 1 and bool(status.schedules[0].lastSession)


async def _is(admin: Client, name: str, phase: str) -> bool:
    return (await admin.get(AgenticSession, name)).status.phase == phase


async def _is_rid_of(admin: Client) -> bool:
    """The copy is gone, and so is the binding of the group."""
    place = admin.config.namespace
    names = [each.metadata.name async for each in admin.list(Secret, namespace=place)]
    held = [each async for each in admin.list(RoleBinding, namespace=place)]
    groups = [each for each in held if each.subjects[0].kind == "Group"]
    return LANGFUSE_SECRET not in names and not groups


def test_the_operator_may_bind_three_roles_and_no_other() -> None:
    rules = rules_of(make(Settings(), random=Random(1)), namespace="ambient")
    (binds,) = (each for each in rules if "bind" in each.verbs)
    assert binds.names == (
        "ambient-project-admin",
        "ambient-project-edit",
        "ambient-project-view",
    )
    assert not any({"escalate", "*"} & set(each.verbs) for each in rules)
