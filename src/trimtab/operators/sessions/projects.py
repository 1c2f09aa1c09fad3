"""Projects: what each managed namespace has besides its sessions.

A namespace with the label is a project and gets settings, if it has none. Of the
settings come the bindings of its groups, the account that triggers scheduled sessions,
the limits of containers that say none, and the rule who may call its runners. All of
them are watched: each is compared with what it should be, and written only if it is
not, so a project that is as it should be costs nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Iterator
from typing import Any, Final

import msgspec

from trimtab.api import Metadata, Quantity, Resource, wire
from trimtab.api.selectors import LabelSelector
from trimtab.cache import Scope
from trimtab.client import AlreadyExists, TrimtabError
from trimtab.kinds import (
    ClusterRole,
    LimitRange,
    LimitRangeItem,
    LimitRangeSpec,
    Namespace,
    NetworkPolicy,
    NetworkPolicyIngressRule,
    NetworkPolicyPeer,
    NetworkPolicyPort,
    NetworkPolicySpec,
    PolicyRule,
    Role,
    RoleBinding,
    RoleRef,
    ServiceAccount,
    Subject,
)
from trimtab.operators.sessions import bindings, schedules
from trimtab.operators.sessions.kinds import (
    APP,
    GROUP,
    MANAGED,
    SETTINGS,
    AgenticSession,
    ProjectSettings,
    ProjectSettingsSpec,
    ProjectSettingsStatus,
)
from trimtab.operators.sessions.profiles import Registry
from trimtab.operators.sessions.settings import Settings
from trimtab.operators.sessions.triggering import Tell
from trimtab.runtime import Context, Operator, Result, Retry, Watched

TRIGGER: Final = "ambient-session-trigger"
LIMITS: Final = "ambient-default-limits"
POLICY: Final = "runner-allow-backend-only"
TRIGGERS: Final = ("create", "get", "list", "patch", "update")
"""What the account of schedules may do with sessions."""
PROJECTS: Final = Scope(labels=f"{MANAGED}=true")
_PAUSE: Final = 30.0


def register(
    app: Operator,
    settings: Settings,
    *,
    registry: Registry,
    scope: Scope,
    tell: Tell | None = None,
) -> None:
    """Have an operator look after the projects.

    ``scope`` is where settings are watched: everywhere, most often, for they are small
    and there is one in each project. ``tell`` gives prompts of schedules to sessions
    that run already.
    """

    @app.reconciles(
        Namespace,
        scope=PROJECTS,
        watches=[
            Watched(
                kind=ProjectSettings,
                scope=scope,
                to=lambda each: [("", each.metadata.namespace)],
                on_change=("metadata.uid",),
            )
        ],
        on_change=("metadata.labels",),
        name="project",
    )
    async def project(seen: Namespace, ctx: Context) -> Result:
        if ctx.get(ProjectSettings, SETTINGS, namespace=seen.metadata.name) is None:
            await _begin(seen, ctx)
        return ctx.done()

    @app.reconciles(
        ProjectSettings,
        scope=scope,
        on_change=("spec", "metadata.uid"),
        watches=[Watched(kind=Namespace, scope=PROJECTS, to=_settings_of), *_parts()],
        name="settings",
    )
    async def of_project(seen: ProjectSettings, ctx: Context) -> Result:
        if ctx.get(Namespace, seen.metadata.namespace) is None:
            return ctx.done()  # nobody manages it, or no longer
        return await _project(seen, ctx, settings, registry, tell)

    _permissions(app)


def _parts() -> Iterator[Watched]:
    """What is made for projects, each kind by one watch."""
    yield Watched(
        kind=RoleBinding,
        scope=bindings.SCOPE,
        to=_settings_in,
        indexes=(bindings.BY_NAMESPACE,),
    )
    for kind, name in (
        (ServiceAccount, TRIGGER),
        (Role, TRIGGER),
        (LimitRange, LIMITS),
        (NetworkPolicy, POLICY),
    ):
        yield Watched(kind=kind, scope=_named(name), to=_settings_in)


def _permissions(app: Operator) -> None:
    """What is used and no declaration shows.

    A role is granted by who has what is in it, and a cluster role by who may bind it.
    """
    app.needs(ProjectSettings, "create")
    for kind in (ServiceAccount, Role, RoleBinding, LimitRange, NetworkPolicy):
        app.needs(kind, "create", "patch")
    app.needs(RoleBinding, "delete")
    app.needs(AgenticSession, *TRIGGERS)
    app.needs(ClusterRole, "bind", names=sorted(bindings.ROLES))


def _named(name: str) -> Scope:
    return Scope(fields=f"metadata.name={name}")


def _settings_of(namespace: Namespace) -> list[tuple[str, str]]:
    return [(namespace.metadata.name, SETTINGS)]


def _settings_in(each: Resource) -> list[tuple[str, str]]:
    return [(each.metadata.namespace, SETTINGS)]


async def _begin(namespace: Namespace, ctx: Context) -> None:
    """Give a project settings; it is not applied, for they are the project's own."""
    metadata = Metadata(name=SETTINGS, namespace=namespace.metadata.name)
    spec = ProjectSettingsSpec(groupAccess=[])
    try:
        await ctx.client.create(ProjectSettings(metadata=metadata, spec=spec))
    except AlreadyExists:
        return
    ctx.event("ProjectCreated", "It is a project, and has settings now.")


