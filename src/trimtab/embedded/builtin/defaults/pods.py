"""Defaults of pods and of what they are made of."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from trimtab.api.quantity import Quantity
from trimtab.embedded.builtin.podresources import aggregate
from trimtab.embedded.builtin.remembered import remembered

JSON = dict[str, Any]

_VOLUME_MODE: Final = 0o644
_STATUSES: Final = (
    "initContainerStatuses",
    "containerStatuses",
    "ephemeralContainerStatuses",
)
_EVERY_PROBE: Final = ("livenessProbe", "readinessProbe", "startupProbe")


def pod(obj: JSON) -> None:
    """A pod: on top of its spec's, what only applies to real pods."""
    spec = obj["spec"]
    containers = spec["containers"] or ()
    for each in containers:
        _requests_from_limits(each)
    for each in spec.get("initContainers") or ():
        _requests_from_limits(each)
    if "resources" in spec:
        _pod_requests(spec)
    spec.setdefault("enableServiceLinks", True)
    if spec.get("hostNetwork"):
        for kind in ("containers", "initContainers"):
            for each in spec.get(kind) or ():
                for port in each.get("ports") or ():
                    if not port.get("hostPort") and port["containerPort"]:
                        port["hostPort"] = port["containerPort"]
    pod_spec(spec)
    if spec["terminationGracePeriodSeconds"] < 0:
        spec["terminationGracePeriodSeconds"] = 1
    if obj["status"]:
        _status(obj["status"])


def _status(status: JSON) -> None:
    if "podIP" in status or "podIPs" in status:
        _addresses(status)
    for kind in _STATUSES:
        for each in status.get(kind) or ():
            _amounts(each)
    _amounts(status)


def _amounts(status: JSON) -> None:
    whole_millis(status.get("allocatedResources"))
    if "resources" in status:
        for field in ("limits", "requests"):
            whole_millis(status["resources"].get(field))


def _addresses(status: JSON) -> None:
    """The one address of old, and the list of them, say the same."""
    first, listed = status.get("podIP", ""), status.get("podIPs")
    if first and (not listed or listed[0].get("ip", "") != first):
        status["podIPs"] = [{"ip": first}]
    elif listed and listed[0].get("ip"):
        status["podIP"] = listed[0]["ip"]


def _requests_from_limits(container: JSON) -> None:
    resources = container["resources"]
    limits = resources.get("limits")
    if limits:
        resources["requests"] = {**limits, **(resources.get("requests") or {})}


def _pod_requests(spec: JSON) -> None:
    """What a pod asks for as a whole follows from its parts and its limits."""
    resources = spec["resources"]
    limits = resources.get("limits")
    if not limits:
        return
    requests = dict(resources.get("requests") or {})
    for name, total in aggregate(spec, "requests").items():
        if name in ("cpu", "memory"):
            requests.setdefault(name, str(total))
    for name, value in limits.items():
        if name in ("cpu", "memory") or name.startswith("hugepages-"):
            requests.setdefault(name, value)
    if requests:
        resources["requests"] = requests


def pod_spec(spec: JSON) -> None:
    """The spec of a pod, or of a template."""
    for name, value in (
        ("dnsPolicy", "ClusterFirst"),
        ("restartPolicy", "Always"),
        ("terminationGracePeriodSeconds", 30),
        ("schedulerName", "default-scheduler"),
    ):
        if name not in spec:
            spec[name] = value
    if "securityContext" not in spec:
        spec["securityContext"] = {}
    _accounts(spec)
    for each in spec.get("volumes") or ():
        volume(each)
    for kind in ("initContainers", "containers", "ephemeralContainers"):
        for each in spec.get(kind) or ():
            container(each)
    if "overhead" in spec:
        whole_millis(spec["overhead"])
    if "resources" in spec:
        for field in ("limits", "requests"):
            whole_millis(spec["resources"].get(field))


def _accounts(spec: JSON) -> None:
    """A service account has two names, the older of which follows the newer."""
    if name := spec.get("serviceAccountName") or spec.get("serviceAccount"):
        spec["serviceAccountName"] = spec["serviceAccount"] = name


def template(given: JSON | None) -> None:
    if given is not None:
        pod_spec(given["spec"])


def container(given: JSON) -> None:
    """A container of any kind."""
    if "imagePullPolicy" not in given:
        given["imagePullPolicy"] = pull_policy(given.get("image", ""))
    if "terminationMessagePath" not in given:
        given["terminationMessagePath"] = "/dev/termination-log"
    if "terminationMessagePolicy" not in given:
        given["terminationMessagePolicy"] = "File"
    for port in given.get("ports") or ():
        if "protocol" not in port:
            port["protocol"] = "TCP"
    for variable in given.get("env") or ():
        if "valueFrom" in variable:
            _value_from(variable["valueFrom"])
    resources = given.get("resources")
    if resources:
        for field in ("limits", "requests"):
            whole_millis(resources.get(field))
    for name in _EVERY_PROBE:
        if name in given:
            _probe(given[name])
    for hook in (given.get("lifecycle") or {}).values():
        if isinstance(hook, dict) and "httpGet" in hook:
            _http(hook["httpGet"])


