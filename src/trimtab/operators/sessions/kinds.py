"""The kinds of agent sessions: the sessions, and the settings of each project.

A session is commanded by annotations and by its spec; what became of it is in its
status. All of the status is the operator's but ``lastActivityTime``, which belongs to
the program that relays between people and the runner, and is only ever read here.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final, Literal

from trimtab.api import Column, Conditions, Object, Resource, Rule, Spec, Status, field

GROUP: Final = "vteam.ambient-code"
VERSION: Final = "v1alpha1"
SETTINGS: Final = "projectsettings"
"""The one name that settings may have, once in each namespace."""

Phase = Literal[
    "Pending", "Creating", "Running", "Stopping", "Stopped", "Completed", "Failed"
]
Next = Literal["Pending", "Stopped", "Completed", "Failed"]
Stopped = Literal["user", "inactivity", "run-finished", "timeout", "start-deadline"]

TERMINAL: Final = frozenset({"Stopped", "Completed", "Failed"})
ACTIVE: Final = frozenset({"Pending", "Creating", "Running", "Stopping"})

MANAGED: Final = "ambient-code.io/managed"
"""A namespace with this label set to ``true`` is a project."""
DESIRED: Final = "ambient-code.io/desired-phase"
START_REQUESTED: Final = "ambient-code.io/start-requested-at"
STOP_REQUESTED: Final = "ambient-code.io/stop-requested-at"
STOP_REASON: Final = "ambient-code.io/stop-reason"
FORCE_PROMPT: Final = "ambient-code.io/force-execute-prompt"
TOKEN_SECRET: Final = "ambient-code.io/runner-token-secret"
RUNNER_ACCOUNT: Final = "ambient-code.io/runner-sa"
PARENT: Final = "vteam.ambient-code/parent-session-id"
CREATED_BY: Final = "ambient-code.io/created-by"
KEEP: Final = "ambient-code.io/keep"
"""Set to ``true`` on a session, it outlives every retention."""
SCHEDULED_NAME: Final = "ambient-code.io/scheduled-session-name"
SCHEDULED_RUN: Final = "ambient-code.io/scheduled-run"
SPEC_HASH: Final = "ambient-code.io/pod-spec-hash"
COPIED_FROM: Final = "vteam.ambient-code/copied-from"
REFRESHED: Final = "ambient-code.io/token-refreshed-at"
APP: Final = "ambient-code-runner"
"""The value of the label ``app`` on every runner pod, and its container's name."""
SESSION_LABEL: Final = "agentic-session"

_AGE: Final = Column(name="Age", path=".metadata.creationTimestamp", type="date")


class Repository(Object):
    """A repository that the runner works in."""

    url: str
    branch: str = "main"
    autoPush: bool = False


class UserContext(Object):
    """Who asked for the session."""

    userId: str = ""
    displayName: str = ""
    groups: list[str] = []


class LlmSettings(Object):
    """Which model the runner asks, and how."""

    model: str = "claude-sonnet-4-6"
    temperature: float = 0.7
    maxTokens: int = 4000


class McpServers(Object):
    """Tools that a session has besides the runner's own, and those it lacks."""

    custom: dict[str, Any] = {}
    disabled: list[str] = []


class Workflow(Object):
    """Instructions for the runner, kept in a repository."""

    gitUrl: str = ""
    branch: str = "main"
    path: str = ""


_TIMEOUT: Final = (
    "Seconds that a runner of it may run; 0 means for ever. So does 300, which is what "
    "everybody has who says nothing, unless the operator is told to enforce it."
)


class AgenticSessionSpec(Spec):
    """What a session is to do; nothing is required."""

    repos: list[Repository] = []
    initialPrompt: str = field(default="", doc="Told once, at the first start.")
    displayName: str = ""
    userContext: UserContext | None = None
    llmSettings: LlmSettings = LlmSettings()
    timeout: int = field(default=300, doc=_TIMEOUT)
    inactivityTimeout: int | None = field(
        default=None, minimum=0, doc="Seconds; 0 means never, absent as the project."
    )
    stopOnRunFinished: bool | None = None
    environmentVariables: dict[str, str] = {}
    mcpServers: McpServers | None = None
    activeWorkflow: Workflow | None = None


class ReconciledRepository(Object):
    """What became of a repository in the runner."""

    url: str = ""
    name: str = ""
    branch: str = ""
    branches: list[str] = []
    currentActiveBranch: str = ""
    defaultBranch: str = ""
    status: Literal["Cloning", "Ready", "Failed"] | None = None
    message: str = field(default="", max_length=1024)
    clonedAt: datetime | None = None


class ReconciledWorkflow(Object):
    """What became of the workflow in the runner."""

    gitUrl: str = ""
    branch: str = ""
    path: str = ""
    status: Literal["Cloning", "Active", "Failed"] | None = None
    message: str = field(default="", max_length=1024)
    appliedAt: datetime | None = None


