"""Addresses of Services: those of the cluster, and what may become of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from trimtab.embedded.builtin.validation import texts
from trimtab.embedded.builtin.validation.problems import Found

JSON = Mapping[str, Any]

_FAMILIES: Final = ("IPv4", "IPv6")
_POLICIES: Final = ("PreferDualStack", "RequireDualStack", "SingleStack")
_ONCE: Final = "may not change once set"


def is_headless(spec: JSON) -> bool:
    return spec.get("clusterIPs") == ["None"]


def cluster_ips(found: Found, spec: JSON, old: JSON) -> None:
    """Addresses, their families and the policy for both go together."""
    if spec["type"] == "ExternalName":
        return
    one, given = spec.get("clusterIP", ""), spec.get("clusterIPs") or []
    path = "spec.clusterIPs"
    if one and not given:
        found.required(path)
    elif one and given[0] != one:
        found.invalid(path, given, "first value must match `clusterIP`")
    elif not one and given:
        detail = "must be empty when `clusterIP` is not specified"
        found.invalid(path, given, detail)
    _families(found, spec)
    if _values(found, given, old.get("clusterIPs") or []):
        _match(found, spec, given)


def _families(found: Found, spec: JSON) -> None:
    seen: set[str] = set()
    for index, family in enumerate(spec.get("ipFamilies") or ()):
        path = f"spec.ipFamilies[{index}]"
        found.one_of(path, family, _FAMILIES)
        if family in seen:
            found.duplicate(path, family)
        seen.add(family)
    policy = spec.get("ipFamilyPolicy")
    if policy is not None:
        found.one_of("spec.ipFamilyPolicy", policy, _POLICIES)


def _values(found: Found, given: list[str], old: list[str]) -> bool:
    """Whether all are addresses, so that they can be looked at further."""
    path, before = "spec.clusterIPs", len(found)
    for index, address in enumerate(given):
        if index == 0 and address == "None":
            if len(given) > 1:
                found.invalid(path, given, "'None' must be the first and only value")
        elif address not in old:
            found.each(f"{path}[{index}]", address, texts.ip(address))
    good = len(found) == before
    if len(given) > 2:
        found.invalid(path, given, "may only hold up to 2 values")
    return good


def _match(found: Found, spec: JSON, given: list[str]) -> None:
    path = "spec.clusterIPs"
    if len(given) > 1:
        versions = {":" in each for each in given}
        if len(given) != 2 or len(versions) != 2:
            detail = "may specify no more than one IP for each IP family"
            found.invalid(path, given, detail)
    families = spec.get("ipFamilies") or ()
    if is_headless(spec):
        return
    for index, (address, family) in enumerate(zip(given, families, strict=False)):
        if (family == "IPv6") != (":" in address):
            detail = f"expected an {family} value as indicated by `ipFamilies[{index}]`"
            found.invalid(f"{path}[{index}]", address, detail)


def changed_ips(found: Found, spec: JSON, old: JSON) -> None:
    """An address that was given stays."""
    if "ExternalName" in (spec["type"], old["type"]):
        return
    if is_headless(spec) and is_headless(old):
        return
    new, before = spec.get("clusterIPs") or [], old.get("clusterIPs") or []
    if len(new) == len(before):
        for index, (address, was) in enumerate(zip(new, before, strict=True)):
            if address != was:
                found.invalid(f"spec.clusterIPs[{index}]", new, _ONCE)
        return
    if not new:
        detail = "primary clusterIP can not be unset"
        found.invalid("spec.clusterIPs[0]", None, detail)
    elif before and new[0] != before[0]:
        found.invalid("spec.clusterIPs[0]", new, _ONCE)
    if len(new) == 1 and spec.get("ipFamilyPolicy") != "SingleStack" and before:
        detail = "must be set to 'SingleStack' when releasing the secondary clusterIP"
        found.invalid("spec.ipFamilyPolicy", spec.get("ipFamilyPolicy"), detail)


def changed_families(found: Found, spec: JSON, old: JSON) -> None:
    if "ExternalName" in (spec["type"], old["type"]):
        return
    if is_headless(spec) or is_headless(old):
        return
    new, before = spec.get("ipFamilies") or [], old.get("ipFamilies") or []
    if len(new) == len(before):
        for family, was in zip(new, before, strict=True):
            if family != was:
                found.invalid("spec.ipFamilies[0]", new, _ONCE)
    elif new and before and new[0] != before[0]:
        found.invalid("spec.ipFamilies[0]", spec.get("clusterIPs"), _ONCE)