class _Outcome:
    """What went wrong in one look at a project; the rest went on all the same."""

    def __init__(self) -> None:
        self.problems: list[str] = []

    async def tried(self, what: str, work: Awaitable[None]) -> bool:
        try:
            await work
        except (TrimtabError, ValueError) as problem:
            self.problems.append(f"{what}: {problem}")
            return False
        return True


async def _project(
    seen: ProjectSettings,
    ctx: Context,
    settings: Settings,
    registry: Registry,
    tell: Tell | None,
) -> Result:
    outcome = _Outcome()
    turns = schedules.Turns(seen.status.schedules, None)
    if settings.schedules:
        turns = await schedules.run(seen, ctx, tell=tell)
    bound = await bindings.reconcile(seen, ctx, outcome.problems)
    ready = await outcome.tried("The account of schedules", _trigger(seen, ctx))
    limited = await outcome.tried("The limits of containers", _limits(ctx))
    closed = await outcome.tried(
        "Who may call runners", _made(ctx, policy(settings, registry.ports()))
    )
    status = ProjectSettingsStatus(
        groupBindingsCreated=bound,
        scheduledSessionRBACReady=ready,
        limitRangeReady=limited,
        observedGeneration=seen.metadata.generation,
        schedules=turns.states,
    )
    _state(seen, ctx, status, _stated(outcome.problems, closed, turns))
    if not outcome.problems:
        return ctx.done(after=turns.after)
    after = _PAUSE if turns.after is None else min(_PAUSE, turns.after)
    raise Retry(" ".join(outcome.problems), after=after)


class _Stated(msgspec.Struct, frozen=True):
    type: str
    status: bool
    reason: str
    message: str = ""


def _stated(
    problems: list[str], closed: bool, turns: schedules.Turns
) -> Iterator[_Stated]:
    if problems:
        yield _Stated("Ready", False, "Failed", " ".join(problems))
    else:
        yield _Stated("Ready", True, "Reconciled")
    yield _Stated("RunnersProtected", closed, "Applied" if closed else "Failed")
    if turns.problem:
        yield _Stated("SchedulesReady", False, "Failed", turns.problem)
    elif turns.states:
        yield _Stated("SchedulesReady", True, "Scheduled")


