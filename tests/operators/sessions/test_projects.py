"""Projects: what a managed namespace gets, and what steady state costs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

import trimtab
from tests.operators.sessions.samples import client_in
from trimtab.api import Metadata
from trimtab.cache import Scope
from trimtab.client import Client, NotFound
from trimtab.kinds import (
    LimitRange,
    Namespace,
    NetworkPolicy,
    Role,
    RoleBinding,
    RoleRef,
    ServiceAccount,
    Subject,
)
from trimtab.operators.sessions import bindings, projects
from trimtab.operators.sessions.bindings import binding_of
from trimtab.operators.sessions.kinds import (
    MANAGED,
    SETTINGS,
    AgenticSession,
    GroupAccess,
    ProjectSettings,
)
from trimtab.operators.sessions.profiles import Registry
from trimtab.operators.sessions.settings import Settings
from trimtab.runtime.history import Reconciled
from trimtab.testing import Cluster, Running, eventually, running

OPERATOR = Settings(namespace="ambient", backend_namespace="web")


class Site:
    """A namespace of the test's own, and an operator of projects."""

    def __init__(self, client: Client, namespace: str, cluster: Cluster) -> None:
        self.client = client
        self.namespace = namespace
        self._cluster = cluster

    async def manage(self, said: str | None = "true") -> None:
        body = {"metadata": {"labels": {MANAGED: said}}}
        await self.client.patch(Namespace, self.namespace, body)

    async def settings(self) -> ProjectSettings:
        return await self.client.get(ProjectSettings, SETTINGS)

    async def write(self, **spec: Any) -> None:
        await self.client.patch(ProjectSettings, SETTINGS, {"spec": spec})

    async def begin(self, **spec: Any) -> None:
        """Settings that somebody wrote before the operator came."""
        body = {
            "apiVersion": ProjectSettings.apiVersion,
            "kind": "ProjectSettings",
            "metadata": {"name": SETTINGS, "namespace": self.namespace},
            "spec": {"groupAccess": [], **spec},
        }
        await self.client.create(body)

    async def ready(self) -> ProjectSettings:
        """The settings, once all of this generation is done."""

        async def done() -> ProjectSettings | None:
            try:
                found = await self.settings()
            except NotFound:
                return None
            current = found.status.observedGeneration == found.metadata.generation
            ready = found.status.conditions.is_true("Ready")
            return found if current and ready else None

        found = await eventually(done, describe="the project is as it should be")
        assert found is not None
        return found

    async def bindings(self) -> dict[str, RoleBinding]:
        return {
            each.metadata.name: each
            async for each in self.client.list(RoleBinding, namespace=self.namespace)
            if each.metadata.name != projects.TRIGGER
        }

    @asynccontextmanager
    async def operated(self, settings: Settings = OPERATOR) -> AsyncIterator[Running]:
        app = trimtab.Operator("projects")
        registry = Registry(settings)
        scope = Scope(namespaces=(self.namespace,))
        projects.register(app, settings, registry=registry, scope=scope)
        async with running(app, self._cluster, self.namespace) as made:
            yield made


@pytest.fixture
async def site(cluster: Cluster, namespace: str) -> AsyncIterator[Site]:
    async with client_in(cluster, namespace) as client:
        made = Site(client, namespace, cluster)
        yield made
        await made.manage(None)


def access(group: str, role: Any) -> dict[str, str]:
    return {"groupName": group, "role": role}


async def test_a_namespace_becomes_a_project_by_its_label_and_not_before(
    site: Site,
) -> None:
    async with site.operated():
        with pytest.raises(NotFound):
            await site.settings()
        await site.manage()
        made = await site.ready()
        assert made.spec.groupAccess == []
        assert made.status.scheduledSessionRBACReady
        assert made.status.limitRangeReady
        await site.client.delete(ProjectSettings, SETTINGS)
        again = await site.ready()
        assert again.metadata.uid != made.metadata.uid


async def test_settings_of_a_namespace_that_nobody_manages_are_left_alone(
    site: Site,
) -> None:
    await site.begin(groupAccess=[access("writers", "edit")])
    async with site.operated():
        await site.manage("false")
        assert await site.bindings() == {}
        await site.manage()
        await site.ready()
        assert len(await site.bindings()) == 1


async def test_a_project_gets_limits_a_policy_and_the_account_of_schedules(
    site: Site,
) -> None:
    await site.manage()
    async with site.operated():
        await site.ready()
    limits = await site.client.get(LimitRange, "ambient-default-limits")
    (item,) = limits.spec.limits or ()
    assert {key: str(value) for key, value in item.default.items()} == {
        "cpu": "2",
        "memory": "4Gi",
    }
    policy = await site.client.get(NetworkPolicy, "runner-allow-backend-only")
    (rule,) = policy.spec.ingress
    assert [each.port for each in rule.ports] == [8001]
    peers = [each.namespaceSelector for each in rule.from_]
    assert [peer.matchLabels for peer in peers if peer] == [
        {"kubernetes.io/metadata.name": "ambient"},
        {"kubernetes.io/metadata.name": "web"},
    ]
    for kind in (ServiceAccount, Role, RoleBinding):
        found = await site.client.get(kind, "ambient-session-trigger")
        (owner,) = found.metadata.ownerReferences
        assert owner.kind == "ProjectSettings"


