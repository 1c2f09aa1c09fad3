"""Records what fields the built-in kinds have, as a real API server tells it.

The output is a compact list of facts that the tests hold the slices of
``trimtab.kinds`` against: for each kind its plural and scope, and for each type that
the kind is made of, the name and type of every field. Types are written as ``string``,
``integer``, ``boolean``, ``time``, ``microtime``, ``bytes``, ``quantity``,
``int-or-string``, ``any``, ``[T]``, ``{T}``, or the name of another type; a ``?``
follows where the server may write null.

Names and types come from the server's OpenAPI v3 documents, read by kubectl from the
current context. What may be null no schema tells: it follows from the Go types, which
are read from the source of the module k8s.io/api. So, with a server of that version
running::

    python hack/record_builtin_fields.py --kubectl kubectl \\
        --sources "$(cd hack/cluster && go list -m -f '{{.Dir}}' k8s.io/api)" \\
        > tests/api/data/builtin_fields.json
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from trimtab import kinds
from trimtab.api.resource import Info, Resource

JSON = dict[str, Any]

_REFERENCE = "#/components/schemas/"
_LEAVES = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": "quantity",
    "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime": "microtime",
    "io.k8s.apimachinery.pkg.apis.meta.v1.Time": "time",
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": "int-or-string",
}
_GO_STRUCT = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_GO_FIELD = re.compile(r'^\t\w+\s+(\S+)\s+`json:"(\w+)([\w,]*)"', re.MULTILINE)


def builtin_kinds() -> list[Info]:
    """Which kinds there are slices of."""
    found = [getattr(kinds, name) for name in vars(kinds)["__all__"]]
    return [kind.__resource__ for kind in found if issubclass(kind, Resource)]


@cache
def document(kubectl: str, group_version: str) -> JSON:
    """The OpenAPI v3 document of one group and version."""
    place = "apis" if "/" in group_version else "api"
    command = [kubectl, "get", "--raw", f"/openapi/v3/{place}/{group_version}"]
    answer: JSON = json.loads(
        subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
    )
    return answer


def short(reference: str) -> str:
    """``io.k8s.api.core.v1.Pod`` as ``core.v1.Pod``."""
    return ".".join(reference.rsplit(".", 3)[1:])


def type_of(schema: JSON) -> str:
    """One field's type in the notation of this file."""
    for part in (schema, *schema.get("allOf", ())):
        if "$ref" in part:
            name = part["$ref"].removeprefix(_REFERENCE)
            return _LEAVES.get(name, short(name))
    if schema.get("type") == "array":
        return f"[{type_of(schema['items'])}]"
    if "additionalProperties" in schema:
        return f"{{{type_of(schema['additionalProperties'])}}}"
    if schema.get("format") == "byte":
        return "bytes"
    return str(schema.get("type", "any"))


def references(schema: JSON) -> Iterator[str]:
    """The types that the fields of a type are made of."""
    for name in re.findall(rf'"\$ref": "{_REFERENCE}([^"]+)"', json.dumps(schema)):
        if name not in _LEAVES:
            yield name


def nulls(sources: Path) -> set[tuple[str, str]]:
    """The fields, as (type, name), that Go's encoder writes as null when unset.

    A list, a map or a pointer that is not there is null unless it may be omitted. A
    time is a struct, which ``omitempty`` does not omit.
    """
    found = set()
    for file in sources.glob("*/v1/types.go"):
        package = ".".join(file.parts[-3:-1])
        for name, body in _GO_STRUCT.findall(file.read_text("utf-8")):
            for kind, field, options in _GO_FIELD.findall(body):
                time = kind in ("metav1.Time", "metav1.MicroTime")
                empty = kind.startswith(("[]", "map[", "*")) or kind == "ResourceList"
                omitted = "omitzero" in options or "omitempty" in options
                if "omitzero" not in options and (time or (empty and not omitted)):
                    found.add((f"{package}.{name}", field))
    return found


def scopes(paths: JSON) -> dict[tuple[str, str], tuple[str, bool]]:
    """For each group and kind, its plural and whether it lives in namespaces."""
    found: dict[tuple[str, str], tuple[str, bool]] = {}
    for path, operations in paths.items():
        about = operations.get("get", {}).get("x-kubernetes-group-version-kind")
        parts = path.split("/")
        if about and parts[-1] == "{name}" and "watch" not in parts:
            namespaced = "{namespace}" in parts
            found[about["group"], about["kind"]] = (parts[-2], namespaced)
    return found


def fields(schema: JSON, name: str, null: set[tuple[str, str]]) -> dict[str, str]:
    """The fields of one type, sorted."""
    return {
        field: type_of(inner) + "?" * ((short(name), field) in null)
        for field, inner in sorted(schema["properties"].items())
    }


def is_told(reference: str) -> bool:
    """Whether a slice has this type, so that its fields are worth recording."""
    package, _, name = short(reference).rpartition(".")
    return package == "meta.v1" or name in vars(kinds)["__all__"]


def types_of(root: str, schemas: JSON) -> Iterator[str]:
    """A type and all that it is made of, as far as slices go."""
    waiting, seen = [root], {root}
    while waiting:
        name = waiting.pop()
        if "properties" in schemas[name]:
            yield name
        parts = {each for each in references(schemas[name]) if is_told(each)}
        waiting += parts - seen
        seen |= parts


def record(kubectl: str, sources: Path) -> JSON:
    """All facts about all kinds that there are slices of."""
    null = nulls(sources)
    told: JSON = {"version": server_version(kubectl), "kinds": {}, "types": {}}
    for info in builtin_kinds():
        answer = document(kubectl, info.api_version)
        schemas = answer["components"]["schemas"]
        root = root_of(info, schemas)
        plural, namespaced = scopes(answer["paths"])[info.group, info.kind]
        told["kinds"][f"{info.api_version}/{info.kind}"] = {
            "type": short(root),
            "plural": plural,
            "namespaced": namespaced,
        }
        for name in types_of(root, schemas):
            told["types"][short(name)] = fields(schemas[name], name, null)
    return told


def root_of(info: Info, schemas: JSON) -> str:
    """The name of a kind's own schema."""
    kind = {"group": info.group, "version": info.version, "kind": info.kind}
    return next(
        name
        for name, schema in schemas.items()
        if kind in schema.get("x-kubernetes-group-version-kind", ())
    )


def server_version(kubectl: str) -> str:
    """The version of the server that the facts are about."""
    command = [kubectl, "get", "--raw", "/version"]
    answer = json.loads(
        subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
    )
    return str(answer["gitVersion"])


def main() -> None:
    """Write the facts to standard output."""
    parser = argparse.ArgumentParser(description="Record the fields of built-in kinds.")
    parser.add_argument("--kubectl", default="kubectl", help="the kubectl to ask with")
    parser.add_argument(
        "--sources", type=Path, required=True, help="the source of k8s.io/api"
    )
    arguments = parser.parse_args()
    facts = record(arguments.kubectl, arguments.sources)
    json.dump(facts, sys.stdout, indent=1, sort_keys=True)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
