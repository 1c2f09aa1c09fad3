"""Protobuf bodies that are broken are told so in one sentence, whatever is in them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.embedded.protobuf import MAGIC, decode
from trimtab.embedded.status import ApiProblem


def field(number: int, data: bytes) -> bytes:
    """One field of a message, of fewer than 128 bytes."""
    return bytes([number << 3 | 2, len(data)]) + data


def body(api_version: str, kind: str, raw: bytes) -> bytes:
    names = field(1, api_version.encode()) + field(2, kind.encode())
    return MAGIC + field(1, names) + field(2, raw)


CONFIG_MAP = body(
    "v1",
    "ConfigMap",
    field(1, field(1, b"one")) + field(2, field(1, b"a") + field(2, b"1")),
)
KINDS = [("v1", "Pod"), ("v1", "Event"), ("apps/v1", "Deployment"), ("v1", "Secret")]


def test_a_whole_body_is_the_object() -> None:
    assert decode(CONFIG_MAP) == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "one"},
        "data": {"a": "1"},
    }


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        (CONFIG_MAP[4:], "it does not begin as a Kubernetes object"),
        (b"", "it does not begin as a Kubernetes object"),
        (CONFIG_MAP[:-1], "it ends in the middle of a field"),
        (body("v1", "None", b""), "no kind None is registered for version v1"),
    ],
    ids=["magic", "empty", "truncated", "kind"],
)
def test_a_broken_body_is_a_bad_request_in_one_sentence(
    broken: bytes, why: str
) -> None:
    with pytest.raises(ApiProblem) as refused:
        decode(broken)
    assert refused.value.code == 400
    told = f"unable to decode the protobuf body of the request: {why}"
    assert str(refused.value.status["message"]) == told


@given(st.binary(max_size=200))
def test_no_bytes_do_more_harm_than_that(data: bytes) -> None:
    _decodes_or_is_refused(MAGIC + data)
    _decodes_or_is_refused(data)


@given(st.sampled_from(KINDS), st.binary(max_size=120))
def test_no_message_does_more_harm_than_that(kind: tuple[str, str], raw: bytes) -> None:
    _decodes_or_is_refused(body(*kind, raw))


@given(st.integers(0, len(CONFIG_MAP) - 1), st.integers(0, 255))
def test_no_changed_byte_does_more_harm_than_that(at: int, byte: int) -> None:
    _decodes_or_is_refused(CONFIG_MAP[:at] + bytes([byte]) + CONFIG_MAP[at + 1 :])


def _decodes_or_is_refused(data: bytes) -> None:
    code = 0
    try:
        assert isinstance(decode(data), dict)
    except ApiProblem as problem:
        code = problem.code
    assert code in (0, 400)
