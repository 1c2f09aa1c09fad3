"""Telling: plays pods of `data/scenarios.yaml`, and writes down what is said of them.

The same code runs against a real node, to record (`hack/record_kubelet.py`), and
against ours, to compare. What is written down has no times, names, numbers or addresses
that differ from run to run.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import yaml

from trimtab import Client
from trimtab.api.kinds import Event, Pod
from trimtab.client import ApiError
from trimtab.client.watch import Bookmark

Plain = dict[str, Any]

DATA = Path(__file__).parent / "data"
RECORDED = DATA / "real_kubelet.json"
SETTLE = 1.5
"""Seconds in which a pod that is as wished for may have more said of it."""
PODS, EVENTS = Pod.__resource__, Event.__resource__
SHELL, PYTHON = "localhost/busybox:1", "localhost/pyslim:1"
KEPT = (
    *("name", "ready", "started", "restartCount", "state", "lastState"),
    *("resources", "allocatedResources", "volumeMounts"),
)
TIMES = ("startedAt", "finishedAt", "containerID")
RUNTIME = re.compile(
    r"(failed to (pull and unpack|create containerd task)|no command is known for"
    r"|exec: ).*",
    re.DOTALL,
)
"""What a container runtime says of its own failures; ours is none, and says less."""
BESIDE: list[Plain] = [
    {"kind": "Secret", "stringData": {"word": "yes"}},
    {"kind": "ConfigMap", "data": {"word": "yes"}},
]
"""Objects by the name of ``present`` that some of the pods refer to."""


class Scenario(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One pod: what it is, what is waited for, and what is done to it then."""

    until: Plain
    shell: str = ""
    python: str = ""
    main: Plain = {}
    spec: Plain = {}
    then: str = ""
    within: float = 60.0

    def pod(self, name: str, namespace: str) -> Plain:
        spec = dict(self.spec)
        if self.shell or self.python:
            spec["containers"] = [self._main(), *spec.get("containers", ())]
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {
                "restartPolicy": "Never",
                "terminationGracePeriodSeconds": 5,
                "automountServiceAccountToken": False,
                "dnsPolicy": "Default",
                **spec,
            },
        }

    def _main(self) -> Plain:
        shell = ["sh", "-c", self.shell]
        return {
            "name": "main",
            "image": SHELL if self.shell else PYTHON,
            "imagePullPolicy": "Never",
            "command": shell if self.shell else ["python3", "-c", self.python],
            **self.main,
        }


def scenarios() -> dict[str, Scenario]:
    text = (DATA / "scenarios.yaml").read_text()
    return msgspec.convert(yaml.safe_load(text), dict[str, Scenario])


def recorded() -> dict[str, Plain]:
    return msgspec.json.decode(RECORDED.read_bytes(), type=dict[str, Plain])


class Stage:
    """A namespace in which pods are played, and all that was seen in it.

    Flow: ``stage`` makes one; ``play`` each scenario; ``told`` is what was said.
    """

    def __init__(self, client: Client, namespace: str) -> None:
        self.client = client
        self.namespace = namespace
        self._pods: dict[str, Plain] = {}
        self._kept: dict[str, Plain] = {}
        """Each pod as it was when it last was as wished for."""
        self._gone: set[str] = set()
        self._events: dict[str, list[Plain]] = {}
        self._news: dict[str, asyncio.Event] = {}

    async def play(self, name: str, scenario: Scenario) -> None:
        """Bring a pod to where its scenario ends."""
        pod = scenario.pod(name, self.namespace)
        await self.client.create(pod)
        async with asyncio.timeout(scenario.within):
            await self._until(name, lambda: self._is(name, scenario.until))
            if scenario.then:
                await getattr(self, f"_{scenario.then}")(name)

    def told(self, name: str) -> Plain:
        """What was said of a pod until now."""
        pod = self._kept.get(name) or self._pods.get(name)
        if pod is None:
            return {}
        events = {_happening(each, pod) for each in self._events.get(name, ())}
        return {"status": _status(pod), "events": sorted(map(list, events))}

    async def _delete(self, name: str) -> None:
        self._kept.pop(name)
        await self.client.delete(PODS, name, namespace=self.namespace)
        await self._until(name, lambda: name in self._gone)

    async def _evict(self, name: str) -> None:
        self._kept.pop(name)
        await self.client.evict(name, namespace=self.namespace)
        await self._until(name, lambda: name in self._gone)

    async def _debug(self, name: str) -> None:
        added = {
            "name": "debugger",
            "image": SHELL,
            "imagePullPolicy": "Never",
            "command": ["sh", "-c", "echo hello; exit 0"],
            "targetContainerName": "main",
        }
        await self.client.patch(
            PODS,
            name,
            {"spec": {"ephemeralContainers": [added]}},
            how="strategic",
            namespace=self.namespace,
            subresource="ephemeralcontainers",
        )
        await self._until(name, lambda: self._is(name, {"terminated": "debugger"}))

    async def until_told(self, name: str, real: Plain) -> None:
        """Wait for the moment at which just this is said of a pod."""
        await self._until(name, lambda: self.told(name) == real)

    async def _until(self, name: str, check: Callable[[], bool]) -> None:
        news = self._news.setdefault(name, asyncio.Event())
        while not check():
            news.clear()
            await news.wait()

    async def _changed(self, name: str) -> None:
        self._news.setdefault(name, asyncio.Event()).set()
        await asyncio.sleep(0)  # whoever waits looks at each state there was

    def _is(self, name: str, wished: Plain) -> bool:
        pod = self._pods.get(name)
        if pod is None or not all(self._holds(pod, *each) for each in wished.items()):
            return False
        self._kept[name] = pod
        return True

    def _holds(self, pod: Plain, what: str, wished: Any) -> bool:
        status = pod.get("status", {})
        all = list(_containers(status))
        match what:
            case "phase":
                return bool(status.get("phase") == wished)
            case "ready":
                found = {c["type"]: c["status"] for c in status.get("conditions", ())}
                return bool(found.get("Ready") == wished)
            case "event":
                events = self._events.get(pod["metadata"]["name"], ())
                return any(each["reason"] == wished for each in events)
            case "restarts":
                return any(int(each["restartCount"]) >= wished for each in all)
            case "waiting":
                states = [each["state"].get("waiting", {}) for each in all]
                return any(each.get("reason") == wished for each in states)
            case "running" | "terminated":
                return any(e["name"] == wished and what in e["state"] for e in all)
        raise AssertionError(f"nobody knows what {what!r} is")

    async def watch_pods(self, wished: dict[str, Plain]) -> None:
        watch = self.client.watch(PODS, namespace=self.namespace, resource_version="0")
        async with watch as changes:
            async for change in changes:
                if isinstance(change, Bookmark):
                    continue
                pod = change.object
                name = pod["metadata"]["name"]
                self._pods[name] = pod
                if change.type == "DELETED":
                    self._gone.add(name)
                elif name in self._kept:
                    self._is(name, wished.get(name, {}))
                await self._changed(name)

    async def watch_events(self) -> None:
        where = self.namespace
        watch = self.client.watch(EVENTS, namespace=where, resource_version="0")
        async with watch as changes:
            async for change in changes:
                if isinstance(change, Bookmark):
                    continue
                event = change.object
                name = event["involvedObject"]["name"]
                self._events.setdefault(name, []).append(event)
                await self._changed(name)


