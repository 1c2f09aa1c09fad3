"""How much of the machine the pods of a namespace may reach for.

Each law runs unchanged on the embedded server and on kube-apiserver.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.embedded.asking import MERGE, Asker, Plain, ask
from trimtab.testing import eventually

__all__ = ["ask"]
pytestmark = pytest.mark.cluster("embedded", "real")

PREFIX = "pod-security.kubernetes.io/"
SAFE = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}


def pod(name: str, *, main: Plain | None = None, **spec: Any) -> Plain:
    container = {"name": "main", "image": "x", **(main or {})}
    given = {
        "containers": [container],
        "automountServiceAccountToken": False,
        **spec,
    }
    return {"metadata": {"name": name}, "spec": given}


def probe(host: str) -> Plain:
    return {"httpGet": {"host": host, "port": 80}}


PODS: dict[str, Plain] = {
    "plain": pod("p"),
    "safe": pod("p", main={"securityContext": SAFE}),
    "two": pod(
        "p",
        initContainers=[{"name": "first", "image": "x"}],
        securityContext={"runAsNonRoot": True},
    ),
    "privileged": pod("p", main={"securityContext": {"privileged": True}}),
    "host": pod("p", hostNetwork=True, hostPID=True),
    "ports": pod(
        "p",
        main={
            "ports": [
                {"containerPort": 80, "hostPort": 80},
                {"containerPort": 81, "hostPort": 8080, "name": "b"},
            ]
        },
    ),
    "volumes": pod(
        "p",
        volumes=[
            {"name": "a", "hostPath": {"path": "/"}},
            {"name": "b", "nfs": {"server": "s", "path": "/"}},
            {"name": "c", "emptyDir": {}},
        ],
    ),
    "capabilities": pod(
        "p",
        main={
            "securityContext": {
                "capabilities": {"add": ["SYS_ADMIN", "CHOWN", "NET_RAW"]}
            }
        },
    ),
    "profiles": pod(
        "p",
        main={
            "securityContext": {
                "seccompProfile": {"type": "Unconfined"},
                "appArmorProfile": {"type": "Unconfined"},
                "seLinuxOptions": {"type": "spc_t", "user": "u"},
            }
        },
        securityContext={"sysctls": [{"name": "kernel.msgmax", "value": "1"}]},
    ),
    "root": pod(
        "p",
        main={"securityContext": {"runAsUser": 0, "runAsNonRoot": False}},
        securityContext={"runAsUser": 0},
    ),
    "probes": pod(
        "p", main={"livenessProbe": probe("h"), "readinessProbe": probe("g")}
    ),
    "users": pod("p", hostUsers=False, main={"securityContext": {"runAsUser": 0}}),
    "windows": pod("p", os={"name": "windows"}),
}
ESCALATES = (
    'allowPrivilegeEscalation != false (container "main" must set '
    "securityContext.allowPrivilegeEscalation=false)"
)
KEEPS = (
    'unrestricted capabilities (container "main" must set '
    'securityContext.capabilities.drop=["ALL"])'
)
ROOT = (
    'runAsNonRoot != true (pod or container "main" must set '
    "securityContext.runAsNonRoot=true)"
)
SECCOMP = (
    'seccompProfile (pod or container "main" must set '
    'securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")'
)
PLAIN = f"{ESCALATES}, {KEEPS}, {ROOT}, {SECCOMP}"
BASELINE: dict[str, str] = {
    "privileged": (
        'privileged (container "main" must not set securityContext.privileged=true)'
    ),
    "host": "host namespaces (hostNetwork=true, hostPID=true)",
    "ports": 'hostPort (container "main" uses hostPorts 80, 8080)',
    "volumes": 'hostPath volumes (volume "a")',
    "capabilities": (
        'non-default capabilities (container "main" must not include "NET_RAW", '
        '"SYS_ADMIN" in securityContext.capabilities.add)'
    ),
    "profiles": (
        'forbidden AppArmor profile (container "main" must not set AppArmor profile '
        'type to "Unconfined"), seLinuxOptions (container "main" set forbidden '
        'securityContext.seLinuxOptions: type "spc_t"; user may not be set), '
        'seccompProfile (container "main" must not set '
        'securityContext.seccompProfile.type to "Unconfined"), forbidden sysctls '
        "(kernel.msgmax)"
    ),
    "probes": (
        'probe or lifecycle host (container "main" uses probe or lifecycle hosts '
        '"g", "h")'
    ),
}
RESTRICTED: dict[str, str] = {
    "plain": PLAIN,
    "two": PLAIN.replace(f"{ROOT}, ", "").replace(
        'container "main"', 'containers "first", "main"'
    ),
    "volumes": (
        f"{ESCALATES}, {KEEPS}, restricted volume types (volumes "
        f'"a", "b" use restricted volume types "hostPath", "nfs"), {ROOT}, {SECCOMP}'
    ),
    "capabilities": (
        f'{ESCALATES}, {KEEPS[:-1]}; container "main" must not include "CHOWN", '
        '"NET_RAW", "SYS_ADMIN" in securityContext.capabilities.add), '
        f"{ROOT}, {SECCOMP}"
    ),
    "root": (
        f'{ESCALATES}, {KEEPS}, runAsNonRoot != true (container "main" must not set '
        "securityContext.runAsNonRoot=false), runAsUser=0 (pod and container "
        f'"main" must not set runAsUser=0), {SECCOMP}'
    ),
    "users": f"{ESCALATES}, {KEEPS}, {SECCOMP}",
    "windows": ROOT,
}


async def label(ask: Asker, *, dry_run: str = "", **levels: str) -> Any:
    """Say what the pods of the namespace may do; the answer."""
    labels = {f"{PREFIX}{key.replace('_', '-')}": each for key, each in levels.items()}
    path = f"/api/v1/namespaces/{ask.namespace}"
    body = {"metadata": {"labels": labels}}
    options = {"dryRun": dry_run} if dry_run else {}
    return await ask("PATCH", path, body, media=MERGE, **options)


def heard(answer: Any) -> list[str]:
    """The warnings of an answer, without their header's dress."""
    texts = (each.removeprefix("299 - ")[1:-1] for each in answer.warnings)
    return [each.replace('\\"', '"') for each in texts]


