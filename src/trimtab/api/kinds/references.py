"""References: how one object names another."""

from __future__ import annotations

from trimtab.api.objects import Object


class LocalObjectReference(Object):
    """The name of an object in the same namespace."""

    name: str = ""


class ObjectReference(Object):
    """Any object, or a part of one: what an event is about."""

    apiVersion: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    resourceVersion: str = ""
    fieldPath: str = ""
