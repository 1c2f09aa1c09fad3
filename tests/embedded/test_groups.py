"""What the smaller groups do beyond keeping objects.

Each law runs unchanged on the embedded server and on kube-apiserver. There, ranges of
addresses are made ready by kube-controller-manager, so that one runs too.
"""

from __future__ import annotations

import base64
import json
import secrets
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, utils

from tests.embedded.asking import MERGE, Asker, Plain
from tests.embedded.rooms import Room, ask, controlled, room
from trimtab.testing import Cluster, eventually

__all__ = ["ask", "controlled", "room"]
pytestmark = pytest.mark.cluster("embedded", "real")

FLOW = "/apis/flowcontrol.apiserver.k8s.io/v1"
NETWORK = "/apis/networking.k8s.io/v1"
RUNTIMES = "/apis/node.k8s.io/v1/runtimeclasses"
SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def new(base: str) -> str:
    return f"{base}-{secrets.token_hex(3)}"


async def condition(ask: Asker, path: str, type: str) -> Any:
    state = (await ask("GET", path)).obj.get("status") or {}
    found = (each for each in state.get("conditions") or () if each["type"] == type)
    return next(found, None)


async def test_a_flow_schema_says_whether_its_level_is_there(ask: Asker) -> None:
    level, schema = new("level"), new("schema")
    spec = {"priorityLevelConfiguration": {"name": level}}
    body = {"metadata": {"name": schema}, "spec": spec}
    made = await ask("POST", f"{FLOW}/flowschemas", body)
    assert made.obj["spec"]["matchingPrecedence"] == 1000
    path = f"{FLOW}/flowschemas/{schema}"

    async def dangling(status: str) -> Any:
        async def told() -> Any:
            found = await condition(ask, path, "Dangling")
            return found if found and found["status"] == status else None

        return await eventually(told, within=20)

    about = f'references the PriorityLevelConfiguration object named "{level}"'
    found = await dangling("True")
    assert found["reason"] == "NotFound"
    assert found["message"] == f"This FlowSchema {about} but there is no such object"
    limited = {"limitResponse": {"type": "Reject"}}
    body = {
        "metadata": {"name": level},
        "spec": {"type": "Limited", "limited": limited},
    }
    levels = f"{FLOW}/prioritylevelconfigurations"
    assert (await ask("POST", levels, body)).status == 201
    found = await dangling("False")
    assert (found["reason"], found["message"]) == (
        "Found",
        f"This FlowSchema {about} and it exists",
    )
    await ask("DELETE", path)
    await ask("DELETE", f"{levels}/{level}")


async def test_flow_schemas_are_shown_in_the_order_of_their_precedence(
    controlled: Cluster,
) -> None:
    table = await controlled.kubectl("get", "flowschemas")
    rows = [line.split() for line in table.splitlines()]
    assert rows[0][:3] == ["NAME", "PRIORITYLEVEL", "MATCHINGPRECEDENCE"]
    precedences = [int(row[2]) for row in rows[1:]]
    assert precedences == sorted(precedences)
    assert [row[0] for row in (rows[1], rows[-1])] == ["exempt", "catch-all"]


async def test_what_is_fixed_in_flow_control_stays(ask: Asker) -> None:
    path = f"{FLOW}/flowschemas/catch-all"
    body = {"spec": {"matchingPrecedence": 77}}
    refused = await ask("PATCH", path, body, media=MERGE)
    assert refused.status == 422
    assert [each[1] for each in refused.causes] == ["spec"]
    assert "spec of 'catch-all' must equal the fixed value" in refused.refusal[2]


def pod(name: str, **spec: Any) -> Plain:
    containers = [{"name": "main", "image": "x"}]
    return {"metadata": {"name": name}, "spec": {"containers": containers, **spec}}


