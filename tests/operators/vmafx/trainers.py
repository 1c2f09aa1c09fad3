"""A trainer that is a script, and who plays its kubelet: for tests of the operator."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from hashlib import sha256
from typing import Any

from aiohttp import web

from tests.operators.vmafx.school import School
from trimtab.client import NotFound
from trimtab.kinds import Pod
from trimtab.operators.vmafx.training.kinds import PORT
from trimtab.testing import eventually


class Script:
    """A trainer that says what it is told to say."""

    def __init__(self, host: str) -> None:
        self.host = host
        self.says: dict[str, Any] = {
            "phase": "running",
            "current_samples": 5,
            "features": ["adm"],
        }
        self.known = ""
        """The token that it wants to be shown; without one it takes any."""
        self.refused = 0
        self.shown = ""
        self.asked = 0
        self.told: list[str] = []

    async def status(self, request: web.Request) -> web.Response:
        self.asked += 1
        return web.json_response(self.says)

    async def steer(self, request: web.Request) -> web.Response:
        self.shown = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if self.known not in ("", self.shown):
            self.refused += 1
            return web.Response(status=401)
        body = await request.json()
        self.told.append(f"{request.path} {body.get('version', '')}".strip())
        if body.get("version") == "v000009":
            return web.Response(status=404, text="There is no version v000009.")
        self.says["phase"] = "paused" if request.path == "/pause" else "running"
        return web.json_response({})

    async def asked_again(self, times: int = 2) -> None:
        """Wait until it was asked a few times more."""
        until = self.asked + times
        await eventually(lambda: self.asked >= until)


@asynccontextmanager
async def script(namespace: str) -> AsyncIterator[Script]:
    numbers = sha256(namespace.encode()).digest()
    made = Script(f"127.77.{numbers[0]}.{numbers[1] or 1}")
    application = web.Application()
    application.router.add_get("/status", made.status)
    for path in ("/pause", "/resume", "/rollback"):
        application.router.add_post(path, made.steer)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, made.host, PORT).start()
    try:
        yield made
    finally:
        await runner.cleanup()


async def play_kubelet(here: School, name: str, host: str) -> Pod:
    """Say of a pod that it runs, at an address."""

    async def there() -> Pod | None:
        try:
            found = await here.pod(name)
        except NotFound:
            return None
        return None if found.metadata.deletionTimestamp else found

    pod = await eventually(there)
    assert pod is not None
    status = {
        "phase": "Running",
        "podIP": host,
        "podIPs": [{"ip": host}],
        "conditions": [{"type": "Ready", "status": "True"}],
    }
    return await here.here.client.patch(
        Pod,
        pod.metadata.name,
        {"status": status},
        namespace=pod.metadata.namespace,
        subresource="status",
    )
