"""The smaller groups as their registries make them."""

from __future__ import annotations

from typing import Any

from trimtab.embedded.builtin.shapes import struct
from trimtab.embedded.builtin.strategy.common import keep, keep_metadata

JSON = dict[str, Any]


def create_scaler(obj: JSON) -> None:
    """What an autoscaler has seen is its own; each version writes it differently."""
    version = str(obj.get("apiVersion", "")).rpartition("/")[2] or "v2"
    obj["status"] = struct(f"autoscaling.{version}.HorizontalPodAutoscalerStatus")({})


def create_slice(obj: JSON) -> None:
    """Where endpoints are has had fields of its own since the first version."""
    for endpoint in obj["endpoints"] or ():
        endpoint.pop("deprecatedTopology", None)


def update_slice(obj: JSON, old: JSON) -> None:
    if obj["endpoints"] != old["endpoints"]:
        create_slice(obj)


def attachment_status(obj: JSON, old: JSON) -> None:
    keep(obj, old, "spec")
    keep_metadata(obj, old)
