"""Compiled messages: for each message a function that writes it, made of its fields.

A list of a thousand Pods has a hundred thousand fields, most of them texts. What is the
same for all of them (which fields there are, and what stands before and in place of
each) is written down once, as the source of a function. It writes what
:mod:`trimtab.embedded.protobuf_encoding` would.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from trimtab.embedded import protobuf_values as values
from trimtab.embedded.protobuf_encoding import (
    MANY,
    Add,
    Plain,
    Step,
    Write,
    fields,
    head_of,
    heads_of,
    plan,
)
from trimtab.embedded.protobuf_values import SHORT, varint

Writer = Callable[[Any], bytes]
Inner = Callable[[int, str, bytes], "Part | None"]
Names = dict[str, Any]


class Part(NamedTuple):
    """How a field that is a message is written: read already, or still JSON."""

    write: Callable[[Any], bytes] | None = None
    """What writes the message, without the field that it is in."""
    known: Callable[[bytes], bytes | None] | None = None
    """Where the whole field is looked for by its JSON."""
    make: Callable[[bytes], bytes] | None = None
    """What makes the whole field of its JSON."""


# What is done with a value `v` of the field at a place, which stands for `@`.
_SIZED = f"n = len(b); a(H@[n] if n < {MANY} else L@(n)); a(b)"
_TEXT = f"b = v.encode(); {_SIZED}"
_OWN = f"b = w@(v); {_SIZED}"
_JSON = "d = bytes(v); a(g@(d) or w@(d))"
_PLAIN = {
    "s": _TEXT,
    "i": f"a(I@[v] if 0 <= v < {SHORT} else T@ + varint(v))",
    "B": "a(I@[1 if v else 0])",
}


def compiled(name: str, attributes: Mapping[str, str], *, inner: Inner) -> Writer:
    """The function that writes messages of a name.

    It reads ``attributes`` of what it is given, by the names of their fields. ``inner``
    says how a field is written that is a message: by its number, its kind, and what
    stands for it if it is null.
    """
    space: Names = {"join": b"".join, "varint": varint}
    lines = ["def write(o):", " p = []; a = p.append"]
    steps = zip(fields(name), plan(name), strict=True)
    for at, ((number, field, kind), step) in enumerate(steps):
        if "^" in kind:
            message = kind.lstrip("!^?").removeprefix("@")
            own = compiled(message, attributes, inner=inner)
            space |= _sizes(at, number) | {f"w{at}": own}
            lines.append(f" b = w{at}(o); {_SIZED}".replace("@", str(at)))
            continue
        part = inner(number, kind, step.absent)
        space |= _constants(at, number, kind, step, part)
        written = (each.replace("@", str(at)) for each in _lines(kind, part))
        lines.append(f" v = o.{attributes[field]}")
        lines.append(" if v is not None:")
        lines += [f"  {each}" for each in written]
        if step.absent:
            lines.append(f" else: a(N{at})")
    lines.append(" return join(p)")
    # Nothing of it comes from outside: names and numbers stand in our own table.
    exec("\n".join(lines), space)
    writer: Writer = space["write"]
    return writer


def _lines(kind: str, part: Part | None) -> Iterator[str]:
    """What is done with a value; ``@`` is the place of its field."""
    if part is None:
        yield _PLAIN.get(kind.lstrip("!?"), "m@(a, v)")
        return
    line = _OWN if part.write is not None else _JSON
    if "*" in kind:
        yield "for v in v:"
        line = f" if v is not None: {line}"
    yield line


def _constants(at: int, number: int, kind: str, step: Step, part: Part | None) -> Names:
    """The names that the lines of a field use."""
    found = {f"N{at}": step.absent, f"m{at}": step.write, **_sizes(at, number)}
    if part is not None:
        found |= {f"w{at}": part.write or part.make, f"g{at}": part.known}
    elif kind.lstrip("!?") == "{s":
        found[f"m{at}"] = _texts(number, otherwise=step.write)
    if kind.lstrip("!?") in ("i", "B"):
        tag = values.tag(number, 0)
        found |= {f"T{at}": tag, f"I{at}": [tag + varint(n) for n in range(SHORT)]}
    return found


def _sizes(at: int, number: int) -> Names:
    return {f"H{at}": heads_of(number), f"L{at}": head_of(number)}


def _texts(number: int, *, otherwise: Write) -> Write:
    """Writes a map of texts, such as labels: their keys are few, in many objects."""
    head = head_of(number)

    @lru_cache(maxsize=1024)
    def before(key: str, size: int) -> bytes:
        start = values.field_of(1, key.encode()) + values.tag(2, 2) + varint(size)
        return head(len(start) + size) + start

    def write(add: Add, value: Plain) -> None:
        if None in value.values():
            otherwise(add, value)
            return
        for key in sorted(value):
            text = value[key].encode()
            add(before(key, len(text)))
            add(text)

    return write
