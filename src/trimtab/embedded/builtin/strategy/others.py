"""The smaller groups as their registries make them."""

from __future__ import annotations

from typing import Any, Final

from trimtab.embedded.builtin.scalers import keep_notes
from trimtab.embedded.builtin.shapes import struct
from trimtab.embedded.builtin.strategy.common import keep, keep_metadata

JSON = dict[str, Any]

_LOCAL: Final = {
    "type": "Available",
    "status": "True",
    "reason": "Local",
    "message": "Local APIServices are always available",
}


def create_scaler(obj: JSON) -> None:
    """What an autoscaler has seen is its own; each version writes it differently."""
    version = str(obj.get("apiVersion", "")).rpartition("/")[2] or "v2"
    obj["status"] = struct(f"autoscaling.{version}.HorizontalPodAutoscalerStatus")({})


def update_scaler(obj: JSON, old: JSON) -> None:
    keep(obj, old, "status")
    if obj.get("apiVersion") == "autoscaling/v1":
        keep_notes(obj, old)


def scaler_status(obj: JSON, old: JSON) -> None:
    keep(obj, old, "spec")
    if obj.get("apiVersion") == "autoscaling/v1":
        keep_notes(obj, old, subresource="status")


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


def create_api_service(obj: JSON) -> None:
    """What this server serves itself is there at once."""
    obj["status"] = {}
    if "service" not in obj["spec"]:
        time = obj["metadata"].get("creationTimestamp")
        local = {**_LOCAL, "lastTransitionTime": time}
        order = ("type", "status", "lastTransitionTime", "reason", "message")
        obj["status"]["conditions"] = [{field: local[field] for field in order}]


def api_service_status(obj: JSON, old: JSON) -> None:
    keep(obj, old, "spec")
    for field in ("labels", "annotations", "finalizers", "ownerReferences"):
        keep(obj["metadata"], old["metadata"], field)


def keep_all_but_status(obj: JSON, old: JSON) -> None:
    """Through the status, neither the spec nor anything of the metadata changes."""
    keep(obj, old, "spec")
    own = ("managedFields", "resourceVersion")
    kept = {key: obj["metadata"][key] for key in own if key in obj["metadata"]}
    before = {key: old["metadata"][key] for key in old["metadata"] if key not in own}
    obj["metadata"] = {**before, **kept}


def claim_status(obj: JSON, old: JSON) -> None:
    """What is said of a device goes with the device."""
    attachment_status(obj, old)
    state = obj.get("status") or {}
    before = {_device(each) for each in _allocated(old.get("status") or {})}
    lost = before - {_device(each) for each in _allocated(state)}
    kept = [each for each in state.get("devices") or () if _device(each) not in lost]
    if kept:
        state["devices"] = kept
    else:
        state.pop("devices", None)


def _allocated(state: JSON) -> list[JSON]:
    devices = (state.get("allocation") or {}).get("devices") or {}
    return devices.get("results") or []


def _device(each: JSON) -> tuple[str, ...]:
    return (each["driver"], each["pool"], each["device"], each.get("shareID") or "")
