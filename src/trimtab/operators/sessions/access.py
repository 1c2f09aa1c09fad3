"""Access: who a runner is at the API server, what it may there, and its two tokens.

Each session has a service account that may read the secrets of its project's runners by
name and nothing of other sessions. Its Secret holds a token for the API server, made
anew before each pod and replaced long before it expires, and the word that a caller of
the runner must show, another one for each start.
"""

from __future__ import annotations

from base64 import b64encode
from datetime import datetime, timedelta
from random import Random
from typing import Any, Final
from uuid import UUID

import msgspec

from trimtab.api import Info, Metadata, owner_of, wire
from trimtab.api.times import parse_rfc3339, rfc3339
from trimtab.cache import Key
from trimtab.client import Client, NotFound
from trimtab.kinds import Role, RoleBinding, Secret, ServiceAccount
from trimtab.operators.sessions import names
from trimtab.operators.sessions.environment import AGUI_TOKEN, KUBERNETES_TOKEN
from trimtab.operators.sessions.kinds import GROUP, REFRESHED, AgenticSession
from trimtab.operators.sessions.settings import INTEGRATIONS, RUNNER_SECRETS, Settings
from trimtab.operators.sessions.together import both
from trimtab.runtime import Context, Operator

Plain = dict[str, Any]

MANAGER: Final = "sessions.access"
EXPIRES: Final = "ambient-code.io/token-expires-at"
"""The annotation of a token's Secret that tells when the token does."""
USER: Final = "ambient-code.io/created-by-user-id"
RBAC: Final = "rbac.authorization.k8s.io"
# However short a life a server gives a token, a quarter of it is left for trouble.
_SHARE: Final = 0.75
_SWEPT: Final = 1024
OWN: Final = ("get", "list", "watch", "update", "patch")
"""What a runner may do with its own session."""
EXPERIMENTS: Final = Info(
    group="mlflow.kubeflow.org", version="v1", kind="Experiment", plural="experiments"
)
_TRACKING: Final = ("get", "list", "update")
SOON: Final = 60.0
"""Seconds: a token that is due within them is as good as due."""


class _Due(msgspec.Struct, frozen=True):
    """When the token of a session is to be replaced, on this process's own clock."""

    uid: str
    at: datetime


