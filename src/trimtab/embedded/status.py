"""Problems: what the server says no with, as ``Status`` objects in Kubernetes' words.

Clients match on these texts and causes, so they are those of the real server, to the
letter. :class:`FieldProblem` is one complaint about one field; a list of them makes an
``Invalid``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from trimtab.embedded.gotext import quoted as quoted
from trimtab.embedded.gotext import shown as shown

# What etcd takes in one request, and what its client sends at all.
MAX_STORED = 3 << 19
MAX_MESSAGE = 1 << 21


class GroupResource(msgspec.Struct, frozen=True):
    """How messages name a resource: ``deployments.apps``, or ``pods``."""

    group: str
    resource: str

    def __str__(self) -> str:
        return f"{self.resource}.{self.group}" if self.group else self.resource


class FieldProblem(msgspec.Struct, frozen=True):
    """One complaint: the field's path, the machine-readable type, the text."""

    field: str
    type: str
    body: str

    def __str__(self) -> str:
        return f"{self.field}: {self.body}"


def _body(title: str, detail: str) -> str:
    return f"{title}: {detail}" if detail else title


def required(field: str, detail: str = "") -> FieldProblem:
    return FieldProblem(field, "FieldValueRequired", _body("Required value", detail))


def invalid(field: str, value: Any, detail: str) -> FieldProblem:
    title = f"Invalid value: {shown(value)}"
    return FieldProblem(field, "FieldValueInvalid", _body(title, detail))


def type_invalid(field: str, value: Any, detail: str) -> FieldProblem:
    title = f"Invalid value: {shown(value)}"
    return FieldProblem(field, "FieldValueTypeInvalid", _body(title, detail))


def not_supported(field: str, value: Any, allowed: Iterable[str]) -> FieldProblem:
    values = ", ".join(quoted(each) for each in allowed)
    detail = f"supported values: {values}" if values else ""
    title = f"Unsupported value: {shown(value)}"
    return FieldProblem(field, "FieldValueNotSupported", _body(title, detail))


def duplicate(field: str, value: Any) -> FieldProblem:
    body = f"Duplicate value: {shown(value)}"
    return FieldProblem(field, "FieldValueDuplicate", body)


def forbidden_value(field: str, detail: str) -> FieldProblem:
    return FieldProblem(field, "FieldValueForbidden", _body("Forbidden", detail))


def too_long(field: str, limit: int) -> FieldProblem:
    body = f"Too long: may not be more than {limit} bytes"
    return FieldProblem(field, "FieldValueTooLong", body)


def too_many(field: str, count: int, limit: int) -> FieldProblem:
    items = "item" if limit == 1 else "items"
    body = f"Too many: {count}: must have at most {limit} {items}"
    return FieldProblem(field, "FieldValueTooMany", body)


