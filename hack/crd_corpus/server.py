"""Server: a real API server that is asked about custom resources."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, TypeVar

import aiohttp
import yaml

from trimtab.testing.cluster import cluster

JSON = dict[str, Any]
T = TypeVar("T")

CRDS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
TABLE: Final = "application/json;as=Table;v=v1;g=meta.k8s.io"
_VOLATILE: Final = ("uid", "creationTimestamp", "managedFields", "resourceVersion")
_PATIENCE: Final = 60.0


class Server:
    """A real API server, asked about a few things at a time."""

    def __init__(self, session: aiohttp.ClientSession, address: str) -> None:
        self._session = session
        self._address = address
        self._turns = asyncio.Semaphore(8)

    async def ask(self, method: str, path: str, body: Any = None, **query: str) -> JSON:
        """The answer: ``code``, ``body`` and, where there are any, ``warnings``."""
        code, found, warnings = await self._send(method, path, body, query)
        answer = {"code": code, "body": settled(found)}
        return {**answer, "warnings": warnings} if warnings else answer

    async def raw(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        accept: str = "application/json",
    ) -> JSON:
        """The body of an answer, with all that differs from one run to the next."""
        return (await self._send(method, path, body, {}, accept=accept))[1]

    async def _send(
        self,
        method: str,
        path: str,
        body: Any,
        query: dict[str, str],
        *,
        accept: str = "application/json",
    ) -> tuple[int, JSON, list[str]]:
        async with (
            self._turns,
            self._session.request(
                method,
                self._address + path,
                params=query,
                data=None if body is None else json.dumps(body),
                headers={"Content-Type": "application/json", "Accept": accept},
            ) as response,
        ):
            found: JSON = json.loads(await response.read())
            warnings = [_text(each) for each in response.headers.getall("Warning", [])]
        return response.status, found, warnings

    async def establish(self, crd: JSON) -> JSON:
        """Create a definition for good and wait until its objects can be made."""
        answer = await self.ask("POST", CRDS, crd)
        if answer["code"] != 201:
            return answer
        name = crd["metadata"]["name"]

        async def served() -> JSON | None:
            answer = await self.ask("GET", f"{CRDS}/{name}")
            ready = {
                each["type"]
                for each in answer["body"]["status"].get("conditions") or ()
                if each["status"] == "True"
            }
            if not {"Established", "NamesAccepted"} <= ready:
                return None
            there = await self.ask("GET", path_of(crd))
            return answer if there["code"] == 200 else None

        return await until(served)


async def until(look: Callable[[], Awaitable[T | None]]) -> T:
    """What ``look`` finds, once it finds something."""
    deadline = asyncio.get_running_loop().time() + _PATIENCE
    while (found := await look()) is None:
        assert asyncio.get_running_loop().time() < deadline, "the server took too long"
        await asyncio.sleep(0.05)
    return found


async def every(work: Iterable[Awaitable[T]]) -> list[T]:
    return list(await asyncio.gather(*work))


def _text(header: str) -> str:
    """The text of a Warning header: code, agent, then the text in quotes."""
    text: str = json.loads('"' + header.split('"', 1)[1].rsplit('"', 1)[0] + '"')
    return text


def settled(found: JSON) -> JSON:
    """What was answered, without what differs from one run to the next."""
    metadata = found.get("metadata", {})
    for key in _VOLATILE:
        metadata.pop(key, None)
    status = found.get("status")
    conditions = status.get("conditions") if isinstance(status, dict) else None
    for condition in conditions or ():
        if isinstance(condition, dict):
            condition.pop("lastTransitionTime", None)
    return found


def path_of(crd: JSON, version: str = "v1") -> str:
    spec = crd["spec"]
    return (
        f"/apis/{spec['group']}/{version}/namespaces/default/{spec['names']['plural']}"
    )


def filled(crd: JSON, body: JSON, *, name: str = "it", version: str = "v1") -> JSON:
    """A whole object of a definition's kind."""
    return {
        "apiVersion": f"{crd['spec']['group']}/{version}",
        "kind": crd["spec"]["names"]["kind"],
        **body,
        "metadata": {"name": name, **body.get("metadata", {})},
    }


@asynccontextmanager
async def real_server() -> AsyncIterator[Server]:
    """A control plane of its own, for as long as it is asked."""
    async with cluster("real") as real:
        with TemporaryDirectory() as folder:
            address, context = _context(real.kubeconfig, Path(folder))
            connector = aiohttp.TCPConnector(ssl=context)
            async with aiohttp.ClientSession(connector=connector) as session:
                yield Server(session, address)


def _context(kubeconfig: Path, folder: Path) -> tuple[str, ssl.SSLContext]:
    loaded = yaml.safe_load(kubeconfig.read_text())
    place = loaded["clusters"][0]["cluster"]
    user = loaded["users"][0]["user"]

    def part(source: JSON, key: str) -> str:
        if key in source:
            return str(source[key])
        file = folder / key
        file.touch(mode=0o600)
        file.write_bytes(base64.b64decode(source[f"{key}-data"]))
        return str(file)

    context = ssl.create_default_context(cafile=part(place, "certificate-authority"))
    context.load_cert_chain(part(user, "client-certificate"), part(user, "client-key"))
    return place["server"], context
