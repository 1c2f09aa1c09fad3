"""Resources: the classes that stand for kinds, and the metadata each object has.

``class Website(Resource, group="example.com", version="v1")`` names a kind. From its
annotations come the CRD (:mod:`trimtab.api.crd`) and the decoder; the same class is
what controllers are handed and what they write.

A built-in kind is a *slice*: a class with only the fields that somebody reads
(``builtin=True``, no CRD). A user adds a field by subclassing it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, ClassVar

import msgspec
from msgspec import NODEFAULT

from trimtab.api.names import check_group, check_kind
from trimtab.api.names import plural as plural_of
from trimtab.api.objects import Object, ObjectMeta, annotations_of, field


class OwnerReference(Object):
    """A parent: when it goes, the object that holds this reference goes with it."""

    apiVersion: str
    kind: str
    name: str
    uid: str
    controller: bool | None = None
    blockOwnerDeletion: bool | None = None


class Metadata(Object):
    """What every object has. ``managedFields`` is not here: nobody should keep it."""

    name: str = ""
    generateName: str = ""
    namespace: str = ""
    uid: str = ""
    resourceVersion: str = ""
    generation: int = field(default=0, server_set=True)
    creationTimestamp: datetime | None = field(default=None, server_set=True)
    deletionTimestamp: datetime | None = field(default=None, server_set=True)
    deletionGracePeriodSeconds: int | None = field(default=None, server_set=True)
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    ownerReferences: Sequence[OwnerReference] = ()
    finalizers: Sequence[str] = ()


class Column(msgspec.Struct, frozen=True, kw_only=True):
    """One column of ``kubectl get``: a name, a JSON path, a type."""

    name: str
    path: str
    type: str = "string"
    format: str | None = None
    doc: str | None = None
    priority: int = 0


class Scale(msgspec.Struct, frozen=True, kw_only=True):
    """Where the scale subresource finds its numbers, as JSON paths."""

    spec_replicas: str
    status_replicas: str
    label_selector: str | None = None


class Info(msgspec.Struct, frozen=True, kw_only=True):
    """Which resource a class (or a dynamic object) is: all that a URL needs."""

    group: str = ""
    version: str
    kind: str
    plural: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    def __str__(self) -> str:
        return f"{self.plural}.{self.version}.{self.group}".rstrip(".")


class Definition(msgspec.Struct, frozen=True, kw_only=True):
    """What the CRD of a class says beyond :class:`Info` and the schema."""

    singular: str
    short: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    columns: tuple[Column, ...] = ()
    scale: Scale | None = None
    selectable: tuple[str, ...] = ()
    storage: bool = True
    served: bool = True
    deprecated: str | None = None


def _annotation(namespace: dict[str, Any], attribute: str) -> Any:
    """The type that a class body gives an attribute, if it can be known already."""
    annotation = annotations_of(namespace).get(attribute)
    if not isinstance(annotation, str):
        return annotation
    module = sys.modules.get(namespace.get("__module__", ""))
    try:
        return eval(annotation, vars(module)) if module else None
    except (NameError, AttributeError):  # it comes later in the module
        return None


def _default_factory(
    namespace: dict[str, Any], attribute: str
) -> Callable[[], Any] | None:
    """How to make the part that an object came without, if it has a default form."""
    kind = _annotation(namespace, attribute)
    if attribute in namespace or not isinstance(kind, type):
        return None
    if not issubclass(kind, Object):
        return None
    defaults = kind.__struct_defaults__
    missing = len(kind.__struct_fields__) - len(defaults) + defaults.count(NODEFAULT)
    return None if missing else kind


class ResourceMeta(ObjectMeta):
    """Reads the class keywords of a resource into ``__resource__``."""

    def __new__(
        mcls,
        name: str,
        bases: tuple[type, ...],
        namespace: dict[str, Any],
        *,
        version: str | None = None,
        group: str = "",
        kind: str | None = None,
        plural: str | None = None,
        namespaced: bool = True,
        builtin: bool = False,
        singular: str | None = None,
        short: str | Sequence[str] = (),
        categories: Sequence[str] = (),
        columns: Sequence[Column] = (),
        scale: Scale | None = None,
        selectable: Sequence[str] = (),
        storage: bool = True,
        served: bool = True,
        deprecated: str | None = None,
        **options: Any,
    ) -> Any:
        for part in ("spec", "status"):
            factory = _default_factory(namespace, part)
            if factory is not None:
                namespace[part] = field(default_factory=factory)
        if version is not None:
            kind = kind or name
            check_kind(kind)
            if group:
                check_group(group)
            info = Info(
                group=group,
                version=version,
                kind=kind,
                plural=plural or plural_of(kind),
                namespaced=namespaced,
            )
            namespace["__resource__"] = info
            namespace["__head__"] = {"apiVersion": info.api_version, "kind": kind}
            namespace["apiVersion"] = info.api_version
            namespace["kind"] = kind
            namespace["__checked__"] = not builtin
            namespace["__definition__"] = (
                None
                if builtin
                else Definition(
                    singular=singular or kind.lower(),
                    short=(short,) if isinstance(short, str) else tuple(short),
                    categories=tuple(categories),
                    columns=tuple(columns),
                    scale=scale,
                    selectable=tuple(selectable),
                    storage=storage,
                    served=served,
                    deprecated=deprecated,
                )
            )
        return super().__new__(mcls, name, bases, namespace, **options)


class Resource(Object, metaclass=ResourceMeta):
    """An object of one kind: metadata, and whatever fields the subclass names.

    Class keywords: ``group`` and ``version`` (required to name a kind), ``kind`` (else
    the class name), ``plural``, ``namespaced``, ``builtin`` (a slice of a kind that the
    server has already); for the CRD: ``singular``, ``short``, ``categories``,
    ``columns``, ``scale``, ``selectable``, ``storage``, ``served``, ``deprecated``,
    ``rules``. A subclass without ``version`` is the same kind with more fields.
    """

    __resource__: ClassVar[Info]
    __definition__: ClassVar[Definition | None] = None
    apiVersion: ClassVar[str]
    kind: ClassVar[str]

    metadata: Metadata = field(default_factory=Metadata)

    @property
    def key(self) -> tuple[str, str]:
        """Namespace and name: what identifies an object within its kind."""
        return (self.metadata.namespace, self.metadata.name)

    @classmethod
    def status_of(cls, owner: str = "") -> type[Any]:
        """The partial of this kind's status that an owner may write."""
        from trimtab.api.owners import status_of

        return status_of(cls, owner)

    def __str__(self) -> str:
        place = "/".join(part for part in self.key if part)
        return f"{self.__resource__.kind} {place}"


def owner_of(obj: Resource, *, controller: bool = True) -> OwnerReference:
    """A reference that makes ``obj`` the parent of whatever carries it."""
    if not obj.metadata.uid:
        raise ValueError(f"{obj} has no uid yet; create it before it can own anything")
    return OwnerReference(
        apiVersion=obj.apiVersion,
        kind=obj.kind,
        name=obj.metadata.name,
        uid=obj.metadata.uid,
        controller=controller or None,
        blockOwnerDeletion=controller or None,
    )
