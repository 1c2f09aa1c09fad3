"""Laws of the memory that is watched where no cgroup limits it."""

from __future__ import annotations

import os
from contextlib import ExitStack

import pytest

from trimtab.kubelet import limits


def test_many_who_ask_what_they_use_cost_one_look_in_a_period(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks: list[set[int]] = []
    real = limits.usage

    def usage(groups: set[int]) -> dict[int, limits.Used]:
        looks.append(set(groups))
        return real(groups)

    monkeypatch.setattr(limits, "usage", usage)
    meter, mine = limits.Meter(0.5), os.getsid(0)
    with ExitStack() as stack:
        asked = [
            stack.enter_context(meter.metering(each)) for each in (mine, *range(-99, 0))
        ]
        for now in (10.0, 10.2, 10.49, 10.5):
            assert asked[0](now).memory > 1 << 20
            assert all(used(now) == limits.Used() for used in asked[1:])
    assert len(looks) == 2
    with meter.metering(mine) as used:
        assert used(20.0).memory > 1 << 20
    assert looks[2] == {mine}
