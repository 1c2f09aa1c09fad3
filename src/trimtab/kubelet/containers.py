"""A container: one process after another, and what is said of them.

A task of its own lives through all starts of a container: it waits for what it needs,
starts the process, watches it, and starts it again as the pod's policy says.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Protocol

from trimtab.api.kinds import Container, WholePod
from trimtab.client import TrimtabError
from trimtab.kubelet import commands, endings, limits, statuses
from trimtab.kubelet.environment import ConfigProblem
from trimtab.kubelet.health import Health
from trimtab.kubelet.images import Image, Unknown
from trimtab.kubelet.launching import Launched, launch
from trimtab.kubelet.logs import Log
from trimtab.kubelet.processes import Process, StartFailed
from trimtab.kubelet.site import Site
from trimtab.kubelet.starting import Place
from trimtab.kubelet.statuses import Plain
from trimtab.runtime.events import EventType

START_ERROR = 128
LEAST_GRACE = 2.0
"""Seconds that a process has after a hook used up the grace period."""


class Owner(Protocol):
    """What a container needs of its pod."""

    pod: WholePod
    site: Site
    place: Place
    group: asyncio.TaskGroup

    def changed(self) -> None: ...

    def event(self, type: EventType, reason: str, message: str) -> None: ...


class ContainerRun:
    """One container of one pod.

    Flow: ``live`` in a task; ``halt`` ends it, once. ``over`` is set when no process
    of it will run any more.
    """

    def __init__(self, spec: Container, owner: Owner, *, policy: str) -> None:
        self.spec = spec
        self.owner = owner
        self.policy = policy
        initial = statuses.INITIALIZING if owner.pod.spec.initContainers else ""
        self.state: Plain = statuses.waiting(initial or statuses.CREATING)
        self.last: Plain = {}
        self.restarts = 0
        self.ready = False
        self.started = False
        self.succeeded = False
        self.process: Process | None = None
        self._launched: Launched | None = None
        self.log: Log | None = None
        self.over = asyncio.Event()
        self.began = asyncio.Event()
        """Set when it has started as far as the next container waits for."""
        self._identity = ""
        self._since: datetime | None = None
        self._halted = asyncio.Event()
        self._interrupted = asyncio.Event()
        """Set when there may be something to do: it ended, or is to be ended."""
        self._asked = False
        self._grace = 30.0
        self._why = ""
        self._ran_out = False
        self._failures = 0
        self._health = Health(self)

    def status(self) -> Plain:
        return {
            "name": self.spec.name,
            "state": self.state,
            "lastState": self.last,
            "ready": self.ready,
            "restartCount": self.restarts,
            "image": self.spec.image,
            "imageID": self.spec.image if self._identity else "",
            **({"containerID": self._identity} if self._identity else {}),
            "started": self.started,
        }

    def resume(self, before: Plain) -> None:
        """Go on from what an earlier kubelet said; its processes are gone."""
        state = before.get("state", {})
        self.restarts = int(before.get("restartCount", 0))
        self.last = before.get("lastState", {})
        if "terminated" in state:
            self.last = {"terminated": state["terminated"]}
        elif "running" in state:
            self.last = {
                "terminated": {
                    "exitCode": 137,
                    "reason": "ContainerStatusUnknown",
                    "message": "The container could not be located when the pod was "
                    "terminated",
                    "startedAt": None,
                    "finishedAt": None,
                }
            }
        if "terminated" in self.last:
            self.restarts += 1

    def halt(self, grace: float, why: str = "") -> None:
        """Let it come to its end within so many seconds."""
        if self._halted.is_set():
            if grace < self._grace and self.process is not None:
                self._grace = grace
                self._interrupted.set()
            return
        self._halted.set()
        self.interrupt(why, grace)

    async def live(self) -> None:
        """Start it, and start it again, until it is not to run any more."""
        try:
            while not self._halted.is_set():
                code = await self._once()
                if code is None or self._halted.is_set():
                    break
                self.succeeded = code == 0
                if not statuses.restarts(self.policy, code):
                    break
                await self._pause()
                self.restarts += 1
        finally:
            self._health.stop()
            self.over.set()
            self.began.set()

    async def _once(self) -> int | None:
        """From looking for the image to the exit code; None if it was halted."""
        try:
            process = await self._begin()
        except StartFailed as error:
            return self._failed_to_start(str(error))
        if process is None:
            return None
        try:
            self._running()
            hooked = await self._health.post_start(process)
            if hooked:
                self._health.start(process)
            code = await self._watch(process)
        finally:
            self._health.stop()
        self._ended(code)
        return code

    # Beginning

    async def _begin(self) -> Process | None:
        owner, spec = self.owner, self.spec
        problems = 0
        while not self._halted.is_set():
            try:
                image, command = owner.site.options.images.find(spec)
                process = await self._start(image, command)
                return process
            except Unknown as error:
                problems += 1
                await self._without_image(str(error), problems)
            except (ConfigProblem, TrimtabError) as error:
                if isinstance(error, StartFailed):
                    raise
                problems += 1
                self._wait("CreateContainerConfigError", str(error))
                owner.event("Warning", "Failed", f"Error: {error}")
                await self._sleep(self._pull_pause(problems))
        return None

    async def _start(self, image: Image, command: list[str]) -> Process:
        owner, spec = self.owner, self.spec
        made = await launch(
            owner.pod,
            spec,
            image=image,
            command=command,
            place=owner.place,
            site=owner.site,
            restarts=self.restarts,
        )
        owner.event(
            "Normal",
            "Pulled",
            f'Container image "{spec.image}" already present on machine and can be '
            "accessed by the pod",
        )
        self._launched, self.log, self.process = made, made.log, made.process
        return made.process

    def _running(self) -> None:
        owner = self.owner
        assert self.process is not None
        self._since = owner.site.now()
        bits = owner.site.random.getrandbits(256)
        self._identity = f"trimtab://{bits:064x}"
        self._keep_last()
        self.state = statuses.running(self._since)
        probed = self.spec.startupProbe is not None
        hooked = self.spec.lifecycle is not None and self.spec.lifecycle.postStart
        self.started = not probed and not hooked
        self.ready = self.started and self.spec.readinessProbe is None
        self._ran_out = False
        self._asked = self._halted.is_set()
        owner.event("Normal", "Created", "Container created")
        owner.event("Normal", "Started", "Container started")
        if self.started:
            self.began.set()
        owner.changed()

    def _keep_last(self) -> None:
        if "terminated" in self.state:
            self.last = self.state

    def _failed_to_start(self, why: str) -> int:
        owner = self.owner
        now = owner.site.now()
        self.owner.event("Warning", "Failed", f"Error: {why}")
        self._keep_last()
        self.state = statuses.terminated(
            START_ERROR, reason="StartError", message=why, since=None, now=now
        )
        self._failures += 1
        owner.changed()
        return START_ERROR

    async def _without_image(self, why: str, problems: int) -> None:
        event, image = self.owner.event, self.spec.image
        if self.spec.imagePullPolicy == "Never":
            text = f'Container image "{image}" is not present with pull policy of Never'
            event("Warning", "ErrImageNeverPull", text)
            self._wait("ErrImageNeverPull", text)
            await self._sleep(self._pull_pause(problems))
            return
        event("Normal", "Pulling", f'Pulling image "{image}"')
        event("Warning", "Failed", f'Failed to pull image "{image}": {why}')
        event("Warning", "Failed", "Error: ErrImagePull")
        self._wait("ErrImagePull", why)
        if await self._sleep(min(1.0, self._pull_pause(problems) / 2)):
            return
        text = f'Back-off pulling image "{image}"'
        event("Normal", "BackOff", text)
        event("Warning", "Failed", "Error: ImagePullBackOff")
        self._wait("ImagePullBackOff", f"{text}: ErrImagePull: {why}")
        await self._sleep(self._pull_pause(problems))

    def _wait(self, reason: str, message: str) -> None:
        self._keep_last()
        self.state = statuses.waiting(reason, message)
        self.owner.changed()

    def _pull_pause(self, problems: int) -> float:
        site = self.owner.site
        return site.options.pull.pause(problems, random=site.random)

    async def _sleep(self, seconds: float) -> bool:
        """Wait, unless it is halted, which is True."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._halted.wait()
        return self._halted.is_set()

    async def _pause(self) -> None:
        """The first restart is at once; before each further one is a longer pause."""
        site = self.owner.site
        if self._failures <= 1:
            return
        pause = site.options.restart.pause(self._failures - 1, random=site.random)
        pod = self.owner.pod.metadata
        name = f"{pod.name}_{pod.namespace}({pod.uid})"
        self.owner.event(
            "Warning",
            "BackOff",
            f"Back-off restarting failed container {self.spec.name} in pod {name}",
        )
        self._wait(
            "CrashLoopBackOff",
            f"back-off {_go_duration(pause)} restarting failed "
            f"container={self.spec.name} pod={name}",
        )
        await self._sleep(pause)

    # Watching

    async def _watch(self, process: Process) -> int:
        """Wait for its end, or bring it about; also end it if it eats too much."""
        watcher = self._watch_memory(process)
        try:
            process.exit.add_done_callback(lambda _: self._interrupted.set())
            while not process.exit.done():
                await self._interrupted.wait()
                self._interrupted.clear()
                if self._asked and not process.exit.done():
                    self._asked = False
                    await self._stop(process)
        finally:
            if watcher is not None:
                watcher.cancel()
        self.close()
        return process.exit.result()

    def close(self) -> None:
        """Nobody listens to its process any more."""
        if self._launched is not None:
            self._launched.close()

    async def _stop(self, process: Process) -> None:
        """End it well: its hook, SIGTERM, time, SIGKILL."""
        loop = asyncio.get_running_loop()
        why = self._why or f"Stopping container {self.spec.name}"
        self.owner.event("Normal", "Killing", why)
        deadline = loop.time() + self._grace
        await self._health.pre_stop(process, self._grace)
        if not process.exit.done():
            process.signal(signal.SIGTERM)
        hooked = self.spec.lifecycle is not None and self.spec.lifecycle.preStop
        least = loop.time() + LEAST_GRACE if hooked and self._grace else 0.0
        while not process.exit.done():
            left = max(min(deadline, loop.time() + self._grace), least) - loop.time()
            if left <= 0:
                break
            with suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await self._interrupted.wait()
                    self._interrupted.clear()
        process.kill()
        await process.wait()

    def _watch_memory(self, process: Process) -> asyncio.Task[None] | None:
        limit = self.spec.resources.limits.get("memory")
        if not limit or (self._launched and self._launched.group.memory):
            return None
        return self.owner.group.create_task(self._guard(process, int(limit)))

    async def _guard(self, process: Process, limit: int) -> None:
        while not process.exit.done():
            used = limits.usage({process.pid}).get(process.pid, limits.Used())
            if used.memory > limit:
                self._ran_out = True
                process.kill()
                return
            await asyncio.sleep(self.owner.site.options.watch_memory)

    def _ended(self, code: int) -> None:
        owner = self.owner
        now = owner.site.now()
        steady = timedelta(seconds=owner.site.options.steady)
        if self._since is not None and now - self._since > steady:
            self._failures = 0
        self._failures += 1
        launched = self._launched
        assert launched is not None, "it has just ended"
        ran_out = self._ran_out or launched.group.ran_out()
        self.state = statuses.terminated(
            code,
            reason="OOMKilled" if ran_out and code else "",
            message=endings.last_words(self.spec, code, launched.message, launched.log),
            since=self._since,
            now=now,
            identity=self._identity,
        )
        self.started = self.ready = False
        self.process = None
        launched.group.remove()
        if code:
            address = owner.place.address
            for text in endings.taken_ports(self.spec, address):
                owner.event("Warning", "PortTaken", text)
        owner.changed()

    # Commands

    def interrupt(self, why: str, grace: float) -> None:
        """End the process of now, as if it had ended by itself."""
        self._why, self._grace, self._asked = why, grace, True
        self._interrupted.set()

    async def run(self, command: Sequence[str]) -> tuple[int, bytes]:
        """Run a command beside the process; its exit code, and what it said."""
        return await commands.heard(command, self.execute)

    async def execute(
        self, command: Sequence[str], *, files: Sequence[int], tty: bool = False
    ) -> Process:
        """Start a command where the container's process is, as ``exec`` does."""
        if self.process is None or self._launched is None:
            raise StartFailed(f"container {self.spec.name} is not running")
        order = commands.beside(
            self._launched.order, command, self.process.pid, tty=tty
        )
        return await self.owner.site.warden.start(order, files=files)


def _go_duration(seconds: float) -> str:
    """A pause as Go prints it: 10s, 2m40s, 5m0s."""
    if seconds < 60:
        return f"{seconds:g}s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}m{rest}s"
