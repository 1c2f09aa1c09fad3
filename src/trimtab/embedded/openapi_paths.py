"""Paths of an OpenAPI document: what may be done to a resource, and with which words.

They follow from the table of resources and are as small as what reads them allows:
``kubectl explain`` finds a kind by its paths, and kubectl looks at the operation of a
patch for what it may send. Left out are the streams below pods, services and nodes
(``exec``, ``proxy``) and the paths of watches, which nobody looks for.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from trimtab.embedded.facts import Definitions, ServedResource, Subresource

JSON = dict[str, Any]

META = "io.k8s.apimachinery.pkg.apis.meta.v1."
KINDS = "x-kubernetes-group-version-kind"

PATCHES = (
    "application/apply-patch+yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
)
STRATEGIC = "application/strategic-merge-patch+json"

_LIST = {
    "allowWatchBookmarks": "boolean",
    "continue": "string",
    "fieldSelector": "string",
    "labelSelector": "string",
    "limit": "integer",
    "resourceVersion": "string",
    "resourceVersionMatch": "string",
    "sendInitialEvents": "boolean",
    "timeoutSeconds": "integer",
    "watch": "boolean",
}
_WRITE = {"dryRun": "string", "fieldManager": "string", "fieldValidation": "string"}
_DELETE = {
    "dryRun": "string",
    "gracePeriodSeconds": "integer",
    "orphanDependents": "boolean",
    "propagationPolicy": "string",
}
_PARAMETERS: dict[str, dict[str, str]] = {
    "list": _LIST,
    "post": _WRITE,
    "put": _WRITE,
    "patch": {**_WRITE, "force": "boolean"},
    "delete": _DELETE,
    "deletecollection": {**_LIST, **_DELETE},
}
# Verb, method and action of what is done to a collection and to one object.
_COLLECTION = (
    ("list", "get", "list"),
    ("create", "post", "post"),
    ("deletecollection", "delete", "deletecollection"),
)
_ITEM = (
    ("get", "get", "get"),
    ("update", "put", "put"),
    ("delete", "delete", "delete"),
    ("patch", "patch", "patch"),
)
_BELOW = (("create", "post", "post"), *_ITEM)


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """One method of one path."""

    method: str
    action: str
    kind: tuple[str, str, str]
    """Group, version and kind of what it is about."""
    takes: str = ""
    """The definition of the body."""
    consumes: tuple[str, ...] = ("*/*",)
    returns: str = ""
    path_parameters: tuple[str, ...] = ()


def operations(
    resource: ServedResource, *, definitions: Definitions
) -> Iterator[tuple[str, Operation]]:
    """Every path of a resource with each of its methods."""
    root = f"/apis/{resource.api_version}" if resource.group else "/api/v1"
    everywhere = f"{root}/{resource.plural}"
    within = ("namespace",) if resource.namespaced else ()
    collection = everywhere
    if resource.namespaced:
        collection = f"{root}/namespaces/{{namespace}}/{resource.plural}"
        if "list" in resource.verbs:
            yield everywhere, _operation(resource, "get", "list", ())
    for verb, method, action in _COLLECTION:
        if verb in resource.verbs:
            yield collection, _operation(resource, method, action, within)
    item, named = f"{collection}/{{name}}", ("name", *within)
    for verb, method, action in _ITEM:
        if verb in resource.verbs:
            yield item, _operation(resource, method, action, named)
    for below in resource.subresources:
        if below.kind.endswith("Options"):
            continue
        about = _about(resource, below, definitions)
        for verb, method, action in _BELOW:
            if verb in below.verbs:
                operation = _operation(about, method, action, named)
                yield f"{item}/{below.name}", operation


def _about(
    resource: ServedResource, below: Subresource, definitions: Definitions
) -> ServedResource:
    """A resource as its subresource speaks of it: the kind is that of the body.

    Of a custom kind even ``scale`` is said to be about the kind itself.
    """
    definition = definitions.name(below.group, below.version, below.kind)
    if resource.custom:
        definition = definition or resource.definition
        return msgspec.structs.replace(resource, definition=definition)
    return msgspec.structs.replace(
        resource,
        group=below.group,
        version=below.version,
        kind=below.kind,
        definition=definition,
    )


def _operation(
    resource: ServedResource, method: str, action: str, within: tuple[str, ...]
) -> Operation:
    takes, returns = resource.definition, resource.definition
    consumes: tuple[str, ...] = ("*/*",)
    if action == "patch":
        takes = f"{META}Patch"
        consumes = PATCHES if resource.custom else (*PATCHES, STRATEGIC)
    elif action in ("delete", "deletecollection"):
        takes, returns = f"{META}DeleteOptions", f"{META}Status"
    elif action == "list":
        takes, returns = "", list_name(resource)
    elif action == "get":
        takes = ""
    return Operation(
        method=method,
        action=action,
        kind=(resource.group, resource.version, resource.kind),
        takes=takes,
        consumes=consumes,
        returns=returns,
        path_parameters=within,
    )


def list_name(resource: ServedResource) -> str:
    return resource.definition.removesuffix(resource.kind) + resource.list_kind


def kind_of(group: str, version: str, kind: str) -> JSON:
    return {"group": group, "kind": kind, "version": version}


def third(operation: Operation) -> JSON:
    parameters: list[JSON] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in operation.path_parameters
    ]
    parameters += [
        {"name": name, "in": "query", "schema": {"type": kind}}
        for name, kind in _PARAMETERS.get(operation.action, {}).items()
    ]
    answer: JSON = {"description": "OK"}
    if operation.returns:
        schema = {"$ref": f"#/components/schemas/{operation.returns}"}
        answer["content"] = {"application/json": {"schema": schema}}
    rendered: JSON = {
        "parameters": parameters,
        "responses": {"200": answer},
        "x-kubernetes-action": operation.action,
        KINDS: kind_of(*operation.kind),
    }
    if operation.takes:
        body = {"schema": {"$ref": f"#/components/schemas/{operation.takes}"}}
        content = dict.fromkeys(operation.consumes, body)
        rendered["requestBody"] = {"content": content}
    return rendered


def second(operation: Operation) -> JSON:
    parameters: list[JSON] = [
        {"name": name, "in": "path", "required": True, "type": "string"}
        for name in operation.path_parameters
    ]
    parameters += [
        {"name": name, "in": "query", "type": kind}
        for name, kind in _PARAMETERS.get(operation.action, {}).items()
    ]
    if operation.takes:
        schema = {"$ref": f"#/definitions/{operation.takes}"}
        parameters.append({"name": "body", "in": "body", "schema": schema})
    answer: JSON = {"description": "OK"}
    if operation.returns:
        answer["schema"] = {"$ref": f"#/definitions/{operation.returns}"}
    return {
        "consumes": list(operation.consumes),
        "produces": ["application/json", "application/yaml"],
        "parameters": parameters,
        "responses": {"200": answer},
        "x-kubernetes-action": operation.action,
        KINDS: kind_of(*operation.kind),
    }
