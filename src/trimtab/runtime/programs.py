"""Programs: what an operator is installed with, beside itself.

A gateway, a worker: another command of the same image, with a service account of its
own. They are declared here so that the operator's chart has them; nothing else runs
them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import msgspec

from trimtab.api.names import check_label
from trimtab.api.resource import Info, Resource

Place = Literal["home", "served", "cluster"]
"""Where a right holds: where the release is, where the program serves (the whole
cluster, unless its value ``everywhere`` is false), or in the whole cluster."""


class Right(msgspec.Struct, frozen=True):
    """Verbs on one kind, in one place."""

    kind: type[Resource] | Info
    verbs: tuple[str, ...]
    subresource: str = ""
    place: Place = "served"
    names: tuple[str, ...] = ()

    def plain(self) -> dict[str, Any]:
        """As a rule of a role."""
        kind = self.kind
        info = kind if isinstance(kind, Info) else kind.__resource__
        resource = f"{info.plural}/{self.subresource}".rstrip("/")
        rule: dict[str, Any] = {"apiGroups": [info.group], "resources": [resource]}
        if self.names:
            rule["resourceNames"] = list(self.names)
        return {**rule, "verbs": list(self.verbs)}


class Program(msgspec.Struct, frozen=True, kw_only=True):
    """One more workload of a chart.

    Texts are Helm templates; in them ``$values`` are the program's own values and
    ``$name`` is its full name.
    """

    name: str
    about: str
    arguments: str
    """What ``trimtab`` is given: a list, in YAML."""
    values: dict[str, Any] = {}
    """Those that other programs do not have, each with its default."""
    ports: tuple[str, ...] = ()
    """The names of its ports; the numbers are in its values, under ``ports``."""
    probed: str = ""
    """The port where ``/healthz`` and ``/readyz`` are asked for, by HTTPS; without
    one, nothing asks."""
    rights: tuple[Right, ...] = ()
    calls: tuple[tuple[str, str], ...] = ()
    """Other programs that it calls, each with the name of a port."""
    fetches: str = ""
    """When it reads from addresses that its users name: a condition; empty is never."""
    grace: int = 15
    """Seconds that it may take to stop."""
    env: str = ""
    mounts: str = ""
    volumes: str = ""
    labels: str = ""
    """More labels of its pods: a map, in YAML."""
    made_by: str = ""
    """Another kind that can make its pods, if its value ``set`` is true: everything of
    the object but its metadata and the pods' template."""
    more: Callable[[], str] = str
    """Makes more objects that come with it, each after a line of ``---``."""

    def __post_init__(self) -> None:
        check_label(self.name, what="The name of a program")
        if not self.name.isalnum():  # it is also the name of its values
            raise ValueError(f"{self.name!r}: a program's name is one word.")
        if missing := [each for each in self.ports if each not in self._numbers()]:
            raise ValueError(f"{self.name}: values['ports'] has no {missing[0]!r}.")

    def _numbers(self) -> dict[str, int]:
        found: dict[str, int] = self.values.get("ports", {})
        return found