async def test_a_runtime_class_adds_to_its_pods(room: Room) -> None:
    ask, called = room.ask, new("runtime")
    toleration = {"key": "only", "operator": "Exists"}
    body = {
        "metadata": {"name": called},
        "handler": "h",
        "overhead": {"podFixed": {"cpu": "100m"}},
        "scheduling": {"nodeSelector": {"a": "b"}, "tolerations": [toleration]},
    }
    assert (await ask("POST", RUNTIMES, body)).status == 201
    path = f"{room.place}/pods"
    own = {"key": "only", "operator": "Equal", "value": "v", "effect": "NoSchedule"}
    given = pod("a", runtimeClassName=called, nodeSelector={"c": "d"})
    given["spec"]["tolerations"] = [own]

    async def is_known() -> bool:
        return (await ask("POST", path, given, dryRun="All")).status == 201

    await eventually(is_known, within=10)
    spec = (await ask("POST", path, given)).obj["spec"]
    assert spec["overhead"] == {"cpu": "100m"}
    assert spec["nodeSelector"] == {"a": "b", "c": "d"}
    assert [each for each in spec["tolerations"] if each["key"] == "only"] == [
        toleration
    ]
    refused = {
        "not found": pod("b", runtimeClassName=new("nothing")),
        "doesn't match RuntimeClass's": pod(
            "c", runtimeClassName=called, overhead={"cpu": "1"}
        ),
        "conflict: runtimeClass.scheduling.nodeSelector[a] = b": pod(
            "d", runtimeClassName=called, nodeSelector={"a": "z"}
        ),
        "Pod Overhead set without corresponding": pod("e", overhead={"cpu": "1"}),
    }
    for words, body in refused.items():
        answer = await ask("POST", path, body)
        assert answer.status == 403, words
        assert words in answer.refusal[2]
    await ask("DELETE", f"{RUNTIMES}/{called}")


def service(name: str, **spec: Any) -> Plain:
    return {"metadata": {"name": name}, "spec": {"ports": [{"port": 80}], **spec}}


async def test_an_address_comes_and_goes_with_its_service(room: Room) -> None:
    ask, path = room.ask, f"{room.place}/services"
    address = (await ask("POST", path, service("s"))).obj["spec"]["clusterIP"]
    where = f"{NETWORK}/ipaddresses/{address}"

    async def found() -> Any:
        answer = await ask("GET", where)
        return answer.obj if answer.status == 200 else None

    obj = await eventually(found, within=10)
    assert obj["spec"] == {
        "parentRef": {"resource": "services", "namespace": room.name, "name": "s"}
    }
    assert obj["metadata"]["labels"] == {
        "ipaddress.kubernetes.io/ip-family": "IPv4",
        "ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io",
    }
    await ask("DELETE", f"{path}/s")

    async def is_gone() -> bool:
        return (await ask("GET", where)).status == 404

    await eventually(is_gone, within=10)


async def test_an_address_that_somebody_has_is_not_given_away(room: Room) -> None:
    ask, path = room.ask, f"{room.place}/services"
    address = (await ask("GET", "/api/v1/namespaces/default/services/kubernetes")).obj[
        "spec"
    ]["clusterIP"]
    free = address.rpartition(".")[0] + ".201"
    parent = {"resource": "things", "name": "mine"}
    body = {"metadata": {"name": free}, "spec": {"parentRef": parent}}
    assert (await ask("POST", f"{NETWORK}/ipaddresses", body)).status == 201
    refused = await ask("POST", path, service("s", clusterIP=free))
    assert refused.status == 422
    assert "provided IP is already allocated" in refused.refusal[2]
    await ask("DELETE", f"{NETWORK}/ipaddresses/{free}")

    async def is_free() -> bool:
        return (await ask("POST", path, service("s", clusterIP=free))).status == 201

    await eventually(is_free, within=10)


async def test_a_range_gives_addresses_and_stays_while_they_are_used(
    room: Room,
) -> None:
    ask, called = room.ask, new("range")
    path, services = f"{NETWORK}/servicecidrs/{called}", f"{room.place}/services"
    third = secrets.randbelow(200)
    body = {"metadata": {"name": called}, "spec": {"cidrs": [f"10.99.{third}.0/28"]}}
    assert (await ask("POST", f"{NETWORK}/servicecidrs", body)).status == 201

    async def ready(status: str) -> Any:
        async def told() -> Any:
            found = await condition(ask, path, "Ready")
            return found if found and found["status"] == status else None

        return await eventually(told, within=30)

    assert (await ready("True"))["message"] == "Kubernetes Service CIDR is ready"
    meta = (await ask("GET", path)).meta
    assert meta["finalizers"] == ["networking.k8s.io/service-cidr-finalizer"]
    address = f"10.99.{third}.5"

    async def is_given() -> bool:
        given = await ask("POST", services, service("s", clusterIP=address))
        return given.status == 201

    await eventually(is_given, within=10)
    await ask("DELETE", path)
    found = await ready("False")
    assert found["reason"] == "Terminating"
    assert found["message"].startswith("There are still IPAddresses referencing the")
    await ask("DELETE", f"{services}/s")

    async def is_gone() -> bool:
        return (await ask("GET", path)).status == 404

    await eventually(is_gone, within=40)


async def test_the_first_range_is_ready_and_has_the_servers_own_address(
    ask: Asker,
) -> None:
    path = f"{NETWORK}/servicecidrs/kubernetes"

    async def ready() -> Any:
        return await condition(ask, path, "Ready")

    assert (await eventually(ready, within=20))["status"] == "True"
    owners = {
        (each["spec"]["parentRef"]["namespace"], each["spec"]["parentRef"]["name"])
        for each in (await ask("GET", f"{NETWORK}/ipaddresses")).obj["items"]
    }
    assert ("default", "kubernetes") in owners


