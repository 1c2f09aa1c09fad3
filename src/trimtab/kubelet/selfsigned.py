"""A certificate of its own for a node, made by a process that ends with it.

What makes certificates takes ten MiB that a node would keep for nothing.
"""

from __future__ import annotations

import asyncio
import sys
from datetime import UTC, datetime
from pathlib import Path

from trimtab.client.errors import TrimtabError

# The same Trimtab as ours, wherever that one was imported from.
BOOT = (
    "import sys; sys.path.insert(0, sys.argv.pop(1)); "
    "from trimtab.kubelet.selfsigned import main; main()"
)
SOURCE = str(Path(__file__).resolve().parents[2])


async def certificate(*names: str, now: datetime) -> bytes:
    """A key and a certificate for a server that is reached under these names."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", BOOT, SOURCE, str(now.timestamp()), *names),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    made, words = await process.communicate()
    if process.returncode:
        last = words.decode(errors="replace").strip().rpartition("\n")[2]
        raise TrimtabError(
            f"No certificate could be made for the node ({last}): install "
            "trimtab[embedded]."
        )
    return made


def main() -> None:
    from trimtab.embedded.certificates import Authority

    moment, *names = sys.argv[1:]
    now = datetime.fromtimestamp(float(moment), UTC)
    authority = Authority.make("trimtab-kubelet", now=now)
    pair = authority.issue_server(names[0], names=names, now=now)
    sys.stdout.buffer.write(pair.pem)
