"""A certificate of its own for a node, made by a process that ends with it.

What makes certificates takes ten MiB that a node would keep for nothing.
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path

from trimtab.client.commands import CommandFailed, output
from trimtab.client.errors import TrimtabError

# The same Trimtab as ours, wherever that one was imported from.
BOOT = (
    "import sys; sys.path.insert(0, sys.argv.pop(1)); "
    "from trimtab.kubelet.selfsigned import main; main()"
)
SECONDS = 60.0
"""For that process, most of which go into importing."""
SOURCE = str(Path(__file__).resolve().parents[2])


async def certificate(*names: str, now: datetime) -> bytes:
    """A key and a certificate for a server that is reached under these names."""
    try:
        return await output(
            *(sys.executable, "-c", BOOT, SOURCE, str(now.timestamp()), *names),
            within=SECONDS,
        )
    except CommandFailed as error:
        last = error.complaint.strip().rpartition("\n")[2]
        raise TrimtabError(
            f"No certificate could be made for the node ({last or error}): install "
            "trimtab[embedded]."
        ) from None


def main() -> None:
    from trimtab.embedded.certificates import Authority

    moment, *names = sys.argv[1:]
    now = datetime.fromtimestamp(float(moment), UTC)
    authority = Authority.make("trimtab-kubelet", now=now)
    pair = authority.issue_server(names[0], names=names, now=now)
    sys.stdout.buffer.write(pair.pem)
