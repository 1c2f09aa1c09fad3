"""Facts: what a runner's pod depends on in its project, read just before it is made."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from trimtab.client import TrimtabError
from trimtab.kinds import ConfigMap, Secret
from trimtab.operators.sessions.decisions import Stated
from trimtab.operators.sessions.environment import Facts, Storage
from trimtab.operators.sessions.kinds import AgenticSession
from trimtab.operators.sessions.profiles import Profile, Registry
from trimtab.operators.sessions.settings import (
    BUNDLE_KEY,
    INTEGRATIONS,
    RUNNER_SECRETS,
    STORAGE_SECRET,
    TRUSTED_BUNDLE,
    VERTEX_SECRET,
    Settings,
)
from trimtab.operators.sessions.together import together
from trimtab.operators.sessions.variables import Reads

_CUSTOM: Final = ("S3_ENDPOINT", "S3_BUCKET", "S3_ACCESS_KEY", "S3_SECRET_KEY")

_NOWHERE: Final = (
    "No storage is configured, so what the runner has is gone with its pod; configure "
    "a bucket for the project or for all."
)


class Missing(TrimtabError):
    """A project lacks a secret that its sessions cannot start without.

    ``reason`` is that of the condition SecretsReady.
    """

    def __init__(self, message: str, *, reason: str) -> None:
        super().__init__(message)
        self.reason = reason


async def gather(
    reads: Reads,
    session: AgenticSession,
    *,
    settings: Settings,
    registry: Registry,
    copied: frozenset[str],
) -> Facts:
    """What the pod of a session depends on; ``copied`` is what ``copies.ensure`` said.

    Flow: three reads at once; nothing is remembered from one start to the next, because
    what is not there now is often there a minute later.

    Errors: :class:`Missing` for what a session cannot start without.
    """
    namespace = session.metadata.namespace
    there = set(copied)
    await together(
        reads.secret(RUNNER_SECRETS),
        reads.secret(INTEGRATIONS),
        reads.config_map(TRUSTED_BUNDLE),
    )
    if settings.vertex is None:
        if await reads.secret(RUNNER_SECRETS) is None:
            raise Missing(
                f"There is no Secret {RUNNER_SECRETS} in {namespace}; make it, with "
                "the keys that the project's runners need.",
                reason="RunnerSecretMissing",
            )
        there.add(RUNNER_SECRETS)
    elif VERTEX_SECRET not in there:
        raise Missing(
            f"Vertex is on, and there is no Secret {VERTEX_SECRET} in "
            f"{settings.namespace} that could be copied; make it.",
            reason="VertexSecretMissing",
        )
    integrations = await reads.secret(INTEGRATIONS)
    if integrations is not None:
        there.add(INTEGRATIONS)
    vertex_id = registry.vertex_id(session.spec.llmSettings.model)
    return Facts(
        resume=was_started(session),
        secrets=frozenset(there),
        storage=storage_of(integrations, settings, there),
        trusted_bundle=_has_bundle(await reads.config_map(TRUSTED_BUNDLE)),
        vertex_id=vertex_id if settings.vertex is not None else "",
    )


def conditions(found: Facts, profile: Profile, settings: Settings) -> Iterator[Stated]:
    """What people are told of the facts; where nothing is kept, nothing of storage."""
    if INTEGRATIONS in found.secrets:
        there = f"The Secret {INTEGRATIONS} is there."
        yield Stated("IntegrationSecretsReady", True, "OptionalSecretFound", there)
    if not profile.sandbox.kept:
        return
    if found.storage:
        bucket = f"{settings.s3_endpoint}/{settings.s3_bucket}"
        whose = bucket if found.storage == "shared" else "the project's own bucket"
        yield Stated("S3Available", True, "Configured", f"State is kept in {whose}.")
    else:
        yield Stated("S3Available", False, "NotConfigured", _NOWHERE)


def why_cold(found: Facts, settings: Settings) -> str | None:
    """Why the sessions of a project cannot start warm; None if they can.

    A pod that waits has no volume and no container that only one session needs.
    """
    if settings.vertex is not None:
        return "The credentials for Vertex are a volume, which no pod that waits has."
    if found.storage:
        return "Its state is kept by a container that no pod that waits has."
    return None


def was_started(session: AgenticSession) -> bool:
    """Whether a runner of this session was ever at work: then a start is a resume.

    Sessions of before this operator do not say when; that somebody wrote of a runner
    who never wrote a generation tells as much.
    """
    status = session.status
    said = status.conditions.get("RunnerStarted")
    before_us = said is not None and said.observedGeneration is None
    return status.firstStartedAt is not None or before_us


def storage_of(
    integrations: Secret | None, settings: Settings, there: set[str]
) -> Storage:
    """Whose bucket keeps the state of a project's sessions; "" if nobody's can."""
    said = integrations.data if integrations is not None else {}
    mode = said.get("STORAGE_MODE", b"shared").decode("utf-8", "replace").strip()
    if mode == "custom":
        return "custom" if all(said.get(key) for key in _CUSTOM) else ""
    shared = settings.s3_endpoint and settings.s3_bucket and STORAGE_SECRET in there
    return "shared" if shared else ""


def _has_bundle(found: ConfigMap | None) -> bool:
    if found is None:
        return False
    return BUNDLE_KEY in found.data or BUNDLE_KEY in found.binaryData
