"""Pod specs: the runner's pod and its Service, made of values and nothing else.

The same arguments make the same pod, in the same order, with the same hash. Its
containers may nothing that a ``restricted`` namespace forbids, and what is secret
stands in it by name only.
"""

from __future__ import annotations

import hashlib
from typing import Any, Final

from trimtab.api import Quantity, owner_of, wire
from trimtab.api.codec import encode
from trimtab.operators.sessions import environment, names
from trimtab.operators.sessions.environment import (
    KUBERNETES_TOKEN,
    WORKSPACE,
    Facts,
    Plain,
)
from trimtab.operators.sessions.kinds import (
    APP,
    SESSION_LABEL,
    SPEC_HASH,
    AgenticSession,
    ProjectSettings,
)
from trimtab.operators.sessions.profiles import STATE, Profile
from trimtab.operators.sessions.settings import (
    BUNDLE_KEY,
    INTEGRATIONS,
    MLFLOW_SECRET,
    RUNNER_SECRETS,
    TRUSTED_BUNDLE,
    VERTEX_SECRET,
    Settings,
)

__all__ = ["Facts", "labels", "pod", "problem", "service"]

AGUI: Final = "agui"
SEEDER: Final = "init-hydrate"
SYNCER: Final = "state-sync"

_RESOURCES: Final[Plain] = {
    "requests": {"cpu": "500m", "memory": "512Mi"},
    "limits": {"cpu": "2", "memory": "8Gi"},
}
_SYNCER: Final[Plain] = {
    "requests": {"cpu": "100m", "memory": "128Mi"},
    "limits": {"cpu": "1", "memory": "1Gi"},
}


def labels(session: str) -> dict[str, str]:
    """What the pod of a session carries, and its Service looks for."""
    return {SESSION_LABEL: session, "app": APP}


def problem(session: AgenticSession, *, project: ProjectSettings | None) -> str | None:
    """Why no pod can be made of a session, in a sentence; None if one can.

    Guarantees: a server takes the pod of a session that this finds nothing in, and a
    kernel starts what is in it. It is asked before anything is created.
    """
    state = session.spec.environmentVariables.get("RUNNER_STATE_DIR", "")
    if state.startswith("/") or ".." in state.split("/") or ":" in state:
        return (
            f"RUNNER_STATE_DIR is {state[:64]!r}; make it a folder below the runner's "
            "own, such as .claude."
        )
    return names.check(session.metadata.name) or environment.problem(
        session, project=project
    )


def pod(
    session: AgenticSession,
    *,
    project: ProjectSettings | None,
    settings: Settings,
    profile: Profile,
    facts: Facts,
) -> Plain:
    """The pod of a session, as it is created.

    Guarantees: equal arguments make equal pods; ``SPEC_HASH`` differs where the specs
    do. Nothing secret is in it.

    Assumptions: ``problem`` found nothing in the session, and the session has a uid.
    """
    variables = environment.of_runner(
        session, project=project, settings=settings, profile=profile, facts=facts
    )
    helpers = _helpers(session, settings=settings, profile=profile, facts=facts)
    runner = _runner(session, variables, settings, profile, facts)
    spec: Plain = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": profile.sandbox.terminationGracePeriod,
        "automountServiceAccountToken": False,
        # Variables for every Service of a namespace would not be the same twice.
        "enableServiceLinks": False,
        "securityContext": _pod_security(settings),
        "initContainers": [each for each in helpers if each["name"] == SEEDER],
        "containers": [runner, *(each for each in helpers if each["name"] == SYNCER)],
        "volumes": _volumes(session, profile, facts),
    }
    if settings.mlflow_account and MLFLOW_SECRET in facts.secrets:
        spec["automountServiceAccountToken"] = True
        spec["serviceAccountName"] = names.account_name(session.metadata.name)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": names.pod_name(session.metadata.name),
            "namespace": session.metadata.namespace,
            "labels": labels(session.metadata.name),
            "annotations": {SPEC_HASH: digest(spec)},
            "ownerReferences": [_owner(session)],
        },
        "spec": spec,
    }


def service(
    session: AgenticSession, *, pod_uid: str, profile: Profile, pod: str = ""
) -> Plain:
    """The Service of a session: it belongs to the pod and goes with it.

    ``pod`` is the pod's name, where that is not the session's own.
    """
    name, port = session.metadata.name, profile.container.port
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": names.service_name(name),
            "namespace": session.metadata.namespace,
            "labels": {SESSION_LABEL: name, "app": "ambient-code"},
            "ownerReferences": [
                {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "name": pod or names.pod_name(name),
                    "uid": pod_uid,
                    "controller": True,
                }
            ],
        },
        "spec": {
            "type": "ClusterIP",
            "selector": labels(name),
            "ports": [
                {"name": AGUI, "protocol": "TCP", "port": port, "targetPort": port}
            ],
        },
    }


def digest(spec: Plain) -> str:
    """What tells one spec from another."""
    return hashlib.sha256(encode(spec)).hexdigest()[:16]


def _owner(session: AgenticSession) -> Plain:
    owner = wire(owner_of(session))
    # Holding up the session's deletion would need a permission on its finalizers.
    owner.pop("blockOwnerDeletion", None)
    return owner


