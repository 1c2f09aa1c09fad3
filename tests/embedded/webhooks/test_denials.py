"""Laws of denial: what a webhook may refuse, and what its client is told."""

from __future__ import annotations

from typing import Any

import pytest

from tests.embedded.asking import APPLY, MERGE, Asker
from tests.embedded.asking import settling as settling
from tests.embedded.webhooks.desk import Desk, Office, rule
from tests.embedded.webhooks.desk import desk as desk
from tests.embedded.webhooks.desk import office as office

pytestmark = [pytest.mark.cluster("embedded", "real")]


def configmap(name: str, **data: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name},
        "data": data,
    }


@pytest.mark.parametrize(
    ("told", "code", "reason", "message"),
    [
        ({}, 400, "", " without explanation"),
        ({"message": "no"}, 400, "", ": no"),
        ({"reason": "TooBad", "code": 418}, 418, "TooBad", ": TooBad"),
        ({"message": "no", "code": 200, "status": "Success"}, 400, "", ": no"),
        (
            {
                "message": "m",
                "reason": "Forbidden",
                "code": 403,
                "details": {"uid": "u"},
            },
            403,
            "Forbidden",
            ": m",
        ),
    ],
)
async def test_a_denial_is_told_with_the_status_that_the_webhook_gave(
    ask: Asker,
    desk: Desk,
    office: Office,
    told: dict[str, Any],
    code: int,
    reason: str,
    message: str,
) -> None:
    desk.tell("/deny", lambda _: {"allowed": False, "status": told})
    hook = office.hook("/deny", [rule(["configmaps"], "CREATE")])
    await office.validating(hook)
    answer = await ask("POST", ask.path("configmaps"), configmap("a"))
    start = 'admission webhook "deny.tests.trimtab.dev" denied the request'
    expected: dict[str, Any] = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": f"{start}{message}",
        "reason": reason,
        "details": told.get("details"),
        "code": code,
    }
    assert answer.status == code
    assert answer.obj == {k: v for k, v in expected.items() if v not in ("", None)}
    assert (await ask("GET", f"{ask.path('configmaps')}/a")).status == 404


async def test_every_way_to_write_can_be_refused(
    ask: Asker, desk: Desk, office: Office
) -> None:
    path = ask.path("configmaps")
    assert (await ask("POST", path, configmap("a", b="c"))).status == 201
    desk.tell("/deny", lambda _: {"allowed": False, "status": {"message": "no"}})
    await office.validating(office.hook("/deny", [rule(["configmaps"])]))
    applied = configmap("a", b="d")
    new = configmap("b")
    answers = [
        await ask("PUT", f"{path}/a", configmap("a")),
        await ask("PATCH", f"{path}/a", {"data": {"b": "d"}}, media=MERGE),
        await ask("PATCH", f"{path}/a?fieldManager=m&force=true", applied, media=APPLY),
        await ask("PATCH", f"{path}/b?fieldManager=m", new, media=APPLY),
        await ask("DELETE", f"{path}/a"),
        await ask("DELETE", path),
    ]
    assert {each.status for each in answers} == {400}
    told = [each["operation"] for each in desk.at("/deny")]
    assert told[:5] == ["UPDATE", "UPDATE", "UPDATE", "CREATE", "DELETE"]
    assert set(told[5:]) == {"DELETE"}
    assert (await ask("GET", f"{path}/a")).obj["data"] == {"b": "c"}


async def test_a_deletion_is_reviewed_with_what_would_go(
    ask: Asker, desk: Desk, office: Office
) -> None:
    path = ask.path("configmaps")
    made = (await ask("POST", path, configmap("a", b="c"))).obj
    await office.validating(office.hook("/see", [rule(["configmaps"], "DELETE")]))
    assert (await ask("DELETE", f"{path}/a?propagationPolicy=Background")).status == 200
    [review] = desk.at("/see")
    assert review["object"] is None
    assert review["oldObject"] == made
    assert review["name"] == "a"
    assert review["options"] == {
        "kind": "DeleteOptions",
        "apiVersion": "meta.k8s.io/v1",
        "propagationPolicy": "Background",
    }
