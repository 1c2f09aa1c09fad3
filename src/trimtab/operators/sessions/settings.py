"""Settings: what the operator of sessions is told at its start, by the environment.

The names of the variables are those that the platform's manifests set already. What is
said wrong is one sentence at the start and nothing later.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, TypeVar

import msgspec

PullPolicy = Literal["Always", "IfNotPresent", "Never"]
N = TypeVar("N", int, float)

RUNNER_IMAGE: Final = "ambient_code/vteam_claude_runner:latest"
STATE_SYNC_IMAGE: Final = "ambient_code/vteam_state_sync:latest"
REGISTRY: Final = "/config/registry/agent-registry.json"
MODELS: Final = "/config/models/models.json"

RUNNER_SECRETS: Final = "ambient-runner-secrets"
"""The keys of a project's runners; without Vertex no session starts without it."""
INTEGRATIONS: Final = "ambient-non-vertex-integrations"
"""What a project's runners may use besides; it may be absent."""
TRUSTED_BUNDLE: Final = "trusted-ca-bundle"
BUNDLE_KEY: Final = "ca-bundle.crt"

VERTEX_SECRET: Final = "ambient-vertex"
LANGFUSE_SECRET: Final = "ambient-admin-langfuse-secret"
MLFLOW_SECRET: Final = "ambient-admin-mlflow-observability-secret"
STORAGE_SECRET: Final = "minio-credentials"
GOOGLE_SECRET: Final = "google-workflow-app-secret"


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """How long and how often; all times are seconds."""

    start_deadline: float = 300.0
    """From the wish to run until the runner is ready; then the session has failed."""
    restart_budget: int = 3
    """Runners that one start may lose before the session has failed."""
    backoff: float = 5.0
    """The pause before the first new runner; each further one is twice as long."""
    backoff_limit: float = 300.0
    """The longest such pause."""
    settled: float = 3600.0
    """A runner that was ready for so long makes good for those lost before it."""
    unset_timeout: int = 300
    """The ``spec.timeout`` that means that nobody chose one: the platform's backend and
    schema write it into every session, and nobody enforced it. Every other one is
    enforced; with 0 here, this one is, too."""
    image_grace: float = 60.0
    """How long an image that cannot be pulled may be a passing trouble."""
    inactivity: int = 86400
    """For projects that say nothing themselves; 0 is never."""
    token_lifetime: int = 3600
    token_refresh: float = 2700.0
    """The age at which a runner's token is replaced."""

    def pause(self, restarts: int) -> float:
        """How long to wait before the next runner, when so many were lost."""
        doubled = self.backoff * 2.0 ** min(max(restarts - 1, 0), 32)
        return min(doubled, self.backoff_limit)


class Vertex(msgspec.Struct, frozen=True, kw_only=True):
    """Where models are asked for through Google Cloud."""

    region: str
    project: str
    credentials: str
    """The file of the key, below ``/app/vertex`` in the runner."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that holds for all projects."""

    namespace: str = "default"
    """The operator's own: what is copied into projects is there."""
    backend_namespace: str = ""
    """Where the backend is; "" is the operator's own namespace."""
    google_redirect: str = ""
    """Where Google sends people back to; "" if runners need not know."""
    runner_image: str = RUNNER_IMAGE
    state_sync_image: str = STATE_SYNC_IMAGE
    pull_policy: PullPolicy = "Always"
    s3_endpoint: str = ""
    s3_bucket: str = ""
    fs_group: int | None = None
    run_as_non_root: bool = True
    """Off where an image insists on root; pods are then no longer ``restricted``."""
    run_as_user: int | None = None
    """Who runners are where neither image nor cluster says so."""
    vertex: Vertex | None = None
    langfuse: bool = False
    mlflow: bool = False
    mlflow_account: bool = False
    """Runners show MLflow their own service account's token."""
    google: bool = False
    """There is a Google client whose id and secret runners get by reference."""
    mcp_config_file: str = ""
    child_sessions: bool = False
    """Runners may make sessions in their project."""
    registry_path: str = REGISTRY
    models_path: str = MODELS
    concurrency: int = 10
    schedules: bool = True
    """Schedules of projects are run by this operator."""
    warm: bool = False
    """Projects may have warm pools; the pool's kinds are known to the server."""
    limits: Limits = Limits()

    @property
    def backend(self) -> str:
        """The namespace of the backend, who alone may call runners."""
        return self.backend_namespace or self.namespace

    @property
    def backend_api_url(self) -> str:
        """Where runners find the backend."""
        return f"http://backend-service.{self.backend}.svc.cluster.local:8080/api"

    @property
    def copied(self) -> tuple[str, ...]:
        """The Secrets of the operator's namespace that projects get copies of."""
        wanted = {
            VERTEX_SECRET: self.vertex is not None,
            LANGFUSE_SECRET: self.langfuse,
            MLFLOW_SECRET: self.mlflow,
            STORAGE_SECRET: bool(self.s3_endpoint),
            GOOGLE_SECRET: self.google,
        }
        return tuple(name for name, is_wanted in wanted.items() if is_wanted)


