"""Reviews: who am I, whose token is this, and may somebody do something.

There is no authorization here yet: whoever is let in may do everything, and that is
what an access review answers.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from trimtab.api.times import rfc3339
from trimtab.embedded import bodies, status
from trimtab.embedded.kinds import Kind, Plain
from trimtab.embedded.registry import Outcome
from trimtab.embedded.requests import ApiRequest, Target, User
from trimtab.embedded.tokens import Tokens

ACCESS = frozenset(
    {"SelfSubjectAccessReview", "SubjectAccessReview", "LocalSubjectAccessReview"}
)


class Reviews:
    """Kinds that are asked rather than kept."""

    def __init__(self, tokens: Tokens, *, now: Callable[[], datetime]) -> None:
        self._tokens = tokens
        self._now = now

    def answer(self, request: ApiRequest, target: Target, kind: Kind) -> Outcome:
        """The object that was sent, with its status filled in."""
        content_type = request.headers.get("content-type", bodies.JSON)
        obj = bodies.decode(request.body, content_type) if request.body else {}
        obj = {"kind": kind.kind, "apiVersion": kind.api_version, **obj}
        meta = {**(obj.get("metadata") or {}), "creationTimestamp": None}
        if kind.kind in ACCESS:
            state: Plain = {"allowed": True}
        elif kind.kind == "SelfSubjectReview":
            meta["creationTimestamp"] = rfc3339(self._now())
            state = {"userInfo": _user(request.user)}
        elif kind.kind == "SelfSubjectRulesReview":
            state = _rules()
        elif kind.kind == "TokenReview":
            state = self._token((obj.get("spec") or {}).get("token", ""))
        else:
            raise status.method_not_allowed(kind.about, "create")
        return Outcome(obj={**obj, "metadata": meta, "status": state}, created=True)

    def _token(self, token: str) -> Plain:
        user = self._tokens.verify(token, now=self._now())
        if user is None:
            return {"user": {}, "error": "invalid bearer token"}
        audiences = list(self._tokens.audiences)
        return {"authenticated": True, "user": _user(user), "audiences": audiences}


def _user(user: User) -> Plain:
    told: dict[str, Any] = {
        "username": user.name,
        "uid": user.uid,
        "groups": list(user.groups),
        "extra": {key: list(values) for key, values in user.extra.items()},
    }
    return {key: value for key, value in told.items() if value}


def _rules() -> Plain:
    everything = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
    paths = {"verbs": ["*"], "nonResourceURLs": ["*"]}
    return {
        "resourceRules": [everything],
        "nonResourceRules": [paths],
        "incomplete": False,
    }
