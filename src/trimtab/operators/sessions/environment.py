"""Environment: the variables of a runner's containers, in one order and by reference.

What a variable says follows from the session, its project and the settings; what is
secret is named and never written. Texts of people are escaped, so that no ``$(NAME)``
in a prompt becomes the value of another variable.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal

import msgspec

from trimtab.api import wire
from trimtab.api.codec import encode
from trimtab.operators.sessions import names
from trimtab.operators.sessions.kinds import (
    FORCE_PROMPT,
    PARENT,
    AgenticSession,
    ProjectSettings,
)
from trimtab.operators.sessions.profiles import Profile
from trimtab.operators.sessions.settings import (
    GOOGLE_SECRET,
    INTEGRATIONS,
    LANGFUSE_SECRET,
    MLFLOW_SECRET,
    STORAGE_SECRET,
    Settings,
)

Plain = dict[str, Any]
Storage = Literal["", "shared", "custom"]

WORKSPACE: Final = "/workspace"
KUBERNETES_TOKEN: Final = "k8s-token"
AGUI_TOKEN: Final = "agui-token"
LONGEST: Final = 128 * 1024 - 1
"""Bytes of one variable, with its name, that Linux hands to a program."""
LARGEST: Final = 512 * 1024
"""Bytes of all variables of a container: with them a pod is still stored."""

_LANGFUSE: Final = ("ENABLED", "HOST", "PUBLIC_KEY", "SECRET_KEY")
_MLFLOW: Final = (
    "MLFLOW_TRACING_ENABLED",
    "MLFLOW_TRACKING_URI",
    "MLFLOW_EXPERIMENT_NAME",
    "MLFLOW_TRACKING_AUTH",
    "MLFLOW_WORKSPACE",
    "OBSERVABILITY_BACKENDS",
)
_STORAGE: Final[Mapping[str, tuple[tuple[str, str], ...]]] = {
    "shared": (
        ("AWS_ACCESS_KEY_ID", "access-key"),
        ("AWS_SECRET_ACCESS_KEY", "secret-key"),
    ),
    "custom": (
        ("S3_ENDPOINT", "S3_ENDPOINT"),
        ("S3_BUCKET", "S3_BUCKET"),
        ("AWS_ACCESS_KEY_ID", "S3_ACCESS_KEY"),
        ("AWS_SECRET_ACCESS_KEY", "S3_SECRET_KEY"),
    ),
}
_VERTEX: Final = frozenset({"USE_VERTEX", "CLAUDE_CODE_USE_VERTEX"})


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What a pod depends on that neither session nor settings say."""

    resume: bool = False
    """A runner of this session was ready before."""
    secrets: frozenset[str] = frozenset()
    """Those of the project that are there, of all that a runner could use."""
    storage: Storage = ""
    """Whose bucket keeps the state; "" is nobody's."""
    trusted_bundle: bool = False
    """The project has authorities of its own that runners trust."""
    vertex_id: str = ""
    """What Vertex calls the model."""


def plain(name: str, value: str) -> Plain:
    """A variable with this very value, whatever is in it."""
    return {"name": name, "value": value.replace("$", "$$")}


def secret(name: str, *, of: str, key: str, optional: bool = True) -> Plain:
    """A variable whose value stands in a Secret."""
    reference: Plain = {"name": of, "key": key}
    if optional:
        reference["optional"] = True
    return {"name": name, "valueFrom": {"secretKeyRef": reference}}


def of_runner(
    session: AgenticSession,
    *,
    project: ProjectSettings | None,
    settings: Settings,
    profile: Profile,
    facts: Facts,
) -> list[Plain]:
    """The variables of the runner, the same list for the same arguments."""
    made = [
        *_identity(session, profile),
        *_tools(session, project, settings, facts),
        *_work(session, settings, facts),
        *_observed(facts),
        *_vertex(settings),
        *_history(session, facts),
        *_material(session),
    ]
    given = _texts(profile.container.env)
    return _replaced(_added(made, given), _texts(session.spec.environmentVariables))


