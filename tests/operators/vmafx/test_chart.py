"""Laws of the chart: what it installs, what that may do, and how it goes again."""

from __future__ import annotations

import asyncio
import json
import random
from base64 import b64decode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import grpc
import pytest

from tests.authoring.accounts import Account
from tests.cli.commands import printed
from tests.cli.helm import Helm
from tests.client.clusters import client_of
from trimtab.api.resource import Info
from trimtab.authoring.permissions import rules_of
from trimtab.cache import Scope
from trimtab.cli.main import parser
from trimtab.client import Client, NotFound
from trimtab.kinds import ConfigMap, Deployment
from trimtab.operators.vmafx import programs
from trimtab.operators.vmafx.calling import Caller
from trimtab.operators.vmafx.gateway import GatewayOptions, serving
from trimtab.operators.vmafx.kinds import VmafxJob
from trimtab.operators.vmafx.node import Node, NodeOptions
from trimtab.operators.vmafx.operator import make
from trimtab.operators.vmafx.roots import Roots
from trimtab.operators.vmafx.scaling import alerts, external
from trimtab.operators.vmafx.scores import Score
from trimtab.operators.vmafx.training import tokens
from trimtab.pool.keyring import authority_name
from trimtab.runtime.access import Reviews
from trimtab.runtime.manager import Manager, ManagerOptions
from trimtab.runtime.webhooks.configurations import ValidatingWebhookConfiguration
from trimtab.runtime.webhooks.declarations import Declarations
from trimtab.testing import Cluster, eventually
from trimtab.testing.operating import HERE

APP = "trimtab.operators.vmafx.app"
RESTRICTED = "pod-security.kubernetes.io/enforce=restricted"
ALL = "operator.enabled=true,gateway.enabled=true,node.enabled=true"
ANYWHERE = "anywhere"
PARTS = ("/status", "/finalizers")
METRICS = "gateway.externalMetrics"
SCALED = f"node.set=true,{METRICS}.enabled=true,{METRICS}.caBundle=PEM"


@pytest.fixture
def helm(cluster: Cluster, tmp_path: Path) -> Helm:
    return Helm(cluster, tmp_path)


@pytest.fixture
def chart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    made = tmp_path / "vmafx"
    printed(capsys, "chart", APP, f"--output={made}", "--image=example.com/vmafx")
    return made


def test_the_secrets_that_a_gateway_may_read_are_its_own_and_the_trainers_key() -> None:
    named = [right for right in programs.GATEWAY.rights if right.names]
    assert {right.place for right in named} == {"home"}
    assert {right.names: right.verbs for right in named} == {
        (authority_name("vmafx-gateway"),): ("get", "patch"),
        (tokens.SECRET,): ("get",),
    }


def test_the_operator_may_do_what_its_own_source_does_and_no_more() -> None:
    import trimtab.authoring.crds  # noqa: F401 - it is no part of the operator

    app = make(random=random.Random(1), environment={})
    app.webhooks = Declarations()
    rules = rules_of(app, namespace="home")
    granted = {(rule.group, rule.resource): set(rule.verbs) for rule in rules}
    kinds = ("jobs", "nodes", "nodesets", "modeltrainings", "tenants")
    assert {resource for _, resource in granted} == {
        *(f"vmafx{each}{part}" for each in kinds for part in ("", *PARTS)),
        *("pods", "pods/finalizers", "services", "events", "leases", "secrets"),
    }
    secrets = [rule for rule in rules if rule.resource == "secrets"]
    assert {(rule.place, rule.names, rule.verbs) for rule in secrets} == {
        ("home", (), ("create",)),
        ("home", (tokens.SECRET,), ("get",)),
    }
    verbs = {"get", "list", "watch", "create", "patch", "delete"}
    assert granted["vmafx.dev", "vmafxjobs"] == verbs
    assert granted["vmafx.dev", "vmafxtenants"] == {"get", "list", "watch"}


