"""What a test may ask of the cluster that it is given."""

from collections.abc import Sequence
from typing import Literal, TypeAlias

import msgspec

Kind: TypeAlias = Literal["embedded", "real", "current"]
"""`embedded`: Trimtab's own, in a process beside the test. `real`: etcd and
kube-apiserver, started for the test. `current`: the one that the user's kubeconfig
points to."""

ADMIN = "admin"
"""The user, and the context, that a test cluster's kubeconfig starts with."""


class Token(msgspec.Struct, frozen=True, kw_only=True):
    """A bearer token that the API server accepts, for tests of authorization.

    The cluster's kubeconfig has a context named like the user.
    """

    token: str
    user: str
    groups: Sequence[str] = ()

    def __post_init__(self) -> None:
        if self.user == ADMIN:
            raise ValueError(
                f"the user {ADMIN!r} is the administrator's: give the token another."
            )

    def __repr__(self) -> str:
        return f"Token(user={self.user!r}, groups={self.groups!r})"


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What a test cluster is made of; an embedded one needs and takes less."""

    controllers: bool = False
    """Start kube-controller-manager too. Without it nothing makes the service
    accounts that Pods need, so the ServiceAccount admission plugin is switched off;
    nothing collects garbage or finishes the deletion of a namespace; and the cluster
    roles `admin`, `edit` and `view`, which are aggregated, stay empty. An embedded
    cluster makes accounts, collects garbage and finishes deletions by itself."""

    apiserver_flags: Sequence[str] = ()
    """Added after ours, so that they win: `("--event-ttl=10s",)`."""

    etcd_flags: Sequence[str] = ()
    """Added after ours."""

    controller_flags: Sequence[str] = ()
    """Added after ours: `("--controllers=garbage-collector-controller",)`."""

    tokens: Sequence[Token] = ()
    """Users besides the administrator; RBAC says what they may do."""

    ready_within: float = 60.0
    """Seconds for the whole start, and for a restart of kube-apiserver."""