def of_helper(
    session: AgenticSession,
    *,
    settings: Settings,
    profile: Profile,
    facts: Facts,
    seeding: bool,
) -> list[Plain]:
    """The variables of what runs before the runner, or else beside it."""
    made = [
        plain("SESSION_NAME", session.metadata.name),
        plain("NAMESPACE", session.metadata.namespace),
        *_storage(settings, facts),
    ]
    if seeding:
        token = names.token_secret_name(session.metadata.name)
        made += [
            plain("BACKEND_API_URL", settings.backend_api_url),
            plain("PROJECT_NAME", session.metadata.namespace),
            *_material(session),
            secret("BOT_TOKEN", of=token, key=KUBERNETES_TOKEN, optional=False),
        ]
    else:
        made += [plain("SYNC_INTERVAL", "60"), plain("MAX_SYNC_SIZE", str(1 << 30))]
        made = _added(made, _texts(profile.container.env))
    return _added(made, _texts(session.spec.environmentVariables))


def problem(session: AgenticSession, *, project: ProjectSettings | None) -> str | None:
    """What a session says that no container could be told, in a sentence."""
    for name in session.spec.environmentVariables:
        if not name or "=" in name or not name.isascii() or not name.isprintable():
            return f"{name[:64]!r} cannot be the name of an environment variable."
    said = {each["name"]: each.get("value", "") for each in _said(session, project)}
    for name, value in said.items():
        size = len(name) + len(value.encode("utf-8", "replace"))
        if size > LONGEST:
            return (
                f"{_SOURCES.get(name, name)} has {size} bytes, and a runner can be "
                f"told {LONGEST} at once; put it into a repository and name it."
            )
    total = sum(len(value.encode("utf-8", "replace")) for value in said.values())
    if total > LARGEST:
        return (
            f"What the session says has {total} bytes together, and a pod has room for "
            f"{LARGEST}; put some of it into a repository."
        )
    return None


_SOURCES: Final = {
    "INITIAL_PROMPT": "spec.initialPrompt",
    "REPOS_JSON": "spec.repos",
    "CUSTOM_MCP_SERVERS": "spec.mcpServers",
    "PROJECT_MCP_SERVERS": "spec.mcpServers of the project",
    "ACTIVE_WORKFLOW_GIT_URL": "spec.activeWorkflow.gitUrl",
    "USER_NAME": "spec.userContext.displayName",
}


def _said(session: AgenticSession, project: ProjectSettings | None) -> list[Plain]:
    """Whatever people may make long."""
    return [
        *_tools(session, project, Settings(), Facts()),
        *_work(session, Settings(), Facts()),
        *_material(session),
        *_texts(session.spec.environmentVariables),
    ]


def _identity(session: AgenticSession, profile: Profile) -> list[Plain]:
    name, namespace = session.metadata.name, session.metadata.namespace
    token = names.token_secret_name(name)
    return [
        plain("DEBUG", "true"),
        plain("AGENTIC_SESSION_NAME", name),
        plain("AGENTIC_SESSION_NAMESPACE", namespace),
        plain("SESSION_ID", name),
        plain("PROJECT_NAME", namespace),
        plain("WORKSPACE_PATH", WORKSPACE),
        plain("ARTIFACTS_DIR", "artifacts"),
        plain("AGUI_PORT", str(profile.container.port)),
        secret("AGUI_TOKEN", of=token, key=AGUI_TOKEN, optional=False),
    ]


def _tools(
    session: AgenticSession,
    project: ProjectSettings | None,
    settings: Settings,
    facts: Facts,
) -> list[Plain]:
    credentials = f"{WORKSPACE}/.google_workspace_mcp/credentials"
    made = [plain("GOOGLE_MCP_CREDENTIALS_DIR", credentials)]
    if GOOGLE_SECRET in facts.secrets:
        for name in ("GOOGLE_OAUTH_CLIENT_ID", "GOOGLE_OAUTH_CLIENT_SECRET"):
            made.append(secret(name, of=GOOGLE_SECRET, key=name))
    if settings.google_redirect:
        made.append(plain("GOOGLE_OAUTH_REDIRECT_URI", settings.google_redirect))
    if settings.mcp_config_file:
        made.append(plain("MCP_CONFIG_FILE", settings.mcp_config_file))
    own = session.spec.mcpServers
    shared = project.spec.mcpServers if project is not None else None
    for name, servers in (("CUSTOM_MCP_SERVERS", own), ("PROJECT_MCP_SERVERS", shared)):
        if servers is not None and (servers.custom or servers.disabled):
            made.append(plain(name, _json(wire(servers))))
    return made


