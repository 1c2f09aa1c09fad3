"""Discovery: the documents that tell clients which resources there are.

They are made from the table of built-in resources and from CRDs, in the legacy form
(one document for each group and version) and in the aggregated one (two in all).
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from trimtab.embedded.facts import ServedResource, Subresource

JSON = dict[str, Any]

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
"""The media type of the aggregated form, as it is asked for and answered with."""

CUSTOM_VERBS = tuple(
    "delete deletecollection get list patch create update watch".split()
)
_TERMINATING_VERBS = ("delete", "deletecollection", "get", "list", "watch")
_SUBRESOURCE_VERBS = ("get", "patch", "update")
_VERSION = re.compile(r"v(\d+)(?:(alpha|beta)(\d+))?")
_STAGES = {"alpha": 1, "beta": 2, None: 3}


def storage_hash(group: str, version: str, kind: str) -> str:
    """What discovery says of the version that a kind is stored in."""
    digest = hashlib.sha256(f"{group}/{version}/{kind}".encode()).digest()
    return base64.b64encode(digest[:8]).decode()


def definition_name(group: str, version: str, kind: str) -> str:
    """The name of a custom kind's schema: ``com.example.v1.Website``."""
    return ".".join([*reversed(group.split(".")), version, kind])


def version_order(version: str) -> tuple[int, int, int, str]:
    """Sorts the most mature version first: v2, v1, v1beta2, v1alpha1, then others.

    Others come in the order of their names.
    """
    match = _VERSION.fullmatch(version)
    if match is None:
        return (0, 0, 0, version)
    major, stage, minor = match.groups()
    return (-_STAGES[stage], -int(major), -int(minor or 0), "")


def custom_resources(crd: Mapping[str, Any]) -> tuple[ServedResource, ...]:
    """The resource of a CRD in each version that it serves, the most mature first."""
    spec = crd["spec"]
    versions = [version for version in spec["versions"] if version["served"]]
    versions.sort(key=lambda version: version_order(version["name"]))
    return tuple(_custom_resource(crd, version) for version in versions)


def _custom_resource(crd: Mapping[str, Any], version: JSON) -> ServedResource:
    spec, status = crd["spec"], crd.get("status", {})
    # The names that were accepted can differ from those that were wished for.
    accepted = status.get("acceptedNames", {})
    names = accepted if accepted.get("plural") else spec["names"]
    stored = next((each for each in spec["versions"] if each["storage"]), version)
    group, name, kind = spec["group"], version["name"], names["kind"]
    return ServedResource(
        group=group,
        version=name,
        kind=kind,
        list_kind=names.get("listKind") or f"{kind}List",
        plural=names["plural"],
        singular=names.get("singular") or kind.lower(),
        short=tuple(names.get("shortNames") or ()),
        namespaced=spec["scope"] == "Namespaced",
        verbs=_TERMINATING_VERBS if _is_terminating(status) else CUSTOM_VERBS,
        categories=tuple(names.get("categories") or ()),
        subresources=tuple(_custom_subresources(group, version, kind)),
        # A version that is stored but not served has no hash.
        storage_hash=storage_hash(group, stored["name"], kind)
        if stored["served"]
        else "",
        definition=definition_name(group, name, kind),
        custom=True,
    )


def _is_terminating(status: Mapping[str, Any]) -> bool:
    return any(
        condition["type"] == "Terminating" and condition["status"] == "True"
        for condition in status.get("conditions") or ()
    )


def _custom_subresources(group: str, version: JSON, kind: str) -> Iterable[Subresource]:
    wished = version.get("subresources") or {}
    if wished.get("status") is not None:
        yield Subresource(
            name="status",
            kind=kind,
            group=group,
            version=version["name"],
            verbs=_SUBRESOURCE_VERBS,
        )
    if wished.get("scale") is not None:
        yield Subresource(
            name="scale",
            kind="Scale",
            group="autoscaling",
            version="v1",
            verbs=_SUBRESOURCE_VERBS,
        )


def api_versions(address: str) -> JSON:
    """``/api``; the address is the server's own, as ``127.0.0.1:6443``."""
    reachable = [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}]
    return {
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": reachable,
    }


def group_list(resources: Sequence[ServedResource]) -> JSON:
    """``/apis``: every group but the one without a name."""
    versions = versions_by_group(resources)
    return {
        "kind": "APIGroupList",
        "apiVersion": "v1",
        "groups": [
            _group(group, versions[group])
            for group in sorted(versions, key=_legacy_order(resources))
            if group
        ],
    }


def group(resources: Sequence[ServedResource], name: str) -> JSON | None:
    """``/apis/GROUP``."""
    versions = versions_by_group(resources).get(name)
    if versions is None or not name:
        return None
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(name, versions)}


