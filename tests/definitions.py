"""Definitions of custom kinds, as somebody without our classes would write them."""

from __future__ import annotations

from typing import Any

Plain = dict[str, Any]
FREE: Plain = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
"""The schema of anything at all."""


def structure(**properties: Plain) -> Plain:
    """The schema of an object with these properties."""
    return {"type": "object", "properties": properties}


def definition(
    plural: str,
    kind: str,
    *,
    group: str,
    schema: Plain,
    subresources: Plain | None = None,
) -> Plain:
    """The definition of a namespaced kind with one version, v1."""
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
    }
    if subresources is not None:
        version["subresources"] = subresources
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind},
            "versions": [version],
        },
    }