async def test_bindings_follow_the_settings_and_are_pruned(site: Site) -> None:
    odd = "https://sso.example.com/Group With Spaces"
    await site.begin(groupAccess=[access(odd, "view"), access("writers", "edit")])
    await site.manage()
    async with site.operated():
        assert (await site.ready()).status.groupBindingsCreated == 2
        held = await site.bindings()
        assert {each.subjects[0].name for each in held.values()} == {odd, "writers"}
        await site.write(groupAccess=[access("writers", "admin")])
        assert (await site.ready()).status.groupBindingsCreated == 1
        (only,) = (await site.bindings()).values()
        assert only.roleRef.name == "ambient-project-admin"
        assert only.subjects[0].name == "writers"


async def test_old_bindings_are_replaced_and_strangers_bindings_are_not(
    site: Site,
) -> None:
    def binding(name: str, subject: str, kind: str = "Group") -> RoleBinding:
        return RoleBinding(
            metadata=Metadata(name=name, labels={MANAGED: "true"}),
            roleRef=RoleRef(kind="ClusterRole", name="ambient-project-edit"),
            subjects=[Subject(kind=kind, name=subject, apiGroup=bindings.RBAC)],
        )

    for each in (
        binding("writers-edit", "writers"),
        binding("readers-edit", "readers"),
        binding("ambient-admin-ada", "ada", "User"),
        binding("my-own", "writers"),
    ):
        await site.client.create(each)
    await site.begin(groupAccess=[access("writers", "edit")])
    await site.manage()
    async with site.operated():
        await site.ready()
        wanted = binding_of(GroupAccess(groupName="writers", role="edit"))
        assert set(await site.bindings()) == {
            wanted.metadata.name,
            "ambient-admin-ada",
            "my-own",
        }


async def test_what_somebody_deletes_or_bends_is_put_right(site: Site) -> None:
    await site.begin(groupAccess=[access("writers", "edit")])
    await site.manage()
    async with site.operated():
        await site.ready()
        (name,) = await site.bindings()
        await site.client.patch(RoleBinding, name, {"subjects": []})
        await site.client.delete(NetworkPolicy, projects.POLICY)
        await site.client.patch(Role, projects.TRIGGER, {"rules": []})

        async def mended() -> bool:
            (held,) = (await site.bindings()).values()
            role = await site.client.get(Role, projects.TRIGGER)
            try:
                await site.client.get(NetworkPolicy, projects.POLICY)
            except NotFound:
                return False
            return bool(held.subjects and role.rules)

        await eventually(mended, describe="all of it is right again")


async def test_limits_that_a_project_changed_stay_changed(site: Site) -> None:
    await site.manage()
    async with site.operated():
        await site.ready()
        bent = {"spec": {"limits": [{"type": "Container", "default": {"cpu": "7"}}]}}
        await site.client.patch(LimitRange, projects.LIMITS, bent)
        await site.write(inactivityTimeoutSeconds=5)
        await site.ready()
    found = await site.client.get(LimitRange, projects.LIMITS)
    (item,) = found.spec.limits or ()
    assert str(item.default["cpu"]) == "7"


async def test_projects_in_steady_state_cost_no_writes_also_after_a_restart(
    site: Site,
) -> None:
    """What a replay of all settings used to cost: eight calls for each of them."""
    await site.begin(groupAccess=[access("writers", "edit")])
    await site.manage()
    async with site.operated():
        before = await site.ready()
    async with site.operated() as again:
        looked = await eventually(
            lambda: _last(again, site.namespace),
            describe="the settings were looked at",
        )
        assert looked is not None
        assert looked.writes == 0
    after = await site.settings()
    assert after.metadata.resourceVersion == before.metadata.resourceVersion


def _last(running: Running, namespace: str) -> Reconciled | None:
    """The last look at the settings of a project."""
    (controller,) = (
        each
        for each in running.manager.controllers
        if each.definition.name == "settings"
    )
    return controller.history.of((namespace, SETTINGS))


async def test_a_schedule_makes_its_session_and_remembers_that_it_did(
    site: Site,
) -> None:
    schedule = {"name": "often", "cron": "* * * * *", "template": {"timeout": 9}}
    await site.begin(schedules=[schedule])
    # It was last settled an hour ago, so the turn of this minute is due.
    settled = {"schedules": [{"name": "often", "settledAt": "2020-01-01T00:00:00Z"}]}
    await site.client.patch(
        ProjectSettings, SETTINGS, {"status": settled}, subresource="status"
    )
    await site.manage()
    async with site.operated():
        found = await site.ready()
    (state,) = found.status.schedules
    assert state.settledAt is not None
    made = await site.client.get(AgenticSession, state.lastSession)
    assert made.spec.timeout == 9
    assert made.metadata.labels["ambient-code.io/scheduled-run"] == "true"
    assert found.status.conditions.is_true("SchedulesReady")


async def test_a_schedule_that_is_wrong_is_said_and_holds_up_nothing(
    site: Site,
) -> None:
    await site.begin(
        groupAccess=[access("writers", "edit")],
        schedules=[{"name": "never", "cron": "soon"}],
    )
    await site.manage()
    async with site.operated():
        found = await site.ready()
    said = found.status.conditions["SchedulesReady"]
    assert said.status == "False"
    assert "never: 'soon' has not the five fields" in said.message
    assert found.status.groupBindingsCreated == 1


def test_the_policy_opens_the_ports_of_all_profiles() -> None:
    (rule,) = projects.policy(Settings(), (8001, 9000)).spec.ingress
    assert [each.port for each in rule.ports] == [8001, 9000]
