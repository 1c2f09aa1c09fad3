"""Reviews: what a server asks before it admits something, and what it is told.

A :class:`Review` is what handlers see beside the object. The wire's own review, with
its kinds, versions and uids, is read and answered here and nowhere else.
"""

from __future__ import annotations

from base64 import b64encode
from typing import Any, Generic, Literal, TypeVar

import msgspec

from trimtab.api.resource import Resource
from trimtab.client.errors import TrimtabError

R = TypeVar("R", bound=Resource)
Plain = dict[str, Any]
Operation = Literal["CREATE", "UPDATE", "DELETE"]

WARNINGS = 16
"""So many warnings are sent; a server shows people no more than a few."""
WARNING_LENGTH = 256
REASONS = {400: "BadRequest", 403: "Forbidden", 409: "Conflict", 422: "Invalid"}


class Refused(TrimtabError):
    """Raised by a handler: the request is refused, and the user reads the message.

    ``status`` is the HTTP status that the user's client gets: 403, or 422 for an object
    that is wrong in itself.
    """

    def __init__(self, message: str, *, status: int = 403) -> None:
        if not 400 <= status < 500:
            raise ValueError(
                f"A refusal cannot have the status {status}; use 403, or 422 for an "
                "object that is wrong in itself."
            )
        super().__init__(message)
        self.status = status


class Review(Generic[R]):
    """What is known of a request beside its object.

    ``old`` is the object before an UPDATE; None otherwise, and if what is stored cannot
    be read as the class any more. ``dry_run``: whatever is decided, nothing is kept.
    """

    __slots__ = (
        "dry_run",
        "groups",
        "name",
        "namespace",
        "old",
        "operation",
        "user",
        "warnings",
    )

    def __init__(
        self,
        operation: Operation,
        *,
        old: R | None = None,
        user: str = "",
        groups: tuple[str, ...] = (),
        namespace: str = "",
        name: str = "",
        dry_run: bool = False,
    ) -> None:
        self.operation = operation
        self.old = old
        self.user = user
        self.groups = groups
        self.namespace = namespace
        self.name = name
        self.dry_run = dry_run
        self.warnings: list[str] = []

    def __repr__(self) -> str:
        place = "/".join(filter(None, (self.namespace, self.name)))
        return f"Review({self.operation!r}, {place!r}, user={self.user!r})"

    def warn(self, message: str) -> None:
        """Tell the user something that is no refusal; kubectl prints it."""
        text = " ".join(message.split())
        if text and len(self.warnings) < WARNINGS:
            self.warnings.append(text[:WARNING_LENGTH])


class User(msgspec.Struct, frozen=True):
    """Who asks."""

    username: str = ""
    groups: tuple[str, ...] = ()


class Asked(msgspec.Struct, frozen=True, rename="camel"):
    """The ``request`` of an AdmissionReview, its objects unread."""

    uid: str
    operation: str
    name: str = ""
    namespace: str = ""
    user_info: User = User()
    object: msgspec.Raw = msgspec.Raw(b"null")
    old_object: msgspec.Raw = msgspec.Raw(b"null")
    dry_run: bool = False

    @property
    def new(self) -> bytes | None:
        return _bytes(self.object)

    @property
    def old(self) -> bytes | None:
        return _bytes(self.old_object)


class Envelope(msgspec.Struct, frozen=True, rename="camel"):
    """An AdmissionReview that asks."""

    api_version: str
    kind: str
    request: Asked


class NotAReview(Exception):
    """What was sent is no review that can be answered."""


_decode = msgspec.json.Decoder(Envelope).decode
ADMISSION = ("admission.k8s.io/v1", "AdmissionReview")


def asked(body: bytes) -> Asked:
    """The request in the body of a call.

    Errors: :class:`NotAReview`.
    """
    try:
        envelope = _decode(body)
    except msgspec.MsgspecError as error:
        raise NotAReview(f"The body is no AdmissionReview: {error}.") from None
    if (envelope.api_version, envelope.kind) != ADMISSION:
        raise NotAReview(
            f"The body is a {envelope.kind} of {envelope.api_version}; an "
            f"{ADMISSION[1]} of {ADMISSION[0]} is answered."
        )
    return envelope.request


def allowed(uid: str, *, patch: list[Plain] | None = None) -> Plain:
    """An answer that lets a request pass, perhaps changed."""
    answer: Plain = {"uid": uid, "allowed": True}
    if patch:
        text = b64encode(msgspec.json.encode(patch)).decode("ascii")
        answer |= {"patchType": "JSONPatch", "patch": text}
    return answer


def refused(uid: str, error: Refused) -> Plain:
    """An answer that does not."""
    status: Plain = {"code": error.status, "message": str(error) or "refused"}
    if error.status in REASONS:
        status["reason"] = REASONS[error.status]
    return {"uid": uid, "allowed": False, "status": status}


def answer(response: Plain, warnings: list[str]) -> bytes:
    """The AdmissionReview that goes back."""
    told = {**response, "warnings": warnings} if warnings else response
    version, kind = ADMISSION
    return msgspec.json.encode({"apiVersion": version, "kind": kind, "response": told})


def _bytes(raw: msgspec.Raw) -> bytes | None:
    data = bytes(raw)
    return None if data in (b"", b"null") else data
