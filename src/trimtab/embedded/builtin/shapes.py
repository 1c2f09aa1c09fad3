"""Shapes: built-in objects as Go's JSON would give them back.

The real server reads an object into a Go struct and writes that. What it did not know,
or what was null or empty, is gone; structs that are not pointers are always there; and
quantities and times have their canonical form. Clients compare with what they sent, so
the same happens here. The facts come from the Go types (``data/shapes.json``, recorded
by ``hack/record_builtin_shapes.py``, where the notation is explained).

A function is made of each type, once: it takes a value, tidies it in place and returns
what stands for it, or ``GONE``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from importlib.resources import files
from typing import Any, Final

import msgspec

from trimtab.embedded.builtin.selfreading import first_problem
from trimtab.embedded.builtin.values import Fix, Mismatch, go_type_of, leaf, refuse

Make = Callable[[], Any]

GONE: Final = object()
"""What is left out."""

PACKAGES: Final = {
    "": "core",
    "rbac.authorization.k8s.io": "rbac",
    "networking.k8s.io": "networking",
    "storage.k8s.io": "storage",
    "admissionregistration.k8s.io": "admissionregistration",
    "scheduling.k8s.io": "scheduling",
    "coordination.k8s.io": "coordination",
    "node.k8s.io": "node",
    "discovery.k8s.io": "discovery",
    "resource.k8s.io": "resource",
    "events.k8s.io": "events",
    "certificates.k8s.io": "certificates",
    "authentication.k8s.io": "authentication",
    "authorization.k8s.io": "authorization",
    "flowcontrol.apiserver.k8s.io": "flowcontrol",
    "apiregistration.k8s.io": "apiregistration",
}
"""The Go package of each group whose package is not named like the group."""


OFF: Final = {
    "core.v1.PodSpec": ("schedulingGroup",),
    "core.v1.PodStatus": ("nodeAllocatableResourceClaimStatuses",),
    "core.v1.Lifecycle": ("stopSignal",),
    "coordination.v1.LeaseSpec": ("strategy", "preferredHolder"),
    "apps.v1.RollingUpdateStatefulSetStrategy": ("maxUnavailable",),
    "core.v1.VolumeProjection": ("clusterTrustBundle", "podCertificate"),
    "storage.v1.CSIDriverSpec": ("preventPodSchedulingIfMissing",),
    "resource.v1.Device": ("nodeAllocatableResourceMappings",),
    "resource.v1.DeviceAttribute": ("bools", "ints", "strings", "versions"),
}
"""Fields of features that are off: what they say is dropped."""


@lru_cache(maxsize=1)
def _facts() -> dict[str, dict[str, str]]:
    data = files(__package__).joinpath("data/shapes.json").read_bytes()
    return msgspec.json.decode(data, type=dict[str, dict[str, str]])


@lru_cache(maxsize=256)
def shape_of(group: str, kind: str, version: str = "v1") -> str:
    """The name of a kind's type, such as ``apps.v1.Deployment``; empty if unknown."""
    name = f"{PACKAGES.get(group, group)}.{version}.{kind}"
    return name if name in _facts() else ""


@lru_cache(maxsize=1024)
def declared(definition: str) -> dict[str, str]:
    """The fields of a definition in the order of its Go struct, each with its type
    as ``data/shapes.json`` writes it; none if that struct is not known."""
    found = _facts().get(".".join(definition.split(".")[-3:]), {})
    return {key: code.rpartition("~")[2].lstrip("!?*") for key, code in found.items()}


class _Losses:
    """How many fields were dropped because a struct does not have them."""

    count = 0


def has_shape(group: str, kind: str, version: str) -> bool:
    """Whether the Go type of a kind is known; that of a custom kind is not."""
    return bool(shape_of(group, kind, version))


def shape(group: str, kind: str, obj: dict[str, Any]) -> bool:
    """Make an object, in place, what Go makes of it; True if fields were dropped.

    Assumptions: a kind without a shape (a custom one, say) is left as it is.

    Errors: ``conform.Mistyped`` in Go's words for a value that a field cannot hold.
    """
    version = str(obj.get("apiVersion", "v1")).rpartition("/")[2]
    name = shape_of(group, kind, version)
    before = _Losses.count
    if name:
        try:
            struct(name)(obj)
        except Mismatch as first:
            fields = _facts().__getitem__
            raise first_problem(name, obj, fields=fields) or first from None
    return _Losses.count != before


@lru_cache(maxsize=4096)
def struct(shape: str) -> Fix:
    """The function of a struct; recursive types are why fields come in later."""
    fields: dict[str, Fix] = {}
    always: list[tuple[str, Make]] = []
    inlined: dict[str, str] = {}
    name = shape.rpartition(".")[2]

    def fix(value: Any) -> Any:
        if type(value) is not dict:
            refuse(value, go_type_of(f"@{shape}"))
        if not fields:
            _fill(shape, fields, always, inlined)
        changes: list[tuple[str, Any]] | None = None
        key = ""
        try:
            for key, old in value.items():
                fixer = fields.get(key)
                if fixer is None:
                    _Losses.count += 1
                    new = GONE
                else:
                    new = fixer(old)
                if new is not old:
                    if changes is None:
                        changes = []
                    changes.append((key, new))
        except Mismatch as mismatch:
            mismatch.struct = mismatch.struct or name
            mismatch.path[:0] = [inlined[key], key] if key in inlined else [key]
            raise
        if changes is not None:
            _change(value, changes)
        for key, make in always:
            if key not in value:
                value[key] = make()
        return value

    return fix


