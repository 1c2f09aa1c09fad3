"""HTTP as text: what is read one way only is read, and everything else is refused."""

from __future__ import annotations

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.client.wire import (
    HEAD_LIMIT,
    LINE_LIMIT,
    Body,
    Garbled,
    Inflater,
    parse_head,
    request_bytes,
    starts_well,
)

OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked"
LONG = 1 << 20


def read(raw: bytes) -> tuple[bytes, bool, bytes]:
    """The body of an answer, whether it is done, and what stands behind it."""
    head, _, rest = raw.partition(b"\r\n\r\n")
    body = Body(parse_head(head), method="GET")
    data = bytearray(rest)
    return body.take(data), body.done, bytes(data)


HEADS = {
    "two lengths": OK + b"Content-Length: 2\r\nContent-Length: 3",
    "a list of lengths": OK + b"Content-Length: 2, 2",
    "a length with a sign": OK + b"Content-Length: +2",
    "a negative length": OK + b"Content-Length: -2",
    "a length in another base": OK + b"Content-Length: 0x2",
    "a length in other digits": OK + b"Content-Length: \xb2",
    "a length behind a vertical tab": OK + b"Content-Length: \x0b2",
    "a length that no number holds": OK + b"Content-Length: " + b"9" * 30,
    "an empty length": OK + b"Content-Length: ",
    "a length and chunks": CHUNKED + b"\r\nContent-Length: 2",
    "chunks and a length": OK + b"Content-Length: 2\r\nTransfer-Encoding: chunked",
    "chunks twice": CHUNKED + b"\r\nTransfer-Encoding: chunked",
    "compressed chunks": OK + b"Transfer-Encoding: gzip, chunked",
    "almost chunks": OK + b"Transfer-Encoding: xchunked",
    "chunks behind a vertical tab": OK + b"Transfer-Encoding: \x0bchunked",
    "no transfer encoding": OK + b"Transfer-Encoding: identity",
    "a space before the colon": OK + b"Content-Length : 2",
    "a folded line": OK + b"X: a\r\n b",
    "a bare line feed": OK + b"X: a\nContent-Length: 2",
    "a bare carriage return": OK + b"X: a\rContent-Length: 2",
    "a zero byte": OK + b"X: a\0b",
    "no colon": OK + b"a b c",
    "no name": OK + b": a",
    "HTTP/2.0": b"HTTP/2.0 200 OK",
    "HTTP/1.10": b"HTTP/1.10 200 OK",
    "a status of two digits": b"HTTP/1.1 99 OK",
    "a status of four digits": b"HTTP/1.1 2000 OK",
    "a status in other digits": "HTTP/1.1 2\xb20 OK".encode("latin-1"),
    "a space too much": b"HTTP/1.1  200 OK",
}


@pytest.mark.parametrize("name", HEADS)
def test_a_head_that_could_be_read_in_two_ways_is_refused(name: str) -> None:
    with pytest.raises(Garbled):
        Body(parse_head(HEADS[name]), method="GET")


CHUNKS = {
    "no size": b"\r\n{}\r\n0\r\n\r\n",
    "letters": b"zz\r\n{}\r\n0\r\n\r\n",
    "a sign": b"+2\r\n{}\r\n0\r\n\r\n",
    "a negative size": b"-2\r\n{}\r\n0\r\n\r\n",
    "a prefix": b"0x2\r\n{}\r\n0\r\n\r\n",
    "an underscore": b"0_2\r\n{}\r\n0\r\n\r\n",
    "a space before it": b" 2\r\n{}\r\n0\r\n\r\n",
    "a size that no number holds": b"f" * 17 + b"\r\n{}\r\n0\r\n\r\n",
    "a bare line feed": b"2\n{}\r\n0\r\n\r\n",
    "a line feed in an extension": b"2;a\nb\r\n{}\r\n0\r\n\r\n",
    "a chunk longer than it says": b"2\r\n{}}\r\n0\r\n\r\n",
    "a chunk shorter than it says": b"3\r\n{}\r\n0\r\n\r\n",
    "a chunk that ends in a line feed": b"2\r\n{}\n0\r\n\r\n",
    "a size without end": b"0" * LONG,
    "an extension without end": b"2;" + b"x" * LONG + b"\r\n{}\r\n0\r\n\r\n",
    "a trailer without end": b"2\r\n{}\r\n0\r\n" + b"x" * LONG,
}


@pytest.mark.parametrize("name", CHUNKS)
def test_a_chunk_that_could_be_read_in_two_ways_is_refused(name: str) -> None:
    with pytest.raises(Garbled):
        read(CHUNKED + b"\r\n\r\n" + CHUNKS[name])