@pytest.mark.cluster("real")
def test_nothing_runs_until_it_is_enabled_and_mistakes_are_told(
    helm: Helm, chart: Path
) -> None:
    assert "0 chart(s) failed" in helm("lint", "--strict", str(chart))
    assert helm.template(chart) == []
    assert len(list((chart / "crds").iterdir())) == 5
    kinds = [each["kind"] for each in helm.template(chart, "--set", ALL)]
    assert kinds.count("Deployment") == kinds.count("ServiceAccount") == 3
    assert "ValidatingWebhookConfiguration" not in kinds
    asked = helm.template(chart, "--set", f"{ALL},webhooks.enabled=true")
    assert "ValidatingWebhookConfiguration" in [each["kind"] for each in asked]
    for wrong in (
        "node.slots=0",
        "node.slots=65",
        "gateway.ports.grpc=0",
        "gateway.replicas=-1",
        "gateway.typo=1",
        "operator.enabled=yes please",
        "networkPolicy.inputPorts={0}",
        "replicas=2,leaderElection=false",
    ):
        done = helm.run("template", "x", str(chart), "--set", f"{ALL},{wrong}")
        assert done.returncode != 0, wrong


@pytest.mark.cluster("real")
def test_nodes_can_be_a_set_that_is_scaled_by_what_waits(
    helm: Helm, chart: Path
) -> None:
    asked = f"{ALL},{SCALED},node.autoscaling.enabled=true,node.drainSeconds=90"
    found = {each["kind"]: each for each in helm.template(chart, "--set", asked)}
    nodes, plain = found["VmafxNodeSet"], helm.template(chart, "--set", ALL)
    (deployed,) = (
        each
        for each in plain
        if each["metadata"]["name"].endswith("-node") and each["kind"] == "Deployment"
    )
    assert nodes["spec"]["template"] == deployed["spec"]["template"]
    assert nodes["spec"]["drainSeconds"] == 90
    assert "replicas" not in nodes["spec"]  # they are the autoscaler's
    scaled = found["HorizontalPodAutoscaler"]["spec"]
    assert scaled["scaleTargetRef"]["name"] == nodes["metadata"]["name"]
    (metric,) = scaled["metrics"]
    assert metric["external"]["metric"]["name"] in external.METRICS
    service = found["APIService"]["spec"]
    assert "insecureSkipTLSVerify" not in service
    assert b64decode(service["caBundle"]) == b"PEM"
    assert service["service"]["name"] == "x-vmafx-gateway"
    pods = Network(helm.template(chart, "--set", asked)).pods
    assert "--external-metrics" in pods["gateway"]["spec"]["containers"][0]["args"]
    alone = f"{ALL},node.autoscaling.enabled=true"
    done = helm.run("template", "x", str(chart), "--set", alone)
    assert "node.autoscaling needs node.set" in done.stderr
    unproved = f"{ALL},{METRICS}.enabled=true"
    done = helm.run("template", "x", str(chart), "--set", unproved)
    assert "gateway.externalMetrics.caBundle is empty" in done.stderr
    named = f"{unproved},{METRICS}.insecure=true"
    found = {each["kind"]: each for each in helm.template(chart, "--set", named)}
    assert found["APIService"]["spec"]["insecureSkipTLSVerify"]


@pytest.mark.cluster("real")
def test_rules_and_the_dashboard_are_those_of_the_metrics(
    helm: Helm, chart: Path
) -> None:
    more = "gateway.rules.enabled=true,gateway.dashboard.enabled=true"
    changed = "gateway.rules.objectives.queueAgeSeconds=60"
    rendered = helm.template(chart, "--set", f"{ALL},{more},{changed}")
    (rules,) = (each for each in rendered if each["kind"] == "PrometheusRule")
    wished = alerts.Objectives(queue_age_seconds="60", jobs="x-vmafx.*")
    assert rules["spec"] == alerts.document(wished)
    (page,) = (each for each in rendered if each["kind"] == "ConfigMap")
    assert json.loads(page["data"]["vmafx.json"]) == alerts.dashboard()


