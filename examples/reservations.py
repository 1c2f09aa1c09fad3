"""Webhooks: an operator with a say in what is written, and a kind in two versions.

It refuses parties that no table holds, fills in the hour if somebody leaves it out, and
serves v1, where day and hour are one text, beside v2: ``trimtab dev
examples/reservations.py``, and then ``kubectl get reservations.v1.example.com``.
"""

from __future__ import annotations

from msgspec.structs import replace

import trimtab
from trimtab import (
    Context,
    Refused,
    Resource,
    Result,
    Review,
    Scope,
    Spec,
    Status,
    field,
)

LARGEST = 12
"""Guests at the largest table."""
EVENING = "19:00"


class ReservationStatus(Status):
    """What the house says."""

    table: str = ""


class OldReservationSpec(Spec):
    """When, in one text, and for how many."""

    when: str = field(
        pattern=r"^\d{4}-\d{2}-\d{2}( \d{2}:\d{2})?$", doc="As 2030-05-01 19:00."
    )
    guests: int = 2


class OldReservation(
    Resource, group="example.com", version="v1", kind="Reservation", storage=False
):
    """A reservation as it was."""

    spec: OldReservationSpec
    status: ReservationStatus = ReservationStatus()


class ReservationSpec(Spec):
    """The day, the hour, and for how many; ``note`` has no place in v1."""

    day: str = field(pattern=r"^\d{4}-\d{2}-\d{2}$", doc="As 2030-05-01.")
    hour: str = field(default="", doc="As 19:00.")
    guests: int = field(default=2, minimum=1)
    note: str = ""


class Reservation(Resource, group="example.com", version="v2"):
    """A table for an evening."""

    spec: ReservationSpec
    status: ReservationStatus = ReservationStatus()


app = trimtab.Operator("reservations")


@app.reconciles(Reservation, scope=Scope(everything=True))
async def reservation(wish: Reservation, ctx: Context) -> Result:
    """Find a table, which is the smallest that does."""
    size = "small" if wish.spec.guests <= 4 else "large"
    return ctx.done(status=ReservationStatus(table=size))


@app.validates(Reservation)
async def fits(wish: Reservation, review: Review[Reservation]) -> None:
    """Called before anything is written; what it says is what the user reads."""
    if wish.spec.guests > LARGEST:
        raise Refused(
            f"spec.guests: {wish.spec.guests} are too many; {LARGEST} at most."
        )
    if review.old and review.old.spec.day != wish.spec.day:
        review.warn("spec.day: another day may mean another table.")


@app.mutates(Reservation)
def filled(wish: Reservation, review: Review[Reservation]) -> Reservation | None:
    """Called before that; only what it changed is written."""
    if wish.spec.hour:
        return None
    return replace(wish, spec=replace(wish.spec, hour=EVENING))


@app.converts(OldReservation, Reservation)
def up(old: OldReservation) -> Reservation:
    """From v1 to v2, whenever somebody writes the one and reads the other."""
    day, _, hour = old.spec.when.partition(" ")
    spec = ReservationSpec(day=day, hour=hour, guests=old.spec.guests)
    return Reservation(spec=spec, status=old.status)


@up.back
def down(new: Reservation) -> OldReservation:
    """And back. The note, which v1 has no place for, is not lost: Trimtab keeps it."""
    when = f"{new.spec.day} {new.spec.hour}".strip()
    spec = OldReservationSpec(when=when, guests=new.spec.guests)
    return OldReservation(spec=spec, status=new.status)