def _runner(
    session: AgenticSession,
    variables: list[Plain],
    settings: Settings,
    profile: Profile,
    facts: Facts,
) -> Plain:
    mounts = [*_workspace(session, profile)]
    if VERTEX_SECRET in facts.secrets:
        mounts.append(_mount("vertex", "/app/vertex"))
    mounts.append(_mount("runner-token", "/var/run/secrets/ambient"))
    if facts.trusted_bundle:
        bundle = _mount(TRUSTED_BUNDLE, f"/etc/pki/tls/certs/{BUNDLE_KEY}")
        mounts.append({**bundle, "subPath": BUNDLE_KEY})
    return {
        "name": APP,
        "image": profile.container.image or settings.runner_image,
        "imagePullPolicy": settings.pull_policy,
        "ports": [
            {
                "name": AGUI,
                "containerPort": profile.container.port,
                "protocol": "TCP",
            }
        ],
        "env": variables,
        "envFrom": _sources(settings, facts),
        "resources": _resources(profile),
        "securityContext": _security(),
        "volumeMounts": mounts,
        **_probes(settings),
    }


def _sources(settings: Settings, facts: Facts) -> list[Plain]:
    found = []
    if INTEGRATIONS in facts.secrets:
        found.append({"secretRef": {"name": INTEGRATIONS, "optional": True}})
    if settings.vertex is None:
        found.append({"secretRef": {"name": RUNNER_SECRETS}})
    return found


def _probes(settings: Settings) -> Plain:
    health = {"httpGet": {"path": "/health", "port": AGUI}}
    seconds = max(1, int(settings.limits.start_deadline))
    return {
        # A look each second while it starts, and no other probe before it has.
        "startupProbe": {**health, "periodSeconds": 1, "failureThreshold": seconds},
        "readinessProbe": {**health, "periodSeconds": 5, "timeoutSeconds": 2},
        "livenessProbe": {**health, "periodSeconds": 30, "timeoutSeconds": 5},
    }


def _helpers(
    session: AgenticSession, *, settings: Settings, profile: Profile, facts: Facts
) -> list[Plain]:
    """What fills the workspace before the runner starts, and saves it meanwhile."""
    sandbox = profile.sandbox
    wanted = [(SEEDER, "hydrate", True)] if sandbox.seeded else []
    wanted += [(SYNCER, "sync", False)] if sandbox.kept else []
    return [
        {
            "name": name,
            "image": sandbox.stateSyncImage or settings.state_sync_image,
            "imagePullPolicy": settings.pull_policy,
            "command": [f"/usr/local/bin/{script}.sh"],
            "env": environment.of_helper(
                session,
                settings=settings,
                profile=profile,
                facts=facts,
                seeding=seeding,
            ),
            **({} if seeding else {"resources": _SYNCER}),
            "securityContext": _security(),
            "volumeMounts": _workspace(session, profile),
        }
        for name, script, seeding in wanted
    ]


def _workspace(session: AgenticSession, profile: Profile) -> list[Plain]:
    if not _has_workspace(profile):
        return []
    said = session.spec.environmentVariables.get("RUNNER_STATE_DIR", "")
    state = said or profile.sandbox.stateDir or STATE
    return [
        {"name": "workspace", "mountPath": WORKSPACE},
        {"name": "workspace", "mountPath": f"/app/{state}", "subPath": state},
    ]


def _has_workspace(profile: Profile) -> bool:
    return profile.sandbox.kept or profile.sandbox.seeded


def _volumes(session: AgenticSession, profile: Profile, facts: Facts) -> list[Plain]:
    token = names.token_secret_name(session.metadata.name)
    found: list[Plain] = []
    if _has_workspace(profile):
        size = _quantity(profile.sandbox.workspaceSize, "10Gi")
        found.append({"name": "workspace", "emptyDir": {"sizeLimit": size}})
    if VERTEX_SECRET in facts.secrets:
        found.append({"name": "vertex", "secret": {"secretName": VERTEX_SECRET}})
    # A file and no variable: the node replaces it when the token is.
    items = [{"key": KUBERNETES_TOKEN, "path": "bot-token"}]
    found.append(
        {"name": "runner-token", "secret": {"secretName": token, "items": items}}
    )
    if facts.trusted_bundle:
        source = {"name": TRUSTED_BUNDLE, "optional": True}
        found.append({"name": TRUSTED_BUNDLE, "configMap": source})
    return found


def _mount(name: str, path: str) -> Plain:
    return {"name": name, "mountPath": path, "readOnly": True}


def _resources(profile: Profile) -> Plain:
    said = profile.container.resources
    return {
        kind: {
            **usual,
            **{
                name: amount
                for name, amount in sorted(asked.items())
                if _quantity(amount, "")
            },
        }
        for kind, usual, asked in (
            ("requests", _RESOURCES["requests"], said.requests),
            ("limits", _RESOURCES["limits"], said.limits),
        )
    }


def _quantity(text: str, usual: str) -> str:
    """The amount, or the usual one where it is none: a typo stops no project."""
    try:
        Quantity(text)
    except ValueError:
        return usual
    return text


def _security() -> Plain:
    return {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
    }


def _pod_security(settings: Settings) -> Plain:
    said: dict[str, Any] = {"seccompProfile": {"type": "RuntimeDefault"}}
    if settings.run_as_non_root:
        said["runAsNonRoot"] = True
    if settings.run_as_user is not None:
        said["runAsUser"] = settings.run_as_user
    if settings.fs_group is not None:
        said["fsGroup"] = settings.fs_group
        said["fsGroupChangePolicy"] = "OnRootMismatch"
    return said
