"""Reviews: who am I, whose token is this, and may somebody do something.

There is no authorization here yet: whoever is let in may do everything, and that is
what an access review answers.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from datetime import datetime
from typing import Any

from trimtab.api.times import rfc3339
from trimtab.embedded import bodies, status
from trimtab.embedded.kinds import Kind, Plain
from trimtab.embedded.requests import ApiRequest, Target, User
from trimtab.embedded.tokens import Tokens
from trimtab.embedded.writes import Outcome

ACCESS = frozenset(
    {"SelfSubjectAccessReview", "SubjectAccessReview", "LocalSubjectAccessReview"}
)
AUTHENTICATED = "system:authenticated"


class Reviews:
    """Kinds that are asked rather than kept."""

    def __init__(self, tokens: Tokens, *, now: Callable[[], datetime]) -> None:
        self._tokens = tokens
        self._now = now

    def answer(self, request: ApiRequest, target: Target, kind: Kind) -> Outcome:
        """The object that was sent, with its status filled in."""
        content_type = request.headers.get("content-type", bodies.JSON)
        obj = bodies.decode(request.body, content_type, kind=kind.kind)
        obj = {"kind": kind.kind, "apiVersion": kind.api_version, **obj}
        meta = dict(obj.get("metadata") or {})
        if kind.kind in ACCESS:
            state: Plain = {"allowed": True}
        elif kind.kind == "SelfSubjectReview":
            meta["creationTimestamp"] = rfc3339(self._now())
            state = {"userInfo": _user(request.user)}
        elif kind.kind == "SelfSubjectRulesReview":
            state = _rules()
        elif kind.kind == "TokenReview":
            state = self._token(obj.get("spec") or {})
        else:
            raise status.method_not_allowed(kind.about, "create")
        return Outcome(obj={**obj, "metadata": meta, "status": state}, created=True)

    def _token(self, spec: Plain) -> Plain:
        token = spec.get("token", "")
        if not token:
            raise status.bad_request(
                "token is required for TokenReview in authentication"
            )
        wanted = tuple(spec.get("audiences") or self._tokens.audiences)
        known = {each: self._verified(token, each) for each in wanted}
        meant = [each for each, user in known.items() if user is not None]
        if not meant:
            return {"user": {}, "error": "invalid bearer token"}
        user = known[meant[0]]
        assert user is not None, "only good ones are meant"
        told = _user(user)
        groups = told.get("groups", [])
        told["groups"] = [*groups, *({AUTHENTICATED} - set(groups))]
        return {"authenticated": True, "user": told, "audiences": meant}

    def _verified(self, token: str, audience: str) -> User | None:
        """Whose token it is, for one audience."""
        tokens = copy(self._tokens)
        tokens.audiences = (audience,)
        return tokens.verify(token, now=self._now())


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
