"""Guards: rules about who writes an object, beside those about the object itself."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import partial

from trimtab.embedded.catalog import Catalog
from trimtab.embedded.certificate_requests import CertificateRequests
from trimtab.embedded.device_claims import DeviceClaims
from trimtab.embedded.kinds import Plain
from trimtab.embedded.podsecurity.plugin import PodSecurity
from trimtab.embedded.policies.access import ParamAccess
from trimtab.embedded.rbac.authorizer import Authorizer
from trimtab.embedded.rbac.escalation import Escalation, Guard
from trimtab.embedded.requests import ApiRequest
from trimtab.embedded.store import Store
from trimtab.embedded.writes import Write


class Guards:
    """Finds those that a request has to pass."""

    def __init__(
        self,
        store: Store,
        authorizer: Authorizer,
        *,
        catalog: Catalog,
        security: PodSecurity,
        now: Callable[[], datetime],
    ) -> None:
        self._security = security
        self._escalation = Escalation(authorizer)
        self._certificates = CertificateRequests(authorizer, now=now)
        self._claims = DeviceClaims(store, authorizer)
        self._params = ParamAccess(store, catalog=catalog, authorizer=authorizer)

    def of(self, request: ApiRequest, write: Write) -> Guard | None:
        """What has to be asked before a request's object is stored; None if nothing."""
        kind, part = write.kind, write.subresource
        first = self._escalation.guard(request, kind, write.namespace)
        second = self._certificates.guard(kind, request.user, part)
        second = second or self._claims.guard(request, kind, part)
        second = second or self._security.guard(write)
        second = second or self._params.guard(request.user, write)
        if first is None or second is None:
            return first or second
        return partial(_both, first, second)


def _both(first: Guard, second: Guard, obj: Plain, old: Plain | None) -> None:
    first(obj, old)
    second(obj, old)
