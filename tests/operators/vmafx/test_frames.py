"""Laws of the kept frames: a bounded number, and the worst is never lost."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from trimtab.operators.vmafx.frames import thinned


@given(
    frames=st.lists(st.floats(0, 100), min_size=1, max_size=300),
    most=st.integers(1, 50),
)
def test_few_are_kept_and_the_worst_is_among_them(
    frames: list[float], most: int
) -> None:
    kept = thinned(frames, most)
    assert 1 <= len(kept) <= most
    assert min(kept) == min(frames)
    if len(frames) <= most:
        assert kept == frames
