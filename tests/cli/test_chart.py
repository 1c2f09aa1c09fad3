"""Laws of ``trimtab chart``: what it writes is judged by Helm and a real server."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.authoring.accounts import Account, ended, running_as
from tests.cli.commands import printed, refused
from tests.cli.helm import Helm
from tests.client.clusters import client_of
from tests.examples.scenarios import EXAMPLES, SCENARIOS, example, served
from trimtab.authoring.charts import schema_of, values_of
from trimtab.client.errors import NotFound
from trimtab.kinds import Deployment
from trimtab.testing import Cluster

RESTRICTED = "pod-security.kubernetes.io/enforce=restricted"
pytestmark = pytest.mark.usefixtures("modules")


def charted(
    capsys: pytest.CaptureFixture[str], folder: Path, name: str, *more: str
) -> Path:
    """The chart of an example."""
    made = folder / name
    file = str(EXAMPLES / f"{name}.py")
    printed(capsys, "chart", file, f"--output={made}", *more)
    return made


@pytest.fixture
def helm(cluster: Cluster, tmp_path: Path) -> Helm:
    return Helm(cluster, tmp_path)


@pytest.mark.cluster("real")
@pytest.mark.parametrize("name", SCENARIOS)
def test_helm_finds_nothing_wrong_with_a_chart(
    name: str, helm: Helm, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chart = charted(capsys, tmp_path, name)
    assert "0 chart(s) failed" in helm("lint", "--strict", str(chart))
    kinds = {each["kind"] for each in helm.template(chart)}
    assert kinds == {
        *("ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role"),
        *("RoleBinding", "Deployment", "Service"),
    }
    more = "replicas=2,serviceMonitor.enabled=true,namespaces={a,default}"
    narrow = helm.template(chart, "--set", more)
    kinds = {each["kind"] for each in narrow}
    assert {"PodDisruptionBudget", "ServiceMonitor"} <= kinds
    assert not {"ClusterRole", "ClusterRoleBinding"} & kinds
    names = [
        (each["kind"], each["metadata"]["name"], each["metadata"].get("namespace"))
        for each in narrow
    ]
    assert len(set(names)) == len(names)


@pytest.mark.cluster("real")
def test_more_than_one_replica_without_a_leader_cannot_be_rendered(
    helm: Helm, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chart = charted(capsys, tmp_path, "website")
    arguments = ("template", "x", str(chart))
    wrong = ("--set", "replicas=2,leaderElection=false")
    for more in ((), ("--skip-schema-validation",)):
        done = helm.run(*arguments, *wrong, *more)
        assert done.returncode != 0
    assert "would all work at once: set replicas to 1" in done.stderr
    for value in ("port=0", "log=loud", "namespaces={A}", "typo=1", "image.tga=x"):
        assert helm.run(*arguments, "--set", value).returncode != 0, value


@pytest.mark.cluster("real")
async def test_a_chart_is_installed_works_is_upgraded_and_goes(
    helm: Helm,
    cluster: Cluster,
    namespace: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    chart = charted(capsys, tmp_path, "buckets", "--version=1.0.0")
    place = f"--namespace={namespace}"
    async with client_of(cluster, namespace=namespace) as admin:
        await cluster.kubectl("label", "namespace", namespace, RESTRICTED)
        helm(
            "install", "shop", str(chart), place, "--set", f"namespaces={{{namespace}}}"
        )
        app = example("buckets")
        await served(admin, app)
        app.within([namespace])
        await _works(cluster, admin, app, "shop-buckets", "buckets")
        await _fits(cluster, admin, "shop-buckets")
        charted(capsys, tmp_path, "buckets", "--version=1.1.0")
        flags = ("--set", "replicas=2", "--reuse-values")
        helm("upgrade", "shop", str(chart), place, *flags)
        deployment = await admin.get(Deployment, "shop-buckets")
        assert deployment.spec.replicas == 2
        said = json.loads(helm("status", "shop", place, "--output=json"))
        assert said["version"] == 2
        helm("uninstall", "shop", place)
        with pytest.raises(NotFound):
            await admin.get(Deployment, "shop-buckets")


async def _works(
    cluster: Cluster, admin: Any, app: Any, account: str, name: str
) -> None:
    """The operator does its work under the chart's own service account."""
    namespace = admin.config.namespace
    token = (await admin.token(account, namespace=namespace)).token
    who = Account(cluster, namespace, token)
    try:
        async with running_as(who, app, namespace):
            async with asyncio.TaskGroup() as group:
                scenario = SCENARIOS[name](admin, app)
                await ended(who, group.create_task(_awaited(scenario)))
    finally:
        for client in who.clients:
            await client.close()
    assert who.denied() == []


async def _awaited(scenario: Any) -> None:
    await scenario


async def _fits(cluster: Cluster, admin: Any, name: str) -> None:
    """A namespace that enforces the restricted profile takes the Deployment's pods."""
    info = await admin.discover("apps/v1", "Deployment")
    template = (await admin.get(info, name))["spec"]["template"]
    head = {"apiVersion": "v1", "kind": "Pod"}
    pod = {**head, "metadata": {"name": name}, "spec": template["spec"]}
    await admin.create(pod, dry_run=True)
    probes = [
        pod["spec"]["containers"][0][probe]["httpGet"]["port"]
        for probe in ("livenessProbe", "readinessProbe")
    ]
    ports = {each["name"] for each in pod["spec"]["containers"][0]["ports"]}
    assert set(probes) <= ports


def test_a_chart_is_written_whole_or_not_at_all(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = charted(capsys, tmp_path, "website")
    assert yaml.safe_load((made / "Chart.yaml").read_text())["name"] == "websites"
    (crd,) = (made / "crds").iterdir()
    assert yaml.safe_load(crd.read_text())["kind"] == "CustomResourceDefinition"
    before = {path: path.read_bytes() for path in made.rglob("*") if path.is_file()}
    file = str(EXAMPLES / "website.py")
    for wrong in ("--version=one", "--image=Not An Image", "--image=a/b:1"):
        said = refused(capsys, "chart", file, f"--output={made}", wrong)
        assert "is not a" in said
    charted(capsys, tmp_path, "website")  # ours, so it is replaced
    assert before == {p: p.read_bytes() for p in made.rglob("*") if p.is_file()}
    assert [path.name for path in tmp_path.iterdir()] == ["website"]


def test_a_folder_of_somebody_else_is_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "Chart.yaml").write_text("name: mine\n")
    (tmp_path / "file").write_text("")
    file = str(EXAMPLES / "website.py")
    for name in ("mine", "file"):
        said = refused(capsys, "chart", file, f"--output={tmp_path / name}")
        assert "is there already" in said
    said = refused(capsys, "chart", file, f"--output={tmp_path}/file/inside")
    assert "cannot be made" in said
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "mine"]


def test_the_schema_knows_every_value_and_takes_the_defaults() -> None:
    from trimtab.authoring.charts import Chart

    chart = Chart(operator=example("website"), definitions=[], source="x", image="x")
    values = values_of(chart, elects=True)
    schema = schema_of(values, elects=True, narrows=True)
    assert set(values) <= set(schema["properties"])
    fixed = schema_of(values, elects=False, narrows=False)
    assert fixed["properties"]["leaderElection"]["const"] is False
    assert fixed["properties"]["namespaces"]["maxItems"] == 0