def resource_list(
    resources: Sequence[ServedResource], *, group: str, version: str
) -> JSON | None:
    """``/api/v1`` and ``/apis/GROUP/VERSION``."""
    found = [each for each in resources if _is_of(each, group, version)]
    if not found:
        return None
    rows = []
    for each in found:
        rows.append(_resource(each))
        rows += [_subresource(each, below) for below in each.subresources]
    place = f"{group}/{version}" if group else version
    # The group without a name is older than this field.
    dated = {"apiVersion": "v1"} if group else {}
    return {
        "kind": "APIResourceList",
        **dated,
        "groupVersion": place,
        "resources": rows,
    }


def aggregated(resources: Sequence[ServedResource], *, core: bool) -> JSON:
    """``/api`` (``core``) or ``/apis`` in the aggregated form."""
    found = [each for each in resources if (each.group == "") == core]
    versions = versions_by_group(found)
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": [
            {
                "metadata": {"name": group} if group else {},
                "versions": [
                    _aggregated_version(found, group, version)
                    for version in versions[group]
                ],
            }
            for group in sorted(versions, key=_aggregated_order(found))
        ],
    }


def versions_by_group(resources: Sequence[ServedResource]) -> dict[str, list[str]]:
    """The versions of each group, the preferred one first.

    Built-in versions come in the order of the table; custom ones by maturity.
    """
    found: dict[str, dict[str, bool]] = {}
    for each in resources:
        found.setdefault(each.group, {}).setdefault(each.version, each.custom)
    return {
        group: [version for version, custom in versions.items() if not custom]
        + sorted((v for v, custom in versions.items() if custom), key=version_order)
        for group, versions in found.items()
    }


def _legacy_order(resources: Sequence[ServedResource]) -> Any:
    """Built-in groups in their own order, then custom ones as the aggregator does it.

    That sorts by the names of APIServices, which are ``VERSION.GROUP``.
    """
    places = _builtin_places(resources)
    names: dict[str, str] = {}
    for each in resources:
        name = f"{each.version}.{each.group}"
        names[each.group] = min(name, names.get(each.group, name))
    return lambda group: (places.get(group, len(places)), names[group])


def _aggregated_order(resources: Sequence[ServedResource]) -> Any:
    """The same, but that custom groups are sorted by their own names."""
    places = _builtin_places(resources)
    return lambda group: (places.get(group, len(places)), group)


def _builtin_places(resources: Sequence[ServedResource]) -> dict[str, int]:
    groups = dict.fromkeys(each.group for each in resources if not each.custom)
    return {group: place for place, group in enumerate(groups)}


def _is_of(resource: ServedResource, group: str, version: str) -> bool:
    return resource.group == group and resource.version == version


def _group(name: str, versions: Sequence[str]) -> JSON:
    listed = [
        {"groupVersion": f"{name}/{version}", "version": version}
        for version in versions
    ]
    return {"name": name, "versions": listed, "preferredVersion": listed[0]}


def _resource(resource: ServedResource) -> JSON:
    row: JSON = {
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": list(resource.verbs),
        "shortNames": list(resource.short),
        "categories": list(resource.categories),
        "storageVersionHash": resource.storage_hash,
    }
    return {key: value for key, value in row.items() if value not in ("", [])}


def _subresource(resource: ServedResource, below: Subresource) -> JSON:
    foreign = (below.group, below.version) != (resource.group, resource.version)
    return {
        "name": f"{resource.plural}/{below.name}",
        "singularName": "",
        "namespaced": resource.namespaced,
        **({"group": below.group, "version": below.version} if foreign else {}),
        "kind": below.kind,
        "verbs": list(below.verbs),
    }


def _aggregated_version(
    resources: Sequence[ServedResource], group: str, version: str
) -> JSON:
    found = [each for each in resources if _is_of(each, group, version)]
    found.sort(key=lambda each: each.plural)
    rows = [_aggregated_resource(each) for each in found]
    return {"version": version, "resources": rows, "freshness": "Current"}


def _aggregated_resource(resource: ServedResource) -> JSON:
    row: JSON = {
        "resource": resource.plural,
        "responseKind": _kind(resource, resource),
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": resource.singular,
        "verbs": list(resource.verbs),
        "shortNames": list(resource.short),
        "categories": list(resource.categories),
        "subresources": [
            {
                "subresource": below.name,
                "responseKind": _kind(resource, below),
                "verbs": list(below.verbs),
            }
            for below in resource.subresources
        ],
    }
    return {key: value for key, value in row.items() if value != []}


def _kind(resource: ServedResource, speaks: ServedResource | Subresource) -> JSON:
    """Built-in resources leave out what is the same as where the resource stands."""
    own = (speaks.group, speaks.version) == (resource.group, resource.version)
    silent = own and not resource.custom
    return {
        "group": "" if silent else speaks.group,
        "version": "" if silent else speaks.version,
        "kind": speaks.kind,
    }
