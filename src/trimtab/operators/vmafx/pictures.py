"""A clip's scores as people like to see them: a line of blocks, or a picture."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from trimtab.operators.vmafx.problems import ToolFailed
from trimtab.operators.vmafx.scores import Score

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_BLOCKS = "▁▂▃▄▅▆▇█"
_BEST = 100.0


def sparkline(frames: Sequence[float], *, width: int = 60) -> str:
    """The score of each frame, or of each stretch of them, as one block.

    The height of a block is the worst score of its stretch, between the worst of all
    and the best: what one looks for in such a line is where a clip is bad.
    """
    if not frames:
        return ""
    columns = min(width, len(frames))
    bounds = [round(at * len(frames) / columns) for at in range(columns + 1)]
    worst = [min(frames[start:end]) for start, end in pairwise(bounds)]
    low, high = min(worst), max(worst)
    span = high - low or 1.0
    return "".join(
        _BLOCKS[round((value - low) / span * (len(_BLOCKS) - 1))] for value in worst
    )


def plot(found: Score, to: Path, *, title: str) -> None:
    """Draw the score of each frame. Errors: those of :func:`picture`."""
    with picture(to, size=(9, 3)) as figure:
        axes = figure.subplots()
        axes.plot(found.frames, linewidth=0.8)
        axes.axhline(found.vmaf, linestyle=":", linewidth=0.8)
        axes.set(xlabel="frame", ylabel="VMAF", title=title, ylim=(0, _BEST))


@contextmanager
def picture(to: Path, *, size: tuple[float, float]) -> Iterator[Figure]:
    """What is drawn in the block goes into a file, whose ending says the format.

    Errors: :class:`ToolFailed` without matplotlib, or where nothing can be written.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ToolFailed(
            "A plot needs matplotlib and there is none here: run pip install "
            "'trimtab[plot]'."
        ) from None
    figure = Figure(figsize=size, layout="constrained")
    yield figure
    try:
        figure.savefig(to)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ToolFailed(f"{to} cannot be written: {reason.rstrip('.')}.") from error
