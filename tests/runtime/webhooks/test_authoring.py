"""Laws of what is generated for webhooks: roles suffice and no rule is idle, charts."""

from __future__ import annotations

import asyncio
import secrets
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import pytest
import yaml

from tests.authoring.accounts import Account, account
from tests.cli.helm import Helm
from tests.runtime.webhooks.sites import (
    OldSite,
    Site,
    counts,
    down,
    local,
    operator,
    served,
    up,
)
from trimtab import Client, Operator
from trimtab.authoring.permissions import Rule, rules_of
from trimtab.client.errors import NotFound
from trimtab.kinds import Secret
from trimtab.runtime.manager import Manager, ManagerOptions
from trimtab.testing import Cluster, eventually
from trimtab.testing.operating import forget

SOURCE = """
from trimtab import Operator, Refused, Resource, Review, Scope, Spec

class OldSpec(Spec):
    host: str = ""

class Old(Resource, group="example.com", version="v1", kind="Website", storage=False):
    spec: OldSpec

class NewSpec(Spec):
    address: str = ""

class Website(Resource, group="example.com", version="v2"):
    spec: NewSpec

app = Operator("websites")

@app.reconciles(Website, scope=Scope(everything=True))
async def website(site, ctx):
    ctx.log.info("seen")

@app.validates(Website)
def check(site: Website, review: Review) -> None:
    raise Refused("no")

@app.converts(Old, Website)
def up(old: Old) -> Website:
    return Website(spec=NewSpec(address=old.spec.host))

@up.back
def down(new: Website) -> Old:
    return Old(spec=OldSpec(host=new.spec.address))
"""


def app() -> Operator:
    made = operator()
    made.leader = False
    made.converts(OldSite, Site)(up).back(down)
    return made


async def works_as(who: Account, app: Operator, admin: Client) -> list[str]:
    """Run an operator until its webhooks count or it is denied something."""
    client = who.connect()
    manager = Manager(
        app,
        client,
        connect=who.connect,
        random=Random(1),
        now=lambda: datetime.now(UTC),
        options=ManagerOptions(port=None, webhooks=local(settle=0.1)),
    )
    async with asyncio.TaskGroup() as group:
        task = group.create_task(manager.run())
        try:
            await eventually(lambda: manager.ready.is_set() or who.denied())
            if not who.denied():
                await counts(admin)
                await renewed(who, admin)
        finally:
            manager.stop()
            await asyncio.wait([task], timeout=6)
    await forget(admin, app)
    with suppress(NotFound):
        await admin.delete(Secret, "pages-webhooks")
    return who.denied()


async def renewed(who: Account, admin: Client) -> None:
    """Have the Secret made again, and wait until another certificate is served."""
    before = await admin.get(Secret, "pages-webhooks")
    await admin.delete(Secret, "pages-webhooks")

    async def other() -> bool:
        try:
            found = await admin.get(Secret, "pages-webhooks")
        except NotFound:
            return bool(who.denied())
        return found.data["tls.crt"] != before.data["tls.crt"] or bool(who.denied())

    await eventually(other, describe="another certificate is served")


async def test_the_generated_roles_suffice_and_no_rule_is_idle(
    cluster: Cluster, namespace: str
) -> None:
    made = app()
    made.within((namespace,))
    rules = rules_of(made, namespace=namespace)
    async with served(made, cluster, namespace) as admin:
        assert await denied(cluster, admin, made, rules) == []
        for rule in rules:
            left = [each for each in rules if each is not rule]
            assert await denied(cluster, admin, made, left), rule


async def denied(
    cluster: Cluster, admin: Client, app: Operator, rules: list[Rule]
) -> list[str]:
    name = f"pages-{secrets.token_hex(3)}"
    async with account(cluster, admin, rules, name=name) as who:
        return await works_as(who, app, admin)


@pytest.mark.cluster("real")
def test_a_chart_leads_api_servers_to_the_webhooks(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from trimtab.cli.main import main

    source, chart = tmp_path / "site.py", tmp_path / "chart"
    source.write_text(SOURCE)
    assert main(["chart", str(source), f"--output={chart}"]) == 0
    helm = Helm(cluster, tmp_path)
    assert "0 chart(s) failed" in helm("lint", "--strict", str(chart))
    made = {each["kind"]: each for each in helm.template(chart)}
    ports = {each["name"]: each for each in made["Service"]["spec"]["ports"]}
    assert ports["webhooks"] == {
        "name": "webhooks",
        "port": 443,
        "targetPort": "webhooks",
    }
    (container,) = made["Deployment"]["spec"]["template"]["spec"]["containers"]
    assert {"name": "webhooks", "containerPort": 9443} in container["ports"]
    service = made["Service"]["metadata"]["name"]
    assert f"--webhook-service={service}" in container["args"]
    hooks = made["ValidatingWebhookConfiguration"]
    (rule,) = [
        each
        for each in made["ClusterRole"]["rules"]
        if each["resources"] == ["validatingwebhookconfigurations"]
        and "resourceNames" in each
    ]
    assert rule["resourceNames"] == [hooks["metadata"]["name"]]
    assert "webhooks" not in hooks  # the operator knows what to write there
    crd = yaml.safe_load((chart / "crds" / "websites.example.com.yaml").read_text())
    assert "conversion" not in crd["spec"]
    more = "webhooks.certificateSecret=certs,webhooks.injectFrom=here/certs"
    made = {each["kind"]: each for each in helm.template(chart, "--set", more)}
    spec = made["Deployment"]["spec"]["template"]["spec"]
    assert {"name": "certificates", "secret": {"secretName": "certs"}} in spec[
        "volumes"
    ]
    arguments = spec["containers"][0]["args"]
    assert "--webhook-certificates=/certificates" in arguments
    assert "--webhook-inject-from=here/certs" in arguments
