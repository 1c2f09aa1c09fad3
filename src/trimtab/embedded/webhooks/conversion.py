"""Conversion: custom objects from version to version, by a webhook.

Objects are stored in one version and served in many. What differs between the versions
only the webhook knows: it gets objects, and gives them back in the version asked for.
It may not change what they are called or when they were made: of their metadata, only
labels and annotations are its.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from trimtab.embedded.calls import Answered, Call, Calls
from trimtab.embedded.kinds import Plain
from trimtab.embedded.status import ApiProblem, quoted
from trimtab.embedded.webhooks.answers import Review, Unusable, review_of
from trimtab.embedded.webhooks.hooks import client_of
from trimtab.embedded.webhooks.review import version_of
from trimtab.embedded.webhooks.targets import Targets, Unresolved

GROUP = "apiextensions.k8s.io"
KIND = "ConversionReview"
SECONDS = 30.0
BATCH = 2 << 20
"""So many bytes of objects are sent at once; more are sent in several calls."""
EMPTY = b',"response":{"uid":"","convertedObjects":null,"result":{"metadata":{}}}}\n'
"""What the real server sends of a response that is still to come."""
MOST = 16 << 20
"""What a batch may grow to."""
LABELS = ("labels", "annotations")
GO_TYPES = {
    str: "string",
    bool: "bool",
    int: "int64",
    float: "float64",
    list: "[]interface {}",
    dict: "map[string]interface {}",
    type(None): "<nil>",
}


class Conversion:
    """The conversion webhook of one CRD.

    ``convert`` is what kinds call.

    Assumptions: the definition was accepted.
    """

    def __init__(self, crd: Plain, *, calls: Calls, targets: Targets) -> None:
        webhook = crd["spec"]["conversion"]["webhook"]
        self._client = client_of(webhook["clientConfig"])
        self._version = version_of(tuple(webhook["conversionReviewVersions"]))
        self._calls = calls
        self._targets = targets

    def convert(self, objects: Sequence[Plain], to: str) -> list[Plain]:
        """Objects in a version; those that are in it already stay what they are.

        Guarantees: all calls are made at the same time, and none for nothing.

        Errors: ``ApiProblem`` (500) if the webhook cannot do it, or does it wrong;
        ``Pending``.
        """
        sent = [each for each in objects if each["apiVersion"] != to]
        if not sent:
            return list(objects)
        batches = list(_batches([_unversioned(each) for each in sent]))
        calls = [self._call(each, to) for each in batches]
        made: list[Plain] = []
        for batch, answered in zip(batches, self._calls.ask(*calls), strict=True):
            made += self._converted(batch, answered, to)
        found = iter(made)
        return [
            each if each["apiVersion"] == to else _versioned(next(found), each)
            for each in objects
        ]

    def _call(self, objects: Sequence[Plain], to: str) -> Call:
        if not self._version:
            raise ApiProblem(500, "", "no supported conversion review versions")
        if self._client.problem:
            text = f"unable to load root certificates: {self._client.problem}"
            raise ApiProblem(500, "", text)
        head = {"kind": KIND, "apiVersion": f"{GROUP}/{self._version}"}
        start = msgspec.json.encode(head)[:-1] + b',"request":{"uid":"'
        rest = msgspec.json.encode({"desiredAPIVersion": to, "objects": objects})
        tail = b'",' + rest[1:] + EMPTY
        try:
            return self._targets.call(
                self._client, seconds=SECONDS, head=start, tail=tail, most=MOST
            )
        except Unresolved as error:
            raise _failed(objects, str(error)) from None

    def _converted(
        self, batch: Sequence[Plain], answered: Answered, to: str
    ) -> list[Plain]:
        version = self._version
        try:
            review = review_of(answered.answer, kind=KIND, group=GROUP, version=version)
            made = _objects_in(review, answered.uid, version)
        except Unusable as error:
            raise _failed(batch, str(error)) from None
        if len(made) != len(batch):
            text = f"returned {len(made)} objects, expected {len(batch)}"
            raise _refused(batch, text)
        return [
            _checked(one, other, to, batch)
            for one, other in zip(batch, made, strict=True)
        ]


def _unversioned(obj: Plain) -> Plain:
    """An object as it is sent: nothing is said of the revision it is from."""
    meta = {k: v for k, v in obj["metadata"].items() if k != "resourceVersion"}
    return {**obj, "metadata": meta}


def _versioned(made: Plain, before: Plain) -> Plain:
    version = before["metadata"].get("resourceVersion")
    if version:
        made["metadata"]["resourceVersion"] = version
    return made


def _batches(objects: Sequence[Plain]) -> Iterator[list[Plain]]:
    batch: list[Plain] = []
    size = 0
    for each in objects:
        length = len(msgspec.json.encode(each))
        if batch and size + length > BATCH:
            yield batch
            batch, size = [], 0
        batch.append(each)
        size += length
    yield batch


def _objects_in(review: Review, uid: str, version: str) -> list[Any]:
    response = review.response
    if version == "v1":
        wanted = (f"{GROUP}/v1", KIND)
        if (review.api_version, review.kind) != wanted:
            got = f"{review.api_version or '/'}, Kind={review.kind}"
            raise Unusable(
                f"expected webhook response of {GROUP}/v1, Kind={KIND}, got {got}"
            )
    if response is None:
        raise Unusable("no response provided")
    got = response.get("uid") or ""
    if version == "v1" and got != uid:
        raise Unusable(f"expected response.uid={quoted(uid)}, got {quoted(got)}")
    result = response.get("result") or {}
    state = result.get("status") or ""
    if state != "Success":
        message = result.get("message")
        raise Unusable(
            message or f"response.result.status was '{state}', not 'Success'"
        )
    return response.get("convertedObjects") or []


def _checked(before: Plain, after: Any, to: str, batch: Sequence[Plain]) -> Plain:
    """A converted object with the metadata that it must have."""
    if not isinstance(after, dict) or not after.get("kind"):
        shown = msgspec.json.encode(after).decode()
        text = f"Object 'Kind' is missing in '{shown}'"
        if after is None:
            text = "unexpected end of JSON input"
        raise ApiProblem(500, "", text)
    start = "returned invalid object at index 0"
    if after.get("apiVersion") != to:
        got = after.get("apiVersion") or "/"
        raise _refused(
            batch, f"{start}: invalid groupVersion (expected {to}, received {got})"
        )
    if after["kind"] != before["kind"]:
        text = f"invalid kind (expected {before['kind']}, received {after['kind']})"
        raise _refused(batch, f"{start}: {text}")
    meta = after.get("metadata")
    kept = meta if isinstance(meta, dict) else {}
    for field in ("name", "namespace", "uid"):
        one, other = before["metadata"].get(field, ""), kept.get(field, "")
        if one != other:
            called = "UID" if field == "uid" else field
            text = f"must have the same {called}: {one} != {other}"
            raise _refused(batch, f"returned invalid object: {text}")
    if not isinstance(meta, dict):
        text = f"invalid metadata of type {_go_type(meta)} in converted object"
        if "metadata" not in after:
            text = "missing metadata in converted object"
        raise _refused(batch, f"returned invalid metadata: {text}")
    return {**after, "metadata": _restored(before["metadata"], meta, batch)}


def _restored(before: Plain, after: Plain, batch: Sequence[Plain]) -> Plain:
    meta = {key: value for key, value in before.items() if key not in LABELS}
    for field in LABELS:
        given = after.get(field)
        if given is None:
            continue
        problem = _label_problem(given, field)
        if problem:
            raise _refused(batch, f"returned invalid metadata: {problem}")
        meta[field] = given
    return meta


def _label_problem(given: Any, field: str) -> str:
    if not isinstance(given, dict):
        return f"invalid metadata.{field} of type {_go_type(given)} in converted object"
    for key, value in given.items():
        if not isinstance(value, str):
            return (
                f"metadata.{field}[{key}] must be a string, but is {_go_type(value)} "
                "in converted object"
            )
    return ""


def _go_type(value: Any) -> str:
    return GO_TYPES[type(value)]


def _failed(batch: Sequence[Plain], why: str) -> ApiProblem:
    return _refused(batch, f"failed: {why}")


def _refused(batch: Sequence[Plain], what: str) -> ApiProblem:
    of = f"{batch[0]['apiVersion']}, Kind={batch[0]['kind']}"
    return ApiProblem(500, "", f"conversion webhook for {of} {what}")
