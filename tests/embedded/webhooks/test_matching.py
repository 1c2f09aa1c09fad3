"""Laws of matching: which requests a webhook is asked about, and what it is shown."""

from __future__ import annotations

from typing import Any

import pytest

from tests.embedded.asking import MERGE, Asker
from tests.embedded.asking import settling as settling
from tests.embedded.webhooks.desk import GROUP, Desk, Office, patch, rule
from tests.embedded.webhooks.desk import desk as desk
from tests.embedded.webhooks.desk import office as office
from tests.embedded.webhooks.things import serving

pytestmark = [pytest.mark.cluster("embedded", "real")]

Plain = dict[str, Any]
CREATED = rule(["configmaps"], "CREATE")
DEPLOYMENT = {
    "metadata": {"name": "d"},
    "spec": {
        "replicas": 1,
        "selector": {"matchLabels": {"a": "b"}},
        "template": {
            "metadata": {"labels": {"a": "b"}},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        },
    },
}


async def test_subresources_are_asked_about_by_their_names(
    ask: Asker, desk: Desk, office: Office
) -> None:
    await office.validating(
        office.hook("/whole", [rule(["deployments"])]),
        office.hook("/status", [rule(["deployments/status"])]),
        office.hook("/scale", [rule(["*/scale"])]),
        office.hook("/parts", [rule(["deployments/*"])]),
        office.hook("/other", [rule(["daemonsets/*"])]),
        office.hook("/all", [rule(["*/*"], "UPDATE")]),
    )
    path = ask.path("deployments", group="apps")
    heard = []
    for method, where, body in (
        ("POST", path, DEPLOYMENT),
        ("PATCH", f"{path}/d", {"spec": {"paused": True}}),
        ("PATCH", f"{path}/d/status", {"status": {"replicas": 1}}),
        ("PATCH", f"{path}/d/scale", {"spec": {"replicas": 3}}),
    ):
        desk.forget()
        media = MERGE if method == "PATCH" else "application/json"
        assert (await ask(method, where, body, media=media)).status < 300
        heard.append(sorted(each for each, _ in desk.heard))
    assert heard == [
        ["/parts", "/whole"],
        ["/all", "/parts", "/whole"],
        ["/all", "/parts", "/status"],
        ["/all", "/parts", "/scale"],
    ]
    [scale] = desk.at("/scale")
    assert scale["kind"] == {"group": "autoscaling", "version": "v1", "kind": "Scale"}
    assert (scale["resource"]["resource"], scale["subResource"]) == (
        "deployments",
        "scale",
    )
    assert scale["object"]["spec"] == {"replicas": 3}
    assert scale["oldObject"]["spec"] == {"replicas": 1}


async def test_a_status_can_be_refused_and_its_object_written(
    ask: Asker, desk: Desk, office: Office
) -> None:
    path = ask.path("deployments", group="apps")
    assert (await ask("POST", path, DEPLOYMENT)).status == 201
    desk.tell("/deny", lambda _: {"allowed": False})
    await office.validating(office.hook("/deny", [rule(["deployments/status"])]))
    state = {"status": {"replicas": 1}}
    refused = await ask("PATCH", f"{path}/d/status", state, media=MERGE)
    assert refused.status == 400
    written = await ask("PATCH", f"{path}/d", {"spec": {"paused": True}}, media=MERGE)
    assert written.status == 200
    assert "replicas" not in written.obj["status"]


async def test_labels_before_and_after_count(
    ask: Asker, desk: Desk, office: Office
) -> None:
    chosen = {"matchExpressions": [{"key": "watched", "operator": "Exists"}]}
    hook = office.hook("/see", [rule(["configmaps"])], objectSelector=chosen)
    await office.validating(hook)
    path = ask.path("configmaps")
    await ask("POST", path, {"metadata": {"name": "x"}})
    for value in ("yes", None):
        change = {"metadata": {"labels": {"watched": value}}}
        await ask("PATCH", f"{path}/x", change, media=MERGE)
    await ask("PATCH", f"{path}/x", {"data": {"a": "b"}}, media=MERGE)
    assert [each["operation"] for each in desk.at("/see")] == ["UPDATE", "UPDATE"]


async def test_scopes_tell_namespaces_from_what_is_in_them(
    ask: Asker, desk: Desk, office: Office
) -> None:
    def hook(path: str, scope: str) -> Plain:
        resources = ["configmaps", "namespaces", "nodes"]
        made = office.hook(path, [rule(resources, "CREATE", scope=scope)])
        condition = "request.userInfo.username == 'admin' && request.dryRun"
        del made["namespaceSelector"]
        made["matchConditions"] = [{"name": "mine", "expression": condition}]
        return made

    await office.validating(
        hook("/inside", "Namespaced"), hook("/outside", "Cluster"), hook("/all", "*")
    )
    heard = []
    name = f"{ask.namespace}-x"
    for path in (ask.path("configmaps"), "/api/v1/namespaces", "/api/v1/nodes"):
        desk.forget()
        await ask("POST", f"{path}?dryRun=All", {"metadata": {"name": name}})
        mine = [path for path, each in desk.heard if each["name"] == name]
        heard.append(sorted(mine))
    assert heard == [["/all", "/inside"], ["/all", "/outside"], ["/all", "/outside"]]