def _value_from(source: JSON) -> None:
    if "fieldRef" in source:
        source["fieldRef"].setdefault("apiVersion", "v1")
    if "fileKeyRef" in source:
        source["fileKeyRef"].setdefault("optional", False)


def _probe(probe: JSON) -> None:
    for name, value in (
        ("timeoutSeconds", 1),
        ("periodSeconds", 10),
        ("successThreshold", 1),
        ("failureThreshold", 3),
    ):
        if name not in probe:
            probe[name] = value
    if "httpGet" in probe:
        _http(probe["httpGet"])
    if "grpc" in probe and probe["grpc"]["service"] is None:
        probe["grpc"]["service"] = ""


def _http(action: JSON) -> None:
    action.setdefault("path", "/")
    action.setdefault("scheme", "HTTP")


_LABEL: Final = "[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?"
_HOST: Final = (
    rf"(?:localhost|(?=[^/]*[.:A-Z]){_LABEL}(?:\.{_LABEL})*|\[[a-fA-F0-9:]+\])"
    "(?::[0-9]+)?"
)
_STEP: Final = "[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_as_image = re.compile(
    rf"(?:{_HOST}/)?{_STEP}(?:/{_STEP})*"
    r"(?::(?P<tag>\w[\w.-]{0,127}))?"
    r"(?P<digest>@[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,})?",
    re.ASCII,
).fullmatch
_is_identifier = re.compile("[a-f0-9]{64}").fullmatch


@remembered
def pull_policy(image: str) -> str:
    """An image that has the tag ``latest``, or none, may have changed meanwhile."""
    parts = _as_image(image)
    if parts is None or _is_identifier(image):
        return "IfNotPresent"
    tag = parts["tag"] or ("" if parts["digest"] else "latest")
    return "Always" if tag == "latest" else "IfNotPresent"


def whole_millis(resources: JSON | None) -> None:
    """Amounts finer than a thousandth are rounded up to one."""
    if not resources:
        return
    for name, value in resources.items():
        if value[-1:] in "nu":
            resources[name] = _rounded(value)


@remembered
def _rounded(value: str) -> str:
    quantity = Quantity(value)
    if (quantity.fraction * 1000).denominator == 1:
        return value
    return str(Quantity(f"{quantity.milli}m", format=quantity.format))


def volume(given: JSON) -> None:
    """A volume of a pod; without a source it is an empty folder."""
    if len(given) == 1 and "name" in given:
        given["emptyDir"] = {}
        return
    for name, source in given.items():
        default = _SOURCES.get(name)
        if default is not None:
            default(source)


def _mode(source: JSON) -> None:
    source.setdefault("defaultMode", _VOLUME_MODE)


def _downward(source: JSON) -> None:
    _mode(source)
    _fields(source)


def _fields(source: JSON) -> None:
    for item in source.get("items") or ():
        if "fieldRef" in item:
            item["fieldRef"].setdefault("apiVersion", "v1")


def _projected(source: JSON) -> None:
    _mode(source)
    for each in source.get("sources") or ():
        if "downwardAPI" in each:
            _fields(each["downwardAPI"])
        if "serviceAccountToken" in each:
            each["serviceAccountToken"].setdefault("expirationSeconds", 3600)


def _ephemeral(source: JSON) -> None:
    if "volumeClaimTemplate" in source:
        claim_spec(source["volumeClaimTemplate"]["spec"])


def _image(source: JSON) -> None:
    source.setdefault("pullPolicy", pull_policy(source.get("reference", "")))


def claim_spec(spec: JSON) -> None:
    """What is wished of a persistent volume."""
    spec.setdefault("volumeMode", "Filesystem")
    for field in ("limits", "requests"):
        whole_millis(spec["resources"].get(field))


def fill(**values: Any) -> Callable[[JSON], None]:
    """A default that only fills in values."""

    def filled(source: JSON) -> None:
        for name, value in values.items():
            source.setdefault(name, value)

    return filled


host_path: Final = fill(type="")
iscsi: Final = fill(iscsiInterface="default")
rbd: Final = fill(pool="rbd", user="admin", keyring="/etc/ceph/keyring")
azure_disk: Final = fill(
    cachingMode="ReadWrite", fsType="ext4", readOnly=False, kind="Shared"
)
scale_io: Final = fill(storageMode="ThinProvisioned", fsType="xfs")

_SOURCES: Final[dict[str, Callable[[JSON], None]]] = {
    "hostPath": host_path,
    "secret": _mode,
    "configMap": _mode,
    "downwardAPI": _downward,
    "projected": _projected,
    "ephemeral": _ephemeral,
    "image": _image,
    "iscsi": iscsi,
    "rbd": rbd,
    "azureDisk": azure_disk,
    "scaleIO": scale_io,
}
