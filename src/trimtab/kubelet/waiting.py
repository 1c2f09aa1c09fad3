"""Waiting: what a container says while it cannot start, and for how long.

An image that is not there, a configuration that is not complete, a program that failed
too often: each has its reason, its Events and its pauses, as a kubelet has them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trimtab.kubelet.containers import ContainerRun

SOONEST = 1.0
"""Seconds between the failure to pull and the word that it is tried again later."""


class Waiting:
    """Waits for one start of one container; each wait is longer than the last.

    Guarantees: whatever is waited for ends at once when the container is halted.
    """

    def __init__(self, run: ContainerRun) -> None:
        self._run = run
        self._problems = 0

    async def for_image(self, why: str) -> None:
        """The image is not known here, which is as if it could not be pulled."""
        run, image = self._run, self._run.spec.image
        if run.spec.imagePullPolicy == "Never":
            text = f'Container image "{image}" is not present with pull policy of Never'
            run.event("Warning", "ErrImageNeverPull", text)
            return await self._without("ErrImageNeverPull", text)
        pause = self._pause()
        run.event("Normal", "Pulling", f'Pulling image "{image}"')
        run.event("Warning", "Failed", f'Failed to pull image "{image}": {why}')
        run.event("Warning", "Failed", "Error: ErrImagePull")
        run.wait("ErrImagePull", why)
        if await run.sleep(min(SOONEST, pause / 2)):
            return None
        text = f'Back-off pulling image "{image}"'
        run.event("Normal", "BackOff", text)
        run.event("Warning", "Failed", "Error: ImagePullBackOff")
        run.wait("ImagePullBackOff", f"{text}: ErrImagePull: {why}")
        await run.sleep(pause)
        return None

    async def for_name(self, why: str) -> None:
        """The image has no name that an image could have."""
        self._run.event("Warning", "InspectFailed", why)
        await self._without("InvalidImageName", why)

    async def _without(self, reason: str, message: str) -> None:
        self._run.event("Warning", "Failed", f"Error: {reason}")
        self._run.wait(reason, message)
        await self._run.sleep(self._pause())

    async def for_configuration(self, why: str) -> None:
        """Something that the container refers to is not there."""
        self._run.wait("CreateContainerConfigError", why)
        self._run.event("Warning", "Failed", f"Error: {why}")
        await self._run.sleep(self._pause())

    def _pause(self) -> float:
        self._problems += 1
        site = self._run.owner.site
        return site.options.pull.pause(self._problems, random=site.random)


async def to_restart(run: ContainerRun, failures: int) -> None:
    """The first restart is at once; before each further one is a longer pause."""
    site, pod = run.owner.site, run.owner.pod.metadata
    if failures <= 1:
        return
    pause = site.options.restart.pause(failures - 1, random=site.random)
    name = f"{pod.name}_{pod.namespace}({pod.uid})"
    run.event(
        "Warning",
        "BackOff",
        f"Back-off restarting failed container {run.spec.name} in pod {name}",
    )
    run.wait(
        "CrashLoopBackOff",
        f"back-off {go_duration(pause)} restarting failed "
        f"container={run.spec.name} pod={name}",
    )
    await run.sleep(pause)


def go_duration(seconds: float) -> str:
    """A pause as Go prints it: 10s, 2m40s, 5m0s."""
    if seconds < 60:
        return f"{seconds:g}s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}m{rest}s"