def from_environment(environment: Mapping[str, str]) -> Settings:
    """The settings that an environment says.

    Errors: ``ValueError`` for a number that is none, an unknown pull policy, and for
    Vertex without one of its three variables.
    """
    said = _Said(environment)
    return Settings(
        namespace=said.text("NAMESPACE", "default"),
        backend_namespace=said.text("BACKEND_NAMESPACE"),
        google_redirect=said.redirect(),
        runner_image=said.text("AMBIENT_CODE_RUNNER_IMAGE", RUNNER_IMAGE),
        state_sync_image=said.text("STATE_SYNC_IMAGE", STATE_SYNC_IMAGE),
        pull_policy=said.pull_policy(),
        s3_endpoint=said.text("S3_ENDPOINT"),
        s3_bucket=said.text("S3_BUCKET"),
        fs_group=said.optional("POD_FSGROUP"),
        run_as_non_root=said.flag("POD_RUN_AS_NON_ROOT", default=True),
        run_as_user=said.optional("POD_RUN_AS_USER"),
        vertex=said.vertex(),
        langfuse=said.flag("LANGFUSE_ENABLED"),
        mlflow=said.flag("MLFLOW_TRACING_ENABLED"),
        mlflow_account=said.text("MLFLOW_TRACKING_AUTH") == "kubernetes-namespaced",
        google=bool(said.text("GOOGLE_OAUTH_CLIENT_ID")),
        mcp_config_file=said.text("MCP_CONFIG_FILE"),
        child_sessions=said.flag("ALLOW_CHILD_SESSIONS"),
        registry_path=said.text("AGENT_REGISTRY_PATH", REGISTRY),
        models_path=said.text("MODELS_MANIFEST_PATH", MODELS),
        concurrency=said.number("MAX_CONCURRENT_RECONCILES", 10, least=1),
        schedules=said.flag("RUN_SCHEDULES", default=True),
        warm=said.flag("WARM_POOLS"),
        limits=said.limits(),
    )


class _Said:
    """Reads one environment; an empty variable is one that is not there."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment

    def text(self, name: str, default: str = "") -> str:
        return self._environment.get(name, "").strip() or default

    def flag(self, name: str, *, default: bool = False) -> bool:
        said = self.text(name).lower()
        return said in ("1", "true", "yes", "on") if said else default

    def number(self, name: str, default: N, *, least: N | None = None) -> N:
        said = self.text(name)
        if not said:
            return default
        try:
            value = type(default)(said)
        except ValueError:
            raise ValueError(f"{name} is {said!r}; make it a number.") from None
        if not value >= (0 if least is None else least):
            raise ValueError(f"{name} is {said}; make it {least or 0} or more.")
        return value

    def optional(self, name: str) -> int | None:
        return self.number(name, 0) if self.text(name) else None

    def redirect(self) -> str:
        public = self.text("BACKEND_PUBLIC_URL").rstrip("/")
        usual = f"{public}/oauth2callback" if public else ""
        return self.text("GOOGLE_OAUTH_REDIRECT_URI", usual)

    def pull_policy(self) -> PullPolicy:
        said = self.text("IMAGE_PULL_POLICY", "Always")
        try:
            policy: PullPolicy = msgspec.convert(said, PullPolicy)
        except msgspec.ValidationError:
            raise ValueError(
                f"IMAGE_PULL_POLICY is {said!r}; make it Always, IfNotPresent or Never."
            ) from None
        return policy

    def vertex(self) -> Vertex | None:
        if not self.flag("USE_VERTEX", default=self.flag("CLAUDE_CODE_USE_VERTEX")):
            return None
        names = (
            "CLOUD_ML_REGION",
            "ANTHROPIC_VERTEX_PROJECT_ID",
            "GOOGLE_APPLICATION_CREDENTIALS",
        )
        missing = [name for name in names if not self.text(name)]
        if missing:
            raise ValueError(
                f"USE_VERTEX is on and {', '.join(missing)} is empty; set it, or turn "
                "USE_VERTEX off."
            )
        region, project, credentials = (self.text(name) for name in names)
        return Vertex(region=region, project=project, credentials=credentials)

    def limits(self) -> Limits:
        usual = Limits()
        return Limits(
            start_deadline=self.number("START_DEADLINE", usual.start_deadline),
            restart_budget=self.number("RESTART_BUDGET", usual.restart_budget),
            unset_timeout=self.number("UNSET_TIMEOUT", usual.unset_timeout),
            image_grace=self.number("IMAGE_GRACE", usual.image_grace),
            inactivity=self.number("DEFAULT_INACTIVITY_TIMEOUT", usual.inactivity),
        )