@asynccontextmanager
async def stage(client: Client, namespace: str) -> AsyncIterator[Stage]:
    """A stage that is watched, with what pods refer to on it."""
    for each in BESIDE:
        meta = {"name": "present", "namespace": namespace}
        await client.create({"apiVersion": "v1", "metadata": meta, **each})
    made = Stage(client, namespace)
    wished = {name: each.until for name, each in scenarios().items()}
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(made.watch_pods(wished)),
            group.create_task(made.watch_events()),
        ]
        try:
            yield made
        finally:
            for task in tasks:
                task.cancel()


def _containers(status: Plain) -> Iterator[Plain]:
    for kind in ("initContainerStatuses", "containerStatuses"):
        yield from status.get(kind) or ()
    yield from status.get("ephemeralContainerStatuses") or ()


def _happening(event: Plain, pod: Plain) -> tuple[str, str, str, str, str]:
    about, source = event["involvedObject"], event.get("source") or {}
    return (
        event["type"],
        event["reason"],
        _plain(event.get("message", ""), pod),
        about.get("fieldPath", ""),
        event.get("reportingComponent") or source.get("component", ""),
    )


def _status(pod: Plain) -> Plain:
    status = pod["status"]
    made = {
        "phase": status.get("phase"),
        "reason": status.get("reason", ""),
        "message": _plain(status.get("message", ""), pod),
        "conditions": sorted(
            [c["type"], c["status"], c.get("reason", ""), c.get("message", "")]
            for c in status.get("conditions", ())
        ),
    }
    for kind in ("init", "", "ephemeral"):
        key = f"{kind}ContainerStatuses" if kind else "containerStatuses"
        if status.get(key):
            made[key] = [_container(each, pod) for each in status[key]]
    return made


def _container(status: Plain, pod: Plain) -> Plain:
    made = {key: status[key] for key in KEPT if key in status}
    for key in ("state", "lastState"):
        made[key] = {
            word: {
                name: _plain(value, pod) if isinstance(value, str) else value
                for name, value in facts.items()
                if name not in TIMES and value is not None
            }
            for word, facts in status.get(key, {}).items()
        }
    return made


def _plain(text: str, pod: Plain) -> str:
    """A text without what differs from run to run, or is its runtime's to say."""
    text = RUNTIME.sub("WHY", text)
    meta, status = pod["metadata"], pod.get("status", {})
    for value, word in (
        (meta["uid"], "UID"),
        (meta["namespace"], "NAMESPACE"),
        (status.get("podIP"), "ADDRESS"),
        (pod["spec"].get("nodeName"), "NODE"),
    ):
        if value:
            text = text.replace(value, word)
    return text


async def perform(
    client: Client, namespace: str, names: list[str]
) -> tuple[dict[str, Plain], dict[str, str]]:
    """Play scenarios at once; what was told of each, and which did not get there."""
    known, missed = scenarios(), {}
    async with stage(client, namespace) as here:

        async def one(name: str) -> None:
            try:
                await here.play(name, known[name])
            except (TimeoutError, ApiError) as error:
                missed[name] = repr(error)

        await asyncio.gather(*map(one, names))
        await asyncio.sleep(SETTLE)
        return {name: here.told(name) for name in names}, missed