@pytest.mark.cluster("real")
def test_probes_ask_at_ports_that_are_there_and_nothing_else_is_probed(
    helm: Helm, chart: Path
) -> None:
    for each in helm.template(chart, "--set", ALL):
        if each["kind"] != "Deployment":
            continue
        (container,) = each["spec"]["template"]["spec"]["containers"]
        ports = {port["name"] for port in container.get("ports", ())}
        probes = [container.get(f"{kind}Probe") for kind in ("liveness", "readiness")]
        assert {probe["httpGet"]["port"] for probe in probes if probe} <= ports
        assert bool(ports) == all(probes)
        seconds = each["spec"]["template"]["spec"]["terminationGracePeriodSeconds"]
        assert seconds > (NodeOptions(name="n").patience if not ports else 5)


@pytest.mark.cluster("real")
def test_secrets_that_are_named_are_mounted_where_the_programs_look(
    helm: Helm, chart: Path
) -> None:
    named = "gateway.issuerSecret=issuers,node.tokenSecret=token"
    more = f"gateway.certificateSecret=tls,node.s3Secret=keys,{named}"
    rendered = helm.template(chart, "--set", f"{ALL},{more}")
    pods = Network(rendered).pods
    gateway, node = pods["gateway"]["spec"], pods["node"]["spec"]
    assert "--certificate=/certificates/tls.crt" in gateway["containers"][0]["args"]
    assert not [a for a in gateway["containers"][0]["args"] if "--names" in a]
    volumes = {each["name"]: each for each in node["volumes"]}
    assert volumes["authority"]["secret"]["secretName"] == "tls"
    assert volumes["s3"]["secret"]["secretName"] == "keys"
    assert {"name": "VMAFX_S3_KEYS", "value": "/s3"} in node["containers"][0]["env"]
    assert "--issuer-ca=/issuers/ca.crt" in gateway["containers"][0]["args"]
    assert "--token=/token/token" in node["containers"][0]["args"]
    for pod in (gateway, node):
        mounted = {each["name"] for each in pod["containers"][0]["volumeMounts"]}
        assert mounted == {each["name"] for each in pod["volumes"]}


@pytest.mark.cluster("real")
def test_what_the_pods_are_told_is_what_the_commands_understand(
    helm: Helm, chart: Path
) -> None:
    more = "webhooks.enabled=true,gateway.score=true,gateway.roots={/clips},"
    more += "gateway.tenants=true"
    pods = Network(helm.template(chart, "--set", f"{ALL},{more}")).pods
    for pod in pods.values():
        arguments = pod["spec"]["containers"][0]["args"]
        assert parser(arguments[0]).parse_args(arguments).run
    told = pods["gateway"]["spec"]["containers"][0]["args"]
    options = parser("vmafx").parse_args(told)
    assert (options.port, options.http, options.score) == (9090, 8080, True)
    assert (options.root, options.tenants) == (["/clips"], "objects")
    assert options.names[-1] == "x-vmafx-gateway.default.svc.cluster.local"


class Network:
    """What the policies of a chart let pass, as a cluster's network would judge."""

    def __init__(self, rendered: list[dict[str, Any]]) -> None:
        self._policies = [e["spec"] for e in rendered if e["kind"] == "NetworkPolicy"]
        pods = [e["spec"]["template"] for e in rendered if e["kind"] == "Deployment"]
        self.pods = {pod["spec"]["containers"][0]["name"]: pod for pod in pods}

    def passes(self, source: str, target: str, port: str | int) -> bool:
        """Whether a pod gets to a port of another, or of anybody anywhere."""
        return self._allows("egress", source, target, port) and self._allows(
            "ingress", target, source, port
        )

    def _allows(self, way: str, pod: str, other: str, port: str | int) -> bool:
        if pod not in self.pods:
            return True  # no policy of ours is about it
        labels = self.pods[pod]["metadata"]["labels"]
        policies = [p for p in self._policies if _selects(p["podSelector"], labels)]
        assert policies, f"{pod} has no policy"
        side = "to" if way == "egress" else "from"
        return any(
            port in [each["port"] for each in rule["ports"]]
            and (side not in rule or self._is_peer(rule[side], other))
            for policy in policies
            for rule in policy[way]
        )

    def _is_peer(self, peers: list[dict[str, Any]], other: str) -> bool:
        if other not in self.pods and other != "neighbour":
            return False
        labels = self.pods[other]["metadata"]["labels"] if other in self.pods else {}
        return any(_selects(peer["podSelector"], labels) for peer in peers)


