"""What the commands that run pods share: their arguments, and a node made of them."""

from __future__ import annotations

import argparse
import platform
import re
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trimtab.client import Client
    from trimtab.embedded.server import Server
    from trimtab.kubelet.assembly import Assembly, Parts


def add_node(made: argparse.ArgumentParser) -> None:
    """Whether there is a node beside a server, and what runs on it."""
    made.add_argument(
        "--no-kubelet",
        action="store_true",
        help="without a node: objects are stored, checked and watched, no pod runs",
    )
    add_images(made)


def add_images(made: argparse.ArgumentParser) -> None:
    """How to say what runs for an image."""
    made.add_argument(
        "--image",
        action="append",
        default=[],
        metavar="NAME=COMMAND",
        help="what runs for an image: a command, or a folder with programs; a "
        "container with a command that is on this machine needs none",
    )
    made.add_argument(
        "--images",
        type=Path,
        metavar="FILE",
        help="a file with a line NAME=COMMAND for each image",
    )


def check_images(options: argparse.Namespace) -> None:
    """Refuse what does not say what an image is, before anything is started."""
    from trimtab.kubelet.images import table

    table(options.image, file=options.images)


def can_run_pods() -> bool:
    """Whether processes can be kept on this system as a node keeps them."""
    return platform.system() == "Linux"


def node_name() -> str:
    """This machine's name, as a name of an object."""
    plain = re.sub(r"[^a-z0-9.-]+", "-", socket.gethostname().lower())
    return plain[:63].strip("-.") or "laptop"


@asynccontextmanager
async def beside(
    options: argparse.Namespace, server: Server, *, data: Path | None
) -> AsyncIterator[str]:
    """A node beside an embedded server, if one is wished for; its name."""
    import asyncio
    import tempfile

    if options.no_kubelet or not can_run_pods():
        yield ""
        return
    from trimtab.client import Client
    from trimtab.embedded.inprocess import InProcess, in_process_config
    from trimtab.kubelet.assembly import Parts

    name = node_name()
    transport = InProcess(server.driver)
    with tempfile.TemporaryDirectory(prefix="trimtab-node-") as scratch:
        async with Client(in_process_config(), transport=transport) as client:
            made = assembly(
                client,
                options,
                name=name,
                folder=Path(scratch) if data is None else data / "node",
                server=server.url,
                parts=Parts(),
            )
            async with asyncio.TaskGroup() as group:
                running = group.create_task(made.run())
                running.add_done_callback(lambda _: made.kubelet.ready.set())
                await made.kubelet.ready.wait()
                _serve_streams(server, made)
                yield name
                running.cancel()


def _serve_streams(server: Server, made: Assembly) -> None:
    from trimtab.kubelet.beside import Beside
    from trimtab.kubelet.serving import Streams
    from trimtab.kubelet.usage import Usage

    usage = Usage(made.kubelet)
    server.serve_nodes(Beside(Streams(made.kubelet), server.driver, usage=usage))


def assembly(
    client: Client,
    options: argparse.Namespace,
    *,
    name: str,
    folder: Path,
    server: str,
    parts: Parts,
) -> Assembly:
    """A node with what the arguments say of it."""
    from datetime import UTC, datetime
    from random import Random
    from urllib.parse import urlsplit

    from trimtab.kubelet.assembly import Assembly
    from trimtab.kubelet.images import Images, table
    from trimtab.kubelet.site import KubeletOptions

    place = urlsplit(server)
    settings = KubeletOptions(
        name=name,
        folder=folder,
        images=Images(table(options.image, file=options.images)),
        api=(place.hostname or "", str(place.port or 443)),
        alone=parts.scheduler,
    )
    return Assembly(
        client,
        settings,
        random=Random(),
        now=lambda: datetime.now(UTC),
        parts=parts,
    )
