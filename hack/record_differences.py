"""Records what a real API server answers to the scenarios of the differential suite.

To make the answers again::

    python -m hack.record_differences

Needs the programs that `make test-cluster` builds. Answers are written down as they are
compared: without what differs from server to server.
"""

from __future__ import annotations

from tests.differential import kinds, recorded, stories
from tests.differential.scenario import SCENARIOS, play
from tests.differential.wire import Wire
from trimtab.testing.cluster import started
from trimtab.testing.options import Options


def main() -> None:
    """Play every scenario and write the answers down."""
    assert stories.__all__, "importing them notes the scenarios"
    with started("real", options=Options()) as cluster:
        wire = Wire(cluster)
        kinds.install(wire)
        told = {name: play(wire, name) for name in SCENARIOS}
        wire.close()
    size = recorded.write(told)
    requests = sum(map(len, told.values()))
    print(f"{len(told)} scenarios, {requests} requests, {size} bytes")


if __name__ == "__main__":
    main()
