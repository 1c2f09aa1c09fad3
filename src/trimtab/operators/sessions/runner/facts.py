"""Facts: what a runner is told about its session, by variables or by a call."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from trimtab.client.errors import ConfigError
from trimtab.operators.sessions.repositories import names_of
from trimtab.operators.sessions.runner.workspace import Workflow

PORT: Final = 8001
_YES: Final = frozenset({"1", "true", "yes"})


class Repository(msgspec.Struct, frozen=True, kw_only=True):
    """A repository that is there from the beginning."""

    url: str
    branch: str = ""
    name: str = ""


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """One session, as its runner knows it. The token shows in no repr."""

    name: str
    namespace: str = ""
    folder: Path = Path("/workspace")
    token: str = ""
    """What callers must show; empty lets everybody in."""
    prompt: str = ""
    resume: bool = False
    model: str = ""
    repositories: tuple[Repository, ...] = ()
    workflow: Workflow = Workflow()
    environment: dict[str, str] = {}

    def __repr__(self) -> str:
        return f"Facts({self.namespace}/{self.name})"


def facts_of(environment: Mapping[str, str]) -> Facts:
    """What the variables of a pod say.

    Errors: :class:`ConfigError` when they make no session.
    """
    name = environment.get("AGENTIC_SESSION_NAME") or environment.get("SESSION_ID")
    if not name:
        raise ConfigError(
            "There is no AGENTIC_SESSION_NAME in the environment: a runner without a "
            "session has nothing to do."
        )
    return Facts(
        name=name,
        namespace=environment.get("AGENTIC_SESSION_NAMESPACE", ""),
        folder=Path(environment.get("WORKSPACE_PATH") or "/workspace"),
        token=environment.get("AGUI_TOKEN", ""),
        prompt=environment.get("INITIAL_PROMPT", ""),
        resume=environment.get("IS_RESUME", "").lower() in _YES,
        model=environment.get("LLM_MODEL", ""),
        repositories=_repositories(environment.get("REPOS_JSON", "")),
        workflow=Workflow(
            url=environment.get("ACTIVE_WORKFLOW_GIT_URL", ""),
            branch=environment.get("ACTIVE_WORKFLOW_BRANCH", ""),
            path=environment.get("ACTIVE_WORKFLOW_PATH", ""),
        ),
        environment=dict(environment),
    )


def _repositories(text: str) -> tuple[Repository, ...]:
    if not text.strip():
        return ()
    try:
        found: Any = msgspec.json.decode(text, type=list[Repository])
    except msgspec.DecodeError as error:
        raise ConfigError(f"REPOS_JSON is no list of repositories: {error}.") from error
    last = {each.url: each for each in found}
    names = names_of(last)
    return tuple(
        msgspec.structs.replace(each, name=each.name or names[url])
        for url, each in last.items()
    )
