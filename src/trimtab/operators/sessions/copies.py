"""Copies: secrets of the operator's namespace that the runners of projects need.

A copy says whose it is, what it was made of, and belongs to the project's settings and
to nobody else. It is made when a session starts, follows its source while a session of
the project is active, and goes with the last of them, also if its source went before.
Which those are, an index of the sessions knows; nothing is ever listed.

A Secret of that name that somebody else made is used as it is and never touched.
"""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Mapping
from typing import Any, Final

from trimtab.api import Metadata, Resource, owner_of, wire
from trimtab.cache import Index, Keep, Key, Scope
from trimtab.client import AlreadyExists, Client, Conflict, NotFound
from trimtab.kinds import Secret
from trimtab.operators.sessions.kinds import (
    ACTIVE,
    COPIED_FROM,
    DESIRED,
    SETTINGS,
    AgenticSession,
    ProjectSettings,
)
from trimtab.operators.sessions.settings import Settings
from trimtab.runtime import By, Context, Operator, Result, Retry, Watched

Plain = dict[str, Any]

MANAGER: Final = "sessions.copies"
LABEL: Final = "ambient-code.io/copied"
"""On every copy, so that they are watched and other secrets are not."""
HASH: Final = "ambient-code.io/content-hash"
_TRIES: Final = 3


class CopiedSecret(Resource, version="v1", kind="Secret", builtin=True):
    """A copy as it is remembered: what it says of itself, and nothing secret."""


class SourceSecret(Resource, version="v1", kind="Secret", builtin=True):
    """What copies are made of."""

    type: str = ""
    data: dict[str, bytes] = {}

    def __repr__(self) -> str:
        return f"SourceSecret({self.key})"


def is_active(session: AgenticSession) -> bool:
    """Whether a session needs what its project has copies of, or soon will."""
    wanted = session.metadata.annotations.get(DESIRED) == "Running"
    return wanted or session.status.phase in ACTIVE


ACTIVE_IN: Final = Index(
    "active-in", lambda each: (each.metadata.namespace,) if is_active(each) else ()
)
"""The active sessions of a namespace."""


def content_hash(data: Mapping[str, bytes]) -> str:
    """What tells one content from another, and nothing about either."""
    digest = hashlib.sha256()
    for name in sorted(data):
        for part in (name.encode(), data[name]):
            digest.update(b"%d:" % len(part))
            digest.update(part)
    return digest.hexdigest()[:32]


async def ensure(
    client: Client,
    namespace: str,
    *,
    project: ProjectSettings | None,
    settings: Settings,
) -> frozenset[str]:
    """Have in a project what its runners need; the names of what is there then.

    Flow: called before a pod is made. Each source is read, and each copy; what differs
    is written.

    Guarantees: after it, every copy is what its source is. What nobody copied is left
    alone. A source that does not exist is no error: the caller knows whom it fails.
    """
    found = set()
    for name in settings.copied:
        source = await _source(client, name, settings)
        if await _follow(client, (namespace, name), source, project, settings):
            found.add(name)
    return frozenset(found)


async def _source(client: Client, name: str, settings: Settings) -> SourceSecret | None:
    try:
        return await client.get(SourceSecret, name, namespace=settings.namespace)
    except NotFound:
        return None


async def _follow(
    client: Client,
    key: Key,
    source: SourceSecret | None,
    project: ProjectSettings | None,
    settings: Settings,
) -> bool:
    """Make a copy what its source is; whether there is a Secret of its name then."""
    namespace, name = key
    for _ in range(_TRIES):
        try:
            held = await client.get(Secret, name, namespace=namespace)
        except NotFound:
            if source is None:
                return False
            if await _create(client, key, source, project, settings):
                return True
            continue
        if source is None or not is_copy(held.metadata, settings):
            return True
        if _is_current(held, source, project):
            return True
        if await _update(client, held, source, project):
            return True
    raise Retry(f"The Secret {namespace}/{name} changes all the time.", after=1.0)


def is_copy(metadata: Metadata, settings: Settings) -> bool:
    """Whether a Secret was copied from where this operator copies from."""
    source = metadata.annotations.get(COPIED_FROM, "")
    return source == f"{settings.namespace}/{metadata.name}"


def _is_current(
    held: Secret, source: SourceSecret, project: ProjectSettings | None
) -> bool:
    content = content_hash(source.data)
    same = content_hash(held.data) == content
    return same and _seems_current(held.metadata, content, project)


def _owners(project: ProjectSettings | None) -> list[Plain]:
    if project is None:
        return []
    return [wire(owner_of(project, controller=False))]


