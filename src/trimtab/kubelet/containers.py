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
from trimtab.kubelet import commands, endings, statuses
from trimtab.kubelet.consoles import Console
from trimtab.kubelet.environment import ConfigProblem
from trimtab.kubelet.health import Health
from trimtab.kubelet.images import Image, Malformed, Unknown
from trimtab.kubelet.launching import Launched, launch
from trimtab.kubelet.logs import Log
from trimtab.kubelet.processes import Process, StartFailed
from trimtab.kubelet.site import Site
from trimtab.kubelet.starting import Place
from trimtab.kubelet.statuses import Plain
from trimtab.kubelet.waiting import Waiting, to_restart
from trimtab.runtime.events import EventType

START_ERROR = 128
PULLED = (
    'Container image "{}" already present on machine and can be accessed by the pod'
)
LEAST_GRACE = 2.0
"""Seconds that a process has after a hook used up the grace period."""


class Owner(Protocol):
    """What a container needs of its pod."""

    pod: WholePod
    site: Site
    place: Place
    group: asyncio.TaskGroup

    def changed(self) -> None: ...

    def is_last(self, run: ContainerRun) -> bool: ...

    def event(
        self, type: EventType, reason: str, message: str, *, field: str = ""
    ) -> None: ...


class ContainerRun:
    """One container of one pod.

    Flow: ``live`` in a task; ``halt`` ends it, once. ``over`` is set when no process
    of it will run any more.
    """

    def __init__(
        self, spec: Container, owner: Owner, *, policy: str, among: str = "containers"
    ) -> None:
        self.spec = spec
        self.owner = owner
        self.policy = policy
        self._field = f"spec.{among}{{{spec.name}}}"
        self.counts = among == "containers" or statuses.is_sidecar(spec)
        """Whether it can be ready: others end first, or are guests."""
        initial = statuses.INITIALIZING if owner.pod.spec.initContainers else ""
        self.state: Plain = statuses.waiting(initial or statuses.CREATING)
        self.last: Plain = {}
        self._before: Plain = {}
        """How it ended before it last ended."""
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

    def status(self, *, over: bool = False) -> Plain:
        """What is said of it; ``over``: it waits for nothing any more."""
        state, last = self.state, self.last
        if over and "waiting" in state and last:
            state, last = last, self._before
        made = {
            "name": self.spec.name,
            "state": state,
            "lastState": last,
            "ready": self.ready,
            "restartCount": self.restarts,
            "image": self.spec.image,
            "imageID": self.spec.image if self._identity else "",
            "started": self.started,
            **statuses.mounted(self.spec),
        }
        if self._identity:
            made |= {"containerID": self._identity, **statuses.allotted(self.spec)}
        return made

    @property
    def console(self) -> Console | None:
        """Where its process is heard and talked to, if it runs."""
        return self._launched.console if self._launched and self.process else None

    @property
    def is_ready_at_once(self) -> bool:
        """Whether it is ready as soon as it has started."""
        return self.counts and self.spec.readinessProbe is None

    def event(self, type: EventType, reason: str, message: str) -> None:
        self.owner.event(type, reason, message, field=self._field)

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
                    "reason": statuses.LOST,
                    "message": statuses.LOST_MESSAGE,
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
                self.succeeded = code == 0
                if code is None or self._halted.is_set():
                    break
                if not statuses.restarts(self.policy, code):
                    break
                await to_restart(self, self._failures)
                self.restarts += not self._halted.is_set()
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
        waiting = Waiting(self)
        while not self._halted.is_set():
            try:
                image, command = owner.site.options.images.find(spec)
                self.event("Normal", "Pulled", PULLED.format(spec.image))
                return await self._start(image, command)
            except Unknown as error:
                await waiting.for_image(str(error))
            except Malformed as error:
                await waiting.for_name(str(error))
            except (ConfigProblem, TrimtabError) as error:
                if isinstance(error, StartFailed):
                    raise
                await waiting.for_configuration(str(error))
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
        self._launched, self.log, self.process = made, made.log, made.process
        return made.process

    def _running(self) -> None:
        owner = self.owner
        assert self.process is not None
        self._created()
        self._tell_limits()
        self._since = owner.site.now()
        self.state = statuses.running(self._since)
        probed = self.spec.startupProbe is not None
        hooked = self.spec.lifecycle is not None and self.spec.lifecycle.postStart
        self.started = not probed and not hooked
        self.ready = self.is_ready_at_once and self.started
        self._ran_out = False
        self._asked = self._halted.is_set()
        self.event("Normal", "Started", "Container started")
        if self.started:
            self.began.set()
        owner.changed()

    def _tell_limits(self) -> None:
        """Say what cannot be kept here; memory is watched where no cgroup holds it."""
        limit = self.spec.resources.limits.get("cpu")
        if limit and self._launched and self._launched.group.cpu is None:
            self.event(
                "Warning",
                "NoCPULimit",
                "This node may not make cgroups, so nothing holds the container to its "
                f"CPU limit of {limit}: run the node as root, or where its user owns a "
                "cgroup.",
            )

    def _created(self) -> None:
        bits = self.owner.site.random.getrandbits(256)
        self._identity = f"trimtab://{bits:064x}"
        self.event("Normal", "Created", "Container created")
        self._keep_last()

    def _keep_last(self) -> None:
        if "terminated" in self.state:
            self._before, self.last = self.last, self.state

    def _failed_to_start(self, why: str) -> int:
        owner = self.owner
        self._created()
        self.event("Warning", "Failed", f"Error: {why}")
        self.state = statuses.terminated(
            START_ERROR,
            reason="StartError",
            message=why,
            since=None,
            now=owner.site.now(),
            identity=self._identity,
        )
        self._failures += 1
        owner.changed()
        return START_ERROR

    def wait(self, reason: str, message: str) -> None:
        """Say what it waits for."""
        self._keep_last()
        self.state = statuses.waiting(reason, message)
        self.owner.changed()

    async def sleep(self, seconds: float) -> bool:
        """Wait, unless it is halted, which is True."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._halted.wait()
        return self._halted.is_set()

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
        self.event("Normal", "Killing", why)
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
        clock = asyncio.get_running_loop().time
        with self.owner.site.meter.metering(process.pid) as used:
            while not process.exit.done():
                if used(clock()).memory > limit:
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
                self.event("Warning", "PortTaken", text)
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
