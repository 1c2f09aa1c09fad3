"""Laws of logs: what a line holds, and that nothing logged ever raises."""

from __future__ import annotations

import io
import logging
import re
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as some

from trimtab.runtime import tracing
from trimtab.runtime.logs import Form, Human, Json, bound, setup

Start = Callable[..., io.StringIO]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Unprintable:
    def __str__(self) -> str:
        raise RuntimeError("no words")

    __repr__ = __str__


@pytest.fixture
def start() -> Iterator[Start]:
    """Sets logs up on a stream, and puts the root logger back afterwards."""
    root = logging.getLogger()
    before = root.level

    def begin(
        stream: io.StringIO | None = None, *, form: Form = "auto", level: str = "info"
    ) -> io.StringIO:
        # Those of pytest raise what they cannot format.
        root.handlers[:] = [old for old in root.handlers if old in ours]
        stream = io.StringIO() if stream is None else stream
        ours.append(setup(stream, level=level, form=form))
        return stream

    ours: list[logging.Handler] = []
    yield begin
    for handler in ours:
        root.removeHandler(handler)
    root.setLevel(before)


logger = logging.getLogger("shop")


def test_off_a_terminal_a_line_is_json(start: Start) -> None:
    stream = start()
    context = {"controller": "website", "object": "Website default/shop"}
    bound(logger, **context, cause="timer").info("ready: %d", 3)
    line = msgspec.json.decode(stream.getvalue())
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line.pop("ts"))
    assert line == {
        "level": "info",
        "logger": "shop",
        "message": "ready: 3",
        "controller": "website",
        "object": "Website default/shop",
        "cause": "timer",
    }


def test_on_a_terminal_a_line_is_for_people(start: Start) -> None:
    stream = start(Terminal())
    log = bound(logger, controller="website", object="Website default/shop")
    log.warning("not ready")
    assert re.fullmatch(
        r"\d\d:\d\d:\d\d\.\d{3} WARNING not ready controller=website"
        r' object="Website default/shop"\n',
        stream.getvalue(),
    )


def test_context_is_not_touched_for_a_record_that_is_not_made(start: Start) -> None:
    class Costly:
        asked = 0

        def __str__(self) -> str:
            self.asked += 1
            return "shown"

    costly = Costly()
    stream = start()
    log = bound(logger, object=costly)
    log.debug("quiet")
    assert (costly.asked, stream.getvalue()) == (0, "")
    log.info("loud")
    assert msgspec.json.decode(stream.getvalue())["object"] == "shown"


def test_what_one_call_adds_is_shown_and_replaces_nothing(start: Start) -> None:
    stream = start()
    extra = {"replicas": 3, "level": "none", "controller": "mine"}
    bound(logger, controller="website").info("scaled", extra=extra)
    line = msgspec.json.decode(stream.getvalue())
    assert (line["replicas"], line["level"]) == (3, "info")


@pytest.mark.parametrize("form", ["human", "json"])
def test_an_exception_is_told_with_its_traceback(start: Start, form: Form) -> None:
    stream = start(form=form)
    try:
        raise KeyError("shop")
    except KeyError:
        logger.exception("failed")
    assert "KeyError: 'shop'" in stream.getvalue()
    assert "test_logs.py" in stream.getvalue()
    if form == "json":
        assert stream.getvalue().count("\n") == 1


@pytest.mark.parametrize("form", ["human", "json"])
def test_words_from_outside_cannot_pass_for_a_line(start: Start, form: Form) -> None:
    stream = start(form=form)
    bound(logger, object="a\nb").info("x\n00:00:00.000 INFO forged \x1b[2J")
    _, *others = stream.getvalue().splitlines()
    assert "\x1b" not in stream.getvalue()
    assert all(line.startswith("    ") for line in others)


@pytest.mark.parametrize("form", ["human", "json"])
@pytest.mark.parametrize(
    "value",
    [Unprintable(), "\udc80", 10**400, float("nan"), {1: 2}, b"\xff", None],
    ids="unprintable surrogate huge nan dict bytes none".split(),
)
def test_nothing_that_is_logged_raises_or_is_lost(
    start: Start, form: Form, value: Any
) -> None:
    stream = start(form=form)
    bound(logger, object=value).info("said", extra={"more": value})
    logger.info("%d", value)
    few = ("too few",)
    logger.info("%s %s", *few)
    assert "said" in stream.getvalue()
    assert "too few" in stream.getvalue()
    stream.close()
    logger.info("nobody hears this")


@given(some.dictionaries(some.text(min_size=1), some.text()), some.text())
def test_every_line_is_one_line_of_json(context: dict[str, str], message: str) -> None:
    record = logging.makeLogRecord({"msg": message, "trimtab_context": context})
    text = Json().format(record)
    assert "\n" not in text
    line = msgspec.json.decode(text)
    assert line["message"] == message
    kept = context.keys() - {"ts", "level", "logger", "message"}
    assert {key: line[key] for key in kept} == {key: context[key] for key in kept}
    Human().format(record)


def test_a_line_names_its_trace(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = start()
    monkeypatch.setattr(tracing, "trace_id", lambda: "0af7651916cd43dd8448eb211c80319c")
    logger.info("traced")
    trace_id = msgspec.json.decode(stream.getvalue())["trace_id"]
    assert trace_id == "0af7651916cd43dd8448eb211c80319c"


def test_setting_up_again_replaces_what_was_set_up(start: Start) -> None:
    first = start()
    second = start(level="warning")
    logger.info("quiet")
    logger.warning("loud")
    assert first.getvalue() == ""
    assert second.getvalue().count("\n") == 1


def test_what_does_not_exist_is_told_in_a_sentence(start: Start) -> None:
    with pytest.raises(ValueError, match="no log level 'loud'; choose debug"):
        start(level="loud")
    with pytest.raises(ValueError, match="no 'xml' logs; choose auto"):
        start(form="xml")