async def test_what_is_served_has_an_api_service(ask: Asker) -> None:
    items = (await ask("GET", SERVICES)).obj["items"]
    specs = {each["metadata"]["name"]: each["spec"] for each in items}
    assert specs["v1.apps"]["groupPriorityMinimum"] == 17800
    group = f"{new('g')}.example.com"
    plural = {"plural": "things", "kind": "Thing"}
    schema = {"openAPIV3Schema": {"type": "object"}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    spec = {"group": group, "scope": "Namespaced", "names": plural}
    called = f"things.{group}"
    crd = {"metadata": {"name": called}, "spec": {**spec, "versions": [version]}}
    assert (await ask("POST", CRDS, crd)).status == 201
    path = f"{SERVICES}/v1.{group}"

    async def found() -> Any:
        answer = await ask("GET", path)
        return answer.obj if answer.status == 200 else None

    obj = await eventually(found, within=20)
    assert obj["spec"] == {
        "group": group,
        "version": "v1",
        "groupPriorityMinimum": 1000,
        "versionPriority": 100,
    }
    assert obj["status"]["conditions"][0]["reason"] == "Local"
    await ask("DELETE", f"{CRDS}/{called}")

    async def is_gone() -> bool:
        return (await ask("GET", path)).status == 404

    await eventually(is_gone, within=20)


async def test_what_nobody_serves_is_not_available(ask: Asker) -> None:
    group = f"{new('g')}.example.com"
    spec = {
        "group": group,
        "version": "v1",
        "groupPriorityMinimum": 100,
        "versionPriority": 10,
        "service": {"namespace": "default", "name": "nothing"},
        "insecureSkipTLSVerify": True,
    }
    body = {"metadata": {"name": f"v1.{group}"}, "spec": spec}
    made = await ask("POST", SERVICES, body)
    assert made.obj["spec"]["service"]["port"] == 443
    path = f"{SERVICES}/v1.{group}"

    async def told() -> Any:
        return await condition(ask, path, "Available")

    found = await eventually(told, within=20)
    assert found["status"] == "False"
    assert found["reason"] == "ServiceNotFound"
    assert found["message"] == 'service/nothing in "default" is not present'
    await ask("DELETE", path)


async def test_components_can_be_asked_for_and_not_watched(ask: Asker) -> None:
    path = "/api/v1/componentstatuses"
    assert sorted((await ask("GET", path)).names) == [
        *("controller-manager", "etcd-0", "scheduler")
    ]
    found = await ask("GET", path, fieldSelector="metadata.name=etcd-0")
    assert found.obj["metadata"] == {}
    healthy = {"type": "Healthy", "status": "True", "message": "ok"}
    assert found.obj["items"] == [
        {"metadata": {"name": "etcd-0"}, "conditions": [healthy]}
    ]
    one = await ask("GET", f"{path}/etcd-0")
    assert one.obj["conditions"] == [healthy]
    missing = await ask("GET", f"{path}/nope")
    assert missing.refusal == (404, "NotFound", 'componentstatus "nope" not found')
    watched = await ask("GET", path, watch="true")
    assert watched.refusal == (
        405,
        "MethodNotAllowed",
        'watch is not supported on resources of kind "componentstatuses"',
    )


def raw(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


async def test_others_can_check_the_tokens_of_accounts(room: Room) -> None:
    ask = room.ask
    told = (await ask("GET", "/.well-known/openid-configuration")).obj
    assert told["jwks_uri"].endswith("/openid/v1/jwks")
    assert told["id_token_signing_alg_values_supported"] == ["ES256"]
    published = await ask("GET", "/openid/v1/jwks", accept="*/*")
    assert published.media == "application/jwk-set+json"
    [key] = json.loads(published.body)["keys"]
    path = f"{room.place}/serviceaccounts/default/token"
    token = (await ask("POST", path, {"spec": {}})).obj["status"]["token"]
    header, claims, signature = token.split(".")
    assert json.loads(raw(header))["kid"] == key["kid"]
    assert json.loads(raw(claims))["iss"] == told["issuer"]
    x, y = (int.from_bytes(raw(key[each])) for each in "xy")
    public = ec.EllipticCurvePublicNumbers(x, y, ec.SECP256R1()).public_key()
    halves = raw(signature)[:32], raw(signature)[32:]
    signed = utils.encode_dss_signature(*map(int.from_bytes, halves))
    public.verify(signed, f"{header}.{claims}".encode(), ec.ECDSA(hashes.SHA256()))
