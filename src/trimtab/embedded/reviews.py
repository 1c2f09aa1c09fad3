"""Reviews: who am I, whose token is this, and may somebody do something."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from datetime import datetime
from typing import Any

from trimtab.api.times import rfc3339
from trimtab.embedded import bodies, metadata, reading, status
from trimtab.embedded.access_reviews import attributes_in, evaluation_error, problems_in
from trimtab.embedded.authentication import StaticTokens
from trimtab.embedded.chain import CREATE
from trimtab.embedded.kinds import Kind, Plain
from trimtab.embedded.managed import after_update
from trimtab.embedded.rbac.authorizer import Authorizer, absent
from trimtab.embedded.rbac.rules import Rule
from trimtab.embedded.registry import Registry
from trimtab.embedded.requests import ApiRequest, User
from trimtab.embedded.tokens import Tokens
from trimtab.embedded.writes import Outcome, Write

SELF = "SelfSubjectAccessReview"
ACCESS = frozenset({SELF, "SubjectAccessReview", "LocalSubjectAccessReview"})
AUTHENTICATED = "system:authenticated"


class Reviews:
    """Kinds that are asked rather than kept."""

    def __init__(
        self,
        tokens: Tokens,
        *,
        registry: Registry,
        static: StaticTokens,
        authorizer: Authorizer,
        now: Callable[[], datetime],
    ) -> None:
        self._tokens = tokens
        self._registry = registry
        self._static = static
        self._authorizer = authorizer
        self._now = now

    def answer(self, request: ApiRequest, write: Write) -> Outcome:
        """The object that was sent, with its status filled in."""
        kind = write.kind
        content_type = request.headers.get("content-type", bodies.JSON)
        obj = self._accounted(write, reading.read(write, request.body, content_type))
        obj = self._admitted(write, obj)
        if kind.kind in ACCESS:
            made = {**obj, "status": self._access(request.user, kind, obj)}
        elif kind.kind == "SelfSubjectReview":
            meta = {"creationTimestamp": rfc3339(self._now())}
            made = _fresh(kind, metadata=meta, status={"userInfo": _user(request.user)})
        elif kind.kind == "SelfSubjectRulesReview":
            state = self._rules(request.user, obj)
            made = _fresh(kind, metadata={}, spec={}, status=state)
        elif kind.kind == "TokenReview":
            made = {**obj, "status": self._token(obj.get("spec") or {})}
        else:
            raise status.method_not_allowed(kind.about, "create")
        return Outcome(obj=made, created=True)

    def _admitted(self, write: Write, obj: Plain) -> Plain:
        """The object after everybody was asked about it who wants to be."""
        obj = self._registry.chain.mutated(write, CREATE, obj, None)
        self._registry.chain.review(write, CREATE, obj, None)
        return obj

    def _accounted(self, write: Write, obj: Plain) -> Plain:
        """The object as any that is created: in its place, with its managed fields."""
        kind = write.kind
        metadata.place(kind, obj, namespace=write.namespace)
        return after_update(
            None,
            obj,
            type=kind.type,
            api_version=kind.api_version,
            manager=write.manager,
            now=rfc3339(self._now()),
        )

    def _access(self, user: User, kind: Kind, obj: Plain) -> Plain:
        problems = problems_in(kind.kind, obj)
        if problems:
            about = status.GroupResource(kind.group, "")
            raise status.invalid_object(about, "", problems)
        spec = obj["spec"]
        if kind.kind != SELF:
            user = User(spec.get("user", ""), tuple(spec.get("groups") or ()))
        decision = self._authorizer.decide(user, attributes_in(spec))
        state = {"allowed": decision.allowed, "reason": decision.reason}
        state["evaluationError"] = evaluation_error(spec)
        return {key: value for key, value in state.items() if value != ""}

    def _rules(self, user: User, obj: Plain) -> Plain:
        namespace = (obj.get("spec") or {}).get("namespace", "")
        if not namespace:
            raise status.bad_request("no namespace on request")
        rules, lost = self._authorizer.rules(user, namespace)
        state: Plain = {
            "resourceRules": [_resource_rule(each) for each in rules if each.resources],
            "nonResourceRules": [_path_rule(each) for each in rules if each.paths],
            "incomplete": False,
        }
        if lost:
            state["evaluationError"] = absent(lost)
        return state

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
        found = self._static.find(token)
        if found is not None:
            return found if audience in self._tokens.audiences else None
        tokens = copy(self._tokens)
        tokens.audiences = (audience,)
        return tokens.verify(token, now=self._now())


def _fresh(kind: Kind, **parts: Plain) -> Plain:
    """An answer that keeps nothing of what was sent."""
    return {"kind": kind.kind, "apiVersion": kind.api_version, **parts}


def _user(user: User) -> Plain:
    told: dict[str, Any] = {
        "username": user.name,
        "uid": user.uid,
        "groups": list(user.groups),
        "extra": {key: list(values) for key, values in user.extra.items()},
    }
    return {key: value for key, value in told.items() if value}


def _resource_rule(rule: Rule) -> Plain:
    told = {
        "verbs": rule.verbs,
        "apiGroups": rule.groups,
        "resources": rule.resources,
        "resourceNames": rule.names,
    }
    return {key: list(value) for key, value in told.items() if value}


def _path_rule(rule: Rule) -> Plain:
    return {"verbs": list(rule.verbs), "nonResourceURLs": list(rule.paths)}
