"""CustomResourceDefinitions: what a server needs to know to serve a class's kind."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from trimtab.api.names import (
    check_custom_group,
    check_kind,
    check_label_1035,
    check_subdomain,
)
from trimtab.api.paths import find, steps
from trimtab.api.resource import Column, Definition, Info, Resource, Scale
from trimtab.api.schema import structural

SELECTABLE_LIMIT: Final = 8
"""How many selectable fields a server allows."""

_COLUMN_TYPES: Final = ("string", "integer", "number", "boolean", "date")
_COLUMN_FORMATS: Final = (
    *("int32", "int64", "float", "double"),
    *("byte", "date", "date-time", "password"),
)
_SELECTABLE: Final = ("string", "integer", "boolean")
_AGE: Final = Column(name="Age", path=".metadata.creationTimestamp", type="date")
_VERSION = re.compile(r"v(\d+)(?:(alpha|beta)(\d+))?")


def crd(*versions: type[Resource]) -> dict[str, Any]:
    """The CustomResourceDefinition of a kind, as plain data for JSON or YAML.

    Flow: pass every class that is a version of the kind. They are listed as Kubernetes
    ranks them (``v2``, ``v1``, ``v1beta1``). Printer columns end with the age, unless
    there is one of that name; where a class has none, the server's own are shown.

    Guarantees: nothing in it is shared, so the caller may change it.

    Errors: ``ValueError`` when the classes are not versions of one kind with one
    storage version, or a name is not one; ``TypeError`` naming a class and field that
    has no schema, or a path that leads nowhere.
    """
    if not versions:
        raise ValueError("A CRD needs a class; pass each version of the kind.")
    definitions = [_definition(kind) for kind in versions]
    info = _agreed(versions)
    _check_versions(versions, definitions)
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{info.plural}.{info.group}"},
        "spec": {
            "group": info.group,
            "names": _names(info, definitions),
            "scope": "Namespaced" if info.namespaced else "Cluster",
            "conversion": {"strategy": "None"},
            "versions": [_version(kind) for kind in sorted(versions, key=_rank)],
        },
    }


def check_definition(kind: type[Resource], schema: Mapping[str, Any]) -> None:
    """Refuse a class whose columns, scale or selectable fields point at nothing.

    Errors: ``TypeError`` naming the class and the path.
    """
    definition = _definition(kind)
    for column in definition.columns:
        _check_column(kind, column, schema)
    if definition.scale is not None:
        _check_scale(kind, definition.scale, schema)
    _check_selectable(kind, definition.selectable, schema)


def _definition(kind: type[Resource]) -> Definition:
    definition = getattr(kind, "__definition__", None)
    if definition is None:
        raise ValueError(
            f"{kind.__name__} has no CRD: it is built in, or was given no version."
        )
    return definition  # type: ignore[no-any-return]


def _agreed(versions: tuple[type[Resource], ...]) -> Info:
    """What all versions say of their kind."""
    first = versions[0].__resource__
    for kind in versions[1:]:
        other = kind.__resource__
        for name in ("group", "kind", "plural", "namespaced"):
            if getattr(other, name) != getattr(first, name):
                raise ValueError(
                    f"{versions[0].__name__} and {kind.__name__} are not versions of "
                    f"one kind: their {name} differs."
                )
    _check_info(first)
    return first


def _check_info(info: Info) -> None:
    check_custom_group(info.group, what="The group")
    check_kind(info.kind, what="The kind")
    check_label_1035(info.plural, what="The plural")
    check_subdomain(f"{info.plural}.{info.group}", what="The CRD's name")
    domain = f".{info.group}"
    if domain.endswith((".k8s.io", ".kubernetes.io")):
        raise ValueError(
            f"The group {info.group} is for Kubernetes itself; use a domain of yours."
        )


def _check_versions(
    versions: tuple[type[Resource], ...], definitions: list[Definition]
) -> None:
    names = [kind.__resource__.version for kind in versions]
    title = versions[0].__resource__.kind
    for name in names:
        check_label_1035(name, what="The version")
        if names.count(name) > 1:
            raise ValueError(f"{title} has the version {name} twice; pass it once.")
    stored = [
        name for name, each in zip(names, definitions, strict=True) if each.storage
    ]
    if len(stored) != 1:
        raise ValueError(
            f"{title} needs one storage version and has {', '.join(stored) or 'none'}; "
            "put storage=False on all versions but one."
        )


def _names(info: Info, definitions: list[Definition]) -> dict[str, Any]:
    singular = _same(info, definitions, "singular")
    check_label_1035(singular, what="The singular")
    names: dict[str, Any] = {
        "kind": info.kind,
        "listKind": f"{info.kind}List",
        "plural": info.plural,
        "singular": singular,
    }
    for key, attribute in (("shortNames", "short"), ("categories", "categories")):
        saying = [each for each in definitions if getattr(each, attribute)]
        given = _same(info, saying, attribute) or ()
        for name in given:
            check_label_1035(name, what=f"One of {attribute},")
        if given:
            names[key] = list(given)
    return names


def _same(info: Info, definitions: list[Definition], attribute: str) -> Any:
    """What the versions that say something of the kind's names agree on."""
    said = {getattr(each, attribute) for each in definitions}
    if len(said) > 1:
        raise ValueError(
            f"The versions of {info.kind} differ in {attribute}, which all share: "
            f"{' and '.join(sorted(map(str, said)))}."
        )
    return next(iter(said), None)


