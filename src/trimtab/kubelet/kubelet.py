"""The kubelet: runs the pods of one node as processes of this machine.

No isolation is promised: pods run as whoever runs the kubelet.
"""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
import shutil
import signal
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import AsyncExitStack, suppress
from datetime import datetime
from random import Random
from typing import Any, Protocol
from zlib import crc32

from trimtab.api.kinds import WholePod
from trimtab.cache import Change, Informer, Scope
from trimtab.client import Client, TrimtabError
from trimtab.kubelet.limits import Cgroups
from trimtab.kubelet.node import NodeKeeper
from trimtab.kubelet.pods import PodRun, is_terminal
from trimtab.kubelet.processes import Warden
from trimtab.kubelet.site import KubeletOptions, Site
from trimtab.kubelet.warden import sweep
from trimtab.runtime.events import Recorder

logger = logging.getLogger("trimtab.kubelet")

LOCK = "lock"
PODS = "pods"


class FolderInUse(TrimtabError):
    """Another kubelet has the folder."""


class ServiceNames(Protocol):
    """Where Services are, as pods are told."""

    def variables(self, namespace: str) -> dict[str, str]: ...

    def hosts(self, namespace: str) -> str: ...


class Kubelet:
    """One node.

    Flow: ``run`` in a task, with an informer of the node's pods that runs beside;
    ``ready`` is set when the node is registered.

    Guarantees: at its start nothing is left of what an earlier kubelet of the same
    folder ran; when ``run`` has ended, however, no process of a pod is left.

    Errors: :class:`FolderInUse`; ``WardenProblem`` if processes cannot be started.
    """

    _group: asyncio.TaskGroup
    site: Site

    def __init__(
        self,
        client: Client,
        options: KubeletOptions,
        *,
        pods: Informer[WholePod],
        random: Random,
        now: Callable[[], datetime],
    ) -> None:
        options.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.options = options
        self.ready = asyncio.Event()
        self.runs: dict[str, PodRun] = {}
        """The pods of this node that were run since its start, by uid."""
        self.node = NodeKeeper(client, options, now=now)
        self._client = client
        self._pods = pods
        self._random = random
        self._now = now
        self.listen: Callable[[], Awaitable[int]] | None = None
        """Begins to serve logs and commands; the port goes into the node's status."""
        self.services: ServiceNames | None = None
        """Who knows where Services are, if anybody here does."""
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._hosts: dict[str, str] = {}
        """What the hosts files of a namespace say of Services."""
        self.recorder = Recorder(
            client,
            component="kubelet",
            instance=options.name,
            now=now,
            random=random,
            pending=4096,
        )

    async def run(self) -> None:
        """Run pods until cancelled."""
        options = self.options
        async with AsyncExitStack() as stack:
            stack.callback(os.close, _locked(options))
            _clean(options)
            cgroups = self._cgroups()
            tidy = cgroups.bases if cgroups is not None else ()
            warden = Warden(options.folder, tidy=tidy)
            await stack.enter_async_context(warden)
            self.site = Site(
                self._client,
                options,
                warden=warden,
                cgroups=cgroups,
                recorder=self.recorder,
                random=self._random,
                now=self._now,
                allocatable=self.node.amounts,
            )
            if self.services is not None:
                self.site.services = self.services.variables
                self.site.hosts = self.services.hosts
            if self.listen is not None:
                self.node.port = await self.listen()
            await self.node.register()
            await self._pods.wait_synced()
            self._forget_folders()
            async with asyncio.TaskGroup() as self._group:
                self._group.create_task(self.recorder.run())
                self._group.create_task(self.node.run())
                self._group.create_task(self._warden_lost(warden))
                stack.callback(self._pods.subscribe(self._changed))
                self.recorder.event(
                    self.node.node, "Normal", "Starting", "Starting kubelet."
                )
                self.ready.set()
                try:
                    await asyncio.Event().wait()
                finally:
                    await self._farewell()

    def _cgroups(self) -> Cgroups | None:
        """Where limits are kept; the warden removes it when all processes are gone."""
        if not self.options.cgroups:
            return None
        # The same name each time: what a killed warden left is found and removed.
        made = Cgroups(f"{crc32(str(self.options.folder).encode()):08x}")
        made.clear()
        return made if made.bases else None

    async def _warden_lost(self, warden: Warden) -> None:
        await warden.lost.wait()
        raise TrimtabError(
            "The process that starts containers was killed, and all pods with it: "
            "start the kubelet again."
        )

    def _changed(self, change: Change[WholePod]) -> None:
        pod = change.new
        if change.replaced is not None and change.replaced.old is not None:
            self._vanished(change.replaced.old)
        if pod is None:
            assert change.old is not None
            self._vanished(change.old)
        elif pod.spec.nodeName == self.options.name:
            self._seen(pod)

    def _seen(self, pod: WholePod) -> None:
        uid = pod.metadata.uid
        run = self.runs.get(uid)
        going = pod.metadata.deletionTimestamp is not None
        if run is None and is_terminal(pod):
            if going:
                self._task(uid, PodRun(pod, self.site).remove())
        elif run is None:
            run = self.runs[uid] = PodRun(pod, self.site)
            self._task(uid, self._run(run))
            if going:
                run.update(pod)
        else:
            run.update(pod)
            if going and uid not in self._tasks:
                self._task(uid, run.remove())

    def _vanished(self, pod: WholePod) -> None:
        run = self.runs.get(pod.metadata.uid)
        if run is not None:
            run.vanish()
            if pod.metadata.uid not in self._tasks:
                self._forget(run)

    def _forget(self, run: PodRun) -> None:
        self.runs.pop(run.pod.metadata.uid, None)
        shutil.rmtree(run.place.folder, ignore_errors=True)

    def _task(self, uid: str, work: Coroutine[Any, Any, None]) -> None:
        task = self._group.create_task(work)
        self._tasks[uid] = task
        task.add_done_callback(lambda done: self._done(uid, done))

    def _done(self, uid: str, task: asyncio.Task[None]) -> None:
        """A pod is over; what was heard of it in its last moment is done now."""
        self._tasks.pop(uid, None)
        run = self.runs.get(uid)
        if run is None or task.cancelled():
            return
        if run.vanished:
            self._forget(run)
        elif run.pod.metadata.deletionTimestamp is not None:
            self._task(uid, run.remove())

    async def _run(self, run: PodRun) -> None:
        try:
            await run.run()
        except Exception:
            logger.exception("%s could not be run.", run.pod)

    def ended(self) -> Iterator[WholePod]:
        """The pods of this node that were over before it began."""
        for pod in self._pods.store.values():
            mine = pod.spec.nodeName == self.options.name
            if mine and is_terminal(pod) and pod.metadata.uid not in self.runs:
                yield pod

    def rewrite_hosts(self) -> None:
        """Where Services are may have changed; pods see it in their hosts file."""
        told: dict[str, str] = {}
        for run in self.runs.values():
            place = run.pod.metadata.namespace
            if place not in told:
                told[place] = self.site.hosts(place)
            if not run.over and self._hosts.get(place) != told[place]:
                run.rewrite_hosts()
        self._hosts = told

    def _forget_folders(self) -> None:
        """Folders of pods that are not here any more."""
        known = {each.metadata.uid for each in self._pods.store.values()}
        with suppress(FileNotFoundError):
            for each in (self.options.folder / PODS).iterdir():
                if each.name not in known:
                    shutil.rmtree(each, ignore_errors=True)

    async def _farewell(self) -> None:
        """End what runs, with a little time to do it well.

        Nothing is said about it: the next kubelet will see what is there. What does not
        end in time, the warden kills.
        """
        containers = [each for run in self.runs.values() for each in run.containers]
        running = [each.process for each in containers if each.process is not None]
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        for process in running:
            process.signal(signal.SIGTERM)
        try:
            if tasks:
                await asyncio.wait(tasks)
            if exits := [process.exit for process in running]:
                await asyncio.wait(exits, timeout=self.options.farewell)
        finally:
            for each in containers:
                each.close()
        self.recorder.stop()


def scope_of(name: str) -> Scope:
    """The pods of a node."""
    return Scope(fields=f"spec.nodeName={name}")


def _locked(options: KubeletOptions) -> int:
    """Hold the folder: two kubelets would sweep away each other's pods."""
    number = os.open(
        options.folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600
    )
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(number)
        raise FolderInUse(
            f"Another kubelet runs pods in {options.folder}: stop it, or choose "
            "another folder."
        ) from error
    return number


def _clean(options: KubeletOptions) -> None:
    """End what an earlier kubelet left, if it was killed together with its warden."""
    with suppress(FileNotFoundError):
        for each in (options.folder / PODS).iterdir():
            sweep(each.name)
            shutil.rmtree(each / "volumes", ignore_errors=True)
