"""Claims of devices: what they may ask for, and who may hand devices out.

Each law runs unchanged on the embedded server and on kube-apiserver.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.embedded.asking import MERGE, Asker, Plain, ask
from tests.embedded.people import RBAC, Person, reference, rule, settled, user

__all__ = ["ask"]
pytestmark = pytest.mark.cluster("embedded", "real")

GROUP = "resource.k8s.io"
LABEL = "resource.kubernetes.io/admin-access"
RESULT = {"request": "r", "driver": "d.example.com", "pool": "p", "device": "v"}


def claim(**exactly: Any) -> Plain:
    request = {"name": "r", "exactly": {"deviceClassName": "c", **exactly}}
    return {"metadata": {"name": "mine"}, "spec": {"devices": {"requests": [request]}}}


def claims(ask: Asker) -> str:
    return ask.path("resourceclaims", group=GROUP)


@pytest.fixture
async def clerk(ask: Asker) -> AsyncIterator[Person]:
    """Somebody who may write the status of claims, and nothing else."""
    called = f"clerk-{secrets.token_hex(4)}"
    rules = [rule("get update patch", "resourceclaims/status", group=GROUP)]
    role = {"metadata": {"name": called}, "rules": rules}
    assert (await ask("POST", f"{RBAC}/clusterroles", role)).status == 201
    binding = {
        "metadata": {"name": called},
        "roleRef": reference("ClusterRole", called),
        "subjects": [user(called)],
    }
    assert (await ask("POST", f"{RBAC}/clusterrolebindings", binding)).status == 201
    await settled(Person(ask.transport))
    yield Person(ask.transport, [("Impersonate-User", called)])
    await ask("DELETE", f"{RBAC}/clusterrolebindings/{called}")
    await ask("DELETE", f"{RBAC}/clusterroles/{called}")


async def test_a_claim_is_for_one_device_unless_it_says_more(ask: Asker) -> None:
    made = await ask("POST", claims(ask), claim())
    [request] = made.obj["spec"]["devices"]["requests"]
    exactly = {"deviceClassName": "c", "allocationMode": "ExactCount", "count": 1}
    assert request["exactly"] == exactly
    path = f"{claims(ask)}/mine"
    body = {"spec": {"devices": {"requests": None}}}
    refused = await ask("PATCH", path, body, media=MERGE)
    assert [each[:2] for each in refused.causes] == [("FieldValueInvalid", "spec")]


async def test_devices_of_others_need_a_namespace_that_is_meant_for_it(
    ask: Asker,
) -> None:
    refused = await ask("POST", claims(ask), claim(adminAccess=True))
    assert refused.causes == [
        (
            "FieldValueForbidden",
            "spec.devices.requests[0].adminAccess",
            (
                f"Forbidden: admin access to devices requires the `{LABEL}: true` "
                "label on the containing namespace"
            ),
        )
    ]
    place = f"/api/v1/namespaces/{ask.namespace}"
    labels = {"metadata": {"labels": {LABEL: "true"}}}
    await ask("PATCH", place, labels, media=MERGE)
    assert (await ask("POST", claims(ask), claim(adminAccess=True))).status == 201


async def test_who_hands_devices_out_must_be_allowed_to(
    ask: Asker, clerk: Person
) -> None:
    assert (await ask("POST", claims(ask), claim())).status == 201
    path = f"{claims(ask)}/mine/status"
    body: Plain = {"status": {"allocation": {"devices": {"results": [RESULT]}}}}
    refused = await clerk("PATCH", path, body, media=MERGE)
    [(reason, field, message)] = refused.causes
    assert (reason, field) == ("FieldValueForbidden", "status.allocation")
    assert message.startswith(
        "Forbidden: changing status.allocation or status.reservedFor requires "
        'resource="resourceclaims/binding", verb="patch" permission: '
        f"resourceclaims.{GROUP} is forbidden: User "
    )
    assert (await ask("PATCH", path, body, media=MERGE)).status == 200
    device = {key: RESULT[key] for key in ("driver", "pool", "device")}
    body = {"status": {"devices": [device]}}
    refused = await clerk("PATCH", path, body, media=MERGE)
    [(reason, field, message)] = refused.causes
    assert (reason, field) == ("FieldValueForbidden", "status.devices")
    assert message.startswith(
        'Forbidden: changing status.devices requires resource="resourceclaims/driver", '
        'verb="[arbitrary-node:patch]" permission: '
        f'resourceclaims.{GROUP} "d.example.com" is forbidden: User '
    )


async def test_what_is_said_of_a_device_goes_with_it(ask: Asker) -> None:
    assert (await ask("POST", claims(ask), claim())).status == 201
    path = f"{claims(ask)}/mine/status"
    device = {key: RESULT[key] for key in ("driver", "pool", "device")}
    state = {"allocation": {"devices": {"results": [RESULT]}}, "devices": [device]}
    made = await ask("PATCH", path, {"status": state}, media=MERGE)
    assert made.obj["status"]["devices"] == [{**device, "conditions": None}]
    gone = await ask("PATCH", path, {"status": {"allocation": None}}, media=MERGE)
    assert gone.obj["status"] == {}


async def test_an_expression_that_cannot_choose_devices_is_refused(ask: Asker) -> None:
    body = claim(selectors=[{"cel": {"expression": "device.size > 3"}}])
    refused = await ask("POST", claims(ask), body)
    [(reason, field, message)] = refused.causes
    assert reason == "FieldValueInvalid"
    path = "spec.devices.requests[0].exactly.selectors[0].cel.expression"
    assert field == path
    assert "compilation failed: ERROR: <input>:1:7: undefined field 'size'" in message
