"""Defaults of claims of devices."""

from __future__ import annotations

from typing import Any

JSON = dict[str, Any]


def claim(obj: JSON) -> None:
    _claim(obj["spec"])


def template(obj: JSON) -> None:
    _claim(obj["spec"]["spec"])


def _claim(spec: JSON) -> None:
    for request in spec["devices"].get("requests") or ():
        _request(request.get("exactly"))
        for each in request.get("firstAvailable") or ():
            _request(each)


def _request(request: JSON | None) -> None:
    """One device, unless it says another number, or all; taints are named."""
    if request is None:
        return
    if not request.get("allocationMode"):
        request["allocationMode"] = "ExactCount"
    if request["allocationMode"] == "ExactCount" and not request.get("count"):
        request["count"] = 1
    for toleration in request.get("tolerations") or ():
        if not toleration.get("operator"):
            toleration["operator"] = "Equal"
