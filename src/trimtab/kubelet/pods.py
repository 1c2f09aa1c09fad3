"""A pod: its containers in their order, from its folder to its last status."""

from __future__ import annotations

import asyncio
import logging
import shutil
from collections.abc import Callable
from contextlib import suppress

from trimtab.api.kinds import Pod, WholePod
from trimtab.api.objects import wire
from trimtab.client import (
    ApiError,
    ServerError,
    TooManyRequests,
    TransportError,
    TrimtabError,
)
from trimtab.kubelet import statuses
from trimtab.kubelet.containers import ContainerRun
from trimtab.kubelet.reporting import Reporter
from trimtab.kubelet.site import LOOPBACK, Site
from trimtab.kubelet.starting import HOSTS, Place, hosts_file
from trimtab.kubelet.statuses import Outcome
from trimtab.kubelet.volumes import Facts, MountProblem, Volumes
from trimtab.runtime.events import EventType

logger = logging.getLogger("trimtab.kubelet")

GRACE = 30
GUESTS = "ephemeralContainers"
EVICTION_GRACE = 1.0
"""Seconds that a pod has that takes more than it may."""
RETRY = 1.0
"""Seconds before something that the server did not do is asked for again."""
DEADLINE = Outcome(
    phase=statuses.FAILED,
    reason="DeadlineExceeded",
    message="Pod was active on the node longer than the specified deadline",
)


