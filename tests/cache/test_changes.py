"""Changes name the fields that differ, and predicates choose by them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cache.robots import Robot, robot
from trimtab.api import convert
from trimtab.cache import Change, Predicate, differences
from trimtab.cache.changes import is_newer


def modified(old: Robot | None, new: Robot, **rest: Any) -> Change[Robot]:
    return Change("MODIFIED", new.key, old, new, **rest)


def test_differences_are_named_two_levels_deep() -> None:
    old = robot("r", 1, spec={"arm": "left", "extra": {"a": 1}}, labels={"x": "1"})
    new = robot("r", 2, spec={"arm": "right", "extra": {"a": 2}}, labels={"x": "2"})
    assert differences(old, new) == ("metadata.labels", "spec.arm", "spec.extra")


def test_what_the_server_moves_with_every_write_is_no_difference() -> None:
    old = robot("r", 1)
    assert differences(old, robot("r", 2)) == ()


def test_conditions_are_one_difference() -> None:
    status = {"conditions": [{"type": "Ready", "status": "True"}]}
    assert differences(robot("r"), robot("r", status=status)) == ("status.conditions",)


@pytest.mark.parametrize(
    ("path", "matches"),
    [
        ("spec", True),
        ("spec.arm", True),
        ("spec.extra", False),
        ("status", False),
        ("metadata.labels", True),
        ("metadata.labels.app.kubernetes.io/name", True),
        ("metadata.labels.other", False),
        ("metadata.annotations", False),
    ],
)
def test_a_predicate_matches_when_its_field_changed(path: str, matches: bool) -> None:
    old = robot("r", 1, labels={"app.kubernetes.io/name": "x"}, spec={"arm": "left"})
    new = robot("r", 2, labels={"app.kubernetes.io/name": "y"}, spec={"arm": "right"})
    assert Predicate(Robot, [path]).matches(modified(old, new)) is matches


def test_a_path_below_a_map_is_followed_and_its_methods_are_not_fields() -> None:
    old = robot("r", 1, spec={"extra": {"a": {"b": 1}, "items": 1}})
    new = robot("r", 2, spec={"extra": {"a": {"b": 2}, "items": 1}})
    assert Predicate(Robot, ["spec.extra.a.b"]).matches(modified(old, new))
    assert not Predicate(Robot, ["spec.extra.a.c"]).matches(modified(old, new))
    assert not Predicate(Robot, ["spec.extra.items"]).matches(modified(old, new))


def test_additions_deletions_and_the_wish_to_delete_always_match() -> None:
    predicate = Predicate(Robot, ["spec.arm"])
    one = robot("r", 1)
    assert predicate.matches(Change("ADDED", one.key, None, one))
    assert predicate.matches(Change("DELETED", one.key, one, None))
    meta = {"name": "r", "deletionTimestamp": "2026-01-01T00:00:00Z"}
    gone = convert(Robot, {"metadata": meta})
    assert predicate.matches(modified(one, gone))
    assert not predicate.matches(modified(gone, gone))


def test_without_the_old_object_the_named_fields_decide() -> None:
    new = robot("r", 2)
    assert Predicate(Robot, ["spec.arm"]).matches(
        modified(None, new, fields=("spec.arm",))
    )
    assert Predicate(Robot, ["spec"]).matches(modified(None, new, fields=("spec.arm",)))
    assert Predicate(Robot, ["spec.extra.a.b"]).matches(
        modified(None, new, fields=("spec.extra",))
    )
    assert not Predicate(Robot, ["spec.arm", "status"]).matches(
        modified(None, new, fields=("spec.tools", "metadata.labels"))
    )
    assert modified(None, new, fields=("spec.arm",)).differences() == ("spec.arm",)


@pytest.mark.parametrize("path", ["", "sepc", "spec.leg", "spec.tools.x", "spec.arm.x"])
def test_a_path_that_the_kind_does_not_have_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="Robot has no field"):
        Predicate(Robot, [path])


def test_versions_are_numbers_and_where_they_are_not_the_last_one_wins() -> None:
    assert is_newer("10", than="9")
    assert not is_newer("9", than="10")
    assert not is_newer("x", than="x")
    assert is_newer("x", than="y")
    assert is_newer("y", than="x")