def _state(
    seen: ProjectSettings,
    ctx: Context,
    status: ProjectSettingsStatus,
    stated: Iterable[_Stated],
) -> None:
    """State what is so, if the settings do not say it yet.

    A process that begins knows nothing of what it wrote before: it would write all of
    it again, once for each project.
    """
    said, all_stated = seen.status.conditions, tuple(stated)
    for each in all_stated:
        said = said.set(
            each.type,
            each.status,
            reason=each.reason,
            message=each.message,
            now=ctx.now,
            observed_generation=seen.metadata.generation,
        )
    if msgspec.structs.replace(status, conditions=said) == seen.status:
        return
    for each in all_stated:
        ctx.condition(each.type, each.status, reason=each.reason, message=each.message)
    ctx.status(status)


async def _made(ctx: Context, wanted: Resource) -> None:
    """Have an object, and send nothing if it is there and says all that it should."""
    current = ctx.get(type(wanted), wanted.metadata.name)
    if current is None or not says(current, wanted):
        await ctx.apply(wanted)


def says(current: Resource, wanted: Resource) -> bool:
    """Whether an object is what another says it should be, its names aside."""
    found, asked = wire(current), wire(wanted)
    labels = found["metadata"].get("labels", {})
    if not asked["metadata"].get("labels", {}).items() <= labels.items():
        return False
    parts = asked.keys() - {"apiVersion", "kind", "metadata", "status"}
    return all(_within(asked[part], found.get(part)) for part in parts)


def _within(asked: Any, found: Any) -> bool:
    """Whether a value has all of another; what a server filled in does not count."""
    if isinstance(asked, dict):
        has = isinstance(found, dict)
        return has and all(_within(asked[key], found.get(key)) for key in asked)
    if isinstance(asked, list):
        if not isinstance(found, list) or len(found) != len(asked):
            return False
        return all(map(_within, asked, found))
    return bool(asked == found)


async def _limits(ctx: Context) -> None:
    """Have limits; those that a project changed stay as they are."""
    if ctx.get(LimitRange, LIMITS) is None:
        await ctx.apply(limits())


async def _trigger(seen: ProjectSettings, ctx: Context) -> None:
    for each in trigger(seen.metadata.namespace):
        await _made(ctx, each)


def limits() -> LimitRange:
    """What a container gets that asks for nothing."""
    item = LimitRangeItem(
        type="Container",
        defaultRequest={"cpu": Quantity("250m"), "memory": Quantity("256Mi")},
        default={"cpu": Quantity("2"), "memory": Quantity("4Gi")},
    )
    return LimitRange(metadata=_metadata(LIMITS), spec=LimitRangeSpec(limits=[item]))


def policy(settings: Settings, ports: tuple[int, ...]) -> NetworkPolicy:
    """Who may call runners: the backend, and who operates them."""
    namespaces = sorted({settings.backend, settings.namespace})
    peers = [
        NetworkPolicyPeer(
            namespaceSelector=LabelSelector(
                matchLabels={"kubernetes.io/metadata.name": name}
            )
        )
        for name in namespaces
    ]
    rule = NetworkPolicyIngressRule(
        from_=peers,
        ports=[NetworkPolicyPort(protocol="TCP", port=port) for port in ports],
    )
    return NetworkPolicy(
        metadata=_metadata(POLICY),
        spec=NetworkPolicySpec(
            podSelector=LabelSelector(matchLabels={"app": APP}),
            policyTypes=["Ingress"],
            ingress=[rule],
        ),
    )


def trigger(namespace: str) -> tuple[Resource, ...]:
    """The account that CronJobs of the backend make sessions by."""
    rule = PolicyRule(
        apiGroups=[GROUP],
        resources=["agenticsessions"],
        verbs=TRIGGERS,
    )
    subject = Subject(kind="ServiceAccount", name=TRIGGER, namespace=namespace)
    return (
        ServiceAccount(metadata=_metadata(TRIGGER)),
        Role(metadata=_metadata(TRIGGER), rules=[rule]),
        RoleBinding(
            metadata=_metadata(TRIGGER),
            roleRef=RoleRef(kind="Role", name=TRIGGER),
            subjects=[subject],
        ),
    )


def _metadata(name: str) -> Metadata:
    return Metadata(name=name, labels={MANAGED: "true"})
