"""Plugins: the two kinds of policies, in the order in which they are asked."""

from __future__ import annotations

from trimtab.embedded.catalog import Catalog
from trimtab.embedded.chain import Plugin
from trimtab.embedded.policies.mutating import MutatingPolicies
from trimtab.embedded.policies.validating import ValidatingPolicies
from trimtab.embedded.rbac.authorizer import Authorizer
from trimtab.embedded.store import Store


def policies(store: Store, catalog: Catalog, authorizer: Authorizer) -> list[Plugin]:
    """Those who ask the policies of a store."""
    return [
        MutatingPolicies(store, catalog=catalog, authorizer=authorizer),
        ValidatingPolicies(store, catalog=catalog, authorizer=authorizer),
    ]
