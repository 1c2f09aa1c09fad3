"""The environment: what the expressions of policies may speak of, and of which type.

Objects are not typed, because a policy may be for many kinds; what is known of the
request and of its namespace is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from trimtab.embedded.expressions.checking import Scope
from trimtab.embedded.expressions.kinds import (
    BOOL,
    DYN,
    INT,
    OPAQUE,
    STRING,
    TIMESTAMP,
    Type,
    list_of,
    map_of,
    struct,
)

REQUEST_AUTHORIZER: Final = "authorizer.requestResource"
_VARIABLES: Final = "kubernetes.variables"
_TEXTS: Final = list_of(STRING)
_KEPT: Final = frozenset(
    "bool bytes double duration int null string timestamp uint".split()
)


def _texts(names: str) -> dict[str, Type]:
    return dict.fromkeys(names.split(), STRING)


STRUCTS: Final[dict[str, dict[str, Type]]] = {
    "kubernetes.GroupVersionKind": _texts("group version kind"),
    "kubernetes.GroupVersionResource": _texts("group version resource"),
    "kubernetes.UserInfo": {
        **_texts("username uid"),
        "groups": _TEXTS,
        "extra": map_of(STRING, _TEXTS),
    },
    "kubernetes.AdmissionRequest": {
        "kind": struct("kubernetes.GroupVersionKind"),
        "resource": struct("kubernetes.GroupVersionResource"),
        "requestKind": struct("kubernetes.GroupVersionKind"),
        "requestResource": struct("kubernetes.GroupVersionResource"),
        **_texts("subResource requestSubResource name namespace operation"),
        "userInfo": struct("kubernetes.UserInfo"),
        "dryRun": BOOL,
        "options": DYN,
    },
    "kubernetes.NamespaceSpec": {"finalizers": _TEXTS},
    "kubernetes.NamespaceCondition": {
        **_texts("status type message reason"),
        "lastTransitionTime": TIMESTAMP,
    },
    "kubernetes.NamespaceStatus": {
        "conditions": list_of(struct("kubernetes.NamespaceCondition")),
        "phase": STRING,
    },
    "kubernetes.NamespaceMetadata": {
        **_texts("name generateName namespace UID resourceVersion"),
        "labels": map_of(STRING, STRING),
        "annotations": map_of(STRING, STRING),
        "creationTimestamp": TIMESTAMP,
        "deletionGracePeriodSeconds": INT,
        "deletionTimestamp": TIMESTAMP,
        "generation": INT,
        "finalizers": _TEXTS,
    },
    "kubernetes.Namespace": {
        "metadata": struct("kubernetes.NamespaceMetadata"),
        "spec": struct("kubernetes.NamespaceSpec"),
        "status": struct("kubernetes.NamespaceStatus"),
    },
}


class Environment:
    """What is there for one expression after another; variables are added to it.

    Who checks types has the types of objects and parameters, and no request to ask
    about (``asking``).
    """

    def __init__(
        self,
        *,
        params: bool,
        composed: bool = True,
        asking: bool = True,
        object: Type = DYN,
        param: Type = DYN,
        structs: Mapping[str, Mapping[str, Type]] | None = None,
    ) -> None:
        self._params = params
        self._types = {"object": object, "oldObject": object, "params": param}
        self._structs = {**STRUCTS, **(structs or {})}
        self._fields: dict[str, Type] = {}
        self._composed = composed
        self._asking = asking

    def scope(self, *, authorizer: bool = True, patches: bool = False) -> Scope:
        """What an expression may speak of that comes after what was added so far."""
        types = dict(self._types)
        if not self._params:
            del types["params"]
        types["namespaceObject"] = struct("kubernetes.Namespace")
        types["request"] = struct("kubernetes.AdmissionRequest")
        if authorizer:
            types["authorizer"] = OPAQUE["authorizer"]
        if authorizer and self._asking:
            types[REQUEST_AUTHORIZER] = OPAQUE["resourcecheck"]
        if self._composed:
            types["variables"] = struct(_VARIABLES)
        structs = {**self._structs, _VARIABLES: dict(self._fields)}
        return Scope(types, structs, patches)

    def add(self, name: str, type: Type | None) -> None:
        """A variable; nothing is known of one that cannot be compiled."""
        self._fields[name] = DYN if type is None else _declared(type)


def _declared(type: Type) -> Type:
    """What is known of a variable of a type."""
    if type.kind in ("list", "map"):
        return Type(type.kind, params=tuple(map(_declared, type.params)))
    return type if type.kind in _KEPT else DYN
