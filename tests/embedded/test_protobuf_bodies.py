"""Bodies that Go made are read as Go reads them; what is broken is refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hack.protobuf.record import kinds
from tests.embedded.apis import api_on, asked, settle
from tests.embedded.protobuf_bodies import Body, bodies, samples, without_nulls
from trimtab.embedded.api import Api
from trimtab.embedded.bodies import PROTOBUF
from trimtab.embedded.protobuf import decode
from trimtab.embedded.status import ApiProblem
from trimtab.embedded.store import Store


@pytest.fixture(scope="module")
def api() -> Iterator[Api]:
    store = Store(None)
    made = api_on(store)
    settle(made)
    yield made
    store.close()


def same(value: Any) -> bytes:
    """Equal for equal JSON only: 1 is neither true nor 1.0."""
    return msgspec.json.encode(without_nulls(value), order="deterministic")


def test_there_are_bodies_of_every_kind_that_a_request_can_carry() -> None:
    found: dict[tuple[str, str], set[str]] = {}
    for each in bodies():
        found.setdefault(each.known, set()).add(each.filling)
    assert sorted(found) == kinds()
    assert all(had >= {"zero", "hollow", "full", "edges"} for had in found.values())


@pytest.mark.parametrize("known", kinds(), ids=" ".join)
def test_a_body_is_read_as_go_reads_it(known: tuple[str, str]) -> None:
    for each in bodies():
        if each.known == known:
            assert same(decode(each.protobuf)) == same(each.object), each.filling


@given(st.sampled_from(bodies()), st.data())
def test_a_body_that_is_cut_off_is_refused(body: Body, data: st.DataObject) -> None:
    """Between two fields of the envelope it is whole, with an object or without."""
    at = data.draw(st.integers(0, len(body.protobuf) - 1))
    read = _read_or_refused(body.protobuf[:at])
    nothing = {"kind": body.kind, "apiVersion": body.api_version}
    assert read in (None, nothing, decode(body.protobuf))


@given(st.sampled_from(bodies()), st.data())
def test_a_changed_byte_does_no_harm(body: Body, data: st.DataObject) -> None:
    read = _read_or_refused(_changed(body.protobuf, data))
    assert read is None or msgspec.json.encode(read)


@given(body=st.sampled_from(samples()), data=st.data())
def test_a_server_that_is_sent_a_changed_byte_answers(
    api: Api, body: Body, data: st.DataObject
) -> None:
    changed = _changed(body.protobuf, data)
    path = body.path("default") + "?dryRun=All"
    assert asked(api, "POST", path, changed, media=PROTOBUF).status < 500


def test_the_server_takes_the_samples(api: Api) -> None:
    for each in samples():
        path = each.path("default") + "?dryRun=All"
        answer = asked(api, "POST", path, each.protobuf, media=PROTOBUF)
        assert answer.status == 201, answer.obj


def _changed(whole: bytes, data: st.DataObject) -> bytes:
    at = data.draw(st.integers(0, len(whole) - 1))
    byte = data.draw(st.integers(0, 255))
    return whole[:at] + bytes([byte]) + whole[at + 1 :]


def _read_or_refused(data: bytes) -> dict[str, Any] | None:
    code = 0
    try:
        return decode(data)
    except ApiProblem as problem:
        code = problem.code
    assert code == 400
    return None
