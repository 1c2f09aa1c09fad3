"""Laws of change: what webhooks make of an object, in which order, and how often."""

from __future__ import annotations

from typing import Any

import pytest

from tests.embedded.asking import APPLY, MERGE, Asker
from tests.embedded.asking import settling as settling
from tests.embedded.webhooks.desk import Answering, Desk, Office, patch, rule
from tests.embedded.webhooks.desk import desk as desk
from tests.embedded.webhooks.desk import office as office

pytestmark = [pytest.mark.cluster("embedded", "real")]

Plain = dict[str, Any]
CREATED = rule(["configmaps"], "CREATE")


def labelling(key: str) -> Answering:
    """Adds a label unless it is there."""

    def answer(request: Plain) -> Plain | None:
        meta = request["object"]["metadata"]
        if key in (meta.get("labels") or {}):
            return None
        adds: list[Plain] = [
            {"op": "add", "path": f"/metadata/labels/{key}", "value": "1"}
        ]
        if "labels" not in meta:
            adds.insert(0, {"op": "add", "path": "/metadata/labels", "value": {}})
        return patch(*adds)

    return answer


async def test_a_patch_is_part_of_what_is_stored_and_owned_by_nobody(
    ask: Asker, desk: Desk, office: Office
) -> None:
    desk.tell("/label", labelling("a"))
    await office.mutating(office.hook("/label", [rule(["configmaps"])]))
    await office.validating(office.hook("/see", [rule(["configmaps"])]))
    path = ask.path("configmaps")
    made = await ask("POST", path, {"metadata": {"name": "x"}, "data": {"k": "v"}})
    assert (made.status, made.meta["labels"]) == (201, {"a": "1"})
    assert made.obj == (await ask("GET", f"{path}/x")).obj
    assert desk.at("/see")[0]["object"]["metadata"]["labels"] == {"a": "1"}
    [entry] = made.meta["managedFields"]
    assert entry["fieldsV1"] == {"f:data": {".": {}, "f:k": {}}}
    applied = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "y"}}
    made = await ask("PATCH", f"{path}/y?fieldManager=m", applied, media=APPLY)
    assert (made.status, made.meta["labels"]) == (201, {"a": "1"})
    drop = {"metadata": {"labels": None}}
    kept = await ask("PATCH", f"{path}/y", drop, media=MERGE)
    assert (kept.status, kept.meta["labels"]) == (200, {"a": "1"})


async def test_webhooks_are_asked_by_the_names_of_their_configurations(
    ask: Asker, desk: Desk, office: Office
) -> None:
    for name in ("zz", "aa", "mm"):
        hooks = [office.hook(f"/{name}{place}", [CREATED]) for place in (1, 0)]
        await office.mutating(*hooks, name=name)
    await ask("POST", ask.path("configmaps"), {"metadata": {"name": "x"}})
    heard = [path for path, _ in desk.heard]
    assert heard == ["/aa1", "/aa0", "/mm1", "/mm0", "/zz1", "/zz0"]


async def test_only_those_who_want_to_are_asked_again_after_a_change(
    ask: Asker, desk: Desk, office: Office
) -> None:
    again = {"reinvocationPolicy": "IfNeeded"}
    await office.mutating(
        office.hook("/eager", [CREATED], **again),
        office.hook("/once", [CREATED]),
        office.hook("/late", [CREATED], **again),
    )
    path = ask.path("configmaps")

    async def heard(**told: Answering) -> list[str]:
        for name, answering in told.items():
            desk.tell(f"/{name}", answering)
        desk.forget()
        body = {"metadata": {"name": "x"}}
        made = await ask("POST", f"{path}?dryRun=All", body)
        assert made.status == 201
        return [each for each, _ in desk.heard]

    first = ["/eager", "/once", "/late"]
    assert await heard() == first
    assert await heard(eager=labelling("a")) == first
    assert await heard(once=labelling("b")) == [*first, "/eager"]
    assert await heard(late=labelling("c")) == [*first, "/eager"]
    counted = lambda request: patch(  # noqa: E731
        {"op": "add", "path": "/data", "value": {"n": str(len(desk.heard))}}
    )
    assert await heard(eager=counted) == [*first, "/eager", "/late"]


@pytest.mark.parametrize(
    ("operation", "told"),
    [
        (
            {"op": "replace", "path": "/nope/x", "value": 1},
            (
                "replace operation does not apply: doc is missing path: /nope/x: "
                "missing value"
            ),
        ),
        (
            {"op": "add", "path": "/data", "value": {"a": 1}},
            (
                "json: cannot unmarshal number into Go struct field ConfigMap.data of "
                "type string"
            ),
        ),
        ({"op": "zap", "path": "/data"}, "Unexpected kind: zap"),
    ],
)
async def test_a_patch_that_does_not_fit_is_the_server_s_problem(
    ask: Asker, desk: Desk, office: Office, operation: Plain, told: str
) -> None:
    desk.tell("/bad", lambda _: patch(operation))
    await office.mutating(office.hook("/bad", [CREATED], failurePolicy="Ignore"))
    answer = await ask("POST", ask.path("configmaps"), {"metadata": {"name": "x"}})
    text = f"Internal error occurred: {told}"
    assert answer.refusal == (500, "InternalError", text)


async def test_managed_fields_that_a_webhook_spoils_are_put_back(
    ask: Asker, desk: Desk, office: Office
) -> None:
    where = "/metadata/managedFields/0/fieldsType"
    desk.tell("/spoil", lambda _: patch({"op": "replace", "path": where, "value": "x"}))
    await office.mutating(office.hook("/spoil", [CREATED]))
    body = {"metadata": {"name": "x"}, "data": {"k": "v"}}
    made = await ask("POST", ask.path("configmaps"), body)
    assert made.meta["managedFields"][0]["fieldsType"] == "FieldsV1"
    [warning] = made.warnings
    assert "managedFields was in an invalid state after admission" in warning


async def test_nothing_can_be_patched_when_an_object_goes(
    ask: Asker, desk: Desk, office: Office
) -> None:
    path = ask.path("configmaps")
    await ask("POST", path, {"metadata": {"name": "x"}})
    desk.tell("/patch", lambda _: patch({"op": "add", "path": "/data", "value": {}}))
    await office.mutating(office.hook("/patch", [rule(["configmaps"], "DELETE")]))
    answer = await ask("DELETE", f"{path}/x")
    assert answer.refusal == (
        500,
        "InternalError",
        (
            'Internal error occurred: admission webhook "patch.tests.trimtab.dev" '
            "attempted to modify the object, which is not supported for this operation"
        ),
    )
    assert (await ask("GET", f"{path}/x")).status == 200
