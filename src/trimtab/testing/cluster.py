"""A cluster for a test: one object, wherever the cluster itself comes from."""

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Protocol, TypeVar, assert_never

import msgspec

from trimtab.testing import assets
from trimtab.testing.errors import ClusterError
from trimtab.testing.kubectl import WITHIN, Kubectl
from trimtab.testing.options import Kind, Options

T = TypeVar("T")


class Plane(Protocol):
    """The programs of a cluster that was started here."""

    @property
    def pids(self) -> dict[str, int]: ...

    def restart_apiserver(self) -> None: ...


class Cluster(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster that a test may use as its administrator.

    Guarantees: of a `current` cluster nothing is deleted but what was made by the
    fixtures or by the test itself; it can be neither restarted nor stopped.
    """

    name: str
    kind: Kind
    server: str
    """The address of the API server, as the kubeconfig has it."""
    kubeconfig: Path
    """A file of mode 0600 that is gone when the cluster is."""
    controllers: bool
    """Whether Kubernetes' own controllers run, for service accounts and the like."""
    tool: Kubectl
    plane: Plane | None
    """The programs, if they were started here: those of a `real` cluster, or the one
    of an `embedded` one."""

    def __repr__(self) -> str:
        return (
            f"Cluster(name={self.name!r}, kind={self.kind!r}, server={self.server!r})"
        )

    @property
    def pids(self) -> Mapping[str, int]:
        """The process id of each program that was started for this cluster, by name.

        A test may stop or kill one of them to see what happens.
        """
        return self.plane.pids if self.plane else {}

    async def kubectl(
        self, *arguments: str, stdin: str | None = None, within: float = WITHIN
    ) -> str:
        """Run the real kubectl on this cluster and return what it printed.

        Errors: `KubectlFailed` with what it wrote to stderr.
        """
        return await self.tool.run(*arguments, stdin=stdin, within=within)

    async def restart_apiserver(self) -> None:
        """Stop the API server and start it again: same port, objects and credentials.

        Flow: open connections and watches break; it is ready when this returns.

        Errors: `ClusterError` on a cluster that was not started here.
        """
        if self.plane is None:
            raise ClusterError(
                f"the API server of {self.name} was not started by this test run, so "
                "it is not restarted: use --cluster=embedded or --cluster=real."
            )
        await _in_thread(self.plane.restart_apiserver)


@contextlib.contextmanager
def started(
    kind: Kind, *, options: Options, abandoned: threading.Event | None = None
) -> Iterator[Cluster]:
    """`cluster` without an event loop: it blocks while the cluster starts and ends.

    Setting `abandoned` from another thread makes a start in progress fail.
    """
    if kind == "real":
        with _real(options, abandoned or threading.Event()) as ready:
            yield ready
    elif kind == "current":
        with _current() as ready:
            yield ready
    elif kind == "embedded":
        with _embedded(options, abandoned or threading.Event()) as ready:
            yield ready
    else:
        assert_never(kind)


@contextlib.asynccontextmanager
async def cluster(
    kind: Kind = "embedded", *, options: Options | None = None
) -> AsyncIterator[Cluster]:
    """A cluster for the length of the block.

    Flow: the cluster is ready when the block begins. Starting and stopping happen in
    another thread, so the event loop goes on meanwhile.

    Guarantees: a cluster that was started here is gone at the end of the block,
    without a process or a file left, also when the start fails, is cancelled, or this
    process is killed. Any number of them run side by side.

    Errors: `AssetsMissing` when the programs are not there; `ClusterError` when one
    of them ended or was not ready in time, with the last lines of its log.
    """
    abandoned = threading.Event()
    manager = started(kind, options=options or Options(), abandoned=abandoned)
    leave = partial(_in_thread, partial(manager.__exit__, None, None, None))
    entering = asyncio.get_running_loop().run_in_executor(None, manager.__enter__)
    try:
        await asyncio.wait([entering])
    except asyncio.CancelledError:
        abandoned.set()
        await asyncio.wait([entering])
        if entering.exception() is None:  # it was ready at that very moment
            await leave()
        raise
    ready = entering.result()
    try:
        yield ready
    finally:
        await leave()


@contextlib.contextmanager
def _real(options: Options, abandoned: threading.Event) -> Iterator[Cluster]:
    # Here, because ssl and http cost every pytest run that never starts a cluster.
    from trimtab.testing.real import control_plane

    program = assets.require("kubectl")["kubectl"]
    with control_plane(options, abandoned=abandoned) as plane:
        yield Cluster(
            name=plane.folder.name,
            kind="real",
            server=plane.server,
            kubeconfig=plane.kubeconfig,
            controllers=options.controllers,
            tool=_tool(program, plane.kubeconfig),
            plane=plane,
        )


@contextlib.contextmanager
def _embedded(options: Options, abandoned: threading.Event) -> Iterator[Cluster]:
    from trimtab.testing.embedded import AnyKubectl, embedded_plane

    program = assets.find("kubectl") or Path("kubectl")
    with embedded_plane(options, abandoned=abandoned) as plane:
        cache = plane.folder / "kubectl-cache"
        tool = AnyKubectl(program=program, kubeconfig=plane.kubeconfig, cache=cache)
        yield Cluster(
            name=plane.folder.name,
            kind="embedded",
            server=plane.server,
            kubeconfig=plane.kubeconfig,
            controllers=True,
            tool=tool,
            plane=plane,
        )


@contextlib.contextmanager
def _current() -> Iterator[Cluster]:
    from trimtab.testing import current
    from trimtab.testing.processes import Keeper

    current.require_kubeconfig()
    program = assets.require("kubectl")["kubectl"]
    # A keeper without programs: it deletes the copied credentials whatever happens.
    with Keeper() as keeper:
        name, kubeconfig, server = current.copy(program, folder=keeper.folder)
        yield Cluster(
            name=name,
            kind="current",
            server=server,
            kubeconfig=kubeconfig,
            controllers=True,
            tool=_tool(program, kubeconfig),
            plane=None,
        )


def _tool(program: Path, kubeconfig: Path) -> Kubectl:
    cache = kubeconfig.parent / "kubectl-cache"
    return Kubectl(program=program, kubeconfig=kubeconfig, cache=cache)


async def _in_thread(function: Callable[[], T]) -> T:
    """Run blocking work in a thread; it is finished even if the caller is cancelled."""
    future = asyncio.get_running_loop().run_in_executor(None, function)
    await asyncio.wait([future])
    return future.result()