def _selects(selector: dict[str, Any], labels: dict[str, str]) -> bool:
    wanted: dict[str, str] = selector.get("matchLabels", {})
    return wanted.items() <= labels.items()


@pytest.mark.cluster("real")
def test_policies_let_pass_what_the_programs_call_and_nothing_else(
    helm: Helm, chart: Path
) -> None:
    assert "NetworkPolicy" not in [
        each["kind"] for each in helm.template(chart, "--set", ALL)
    ]
    values = f"{ALL},webhooks.enabled=true,networkPolicy.enabled=true"
    network = Network(helm.template(chart, "--set", values))
    assert set(network.pods) == {"operator", "gateway", "node"}
    arguments = network.pods["node"]["spec"]["containers"][0]["args"]
    assert "--gateway=x-vmafx-gateway:9090" in arguments
    passing: list[tuple[str, str, str | int]] = [
        ("node", "gateway", "grpc"),
        ("neighbour", "gateway", "grpc"),
        ("neighbour", "gateway", "http"),
        ("neighbour", "operator", "http"),
        (ANYWHERE, "operator", "webhooks"),
        ("operator", ANYWHERE, 443),
        ("gateway", ANYWHERE, 6443),
        ("node", ANYWHERE, 443),
        ("node", ANYWHERE, 80),
        *((pod, ANYWHERE, 53) for pod in network.pods),
    ]
    for each in passing:
        assert network.passes(*each), each
    stopped: list[tuple[str, str, str | int]] = [
        (ANYWHERE, "gateway", "grpc"),
        (ANYWHERE, "operator", "http"),
        ("neighbour", "node", "grpc"),
        ("node", ANYWHERE, 6443),
        ("node", ANYWHERE, 5432),
        ("gateway", ANYWHERE, 80),
        ("operator", ANYWHERE, 80),
    ]
    for each in stopped:
        assert not network.passes(*each), each
    scoring = Network(helm.template(chart, "--set", f"{values},gateway.score=true"))
    assert scoring.passes("gateway", ANYWHERE, 80)


@pytest.mark.cluster("real")
async def test_the_chart_is_installed_scores_is_upgraded_and_goes(
    helm: Helm, cluster: Cluster, namespace: str, chart: Path, tmp_path: Path
) -> None:
    place = f"--namespace={namespace}"
    await cluster.kubectl("label", "namespace", namespace, RESTRICTED)
    values = f"{ALL},webhooks.enabled=true,networkPolicy.enabled=true"
    helm("install", "tv", str(chart), place, "--set", values)
    async with client_of(cluster, namespace=namespace) as admin:
        for name in ("tv-vmafx", "tv-vmafx-gateway", "tv-vmafx-node"):
            await _fits(admin, name)
        await _scores(cluster, admin, tmp_path)
        more = "--set=gateway.replicas=2,webhooks.enabled=false"
        helm("upgrade", "tv", str(chart), place, "--reuse-values", more)
        assert (await admin.get(Deployment, "tv-vmafx-gateway")).spec.replicas == 2
        with pytest.raises(NotFound):
            await admin.get(ValidatingWebhookConfiguration, f"vmafx-{namespace}")
        said = json.loads(helm("status", "tv", place, "--output=json"))
        assert said["version"] == 2
        helm("uninstall", "tv", place)
        with pytest.raises(NotFound):
            await admin.get(Deployment, "tv-vmafx-gateway")
        assert [each async for each in admin.list(VmafxJob)]  # the CRDs stay


async def _fits(admin: Client, name: str) -> None:
    """A namespace that enforces the restricted profile takes the pods."""
    info = await admin.discover("apps/v1", "Deployment")
    template = (await admin.get(info, name))["spec"]["template"]
    head = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}}
    await admin.create({**head, "spec": template["spec"]}, dry_run=True)


