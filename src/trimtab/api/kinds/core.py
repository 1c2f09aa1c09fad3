"""Configuration and namespaces: the small objects of the core group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trimtab.api.conditions import Conditions
from trimtab.api.kinds.references import LocalObjectReference, ObjectReference
from trimtab.api.objects import Object
from trimtab.api.quantity import Quantity
from trimtab.api.resource import Resource


class ConfigMap(Resource, version="v1", builtin=True):
    """Configuration: text by key, and bytes by key."""

    data: dict[str, str] = {}
    binaryData: dict[str, bytes] = {}
    immutable: bool | None = None


class Secret(Resource, version="v1", builtin=True):
    """Bytes by key that few may read.

    ``data`` holds the bytes themselves; base64 is only their form on the wire.
    ``stringData`` is for writing: the server moves it into ``data`` and never
    returns it. Neither shows in a repr, so a logged Secret gives nothing away.
    """

    type: str = ""
    data: dict[str, bytes] = {}
    stringData: dict[str, str] = {}
    immutable: bool | None = None

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in self.__rich_repr__())
        return f"Secret({shown})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        names = sorted({*self.data, *self.stringData})
        return [("key", self.key), ("type", self.type), ("names", names)]


class NamespaceSpec(Object):
    """What must be done before the namespace may go."""

    finalizers: Sequence[str] = ()


class NamespaceStatus(Object):
    """Active, or Terminating with conditions that say what holds it up."""

    phase: str = ""
    conditions: Conditions = Conditions()


class Namespace(Resource, version="v1", builtin=True, namespaced=False):
    """A place for names; deleting it deletes all that is in it."""

    spec: NamespaceSpec = NamespaceSpec()
    status: NamespaceStatus = NamespaceStatus()


class ServiceAccount(Resource, version="v1", builtin=True):
    """Who a pod is when it speaks to the API server."""

    secrets: Sequence[ObjectReference] = ()
    imagePullSecrets: Sequence[LocalObjectReference] = ()
    automountServiceAccountToken: bool | None = None


class LimitRangeItem(Object):
    """Bounds and defaults for one type of thing: Container, Pod, a claim."""

    type: str
    default: dict[str, Quantity] = {}
    defaultRequest: dict[str, Quantity] = {}
    max: dict[str, Quantity] = {}
    min: dict[str, Quantity] = {}
    maxLimitRequestRatio: dict[str, Quantity] = {}


class LimitRangeSpec(Object):
    """The bounds of a namespace."""

    limits: Sequence[LimitRangeItem] | None = None


class LimitRange(Resource, version="v1", builtin=True):
    """Bounds and defaults for what each pod of a namespace may ask for."""

    spec: LimitRangeSpec = LimitRangeSpec()