class Access:
    """Makes, keeps fresh and revokes what runners show.

    What is remembered is one time for each session that runs; ``forget`` and ``revoke``
    take it away.
    """

    def __init__(self, settings: Settings, *, random: Random) -> None:
        self._settings = settings
        self._random = random
        self._due: dict[Key, _Due] = {}
        self._full = _SWEPT

    async def ensure_token(
        self, ctx: Context, session: AgenticSession, *, fresh: bool
    ) -> float:
        """See to it that a session's tokens are good; seconds until they are due.

        Flow: ``fresh`` before each pod: account, role and binding are made so, and both
        tokens are new. Otherwise the API server's token alone is replaced once it is
        due, and the runner, which reads it from a file, is not disturbed.

        Guarantees: while it is not due nothing is sent, but for one read after this
        process began. Neither token is in a log, an error or an event.

        Errors: whatever the server answers; nothing is half done that a second call
        would not finish.
        """
        if fresh:
            return await self._made(ctx, session)
        held = self._due.get(session.key)
        if held is None or held.uid != session.metadata.uid:
            held = await self._found(ctx, session)
            if held is None:
                return await self._made(ctx, session)
            self._due[session.key] = held
        left = (held.at - ctx.now).total_seconds()
        return left if left > SOON else await self._refreshed(ctx, session)

    async def revoke(self, ctx: Context, session: AgenticSession) -> None:
        """Take away what a session that is over no longer needs; gone already is fine.

        With its account every token of it is worthless at once.
        """
        self.forget(session.key)
        name = session.metadata.name
        for kind, called in (
            (ServiceAccount, names.account_name(name)),
            (RoleBinding, names.binding_name(name)),
            (Role, names.role_name(name)),
            (Secret, names.token_secret_name(name)),
        ):
            try:
                await ctx.client.delete(
                    kind, called, namespace=session.metadata.namespace
                )
            except NotFound:
                continue

    def forget(self, key: Key) -> None:
        """A session is gone, or needs no token; nothing about it is kept."""
        self._due.pop(key, None)

    async def issue(self, ctx: Context, session: AgenticSession) -> Secret:
        """Make both tokens anew; the Secret that holds them, as it was written."""
        token, held = await self._minted(ctx, session)
        word = str(UUID(int=self._random.getrandbits(128), version=4))
        data = {KUBERNETES_TOKEN: token, AGUI_TOKEN: word}
        made = _secret(session, data, _said(ctx.now, held))
        await ctx.client.apply(made, manager=MANAGER, force=True)
        self._remember(ctx, session, held)
        return Secret(
            metadata=Metadata(name=made["metadata"]["name"]),
            data={key: text.encode() for key, text in data.items()},
        )

    async def _made(self, ctx: Context, session: AgenticSession) -> float:
        await self.issue(ctx, session)
        return self._left(ctx, session)

    async def _refreshed(self, ctx: Context, session: AgenticSession) -> float:
        token, held = await self._minted(ctx, session)
        body = {
            "metadata": {"annotations": _said(ctx.now, held)},
            "data": {KUBERNETES_TOKEN: b64encode(token.encode()).decode()},
        }
        try:
            await ctx.client.patch(
                Secret,
                names.token_secret_name(session.metadata.name),
                body,
                namespace=session.metadata.namespace,
                manager=MANAGER,
            )
        except NotFound:
            return await self._made(ctx, session)
        self._remember(ctx, session, held)
        return self._left(ctx, session)

    async def _minted(
        self, ctx: Context, session: AgenticSession
    ) -> tuple[str, datetime]:
        """A new token, of an account that is as it should be.

        Meanwhile it is said what the account may do: first the role, because a server
        lets nobody bind what it does not know.
        """
        account, *rights = grants(session, self._settings)
        minted, _ = await both(
            self._token_of(ctx, session, account), _applied(ctx.client, rights)
        )
        return minted

    async def _token_of(
        self, ctx: Context, session: AgenticSession, account: Plain
    ) -> tuple[str, datetime]:
        await ctx.client.apply(account, manager=MANAGER, force=True)
        made = await ctx.client.token(
            names.account_name(session.metadata.name),
            namespace=session.metadata.namespace,
            seconds=self._settings.limits.token_lifetime,
        )
        return made.token, made.expirationTimestamp

    async def _found(self, ctx: Context, session: AgenticSession) -> _Due | None:
        """What the Secret says of its token; None where it must be made anew."""
        annotations = await _annotations(ctx.client, session)
        try:
            since = parse_rfc3339(annotations[REFRESHED])
        except (KeyError, ValueError):
            return None
        try:
            until = parse_rfc3339(annotations[EXPIRES])
        except (KeyError, ValueError):
            until = since + timedelta(seconds=self._settings.limits.token_lifetime)
        return _Due(session.metadata.uid, self._at(since, until))

    def _at(self, since: datetime, until: datetime) -> datetime:
        share = (until - since).total_seconds() * _SHARE
        pause = min(self._settings.limits.token_refresh, share)
        return since + timedelta(seconds=max(pause, 0.0))

    def _remember(self, ctx: Context, session: AgenticSession, until: datetime) -> None:
        held = _Due(session.metadata.uid, self._at(ctx.now, until))
        self._due[session.key] = held
        if len(self._due) > self._full:
            self._sweep(ctx.now)

    def _left(self, ctx: Context, session: AgenticSession) -> float:
        held = self._due[session.key]
        return max((held.at - ctx.now).total_seconds(), SOON)

    def _sweep(self, now: datetime) -> None:
        """Drop what nobody replaced in time: such a session was deleted as it ran."""
        ago = now - timedelta(hours=1)
        self._due = {key: due for key, due in self._due.items() if due.at > ago}
        self._full = max(_SWEPT, 2 * len(self._due))


