"""What the commands that run pods share: their arguments, and a node made of them."""

from __future__ import annotations

import argparse
import platform
import re
import socket
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trimtab.client import Client
    from trimtab.kubelet.assembly import Assembly, Parts


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
