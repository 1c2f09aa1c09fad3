"""kopf on the scoreboard: ``kopf run -A``, with an event handler for each kind.

It has no cache of its own. *Tuned*: lists in pages, no scanning for new kinds, Pods by
label on the server, uvloop.
"""

# It lives in an environment of its own, where mypy does not look.
# mypy: disable-error-code="import-not-found, import-untyped, untyped-decorator"

from __future__ import annotations

from typing import Any

import kopf

from bench.peers.scoreboard_probe import (
    GROUP,
    RUNNERS,
    TUNED,
    VERSION,
    WORKLOAD,
    Probe,
)

probe = Probe()


@kopf.on.startup()
def configure(settings: Any, **_: Any) -> None:
    settings.posting.enabled = False
    if TUNED:
        settings.scanning.disabled = True
        settings.watching.chunk_size = 500
        if WORKLOAD == "S":
            settings.watching.label_selectors["pods"] = RUNNERS


if WORKLOAD == "S":

    @kopf.on.event(GROUP, VERSION, "agenticsessions")
    async def on_session(body: Any, **_: Any) -> None:
        probe.note_body("AgenticSession", body)

    @kopf.on.event(GROUP, VERSION, "projectsettings")
    async def on_settings(body: Any, **_: Any) -> None:
        probe.note_body("ProjectSettings", body)

    @kopf.on.event("", "v1", "pods")
    async def on_runner(**_: Any) -> None:
        """Watched, as by everybody; the sessions are what is reconciled."""

else:

    @kopf.on.event("", "v1", "pods")
    async def on_pod(body: Any, **_: Any) -> None:
        probe.note_body("Pod", body)
