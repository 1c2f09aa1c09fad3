"""Validating policies: expressions that must hold, or a write is refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from trimtab.embedded import status
from trimtab.embedded.catalog import Catalog
from trimtab.embedded.chain import Attributes
from trimtab.embedded.policies.dispatching import Dispatcher, Failure, name_of
from trimtab.embedded.policies.index import Binding, Index, Policy
from trimtab.embedded.policies.judging import Denial, Rules, judged, rules_of
from trimtab.embedded.policies.matching import is_exempt
from trimtab.embedded.rbac.authorizer import Authorizer
from trimtab.embedded.status import ApiProblem
from trimtab.embedded.store import Store

CODES: Final = {
    "Forbidden": 403,
    "Unauthorized": 401,
    "RequestEntityTooLarge": 413,
    "Invalid": 422,
}


class ValidatingPolicies:
    """The plugin that asks the validating policies of a store."""

    def __init__(
        self, store: Store, *, catalog: Catalog, authorizer: Authorizer
    ) -> None:
        self._index: Index[Rules] = Index(store, kind="validating", compile=rules_of)
        self._dispatcher = Dispatcher(store, catalog=catalog, authorizer=authorizer)

    @property
    def active(self) -> bool:
        return self._index.active

    def mutate(self, attributes: Attributes) -> None:
        """They change nothing."""

    def validate(self, attributes: Attributes) -> None:
        """Refuse what a policy denies, and warn of what its binding only warns of."""
        if is_exempt(attributes):
            return
        denied: list[tuple[Policy[Rules], Binding | None, Denial]] = []
        for policy in self._index.used():
            for binding, denial in self._denials(policy, attributes):
                denied.append((policy, binding, denial))
        if denied:
            raise _refusal(attributes, *denied[0])

    def _denials(
        self, policy: Policy[Rules], attributes: Attributes
    ) -> Iterator[tuple[Binding | None, Denial]]:
        """What a policy denies, by binding."""
        for call in self._dispatcher.calls(policy, attributes):
            if isinstance(call, Failure):
                if policy.fails:
                    yield call.binding, Denial(message=call.message)
                continue
            values = self._dispatcher.values(call, attributes)
            namespace = self._dispatcher.namespace(attributes)
            for denial in judged(policy.rules, values, namespace, fails=policy.fails):
                if _denies(policy, call.binding, denial, attributes):
                    yield call.binding, denial


def _denies(
    policy: Policy[Rules], binding: Binding, denial: Denial, attributes: Attributes
) -> bool:
    """Whether a denial is one here; a warning is given where only that is wanted."""
    if denial.audited:
        return True
    if "Warn" in binding.actions:
        attributes.warnings.append(
            f"Validation failed for ValidatingAdmissionPolicy '{policy.name}' with "
            f"binding '{binding.name}': {denial.message}"
        )
    return "Deny" in binding.actions


def _refusal(
    attributes: Attributes,
    policy: Policy[Rules],
    binding: Binding | None,
    denial: Denial,
) -> ApiProblem:
    bound = f" with binding '{binding.name}'" if binding is not None else ""
    text = (
        f"ValidatingAdmissionPolicy '{policy.name}'{bound} denied request: "
        f"{denial.message}"
    )
    problem = status.forbidden(attributes.kind.about, name_of(attributes), text)
    reason = denial.reason or "Invalid"
    return ApiProblem(
        CODES.get(reason, 422),
        reason,
        problem.message,
        about=attributes.kind.about,
        name=name_of(attributes),
        causes=[{"message": text}],
    )
