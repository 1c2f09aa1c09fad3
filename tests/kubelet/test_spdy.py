"""Laws of SPDY frames: what a client sends is understood, however it is cut up."""

from __future__ import annotations

import struct
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.kubelet import spdy
from trimtab.kubelet.spdy import Data, Dropped, Echo, Event, Framing, Opened


class Peer:
    """The other side: what kubectl's library sends."""

    def __init__(self) -> None:
        self._deflate = zlib.compressobj(zdict=spdy.DICTIONARY.read_bytes())

    def open(self, stream: int, **headers: str) -> bytes:
        block = struct.pack(">I", len(headers))
        for pair in headers.items():
            for text in pair:
                block += struct.pack(">I", len(text)) + text.encode()
        packed = self._deflate.compress(block)
        packed += self._deflate.flush(zlib.Z_SYNC_FLUSH)
        payload = struct.pack(">IIH", stream, 0, 0) + packed
        return struct.pack(">HHI", spdy.VERSION, spdy.OPEN, len(payload)) + payload


@settings(max_examples=40)
@given(cuts=st.lists(st.integers(1, 30), max_size=40), content=st.binary(max_size=60))
def test_frames_come_out_as_they_went_in(cuts: list[int], content: bytes) -> None:
    peer, framing = Peer(), Framing()
    ping = struct.pack(">HHII", spdy.VERSION, spdy.PING, 4, 9)
    sent = (
        peer.open(1, streamtype="error", port="80")
        + peer.open(3, streamtype="data", port="80")
        + framing.data(3, content, finish=True)
        + ping
        + framing.dropped(1)
    )
    found: list[Event] = []
    for cut in cuts:
        found += framing.receive(sent[:cut])
        sent = sent[cut:]
    found += framing.receive(sent)
    assert found == [
        Opened(1, {"streamtype": "error", "port": "80"}, False),
        Opened(3, {"streamtype": "data", "port": "80"}, False),
        Data(3, content, True),
        Echo(ping),
        Dropped(1),
    ]


@pytest.mark.parametrize(
    "data",
    [
        struct.pack(">HHI", 0x8002, 1, 0),
        struct.pack(">HHI", spdy.VERSION, 1, 14) + b"x" * 14,
        struct.pack(">II", 1, 0xFFFFFF),
    ],
)
def test_what_is_no_spdy_is_refused(data: bytes) -> None:
    with pytest.raises(spdy.Malformed):
        list(Framing().receive(data))