async def _create(
    client: Client,
    key: Key,
    source: SourceSecret,
    project: ProjectSettings | None,
    settings: Settings,
) -> bool:
    namespace, name = key
    body = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {LABEL: "true"},
            "annotations": {
                COPIED_FROM: f"{settings.namespace}/{name}",
                HASH: content_hash(source.data),
            },
            "ownerReferences": _owners(project),
        },
        "type": source.type,
        "data": _encoded(source.data),
    }
    try:
        await client.create(body, manager=MANAGER)
    except AlreadyExists:
        return False
    return True


async def _update(
    client: Client,
    held: Secret,
    source: SourceSecret,
    project: ProjectSettings | None,
) -> bool:
    gone = dict.fromkeys(held.data.keys() - source.data.keys())
    body = {
        "metadata": {
            "resourceVersion": held.metadata.resourceVersion,
            "labels": {LABEL: "true"},
            "annotations": {HASH: content_hash(source.data)},
            "ownerReferences": _owners(project),
        },
        "data": {**gone, **_encoded(source.data)},
    }
    namespace, name = held.key
    try:
        await client.patch(Secret, name, body, namespace=namespace, manager=MANAGER)
    except (Conflict, NotFound):
        return False
    return True


def _encoded(data: Mapping[str, bytes]) -> dict[str, str]:
    return {name: b64encode(value).decode() for name, value in data.items()}


IN_NAMESPACE: Final = Index("namespace", lambda each: (each.metadata.namespace,))
_NAMED: Final = Index("name", lambda each: (each.metadata.name,))
_OTHERS: Final = "others"


def register(
    app: Operator,
    settings: Settings,
    *,
    sessions: Scope,
    keep: Keep[Any] | None = None,
) -> None:
    """Have an operator keep the copies right, by one small controller for each source.

    One more looks after copies of what is no longer copied. ``sessions`` and ``keep``
    are how the operator watches sessions: the watch is the same one.
    """
    if not settings.copied:
        return
    for name in (*settings.copied, _OTHERS):
        _register(app, name, settings, sessions=sessions, keep=keep)
    app.needs(Secret, "get", "create", "patch", "delete")


def _register(
    app: Operator,
    name: str,
    settings: Settings,
    *,
    sessions: Scope,
    keep: Keep[Any] | None,
) -> None:
    is_other = name == _OTHERS

    def is_mine(copy: CopiedSecret) -> bool:
        called = copy.metadata.name
        return called not in settings.copied if is_other else called == name

    @app.reconciles(
        CopiedSecret,
        scope=Scope(labels=f"{LABEL}=true"),
        when=is_mine,
        watches=[
            *(() if is_other else (_source_of(name, settings),)),
            *_needing(sessions, keep),
        ],
        indexes=(_NAMED, IN_NAMESPACE),
        concurrency=1,
        name=f"copies-{name}",
    )
    async def copies(copy: CopiedSecret, ctx: Context) -> Result:
        if is_copy(copy.metadata, settings):
            where = settings.namespace
            source = None if is_other else ctx.get(SourceSecret, name, namespace=where)
            await _settle(copy, source, ctx, settings)
        return ctx.done()


def _source_of(name: str, settings: Settings) -> Watched:
    return Watched(
        kind=SourceSecret,
        scope=Scope(namespaces=(settings.namespace,), fields=f"metadata.name={name}"),
        to=By(_NAMED.name, lambda source: (source.metadata.name,)),
    )


def _needing(sessions: Scope, keep: Keep[Any] | None) -> tuple[Watched, Watched]:
    """Who needs the copies of a namespace, and whose they are."""
    there = By(IN_NAMESPACE.name, lambda each: (each.metadata.namespace,))
    return (
        Watched(
            kind=AgenticSession,
            scope=sessions,
            to=there,
            on_change=("status.phase", "metadata.annotations"),
            keep=keep,
            indexes=(ACTIVE_IN,),
        ),
        Watched(
            kind=ProjectSettings, scope=sessions, to=there, on_change=("metadata.uid",)
        ),
    )


async def _settle(
    copy: CopiedSecret, source: SourceSecret | None, ctx: Context, settings: Settings
) -> None:
    """Bring a copy to what it should be.

    One whose source is gone stays as it is for those who run with it, and goes with
    the last of them, like any other.
    """
    namespace = copy.metadata.namespace
    if not ctx.select(AgenticSession, ACTIVE_IN.name, namespace):
        await ctx.delete(copy)
        return
    if source is None:
        return
    project = ctx.get(ProjectSettings, SETTINGS, namespace=namespace)
    if not _seems_current(copy.metadata, content_hash(source.data), project):
        await _follow(ctx.client, copy.key, source, project, settings)


def _seems_current(
    metadata: Metadata, content: str, project: ProjectSettings | None
) -> bool:
    """Whether a copy says of itself that it is current, by which it is remembered."""
    return (
        metadata.annotations.get(HASH) == content
        and metadata.labels.get(LABEL) == "true"
        and [wire(each) for each in metadata.ownerReferences] == _owners(project)
    )
