"""Logs: lines for people on a terminal, JSON everywhere else, and context for both.

:func:`bound` gives a logger that knows what it speaks about: the controller, the object
and the cause. That context is kept as it is and turned into text only for a record that
is really written.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping, MutableMapping
from datetime import UTC, datetime
from typing import Any, Final, Literal, TextIO, TypeAlias

import msgspec

from trimtab.runtime import tracing

Form = Literal["auto", "human", "json"]
CONTEXT: Final = "trimtab_context"
# What every record has; whatever else one has was given by the caller, as `extra`.
USUAL: Final = frozenset(
    [*vars(logging.makeLogRecord({})), "message", "asctime", "taskName", CONTEXT]
)
# A line break or an escape sequence from outside must not pass for a line of ours.
CONTROLS: Final = {
    code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if code != 9
} | {10: "\n    ", 13: "\\r"}

Logger: TypeAlias = logging.LoggerAdapter[logging.Logger]


class _Bound(logging.LoggerAdapter[logging.Logger]):
    """A logger that hands its context to each record, as it is."""

    def process(
        self, msg: Any, kwargs: MutableMapping[str, Any]
    ) -> tuple[Any, MutableMapping[str, Any]]:
        extra = kwargs.get("extra") or {}
        kwargs["extra"] = {**extra, CONTEXT: self.extra}
        return msg, kwargs


def bound(logger: logging.Logger, **context: object) -> Logger:
    """A logger whose records tell ``context``: ``controller``, ``object``, ``cause``…

    Each value is shown by its ``str``, and only when a record is written.
    """
    return _Bound(logger, context)


def setup(
    stream: TextIO | None = None,
    *,
    level: int | str = logging.INFO,
    form: Form = "auto",
) -> logging.Handler:
    """Write what all loggers say to ``stream`` (standard error if None).

    ``form`` is ``human``, ``json``, or ``auto``: human on a terminal, JSON elsewhere.
    A second call replaces what the first one set up, and nothing else.

    Guarantees: logging never raises, whatever is logged and whatever the stream does.

    Errors: ``ValueError`` for a level or a form that does not exist.
    """
    stream = sys.stderr if stream is None else stream
    handler = _Handler(stream)
    handler.setFormatter(_FORMATTERS[_form(stream, form)]())
    root = logging.getLogger()
    root.setLevel(_level(level))
    for old in [old for old in root.handlers if isinstance(old, _Handler)]:
        root.removeHandler(old)
    root.addHandler(handler)
    return handler


def level(wanted: str | None = None) -> str:
    """The level of all loggers, which may be set at any time.

    Errors: ``ValueError`` for one that does not exist.
    """
    root = logging.getLogger()
    if wanted is not None:
        root.setLevel(_level(wanted))
        root.info("The log level is %s now.", wanted.lower())
    return logging.getLevelName(root.level).lower()


def _form(stream: TextIO, form: str) -> str:
    if form == "auto":
        return "human" if stream.isatty() else "json"
    if form not in _FORMATTERS:
        raise ValueError(f"There are no {form!r} logs; choose auto, human or json.")
    return form


def _level(level: int | str) -> int | str:
    name = level.upper() if isinstance(level, str) else level
    if isinstance(name, str) and name not in logging.getLevelNamesMapping():
        raise ValueError(
            f"There is no log level {level!r}; choose debug, info, warning or error."
        )
    return name


class _Handler(logging.StreamHandler[TextIO]):
    """Writes records; one that cannot be written is lost, and nothing else is."""

    def handleError(self, record: logging.LogRecord) -> None:
        return None


class Human(logging.Formatter):
    """``12:03:04.567 INFO message key=value``, and a traceback below."""

    def format(self, record: logging.LogRecord) -> str:
        # The time of whoever sits at the terminal.
        time = datetime.fromtimestamp(record.created, UTC).astimezone()
        parts = [
            time.isoformat(timespec="milliseconds")[11:23],
            f"{record.levelname:<7}",
            _message(record).translate(CONTROLS),
            *(f"{key}={_quoted(value)}" for key, value in _context(record).items()),
        ]
        trace = _trace(self, record)
        return " ".join(parts) + (f"\n{trace}" if trace else "")


class Json(logging.Formatter):
    """One JSON object on one line."""

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, UTC)
        fields = {
            "ts": time.isoformat(timespec="milliseconds")[:23] + "Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": _message(record),
        }
        trace = _trace(self, record)
        if trace:
            fields["exception"] = trace
        # What a caller adds never replaces what every line has.
        return _encoded({**_context(record), **fields})


_FORMATTERS: Final[Mapping[str, type[logging.Formatter]]] = {
    "human": Human,
    "json": Json,
}


def _message(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except Exception:
        arguments = _shown(record.args)
        return f"{_shown(record.msg)} (with arguments that do not fit: {arguments})"


def _context(record: logging.LogRecord) -> dict[str, Any]:
    """Bound context first, then what this one call added."""
    context: dict[str, Any] = {
        key: _shown(value) for key, value in getattr(record, CONTEXT, {}).items()
    }
    for key, value in vars(record).items():
        if key not in USUAL:
            context[key] = _shown(value)
    trace_id = tracing.trace_id()
    if trace_id:
        context["trace_id"] = trace_id
    return context


def _shown(value: object) -> Any:
    if isinstance(value, bool | int | float | str | None):
        return value
    try:
        return str(value)
    except Exception:
        return f"<{type(value).__name__} that cannot be shown>"


def _quoted(value: object) -> str:
    text = str(value)
    if text and text.isprintable() and not {" ", '"', "="} & set(text):
        return text
    return _encoded(text)


def _encoded(value: object) -> str:
    try:
        return msgspec.json.encode(value).decode()
    except Exception:
        # Half a surrogate pair, as in the name of a file that is not UTF-8, or a
        # number that is too long.
        return msgspec.json.encode(_plain(value)).decode()


def _plain(value: object) -> Any:
    if isinstance(value, dict):
        return {_plain(key): _plain(inner) for key, inner in value.items()}
    return str(value).encode(errors="backslashreplace").decode()


def _trace(formatter: logging.Formatter, record: logging.LogRecord) -> str:
    if record.exc_info and not record.exc_text:
        record.exc_text = formatter.formatException(record.exc_info)
    stack = record.stack_info and formatter.formatStack(record.stack_info)
    return "\n".join(part for part in (record.exc_text, stack) if part)
