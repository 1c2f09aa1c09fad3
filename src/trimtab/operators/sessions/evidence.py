"""Evidence: the end of what a runner printed, read before its pod goes."""

from __future__ import annotations

import asyncio
from typing import Final

from trimtab.api.kinds import ContainerStatus, Pod
from trimtab.client import Client, TrimtabError
from trimtab.operators.sessions.kinds import APP

LARGEST: Final = 4096
"""Characters, of which each may take four bytes, that are kept."""
LINES: Final = 100
_READ: Final = 256 * 1024
_SECONDS: Final = 2.0
"""A node that does not answer delays a session by no more."""


async def tail(client: Client, pod: Pod) -> str:
    """The last lines of the container that the end of a pod is about.

    Guarantees: it ends within two seconds and never fails; what cannot be read is
    empty.
    """
    container = _culprit(pod)
    if not pod.spec.nodeName or container is None:
        return ""
    lines: list[str] = []
    try:
        async with asyncio.timeout(_SECONDS):
            async with client.logs(
                pod.metadata.name,
                namespace=pod.metadata.namespace,
                container=container,
                tail=LINES,
                limit=_READ,
                deadline=_SECONDS,
            ) as found:
                async for line in found:
                    lines.append(_readable(line))
    except (TrimtabError, TimeoutError):
        pass  # what came until then is better than nothing
    return "\n".join(lines)[-LARGEST:]


def _culprit(pod: Pod) -> str | None:
    """The runner, unless another container is why it never ran; None if none ran."""
    status = pod.status
    ran = [
        each
        for each in (*status.containerStatuses, *status.initContainerStatuses)
        if each.state.terminated or each.state.running
    ]
    ran.sort(key=_order)
    return ran[0].name if ran else None


def _order(status: ContainerStatus) -> tuple[bool, bool]:
    ended = status.state.terminated
    return status.name != APP, ended is None or ended.exitCode == 0


def _readable(line: bytes) -> str:
    text = line.decode("utf-8", "replace")
    return "".join(each if each.isprintable() or each == "\t" else " " for each in text)