async def enforce(ask: Asker, level: str) -> None:
    assert (await label(ask, enforce=level)).status == 200
    bad = PODS["privileged"]

    async def is_enforced() -> bool:
        tried = await ask("POST", ask.path("pods"), bad, dryRun="All")
        return level in str(tried.obj.get("message", ""))

    await eventually(is_enforced, within=10)


@pytest.mark.parametrize(
    ("level", "wanted"), [("baseline", BASELINE), ("restricted", RESTRICTED)]
)
async def test_a_level_refuses_what_goes_beyond_it(
    ask: Asker, level: str, wanted: dict[str, str]
) -> None:
    await enforce(ask, level)
    for name, body in PODS.items():
        tried = await ask("POST", ask.path("pods"), body, dryRun="All")
        if name in wanted:
            told = f'violates PodSecurity "{level}:latest": {wanted[name]}'
            assert tried.refusal == (403, "Forbidden", f'pods "p" is forbidden: {told}')
        elif level == "baseline" or name == "safe":
            assert tried.status == 201, (name, tried.body)
        else:
            assert tried.status == 403, name


async def test_a_version_has_the_checks_of_its_time(ask: Asker) -> None:
    await enforce(ask, "baseline")
    path, body = ask.path("pods"), PODS["probes"]
    await label(ask, enforce_version="v1.33")

    async def is_older() -> bool:
        return (await ask("POST", path, body, dryRun="All")).status == 201

    await eventually(is_older, within=10)


async def test_who_writes_what_would_make_such_pods_is_warned(ask: Asker) -> None:
    await enforce(ask, "restricted")
    labels = {"a": "b"}
    template = {"metadata": {"labels": labels}, "spec": pod("x")["spec"]}
    body = {
        "metadata": {"name": "d"},
        "spec": {"selector": {"matchLabels": labels}, "template": template},
    }
    path = ask.path("deployments", group="apps")
    made = await ask("POST", path, body)
    assert made.status == 201, made.body
    told = f'would violate PodSecurity "restricted:latest": {PLAIN}'
    assert heard(made) == [told]


async def test_who_raises_a_level_hears_of_the_pods_that_break_it(ask: Asker) -> None:
    for name in ("b", "a", "c"):
        assert (await ask("POST", ask.path("pods"), pod(name))).status == 201
    host = {**pod("h", hostNetwork=True)}
    assert (await ask("POST", ask.path("pods"), host)).status == 201
    reasons = (
        "allowPrivilegeEscalation != false, unrestricted capabilities, runAsNonRoot != "
        "true, seccompProfile"
    )
    existing = (
        f'existing pods in namespace "{ask.namespace}" violate the new PodSecurity'
    )
    told = [
        f'{existing} enforce level "restricted:latest"',
        f"a (and 2 other pods): {reasons}",
        f"h: host namespaces, {reasons}",
    ]

    async def is_told() -> bool:
        # kube-apiserver looks through a cache, which may not have the last Pod yet.
        raised = await label(ask, dry_run="All", enforce="restricted")
        assert raised.status == 200
        assert heard(raised) == told
        return True

    await eventually(is_told)


async def test_a_level_that_there_is_not_is_refused(ask: Asker) -> None:
    refused = await label(ask, enforce="nope", warn_version="v2")
    assert refused.status == 422
    where = "metadata.labels[{}]"
    assert refused.causes == [
        (
            "FieldValueInvalid",
            where.format(f"{PREFIX}enforce"),
            'Invalid value: "nope": must be one of privileged, baseline, restricted',
        ),
        (
            "FieldValueInvalid",
            where.format(f"{PREFIX}warn-version"),
            'Invalid value: "v2": must be "latest" or "v1.x"',
        ),
    ]
