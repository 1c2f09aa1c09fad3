"""Writing: create, replace, apply, patch, delete, by class or by discovered kind.

A write is sent once. If its answer is lost, :class:`Ambiguous` says so: read the object
before acting again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias, TypeVar, Unpack, overload

from trimtab.api import codec
from trimtab.api.objects import Object, wire
from trimtab.api.resource import Info, Resource
from trimtab.client.kinds import Kind, Plain, info_of, type_of
from trimtab.client.options import (
    Applying,
    Collecting,
    Deleting,
    Fields,
    Labels,
    Patching,
    Writing,
    field_text,
    label_text,
)
from trimtab.client.paths import Query, path, query
from trimtab.client.session import Session
from trimtab.client.transport import JSON_BODY, Request

R = TypeVar("R", bound=Resource)
PatchType: TypeAlias = Literal["merge", "json", "strategic"]

APPLY_CONTENT = "application/apply-patch+yaml"
PATCH_CONTENT: dict[PatchType, str] = {
    "merge": "application/merge-patch+json",
    "json": "application/json-patch+json",
    "strategic": "application/strategic-merge-patch+json",
}


class Writes(Session):
    """The verbs that change something."""

    @overload
    async def create(self, obj: R, **options: Unpack[Writing]) -> R: ...
    @overload
    async def create(self, obj: Plain, **options: Unpack[Writing]) -> Plain: ...
    async def create(self, obj: Any, **options: Unpack[Writing]) -> Any:
        """Make a new object; :class:`AlreadyExists` if there is one of its name."""
        with self._within(options.get("deadline")):
            info, namespace, _ = await self._place(obj)
            request = Request(
                method="POST",
                path=path(info, namespace=namespace),
                query=_write_query(options),
                headers=JSON_BODY,
                body=_body(obj, None),
            )
            return await self._write(request, "create", obj)

    @overload
    async def replace(
        self, obj: R, *, subresource: str | None = ..., **options: Unpack[Writing]
    ) -> R: ...
    @overload
    async def replace(
        self, obj: Plain, *, subresource: str | None = ..., **options: Unpack[Writing]
    ) -> Plain: ...
    async def replace(
        self, obj: Any, *, subresource: str | None = None, **options: Unpack[Writing]
    ) -> Any:
        """Put a whole object in the place of the one that is there.

        What it does not mention is gone. A slice of a built-in kind, which mentions
        only some fields, is therefore refused: use apply or patch, or a plain dict.
        """
        if isinstance(obj, Resource) and type(obj).__definition__ is None:
            raise TypeError(
                f"{obj} is a slice: replacing would drop every field that the class "
                "does not name; use apply or patch, or replace with a plain dict"
            )
        with self._within(options.get("deadline")):
            request = Request(
                method="PUT",
                path=await self._object_path(obj, subresource),
                query=_write_query(options),
                headers=JSON_BODY,
                body=_body(obj, subresource),
            )
            return await self._write(request, "replace", obj)

    @overload
    async def apply(
        self,
        obj: R,
        *,
        manager: str,
        subresource: str | None = ...,
        **options: Unpack[Applying],
    ) -> R: ...
    @overload
    async def apply(
        self,
        obj: Plain,
        *,
        manager: str,
        subresource: str | None = ...,
        **options: Unpack[Applying],
    ) -> Plain: ...
    async def apply(
        self,
        obj: Any,
        *,
        manager: str,
        subresource: str | None = None,
        **options: Unpack[Applying],
    ) -> Any:
        """Server-side apply: own exactly the fields that ``obj`` mentions.

        Errors: :class:`Conflict` if another manager owns one of them with another
        value (``force=True`` takes it over), or if ``metadata.resourceVersion`` is set
        and no longer current.
        """
        with self._within(options.get("deadline")):
            where = await self._object_path(obj, subresource)
            request = _apply_request(where, _body(obj, subresource), manager, options)
            return await self._write(request, "apply", obj)

    async def apply_status(
        self,
        kind: type[R],
        name: str,
        status: Object | Mapping[str, Any],
        *,
        manager: str,
        namespace: str | None = None,
        resource_version: str | None = None,
        **options: Unpack[Applying],
    ) -> R:
        """Server-side apply of status fields: those of one owner, see ``status_of``.

        With ``resource_version`` it is a compare-and-swap: :class:`Conflict` if the
        object has changed since.
        """
        info = info_of(kind)
        metadata = {"name": name, "resourceVersion": resource_version}
        body = {
            "apiVersion": info.api_version,
            "kind": info.kind,
            "metadata": {key: value for key, value in metadata.items() if value},
            "status": wire(status) if isinstance(status, Object) else dict(status),
        }
        where = self._path(kind, namespace=namespace, name=name, subresource="status")
        request = _apply_request(where, codec.encode(body), manager, options)
        return await self._calls.call(
            request, verb="apply", into=kind, deadline=options.get("deadline")
        )

    @overload
    async def patch(
        self,
        kind: type[R],
        name: str,
        body: Any,
        *,
        how: PatchType = ...,
        **options: Unpack[Patching],
    ) -> R: ...
    @overload
    async def patch(
        self,
        kind: Info,
        name: str,
        body: Any,
        *,
        how: PatchType = ...,
        **options: Unpack[Patching],
    ) -> Plain: ...
    async def patch(
        self,
        kind: Kind,
        name: str,
        body: Any,
        *,
        how: PatchType = "merge",
        **options: Unpack[Patching],
    ) -> Any:
        """Change parts of an object: by merge patch, JSON patch or strategic merge."""
        request = Request(
            method="PATCH",
            path=self._path(
                kind,
                namespace=options.get("namespace"),
                name=name,
                subresource=options.get("subresource"),
            ),
            query=_write_query(options),
            headers=(("Content-Type", PATCH_CONTENT[how]),),
            body=codec.encode(body),
        )
        return await self._calls.call(
            request, verb="patch", into=type_of(kind), deadline=options.get("deadline")
        )

    async def delete(self, kind: Kind, name: str, **options: Unpack[Deleting]) -> Plain:
        """Delete one object; answers with it (finalizers pending) or with a Status."""
        preconditions = {
            "uid": options.get("uid"),
            "resourceVersion": options.get("resource_version"),
        }
        request = Request(
            method="DELETE",
            path=self._path(kind, namespace=options.get("namespace"), name=name),
            headers=JSON_BODY,
            body=_delete_body(options, preconditions),
        )
        return await self._calls.call(
            request, verb="delete", into=Plain, deadline=options.get("deadline")
        )

    async def delete_collection(
        self,
        kind: Kind,
        *,
        namespace: str | None = None,
        labels: Labels = None,
        fields: Fields = None,
        **options: Unpack[Collecting],
    ) -> None:
        """Delete what the selectors match, in one namespace (or the context's own)."""
        request = Request(
            method="DELETE",
            path=self._path(kind, namespace=namespace),
            query=query(
                (
                    ("labelSelector", label_text(labels)),
                    ("fieldSelector", field_text(fields)),
                )
            ),
            headers=JSON_BODY,
            body=_delete_body(options, {}),
        )
        await self._calls.call(
            request,
            verb="deletecollection",
            into=bytes,
            deadline=options.get("deadline"),
        )

    async def _object_path(self, obj: Resource | Plain, subresource: str | None) -> str:
        info, namespace, name = await self._place(obj)
        return path(info, namespace=namespace, name=name, subresource=subresource)

    async def _write(self, request: Request, verb: str, obj: Any) -> Any:
        into = type(obj) if isinstance(obj, Resource) else Plain
        return await self._calls.call(request, verb=verb, into=into)


def _body(obj: Resource | Plain, subresource: str | None) -> bytes:
    """What is sent; the server takes status only where status is written."""
    if not isinstance(obj, Resource):
        return codec.encode(obj)
    plain = wire(obj)
    if subresource is None:
        plain.pop("status", None)
    return codec.encode(plain)


def _write_query(options: Writing | Applying, manager: str | None = None) -> Query:
    return query(
        (
            ("fieldManager", manager or options.get("manager")),
            ("dryRun", "All" if options.get("dry_run") else None),
            ("fieldValidation", options.get("validation", "Strict")),
        )
    )


def _apply_request(where: str, body: bytes, manager: str, options: Applying) -> Request:
    if not manager:
        raise ValueError("an apply needs a field manager: who will own the fields?")
    return Request(
        method="PATCH",
        path=where,
        query=_write_query(options, manager)
        + query((("force", options.get("force") or None),)),
        headers=(("Content-Type", APPLY_CONTENT),),
        body=body,
    )


def _delete_body(options: Collecting, preconditions: Mapping[str, Any]) -> bytes:
    kept = {key: value for key, value in preconditions.items() if value}
    asked = {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "propagationPolicy": options.get("propagation"),
        "gracePeriodSeconds": options.get("grace"),
        "dryRun": ["All"] if options.get("dry_run") else None,
        "preconditions": kept or None,
    }
    return codec.encode(
        {key: value for key, value in asked.items() if value is not None}
    )
