"""Impersonation: acting as somebody else, as far as one may.

There are several ways to be allowed it. The narrow ones say whom somebody may be and
what they may do as them; the wide one, the verb ``impersonate``, only says whom. They
are tried from the narrowest on, and a refusal tells of the first that applied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from urllib.parse import unquote

import msgspec

from trimtab.api.names import InvalidName, check_label, check_subdomain
from trimtab.embedded import status
from trimtab.embedded.gotext import quoted
from trimtab.embedded.rbac.attributes import Attributes, attributes_of
from trimtab.embedded.rbac.authorizer import MASTERS, Authorizer, refusal
from trimtab.embedded.rbac.index import SERVICE_ACCOUNT
from trimtab.embedded.requests import ApiRequest, User
from trimtab.embedded.status import ApiProblem

USER, UID, GROUP = "impersonate-user", "impersonate-uid", "impersonate-group"
EXTRA = "impersonate-extra-"
NODE = "system:node:"
NODES = "system:nodes"
NODE_NAME = "authentication.kubernetes.io/node-name"
ANONYMOUS = "system:anonymous"
AUTHENTICATED, UNAUTHENTICATED = "system:authenticated", "system:unauthenticated"
API_GROUP = "authentication.k8s.io"
MANY = 4
"""For so many groups or extra values somebody may have all of them at once."""

Applies = Callable[[User, User], bool]


class Impersonation:
    """Finds out who a request may be from."""

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    def become(self, request: ApiRequest) -> ApiRequest:
        """The request of the user that it wants to be from.

        Errors: 400 if it names something but no user, 403 if it may not.
        """
        wanted = wanted_user(request.impersonation)
        if wanted is None:
            return request
        user = self._impersonated(request, wanted)
        return msgspec.structs.replace(request, user=user, impersonation=())

    def _impersonated(self, request: ApiRequest, wanted: User) -> User:
        requestor, first = request.user, None
        for mode, applies in MODES:
            if applies(wanted, requestor):
                try:
                    return self._within(mode, request, wanted)
                except ApiProblem as problem:
                    first = first or problem
        try:
            self._demand_all(requestor, _wide(wanted))
        except ApiProblem as problem:
            raise first or problem from None
        return _grouped(wanted)

    def _within(self, mode: str, request: ApiRequest, wanted: User) -> User:
        """Who somebody is by one of the narrow ways."""
        asked = attributes_of(request)
        verb = f"impersonate-on:{mode}:{asked.verb}"
        asked = msgspec.structs.replace(asked, verb=verb)
        self._authorizer.demand(request.user, asked)
        self._demand_all(request.user, self._narrow(mode, request.user, wanted))
        return _grouped(wanted, node=mode.endswith("-node"))

    def _demand_all(self, requestor: User, asked: Iterable[Attributes]) -> None:
        for each in asked:
            self._authorizer.demand(requestor, each)

    def _narrow(self, mode: str, requestor: User, wanted: User) -> Iterator[Attributes]:
        """What somebody must be allowed to be somebody else in one way."""
        verb = f"impersonate:{mode}"
        yield _name_asked(verb, wanted, group=API_GROUP, mode=mode)
        if wanted.uid:
            yield _asked(verb, "uids", wanted.uid)
        groups = _asked(verb, "groups")
        if "" in wanted.groups:
            text = "impersonating the empty string group is not allowed"
            raise refusal(requestor, groups, text)
        if MASTERS in wanted.groups:
            text = "impersonating the system:masters group is not allowed"
            raise refusal(requestor, _asked(verb, "groups", MASTERS), text)
        if not self._may_all(requestor, _asked(verb, "groups", "*"), wanted.groups):
            yield from (_asked(verb, "groups", each) for each in wanted.groups)
        complaint = _extra_complaint(wanted.extra)
        if complaint:
            raise refusal(requestor, _asked(verb, "userextras"), complaint)
        extra = list(_extra_asked(verb, wanted))
        every = _asked(verb, "userextras", "*", subresource="*")
        if not self._may_all(requestor, every, extra):
            yield from extra

    def _may_all(
        self, requestor: User, every: Attributes, wanted: Iterable[object]
    ) -> bool:
        many = len(list(wanted)) >= MANY
        return many and self._authorizer.may(requestor, every)


def wanted_user(headers: Iterable[tuple[str, str]]) -> User | None:
    """The user that headers ask for; None if they ask for none."""
    name = uid = ""
    groups: list[str] = []
    extra: dict[str, list[str]] = {}
    for key, value in headers:
        if key == USER:
            name = name or value
        elif key == UID:
            uid = uid or value
        elif key == GROUP:
            groups.append(value)
        elif key.startswith(EXTRA):
            extra.setdefault(unquote(key.removeprefix(EXTRA)), []).append(value)
    found = {key: tuple(values) for key, values in extra.items()}
    wanted = User(name, tuple(groups), uid, found)
    if name:
        return wanted
    if uid or groups or extra:
        raise status.bad_request(
            f"requested {_printed(wanted)} without impersonating a user name"
        )
    return None


def _wide(wanted: User) -> Iterator[Attributes]:
    """What somebody must be allowed to be somebody else in whatever they do."""
    verb = "impersonate"
    yield _name_asked(verb, wanted, group="")
    if wanted.uid:
        yield _asked(verb, "uids", wanted.uid)
    for group in wanted.groups:
        yield _asked(verb, "groups", group, group="")
    yield from _extra_asked(verb, wanted)


def _name_asked(verb: str, wanted: User, *, group: str, mode: str = "") -> Attributes:
    account = _account(wanted.name)
    if account is not None:
        namespace, name = account
        found = _asked(verb, "serviceaccounts", name, group=group)
        return msgspec.structs.replace(found, namespace=namespace)
    node = _node(wanted.name) if mode else ""
    if node:
        # Whoever may be the node that it runs on may be so on any node.
        named = "*" if mode == "associated-node" else node
        return _asked(verb, "nodes", named, group=group)
    return _asked(verb, "users", wanted.name, group=group)


def _asked(
    verb: str,
    resource: str,
    name: str = "",
    *,
    group: str = API_GROUP,
    subresource: str = "",
) -> Attributes:
    return Attributes(
        verb=verb, group=group, resource=resource, subresource=subresource, name=name
    )


def _extra_asked(verb: str, wanted: User) -> Iterator[Attributes]:
    for key, values in wanted.extra.items():
        for value in values:
            yield _asked(verb, "userextras", value, subresource=key)


def _grouped(wanted: User, *, node: bool = False) -> User:
    """The user with the groups that one of that name always has."""
    groups = (NODES,) if node else wanted.groups
    account = _account(wanted.name)
    if account is not None and not groups:
        everywhere = "system:serviceaccounts"
        groups = (everywhere, f"{everywhere}:{account[0]}")
    common = UNAUTHENTICATED if wanted.name == ANONYMOUS else AUTHENTICATED
    if common not in groups and UNAUTHENTICATED not in groups:
        groups = (*groups, common)
    return msgspec.structs.replace(wanted, groups=groups)


def _extra_complaint(extra: Mapping[str, tuple[str, ...]]) -> str:
    """What is wrong with extra values, where it matters; empty if nothing is."""
    for key, values in extra.items():
        if not key:
            return "impersonating the empty string key in extra is not allowed"
        host, _, path = key.partition("/")
        if not host or not path:
            detail = 'must be a domain-prefixed path (such as "acme.io/foo")'
            return (
                "impersonating an invalid key in extra is not allowed: extra.key: "
                f"Invalid value: {quoted(key)}: {detail}"
            )
        if key != key.lower():
            text = "impersonating a non-lowercase key in extra is not allowed"
            return f"{text}: {quoted(key)}"
        if "" in values:
            return "impersonating the empty string value in extra is not allowed"
    return ""


def _account(name: str) -> tuple[str, str] | None:
    """Namespace and name of the service account that a user is."""
    if not name.startswith(SERVICE_ACCOUNT):
        return None
    parts = name.removeprefix(SERVICE_ACCOUNT).split(":")
    if len(parts) != 2:
        return None
    namespace, account = parts
    valid = _passes(check_label, namespace) and _passes(check_subdomain, account)
    return (namespace, account) if valid else None


def _node(name: str) -> str:
    """The name of the node that a user is; empty if it is none."""
    node = name.removeprefix(NODE)
    return node if node != name and _passes(check_subdomain, node) else ""


def _passes(check: Callable[[str], object], text: str) -> bool:
    try:
        check(text)
    except InvalidName:
        return False
    return True


def _only_named(wanted: User) -> bool:
    return not (wanted.uid or wanted.groups or wanted.extra)


def _is_own_node(wanted: User, requestor: User) -> bool:
    where = requestor.extra.get(NODE_NAME, ())
    is_node = _is_any_node(wanted, requestor) and _account(requestor.name) is not None
    return is_node and tuple(where) == (_node(wanted.name),)


def _is_any_node(wanted: User, requestor: User) -> bool:
    return _only_named(wanted) and bool(_node(wanted.name))


def _is_account(wanted: User, requestor: User) -> bool:
    return _only_named(wanted) and _account(wanted.name) is not None


def _is_other(wanted: User, requestor: User) -> bool:
    return not _node(wanted.name) and _account(wanted.name) is None


MODES: tuple[tuple[str, Applies], ...] = (
    ("associated-node", _is_own_node),
    ("arbitrary-node", _is_any_node),
    ("serviceaccount", _is_account),
    ("user-info", _is_other),
)


def _printed(user: User) -> str:
    """A user as Go prints its struct."""
    groups = "[]string(nil)"
    if user.groups:
        groups = _strings(user.groups)
    extra = "map[string][]string(nil)"
    if user.extra:
        pairs = sorted(user.extra.items())
        told = ", ".join(f"{quoted(k)}:{_strings(v)}" for k, v in pairs)
        extra = f"map[string][]string{{{told}}}"
    return (
        f"&user.DefaultInfo{{Name:{quoted(user.name)}, UID:{quoted(user.uid)}, "
        f"Groups:{groups}, Extra:{extra}}}"
    )


def _strings(texts: Iterable[str]) -> str:
    return "[]string{" + ", ".join(map(quoted, texts)) + "}"
