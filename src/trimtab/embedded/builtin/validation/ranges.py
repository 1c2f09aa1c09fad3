"""Ranges and addresses of Services, each an object of its own."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Any

from trimtab.embedded.builtin.internal import internal
from trimtab.embedded.builtin.validation import meta, texts
from trimtab.embedded.builtin.validation.problems import Found

JSON = Mapping[str, Any]


def _address(name: str) -> texts.Problems:
    """The one way to write an address."""
    problems = texts.ip(name)
    parsed = texts.parse_ip(name)
    if problems or parsed is None or str(parsed) == name:
        return problems
    return (f'must be in canonical form ("{parsed}")',)


def _range(value: str) -> texts.Problems:
    problems = texts.cidr(value)
    if problems:
        return problems
    canonical = str(ipaddress.ip_network(value))
    if canonical == value:
        return ()
    return (f'must be in canonical form ("{canonical}")',)


def create_address(found: Found, obj: JSON) -> None:
    meta.created(found, obj["metadata"], namespaced=False, name=_address)
    parent, path = obj["spec"].get("parentRef"), "spec.parentRef"
    if parent is None:
        found.required(path)
        return
    if group := parent.get("group"):
        found.each(f"{path}.group", group, texts.subdomain(group))
    for field in ("resource", "name", "namespace"):
        value, where = parent.get(field), f"{path}.{field}"
        if value:
            found.each(where, value, texts.path_segment(value))
        elif field != "namespace":
            found.required(where)


def update_address(found: Found, obj: JSON, old: JSON) -> None:
    create_address(found, obj)
    meta.updated(found, obj["metadata"], old["metadata"])
    new, before = obj["spec"].get("parentRef"), old["spec"].get("parentRef")
    shown = internal("networking.ParentReference", new)
    found.immutable("spec.parentRef", new, before, shown)


def create_range(found: Found, obj: JSON) -> None:
    meta.created(found, obj["metadata"], namespaced=False, name=texts.subdomain)
    _ranges(found, obj["spec"])


def _ranges(found: Found, spec: JSON) -> None:
    path, given = "spec.cidrs", spec.get("cidrs") or []
    if not given:
        found.required(path, "at least one CIDR required")
        return
    if len(given) > 2:
        shown = internal("networking.ServiceCIDRSpec", spec)
        found.invalid(path, shown, "may only hold up to 2 values")
        return
    for index, each in enumerate(given):
        found.each(f"{path}[{index}]", each, _range(each))
    families = [_family(each) for each in given]
    if len(given) == 2 and families[0] == families[1] != 0:
        found.invalid(
            path,
            given,
            "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 "
            "and 2001:db8::/64",
        )


def _family(value: str) -> int:
    """4 or 6; 0 for what is no range."""
    if texts.BAD_CIDR in texts.cidr(value):
        return 0
    return 6 if ":" in value else 4


def update_range(found: Found, obj: JSON, old: JSON) -> None:
    meta.updated(found, obj["metadata"], old["metadata"])
    path = "spec.cidrs"
    new, before = obj["spec"].get("cidrs") or [], old["spec"].get("cidrs") or []
    if len(new) == len(before):
        for index, (value, was) in enumerate(zip(new, before, strict=True)):
            found.immutable(f"{path}[{index}]", value, was)
    elif (len(before), len(new)) == (1, 2):
        found.immutable(f"{path}[0]", new[0], before[0])
        _ranges(found, obj["spec"])
    else:
        found.invalid(path, new, texts.IMMUTABLE)


def status_range(found: Found, obj: JSON, old: JSON) -> None:
    meta.updated(found, obj["metadata"], old["metadata"])