@given(
    st.lists(st.binary(min_size=1, max_size=50), max_size=8),
    st.lists(st.integers(0, 600), max_size=12).map(sorted),
    st.sampled_from([b"", b";a=b", b" ;a", b'; q="x"']),
)
def test_chunks_come_out_as_they_went_in_wherever_they_are_cut(
    pieces: list[bytes], cuts: list[int], extension: bytes
) -> None:
    raw = b"".join(
        b"%X%s\r\n%s\r\n" % (len(piece), extension, piece) for piece in pieces
    )
    raw += b"0\r\nSome: trailer\r\n\r\n"
    body = Body(parse_head(CHUNKED), method="GET")
    data, taken = bytearray(), b""
    for start, stop in zip([0, *cuts], [*cuts, len(raw) + 600], strict=True):
        assert not body.done or start >= len(raw)
        data += raw[start:stop]
        taken += body.take(data)
        assert len(data) < LINE_LIMIT
    assert (taken, body.done, bytes(data)) == (b"".join(pieces), True, b"")


@given(st.binary(max_size=200), st.binary(max_size=20))
def test_a_body_ends_where_it_says_and_what_follows_is_left(
    content: bytes, after: bytes
) -> None:
    sized = OK + b"Content-Length: %d\r\n\r\n" % len(content)
    assert read(sized + content + after)[1] is True
    body = Body(parse_head(sized[:-4]), method="GET")
    data = bytearray(content + after)
    taken = b"" if body.done else body.take(data)
    assert (taken, bytes(data)) == (content, after)
    end = b"%x\r\n%s\r\n" % (len(content), content) if content else b""
    chunked = CHUNKED + b"\r\n\r\n" + end + b"0\r\n\r\n" + after
    assert read(chunked) == (content, True, after)


@pytest.mark.parametrize("status", [204, 304])
def test_some_answers_have_no_body_whatever_they_say(status: int) -> None:
    head = parse_head(b"HTTP/1.1 %d X\r\nContent-Length: 9" % status)
    assert Body(head, method="GET").done
    assert Body(parse_head(OK + b"Content-Length: 9"), method="HEAD").done


KEPT = {
    b"HTTP/1.1 200 OK": True,
    b"HTTP/1.1 200": True,
    b"HTTP/1.1 200 OK\r\nConnection: Close": False,
    b"HTTP/1.1 200 OK\r\nConnection: upgrade ,close": False,
    b"HTTP/1.0 200 OK": False,
    b"HTTP/1.0 200 OK\r\nConnection: keep-alive": True,
    b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked": False,
}


@pytest.mark.parametrize("head", KEPT)
def test_a_connection_is_kept_only_if_the_server_keeps_it(head: bytes) -> None:
    assert parse_head(head).persistent is KEPT[head]


def test_headers_keep_their_order_and_are_found_in_any_case() -> None:
    head = parse_head(OK + b"Warning: 1\r\nX:\t y \r\nwarning: \xfc")
    assert head.all("WARNING") == ["1", "ü"]
    assert head.all("x") == ["y"]
    assert head.all("z") == []


@pytest.mark.parametrize("start", [b"", b"HT", b"HTTP/", OK, OK[:-1], OK + b"X: y"])
def test_the_start_of_an_answer_is_waited_for(start: bytes) -> None:
    assert starts_well(bytearray(start))


@pytest.mark.parametrize("start", [b"\n", b"S", b"HTTP 1.1", b"HTTP/1.1 200 OK\nX: y"])
def test_what_never_becomes_an_answer_is_not_waited_for(start: bytes) -> None:
    assert not starts_well(bytearray(start))
    assert len(start) < HEAD_LIMIT


PACKED = gzip.compress(b"x" * 1_000_000)


def test_gzip_comes_out_in_bounded_pieces() -> None:
    inflater = Inflater()
    pieces = [inflater.inflate(PACKED)]
    while inflater.waiting:
        pieces.append(inflater.inflate())
    inflater.end()
    assert b"".join(pieces) == b"x" * 1_000_000
    assert max(map(len, pieces)) <= 1 << 18


def test_gzip_that_is_cut_or_followed_by_something_is_refused() -> None:
    small = gzip.compress(b"x")
    cut = Inflater()
    cut.inflate(small[:-1])
    with pytest.raises(Garbled):
        cut.end()
    with pytest.raises(Garbled):
        Inflater().inflate(small + b"y")
    Inflater().end()  # nothing came, and nothing is missing


@pytest.mark.parametrize("bad", ["a\r\nB: c", "a\nb", "a\0b"])
def test_no_header_of_ours_becomes_two(bad: str) -> None:
    with pytest.raises(ValueError, match="line break"):
        request_bytes("GET", "/", [("X", bad)], None)


def test_a_write_without_a_body_says_so_and_a_read_says_nothing() -> None:
    assert b"Content-Length: 0" in request_bytes("POST", "/", [], None)
    assert b"Content-Length" not in request_bytes("GET", "/", [], None)