def _rank(kind: type[Resource]) -> tuple[Any, ...]:
    """Where Kubernetes lists a version: stable, beta, alpha, then other names."""
    name = kind.__resource__.version
    match = _VERSION.fullmatch(name)
    if match is None:
        return (3, 0, 0, name)
    major, stage, minor = match.groups()
    stages = (None, "beta", "alpha")
    return (stages.index(stage), -int(major), -int(minor or 0), name)


def _version(kind: type[Resource]) -> dict[str, Any]:
    definition = _definition(kind)
    schema = structural(kind)
    check_definition(kind, schema)
    out: dict[str, Any] = {
        "name": kind.__resource__.version,
        "served": definition.served,
        "storage": definition.storage,
    }
    if definition.deprecated is not None:
        out |= _deprecation(kind, definition.deprecated)
    out["schema"] = {"openAPIV3Schema": schema}
    subresources = _subresources(definition, schema)
    if subresources:
        out["subresources"] = subresources
    if definition.selectable:
        out["selectableFields"] = [
            {"jsonPath": _dotted(path)} for path in definition.selectable
        ]
    if definition.columns:
        out["additionalPrinterColumns"] = _columns(definition.columns)
    return out


def _deprecation(kind: type[Resource], warning: str) -> dict[str, Any]:
    if len(warning.encode()) > 256 or not warning.isprintable():
        raise ValueError(
            f"The deprecation warning of {kind.__name__} must be one line of at "
            "most 256 bytes."
        )
    return {"deprecated": True} | ({"deprecationWarning": warning} if warning else {})


def _subresources(definition: Definition, schema: dict[str, Any]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    if "status" in schema["properties"]:
        out["status"] = {}
    if definition.scale is not None:
        scale = definition.scale
        out["scale"] = {
            "specReplicasPath": _dotted(scale.spec_replicas),
            "statusReplicasPath": _dotted(scale.status_replicas),
        }
        if scale.label_selector is not None:
            out["scale"]["labelSelectorPath"] = _dotted(scale.label_selector)
    return out


def _columns(columns: Iterable[Column]) -> list[dict[str, Any]]:
    given = list(columns)
    if all(column.name.lower() != "age" for column in given):
        given.append(_AGE)
    return [_column(column) for column in given]


def _column(column: Column) -> dict[str, Any]:
    out: dict[str, Any] = {
        "name": column.name,
        "type": column.type,
        "jsonPath": _dotted(column.path),
    }
    optional = {
        "format": column.format,
        "description": column.doc,
        "priority": column.priority,
    }
    return out | {key: value for key, value in optional.items() if value}


def _dotted(path: str) -> str:
    return path if path.startswith((".", "[")) else f".{path}"


def _check_column(
    kind: type[Resource], column: Column, schema: Mapping[str, Any]
) -> None:
    what = f"the column {column.name!r}"
    if column.type not in _COLUMN_TYPES:
        raise _wrong(kind, what, f"has the type {column.type!r}, not {_COLUMN_TYPES}")
    if column.format is not None and column.format not in _COLUMN_FORMATS:
        raise _wrong(
            kind, what, f"has the format {column.format!r}, not {_COLUMN_FORMATS}"
        )
    _found(kind, what, column.path, schema)


def _check_scale(kind: type[Resource], scale: Scale, schema: Mapping[str, Any]) -> None:
    for attribute, parts, wanted in (
        ("spec_replicas", ("spec",), "integer"),
        ("status_replicas", ("status",), "integer"),
        ("label_selector", ("spec", "status"), "string"),
    ):
        path = getattr(scale, attribute)
        if path is None and attribute == "label_selector":
            continue
        what = f"scale.{attribute}"
        found = _plain_field(kind, what, path, schema)
        if steps(_dotted(path))[0] not in parts or found.get("type") != wanted:
            raise _wrong(
                kind,
                what,
                f"must lead to an {wanted} in {' or '.join(parts)}: {path!r}",
            )


def _check_selectable(
    kind: type[Resource], selectable: tuple[str, ...], schema: Mapping[str, Any]
) -> None:
    if len(selectable) > SELECTABLE_LIMIT:
        raise _wrong(kind, "selectable", f"has more than {SELECTABLE_LIMIT} fields")
    if len({_dotted(path) for path in selectable}) < len(selectable):
        raise _wrong(kind, "selectable", "names a field twice")
    for path in selectable:
        found = _plain_field(kind, "selectable", path, schema)
        if found.get("type") not in _SELECTABLE:
            raise _wrong(
                kind, "selectable", f"must be str, int or bool fields, unlike {path!r}"
            )


def _plain_field(
    kind: type[Resource], what: str, path: str, schema: Mapping[str, Any]
) -> Mapping[str, Any]:
    """The schema at a path of fields only: what a server allows in these places."""
    found = _found(kind, what, path, schema)
    here: Mapping[str, Any] = schema
    for step in steps(_dotted(path)):
        here = here.get("properties", {}).get(step, {})
    if "[" in path or here is not found:
        raise _wrong(kind, what, f"takes a path of plain fields, unlike {path!r}")
    return found


def _found(
    kind: type[Resource], what: str, path: str, schema: Mapping[str, Any]
) -> Mapping[str, Any]:
    try:
        found = find(schema, _dotted(path))
    except ValueError as error:
        raise _wrong(kind, what, f"has no path: {error}") from None
    if found is None:
        raise _wrong(kind, what, f"points at {path!r}, which the class does not have")
    return found


def _wrong(kind: type[Resource], what: str, problem: str) -> TypeError:
    return TypeError(f"{kind.__name__}: {what} {problem}.")