class Evidence(Object):
    """What a runner left behind when it ended badly."""

    reason: str = field(default="", max_length=256)
    exitCode: int | None = None
    message: str = field(default="", max_length=1024)
    log: str = field(default="", max_length=4096, doc="The end of what it printed.")
    at: datetime | None = None


class AgenticSessionStatus(Status):
    """What became of a session."""

    phase: Phase = "Pending"
    nextPhase: Next | None = None
    """What a session that stops becomes when its pod is gone; Stopped if unsaid."""
    observedGeneration: int = 0
    startTime: datetime | None = None
    """When its start was last asked for, not when the runner began."""
    firstStartedAt: datetime | None = None
    """When a runner of it was first ready: from then on a start is a resume."""
    readyAt: datetime | None = None
    """When the runner that it has was ready: the timeout counts from here."""
    completionTime: datetime | None = None
    lastActivityTime: datetime | None = field(default=None, owner="backend")
    stoppedReason: Stopped | None = None
    restarts: int = 0
    """Runners lost in this start; past the budget it fails."""
    reconciledRepos: list[ReconciledRepository] = field(default=[], owner="applying")
    reconciledWorkflow: ReconciledWorkflow | None = field(
        default=None, owner="applying"
    )
    appliedTo: str = field(default="", owner="applying")
    """The runner that the two above are about; another one is told all of it again."""
    answeredBy: str = field(default="", owner="health")
    """The uid of the pod whose runner was last heard to answer."""
    sdkSessionId: str = ""
    sdkRestartCount: int = 0
    evidence: Evidence | None = None
    worker: str = ""
    """The warm worker that it has, where it did not need a pod of its own."""
    conditions: Conditions = Conditions()


class AgenticSession(
    Resource,
    group=GROUP,
    version=VERSION,
    short="as",
    columns=[
        Column(name="Phase", path=".status.phase"),
        Column(name="Reason", path='.status.conditions[?(@.type=="Ready")].reason'),
        Column(name="Idle", path=".status.lastActivityTime", type="date"),
        _AGE,
    ],
    selectable=[".status.phase"],
):
    """One agent at work, for as long as somebody wants it."""

    spec: AgenticSessionSpec = AgenticSessionSpec()
    status: AgenticSessionStatus = AgenticSessionStatus()


class GroupAccess(Object):
    """Who may do what in a project."""

    groupName: str
    role: Literal["admin", "edit", "view"]


class ProjectRepository(Object):
    """A repository that the project knows."""

    url: str
    branch: str = ""
    provider: Literal["github", "gitlab"] | None = None


class Retention(Object):
    """How long sessions that are over stay."""

    maxAgeSeconds: int | None = field(default=None, minimum=0)
    maxCount: int | None = field(default=None, minimum=0)


class WarmPool(Object):
    """Where warm runners come from."""

    pool: str = field(doc="The WorkerPool, in the project's own namespace.")
    shape: str = ""


class Schedule(Object):
    """A session that is started again and again."""

    name: str = field(min_length=1, max_length=40)
    cron: str = field(min_length=1, max_length=128)
    timeZone: str = "UTC"
    suspend: bool = False
    reuseLast: bool = False
    template: dict[str, Any] = field(default={}, doc="The spec of each session.")


class ProjectSettingsSpec(Spec):
    """What holds for all sessions of a project."""

    groupAccess: list[GroupAccess]
    runnerSecretsName: str = ""
    repositories: list[ProjectRepository] = []
    inactivityTimeoutSeconds: int = field(default=86400, minimum=0)
    mcpServers: McpServers | None = None
    installedItems: list[dict[str, Any]] = field(
        default=[], doc="What the platform's pages installed; kept as it is."
    )
    retention: Retention | None = None
    warmPool: WarmPool | None = None
    schedules: list[Schedule] = field(
        default=[], list_type="map", list_keys=("name",), max_items=64
    )


class ScheduleStatus(Object):
    """How far a schedule is."""

    name: str
    settledAt: datetime | None = None
    """The last turn that nothing is to be done for any more, by its planned time."""
    lastSession: str = ""
    message: str = field(default="", max_length=1024)


class ProjectSettingsStatus(Status):
    """What was made of the settings."""

    groupBindingsCreated: int = field(default=0, minimum=0)
    scheduledSessionRBACReady: bool = False
    limitRangeReady: bool = False
    observedGeneration: int = 0
    schedules: list[ScheduleStatus] = field(
        default=[], list_type="map", list_keys=("name",), max_items=64
    )
    conditions: Conditions = Conditions()


class ProjectSettings(
    Resource,
    group=GROUP,
    version=VERSION,
    plural="projectsettings",
    singular="projectsetting",
    short="ps",
    columns=[_AGE],
    rules=[
        Rule(
            rule=f"self.metadata.name == '{SETTINGS}'",
            message=f"the settings of a project are called {SETTINGS}",
        )
    ],
):
    """What one project, which is a namespace, grants its people and sessions."""

    spec: ProjectSettingsSpec
    status: ProjectSettingsStatus = ProjectSettingsStatus()


KINDS: Final = (AgenticSession, ProjectSettings)
