"""Rooms: what was put there is read back, and nobody writes over what is still read."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.client.faults import FaultServer
from tests.client.kinds import CONFIG_MAPS, Counted
from tests.client.test_listing import serves
from trimtab.client import Client
from trimtab.client import listing as listing_module
from trimtab.client.rooms import SIZE, Room

PIECES = st.lists(st.binary(max_size=50), max_size=20)


@given(st.lists(PIECES, min_size=1, max_size=4))
def test_what_was_added_since_it_was_cleared_is_what_is_read(
    uses: list[list[bytes]],
) -> None:
    room = Room()
    for pieces in uses:
        room.clear()
        for piece in pieces:
            room.add(piece)
        assert len(room) == len(room.view()) == sum(map(len, pieces))
        assert bytes(room.view()) == b"".join(pieces)
        assert room.leave()


def test_a_room_grows_with_what_is_put_there() -> None:
    room, piece = Room(), bytes(range(256)) * 4096
    for _ in range(SIZE // len(piece) + 2):
        room.add(piece)
    assert len(room) > SIZE
    assert bytes(room.view()) == piece * (len(room) // len(piece))


def test_a_room_that_something_points_into_is_not_left() -> None:
    room = Room()
    room.add(b'{"a": [1, 2]}')
    found = msgspec.json.decode(room.view(), type=dict[str, msgspec.Raw])
    assert not room.leave()
    assert bytes(found.pop("a")) == b"[1, 2]"
    assert room.leave()


@pytest.fixture
def rooms(monkeypatch: pytest.MonkeyPatch) -> list[Room]:
    """Every room that a list makes."""
    made: list[Room] = []

    def noted() -> Room:
        made.append(Room())
        return made[-1]

    monkeypatch.setattr(listing_module, "Room", noted)
    return made


async def test_pages_that_were_read_make_place_for_those_that_follow(
    server: FaultServer, client: Client, rooms: list[Room]
) -> None:
    server.always(serves(50))
    assert len([each async for each in client.list(Counted, page=10)]) == 50
    assert len(rooms) == 1


async def test_objects_that_nobody_has_read_yet_stay_as_they_came(
    server: FaultServer, client: Client, rooms: list[Room]
) -> None:
    server.always(serves(30))
    raw: list[Any] = [
        each async for each in client.list(CONFIG_MAPS, page=10, raw=True)
    ]
    found = [msgspec.json.decode(bytes(each)) for each in raw]
    assert [each["metadata"]["name"] for each in found] == [*map(str, range(30))]
    assert len(rooms) == 3
