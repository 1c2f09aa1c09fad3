"""Scopes name what is watched, one text for each way to say it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cache.robots import Robot
from trimtab.api import LabelSelector, Selector
from trimtab.cache import Scope
from trimtab.kinds import Namespace


def test_a_scope_that_narrows_nothing_must_say_so() -> None:
    with pytest.raises(ValueError, match="everything=True"):
        Scope()
    with pytest.raises(ValueError, match="everything=True"):
        Scope(labels={}, namespaces=[])
    assert Scope(everything=True).everything


@pytest.mark.parametrize(
    "narrow",
    [
        {"namespaces": "a"},
        {"namespaces_where": "team"},
        {"labels": "app=x"},
        {"fields": "spec.nodeName=n"},
    ],
)
def test_everything_cannot_be_narrowed(narrow: dict[str, Any]) -> None:
    assert Scope(**narrow)
    with pytest.raises(ValueError, match="cannot also be narrowed"):
        Scope(everything=True, **narrow)


def test_ways_to_say_the_same_are_the_same_scope() -> None:
    said = Scope(namespaces=["b", "a", "b"], labels="x in (b, a),app=y")
    assert said == Scope(
        namespaces=("a", "b"), labels=Selector.from_string("app=y, x in (a,b)")
    )
    assert hash(said) == hash(Scope(namespaces=["a", "b"], labels=said.labels))
    assert Scope(labels={"app": "y"}) == Scope(
        labels=LabelSelector(matchLabels={"app": "y"})
    )
    assert Scope(fields={"spec.nodeName": "n"}) == Scope(fields="spec.nodeName==n")
    assert Scope(namespaces="a").namespaces == ("a",)


def test_namespaces_by_name_and_by_label_exclude_each_other() -> None:
    with pytest.raises(ValueError, match="namespaces_where"):
        Scope(namespaces="a", namespaces_where="team=b")


@pytest.mark.parametrize(
    "wrong",
    [
        {"namespaces": "not a namespace"},
        {"namespaces": [""]},
        {"labels": "=x"},
        {"fields": "x"},
    ],
)
def test_what_a_server_would_refuse_is_refused_at_definition(
    wrong: dict[str, Any],
) -> None:
    with pytest.raises(ValueError):
        Scope(**wrong)


def test_a_kind_without_namespaces_cannot_be_chosen_by_one() -> None:
    for scope in (Scope(namespaces="a"), Scope(namespaces_where="team")):
        scope.check(Robot)
        with pytest.raises(ValueError, match="in no namespace"):
            scope.check(Namespace)
    Scope(labels="a=b").check(Namespace)


def test_a_scope_reads_as_what_it_is() -> None:
    assert str(Scope(everything=True)) == "everything"
    assert str(Scope(namespaces=["a", "b"], labels="c=d")) == (
        "namespaces a,b; labels c=d"
    )
