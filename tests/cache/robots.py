"""Robots: a small kind, and objects of it, for the tests of stores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trimtab.api import Conditions, OwnerReference, Resource, Spec, Status, convert


class RobotSpec(Spec):
    arm: str = ""
    tools: list[str] = []
    extra: dict[str, Any] = {}


class RobotStatus(Status):
    phase: str = ""
    conditions: Conditions = Conditions()


class Robot(Resource, group="example.com", version="v1"):
    spec: RobotSpec
    status: RobotStatus


def robot(
    name: str,
    version: int | str = 1,
    *,
    namespace: str = "a",
    uid: str = "",
    owner: str = "",
    labels: Mapping[str, str] | None = None,
    **rest: Any,
) -> Robot:
    """A robot as a server would send it."""
    reference = OwnerReference(apiVersion="v1", kind="Factory", name="f", uid=owner)
    metadata = {
        "name": name,
        "namespace": namespace,
        "uid": uid or f"uid-{name}",
        "resourceVersion": str(version),
        "labels": dict(labels or {}),
        "ownerReferences": [reference] if owner else [],
    }
    return convert(Robot, {"metadata": metadata, **rest})
