"""Laws of generated roles: they suffice, and nothing in them can be left out.

The examples run under exactly the service account that is made for them. Then they run
again with one rule less each time, and each time the server denies them something. For
verbs that a short life does not come to, there is an occasion on which it does.
"""

from __future__ import annotations

import asyncio
import secrets

import msgspec
import pytest

from tests.authoring.accounts import Account, account, ended, running_as
from tests.authoring.occasions import OCCASIONS
from tests.client.clusters import client_of
from tests.examples.scenarios import SCENARIOS, example, served
from trimtab.authoring.permissions import Rule, rules_of
from trimtab.client import Client
from trimtab.runtime.operator import Operator
from trimtab.testing import Cluster, Options
from trimtab.testing import cluster as fresh_cluster

ENFORCED = "--enable-admission-plugins=OwnerReferencesPermissionEnforcement"


def named(name: str) -> str:
    return f"{name.replace('_', '-')}-{secrets.token_hex(3)}"


async def told(client: Client, app: Operator, who: Account, name: str) -> list[str]:
    """Run a scenario; what the operator was denied until its end."""
    async with running_as(who, app, client.config.namespace):
        async with asyncio.TaskGroup() as group:
            await ended(who, group.create_task(_scenario(name, client, app)))
    return who.denied()


async def _scenario(name: str, client: Client, app: Operator) -> None:
    await SCENARIOS[name](client, app)


@pytest.mark.parametrize("within", [False, True], ids=["cluster", "roles only"])
@pytest.mark.parametrize("name", SCENARIOS)
async def test_the_generated_roles_suffice(
    cluster: Cluster, namespace: str, name: str, within: bool
) -> None:
    app = example(name)
    if within:
        app.within([namespace])
    rules = rules_of(app, namespace=namespace)
    if within:
        assert {rule.place for rule in rules} == {namespace}
    async with client_of(cluster, namespace=namespace) as admin:
        await served(admin, app)
        async with account(cluster, admin, rules, name=named(name)) as who:
            assert await told(admin, app, who, name) == []


@pytest.mark.parametrize("occasion", OCCASIONS, ids=" ".join)
async def test_the_generated_roles_suffice_on_every_occasion(
    cluster: Cluster, namespace: str, occasion: tuple[str, str]
) -> None:
    async with client_of(cluster, namespace=namespace) as admin:
        await served(admin, example("buckets"))
        rules = rules_in("buckets", namespace)
        async with account(cluster, admin, rules, name=named("buckets")) as who:
            await OCCASIONS[occasion](who, admin, "buckets")
            assert who.denied() == []


@pytest.mark.parametrize("name", SCENARIOS)
async def test_without_any_one_of_its_rules_an_example_is_denied_something(
    cluster: Cluster, namespace: str, name: str
) -> None:
    """On a real server verb by verb; on the embedded one, for time, rule by rule."""
    async with client_of(cluster, namespace=namespace) as admin:
        await served(admin, example(name))
        for rule in rules_in(name, namespace):
            if rule.resource.endswith("/finalizers"):
                continue
            if cluster.kind != "real":
                await lacking(cluster, admin, name, rule, rule.verbs)
            for verb in rule.verbs:
                if (rule.resource, verb) in OCCASIONS:
                    await lacking_on_occasion(cluster, admin, name, rule, verb)
                elif cluster.kind == "real":
                    await lacking(cluster, admin, name, rule, (verb,))


@pytest.mark.cluster("real")
async def test_where_owners_are_guarded_the_rule_for_finalizers_is_needed() -> None:
    """Some clusters let only those block an owner's deletion who may finalize it."""
    options = Options(apiserver_flags=(ENFORCED,), controllers=True)
    async with fresh_cluster("real", options=options) as guarded:
        async with client_of(guarded, namespace="default") as admin:
            # All of them first: the guard seldom asks which kinds there are.
            for name in SCENARIOS:
                await served(admin, example(name))
            for name in SCENARIOS:
                app = example(name)
                rules = rules_in(name, "default")
                (rule,) = [each for each in rules if "/finalizers" in each.resource]
                await lacking(guarded, admin, name, rule, rule.verbs)
                async with account(guarded, admin, rules, name=named(name)) as who:
                    app.within(["default"])
                    assert await told(admin, app, who, name) == []


def rules_in(name: str, namespace: str) -> list[Rule]:
    app = example(name)
    app.within([namespace])
    return rules_of(app, namespace=namespace)


async def lacking(
    cluster: Cluster, admin: Client, name: str, rule: Rule, verbs: tuple[str, ...]
) -> None:
    """Run an example without some verbs, and see that the server denies something."""
    app = example(name)
    app.within([admin.config.namespace])
    left = rules_without(name, rule, verbs, namespace=admin.config.namespace)
    async with account(cluster, admin, left, name=named(name)) as who:
        message = f"{name} does not need {verbs} of {rule.resource}"
        assert await told(admin, app, who, name), message
    await emptied(admin, app)


async def lacking_on_occasion(
    cluster: Cluster, admin: Client, name: str, rule: Rule, verb: str
) -> None:
    """See that just this verb is denied when the occasion for it comes."""
    left = rules_without(name, rule, (verb,), namespace=admin.config.namespace)
    async with account(cluster, admin, left, name=named(name)) as who:
        await OCCASIONS[rule.resource, verb](who, admin, name)
        assert set(who.denied()) == {verb}, rule
    await emptied(admin, example(name))


def rules_without(
    name: str, rule: Rule, verbs: tuple[str, ...], *, namespace: str
) -> list[Rule]:
    left = [each for each in rules_in(name, namespace) if each != rule]
    if kept := tuple(each for each in rule.verbs if each not in verbs):
        left.append(msgspec.structs.replace(rule, verbs=kept))
    return left


async def emptied(admin: Client, app: Operator) -> None:
    """Put away what the scenario left, so that the next one begins anew."""
    place = admin.config.namespace
    for definition in app.controllers():
        for source in definition.sources:
            async for obj in admin.list(source.kind.__resource__, namespace=place):
                name = obj["metadata"]["name"]
                if name == "kube-root-ca.crt":
                    continue
                body = {"metadata": {"finalizers": None}}
                await admin.patch(source.kind.__resource__, name, body)
                await admin.delete(source.kind, name)
    leases = await admin.discover("coordination.k8s.io/v1", "Lease")
    await admin.delete_collection(leases, namespace=place)
