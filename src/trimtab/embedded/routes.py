"""Routes: which methods a path takes, and how one is refused that is not taken.

The real server routes built-in kinds, and documents about them, by a table: what is not
in it is refused before anybody looks at an object, with empty details. Custom kinds,
and documents about several groups, each have one function for all methods.
"""

from __future__ import annotations

import msgspec

from trimtab.embedded import bodies, documents, status
from trimtab.embedded.bodies import Unrouted
from trimtab.embedded.catalog import Catalog
from trimtab.embedded.kinds import Kind
from trimtab.embedded.patching import check_media
from trimtab.embedded.requests import ApiRequest, Target
from trimtab.embedded.status import ApiProblem

NOT_ALLOWED = "the server does not allow this method on the requested resource"
VERBS = {
    "GET": "get",
    "POST": "create",
    "PUT": "update",
    "PATCH": "patch",
    "DELETE": "delete",
}
NAMED = frozenset({"get", "update", "patch", "delete"})


def not_found() -> ApiProblem:
    """That nothing is at a path which the table would know."""
    return Unrouted(404, "NotFound", str(status.no_such_path()))


def not_allowed() -> ApiProblem:
    return Unrouted(405, "MethodNotAllowed", NOT_ALLOWED)


def is_tabled(catalog: Catalog, group: str) -> bool:
    """Whether the table knows a group."""
    return any(each.group == group for each in catalog.resources()) and not any(
        each.crd["spec"]["group"] == group for each in catalog.custom_kinds()
    )


def routed(
    request: ApiRequest, target: Target, kind: Kind
) -> tuple[ApiRequest, Target]:
    """A request as it is served, if the kind takes its method there.

    Errors: ``ApiProblem`` (404, 405, or 400 for an object without a name).
    """
    if kind.custom is not None:
        if request.method == "HEAD":
            request = msgspec.structs.replace(request, method="GET")
        everywhere = kind.namespaced and not target.namespace
        if everywhere and (request.method != "GET" or target.name):
            raise status.no_such_path()
        if target.namespace and not kind.namespaced:
            raise status.no_such_path()
        return request, _custom(request, target, kind)
    if target.namespace and not kind.namespaced:
        raise not_found()
    if kind.namespaced and not target.namespace:
        _check_everywhere(request, target)
    if target.subresource:
        _check_subresource(request, target, kind)
    elif kind.resource.verbs == ("create",):
        if request.method != "POST":
            raise not_allowed()
    else:
        _check_verb(request, target, kind)
    _check_patch(request, kind)
    return request, target


def _custom(request: ApiRequest, target: Target, kind: Kind) -> Target:
    if request.method not in VERBS:
        raise status.method_not_allowed(kind.about, "")
    if target.subresource:
        _check_custom_subresource(request, target, kind)
    elif request.method == "POST":
        return msgspec.structs.replace(target, name="")
    _check_patch(request, kind)
    if not target.name and request.method in ("PUT", "PATCH"):
        raise status.bad_request("name must be provided")
    return target


def _check_subresource(request: ApiRequest, target: Target, kind: Kind) -> None:
    served = kind.resource.subresource(target.subresource)
    if served is None:
        raise not_found()
    if VERBS.get(request.method, "") not in served.verbs:
        raise not_allowed()


def _check_custom_subresource(request: ApiRequest, target: Target, kind: Kind) -> None:
    served = kind.resource.subresource(target.subresource)
    if served is None:
        raise status.not_found(kind.about, target.name)
    verb = VERBS[request.method]
    if verb not in served.verbs:
        raise status.method_not_allowed(kind.about, verb)


def _check_patch(request: ApiRequest, kind: Kind) -> None:
    if request.method == "PATCH":
        media = request.headers.get("content-type", "").split(";")[0].strip()
        check_media(kind, media)


def _check_everywhere(request: ApiRequest, target: Target) -> None:
    """Objects of all namespaces together can be listed and watched, no more."""
    if target.name:
        raise not_found()
    if request.method != "GET":
        raise not_allowed()


def _check_verb(request: ApiRequest, target: Target, kind: Kind) -> None:
    verb = VERBS.get(request.method, "")
    if not target.name:
        verb = {"get": "list", "delete": "deletecollection"}.get(verb, verb)
    if verb not in kind.resource.verbs or bool(target.name) != (verb in NAMED):
        raise not_allowed()


def check_document(request: ApiRequest, catalog: Catalog, *, found: bool) -> None:
    """That a document may be asked for like this, and, last, that there is one."""
    parts = request.path.strip("/").split("/")
    accept = request.headers.get("accept", "")
    if "//" in request.path:
        raise status.no_such_path()
    types = documents.ALONE.get(f"/{'/'.join(parts)}", bodies.TYPES)
    tabled = parts[0] == "api" or types is not bodies.TYPES
    if parts[0] == "apis" and len(parts) > 2:
        tabled = is_tabled(catalog, parts[1])
    if not tabled:
        if not found:
            raise status.no_such_path()
        if parts[0] == "apis" and "as=APIGroupDiscoveryList" not in accept:
            bodies.form_of(accept, custom=True)
        return
    if not found:
        raise not_found()
    if request.method != "GET":
        raise not_allowed()
    bodies.check_route(accept, types)
