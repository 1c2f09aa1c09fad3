"""Laws of owners: a partial holds one owner's fields, and writes what it was given."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.api.codec import decode
from trimtab.api.conditions import Conditions
from trimtab.api.objects import Object, Schema, Spec, Status, field, wire
from trimtab.api.owners import CONTROLLER, owners, status_of
from trimtab.api.quantity import Quantity
from trimtab.api.resource import Resource
from trimtab.kinds import ConfigMap, Pod


class Part(Object):
    name: str
    size: int = 0


class JobStatus(Status):
    phase: Literal["", "Running", "Done"] = ""
    conditions: Conditions = Conditions()
    node: str = field(default="", owner="scheduler")
    score: float | None = field(default=None, owner="node")
    frames: int = field(default=0, owner="node")
    paused: bool = field(default=False, owner="node")
    error: str | None = field(default=None, owner="node", nullable=True)
    ended: Annotated[datetime | None, Schema(nullable=True)] = field(
        default=None, owner="node"
    )
    parts: list[Part] = field(default=[], owner="node")
    sizes: dict[str, Quantity] = field(default={}, owner="node")
    class_: str = field(default="", owner="node")


class Job(Resource, group="example.com", version="v1"):
    status: JobStatus = JobStatus()


NODE = (
    *("score", "frames", "paused", "error", "ended"),
    *("parts", "sizes", "class_"),
)


def test_each_field_has_one_owner_and_the_controller_is_the_default() -> None:
    assert owners(Job) == {
        CONTROLLER: ("phase", "conditions"),
        "scheduler": ("node",),
        "node": NODE,
    }
    assert owners(JobStatus) == owners(Job)


def test_a_class_can_name_the_owner_of_all_its_fields() -> None:
    class NodeStatus(Status, owner="node"):
        score: float = 0.0
        frames: int = field(default=0, minimum=0)
        phase: str = field(default="", owner="scheduler")
        ours: str = field(default="", owner="")

    class Wider(NodeStatus):
        more: str = ""

    assert owners(NodeStatus) == {
        "": ("ours",),
        "node": ("score", "frames"),
        "scheduler": ("phase",),
    }
    assert owners(Wider)[""] == ("ours", "more")


def test_a_partial_is_the_same_class_each_time_however_it_is_asked_for() -> None:
    assert status_of(Job, "node") is status_of(Job, "node")
    assert Job.status_of("node") is status_of(Job, "node")
    assert Job.status_of() is status_of(Job, CONTROLLER)
    assert status_of(Job, "node").__struct_fields__ == NODE


given_fields = st.fixed_dictionaries(
    {},
    optional={
        "score": st.floats(allow_nan=False, allow_infinity=False),
        "frames": st.integers(),
        "paused": st.booleans(),
        "error": st.none() | st.text(),
        "parts": st.lists(st.builds(Part, name=st.text(), size=st.integers())),
        "class_": st.text(),
    },
)


@given(given_fields)
def test_a_partial_writes_exactly_what_it_was_given(given: dict[str, Any]) -> None:
    written = wire(status_of(Job, "node")(**given))
    assert set(written) == {name.rstrip("_") for name in given}


def test_nothing_given_is_nothing_written() -> None:
    assert wire(status_of(Job, "node")()) == {}


def test_zero_false_and_empty_are_written_when_given() -> None:
    partial = status_of(Job, "node")(
        score=0.0, frames=0, paused=False, parts=[], sizes={}, class_=""
    )
    assert wire(partial) == {
        "score": 0.0,
        "frames": 0,
        "paused": False,
        "parts": [],
        "sizes": {},
        "class": "",
    }


def test_none_is_null_where_the_field_is_nullable_and_gives_it_up_elsewhere() -> None:
    partial = status_of(Job, "node")(error=None, ended=None, score=None)
    assert wire(partial) == {"error": None, "ended": None}


def test_conditions_are_written_by_their_owner() -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    conditions = Conditions().set("Ready", True, reason="Why", now=now)
    [written] = wire(status_of(Job)(conditions=conditions))["conditions"]
    assert written["type"] == "Ready"


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        (
            {"phase": "Done"},
            "JobStatus.phase is written by the controller, not by node",
        ),
        ({"node": "a"}, "JobStatus.node is written by scheduler, not by node"),
        ({"nope": 1}, "JobStatus has no field 'nope'; it has phase, conditions, node"),
        ({"score": "1"}, r"JobStatus\.score is of type str, not float \| None"),
        ({"frames": 1.0}, r"JobStatus\.frames is of type float, not int"),
        ({"frames": True}, r"JobStatus\.frames is of type bool, not int"),
        ({"paused": 0}, r"JobStatus\.paused is of type int, not bool"),
        ({"frames": None}, r"JobStatus\.frames is of type NoneType, not int"),
        ({"parts": (Part(name="a"),)}, r"parts is of type tuple, not list\[Part\]"),
        ({"parts": [Part(name="a"), "b"]}, r"parts\[1\] is of type str, not Part"),
        ({"parts": [Part(name=3)]}, r"parts\[0\]\.name is of type int, not str"),  # type: ignore[arg-type]
        ({"sizes": {"a": "1Gi"}}, r"sizes\['a'\] is of type str, not Quantity"),
    ],
)
def test_a_value_that_is_not_the_owners_or_not_of_its_type_is_refused(
    values: dict[str, Any], problem: str
) -> None:
    with pytest.raises(TypeError, match=problem):
        status_of(Job, "node")(**values)


def test_a_choice_is_checked_when_the_partial_is_made() -> None:
    assert status_of(Job)(phase="Done")
    with pytest.raises(TypeError, match=r"JobStatus\.phase is of type str, not Liter"):
        status_of(Job)(phase="Finished")


def test_an_unknown_owner_is_refused_with_those_there_are() -> None:
    with pytest.raises(ValueError, match="owners are '', 'scheduler', 'node'"):
        status_of(Job, "nod")


class Bare(Resource, group="example.com", version="v1"):
    data: dict[str, str] = {}


class Untyped(Resource, group="example.com", version="v1"):
    status: dict[str, Any] = {}


class SomeSpec(Spec):
    size: int = 0


@pytest.mark.parametrize("kind", [Bare, ConfigMap, SomeSpec])
def test_what_has_no_status_has_no_owners(kind: Any) -> None:
    with pytest.raises(TypeError, match="has no status"):
        owners(kind)


def test_an_untyped_status_has_no_owners() -> None:
    with pytest.raises(TypeError, match="Untyped"):
        status_of(Untyped)


def test_a_built_in_kind_has_a_partial_too() -> None:
    written = wire(Pod.status_of()(phase="Running", message=""))
    assert written == {"phase": "Running", "message": ""}


def test_a_partial_shows_only_what_it_holds_and_reads_back() -> None:
    partial = status_of(Job, "node")
    assert repr(partial(score=0.5)) == "JobStatus_node(score=0.5)"
    assert decode(partial, b'{"score":0.5,"phase":"Done"}') == partial(score=0.5)
