"""Resources: names and amounts of what containers ask for and quotas grant."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from trimtab.api.quantity import Quantity
from trimtab.embedded.builtin.remembered import remembered
from trimtab.embedded.builtin.validation import texts
from trimtab.embedded.builtin.validation.problems import Found

Names = Callable[[str], tuple[str, ...]]

ZERO: Final = Quantity(0)
_HUGE: Final = "hugepages-"
_COUNTED: Final = frozenset(
    "pods resourcequotas services replicationcontrollers secrets configmaps "
    "persistentvolumeclaims services.nodeports services.loadbalancers".split()
)
_COMPUTED: Final = frozenset(
    "cpu memory ephemeral-storage requests.cpu requests.memory requests.storage "
    "requests.ephemeral-storage limits.cpu limits.memory "
    "limits.ephemeral-storage".split()
)
QUOTAS: Final = _COUNTED | _COMPUTED
STANDARD: Final = QUOTAS | {"storage"}
CONTAINER: Final = frozenset({"cpu", "memory", "ephemeral-storage"})
_NOT_STANDARD: Final = "must be a standard resource type or fully qualified"


@remembered
def resource_name(name: str) -> tuple[str, ...]:
    """Problems of any resource's name."""
    if problems := texts.key(name):
        return problems
    known = name in STANDARD or name.startswith((_HUGE, f"requests.{_HUGE}"))
    return () if "/" in name or known else (_NOT_STANDARD,)


@remembered
def container_resource_name(name: str) -> tuple[str, ...]:
    """Problems of the name of a resource that a container can ask for."""
    problems = resource_name(name)
    if "/" not in name:
        if name not in CONTAINER and not name.startswith(_HUGE):
            return (*problems, "must be a standard resource for containers")
    elif not is_native(name) and not is_extended(name):
        return (*problems, "doesn't follow extended resource name standard")
    return problems


@remembered
def quota_resource_name(name: str) -> tuple[str, ...]:
    """Problems of the name of a resource that a quota can limit."""
    problems = resource_name(name)
    if "/" in name or is_quota(name):
        return problems
    return (*problems, "must be a standard resource for quota")


def is_quota(name: str) -> bool:
    return name in QUOTAS or name.startswith((_HUGE, f"requests.{_HUGE}"))


def is_native(name: str) -> bool:
    return "/" not in name or "kubernetes.io/" in name


@remembered
def is_extended(name: str) -> bool:
    if is_native(name) or name.startswith("requests."):
        return False
    return not texts.key(f"requests.{name}")


def is_huge_page(name: str) -> bool:
    return name.startswith(_HUGE)


def overcommits(name: str) -> bool:
    """Whether more of it may be promised than there is."""
    return is_native(name) and not is_huge_page(name)


def is_integer(name: str) -> bool:
    return name in _COUNTED or is_extended(name)


def amount(found: Found, name: str, value: str, path: str) -> None:
    """An amount is not negative, and whole where parts make no sense."""
    quantity = Quantity(value)
    if quantity < ZERO:
        found.invalid(path, value, texts.NEGATIVE)
    if is_integer(name) and quantity.milli % 1000:
        found.invalid(path, value, "must be an integer")


def _huge_page(found: Found, name: str, value: str, path: str) -> None:
    try:
        size = Quantity(name.removeprefix(_HUGE))
    except ValueError:
        size = ZERO
    whole = size > ZERO and size.milli % 1000 == 0
    if not whole or int(Quantity(value)) % int(size):
        detail = f"{value} is not positive integer multiple of {name}"
        found.invalid(path, value, detail)


def requirements(
    found: Found,
    given: Mapping[str, Any],
    path: str,
    *,
    claims: Collection[str] = (),
    pod: bool = False,
) -> None:
    """Requests and limits of a container, or of a whole pod."""
    limits = given.get("limits") or {}
    requests = given.get("requests") or {}
    for name, value in limits.items():
        where = f"{path}.limits[{name}]"
        _name(found, name, where, pod=pod)
        amount(found, name, value, where)
        if is_huge_page(name):
            _huge_page(found, name, value, where)
    for name, value in requests.items():
        where = f"{path}.requests[{name}]"
        _name(found, name, where, pod=pod)
        amount(found, name, value, where)
        _within(found, name, value, limits.get(name), path)
        if is_huge_page(name):
            _huge_page(found, name, value, where)
    asked = limits.keys() | requests.keys()
    if any(map(is_huge_page, asked)) and not asked & {"cpu", "memory"}:
        found.forbidden(path, "HugePages require cpu or memory")
    if given.get("claims"):
        _claims(found, given["claims"], claims, f"{path}.claims")


def _name(found: Found, name: str, path: str, *, pod: bool) -> None:
    if not pod:
        found.each(path, name, container_resource_name(name))
    elif problems := resource_name(name):
        found.each(path, name, problems)
    elif name not in ("cpu", "memory") and not is_huge_page(name):
        found.unsupported(path, name, ("cpu", "hugepages-", "memory"))


def _within(found: Found, name: str, value: str, limit: str | None, path: str) -> None:
    """A request is at most the limit; what cannot be overcommitted equals it."""
    if limit is None:
        if not overcommits(name):
            detail = "Limit must be set for non overcommitable resources"
            found.required(f"{path}.limits", detail)
        return
    if value == limit:
        return
    request, most = Quantity(value), Quantity(limit)
    if request != most and not overcommits(name):
        detail = f"must be equal to {name} limit of {limit}"
        found.invalid(f"{path}.requests", value, detail)
    elif request > most:
        detail = f"must be less than or equal to {name} limit of {limit}"
        found.invalid(f"{path}.requests", value, detail)


def _claims(
    found: Found, given: list[dict[str, Any]], known: Collection[str], path: str
) -> None:
    names: set[str] = set()
    for index, claim in enumerate(given):
        where, name = f"{path}[{index}]", claim["name"]
        if not name:
            found.required(where)
            continue
        _claim(found, claim, names, where)
        if name not in known:
            detail = "must be one of the names in pod.spec.resourceClaims"
            listed = ", ".join(sorted(known))
            detail += f": {listed}" if known else " which is empty"
            found.not_found(where, name, detail)


def _claim(found: Found, claim: dict[str, Any], names: set[str], path: str) -> None:
    name, request = claim["name"], claim.get("request", "")
    if name in names:
        found.duplicate(path, name)
        return
    if request:
        found.each(f"{path}.request", request, texts.label(request))
    key = f"{name}/{request}" if request else name
    if key in names:
        found.duplicate(path, key)
    elif not request:
        for other in names:
            if other.startswith(f"{name}/"):
                found.duplicate(path, name)
    names.add(key)
