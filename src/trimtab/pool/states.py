"""The states of a worker, the moves between them, and the words that metrics use."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final


class State(Enum):
    """Where a worker is in its life; the values are the words on the wire."""

    SPAWNING = "spawning"
    """The row is there, its pod is being made; nobody may have it yet."""
    IDLE = "idle"
    """Ready, bound to no tenant: anybody may claim it."""
    ACTIVATING = "activating"
    """Claimed, and being bound to its tenant by a call to it."""
    HOT = "hot"
    """Checked out: one holder uses it, under its present epoch."""
    HOT_IDLE = "hot-idle"
    """Bound to a tenant and not in use: a request of that tenant may claim it."""
    DRAINING = "draining"
    """On its way out and still alive: its pod is being deleted."""
    RETIRED = "retired"
    """Over, as planned."""
    LOST = "lost"
    """Over, because it crashed or went away by itself."""


TERMINAL: Final = frozenset({State.RETIRED, State.LOST})
LIVING: Final = frozenset(State) - TERMINAL
PARKED: Final = frozenset({State.IDLE, State.HOT_IDLE})
"""Free for a claim."""
TAKEN: Final = frozenset({State.ACTIVATING, State.HOT})
"""Has a checkout."""

_ENDS: Final = frozenset({State.DRAINING, State.RETIRED, State.LOST})

ALLOWED: Final[Mapping[State, frozenset[State]]] = {
    State.SPAWNING: frozenset({State.IDLE}) | _ENDS,
    State.IDLE: frozenset({State.ACTIVATING, State.HOT}) | _ENDS,
    State.ACTIVATING: frozenset({State.HOT}) | _ENDS,
    State.HOT: frozenset({State.HOT_IDLE}) | _ENDS,
    State.HOT_IDLE: frozenset({State.HOT}) | _ENDS,
    State.DRAINING: frozenset({State.RETIRED, State.LOST}),
    State.RETIRED: frozenset(),
    State.LOST: frozenset(),
}
"""The moves from one state to another. Staying where one is (a mark, a heartbeat) is
allowed in every state that is not terminal."""


class Reason(Enum):
    """Why a worker ended."""

    NORMAL = "normal"
    IDLE_EXPIRED = "idle-expired"
    IDLE_CAP = "idle-cap"
    SPAWN_FAILED = "spawn-failed"
    ACTIVATION_FAILED = "activation-failed"
    BEGIN_FAILED = "begin-failed"
    CLEAN_FAILED = "clean-failed"
    HOLDER_DEAD = "holder-dead"
    OWNER_DEAD = "owner-dead"
    STUCK = "stuck"
    OUTDATED = "outdated"
    DRAINED = "drained"
    SURPLUS = "surplus"
    POD_GONE = "pod-gone"


CRASHES: Final = frozenset({Reason.POD_GONE})
"""Reasons that end in LOST; all others end in RETIRED."""


class Operation(Enum):
    """What a write to a row was for."""

    SPAWN = "spawn"
    READY = "ready"
    CLAIM = "claim"
    ACTIVATE = "activate"
    HEARTBEAT = "heartbeat"
    PARK = "park"
    MARK = "mark"
    UNMARK = "unmark"
    FENCE = "fence"
    DRAIN = "drain"
    RETIRE = "retire"
    RENEW = "renew"


class Origin(Enum):
    """Which part of the pool wrote it."""

    ACQUIRE = "acquire"
    RELEASE = "release"
    SPAWNER = "spawner"
    REAPER = "reaper"
    LEADER = "leader"
    ACCOUNTS = "accounts"
    SHUTDOWN = "shutdown"
    REQUEST = "request"


class Outcome(Enum):
    """How a write went."""

    WRITTEN = "written"
    RECOVERED = "recovered"
    """The answer was lost, and a second look showed that it was written."""
    STALE = "stale"
    """Somebody else wrote first, or the row is gone."""
    FAILED = "failed"


class Source(Enum):
    """Where a worker that was handed out came from."""

    HOT_IDLE = "hot-idle"
    IDLE = "idle"
    SPAWN = "spawn"
