"""OpenAPI: the documents that tell clients what objects look like.

Types of built-in kinds are published as they were recorded, without prose; those of
custom kinds as their CRD has them; the paths follow from the table of resources.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from trimtab.embedded import openapi_paths, openapi_schemas
from trimtab.embedded.discovery import definition_name
from trimtab.embedded.facts import Definitions, ServedResource
from trimtab.embedded.openapi_paths import Operation, list_name
from trimtab.embedded.openapi_schemas import Custom as Custom

JSON = dict[str, Any]

INFO = {"title": "Kubernetes", "version": "1.36"}


def custom_schemas(crd: Mapping[str, Any]) -> dict[str, Custom]:
    """What a CRD says of each version that it serves, by the name of its definition."""
    spec = crd["spec"]
    return {
        definition_name(spec["group"], version["name"], spec["names"]["kind"]): Custom(
            schema=(version.get("schema") or {}).get("openAPIV3Schema"),
            selectable=tuple(
                field["jsonPath"].removeprefix(".")
                for field in version.get("selectableFields") or ()
            ),
        )
        for version in spec["versions"]
        if version["served"]
    }


class OpenApi:
    """The documents of one table of resources.

    Assumptions: the table and what the CRDs say do not change; when they do,
    :meth:`changed` makes the next one.
    """

    def __init__(
        self,
        resources: Sequence[ServedResource],
        *,
        definitions: Definitions,
        custom: Mapping[str, Custom] | None = None,
    ) -> None:
        self._resources = tuple(resources)
        self._definitions = definitions
        self._custom = dict(custom or {})
        self._hashes: dict[object, str] = {}

    def changed(
        self, resources: Sequence[ServedResource], *, custom: Mapping[str, Custom]
    ) -> OpenApi:
        """The documents of another table; what did not change is not made again."""
        other = OpenApi(resources, definitions=self._definitions, custom=custom)
        kept = {other._key(*place) for place in other._places()}
        other._hashes = {key: told for key, told in self._hashes.items() if key in kept}
        return other

    def v3_index(self) -> JSON:
        """``/openapi/v3``: where each document is, with a hash of its content."""
        paths = {}
        for group, version in sorted(self._places()):
            url = self.v3_url(group, version)
            paths[_place(group, version)] = {"serverRelativeURL": url}
        return {"paths": paths}

    def v3_url(self, group: str, version: str) -> str:
        """Where a document is as long as its content is what it is now."""
        hash = self._hash(group, version)
        return f"/openapi/v3/{_place(group, version)}?hash={hash}"

    def v3_hash(self, group: str, version: str) -> str:
        """The hash of a document's content; empty if there is no such version."""
        there = (group, version) in self._places()
        return self._hash(group, version) if there else ""

    def v3(self, group: str, version: str) -> JSON | None:
        """``/openapi/v3/apis/GROUP/VERSION``; None if there is no such version."""
        found = [
            each
            for each in self._resources
            if (each.group, each.version) == (group, version)
        ]
        if not found:
            return None
        paths, roots = self._paths(found, openapi_paths.third)
        schemas = self._schemas(roots, second=False)
        return {
            "openapi": "3.0.0",
            "info": INFO,
            "paths": paths,
            "components": {"schemas": schemas},
        }

    def v2(self) -> JSON:
        """``/openapi/v2``: everything in one document."""
        paths, roots = self._paths(self._resources, openapi_paths.second)
        return {
            "swagger": "2.0",
            "info": INFO,
            "paths": paths,
            "definitions": self._schemas(roots, second=True),
        }

    def _places(self) -> dict[tuple[str, str], None]:
        return dict.fromkeys((each.group, each.version) for each in self._resources)

    def _key(self, group: str, version: str) -> object:
        """All that the document is made of."""
        return tuple(
            (each, msgspec.json.encode(self._custom.get(each.definition)))
            for each in self._resources
            if (each.group, each.version) == (group, version)
        )

    def _hash(self, group: str, version: str) -> str:
        key = self._key(group, version)
        if key not in self._hashes:
            content = msgspec.json.encode(self.v3(group, version), order="sorted")
            self._hashes[key] = hashlib.sha512(content).hexdigest().upper()
        return self._hashes[key]

    def _paths(
        self,
        resources: Iterable[ServedResource],
        render: Callable[[Operation], JSON],
    ) -> tuple[JSON, list[str]]:
        """The paths, and the definitions that they mention."""
        paths: JSON = {}
        roots: dict[str, None] = {}
        for resource in resources:
            told = openapi_paths.operations(resource, definitions=self._definitions)
            for path, operation in told:
                paths.setdefault(path, {})[operation.method] = render(operation)
                roots[operation.takes] = roots[operation.returns] = None
        return dict(sorted(paths.items())), list(filter(None, roots))

    def _schemas(self, roots: list[str], *, second: bool) -> JSON:
        """The schemas of some definitions and of all that they are made of."""
        schemas: JSON = {}
        custom = self._custom_schemas(second=second)
        waiting = list(roots)
        while waiting:
            name = waiting.pop()
            if name not in schemas:
                schema = custom.get(name) or openapi_schemas.builtin_schema(
                    name, definitions=self._definitions, second=second
                )
                schemas[name] = openapi_schemas.linked(
                    schema, second=second, found=waiting
                )
        return dict(sorted(schemas.items()))

    def _custom_schemas(self, *, second: bool) -> JSON:
        """The schemas of custom kinds and of their lists."""
        found: JSON = {}
        for each in self._resources:
            if each.custom:
                said = self._custom.get(each.definition, Custom())
                found[each.definition] = openapi_schemas.custom_schema(
                    each, said, second=second
                )
                found[list_name(each)] = openapi_schemas.custom_list(each, said)
        return found


def _place(group: str, version: str) -> str:
    return f"apis/{group}/{version}" if group else f"api/{version}"
