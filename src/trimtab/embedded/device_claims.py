"""Claims of devices: who may have them all to themselves, and who may hand them out."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import msgspec

from trimtab.embedded import status
from trimtab.embedded.kinds import Kind, Plain
from trimtab.embedded.metadata import metadata_of
from trimtab.embedded.rbac.attributes import Attributes, attributes_of
from trimtab.embedded.rbac.authorizer import Authorizer, refusal
from trimtab.embedded.rbac.escalation import Guard
from trimtab.embedded.requests import ApiRequest, User
from trimtab.embedded.status import FieldProblem
from trimtab.embedded.store import Store

GROUP = "resource.k8s.io"
CLAIMS = f"{GROUP}/resourceclaims/"
TEMPLATES = f"{GROUP}/resourceclaimtemplates/"
NAMESPACES = "core/namespaces/"
LABEL = "resource.kubernetes.io/admin-access"
NODE = "authentication.kubernetes.io/node-name"
ACCOUNT = "system:serviceaccount:"


class DeviceClaims:
    """Guards the writes of claims of devices, and of templates of them."""

    def __init__(self, store: Store, authorizer: Authorizer) -> None:
        self._store = store
        self._authorizer = authorizer

    def guard(self, request: ApiRequest, kind: Kind, subresource: str) -> Guard | None:
        """What is asked before a claim is stored; None for every other kind."""
        if kind.prefix not in (CLAIMS, TEMPLATES):
            return None
        return partial(self._check, request, kind, subresource)

    def _check(
        self,
        request: ApiRequest,
        kind: Kind,
        subresource: str,
        obj: Plain,
        old: Plain | None,
    ) -> None:
        problems: list[FieldProblem] = []
        if old is None:
            spec = obj["spec"] if kind.prefix == CLAIMS else obj["spec"]["spec"]
            asked = (spec.get("devices") or {}).get("requests") or ()
            wanted = [each.get("exactly") or {} for each in asked]
            problems += self._admin(obj, "spec.devices.requests", wanted)
        elif subresource == "status":
            new, before = obj.get("status") or {}, old.get("status") or {}
            if not any(each.get("adminAccess") for each in _results(before)):
                where = "status.allocation.devices.results"
                problems += self._admin(old, where, _results(new))
            problems += self._binding(request, new, before)
            if new.get("allocation") is not None:
                problems += self._devices(request, new, before)
        if problems:
            name = metadata_of(obj).get("name") or ""
            raise status.invalid_object(kind.named, name, problems)

    def _admin(
        self, obj: Plain, path: str, wanted: Iterable[Plain]
    ) -> list[FieldProblem]:
        """Access to devices that others use needs a namespace that is meant for it."""
        for index, each in enumerate(wanted):
            if not each.get("adminAccess"):
                continue
            row = self._store.get(NAMESPACES + metadata_of(obj)["namespace"])
            place = {} if row is None else msgspec.json.decode(row.value)
            labels = (place.get("metadata") or {}).get("labels") or {}
            if labels.get(LABEL) == "true":
                return []
            detail = (
                f"admin access to devices requires the `{LABEL}: true` label on the "
                "containing namespace"
            )
            return [status.forbidden_value(f"{path}[{index}].adminAccess", detail)]
        return []

    def _binding(
        self, request: ApiRequest, new: Plain, old: Plain
    ) -> list[FieldProblem]:
        fields = ("allocation", "reservedFor")
        if all(new.get(field) == old.get(field) for field in fields):
            return []
        verb = attributes_of(request).verb
        asked = Attributes(
            verb=verb, group=GROUP, resource="resourceclaims", subresource="binding"
        )
        problem = self._refusal(request.user, (asked,))
        if not problem:
            return []
        detail = (
            "changing status.allocation or status.reservedFor requires "
            f'resource="resourceclaims/binding", verb="{verb}" permission: {problem}'
        )
        return [status.forbidden_value("status.allocation", detail)]

    def _devices(
        self, request: ApiRequest, new: Plain, old: Plain
    ) -> list[FieldProblem]:
        """Each driver speaks for its own devices."""
        base, before = attributes_of(request), old.get("devices") or []
        after = new.get("devices") or []
        changed = [each for each in after if each not in before]
        changed += [each for each in before if each not in after]
        verbs = [f"arbitrary-node:{base.verb}"]
        if _is_on_node(request.user, new["allocation"]):
            verbs.insert(0, f"associated-node:{base.verb}")
        found = []
        for driver in sorted({each["driver"] for each in changed}):
            asked = [
                msgspec.structs.replace(
                    base, verb=verb, subresource="driver", name=driver
                )
                for verb in verbs
            ]
            if problem := self._refusal(request.user, asked):
                detail = (
                    'changing status.devices requires resource="resourceclaims/driver"'
                    f', verb="[{" ".join(verbs)}]" permission: {problem}'
                )
                found.append(status.forbidden_value("status.devices", detail))
        return found

    def _refusal(self, user: User, asked: Iterable[Attributes]) -> str:
        """Why somebody may do none of these; empty if they may do one."""
        first = ""
        for each in asked:
            decision = self._authorizer.decide(user, each)
            if decision.allowed:
                return ""
            first = first or refusal(user, each, decision.reason).message
        return first


def _results(state: Plain) -> list[Plain]:
    allocation = state.get("allocation") or {}
    return (allocation.get("devices") or {}).get("results") or []


def _is_on_node(user: User, allocation: Plain) -> bool:
    """Whether somebody is an account on the very node that a claim is for."""
    terms = (allocation.get("nodeSelector") or {}).get("nodeSelectorTerms") or ()
    fields = [each.get("matchFields") or () for each in terms]
    names = [
        (each.get("values") or [""])[0]
        for each in (fields[0] if len(fields) == 1 else ())
        if each.get("key") == "metadata.name"
    ]
    nodes = tuple(user.extra.get(NODE, ()))
    return user.name.startswith(ACCOUNT) and nodes == tuple(names) != ()
