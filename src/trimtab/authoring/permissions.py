"""Permissions: exactly the verbs that an operator's declarations and writes need.

What is declared (``reconciles``, ``owns``, ``watches``, finalizers, statuses, leader
election) says most of it; what its source calls (:mod:`trimtab.authoring.uses`) says
the rest, and ``app.needs(…)`` says what neither shows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import msgspec

from trimtab.api.conditions import Conditions
from trimtab.api.kinds.coordination import Lease
from trimtab.api.kinds.core import Secret
from trimtab.api.resource import Info, Resource
from trimtab.authoring.uses import Kind, Use, Uses, uses_of
from trimtab.client.errors import TrimtabError
from trimtab.runtime.definitions import Definition, Source
from trimtab.runtime.operator import Operator
from trimtab.runtime.webhooks.configurations import KINDS as CONFIGURATIONS
from trimtab.runtime.webhooks.configurations import (
    CustomResourceDefinition,
    configuration_name,
)
from trimtab.runtime.webhooks.declarations import definition_name

Plain = dict[str, Any]
GROUP: Final = "rbac.authorization.k8s.io"
VERBS: Final = (
    *("get", "list", "watch", "create", "update", "patch"),
    *("delete", "deletecollection"),
)
CLUSTER: Final = ""
"""The place of a rule that holds in the whole cluster; others are namespaces."""
EVENTS: Final = Info(version="v1", kind="Event", plural="events")
NAMESPACES: Final = Info(
    version="v1", kind="Namespace", plural="namespaces", namespaced=False
)


class NotVisible(TrimtabError):
    """The source does something whose permission cannot be told."""


class Rule(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """Verbs on one resource, in one place."""

    place: str
    group: str
    resource: str
    names: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ()

    def plain(self) -> Plain:
        rule: Plain = {"apiGroups": [self.group], "resources": [self.resource]}
        if self.names:
            rule["resourceNames"] = list(self.names)
        return {**rule, "verbs": list(self.verbs)}


class _Rules:
    """Collects verbs, each resource of each place once."""

    def __init__(self) -> None:
        self._verbs: dict[tuple[str, str, str, tuple[str, ...]], set[str]] = {}

    def add(
        self,
        places: Iterable[str],
        kind: Kind,
        *verbs: str,
        subresource: str = "",
        names: tuple[str, ...] = (),
    ) -> None:
        info = kind if isinstance(kind, Info) else kind.__resource__
        resource = f"{info.plural}/{subresource}" if subresource else info.plural
        for place in places if info.namespaced else (CLUSTER,):
            key = (place, info.group, resource, names)
            self._verbs.setdefault(key, set()).update(verbs)

    def rules(self) -> Iterator[Rule]:
        for (place, group, resource, names), verbs in sorted(self._verbs.items()):
            # What may be done everywhere need not be said again for one namespace.
            everywhere = self._verbs.get((CLUSTER, group, resource, names), set())
            left = verbs - everywhere if place else verbs
            if left:
                yield Rule(
                    place=place,
                    group=group,
                    resource=resource,
                    names=names,
                    verbs=tuple(sorted(left, key=_order)),
                )


def rules_of(
    operator: Operator, *, namespace: str, uses: Uses | None = None
) -> list[Rule]:
    """What an operator needs that runs in ``namespace``.

    Errors: :class:`NotVisible` when the source does something to a kind that cannot be
    seen there and is not declared.
    """
    definitions = operator.controllers()
    seen = uses_of(definitions) if uses is None else uses
    if seen.opaque and not operator.needed:
        raise NotVisible(
            f"A handler of {operator.name} has no source that can be read; declare "
            "what it does with app.needs(KIND, VERB), and the rest is added."
        )
    rules = _Rules()
    for definition in definitions:
        _declared(rules, definition, seen, budget=operator.cache_budget is not None)
    for call in seen.calls:
        _called(rules, call, definitions, operator)
    everywhere = _places(definitions)
    for need in operator.needed:
        rules.add(
            (namespace,) if need.home else everywhere,
            need.kind,
            *need.verbs,
            subresource=need.subresource,
            names=need.names,
        )
    if operator.webhooks:
        _served(rules, operator, namespace)
    if operator.leader and any(each.leader for each in definitions):
        place, name = (namespace,), (operator.name,)
        rules.add(place, Lease, "create")
        rules.add(place, Lease, "get", "watch", "patch", names=name)
    return list(rules.rules())


def _served(rules: _Rules, operator: Operator, namespace: str) -> None:
    """What webhooks need: a Secret, their configurations, and CRDs to convert."""
    home, everywhere = (namespace,), (CLUSTER,)
    secret = (f"{operator.name}-webhooks",)
    rules.add(home, Secret, "create")
    rules.add(home, Secret, "list", "watch", "patch", names=secret)
    own = (configuration_name(operator.name, namespace),)
    for verb, kind in CONFIGURATIONS.items():
        if operator.webhooks.of(verb):
            rules.add(everywhere, kind, "create")
            rules.add(everywhere, kind, "list", "watch", "patch", names=own)
    for first, *_ in operator.webhooks.converted():
        name = (definition_name(first),)
        verbs = ("list", "watch", "patch")
        rules.add(everywhere, CustomResourceDefinition, *verbs, names=name)


def _declared(
    rules: _Rules, definition: Definition, uses: Uses, *, budget: bool
) -> None:
    kind, places = definition.kind, _place(definition.primary)
    for source in definition.sources:
        rules.add(_place(source), source.kind, "list", "watch")
        if source.scope.namespaces_where:
            rules.add((CLUSTER,), NAMESPACES, "list", "watch")
    keeps_keys = definition.primary.keep not in (None, "full", "slice")
    if _has_conditions(kind) or keeps_keys or budget:
        rules.add(places, kind, "get")
    if definition.finalizer:
        rules.add(places, kind, "patch")
    if hasattr(kind, "status") and (uses.status or uses.opaque):
        rules.add(places, kind, "patch", subresource="status")
    made = _made(definition, uses)
    for source in made:
        rules.add(_place(source), source.kind, "create", "patch")
    if made or _makes_others(definition, uses):
        # A reference that blocks the owner's deletion is a finalizer of a kind, and
        # some clusters ask for the permission to set one.
        rules.add(places, kind, "update", subresource="finalizers")
    if uses.events or uses.opaque:
        # Events of objects in no namespace are in default.
        about = places if kind.__resource__.namespaced else ("default",)
        rules.add(about, EVENTS, "create", "patch")


def _made(definition: Definition, uses: Uses) -> list[Source]:
    """The owned kinds that are applied: all, unless the source shows which."""
    applied = [each.kind for each in uses.calls if each.by == "ctx.apply"]
    if uses.opaque or None in applied:
        return list(definition.owns)
    return [each for each in definition.owns if each.kind in applied]


def _makes_others(definition: Definition, uses: Uses) -> bool:
    """Whether something is applied that is neither owned nor the object itself."""
    applied = {each.kind for each in uses.calls if each.by == "ctx.apply"}
    return bool(applied - {None, definition.kind})


def _called(
    rules: _Rules, call: Use, definitions: Sequence[Definition], operator: Operator
) -> None:
    kind = call.kind
    if kind is None:
        return _check_hidden(call, definitions, operator)
    if call.by == "ctx.apply" and any(kind is each.kind for each in definitions):
        # The object itself, which is there: nothing is made.
        call = msgspec.structs.replace(call, verbs=("patch",))
    sources = [
        source for each in definitions for source in each.sources if source.kind is kind
    ]
    places = [place for source in sources for place in _place(source)]
    rules.add(
        places or _places(definitions), kind, *call.verbs, subresource=call.subresource
    )


def _check_hidden(
    call: Use, definitions: Sequence[Definition], operator: Operator
) -> None:
    """A call about a kind that nobody can see is one of what is owned or declared."""
    if call.by == "ctx.apply" and any(each.owns for each in definitions):
        return
    declared = {verb for need in operator.needed for verb in need.verbs}
    if not declared & set(call.verbs):
        verbs = ", ".join(map(repr, call.verbs))
        raise NotVisible(
            f"{call.place}: which kind {call.by}(…) is about cannot be seen from the "
            f"source; declare it with app.needs(KIND, {verbs})."
        )


def _place(source: Source) -> tuple[str, ...]:
    return source.scope.namespaces or (CLUSTER,)


def _places(definitions: Sequence[Definition]) -> tuple[str, ...]:
    """Where an operator is at work: everywhere, unless all its scopes are narrower."""
    found = {place for each in definitions for place in _place(each.primary)}
    return (CLUSTER,) if CLUSTER in found else tuple(sorted(found))


def _has_conditions(kind: type[Resource]) -> bool:
    status = msgspec.structs.fields(kind)
    types = [each.type for each in status if each.name == "status"]
    return any(
        field.type is Conditions
        for each in types
        if isinstance(each, type) and issubclass(each, msgspec.Struct)
        for field in msgspec.structs.fields(each)
    )


def _order(verb: str) -> tuple[int, str]:
    return (VERBS.index(verb) if verb in VERBS else len(VERBS), verb)


def objects_of(rules: Iterable[Rule], *, name: str, namespace: str) -> list[Plain]:
    """A service account, and the roles and bindings that grant it the rules."""
    account = {"kind": "ServiceAccount", "name": name, "namespace": namespace}
    made: list[Plain] = [
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": name, "namespace": namespace},
        }
    ]
    places: dict[str, list[Plain]] = {}
    for rule in rules:
        places.setdefault(rule.place, []).append(rule.plain())
    for place, plain in places.items():
        metadata = {"name": name, **({"namespace": place} if place else {})}
        kind = "Role" if place else "ClusterRole"
        head = {"apiVersion": f"{GROUP}/v1"}
        made.append({**head, "kind": kind, "metadata": metadata, "rules": plain})
        made.append(
            {
                **head,
                "kind": f"{kind}Binding",
                "metadata": dict(metadata),
                "roleRef": {"apiGroup": GROUP, "kind": kind, "name": name},
                "subjects": [dict(account)],
            }
        )
    return made
