"""Containers: what each must say, alone and next to the others of its pod."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

import msgspec

from trimtab.embedded.builtin.validation import (
    env,
    handlers,
    resources,
    security,
    sources,
    texts,
    volumes,
)
from trimtab.embedded.builtin.validation.problems import Found

JSON = Mapping[str, Any]

PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
_MESSAGES: Final = ("File", "FallbackToLogsOnError")
_POLICIES: Final = ("Always", "Never", "OnFailure")
_NO_INIT: Final = "may not be set for init containers without restartPolicy=Always"
_NOT_EPHEMERAL: Final = (
    "ports",
    "resources",
    "resizePolicy",
    "restartPolicy",
    "restartPolicyRules",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
    "lifecycle",
)


class Pod(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What containers have to know of their pod."""

    volumes: Mapping[str, Any]
    claims: Collection[str]
    grace: int | None
    restart: str
    host_users: bool


def common(found: Found, given: JSON, pod: Pod, path: str) -> None:
    """What is asked of every container."""
    name = given["name"]
    if not name:
        found.required(f"{path}.name")
    elif problems := texts.label(name):
        found.each(f"{path}.name", name, problems)
    if not given.get("image"):
        found.required(f"{path}.image")
    message = given.get("terminationMessagePolicy", "")
    if message not in _MESSAGES:
        found.choice(f"{path}.terminationMessagePolicy", message, _MESSAGES)
    if "ports" in given:
        _ports(found, given["ports"], f"{path}.ports")
    if "env" in given:
        env.variables(found, given["env"], f"{path}.env")
    if "envFrom" in given:
        env.env_from(found, given["envFrom"], f"{path}.envFrom")
    if "volumeMounts" in given:
        volumes.mounts(found, given, pod.volumes, f"{path}.volumeMounts")
    if "volumeDevices" in given:
        volumes.devices(found, given, pod.volumes, f"{path}.volumeDevices")
    policy = given.get("imagePullPolicy", "")
    if policy not in sources.PULL_POLICIES:
        sources.pull_policy(found, policy, f"{path}.imagePullPolicy")
    if given.get("resources"):
        where = f"{path}.resources"
        resources.requirements(found, given["resources"], where, claims=pod.claims)
    if "resizePolicy" in given:
        where = f"{path}.resizePolicy"
        _resize(found, given["resizePolicy"], where, restart=pod.restart)
    context = given.get("securityContext")
    if context:
        where, users = f"{path}.securityContext", pod.host_users
        security.container(found, context, where, host_users=users)


def _ports(found: Found, given: list[JSON], path: str) -> None:
    names: set[str] = set()
    for index, port in enumerate(given):
        where = f"{path}[{index}]"
        _port_name(found, port.get("name", ""), names, f"{where}.name")
        number = port["containerPort"]
        if not number:
            found.required(f"{where}.containerPort")
        elif not 1 <= number <= 65535:
            found.invalid(f"{where}.containerPort", number, texts.PORT_RANGE)
        host = port.get("hostPort", 0)
        if host and not 1 <= host <= 65535:
            found.invalid(f"{where}.hostPort", host, texts.PORT_RANGE)
        protocol = port.get("protocol", "")
        if protocol not in PROTOCOLS:
            found.choice(f"{where}.protocol", protocol, PROTOCOLS)


def _port_name(found: Found, name: str, names: set[str], path: str) -> None:
    if not name:
        return
    if problems := texts.port_name(name):
        found.each(path, name, problems)
    elif name in names:
        found.duplicate(path, name)
    else:
        names.add(name)


def _resize(found: Found, given: list[JSON], path: str, *, restart: str) -> None:
    seen: set[str] = set()
    for index, policy in enumerate(given):
        name, action = policy["resourceName"], policy["restartPolicy"]
        if name in seen:
            found.duplicate(f"{path}[{index}]", name)
        seen.add(name)
        found.choice(path, name, ("cpu", "memory"))
        found.choice(path, action, ("NotRequired", "RestartContainer"))
        if restart == "Never" and action != "NotRequired":
            detail = "must be 'NotRequired' when pod `restartPolicy` is 'Never'"
            found.invalid(path, action, detail)


def regular(found: Found, given: list[JSON] | None, pod: Pod, path: str) -> None:
    """The containers that a pod is there for."""
    if not given:
        found.required(path)
        return
    names: set[str] = set()
    for index, each in enumerate(given):
        where = f"{path}[{index}]"
        common(found, each, pod, where)
        if each["name"] in names:
            found.duplicate(f"{where}.name", each["name"])
        names.add(each["name"])
        _actions(found, each, pod, where)
        _restart(found, each, where)
    _host_ports(found, given, path)


