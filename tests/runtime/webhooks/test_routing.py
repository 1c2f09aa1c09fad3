"""Laws of routing: every review has an answer, and what it is can be told."""

from __future__ import annotations

import asyncio
from base64 import b64decode
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from tests.runtime.webhooks.sites import OldSite, Page, Site, down, up
from trimtab import Operator, Refused, Review
from trimtab.client.budget import remaining
from trimtab.runtime.threads import Threads, from_thread
from trimtab.runtime.webhooks.routing import Answer, Router

Plain = dict[str, Any]
PATH = "/validates/check.pages.webhooks.example.com"
MUTATES = "/mutates/fill.pages.webhooks.example.com"


def page(**spec: Any) -> Plain:
    head = {"apiVersion": Page.apiVersion, "kind": "Page"}
    return {**head, "metadata": {"name": "a", "namespace": "n"}, "spec": spec}


def asked(operation: str, new: Any = None, old: Any = None, **more: Any) -> bytes:
    request = {"uid": "u", "operation": operation, "object": new, "oldObject": old}
    body = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
    return msgspec.json.encode({**body, "request": {**request, **more}})


def response(answer: Answer) -> Plain:
    assert answer.status == 200, answer.body
    told: Plain = msgspec.json.decode(answer.body)
    assert (told["apiVersion"], told["kind"]) == (
        "admission.k8s.io/v1",
        "AdmissionReview",
    )
    assert told["response"]["uid"] == "u"
    return dict(told["response"])


class Seen:
    """A router whose handlers note what they were asked."""

    def __init__(self) -> None:
        self.heard: list[tuple[Page, Review[Page]]] = []
        app = Operator("pages")

        @app.validates(Page, on=("CREATE", "UPDATE", "DELETE"))
        def check(site: Page, review: Review[Page]) -> None:
            self.heard.append((site, review))
            if site.spec.image == "bad":
                raise Refused("spec.image: it is bad.")

        @app.mutates(Page)
        async def fill(site: Page, review: Review[Page]) -> Page | None:
            if site.spec.image == "wrong":
                return "a text"  # type: ignore[return-value]
            if site.spec.image:
                return None
            return replace(site, spec=replace(site.spec, image="x"))

        self.threads = Threads(2)
        self.router = Router(app.webhooks, threads=self.threads)

    async def __call__(self, path: str, body: bytes) -> Answer:
        return await self.router.answer(path, body, 5.0)


@pytest.fixture
async def seen() -> Any:
    made = Seen()
    yield made
    made.threads.close()


async def test_a_handler_sees_the_object_and_the_review(seen: Seen) -> None:
    who = {"username": "ann", "groups": ["dev"], "uid": "1", "extra": {"a": ["b"]}}
    body = asked(
        "UPDATE", page(replicas=2), page(replicas=1), userInfo=who, dryRun=True
    )
    assert response(await seen(PATH, body)) == {"uid": "u", "allowed": True}
    ((site, review),) = seen.heard
    assert site.spec.replicas == 2
    assert review.old is not None
    assert review.old.spec.replicas == 1
    assert (review.user, review.groups, review.dry_run) == ("ann", ("dev",), True)
    assert review.operation == "UPDATE"


async def test_a_refusal_has_its_status_and_reason(seen: Seen) -> None:
    told = response(await seen(PATH, asked("CREATE", page(image="bad"))))
    message = "spec.image: it is bad."
    status = {"code": 403, "message": message, "reason": "Forbidden"}
    assert told == {"uid": "u", "allowed": False, "status": status}


async def test_a_change_is_a_patch_of_only_that(seen: Seen) -> None:
    told = response(await seen(MUTATES, asked("CREATE", page(unknown=[1]))))
    assert told["patchType"] == "JSONPatch"
    assert msgspec.json.decode(b64decode(told["patch"])) == [
        {"op": "add", "path": "/spec/image", "value": "x"}
    ]
    told = response(await seen(MUTATES, asked("CREATE", page(image="y"))))
    assert told == {"uid": "u", "allowed": True}


async def test_an_object_that_the_class_cannot_read_is_refused(seen: Seen) -> None:
    told = response(await seen(PATH, asked("CREATE", page(replicas="many"))))
    assert told["status"]["code"] == 422
    assert "The Page cannot be read: Expected `int`" in told["status"]["message"]
    assert seen.heard == []