def permissions(app: Operator, settings: Settings) -> None:
    """Declare what this needs: to make accounts, and to have what it grants them."""
    for kind in (ServiceAccount, Role, RoleBinding, Secret):
        app.needs(kind, "create", "patch", "delete")
    app.needs(ServiceAccount, "create", subresource="token")
    app.needs(Secret, "get")
    app.needs(AgenticSession, *OWN)
    if settings.child_sessions:
        app.needs(AgenticSession, "create")
    if settings.mlflow_account:
        app.needs(EXPERIMENTS, *_TRACKING)


async def _applied(client: Client, objects: list[Plain]) -> None:
    for each in objects:
        await client.apply(each, manager=MANAGER, force=True)


async def _annotations(client: Client, session: AgenticSession) -> dict[str, str]:
    name = names.token_secret_name(session.metadata.name)
    try:
        found = await client.get(Secret, name, namespace=session.metadata.namespace)
    except NotFound:
        return {}
    return dict(found.metadata.annotations)


def _said(now: datetime, until: datetime) -> dict[str, str]:
    return {REFRESHED: rfc3339(now), EXPIRES: rfc3339(until)}


def grants(session: AgenticSession, settings: Settings) -> list[Plain]:
    """The account of a session, what it may do, and that it is the account's."""
    name = session.metadata.name
    user = session.spec.userContext
    annotations = {USER: user.userId} if user is not None and user.userId else {}
    account, role = names.account_name(name), names.role_name(name)
    return [
        _owned(session, "v1", "ServiceAccount", account, annotations=annotations),
        {
            **_owned(session, f"{RBAC}/v1", "Role", role),
            "rules": rules(name, settings),
        },
        {
            **_owned(session, f"{RBAC}/v1", "RoleBinding", names.binding_name(name)),
            "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": role},
            "subjects": [
                {
                    "kind": "ServiceAccount",
                    "name": account,
                    "namespace": session.metadata.namespace,
                }
            ],
        },
    ]


def rules(session: str, settings: Settings) -> list[Plain]:
    """What the runner of a session may do: with itself, and with named secrets."""
    found = [
        _rule(GROUP, "agenticsessions", list(OWN), [session]),
        _rule("", "secrets", ["get"], [INTEGRATIONS, RUNNER_SECRETS]),
    ]
    if settings.child_sessions:  # what is made has no name yet to be let in by
        found.append(_rule(GROUP, "agenticsessions", ["create"]))
    if settings.mlflow_account:
        found.append(_rule(EXPERIMENTS.group, EXPERIMENTS.plural, list(_TRACKING)))
    return found


def _rule(
    group: str, resource: str, verbs: list[str], named: list[str] | None = None
) -> Plain:
    rule = {"apiGroups": [group], "resources": [resource], "verbs": verbs}
    return {**rule, "resourceNames": named} if named else rule


def _owned(
    session: AgenticSession,
    version: str,
    kind: str,
    name: str,
    *,
    annotations: dict[str, str] | None = None,
) -> Plain:
    owner = wire(owner_of(session))
    owner.pop("blockOwnerDeletion", None)
    return {
        "apiVersion": version,
        "kind": kind,
        "metadata": {
            "name": name,
            "namespace": session.metadata.namespace,
            "labels": {"app": "ambient-runner"},
            "annotations": annotations or {},
            "ownerReferences": [owner],
        },
    }


def _secret(
    session: AgenticSession, data: dict[str, str], annotations: dict[str, str]
) -> Plain:
    name = names.token_secret_name(session.metadata.name)
    made = _owned(session, "v1", "Secret", name, annotations=annotations)
    made["metadata"]["labels"] = {"app": "ambient-runner-token"}
    encoded = {key: b64encode(text.encode()).decode() for key, text in data.items()}
    return {**made, "type": "Opaque", "data": encoded}
