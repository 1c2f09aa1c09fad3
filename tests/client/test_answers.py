"""What a server answers becomes an object, or an error with a name."""

from __future__ import annotations

import logging

import pytest

from tests.client.faults import (
    TOKEN,
    Exchange,
    FaultServer,
    answers,
    status,
    status_body,
)
from tests.client.kinds import ConfigMap, config_map
from tests.client.laws import tells_well
from trimtab.client import Client, errors
from trimtab.client.errors import (
    AlreadyExists,
    Ambiguous,
    ApiError,
    Conflict,
    Gone,
    Invalid,
    NotFound,
    ServerError,
    ServerTimeout,
    Unavailable,
)

NAMED: list[tuple[int, str, type[ApiError]]] = [
    (400, "BadRequest", errors.BadRequest),
    (401, "Unauthorized", errors.Unauthorized),
    (403, "Forbidden", errors.Forbidden),
    (404, "NotFound", errors.NotFound),
    (405, "MethodNotAllowed", errors.MethodNotAllowed),
    (406, "NotAcceptable", errors.NotAcceptable),
    (409, "Conflict", errors.Conflict),
    (409, "AlreadyExists", errors.AlreadyExists),
    (410, "Gone", errors.Gone),
    (410, "Expired", errors.Gone),
    (413, "RequestEntityTooLarge", errors.TooLarge),
    (415, "UnsupportedMediaType", errors.UnsupportedMediaType),
    (418, "Teapot", errors.ApiError),
    (422, "Invalid", errors.Invalid),
    (429, "TooManyRequests", errors.TooManyRequests),
    (500, "InternalError", errors.ServerError),
    (500, "ServerTimeout", errors.ServerTimeout),
    (501, "", errors.ServerError),
    (503, "ServiceUnavailable", errors.Unavailable),
    (504, "Timeout", errors.ServerTimeout),
]


@pytest.mark.parametrize(("code", "reason", "expected"), NAMED)
async def test_a_status_becomes_the_error_of_its_reason(
    server: FaultServer, client: Client, code: int, reason: str, expected: type
) -> None:
    server.always(status(code, reason, "it is so"))
    with pytest.raises(ApiError, match="it is so") as caught:
        await client.get(ConfigMap, "one")
    assert type(caught.value) is expected
    assert (caught.value.status, caught.value.reason) == (code, reason)
    tells_well(caught.value)


@pytest.mark.parametrize(("code", "reason", "expected"), NAMED)
async def test_a_refused_write_is_ambiguous_exactly_when_the_server_gave_up_on_it(
    server: FaultServer, client: Client, code: int, reason: str, expected: type
) -> None:
    server.always(status(code, reason))
    with pytest.raises((ApiError, Ambiguous)) as caught:
        await client.create(config_map())
    assert isinstance(caught.value, Ambiguous) is (expected is ServerTimeout)


async def test_an_invalid_object_says_what_is_wrong_with_each_field(
    server: FaultServer, client: Client
) -> None:
    causes = [
        {"reason": "FieldValueRequired", "message": "Required value", "field": "a.b"},
        {"reason": "FieldValueInvalid", "message": "Invalid value", "field": "c"},
    ]
    server.always(status(422, "Invalid", "wrong", name="one", causes=causes))
    with pytest.raises(Invalid) as caught:
        await client.create(config_map())
    assert [cause.field for cause in caught.value.causes] == ["a.b", "c"]
    assert caught.value.details.name == "one"


def test_the_family_of_an_error_is_caught_by_its_head() -> None:
    assert issubclass(AlreadyExists, Conflict)
    assert issubclass(Unavailable, ServerError)
    assert issubclass(ServerTimeout, ServerError)
    assert not issubclass(Gone, NotFound)


ODD_BODIES = [
    b"",
    b"<html>busy</html>",
    b"[]",
    b'{"message": 5}',
    b'{"details": {"causes": [null]}}',
    b'{"a":' + b"[" * 60_000,
    b"\xff\xfe",
]


@pytest.mark.parametrize("body", ODD_BODIES, ids=lambda body: repr(body[:20]))
async def test_an_error_in_another_form_keeps_its_status(
    server: FaultServer, client: Client, body: bytes
) -> None:
    async def handler(exchange: Exchange) -> None:
        await exchange.answer(403, body)

    server.always(handler)
    with pytest.raises(errors.Forbidden, match="GET /api") as caught:
        await client.get(ConfigMap, "one")
    assert caught.value.status == 403
    assert len(str(caught.value)) < 2000
    tells_well(caught.value)


async def test_a_path_that_the_server_does_not_have_is_a_kind_to_install(
    server: FaultServer, client: Client
) -> None:
    async def handler(exchange: Exchange) -> None:
        await exchange.answer(404, b"404 page not found\n")

    server.always(handler)
    with pytest.raises(NotFound, match="no such kind: install its CRD") as caught:
        await client.get(ConfigMap, "one")
    assert caught.value.reason == ""  # unlike that of an object that is not there
    tells_well(caught.value)


async def test_the_code_on_the_wire_wins_over_the_one_in_the_body(
    server: FaultServer, client: Client
) -> None:
    server.always(answers(status_body(200), code=404))
    with pytest.raises(NotFound) as caught:
        await client.get(ConfigMap, "one")
    assert caught.value.status == 404


async def test_a_warning_of_the_server_is_logged(
    server: FaultServer, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    said = ['299 - "old"', r'299 - "very \"old\" \\"', "odd", '299 - "']
    warnings = [("Warning", text) for text in said]
    server.always(answers({}, headers=warnings))
    with caplog.at_level(logging.WARNING, "trimtab.client"):
        await client.get(ConfigMap, "one")
    texts = [record.getMessage().partition("warns: ")[2] for record in caplog.records]
    assert texts == ["old", 'very "old" \\', "odd", '299 - "']
    assert TOKEN not in caplog.text


async def test_a_long_message_of_many_lines_is_one_line_and_the_causes_are_whole(
    server: FaultServer, client: Client
) -> None:
    causes = [{"field": f"f{number}", "message": "x" * 50} for number in range(300)]
    text = "\n".join(cause["message"] for cause in causes)
    server.always(status(422, "Invalid", text, causes=causes))
    with pytest.raises(Invalid) as caught:
        await client.create(config_map())
    tells_well(caught.value)
    assert len(str(caught.value)) < 2500
    assert len(caught.value.causes) == 300
