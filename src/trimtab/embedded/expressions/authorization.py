"""Authorization: the values behind ``authorizer``, who can be asked who may what.

Each call of ``group``, ``resource`` and the like makes a new value that knows more;
only ``check`` asks, and whom it asks was given by whoever made the first value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from trimtab.api import names
from trimtab.embedded.expressions.values import EvaluationError


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked: a verb on a path, or on a resource if there is one."""

    account: tuple[str, str] | None = None
    """Namespace and name of a service account; None for whoever made the request."""
    verb: str = ""
    path: str = ""
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    fields: str = ""
    labels: str = ""


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """What was answered."""

    cel_name = "kubernetes.authorization.Decision"
    allowed: bool
    reason: str = ""
    error: str = ""


Ask = Callable[[Question], Decision]


class _Asking(msgspec.Struct, frozen=True):
    ask: Ask
    question: Question = Question()

    def more(self, kind: type[_Asking], **known: Any) -> Any:
        """The same question with more known of it."""
        return kind(self.ask, msgspec.structs.replace(self.question, **known))


class Authorizer(_Asking, frozen=True):
    """Somebody of whom can be asked what they may do."""

    cel_name = "kubernetes.authorization.Authorizer"


class PathCheck(_Asking, frozen=True):
    """A path that somebody may use, or not."""

    cel_name = "kubernetes.authorization.PathCheck"


class GroupCheck(_Asking, frozen=True):
    """A group, whose resources can be asked about."""

    cel_name = "kubernetes.authorization.GroupCheck"


class ResourceCheck(_Asking, frozen=True):
    """A resource that somebody may do something with, or not."""

    cel_name = "kubernetes.authorization.ResourceCheck"


def _path(authorizer: Authorizer, path: str) -> Any:
    if not path.strip():
        raise EvaluationError("path must not be empty")
    return authorizer.more(PathCheck, path=path)


def _resource(group: GroupCheck, resource: str) -> Any:
    if not resource.strip():
        raise EvaluationError("resource must not be empty")
    return group.more(ResourceCheck, resource=resource)


def _account(authorizer: Authorizer, namespace: str, name: str) -> Any:
    for text, check, what in (
        (name, names.check_subdomain, "name"),
        (namespace, names.check_label, "namespace"),
    ):
        try:
            check(text)
        except names.InvalidName:
            raise EvaluationError(f"Invalid service account {what}") from None
    return authorizer.more(Authorizer, account=(namespace, name))


def _check(asking: _Asking, verb: str) -> Decision:
    return asking.ask(msgspec.structs.replace(asking.question, verb=verb))


def _with(field: str) -> Callable[[ResourceCheck, str], Any]:
    return lambda check, value: check.more(ResourceCheck, **{field: value})


FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "path": _path,
    "group": lambda authorizer, group: authorizer.more(GroupCheck, group=group),
    "serviceAccount": _account,
    "resource": _resource,
    "subresource": _with("subresource"),
    "namespace": _with("namespace"),
    "name": _with("name"),
    "fieldSelector": _with("fields"),
    "labelSelector": _with("labels"),
    "check": _check,
    "allowed": lambda decision: decision.allowed,
    "reason": lambda decision: decision.reason,
    "errored": lambda decision: bool(decision.error),
    "error": lambda decision: decision.error,
}