def _actions(found: Found, given: JSON, pod: Pod, path: str) -> None:
    if "lifecycle" in given:
        where, hooks = f"{path}.lifecycle", given["lifecycle"]
        handlers.lifecycle(found, hooks, where, grace=pod.grace)
    handlers.probes(found, given, path, grace=pod.grace)


def _restart(found: Found, given: JSON, path: str, *, first: bool = False) -> None:
    """When a single container is started again; one that is ``first`` has to say."""
    policy, rules = given.get("restartPolicy"), given.get("restartPolicyRules") or ()
    if policy is None and not rules:
        return
    if policy is None:
        detail = "must specify restartPolicy when restart rules are used"
        found.required(f"{path}.restartPolicy", detail)
        if first:
            return
    else:
        found.one_of(f"{path}.restartPolicy", policy, _POLICIES)
    if len(rules) > 20:
        found.too_many(f"{path}.restartPolicyRules", len(rules), 20)
    for index, rule in enumerate(rules):
        _restart_rule(found, rule, f"{path}.restartPolicyRules[{index}]")


def _restart_rule(found: Found, rule: JSON, path: str) -> None:
    actions = ("Restart", "RestartAllContainers")
    found.one_of(f"{path}.action", rule.get("action", ""), actions)
    codes = rule.get("exitCodes")
    if codes is None:
        found.required(f"{path}.exitCodes", "must be specified")
        return
    operator = codes.get("operator", "")
    found.one_of(f"{path}.exitCodes.operator", operator, ("In", "NotIn"))
    values = codes.get("values") or ()
    if len(values) > 255:
        found.too_many(f"{path}.exitCodes.values", len(values), 255)


def _host_ports(found: Found, given: list[JSON], path: str) -> None:
    seen: set[str] = set()
    for index, each in enumerate(given):
        for number, port in enumerate(each.get("ports") or ()):
            if not port.get("hostPort"):
                continue
            key = f"{port['protocol']}/{port.get('hostIP', '')}/{port['hostPort']}"
            if key in seen:
                where = f"{path}[{index}].ports[{number}].hostPort"
                found.duplicate(where, key)
            seen.add(key)


def initial(
    found: Found,
    given: list[JSON] | None,
    pod: Pod,
    path: str,
    *,
    others: list[JSON] | None,
) -> None:
    """The containers that run before the others, some of which stay."""
    names = {each["name"] for each in others or ()}
    for index, each in enumerate(given or ()):
        where, name = f"{path}[{index}]", each["name"]
        common(found, each, pod, where)
        _restart(found, each, where, first=True)
        if name in names:
            found.duplicate(f"{where}.name", name)
        elif name:
            names.add(name)
        _host_ports(found, [each], path)
        if each.get("restartPolicy") == "Always":
            _actions(found, each, pod, where)
        else:
            _passing(found, each, where)


def _passing(found: Found, given: JSON, path: str) -> None:
    """What a container that only runs once cannot have."""
    for name in ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe"):
        if name in given:
            found.forbidden(f"{path}.{name}", _NO_INIT)
    for index, policy in enumerate(given.get("resizePolicy") or ()):
        if policy["restartPolicy"] == "RestartContainer":
            detail = (
                "must not be set to 'RestartContainer' for non-sidecar initContainers"
            )
            where = f"{path}.resizePolicy[{index}].restartPolicy"
            found.invalid(where, "RestartContainer", detail)


def ephemeral(found: Found, spec: JSON, pod: Pod, path: str) -> None:
    """Containers that were added to look into a running pod."""
    given = spec.get("ephemeralContainers")
    if not given:
        return
    others = {
        each["name"]
        for kind in ("containers", "initContainers")
        for each in spec.get(kind) or ()
    }
    names = set(others)
    for index, each in enumerate(given):
        where, name = f"{path}[{index}]", each["name"]
        common(found, each, pod, where)
        padding(found, each, where)
        if name in names:
            found.duplicate(f"{where}.name", name)
        names.add(name)
        target = each.get("targetContainerName")
        if target and target not in others:
            found.not_found(f"{where}.targetContainerName", target)
        _only_looking(found, each, where)


def _only_looking(found: Found, given: JSON, path: str) -> None:
    detail = "cannot be set for an Ephemeral Container"
    for name in _NOT_EPHEMERAL:
        if name in given and (given[name] or name != "resources"):
            found.forbidden(f"{path}.{name}", detail)
    for index, mount in enumerate(given.get("volumeMounts") or ()):
        for name in ("subPath", "subPathExpr"):
            if mount.get(name):
                found.forbidden(f"{path}.volumeMounts[{index}].{name}", detail)


def padding(found: Found, given: JSON, path: str) -> None:
    image = given.get("image", "")
    if image != image.strip():
        detail = "must not have leading or trailing whitespace"
        found.invalid(f"{path}.image", image, detail)
