"""Reviews: what a webhook is sent about a request, and what it may answer.

The answer of a webhook is read as the real server reads it: in the version that was
asked for, for the very review that was sent, with a patch only from those who may
change things.
"""

from __future__ import annotations

import re
from base64 import b64decode
from typing import Any

import msgspec

from trimtab.embedded import status
from trimtab.embedded.calls import Answered
from trimtab.embedded.chain import Attributes
from trimtab.embedded.kinds import Kind, Plain
from trimtab.embedded.requests import User
from trimtab.embedded.status import ApiProblem, quoted
from trimtab.embedded.webhooks.answers import (
    VERSIONS,
    Review,
    Unusable,
    mistyped,
    review_of,
)

KIND = "AdmissionReview"
GROUP = "admission.k8s.io"
TYPES = {
    "uid": (str, "types.UID"),
    "allowed": (bool, "bool"),
    "status": (dict, "v1.Status"),
    "patch": (str, "[]uint8"),
    "patchType": (str, "v1.PatchType"),
    "auditAnnotations": (dict, "map[string]string"),
    "warnings": (list, "[]string"),
}
"""What the fields of a response are, here and in Go."""
JSON_PATCH = "JSONPatch"
UNKNOWN = "webhook does not accept known AdmissionReview versions (v1, v1beta1)"


class Denied(ApiProblem):
    """A request that a webhook denied, with the status that it gave."""

    def __init__(self, name: str, result: Plain) -> None:
        code = max(400, int(result.get("code") or 0))
        start = f"admission webhook {quoted(name)} denied the request"
        told = result.get("message") or result.get("reason")
        message = f"{start}: {told}" if told else f"{start} without explanation"
        super().__init__(code, str(result.get("reason") or ""), message)
        self._result = result

    @property
    def status(self) -> dict[str, Any]:
        told = super().status
        given = self._result.get("status")
        if given not in (None, "", "Success"):
            told["status"] = given
        for field in ("metadata", "details"):
            if self._result.get(field):
                told[field] = self._result[field]
        return {**told, "code": told.pop("code")}


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What a webhook said."""

    allowed: bool
    result: Plain
    warnings: tuple[str, ...] = ()
    patch: bytes = b""
    patch_type: str = ""


class _Response(msgspec.Struct, kw_only=True):
    uid: str | None = None
    allowed: bool | None = None
    status: dict[str, Any] | None = None
    patch: str | None = None
    patchType: str | None = None
    auditAnnotations: dict[str, str] | None = None
    warnings: list[str] | None = None


def version_of(reviews: tuple[str, ...]) -> str:
    """The first version that a webhook reads and we write; empty if there is none."""
    return next((each for each in reviews if each in VERSIONS), "")


def parts(
    attributes: Attributes,
    *,
    kind: Kind,
    version: str,
    obj: Plain | None,
    old: Plain | None,
) -> tuple[bytes, bytes]:
    """The review of a request, before and after its uid, in a kind's version."""
    head = {"kind": KIND, "apiVersion": f"admission.k8s.io/{version}"}
    start = msgspec.json.encode(head)[:-1] + b',"request":{"uid":"'
    rest = msgspec.json.encode(request_of(attributes, kind=kind, obj=obj, old=old))
    return start, b'",' + rest[1:] + b"}\n"


def request_of(
    attributes: Attributes, *, kind: Kind, obj: Plain | None, old: Plain | None
) -> Plain:
    """The request of a review, but for its uid; expressions see the same."""
    part = attributes.subresource
    own = attributes.kind
    told: Plain = {
        "kind": _kind_of(kind, obj or old),
        "resource": _resource_of(kind),
        "subResource": part,
        "requestKind": _kind_of(own, attributes.obj or attributes.old),
        "requestResource": _resource_of(own),
        "requestSubResource": part,
        "name": attributes.name,
        "namespace": attributes.namespace,
    }
    told = {key: value for key, value in told.items() if value != ""}
    return told | {
        "operation": attributes.operation,
        "userInfo": _user_of(attributes.user),
        "object": obj,
        "oldObject": old,
        "dryRun": attributes.dry_run,
        "options": attributes.options,
    }


