"""A kind that uses everything the schema generator knows, for tests to send around."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, NewType

from trimtab.api.conditions import Conditions
from trimtab.api.objects import Object, Rule, Schema, Spec, Status, field
from trimtab.api.quantity import Quantity
from trimtab.api.resource import Column, Resource, Scale
from trimtab.api.selectors import LabelSelector
from trimtab.api.times import Duration, MicroTime
from trimtab.kinds import ConfigMap, Container

Percent = Annotated[int, Schema(minimum=0, maximum=100)]
Nickname = NewType("Nickname", str)


class Heat(enum.Enum):
    """How hot an oven is."""

    low = "Low"
    high = "High"


class Level(enum.IntEnum):
    """A shelf of the oven."""

    bottom = 1
    top = 2


class Door(Object):
    """What closes an oven.

    This second paragraph is for people who read the code.
    """

    color: str = "white"
    panes: int = 2
    handles: list[str] = []


class Port(Object):
    """Where one listens."""

    port: int = field(minimum=1, maximum=65535)
    protocol: str = "TCP"
    note: str = ""


class Mark(Object, map_type="atomic"):
    """A place on the dial."""

    x: int
    y: int = 0


class Loose(Object, preserve_unknown=True):
    """A thing of which only the name is known."""

    name: str = ""


class Span(Object, rules=[Rule(rule="self.low <= self.high", message="low is high")]):
    """From here to there."""

    low: int = 0
    high: int = 2**63 - 1


class KitchenSpec(Spec):
    """All that one can wish of a kitchen."""

    # scalars
    name: str = field(doc="What people call it.", min_length=1, max_length=40)
    tall: bool
    size: int
    weight: float
    secret: bytes = b""
    opened: datetime
    ticked: MicroTime | None = None
    wait: Duration = Duration("1m30s")
    memory: Quantity = Quantity("16Gi")
    port: int | str = "http"
    maybe_port: int | str | None = field(default=None, name="maybePort")
    nickname: Nickname = Nickname("")
    lambda_: str = ""
    # bounds and formats
    percent: Percent = 50
    ratio: float = field(
        default=0.5, minimum=0, maximum=1, exclusive_maximum=True, doc="Below one."
    )
    even: int = field(default=2, multiple_of=2, minimum=-100, maximum=100)
    small: int = field(default=0, format="int32")
    code: str = field(default="a-1", pattern="^[a-z]-[0-9]+$", max_length=10)
    address: str = field(default="127.0.0.1", format="ipv4")
    limit: Annotated[Quantity, Schema(doc="At most this.")] | None = None
    # choices
    color: Literal["red", "green"] = "red"
    turns: Literal[1, 2, 3] = 1
    shade: Literal["dark", "light", None] = None
    heat: Heat = Heat.low
    level: Level | None = None
    # null and absence
    parent: str | None = field(default=None, nullable=True)
    cap: Annotated[int | None, Schema(nullable=True)] = 5
    # lists
    words: list[str] = field(default_factory=lambda: ["one"], max_items=20)
    grid: list[list[int]] = []
    gaps: list[int | None] = []
    blobs: list[bytes] = []
    scores: list[Percent] = []
    doors: list[Door] = []
    ports: list[Port] = field(
        default=[], list_type="map", list_keys=("port", "protocol"), max_items=50
    )
    marks: list[Mark] = []
    unique: list[str] = field(default=[], list_type="set")
    tags: set[str] = set()
    numbers: frozenset[float] = frozenset()
    heats: set[Heat] = set()
    several: Sequence[int] = ()
    # maps
    labels: dict[str, str] = field(default={}, max_properties=20, map_type="atomic")
    amounts: dict[str, Quantity] = {}
    holes: dict[str, int | None] = {}
    rooms: dict[str, Door] = {}
    lists: dict[str, list[str]] = {}
    views: Mapping[str, float] = {}
    # whatever
    anything: Any = None
    nothing: Any = field(default=None, nullable=True)
    options: dict[str, Any] = {}
    things: list[Any] = []
    bags: list[dict[str, Any]] = []
    # classes
    door: Door = Door()
    front: Door = Door(color="black")
    back: Door | None = None
    span: Span = Span()
    loose: Loose = Loose()
    selector: LabelSelector = LabelSelector()
    containers: Sequence[Container] = ()
    template: dict[str, Any] | None = field(default=None, embedded_resource=True)
    config: ConfigMap | None = None
    replicas: int = field(default=1, minimum=0, format="int32")
    fixed: str = field(
        default="",
        max_length=100,
        rules=[Rule(rule="self == oldSelf", message="fixed stays as it is")],
    )


class Seen(Object):
    """Somebody who was there."""

    who: str
    times: int = 1


class KitchenStatus(Status):
    """What became of it."""

    replicas: int = field(default=0, minimum=0, format="int32")
    selector: str = ""
    phase: Literal["", "Cold", "Hot"] = ""
    score: float | None = field(default=None, owner="judge")
    cleared: str | None = field(default=None, owner="judge", nullable=True)
    seen: list[Seen] = field(
        default=[], list_type="map", list_keys=("who",), owner="judge"
    )
    door: Door = Door()
    since: datetime | None = None
    conditions: Conditions = Conditions()


class Kitchen(
    Resource,
    group="kitchens.example.com",
    version="v1",
    short=("kit", "ki"),
    categories=("all-rooms",),
    columns=[
        Column(name="Size", path=".spec.size", type="integer"),
        Column(
            name="Ready",
            path='.status.conditions[?(@.type=="Ready")].status',
            doc="Whether one can cook.",
        ),
        Column(name="Label", path="spec.name", priority=1),
    ],
    scale=Scale(
        spec_replicas=".spec.replicas",
        status_replicas=".status.replicas",
        label_selector=".status.selector",
    ),
    selectable=("spec.color", ".spec.tall", ".status.phase"),
    rules=[
        Rule(
            rule="self.metadata.name.size() <= 200",
            message="the name is too long",
            reason="FieldValueInvalid",
        )
    ],
):
    """A room to cook in."""

    spec: KitchenSpec
    status: KitchenStatus = KitchenStatus()


OPENED = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def kitchen_spec(**wishes: Any) -> KitchenSpec:
    """A spec with what is required, and what a test asks for."""
    given: dict[str, Any] = {
        "name": "mine",
        "tall": True,
        "size": 3,
        "weight": 1.5,
        "opened": OPENED,
    }
    return KitchenSpec(**(given | wishes))