class PodRun:
    """One pod on this node.

    Flow: ``run`` in a task; ``update`` when the object changes; ``end`` to end it.

    Guarantees: when ``run`` has returned, no process of the pod is left, and its last
    status was written if the server took it. Cancelling ``run`` leaves its processes to
    the canceller.
    """

    group: asyncio.TaskGroup

    def __init__(self, pod: WholePod, site: Site) -> None:
        self.pod = pod
        self.site = site
        folder = site.options.folder / "pods" / pod.metadata.uid
        address = LOOPBACK
        if not pod.spec.hostNetwork:
            address = site.addresses.take(pod.status.podIP)
        facts = Facts(host=LOOPBACK, address=address, allocatable=site.allocatable)
        volumes = Volumes(pod, folder / "volumes", site.client, facts=facts)
        self.place = Place(folder=folder, address=address, volumes=volumes)
        policy = pod.spec.restartPolicy or "Always"
        once = "OnFailure" if policy == "Always" else policy
        self.inits = [
            ContainerRun(
                each,
                self,
                policy="Always" if statuses.is_sidecar(each) else once,
                among="initContainers",
            )
            for each in pod.spec.initContainers
        ]
        self.guests: list[ContainerRun] = []
        """Ephemeral containers, as they come; they run once and count for nothing."""
        self.mains = [
            ContainerRun(each, self, policy=policy) for each in pod.spec.containers
        ]
        self.over = False
        """No process of it runs or will run; the status says so soon."""
        self.sandbox = False
        self.initialized = not self.inits
        """All that had to end or begin before the others did."""
        self.started = pod.status.startTime or site.now()
        self.outcome = Outcome()
        self.ending = asyncio.Event()
        self._grace = float(GRACE)
        self._reporter = Reporter(self)
        self._gone = False
        self._resume(policy)

    def _resume(self, policy: str) -> None:
        """What an earlier kubelet began goes on; what it must not repeat has failed."""
        before = self.pod.status
        known = {
            each.name: wire(each)
            for each in (
                *before.initContainerStatuses,
                *before.containerStatuses,
                *before.ephemeralContainerStatuses,
            )
        }
        for each in (*self.inits, *self.mains):
            if each.spec.name in known:
                each.resume(known[each.spec.name])
        for spec in self.pod.spec.ephemeralContainers:
            if spec.name in known:  # it ran, and runs only once
                guest = ContainerRun(spec, self, policy="Never", among=GUESTS)
                guest.resume(known[spec.name])
                guest.state, guest.last, guest.restarts = guest.last, {}, 0
                guest.over.set()
                self.guests.append(guest)
        began = any("terminated" in each.last for each in self.mains)
        self.initialized |= began
        if began and policy == "Never":
            for each in self.mains:
                each.state = each.last or each.state
                each.restarts = max(0, each.restarts - 1)
                each.last = {}
            self.outcome = Outcome(phase=statuses.FAILED)
            self.ending.set()

    def named(self, name: str) -> ContainerRun | None:
        for each in self.containers:
            if each.spec.name == name:
                return each
        return None

    @property
    def containers(self) -> tuple[ContainerRun, ...]:
        """All of them; the ones that the pod is for first."""
        return (*self.mains, *self.inits, *self.guests)

    def update(self, pod: WholePod) -> None:
        """The object changed: its labels may be shown, its gates count, it may go."""
        self.pod = self.place.volumes.pod = pod
        if pod.metadata.deletionTimestamp is not None:
            grace = pod.metadata.deletionGracePeriodSeconds
            self.end(float(GRACE if grace is None else grace))
            return
        if pod.spec.readinessGates:
            self.changed()
        self._welcome()

    def end(self, grace: float, outcome: Outcome | None = None) -> None:
        """Let it come to its end; a second call can only shorten the time."""
        if not self.ending.is_set():
            self.outcome = outcome or self.outcome
            self._grace = grace
            self.ending.set()
        elif grace < self._grace:
            self._grace = grace
            for each in self.containers:
                each.halt(grace)

    def vanish(self) -> None:
        """The object is gone: nobody waits for its containers, nor its status."""
        self._gone = True
        self.end(1.0)

    @property
    def vanished(self) -> bool:
        """Whether the object is gone, or was removed at the end."""
        return self._gone

    def is_last(self, run: ContainerRun) -> bool:
        """Whether no other of its ordinary containers runs any more."""
        return all(each is run or each.over.is_set() for each in self.mains)

    def changed(self) -> None:
        """Something is to be said about it."""
        self._reporter.changed()

    def event(
        self, type: EventType, reason: str, message: str, *, field: str = ""
    ) -> None:
        self.site.recorder.event(self.pod, type, reason, message, field=field)

    async def run(self) -> None:
        try:
            async with asyncio.TaskGroup() as self.group:
                writer = self.group.create_task(self._reporter.run())
                keeper = self.group.create_task(self._keep())
                stop_timer = self._end_at(self.pod.spec.activeDeadlineSeconds)
                await self._live()
                stop_timer()
                keeper.cancel()
                self.over = True
                self.changed()
                await writer
        except Exception:
            self._kill()
            raise
        finally:
            self.site.addresses.release(self.place.address)
            self.place.volumes.remove()
        await self._finish()

    def _kill(self) -> None:
        for each in self.containers:
            if each.process is not None:
                each.process.kill()

    def _end_at(self, deadline: int | None) -> Callable[[], None]:
        """End it when it has been active for too long; returns how to forget that."""
        if not deadline:
            return lambda: None
        seconds = deadline - (self.site.now() - self.started).total_seconds()

        def late() -> None:
            self.event("Normal", DEADLINE.reason, DEADLINE.message)
            self.end(self._usual_grace(), DEADLINE)

        handle = asyncio.get_running_loop().call_later(max(0.0, seconds), late)
        return handle.cancel

    def _usual_grace(self) -> float:
        grace = self.pod.spec.terminationGracePeriodSeconds
        return float(GRACE if grace is None else grace)

    # Living

    async def _live(self) -> None:
        if await self._prepare():
            self._welcome()
            if await self._initialize():
                self.initialized = True
                await self._work()
        await self._end_sidecars()
        await self._end_guests()
        await self.site.warden.sweep(self.pod.metadata.uid)

    async def _prepare(self) -> bool:
        """Make the folder and the volumes; True when containers may start."""
        self.place.folder.mkdir(parents=True, exist_ok=True)
        if not self.site.can_mount and self.pod.spec.volumes:
            self.event(
                "Warning",
                "NoMounts",
                "This system does not let pods have mounts of their own, so volumes "
                "are not at their paths: find each in $TRIMTAB_VOLUME_NAME.",
            )
        problems = 0
        while not self.ending.is_set():
            try:
                await self.place.volumes.make()
                self.sandbox = True
                return True
            except (MountProblem, TrimtabError) as error:
                problems += 1
                self.event("Warning", "FailedMount", str(error))
                pause = self.site.options.pull.pause(problems, random=self.site.random)
                await self._sleep(pause)
        return False

    async def _sleep(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.ending.wait()

    async def _initialize(self) -> bool:
        """Run the init containers one by one, and start the sidecars among them."""
        for each in self.inits:
            self.group.create_task(each.live())
            sidecar = statuses.is_sidecar(each.spec)
            done = each.began if sidecar else each.over
            if not await self._until(done):
                each.halt(self._grace)
                await each.over.wait()
                each.ready = each.succeeded and not sidecar
                return False
            if sidecar:
                continue
            if not each.succeeded:
                return False
            each.ready = True
            self.changed()
        return not self.ending.is_set()

    async def _until(self, done: asyncio.Event) -> bool:
        """Wait for something; False if the pod is to end before that."""
        waits = [
            self.group.create_task(done.wait()),
            self.group.create_task(self.ending.wait()),
        ]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waits:
                each.cancel()
        return done.is_set()

    async def _work(self) -> None:
        for each in self.mains:
            self.group.create_task(each.live())
        for each in self.mains:
            if not await self._until(each.over):
                break
        if self.ending.is_set():
            for each in self.mains:
                each.halt(self._grace)
            for each in self.mains:
                await each.over.wait()

    async def _end_sidecars(self) -> None:
        """Sidecars end after the others, the last started first."""
        for each in reversed(self.inits):
            if each.began.is_set() and not each.over.is_set():
                each.halt(self._grace if self.ending.is_set() else self._usual_grace())
                await each.over.wait()

    def _welcome(self) -> None:
        """Start the ephemeral containers that are new."""
        if not self.sandbox or self.over or self.ending.is_set():
            return
        for spec in self.pod.spec.ephemeralContainers[len(self.guests) :]:
            guest = ContainerRun(spec, self, policy="Never", among=GUESTS)
            self.guests.append(guest)
            self.group.create_task(guest.live())
            self.changed()

    async def _end_guests(self) -> None:
        for each in self.guests:
            each.halt(self._grace if self.ending.is_set() else self._usual_grace())
        for each in self.guests:
            await each.over.wait()

    async def _keep(self) -> None:
        """Keep up what follows the cluster, and hold volumes to their size."""
        options = self.site.options
        loop = asyncio.get_running_loop()
        fresh = loop.time()
        while True:
            await asyncio.sleep(options.housekeeping)
            self._hold_volumes()
            if self.place.volumes.refreshed and loop.time() - fresh > options.refresh:
                fresh = loop.time()
                with suppress(MountProblem, TrimtabError):
                    await self.place.volumes.make()

    def _hold_volumes(self) -> None:
        for volume in self.pod.spec.volumes:
            limit = volume.emptyDir.sizeLimit if volume.emptyDir else None
            if limit and self.place.volumes.usage(volume.name) > int(limit):
                self.evict(
                    f'Usage of EmptyDir volume "{volume.name}" exceeds the limit '
                    f'"{limit}". '
                )

    def rewrite_hosts(self) -> None:
        """In place: containers see the same file."""
        path = self.place.folder / HOSTS
        if path.exists():
            text = hosts_file(self.pod, self.place.address, self.site)
            if path.read_text() != text:
                path.write_text(text)

    def evict(self, message: str) -> None:
        """End it because it takes more than it may."""
        self.event("Warning", "Evicted", message)
        self.end(
            EVICTION_GRACE,
            Outcome(
                phase=statuses.FAILED, reason="Evicted", message=message, firm=False
            ),
        )

    async def _finish(self) -> None:
        if self._gone or self.pod.metadata.deletionTimestamp is not None:
            await self.remove()

    async def remove(self) -> None:
        """The object may go, and with it all that is kept of the pod."""
        while not self._gone:
            if await self._deleted():
                break
            await asyncio.sleep(RETRY)
        self._gone = True
        self.site.addresses.release(self.place.address)
        shutil.rmtree(self.place.folder, ignore_errors=True)

    async def _deleted(self) -> bool:
        """Whether the object is gone, or is not ours to delete; False: ask again."""
        meta = self.pod.metadata
        try:
            await self.site.client.delete(
                Pod, meta.name, namespace=meta.namespace, grace=0, uid=meta.uid
            )
        except (ServerError, TooManyRequests, TransportError) as error:
            logger.warning("%s", f"{self.pod} was not removed: {error}")
            return False
        except ApiError:  # it is gone, or another has its name
            pass
        return True


def is_terminal(pod: Pod) -> bool:
    return pod.status.phase in statuses.TERMINAL
