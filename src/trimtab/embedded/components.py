"""Components: how the parts of a control plane do, each an object that nobody stores.

The store and the controllers are in this very process, and well if it answers. There is
no scheduler.
"""

from __future__ import annotations

from trimtab.embedded import status
from trimtab.embedded.kinds import Kind
from trimtab.embedded.status import GroupResource

PREFIX = "core/componentstatuses/"
ABSENT = (
    'Get "https://127.0.0.1:10259/healthz": dial tcp 127.0.0.1:10259: connect: '
    "connection refused"
)
STATES = {
    "scheduler": ("False", ABSENT),
    "controller-manager": ("True", "ok"),
    "etcd-0": ("True", "ok"),
}


def all_of(kind: Kind) -> list[bytes]:
    """Every component, as if it were stored."""
    return [
        kind.encode(
            {
                "metadata": {"name": name},
                "conditions": [{"type": "Healthy", "status": good, "message": told}],
            }
        )
        for name, (good, told) in STATES.items()
    ]


def one_of(kind: Kind, name: str) -> bytes:
    """One component; 404 if there is none of that name."""
    for known, value in zip(STATES, all_of(kind), strict=True):
        if known == name:
            return value
    raise status.not_found(GroupResource("", "componentstatus"), name)
