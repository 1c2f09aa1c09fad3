"""Answers: the bytes that a webhook sent back, read as the real server reads them.

What is said of an answer that is of no use are the words of the Go client, for people
look for them.
"""

from __future__ import annotations

from typing import Any

import msgspec

from trimtab.embedded import jsontext
from trimtab.embedded.calls import CallAnswer
from trimtab.embedded.kinds import Plain
from trimtab.embedded.patches import json_kind
from trimtab.embedded.status import quoted

VERSIONS = ("v1", "v1beta1")
MOST_SHOWN = 2048
UNKNOWN = "unknown"
HEAD = (
    'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string '
    '"json:\\"kind,omitempty\\"" }'
)
PLAIN = {
    400: "the server rejected our request for an unknown reason",
    401: "the server has asked for the client to provide credentials",
    404: "the server could not find the requested resource",
    405: "the server does not allow this method on the requested resource",
    409: "the server reported a conflict",
    422: "the server rejected our request due to an error in our request",
    429: "the server has received too many requests and has asked us to try again "
    "later",
    503: "the server is currently unable to handle the request",
    504: "the server was unable to return a response in the time allotted, but may "
    "still be processing the request",
}
UNACCEPTABLE = (
    "the server was unable to respond with a content type that the client supports"
)


class Unusable(Exception):
    """There is no answer to go by; says why."""


class Review(msgspec.Struct, frozen=True, kw_only=True):
    """What an answer says that it is, and its response, if it has one."""

    api_version: str
    kind: str
    response: Plain | None


def review_of(answer: CallAnswer, *, kind: str, group: str, version: str) -> Review:
    """An answer as the review that was asked for.

    Errors: :class:`Unusable`.
    """
    if answer.error:
        raise Unusable(answer.error)
    if not 200 <= answer.status < 300:
        raise Unusable(_refused(answer))
    if not answer.body:
        raise Unusable(
            f"0-length response with status code: {answer.status} and content type: "
            "application/json"
        )
    raw = _object(answer.body)
    given, said = raw.get("kind") or "", raw.get("apiVersion") or ""
    _check_kind(given, said, kind=kind, group=group, version=version)
    response = raw.get("response")
    if not isinstance(response, dict | None):
        wanted = f"{version}.{kind.replace('Review', 'Response')}"
        raise Unusable(mistyped(response, f"{kind}.response", wanted))
    return Review(api_version=said, kind=given, response=response)


def _object(body: bytes) -> Plain:
    try:
        raw = jsontext.decode(body)
    except jsontext.Malformed as error:
        text = str(error)
        if not body.lstrip().startswith(b"{"):  # what is no JSON is read as YAML
            text = f"json: cannot unmarshal string into Go value of type {HEAD}"
        raise Unusable(f"couldn't get version/kind; json parse error: {text}") from None
    if isinstance(raw, dict | None):
        return raw or {}
    raise Unusable(
        "couldn't get version/kind; json parse error: json: cannot unmarshal "
        f"{json_kind(raw)} into Go value of type {HEAD}"
    )


def mistyped(value: Any, field: str, wanted: str) -> str:
    """That a field of an answer is of the wrong type."""
    return (
        f"json: cannot unmarshal {json_kind(value)} into Go struct field {field} of "
        f"type {wanted}"
    )


def _check_kind(given: str, said: str, *, kind: str, group: str, version: str) -> None:
    """That it is a review at all; that it says which one, is looked at later."""
    if not given or not said or (said, given) == (f"{group}/{version}", kind):
        return
    known = given == kind and said in [f"{group}/{each}" for each in VERSIONS]
    if known or (said, given) == ("v1", "Status"):
        short = said.rpartition("/")[2]
        raise Unusable(
            f"converting ({short}.{given}) to ({version}.{kind}): unknown conversion"
        )
    raise Unusable(
        f"no kind {quoted(given)} is registered for version {quoted(said)} in scheme "
        '"pkg/runtime/scheme.go:111"'
    )


def _refused(answer: CallAnswer) -> str:
    """An HTTP error; a ``Status`` in its body speaks for itself."""
    told = _status_message(answer.body)
    if told:
        return told
    text = UNKNOWN
    if not answer.media or answer.media.startswith("text/") or not answer.body:
        text = answer.body.decode(errors="replace").strip()[:MOST_SHOWN]
    code = answer.status
    if code in (403, 415):
        return text
    if code == 406:
        return text if text not in ("", UNKNOWN) else UNACCEPTABLE
    if code in PLAIN:
        return PLAIN[code]
    if code >= 500:
        return (
            f"an error on the server ({quoted(text)}) has prevented the request from "
            "succeeding"
        )
    return (
        f"the server responded with the status code {code} but did not return more "
        "information"
    )


def _status_message(body: bytes) -> str:
    try:
        raw = msgspec.json.decode(body)
    except msgspec.DecodeError:
        return ""
    if not isinstance(raw, dict) or raw.get("kind") != "Status":
        return ""
    return str(raw.get("message") or UNKNOWN)