async def test_conditions_decide_and_one_that_cannot_fails_as_the_webhook_does(
    ask: Asker, desk: Desk, office: Office
) -> None:
    def hook(path: str, *expressions: str, **more: Any) -> Plain:
        conditions = [
            {"name": f"c{index}", "expression": each}
            for index, each in enumerate(expressions)
        ]
        return office.hook(path, [CREATED], matchConditions=conditions, **more)

    broken = "object.spec.x == 1"
    await office.validating(
        hook("/yes", "object.metadata.name == 'x'", "oldObject == null"),
        hook("/no", "true", "request.operation == 'DELETE'"),
        hook("/may", "authorizer.group('').resource('pods').check('get').allowed()"),
        hook("/false", broken, "false"),
        hook("/ignored", broken, failurePolicy="Ignore"),
    )
    path = ask.path("configmaps")
    made = await ask("POST", f"{path}?dryRun=All", {"metadata": {"name": "x"}})
    assert made.status == 201
    assert sorted(each for each, _ in desk.heard) == ["/may", "/yes"]
    await office.validating(hook("/broken", broken))
    refused = await ask("POST", path, {"metadata": {"name": "x"}})
    assert refused.refusal == (
        403,
        "Forbidden",
        (
            f"configmaps \"x\" is forbidden: expression '{broken}' resulted in error: "
            "no such key: spec"
        ),
    )


async def test_a_condition_that_does_not_compile_is_refused(
    ask: Asker, office: Office
) -> None:
    hook = office.hook("/x", [CREATED])
    hook["matchConditions"] = [{"name": "c", "expression": "object.name +"}]
    body = {"metadata": {"name": "x"}, "webhooks": [hook]}
    path = f"{GROUP}/validatingwebhookconfigurations?dryRun=All"
    refused = await ask("POST", path, body)
    assert refused.status == 422
    [(_, field, message)] = refused.causes
    assert field == "webhooks[0].matchConditions[0].expression"
    assert "compilation failed: ERROR: <input>:1:14: Syntax error" in message


async def test_configurations_are_nobody_s_to_refuse(
    ask: Asker, desk: Desk, office: Office
) -> None:
    desk.tell("/deny", lambda _: {"allowed": False})
    condition = f"request.resource.group == '{GROUP.split('/')[2]}'"
    hook = office.hook("/deny", [rule(["*/*"])])
    del hook["namespaceSelector"]
    hook["matchConditions"] = [{"name": "c", "expression": condition}]
    name = await office.validating(hook)
    path = f"{GROUP}/validatingwebhookconfigurations/{name}"
    change = {"metadata": {"labels": {"a": "b"}}}
    assert (await ask("PATCH", path, change, media=MERGE)).status == 200
    assert (await ask("DELETE", path)).status == 200
    assert desk.at("/deny") == []


async def test_a_custom_object_is_shown_in_the_version_that_the_rules_name(
    ask: Asker, desk: Desk, office: Office
) -> None:
    async with serving(ask, desk) as things:

        def versioned(version: str) -> Plain:
            return {**rule(["things"]), "apiVersions": [version]}

        desk.tell(
            "/second",
            lambda _: patch({"op": "add", "path": "/spec/address", "value": "k:9"}),
        )
        await office.mutating(
            office.hook("/second", [versioned("v2")]),
            office.hook("/exact", [versioned("v2")], matchPolicy="Exact"),
        )
        await office.validating(office.hook("/first", [versioned("v1")]))
        one = things.thing("v1", "a", host="h", port="1")
        made = await ask("POST", things.path("v1"), one)
        assert made.obj["spec"] == {"host": "k", "port": "9"}
        [second], [first] = desk.at("/second"), desk.at("/first")
        assert desk.at("/exact") == []
        assert second["object"]["spec"] == {"address": "h:1"}
        assert second["kind"]["version"] == "v2"
        assert second["requestKind"]["version"] == "v1"
        assert first["object"]["spec"] == {"host": "k", "port": "9"}


async def test_an_autoscaler_is_shown_in_the_version_that_the_rules_name(
    ask: Asker, desk: Desk, office: Office
) -> None:
    named = {**rule(["horizontalpodautoscalers"]), "apiVersions": ["v2"]}
    place = "/spec/metrics/0/resource/target/averageUtilization"
    desk.tell("/second", lambda _: patch({"op": "add", "path": place, "value": 60}))
    await office.mutating(
        office.hook("/second", [named]),
        office.hook("/exact", [named], matchPolicy="Exact"),
    )
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}
    spec = {"maxReplicas": 3, "scaleTargetRef": target}
    body = {
        "metadata": {"name": "a"},
        "spec": {**spec, "targetCPUUtilizationPercentage": 50},
    }
    path = ask.path("horizontalpodautoscalers", group="autoscaling")
    made = await ask("POST", path, body)
    assert made.obj["spec"]["targetCPUUtilizationPercentage"] == 60
    [second] = desk.at("/second")
    assert desk.at("/exact") == []
    [metric] = second["object"]["spec"]["metrics"]
    assert metric["resource"]["target"]["averageUtilization"] == 50
    assert second["kind"]["version"] == "v2"
    assert second["requestKind"]["version"] == "v1"
