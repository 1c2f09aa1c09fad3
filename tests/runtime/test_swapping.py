"""Laws of swapping: a patch makes one value of another, and of two writers one wins.

What happens when answers get lost is tried in the simulations of the pool and of vmafx.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab import Metadata, Resource, Spec, Status
from trimtab.api import wire
from trimtab.client import Client, load
from trimtab.runtime.swapping import Part, Stale, Swaps, difference
from trimtab.testing import Cluster
from trimtab.testing.operating import install

NAMES = st.sampled_from("abc")
VALUES = st.recursive(
    st.integers(0, 3) | st.text("xy", max_size=2) | st.lists(st.integers(0, 2)),
    lambda inner: st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(NAMES, VALUES, max_size=3)


def merged(old: Any, patch: Any) -> Any:
    """What a server makes of a merge patch (RFC 7396)."""
    if not isinstance(patch, dict):
        return patch
    made = dict(old) if isinstance(old, dict) else {}
    for name, value in patch.items():
        made.pop(name, None) if value is None else made.update(
            {name: merged(made.get(name), value)}
        )
    return made


@given(OBJECTS, OBJECTS)
def test_a_difference_makes_one_object_of_the_other(
    old: dict[str, Any], new: dict[str, Any]
) -> None:
    assert merged(old, difference(old, new)) == new
    assert difference(old, old) == {}


class SeatStatus(Status):
    """Who has it."""

    holder: str = ""
    fence: int = 0


class SeatSpec(Spec):
    """Nothing is asked of it."""


class Seat(Resource, group="swapping.example.com", version="v1"):
    """Something that one can have."""

    spec: SeatSpec = SeatSpec()
    status: SeatStatus = SeatStatus()


SEAT = Part(
    Seat,
    value=lambda seat: seat.status,
    patch=lambda seat, status: difference(wire(seat.status), wire(status)),
    fence=lambda seat: SeatStatus(
        holder=seat.status.holder, fence=seat.status.fence + 1
    ),
)


@pytest.mark.cluster
async def test_who_swaps_what_somebody_else_has_written_is_stale(
    cluster: Cluster, namespace: str
) -> None:
    counted: list[str] = []
    gone: list[Seat] = []
    async with Client(load(kubeconfig=cluster.kubeconfig)) as client:
        await install(client, Seat)
        swaps = Swaps(client, SEAT, saw=lambda seat: None, gone=gone.append)
        metadata = Metadata(name="one", namespace=namespace)
        seat = await client.create(Seat(metadata=metadata))
        mine = await swaps.swap(seat, SeatStatus(holder="me"), count=counted.append)
        with pytest.raises(Stale):
            await swaps.swap(seat, SeatStatus(holder="you"), count=counted.append)
        # Who only counts up does not mind who has it.
        after = await swaps.step(seat, SEAT.fence, count=counted.append)
        assert (after.status.holder, after.status.fence) == ("me", 1)
        assert await swaps.step(mine, lambda seat: None) is mine
        await client.delete(Seat, "one", namespace=namespace)
        with pytest.raises(Stale, match="gone"):
            await swaps.swap(after, SeatStatus())
    assert counted == ["written", "stale", "stale", "written"]
    assert gone == [after]