async def test_what_was_stored_unreadable_can_be_mended_and_deleted(seen: Seen) -> None:
    broken = page(replicas="many")
    told = response(await seen(PATH, asked("UPDATE", page(replicas=1), broken)))
    assert told["allowed"]
    assert seen.heard[0][1].old is None
    told = response(await seen(PATH, asked("DELETE", None, broken)))
    assert told["allowed"]
    assert "was not asked" in told["warnings"][0]


async def test_what_is_on_its_way_out_is_let_go(seen: Seen) -> None:
    going = page(image="bad")
    going["metadata"]["deletionTimestamp"] = "2030-01-01T00:00:00Z"
    for path in (PATH, MUTATES):
        told = response(await seen(path, asked("UPDATE", going, going)))
        assert told == {"uid": "u", "allowed": True}
    assert seen.heard == []


async def test_a_webhook_of_another_version_lets_pass_and_says_so(seen: Seen) -> None:
    path = "/validates/later.pages.webhooks.example.com"
    assert seen.router.serves(path)
    told = response(await seen(path, asked("CREATE", page())))
    assert told["allowed"]
    assert "later.pages" in told["warnings"][0]
    assert seen.router.outcomes == {("unknown", "unknown"): 1}


async def test_what_is_returned_wrongly_is_a_failure(seen: Seen) -> None:
    answer = await seen(MUTATES, asked("CREATE", page(image="wrong")))
    assert answer.status == 500
    assert answer.body.startswith(b"fill.pages.webhooks.example.com failed with TypeE")


async def test_what_is_no_review_is_a_bad_request(seen: Seen) -> None:
    for body in (b"", b"[]", b'{"apiVersion":"v1","kind":"Pod","request":{}}'):
        assert (await seen(PATH, body)).status == 400
    other = asked("CREATE", page()).replace(b"AdmissionReview", b"ConversionReview")
    assert b"is answered" in (await seen(PATH, other)).body
    assert not seen.router.serves("/converts")
    assert not seen.router.serves("/")


async def test_warnings_are_bounded() -> None:
    review: Review[Page] = Review("CREATE")
    for _ in range(100):
        review.warn("a\nb " * 1000)
    assert len(review.warnings) == 16
    assert {len(each) for each in review.warnings} == {256}
    assert "\n" not in review.warnings[0]


async def test_a_handler_has_the_time_that_the_server_waits() -> None:
    left: list[float | None] = []

    async def look() -> None:
        left.append(remaining())

    app = Operator("pages")

    @app.validates(Page, name="plain")
    def plain(site: Page, review: Review[Page]) -> None:
        from_thread(look())

    @app.validates(Page, name="never")
    async def never(site: Page, review: Review[Page]) -> None:
        await asyncio.Event().wait()

    threads = Threads(2)
    router = Router(app.webhooks, threads=threads)
    path = "/validates/{}.pages.webhooks.example.com"
    await router.answer(path.format("plain"), asked("CREATE", page()), 2.0)
    assert left[0] is not None
    assert 1.0 < left[0] <= 1.8
    late = await router.answer(path.format("never"), asked("CREATE", page()), 0.1)
    assert late.status == 500
    assert b"did not answer within 0.09 s" in late.body
    threads.close()


async def test_conversions_are_answered_where_there_are_some() -> None:
    app = Operator("pages")
    app.converts(OldSite, Site)(up).back(down)
    threads = Threads(1)
    router = Router(app.webhooks, threads=threads)
    assert router.serves("/converts")
    meta = {"name": "a"}
    old = {"apiVersion": OldSite.apiVersion, "kind": "Site", "metadata": meta}
    request = {"uid": "u", "desiredAPIVersion": Site.apiVersion, "objects": [old]}
    head = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview"}
    body = msgspec.json.encode({**head, "request": request})
    answer = await router.answer("/converts", body, 5.0)
    (made,) = msgspec.json.decode(answer.body)["response"]["convertedObjects"]
    assert made["apiVersion"] == Site.apiVersion
    assert (await router.answer("/converts", b"{}", 5.0)).status == 400
    threads.close()
