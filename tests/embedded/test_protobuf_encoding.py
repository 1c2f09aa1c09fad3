"""Objects are written in protobuf byte for byte as Go writes them."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hack.protobuf.record import kinds
from tests.embedded.apis import api_on
from tests.embedded.protobuf_bodies import Body, bodies
from tests.embedded.test_protobuf_bodies import same
from trimtab.embedded import protobuf_parts
from trimtab.embedded.api import WatchAnswer
from trimtab.embedded.bodies import PROTOBUF
from trimtab.embedded.inprocess import ADMIN
from trimtab.embedded.messages import Messages
from trimtab.embedded.protobuf import MAGIC, decode, message_name
from trimtab.embedded.protobuf_encoding import encode, event, has_message, message
from trimtab.embedded.requests import ApiRequest
from trimtab.embedded.store import Store

LOST = {
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition", "full"),
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition", "edges"),
    ("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "given"),
    ("v1", "ConfigMap", "edges"),
    ("v1", "Secret", "edges"),
}
"""What Go's JSON does not tell: pointers to null, and no bytes from nil."""


def is_told(body: Body) -> bool:
    """Whether the JSON of an object says all that its protobuf does."""
    return body.filling != "hollow" and (*body.known, body.filling) not in LOST


@pytest.mark.parametrize("known", kinds(), ids=" ".join)
def test_an_object_is_written_as_go_writes_it(known: tuple[str, str]) -> None:
    for each in bodies():
        if each.known == known and is_told(each):
            assert encode(*known, each.object) == each.protobuf, each.filling


def test_what_was_written_is_read_as_the_same_object() -> None:
    for each in bodies():
        written = encode(*each.known, each.object)
        assert same(decode(written)) == same(each.object), (each.known, each.filling)


def test_a_stored_object_is_written_as_if_all_of_it_had_been_decoded() -> None:
    for each in bodies():
        name = message_name(*each.known)
        stored = msgspec.json.encode(each.object)
        for _ in range(2):  # what was written is remembered
            found = protobuf_parts.message(name, stored)
            assert found == message(name, each.object), (each.known, each.filling)


def test_no_more_is_remembered_than_may_be() -> None:
    remembered = protobuf_parts.Remembered()
    known = remembered.of("core.v1.Volume 1")
    for number in range(protobuf_parts.MANY + 1):
        remembered.keep("core.v1.Volume 1", b"%d" % number, b"made")
        assert known[b"%d" % number] == b"made"
    assert len(known) == 1


def test_a_list_holds_the_messages_of_its_items() -> None:
    for each in bodies():
        if has_message(each.api_version, f"{each.kind}List"):
            item = {k: v for k, v in each.object.items() if k != "apiVersion"}
            item.pop("kind")
            whole = {"metadata": {"resourceVersion": "7"}, "items": [item, item]}
            read = decode(encode(each.api_version, f"{each.kind}List", whole))
            assert same(read["items"]) == same([item, item]), each.known


def test_what_has_no_message_is_not_written() -> None:
    assert not has_message("meta.k8s.io/v1", "Table")
    assert not has_message("example.com/v1", "Website")
    with pytest.raises(LookupError):
        encode("example.com/v1", "Website", {})


@given(st.integers(-(1 << 63), (1 << 63) - 1), st.text(max_size=300))
def test_any_number_and_any_text_come_back(number: int, text: str) -> None:
    obj = {"metadata": {"name": "x", "generation": number, "labels": {text: text}}}
    read = decode(encode("v1", "ConfigMap", obj))["metadata"]
    assert read.get("generation", 0) == number
    assert read["labels"] == {text: text}


@given(st.lists(st.integers(0, 40), max_size=60))
def test_kept_messages_are_those_of_their_objects_within_bounds(
    asked: list[int],
) -> None:
    messages = Messages(limit=1000)
    for number in asked:
        value = b'{"metadata":{"name":"%s"}}' % (b"x" * number * number)
        found = messages.of("core.v1.ConfigMap", value)
        meta = {"name": "x" * number * number}
        assert found == message("core.v1.ConfigMap", {"metadata": meta})
        assert messages.size <= 1000


@given(st.lists(st.integers(0, 40), max_size=60))
def test_a_list_is_the_messages_of_its_objects_however_long(asked: list[int]) -> None:
    messages = Messages(limit=1000)
    values = [b'{"metadata":{"name":"%s"}}' % (b"x" * number) for number in asked]
    found = list(messages.each("core.v1.ConfigMap", values))
    assert found == [messages.of("core.v1.ConfigMap", value) for value in values]
    assert messages.size <= 1000


async def test_a_watch_that_has_expired_says_so_in_protobuf() -> None:
    store = Store(None)
    api = api_on(store)
    api.forget()
    answer = api.handle(
        ApiRequest(
            method="GET",
            path="/api/v1/namespaces/default/configmaps",
            query={"watch": "1", "resourceVersion": "1", "timeoutSeconds": "1"},
            headers={"accept": PROTOBUF},
            user=ADMIN,
        )
    )
    assert isinstance(answer, WatchAnswer)
    frame = await answer.watcher.chunk()
    status = decode(frame[frame.index(MAGIC) :])
    assert (status["kind"], status["code"]) == ("Status", 410)
    assert frame == event("ERROR", encode("v1", "Status", status))
    store.close()