class ApiProblem(Exception):
    """A request that is answered with a ``Status``."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        *,
        about: GroupResource | None = None,
        name: str = "",
        causes: Sequence[dict[str, str]] = (),
        uid: str = "",
        retry_after: int = 0,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.retry_after = retry_after
        self.warnings: list[str] = []
        """What the client is told beside it."""
        self.unadmitted = False
        """Whether it was found before anybody looked at what the request is about."""
        self.next = ""
        """A continue token to go on with, for a list whose revision is forgotten."""
        details: dict[str, Any] = {
            "name": name,
            "group": about.group if about else "",
            "kind": about.resource if about else "",
            "uid": uid,
            "causes": list(causes),
            "retryAfterSeconds": retry_after,
        }
        self._details = {key: value for key, value in details.items() if value}

    def add_cause(self, *, reason: str, message: str, field: str) -> None:
        """Say one thing more about it."""
        cause = {"reason": reason, "message": message, "field": field}
        self._details["causes"] = [*self._details.get("causes", ()), cause]

    @property
    def status(self) -> dict[str, Any]:
        """The object that is sent."""
        status: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {"continue": self.next} if self.next else {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
        }
        if self._details:
            status["details"] = self._details
        status["code"] = self.code
        return {key: value for key, value in status.items() if value != ""}


def aggregate(problems: Iterable[FieldProblem]) -> str:
    """Several complaints in one line, each once."""
    texts = list(dict.fromkeys(str(problem) for problem in problems))
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


def invalid_object(
    kind: GroupResource, name: str, problems: Sequence[FieldProblem]
) -> ApiProblem:
    """422; ``kind`` names the kind, not the resource (``Deployment.apps``)."""
    causes = [
        {"reason": problem.type, "message": problem.body, "field": problem.field}
        for problem in problems
    ]
    message = f"{kind} {quoted(name)} is invalid: {aggregate(problems)}"
    return ApiProblem(422, "Invalid", message, about=kind, name=name, causes=causes)


def not_found(about: GroupResource, name: str) -> ApiProblem:
    message = f"{about} {quoted(name)} not found"
    return ApiProblem(404, "NotFound", message, about=about, name=name)


class NoSuchPath(ApiProblem):
    """A path that nothing is served at; the real server answers it in plain text."""

    text = b"404 page not found\n"


def no_such_path() -> ApiProblem:
    message = "the server could not find the requested resource"
    return NoSuchPath(404, "NotFound", message)


def already_exists(
    about: GroupResource, name: str, *, going: bool = False
) -> ApiProblem:
    """That there is one; ``going`` if it is being deleted."""
    start = "object is being deleted: " if going else ""
    message = f"{start}{about} {quoted(name)} already exists"
    return ApiProblem(409, "AlreadyExists", message, about=about, name=name)


def name_conflict(about: GroupResource, name: str) -> ApiProblem:
    """A name that the server made up itself is taken, again and again."""
    return ApiProblem(
        409,
        "AlreadyExists",
        f"{about} {quoted(name)} already exists, the server was not able to generate a "
        "unique name for the object",
        about=about,
        name=name,
        retry_after=1,
    )


def check_stored_size(size: int) -> None:
    """Refuse an object of so many bytes if etcd would, in its words."""
    if size > MAX_MESSAGE:
        text = (
            "rpc error: code = ResourceExhausted desc = trying to send message larger "
            f"than max ({size} vs. {MAX_MESSAGE})"
        )
        raise ApiProblem(500, "", text)
    if size > MAX_STORED:
        raise ApiProblem(500, "", "etcdserver: request is too large")


def conflict(about: GroupResource, name: str, detail: str) -> ApiProblem:
    message = f"Operation cannot be fulfilled on {about} {quoted(name)}: {detail}"
    return ApiProblem(409, "Conflict", message, about=about, name=name)


def forbidden(about: GroupResource, name: str, detail: str) -> ApiProblem:
    named = f"{about} {quoted(name)}" if name else str(about)
    message = f"{named} is forbidden: {detail}"
    return ApiProblem(403, "Forbidden", message, about=about, name=name)


def unauthorized() -> ApiProblem:
    return ApiProblem(401, "Unauthorized", "Unauthorized")


def bad_request(message: str) -> ApiProblem:
    return ApiProblem(400, "BadRequest", message)


def expired(message: str) -> ApiProblem:
    """410 for a revision or a continue token that is no longer there."""
    return ApiProblem(410, "Expired", message)


def gone(message: str) -> ApiProblem:
    return ApiProblem(410, "Gone", message)


def method_not_allowed(about: GroupResource, action: str) -> ApiProblem:
    message = f"{action} is not supported on resources of kind {quoted(str(about))}"
    return ApiProblem(405, "MethodNotAllowed", message, about=about)


def not_acceptable(types: Iterable[str]) -> ApiProblem:
    message = f"only the following media types are accepted: {', '.join(types)}"
    return ApiProblem(406, "NotAcceptable", message)


def unsupported_media_type(types: Iterable[str]) -> ApiProblem:
    message = (
        "the body of the request was in an unknown format - accepted media types "
        f"include: {', '.join(types)}"
    )
    return ApiProblem(415, "UnsupportedMediaType", message)


def too_large(message: str) -> ApiProblem:
    message = f"Request entity too large: {message}"
    return ApiProblem(413, "RequestEntityTooLarge", message)


def internal(message: str) -> ApiProblem:
    return ApiProblem(
        500,
        "InternalError",
        f"Internal error occurred: {message}",
        causes=[{"message": message}],
    )
