"""Laws of calling: webhooks that cannot be asked, or answer what nobody can use."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import msgspec
import pytest

from tests.embedded.asking import Asker
from tests.embedded.asking import settling as settling
from tests.embedded.webhooks.desk import (
    Desk,
    Office,
    Raw,
    a_desk,
    ca_bundle,
    rule,
)
from tests.embedded.webhooks.desk import desk as desk
from tests.embedded.webhooks.desk import office as office

pytestmark = [pytest.mark.cluster("embedded", "real")]

Plain = dict[str, Any]
CREATED = rule(["configmaps"], "CREATE")
START = 'Internal error occurred: failed calling webhook "{}.tests.trimtab.dev": '


def review(**fields: Any) -> Raw:
    head = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1"}
    return Raw(msgspec.json.encode({**head, **fields}))


def _said(answer: Any, _: Plain) -> Any:
    return answer


ANSWERS: dict[str, tuple[Any, str]] = {
    "text": (
        Raw(b'{"kind":"Admission'),
        (
            "failed to call webhook: couldn't get version/kind; json parse error: "
            "unexpected end of JSON input"
        ),
    ),
    "nothing": (
        Raw(b""),
        (
            "failed to call webhook: 0-length response with status code: 200 and "
            "content type: application/json"
        ),
    ),
    "no response": (
        review(),
        "received invalid webhook response: webhook response was absent",
    ),
    "another's": (
        {"uid": "x"},
        'received invalid webhook response: expected response.uid="{uid}", got "x"',
    ),
    "another version": (
        Raw(
            b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1beta1",'
            b'"response":{"allowed":true}}'
        ),
        (
            "failed to call webhook: converting (v1beta1.AdmissionReview) to "
            "(v1.AdmissionReview): unknown conversion"
        ),
    ),
    "wrong type": (
        {"allowed": "yes"},
        (
            "failed to call webhook: json: cannot unmarshal string into Go struct "
            "field AdmissionResponse.response.allowed of type bool"
        ),
    ),
    "an error": (
        Raw(b"boom", status=500),
        (
            'failed to call webhook: an error on the server ("unknown") has prevented '
            "the request from succeeding"
        ),
    ),
    "not found": (
        Raw(b"", status=404),
        "failed to call webhook: the server could not find the requested resource",
    ),
    "a patch": (
        {"patch": "W10=", "patchType": "JSONPatch"},
        (
            "received invalid webhook response: validating webhook may not return "
            "response.patch"
        ),
    ),
}


async def test_an_answer_of_no_use_is_told_in_go_s_words(
    ask: Asker, desk: Desk, office: Office
) -> None:
    await office.validating(office.hook("/odd", [CREATED]))
    path = f"{ask.path('configmaps')}?dryRun=All"
    told, expected = {}, {}
    for name, (answer, text) in ANSWERS.items():
        desk.forget()
        desk.tell("/odd", partial(_said, answer))
        refused = await ask("POST", path, {"metadata": {"name": "x"}})
        uid = desk.at("/odd")[0]["uid"]
        told[name] = refused.refusal
        message = START.format("odd") + text.replace("{uid}", uid)
        expected[name] = (500, "InternalError", message)
    assert told == expected


async def test_a_slow_webhook_says_no_unless_it_may_be_ignored(
    ask: Asker, desk: Desk, office: Office
) -> None:
    done = asyncio.Event()

    async def wait(_: Plain) -> None:
        await done.wait()

    desk.tell("/slow", wait)
    desk.tell("/ignored", wait)
    short = {"timeoutSeconds": 1}
    ignored = office.hook("/ignored", [CREATED], failurePolicy="Ignore", **short)
    await office.mutating(ignored)
    path = ask.path("configmaps")
    made = await ask("POST", path, {"metadata": {"name": "x"}})
    assert made.status == 201
    await office.validating(office.hook("/slow", [CREATED], **short), ignored)
    refused = await ask("POST", path, {"metadata": {"name": "y"}})
    done.set()
    url = f"{desk.client('/slow')['url']}?timeout=1s"
    text = f'failed to call webhook: Post "{url}": context deadline exceeded'
    assert refused.refusal == (500, "InternalError", START.format("slow") + text)
    assert (await ask("GET", f"{path}/y")).status == 404
    assert desk.queries[0] == "timeout=1s"


async def test_only_the_given_authority_is_trusted_for_the_name_it_signed(
    ask: Asker, desk: Desk, office: Office
) -> None:
    path = f"{ask.path('configmaps')}?dryRun=All"
    url = desk.client("/x")["url"]

    async def refusal(client: Plain) -> str:
        name = await office.validating(
            office.hook("/x", [CREATED], clientConfig=client)
        )
        answer = await ask("POST", path, {"metadata": {"name": "x"}})
        await office.take_down()
        assert (answer.status, name != "") == (500, True)
        return str(answer.obj["message"]).removeprefix(START.format("x"))

    post = 'failed to call webhook: Post "{}?timeout=10s": '
    tls = f"{post}tls: failed to verify certificate: x509: "
    untrusted = "certificate signed by unknown authority"
    assert await refusal({"url": url}) == tls.format(url) + untrusted
    async with a_desk("elsewhere.example") as other:
        client = other.client("/x")
        wrong = (
            "cannot validate certificate for 127.0.0.1 because it doesn't contain any "
            "IP SANs"
        )
        assert await refusal(client) == tls.format(client["url"]) + wrong
        assert other.heard == []
    gone = "https://127.0.0.1:1/x"
    refused = "dial tcp 127.0.0.1:1: connect: connection refused"
    told = await refusal({"url": gone, "caBundle": ca_bundle()})
    assert told == post.format(gone) + refused


async def test_a_dry_run_asks_only_those_whom_asking_does_nothing_to(
    ask: Asker, desk: Desk, office: Office
) -> None:
    await office.mutating(office.hook("/none", [CREATED], sideEffects="None"))
    await office.validating(
        office.hook("/dry", [CREATED], sideEffects="NoneOnDryRun"),
    )
    path = ask.path("configmaps")
    body = {"metadata": {"name": "x"}}
    assert (await ask("POST", f"{path}?dryRun=All", body)).status == 201
    heard = [(where, request["dryRun"]) for where, request in desk.heard]
    assert heard == [("/none", True), ("/dry", True)]
    options = desk.at("/dry")[0]["options"]
    assert options["dryRun"] == ["All"]
    assert (await ask("GET", f"{path}/x")).status == 404


async def test_warnings_are_told_also_with_a_refusal(
    ask: Asker, desk: Desk, office: Office
) -> None:
    desk.tell("/warn", lambda _: {"warnings": ["careful", "careful"]})
    desk.tell("/deny", lambda _: {"allowed": False, "warnings": ["really"]})
    await office.mutating(office.hook("/warn", [CREATED]))
    path = ask.path("configmaps")
    made = await ask("POST", path, {"metadata": {"name": "x"}})
    assert (made.status, made.warnings) == (201, ('299 - "careful"',))
    await office.validating(office.hook("/deny", [CREATED]))
    refused = await ask("POST", path, {"metadata": {"name": "y"}})
    assert refused.warnings == ('299 - "careful"', '299 - "really"')


async def test_an_older_review_is_sent_to_those_who_want_it_first(
    ask: Asker, desk: Desk, office: Office
) -> None:
    old = office.hook("/old", [CREATED], admissionReviewVersions=["v1beta1", "v1"])
    odd = office.hook("/odd", [CREATED], admissionReviewVersions=["v9", "v1"])
    desk.tell("/old", lambda _: {"uid": "anything"})
    await office.mutating(old, odd)
    made = await ask("POST", ask.path("configmaps"), {"metadata": {"name": "x"}})
    assert made.status == 201
    versions = [each["apiVersion"] for each in desk.bodies]
    assert versions == ["admission.k8s.io/v1beta1", "admission.k8s.io/v1"]
