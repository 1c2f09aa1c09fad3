"""Launching: one start of a container, with its log, its limits and its process."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import msgspec

from trimtab.api.kinds import Container, WholePod
from trimtab.kubelet import limits
from trimtab.kubelet.consoles import Console
from trimtab.kubelet.images import Image
from trimtab.kubelet.logs import Log
from trimtab.kubelet.processes import Order, Process
from trimtab.kubelet.site import Site
from trimtab.kubelet.starting import Place, plan


class Launched(msgspec.Struct, frozen=True, kw_only=True):
    """A process, and all that was made for it."""

    process: Process
    order: Order
    group: limits.Group
    log: Log
    console: Console
    message: Path
    """Where it leaves its last words."""

    def close(self) -> None:
        """Nobody listens to it any more. Twice is once."""
        self.console.drain()
        self.log.close()


async def launch(
    pod: WholePod,
    container: Container,
    *,
    image: Image,
    command: list[str],
    place: Place,
    site: Site,
    restarts: int,
) -> Launched:
    """Start a container's process.

    Errors: ``ConfigProblem`` if something that it refers to is not there;
    ``StartFailed`` if the system does not start it. Nothing is left then but its log.
    """
    name = f"{container.name}-{restarts}"
    made = await plan(
        pod,
        container,
        image=image,
        command=command,
        place=place,
        site=site,
        message=place.folder / "messages" / name,
    )
    path = place.folder / "logs" / container.name / f"{restarts}.log"
    with ExitStack() as undo:
        group = _group(pod, container, site, restarts)
        undo.callback(group.remove)
        order = msgspec.structs.replace(
            made.order, cgroups=group.members, tty=bool(container.tty)
        )
        log = Log(path, now=site.now, limits=site.options.logs)
        undo.callback(log.close)
        _forget_logs(path.parent, restarts)
        console = Console(log.write, stdin=bool(container.stdin), tty=order.tty)
        undo.callback(console.drain)
        process = await site.warden.start(order, files=console.files)
        undo.pop_all()
    console.listen()
    return Launched(
        process=process,
        order=order,
        group=group,
        log=log,
        console=console,
        message=made.message,
    )


def _group(
    pod: WholePod, container: Container, site: Site, restarts: int
) -> limits.Group:
    amounts = container.resources.limits
    memory, cpu = amounts.get("memory"), amounts.get("cpu")
    if site.cgroups is None or not (memory or cpu):
        return limits.Group()
    # Each start has its own: what ran out of memory before must not count again.
    return site.cgroups.make(
        f"{pod.metadata.uid}-{container.name}-{restarts}",
        memory=int(memory) if memory else None,
        milli=cpu.milli if cpu else None,
    )


def _forget_logs(folder: Path, restarts: int) -> None:
    """Of earlier starts only the last one's log is kept, as kubectl can ask for."""
    for old in folder.glob("*.log*"):
        number = old.name.partition(".")[0]
        if number.isdecimal() and int(number) < restarts - 1:
            old.unlink(missing_ok=True)
