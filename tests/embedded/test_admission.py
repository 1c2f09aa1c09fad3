"""What namespaces, accounts, priorities and limit ranges do to what comes in.

Each law runs unchanged on the embedded server and on kube-apiserver with controllers,
which make the account that a namespace has.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from tests.embedded.asking import APPLY, Answer, Asker, Plain, asking
from trimtab.testing import Cluster, Options, eventually
from trimtab.testing.cluster import started

pytestmark = pytest.mark.cluster("embedded", "real")
TOKEN_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"
CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
NAMESPACES = "/api/v1/namespaces"


@pytest.fixture(scope="module")
def controlled(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    kind = request.config.getoption("--cluster")
    with started(kind, options=Options(controllers=True)) as cluster:
        yield cluster


@pytest.fixture
async def ask(controlled: Cluster) -> AsyncIterator[Asker]:
    """An asker in a namespace that has its account."""
    name = f"admission-{secrets.token_hex(4)}"
    async with asking(controlled, name) as made:
        await made("POST", NAMESPACES, {"metadata": {"name": name}})
        account = f"{made.path('serviceaccounts')}/default"

        async def is_there() -> bool:
            return (await made("GET", account)).status == 200

        await eventually(is_there, within=20)
        yield made
        await made("DELETE", f"{NAMESPACES}/{name}")


def pod(name: str = "one", *, main: Plain | None = None, **spec: Any) -> Plain:
    container = {"name": "main", "image": "x", **(main or {})}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [container], **spec},
    }


def resources(requests: Plain | None = None, limits: Plain | None = None) -> Plain:
    given = {"requests": requests, "limits": limits}
    return {"resources": {key: value for key, value in given.items() if value}}


def mounts(obj: Plain) -> list[str]:
    return [
        each["name"]
        for each in obj["spec"]["containers"][0].get("volumeMounts", [])
        if each["mountPath"] == TOKEN_PATH
    ]


async def test_nothing_comes_into_a_namespace_that_is_not_there(ask: Asker) -> None:
    refusal = (404, "NotFound", 'namespaces "no-such-place" not found')
    root = f"{NAMESPACES}/no-such-place"
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}}
    assert (await ask("POST", f"{root}/configmaps", config)).refusal == refusal
    assert (await ask("POST", f"{root}/pods", pod())).refusal == refusal
    where = f"{root}/configmaps/one"
    applied = await ask("PATCH", where, config, media=APPLY, fieldManager="me")
    assert applied.refusal == refusal


async def test_nothing_new_comes_into_a_namespace_that_goes(ask: Asker) -> None:
    path = ask.path("configmaps")
    meta = {"name": "hold", "finalizers": ["example.com/hold"]}
    await ask("POST", path, {"metadata": meta})
    await ask("DELETE", f"{NAMESPACES}/{ask.namespace}")
    because = (
        f"unable to create new content in namespace {ask.namespace} because it is "
        "being terminated"
    )
    for given, name in (({"name": "late"}, "late"), ({"generateName": "l-"}, "l-")):
        refused = await ask("POST", path, {"metadata": given})
        told = f'configmaps "{name}" is forbidden: {because}'
        assert refused.refusal == (403, "Forbidden", told)
        assert refused.causes == [
            (
                "NamespaceTerminating",
                "metadata.namespace",
                f"namespace {ask.namespace} is being terminated",
            )
        ]
    free = [{"op": "remove", "path": "/metadata/finalizers"}]
    media = "application/json-patch+json"
    assert (await ask("PATCH", f"{path}/hold", free, media=media)).status == 200


async def test_a_pod_gets_the_token_of_its_account(ask: Asker) -> None:
    path = ask.path("pods")
    made = (await ask("POST", path, pod())).obj
    assert made["spec"]["serviceAccountName"] == "default"
    (volume,) = made["spec"]["volumes"]
    assert volume["name"].startswith("kube-api-access-")
    assert mounts(made) == [volume["name"]]
    kinds = [next(iter(each)) for each in volume["projected"]["sources"]]
    assert kinds == ["serviceAccountToken", "configMap", "downwardAPI"]
    missing = await ask("POST", path, pod("two", serviceAccountName="missing"))
    assert missing.refusal == (
        403,
        "Forbidden",
        (
            'pods "two" is forbidden: error looking up service account '
            f'{ask.namespace}/missing: serviceaccount "missing" not found'
        ),
    )


async def test_a_token_is_mounted_only_where_it_is_wanted(ask: Asker) -> None:
    path = ask.path("pods")
    quiet = {"metadata": {"name": "quiet"}, "automountServiceAccountToken": False}
    secret = {"imagePullSecrets": [{"name": "pull"}]}
    await ask("POST", ask.path("serviceaccounts"), {**quiet, **secret})

    async def create(name: str, **spec: Any) -> Plain:
        made: Plain = (await ask("POST", path, pod(name, **spec))).obj
        return made

    async def looks() -> bool:  # an admission plugin may not have seen it yet
        trial = pod("trial", serviceAccountName="quiet")
        return (await ask("POST", path, trial, dryRun="All")).status == 201

    await eventually(looks, within=10)
    assert not mounts(await create("a", automountServiceAccountToken=False))
    silent = await create("b", serviceAccountName="quiet")
    assert not mounts(silent)
    assert silent["spec"]["imagePullSecrets"] == [{"name": "pull"}]
    both = {"serviceAccountName": "quiet", "automountServiceAccountToken": True}
    assert mounts(await create("c", **both))
    own = {"imagePullSecrets": [{"name": "own"}]}
    kept = await create("d", serviceAccountName="quiet", **own)
    assert kept["spec"]["imagePullSecrets"] == [{"name": "own"}]
    mount = {"volumeMounts": [{"name": "v", "mountPath": TOKEN_PATH}]}
    there = await create("e", main=mount, volumes=[{"name": "v", "emptyDir": {}}])
    assert mounts(there) == ["v"]
    assert len(there["spec"]["volumes"]) == 1


async def test_a_pod_has_the_priority_of_its_class(ask: Asker) -> None:
    path, name = ask.path("pods"), f"class-{ask.namespace}"
    obj = {"metadata": {"name": name}, "value": 1000, "preemptionPolicy": "Never"}
    await ask("POST", CLASSES, obj)

    async def create(number: str, **spec: Any) -> Answer:
        return await ask("POST", path, pod(number, **spec), dryRun="All")

    async def seen() -> bool:
        return (await create("trial", priorityClassName=name)).status == 201

    await eventually(seen, within=10)
    spec = (await create("a", priorityClassName=name)).obj["spec"]
    assert (spec["priority"], spec["preemptionPolicy"]) == (1000, "Never")
    spec = (await create("b")).obj["spec"]
    assert (spec["priority"], spec["preemptionPolicy"]) == (0, "PreemptLowerPriority")
    computed = "priority admission controller computed"
    for given, why in (
        (
            {"priorityClassName": "unknown"},
            "no PriorityClass with name unknown was found",
        ),
        (
            {"priority": 5},
            (
                "the integer value of priority (5) must not be provided in pod spec; "
                f"{computed} 0 from the given PriorityClass name"
            ),
        ),
        (
            {"priorityClassName": name, "preemptionPolicy": "PreemptLowerPriority"},
            (
                "the string value of PreemptionPolicy (PreemptLowerPriority) must not "
                f"be provided in pod spec; {computed} Never from the given "
                "PriorityClass name"
            ),
        ),
    ):
        told = f'pods "c" is forbidden: {why}'
        assert (await create("c", **given)).refusal == (403, "Forbidden", told)
    await ask("DELETE", f"{CLASSES}/{name}")


async def test_one_class_is_the_default(ask: Asker) -> None:
    first, second = f"one-{ask.namespace}", f"two-{ask.namespace}"
    default = {"value": 50, "globalDefault": True}
    await ask("POST", CLASSES, {"metadata": {"name": first}, **default})

    async def is_default() -> bool:
        made = await ask("POST", ask.path("pods"), pod(), dryRun="All")
        return bool(made.obj["spec"].get("priorityClassName") == first)

    try:
        await eventually(is_default, within=10)
        refused = await ask("POST", CLASSES, {"metadata": {"name": second}, **default})
        assert refused.refusal == (
            403,
            "Forbidden",
            (
                f'priorityclasses.scheduling.k8s.io "{second}" is forbidden: '
                f"PriorityClass {first} is already marked as default. Only one "
                "default can exist"
            ),
        )
    finally:
        await ask("DELETE", f"{CLASSES}/{first}")


async def test_a_pod_tolerates_lost_nodes_for_a_while(ask: Asker) -> None:
    path = ask.path("pods")
    own = {
        "key": "node.kubernetes.io/not-ready",
        "operator": "Exists",
        "effect": "NoExecute",
        "tolerationSeconds": 5,
    }
    other = {**own, "key": "node.kubernetes.io/unreachable", "tolerationSeconds": 300}
    made = await ask("POST", path, pod("a", tolerations=[own]), dryRun="All")
    assert made.obj["spec"]["tolerations"] == [own, other]
    everything = {"operator": "Exists"}
    made = await ask("POST", path, pod("b", tolerations=[everything]), dryRun="All")
    assert made.obj["spec"]["tolerations"] == [everything]


async def test_a_new_node_is_not_ready_for_pods(ask: Asker) -> None:
    ready = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
    own = {"key": "example.com/own", "effect": "NoExecute"}
    for given, kept in (([], [ready]), ([own], [own, ready]), ([ready], [ready])):
        node = {"metadata": {"name": "a"}, "spec": {"taints": given}}
        made = await ask("POST", "/api/v1/nodes", node, dryRun="All")
        assert made.obj["spec"]["taints"] == kept


async def _limited(ask: Asker, **item: Any) -> None:
    """A limit range that the server minds from now on."""
    body = {"metadata": {"name": "limits"}, "spec": {"limits": [item]}}
    await ask("POST", ask.path("limitranges"), body)


async def test_a_limit_range_fills_in_what_a_container_leaves_open(ask: Asker) -> None:
    path = ask.path("pods")
    await _limited(
        ask,
        type="Container",
        default={"cpu": "500m", "memory": "128Mi"},
        defaultRequest={"cpu": "100m"},
    )

    async def minded() -> Plain | None:
        made = (await ask("POST", path, pod(), dryRun="All")).obj
        return made if "annotations" in made["metadata"] else None

    made = await eventually(minded, within=10)
    assert made is not None
    assert made["spec"]["containers"][0]["resources"] == {
        "limits": {"cpu": "500m", "memory": "128Mi"},
        "requests": {"cpu": "100m", "memory": "128Mi"},
    }
    assert made["metadata"]["annotations"] == {
        "kubernetes.io/limit-ranger": "LimitRanger plugin set: cpu, memory request for "
        "container main; cpu, memory limit for container main"
    }


@pytest.mark.parametrize(
    ("kind", "bounds", "given", "why"),
    [
        (
            "Container",
            {"min": {"cpu": "50m"}},
            resources({"cpu": "10m"}),
            "minimum cpu usage per Container is 50m, but request is 10m",
        ),
        (
            "Container",
            {"max": {"cpu": "1"}},
            resources({"cpu": "100m"}, {"cpu": "2"}),
            "maximum cpu usage per Container is 1, but limit is 2",
        ),
        (
            "Container",
            {"maxLimitRequestRatio": {"cpu": "4"}},
            resources({"cpu": "100m"}, {"cpu": "500m"}),
            (
                "cpu max limit to request ratio per Container is 4, but provided "
                "ratio is 5.000000"
            ),
        ),
        (
            "Pod",
            {"max": {"cpu": "1"}},
            resources({"cpu": "100m"}, {"cpu": "1300m"}),
            "maximum cpu usage per Pod is 1, but limit is 1300m",
        ),
        (
            "Pod",
            {"min": {"memory": "64Mi"}},
            resources({"cpu": "100m"}),
            "minimum memory usage per Pod is 64Mi.  No request is specified",
        ),
    ],
    ids=["min", "max", "ratio", "pod-max", "pod-min"],
)
async def test_a_limit_range_forbids_what_is_out_of_its_bounds(
    ask: Asker, kind: str, bounds: Plain, given: Plain, why: str
) -> None:
    await _limited(ask, type=kind, **bounds)

    async def refused() -> Answer | None:
        made = await ask("POST", ask.path("pods"), pod(main=given), dryRun="All")
        return made if made.status != 201 else None

    answer = await eventually(refused, within=10)
    assert answer is not None
    assert answer.refusal == (403, "Forbidden", f'pods "one" is forbidden: {why}')


async def test_a_limit_range_bounds_volume_claims(ask: Asker) -> None:
    bounds = {"min": {"storage": "1Gi"}, "max": {"storage": "2Gi"}}
    await _limited(ask, type="PersistentVolumeClaim", **bounds)

    async def claim(storage: str) -> Answer:
        spec = {"accessModes": ["ReadWriteOnce"]}
        spec |= resources({"storage": storage})
        body = {"metadata": {"name": "one"}, "spec": spec}
        path = ask.path("persistentvolumeclaims")
        return await ask("POST", path, body, dryRun="All")

    async def minded() -> bool:
        return (await claim("500Mi")).status == 403

    await eventually(minded, within=10)
    usage = "storage usage per PersistentVolumeClaim is"
    for storage, why in (
        ("500Mi", f"minimum {usage} 1Gi, but request is 500Mi"),
        ("3Gi", f"maximum {usage} 2Gi, but request is 3Gi"),
    ):
        told = f'persistentvolumeclaims "one" is forbidden: {why}'
        assert (await claim(storage)).refusal == (403, "Forbidden", told)
    assert (await claim("1Gi")).status == 201