def _change(value: dict[str, Any], changes: list[tuple[str, Any]]) -> None:
    for key, new in changes:
        if new is GONE:
            del value[key]
        else:
            value[key] = new


def _fill(
    shape: str,
    fields: dict[str, Fix],
    always: list[tuple[str, Make]],
    inlined: dict[str, str],
) -> None:
    for name, code in _facts()[shape].items():
        if name in OFF.get(shape, ()):
            continue
        if code[0] == "~":
            _, inlined[name], code = code.split("~")
        kept = code[0] == "!"
        code = code.removeprefix("!")
        fields[name] = _field(code, kept=kept)
        if kept or code[0] in "@qxtu":
            always.append((name, zero(code)))


def zero(code: str) -> Make:
    """What Go writes for the zero value of a type."""
    kind = code[0]
    if kind == "@":
        shape = code[1:]
        return lambda: struct(shape)({})
    value = {"s": "", "i": 0, "b": False, "f": 0, "q": "0", "x": 0, "d": "0s"}.get(kind)
    return lambda: value


def _field(code: str, *, kept: bool) -> Fix:
    """The function of a field: what is empty may be left out."""
    if code == "*@core.v1.Lifecycle":
        return _wiped(_value(code[1:]))
    if code[0] in "*j":
        return _nullable(_value(code.removeprefix("*")))
    if code[0] == "?":
        return _emptied(_value(code[1:]), ())
    fix = _value(code)
    if code[0] in "@qxtu" or kept:
        return _kept(fix, zero(code), lists=code[0] in "[{")
    if code[0] == "[":
        return _list_or_gone(fix)
    if code[0] == "s":
        return _text_or_gone(code)
    return _emptied(fix, ("", 0, False, [], {}))


def _nullable(fix: Fix) -> Fix:
    return lambda value: GONE if value is None else fix(value)


def _wiped(fix: Fix) -> Fix:
    """With the feature that is off goes the struct that says nothing else."""

    def wiped(value: Any) -> Any:
        if value is None:
            return GONE
        said = bool(value)
        fixed = fix(value)
        return GONE if said and not fixed else fixed

    return wiped


def _emptied(fix: Fix, empties: tuple[Any, ...]) -> Fix:
    def emptied(value: Any) -> Any:
        if value is None:
            return GONE
        fixed = fix(value)
        return GONE if fixed in empties else fixed

    return emptied


def _list_or_gone(fix: Fix) -> Fix:
    return lambda value: fix(value) if value else _none(value, fix)


def _none(value: Any, fix: Fix) -> Any:
    if value is not None:
        fix(value)
    return GONE


def _text_or_gone(code: str) -> Fix:
    go_type = go_type_of(code)

    def text(value: Any) -> Any:
        if type(value) is str:
            return value or GONE
        if value is None:
            return GONE
        refuse(value, go_type)

    return text


def _kept(fix: Fix, make: Make, *, lists: bool) -> Fix:
    # The store keeps no difference between an empty list and none.
    if lists:
        return lambda value: None if value is None else fix(value) or None
    return lambda value: make() if value is None else fix(value)


@lru_cache(maxsize=4096)
def _value(code: str) -> Fix:
    """The function of a value that is there."""
    kind = code[0]
    if kind == "@":
        return struct(code[1:])
    if kind == "[":
        return _list(code)
    if kind == "{":
        return _map(code)
    if kind == "*":
        return _value(code[1:])
    return leaf(code)


def _list(code: str) -> Fix:
    fix, make, go_type = _value(code[1:]), zero(code[1:]), go_type_of(code)

    def fix_list(value: Any) -> Any:
        if type(value) is not list:
            refuse(value, go_type)
        for index, old in enumerate(value):
            new = make() if old is None else fix(old)
            if new is not old:
                value[index] = new
        return value

    return fix_list


def _map(code: str) -> Fix:
    # Bytes in maps are stored as empty ones, elsewhere as none.
    make = (lambda: "") if code == "{y" else zero(code[1:])
    fix, go_type = _value(code[1:]), go_type_of(code)

    def fix_map(value: Any) -> Any:
        if type(value) is not dict:
            refuse(value, go_type)
        for key, old in value.items():
            new = make() if old is None else fix(old)
            if new is not old:
                value[key] = new
        return value

    return fix_map


def go_order(shape: str, value: dict[str, Any]) -> dict[str, Any]:
    """A value whose fields stand in the order in which Go writes them."""
    made: dict[str, Any] = {}
    for name, code in _facts()[shape].items():
        if name in value:
            plain = code.rpartition("~")[2].lstrip("!?*")
            made[name] = _ordered(plain, value[name])
    return made


def _ordered(code: str, value: Any) -> Any:
    if value is None:
        return None
    if code[0] == "@":
        return go_order(code[1:], value)
    if code[0] == "[":
        return [_ordered(code[1:].lstrip("*"), each) for each in value]
    if code[0] == "{":
        return {key: _ordered(code[1:], value[key]) for key in sorted(value)}
    return value
