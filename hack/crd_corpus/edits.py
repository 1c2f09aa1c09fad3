"""Edits: small changes that make a good definition a bad one."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

JSON = dict[str, Any]
Edit = Callable[[JSON], None]


def schema_of(crd: JSON) -> JSON:
    found: JSON = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return found


def at(*path: str, **values: Any) -> Edit:
    """Set keys of the schema at a path of properties."""

    def edit(crd: JSON) -> None:
        node = schema_of(crd)
        for step in path:
            node = node[step] if step in ("items", "not") else node["properties"][step]
        node.update(values)

    return edit


def named(**values: Any) -> Edit:
    return lambda crd: crd["spec"]["names"].update(values)


def spec(**values: Any) -> Edit:
    return lambda crd: crd["spec"].update(values)


def version(**values: Any) -> Edit:
    return lambda crd: crd["spec"]["versions"][0].update(values)


def put(**values: Any) -> Edit:
    """Add properties to spec."""
    return lambda crd: schema_of(crd)["properties"]["spec"]["properties"].update(values)


def drop(*path: str) -> Edit:
    def edit(crd: JSON) -> None:
        node: Any = crd
        for step in path[:-1]:
            node = node[int(step)] if isinstance(node, list) else node[step]
        del node[path[-1]]

    return edit


def together(*edits: Edit) -> Edit:
    def edit(crd: JSON) -> None:
        for each in edits:
            each(crd)

    return edit


def second(**values: Any) -> Edit:
    """A second version beside the first."""

    def edit(crd: JSON) -> None:
        second = copy.deepcopy(crd["spec"]["versions"][0])
        second.update({"name": "v2", "storage": False, **values})
        crd["spec"]["versions"].append(second)

    return edit


def annotated(value: str) -> Edit:
    key = "api-approved.kubernetes.io"
    return lambda crd: crd["metadata"].update(annotations={key: value})


def in_group(group: str) -> Edit:
    def edit(crd: JSON) -> None:
        crd["spec"]["group"] = group
        crd["metadata"]["name"] = f"widgets.{group}"

    return edit


def metadata(**values: Any) -> Edit:
    def edit(crd: JSON) -> None:
        schema_of(crd)["properties"]["metadata"] = {"type": "object", **values}

    return edit


def root(**values: Any) -> Edit:
    return lambda crd: schema_of(crd)["properties"].update(values)
