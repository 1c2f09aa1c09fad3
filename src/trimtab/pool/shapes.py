"""Shapes: the sizes a pool has, and which of them a request can be given."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from trimtab.api import Quantity
from trimtab.pool.kinds import Shape
from trimtab.pool.requests import AcquireRequest, Never


class Size(msgspec.Struct, frozen=True, order=True):
    """An amount of both resources, in whole units, so that sums are exact."""

    cpu: int = 0
    """Thousandths of a processor."""
    memory: int = 0
    """Bytes."""

    def __add__(self, other: Size) -> Size:
        return Size(self.cpu + other.cpu, self.memory + other.memory)


def size(cpu: Quantity | None, memory: Quantity | None) -> Size:
    """Two quantities as a size; however they are spelled, equal ones are equal."""
    return Size(cpu.milli if cpu else 0, int(memory) if memory else 0)


def fits(wanted: Size, within: Size) -> bool:
    return wanted.cpu <= within.cpu and wanted.memory <= within.memory


def best_fit(shapes: Sequence[Shape], request: AcquireRequest) -> tuple[Shape, ...]:
    """The shapes that serve a request, the closest fit first.

    A named shape is taken literally; a size gets the smallest shape that has it, and
    larger ones after it. A request that says neither means the pool's first shape.

    Errors: :class:`Never` when no shape will do.
    """
    if request.shape:
        found = tuple(each for each in shapes if each.name == request.shape)
    elif request.cpu is None and request.memory is None:
        found = tuple(shapes[:1])
    else:
        wanted = size(request.cpu, request.memory)
        fitting = [each for each in shapes if fits(wanted, size_of(each))]
        found = tuple(sorted(fitting, key=size_of))
    if not found:
        known = ", ".join(each.name for each in shapes)
        raise Never(
            f"The pool {request.pool[1]} has no shape for this request; ask for one of "
            f"{known}, or for less."
        )
    return found


def size_of(shape: Shape) -> Size:
    return size(shape.cpu, shape.memory)