def _work(session: AgenticSession, settings: Settings, facts: Facts) -> list[Plain]:
    spec = session.spec
    user, llm = spec.userContext, spec.llmSettings
    made = []
    if user is not None and user.userId:
        made.append(plain("USER_ID", user.userId))
    if user is not None and user.displayName:
        made.append(plain("USER_NAME", user.displayName))
    made += [
        plain("INITIAL_PROMPT", spec.initialPrompt),
        plain("LLM_MODEL", llm.model),
        plain("LLM_TEMPERATURE", f"{llm.temperature:.2f}"),
        plain("LLM_MAX_TOKENS", str(llm.maxTokens)),
        plain("USE_AGUI", "true"),
        plain("TIMEOUT", str(spec.timeout)),
        plain("BACKEND_API_URL", settings.backend_api_url),
    ]
    if facts.vertex_id:
        made.append(plain("LLM_MODEL_VERTEX_ID", facts.vertex_id))
    return made


def _observed(facts: Facts) -> list[Plain]:
    made = []
    if LANGFUSE_SECRET in facts.secrets:
        words = [f"LANGFUSE_{each}" for each in _LANGFUSE]
        made += [secret(each, of=LANGFUSE_SECRET, key=each) for each in words]
    if MLFLOW_SECRET in facts.secrets:
        made += [secret(each, of=MLFLOW_SECRET, key=each) for each in _MLFLOW]
    return made


def _vertex(settings: Settings) -> list[Plain]:
    vertex = settings.vertex
    switch = "0" if vertex is None else "1"
    made = [plain("USE_VERTEX", switch), plain("CLAUDE_CODE_USE_VERTEX", switch)]
    if vertex is not None:
        made += [
            plain("CLOUD_ML_REGION", vertex.region),
            plain("ANTHROPIC_VERTEX_PROJECT_ID", vertex.project),
            plain("GOOGLE_APPLICATION_CREDENTIALS", vertex.credentials),
            # Libraries of Google ask the node for its own identity first.
            plain("GCE_METADATA_HOST", "metadata.invalid"),
            plain("GCE_METADATA_TIMEOUT", "1"),
        ]
    return made


def _history(session: AgenticSession, facts: Facts) -> list[Plain]:
    said = session.metadata.annotations
    parent = said.get(PARENT, "")
    made = []
    if parent and parent != session.metadata.name:
        made.append(plain("PARENT_SESSION_ID", parent))
    if facts.resume and said.get(FORCE_PROMPT) != "true":
        made.append(plain("IS_RESUME", "true"))
    return made


def _material(session: AgenticSession) -> list[Plain]:
    spec = session.spec
    made = []
    if spec.repos:
        made.append(plain("REPOS_JSON", _json([wire(each) for each in spec.repos])))
    if (workflow := spec.activeWorkflow) is not None:
        parts = (
            ("ACTIVE_WORKFLOW_GIT_URL", workflow.gitUrl),
            ("ACTIVE_WORKFLOW_BRANCH", workflow.branch),
            ("ACTIVE_WORKFLOW_PATH", workflow.path),
        )
        made += [plain(name, value) for name, value in parts if value.strip()]
    return made


def _storage(settings: Settings, facts: Facts) -> list[Plain]:
    if not facts.storage:  # the scripts want to be told that there is none
        return [plain(name, "") for name, _ in _STORAGE["custom"]]
    of = INTEGRATIONS if facts.storage == "custom" else STORAGE_SECRET
    made = []
    if facts.storage == "shared":
        made.append(plain("S3_ENDPOINT", settings.s3_endpoint))
        made.append(plain("S3_BUCKET", settings.s3_bucket))
    for name, key in _STORAGE[facts.storage]:
        made.append(secret(name, of=of, key=key, optional=False))
    return made


def _texts(said: Mapping[str, str]) -> list[Plain]:
    """Variables that a person wrote as variables: references in them are meant."""
    return [{"name": name, "value": said[name]} for name in sorted(said)]


def _added(made: list[Plain], more: Iterable[Plain]) -> list[Plain]:
    taken = {each["name"] for each in made}
    return [*made, *(each for each in more if each["name"] not in taken)]


def _replaced(made: list[Plain], more: Iterable[Plain]) -> list[Plain]:
    """With what the user says instead; secrets and the way to Vertex stay."""
    said = {each["name"]: each for each in more}
    fixed = {each["name"] for each in made if "valueFrom" in each} | _VERTEX
    kept = [
        each if each["name"] in fixed else said.get(each["name"], each) for each in made
    ]
    return _added(kept, said.values())


def _json(value: Any) -> str:
    return encode(value).decode()
