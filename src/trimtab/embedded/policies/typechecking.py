"""Type checking: whether what a policy says fits the kinds that it is for.

A policy that does not fit works all the same, as far as it goes. What was found is
written into its status, soon after the write that it follows from.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from trimtab.embedded.catalog import Catalog
from trimtab.embedded.expressions.checking import Scope
from trimtab.embedded.expressions.compiling import Program
from trimtab.embedded.expressions.complaints import ExpressionError
from trimtab.embedded.expressions.folding import InstantiationError
from trimtab.embedded.expressions.kinds import DYN
from trimtab.embedded.following import ObjectFollower
from trimtab.embedded.kinds import Kind, Plain
from trimtab.embedded.policies.environment import Environment
from trimtab.embedded.policies.judging import variables_of
from trimtab.embedded.policies.typing import typed
from trimtab.embedded.writes import APPLY_PATCH, Write

POLICIES: Final = "admissionregistration.k8s.io/validatingadmissionpolicies/"
MANAGER: Final = "validatingadmissionpolicy-status"
_MOST: Final = 10
"""How many kinds of one rule are looked at."""


class TypeChecking(ObjectFollower):
    """Which policies have to be checked."""

    prefix = POLICIES
    limit = 5

    def _judge(self, kind: Kind, policy: Plain) -> None:
        metadata, status = policy["metadata"], policy.get("status") or {}
        generation = metadata.get("generation", 0)
        if generation <= status.get("observedGeneration", 0):
            return
        found = list(warnings(policy, self._catalog, stamp=self._stamp()))
        body = {
            "apiVersion": kind.api_version,
            "kind": kind.kind,
            "metadata": {"name": metadata["name"]},
            "status": {
                "observedGeneration": generation,
                "typeChecking": {"expressionWarnings": found} if found else {},
            },
        }
        write = Write(
            kind=kind,
            name=metadata["name"],
            subresource="status",
            manager=MANAGER,
            force=True,
        )
        self._registry.patch(write, msgspec.json.encode(body), APPLY_PATCH)

    def _stamp(self) -> str:
        """What the names of types end with, so that nobody relies on them."""
        return str(self._now().microsecond * 1000)


def warnings(policy: Plain, catalog: Catalog, *, stamp: str) -> Iterator[Plain]:
    """What is wrong with each expression of a policy, and for which kinds."""
    spec = policy["spec"]
    scopes = [
        (_named(kind), _scope(spec, kind, catalog, stamp))
        for kind in _kinds(spec, catalog)
    ]
    for index, raw in enumerate(spec.get("validations") or ()):
        for field in ("expression", "messageExpression"):
            text = raw.get(field) or ""
            said = [
                f"{name}: {issues}\n"
                for name, scope in scopes
                if text and (issues := _issues(text, scope))
            ]
            if said:
                where = f"spec.validations[{index}].{field}"
                yield {"fieldRef": where, "warning": "\n".join(said)}


def _named(kind: Kind) -> str:
    return f"{kind.group}/{kind.version}, Kind={kind.kind}"


def _issues(text: str, scope: Scope) -> str:
    try:
        Program(text, scope)
    except ExpressionError as error:
        return str(error)
    except InstantiationError:
        pass  # its types fit
    return ""


def _scope(spec: Plain, kind: Kind, catalog: Catalog, stamp: str) -> Scope:
    root, structs = typed(kind.type, kind.kind + stamp)
    param, given = DYN, spec.get("paramKind")
    if given:
        found = catalog.by_kind(given["apiVersion"], given["kind"])
        if found is not None:
            param, more = typed(found.type, f"{found.kind}{stamp}0")
            structs |= more
    environment = Environment(
        params=bool(given), asking=False, object=root, param=param, structs=structs
    )
    variables_of(spec, environment)
    return environment.scope()


def _kinds(spec: Plain, catalog: Catalog) -> list[Kind]:
    """The kinds that a policy names, without those that it means by ``*``."""
    found: dict[str, Kind] = {}
    for rule in (spec.get("matchConstraints") or {}).get("resourceRules") or ():
        groups, versions = rule.get("apiGroups") or (), rule.get("apiVersions") or ()
        if any("*" in each for each in (*groups, *versions)):
            continue
        count = 0
        for group in sorted(groups):
            for version in sorted(versions):
                for plural in sorted(rule.get("resources") or ()):
                    kind = catalog.find(group, version, plural)
                    if kind is not None and count < _MOST:
                        found[_named(kind)] = kind
                        count += 1
        if count == _MOST:
            break
    return sorted(
        found.values(), key=lambda each: (each.group, each.version, each.kind)
    )