async def _scores(cluster: Cluster, admin: Client, folder: Path) -> None:
    """The programs do all of their work under the chart's own accounts."""
    operator = await _account(cluster, admin, "tv-vmafx")
    gateway = await _account(cluster, admin, "tv-vmafx-gateway")
    await _granted(admin, "tv-vmafx-gateway")
    try:
        async with (
            _operating(operator, admin.config.namespace),
            _serving(gateway, admin.config.namespace) as port,
            _working(admin, port, folder),
        ):
            job = {
                "apiVersion": "vmafx.dev/v1",
                "kind": "VmafxJob",
                "metadata": {"name": "clip"},
                "spec": {"reference": "/clips/a.mp4", "distorted": "/clips/b.mp4"},
            }
            await admin.create(job)

            async def is_scored() -> bool:
                assert operator.denied() == gateway.denied() == []
                found = await admin.get(VmafxJob, "clip")
                return found.status.phase == "Succeeded"

            await eventually(is_scored, within=30)
            found = await admin.get(VmafxJob, "clip")
            assert found.status.perFrame is not None
            await admin.get(ConfigMap, found.status.perFrame.configMap)
    finally:
        for client in (*operator.clients, *gateway.clients):
            await client.close()
    assert operator.denied() == gateway.denied() == []


async def _account(cluster: Cluster, admin: Client, name: str) -> Account:
    namespace = admin.config.namespace
    token = (await admin.token(name, namespace=namespace)).token
    return Account(cluster, namespace, token)


async def _granted(admin: Client, name: str) -> None:
    """Wait until the server knows of the roles: it learns of them by a watch."""
    namespace = admin.config.namespace
    group = "authorization.k8s.io"
    plural = "subjectaccessreviews"
    kind = Info(group=group, version="v1", kind="X", plural=plural, namespaced=False)

    async def may() -> bool:
        user = f"system:serviceaccount:{namespace}:{name}"
        return (await admin.may(user, "create", kind)).allowed

    await eventually(may)


@asynccontextmanager
async def _operating(who: Account, namespace: str) -> AsyncIterator[None]:
    app = make(random=random.Random(1))
    app.leader = False
    app.within((namespace,))  # what earlier tests left is none of its business
    manager = Manager(
        app,
        who.connect(),
        connect=who.connect,
        random=random.Random(1),
        now=lambda: datetime.now(UTC),
        options=ManagerOptions(port=None, webhooks=HERE),
    )
    async with asyncio.TaskGroup() as group:
        task = group.create_task(manager.run())
        try:
            await eventually(manager.ready.is_set, within=20)
            yield
        finally:
            manager.stop()
            await asyncio.wait([task], timeout=6)


@asynccontextmanager
async def _serving(who: Account, namespace: str) -> AsyncIterator[int]:
    client = who.connect()
    async with serving(
        client,
        judge=Reviews(client),
        options=GatewayOptions(
            namespace=namespace,
            scope=Scope(namespaces=(namespace,)),
            port=0,
            http=0,
            names=("localhost",),
            roots=Roots(("/clips",)),
        ),
        now=lambda: datetime.now(UTC),
        random=random.SystemRandom(),
    ) as served:
        yield served.grpc


@asynccontextmanager
async def _working(admin: Client, port: int, folder: Path) -> AsyncIterator[None]:
    """A node that trusts what the gateway published, and scores without looking."""
    namespace = admin.config.namespace
    token = folder / "token"
    token.touch(mode=0o600)
    made = await admin.token("tv-vmafx-node", namespace=namespace)
    token.write_text(made.token)
    trusted = (await admin.get(ConfigMap, "vmafx-gateway")).data["ca.crt"]

    async def score(
        reference: str,
        distorted: str,
        *,
        model: str,
        progress: Any,
        segment: Any = None,
    ) -> Score:
        return Score(vmaf=90.0, features={"psnr": 40.0}, frames=(90.0,), model="m")

    credentials = grpc.ssl_channel_credentials(trusted.encode())
    async with grpc.aio.secure_channel(f"localhost:{port}", credentials) as channel:
        node = Node(
            Caller(channel, token=token),
            score,
            options=NodeOptions(name="tv", beat=1.0, pull=5.0),
            random=random.Random(1),
        )
        async with asyncio.TaskGroup() as group:
            group.create_task(node.run())
            try:
                yield
            finally:
                node.drain()