def _kind_of(kind: Kind, obj: Plain | None) -> Plain:
    """What an object is; below a resource it may be of another kind than that."""
    version, name = kind.api_version, kind.kind
    if obj is not None:
        version, name = obj.get("apiVersion", version), obj.get("kind", name)
    group, _, short = version.rpartition("/")
    return {"group": group, "version": short, "kind": name}


def _resource_of(kind: Kind) -> Plain:
    return {"group": kind.group, "version": kind.version, "resource": kind.plural}


def _user_of(user: User) -> Plain:
    told: Plain = {
        "username": user.name,
        "uid": user.uid,
        "groups": list(user.groups),
        "extra": {key: list(values) for key, values in user.extra.items()},
    }
    return {key: value for key, value in told.items() if value}


def verdict(answered: Answered, *, version: str, mutating: bool) -> Verdict:
    """What an answer means.

    Errors: :class:`Unusable`, which says why it cannot be used.
    """
    try:
        review = review_of(answered.answer, kind=KIND, group=GROUP, version=version)
        response = None if review.response is None else _read(review.response)
        patch = _bytes(response.patch or "") if response else b""
    except Unusable as error:
        raise Unusable(f"failed to call webhook: {error}") from None
    if response is None:
        raise Unusable(_invalid("webhook response was absent"))
    if version == "v1":
        _check(answered.uid, review, response, mutating=mutating)
    type = response.patchType or "" if version == "v1" else JSON_PATCH
    return Verdict(
        allowed=bool(response.allowed),
        result=response.status or {},
        warnings=tuple(response.warnings or ()),
        patch=patch if mutating else b"",
        patch_type=type,
    )


def _read(raw: Plain) -> _Response:
    for field, (type, wanted) in TYPES.items():
        if not isinstance(raw.get(field), type | None):
            where = f"AdmissionResponse.response.{field}"
            raise Unusable(mistyped(raw[field], where, wanted))
    try:
        return msgspec.convert(raw, _Response)
    except msgspec.ValidationError as error:
        raise Unusable(f"json: {error}") from None


def _bytes(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except ValueError:
        good = re.match(r"[A-Za-z0-9+/]*", text)
        place = good.end() if good else 0
        raise Unusable(f"illegal base64 data at input byte {place}") from None


def _invalid(text: str) -> str:
    return f"received invalid webhook response: {text}"


def _check(uid: str, review: Review, response: _Response, *, mutating: bool) -> None:
    got = response.uid or ""
    if got != uid:
        text = f"expected response.uid={quoted(uid)}, got {quoted(got)}"
        raise Unusable(_invalid(text))
    if (review.api_version, review.kind) != (f"{GROUP}/v1", KIND):
        got = f"{review.api_version or '/'}, Kind={review.kind}"
        text = f"expected webhook response of {GROUP}/v1, Kind={KIND}, got {got}"
        raise Unusable(_invalid(text))
    problem = _patch_problem(response, mutating=mutating)
    if problem:
        raise Unusable(_invalid(problem))


def _patch_problem(response: _Response, *, mutating: bool) -> str:
    patch, type = response.patch, response.patchType
    if not mutating:
        if patch:
            return "validating webhook may not return response.patch"
        if type is not None:
            return "validating webhook may not return response.patchType"
        return ""
    if patch and type is None:
        return "webhook returned response.patch but not response.patchType"
    if not patch and type is not None:
        return "webhook returned response.patchType but not response.patch"
    return 'webhook returned invalid response.patchType of ""' if type == "" else ""


def dry_run_refused(name: str) -> ApiProblem:
    return status.bad_request(
        f"admission webhook {quoted(name)} does not support dry run"
    )
