"""The subject: a request as the expressions of policies see it."""

from __future__ import annotations

from typing import Any, Final

from trimtab.embedded.chain import Attributes
from trimtab.embedded.expressions import authorization
from trimtab.embedded.expressions.authorization import Decision, Question
from trimtab.embedded.kinds import Kind, Plain
from trimtab.embedded.policies.environment import REQUEST_AUTHORIZER
from trimtab.embedded.rbac import attributes as rbac
from trimtab.embedded.rbac.authorizer import Authorizer
from trimtab.embedded.requests import User

_SHOWN: Final = (
    *("name", "generateName", "namespace", "uid", "resourceVersion", "generation"),
    *("creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"),
    *("labels", "annotations", "finalizers"),
)


class Subject:
    """One request, and who can be asked about it."""

    def __init__(
        self, attributes: Attributes, *, kind: Kind, authorizer: Authorizer
    ) -> None:
        self.attributes = attributes
        self.kind = kind
        """In whose version a policy looks at the request."""
        self._authorizer = authorizer

    def values(self, param: Plain | None = None) -> dict[str, Any]:
        """What each name stands for, but for the namespace, which not all may see."""
        attributes = self.attributes
        asking = authorization.Authorizer(self._ask)
        resource = asking.more(
            authorization.ResourceCheck,
            group=attributes.kind.group,
            resource=attributes.kind.plural,
            subresource=attributes.subresource,
            namespace=attributes.namespace,
            name=attributes.name,
        )
        return {
            "object": self._versioned(attributes.obj),
            "oldObject": self._versioned(attributes.old),
            "namespaceObject": None,
            "request": self._request(),
            "params": param,
            "authorizer": asking,
            REQUEST_AUTHORIZER: resource,
        }

    def _versioned(self, obj: Plain | None) -> Plain | None:
        if obj is None or self.kind is self.attributes.kind:
            return obj
        return self.kind.converted(obj)

    def _request(self) -> Plain:
        attributes, kind = self.attributes, self.attributes.kind
        request: Plain = {
            "uid": "",
            "kind": self._kind(self.kind),
            "resource": _resource(self.kind),
            "requestKind": self._kind(kind),
            "requestResource": _resource(kind),
            "operation": attributes.operation,
            "userInfo": _user(attributes.user),
            "object": None,
            "oldObject": None,
            "dryRun": attributes.dry_run,
            "options": attributes.options or None,
        }
        for name, value in (
            ("subResource", attributes.subresource),
            ("requestSubResource", attributes.subresource),
            ("name", attributes.name),
            ("namespace", attributes.namespace),
        ):
            if value:
                request[name] = value
        return request

    def _kind(self, kind: Kind) -> Plain:
        """The kind of what is written, which for a subresource may be another."""
        group, version, name = kind.group, kind.version, kind.kind
        obj = self.attributes.obj or {}
        if self.attributes.subresource and obj.get("kind"):
            group, _, version = obj["apiVersion"].rpartition("/")
            name = obj["kind"]
        return {"group": group, "version": version, "kind": name}

    def _ask(self, question: Question) -> Decision:
        user = self.attributes.user
        if question.account is not None:
            user = _account(*question.account)
        if question.path:
            asked = rbac.path_attributes(question.verb, question.path)
        else:
            asked = rbac.Attributes(
                verb=question.verb,
                group=question.group,
                resource=question.resource,
                subresource=question.subresource,
                namespace=question.namespace,
                name=question.name,
            )
        decision = self._authorizer.decide(user, asked)
        return Decision(allowed=decision.allowed, reason=decision.reason)


def _resource(kind: Kind) -> Plain:
    return {"group": kind.group, "version": kind.version, "resource": kind.plural}


def _user(user: User) -> Plain:
    info: Plain = {"username": user.name}
    if user.uid:
        info["uid"] = user.uid
    if user.groups:
        info["groups"] = list(user.groups)
    if user.extra:
        info["extra"] = {key: list(value) for key, value in user.extra.items()}
    return info


def _account(namespace: str, name: str) -> User:
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}")
    return User(f"system:serviceaccount:{namespace}:{name}", groups)


def shown(namespace: Plain) -> Plain:
    """What expressions get to see of a namespace."""
    metadata = namespace.get("metadata") or {}
    kept = {name: metadata[name] for name in _SHOWN if name in metadata}
    rest = {name: namespace.get(name) or {} for name in ("spec", "status")}
    return {"metadata": kept, **rest}
