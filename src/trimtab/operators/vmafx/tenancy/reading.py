"""Where tenants are written down: in objects of a cluster, or in a file.

They are read strictly when a gateway starts, so that a mistake is seen by whoever made
it, and leniently from then on, so that one wrong tenant is no outage of the others.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final, TypeAlias

import msgspec
import yaml

from trimtab.cache import Change, Informer
from trimtab.client import Client, ConfigError, TrimtabError
from trimtab.operators.vmafx.tenancy.judging import Entry
from trimtab.operators.vmafx.tenancy.kinds import VmafxTenant, VmafxTenantSpec
from trimtab.operators.vmafx.tenancy.registry import REFRESH, Registry

Read: TypeAlias = Callable[[], Awaitable[list[Entry]]]
"""Reads all tenants. Errors: :class:`NotRead`, and those of the client."""
LARGEST: Final = 1 << 20
"""Bytes of a file of tenants."""

log = logging.getLogger(__name__)


class NotRead(TrimtabError):
    """The tenants cannot be read at present."""


def from_server(client: Client, namespace: str) -> Read:
    """Reads the objects of a namespace, from the server itself."""

    async def read() -> list[Entry]:
        return [
            Entry(each.metadata.name, each.spec)
            async for each in client.list(VmafxTenant, namespace=namespace)
            if each.metadata.deletionTimestamp is None
        ]

    return read


def from_objects(informer: Informer[VmafxTenant]) -> Read:
    """Reads the objects that a cache follows, while it does."""

    async def read() -> list[Entry]:
        await informer.wait_synced()  # half of the tenants are other tenants
        if problem := informer.problem(asyncio.get_running_loop().time()):
            raise NotRead(problem)
        return [
            Entry(each.metadata.name, each.spec)
            for each in informer.store.values()
            if each.metadata.deletionTimestamp is None
        ]

    return read


def from_file(path: Path) -> Read:
    """Reads a file of YAML or JSON, each time anew."""
    last: tuple[bytes, list[Entry]] = (b"", [])

    def read_now() -> list[Entry]:
        nonlocal last
        content = _content(path)
        if content != last[0] or not content:
            last = content, parsed(content, str(path))
        return last[1]

    async def read() -> list[Entry]:
        return await asyncio.to_thread(read_now)

    return read


def _content(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            found = file.read(LARGEST + 1)
    except OSError as error:
        raise NotRead(f"{path} cannot be read: {error.strerror}.") from None
    if len(found) > LARGEST:
        raise NotRead(f"{path} is larger than {LARGEST} bytes: tenants need less.")
    return found


def parsed(content: bytes, name: str) -> list[Entry]:
    """The tenants of a file: a list, below ``tenants``, of what a spec has.

    Errors: :class:`NotRead`, also for a field that nobody knows: a misspelt one would
    be as if it were not there.
    """
    try:
        found = yaml.safe_load(content)
    except yaml.YAMLError:
        raise NotRead(f"{name} is neither YAML nor JSON.") from None
    items = found.get("tenants") if isinstance(found, dict) else None
    if not isinstance(items, list):
        raise NotRead(f"{name} has no list below the word tenants.")
    try:
        return [_entry(item) for item in items]
    except msgspec.ValidationError as error:
        raise NotRead(f"{name} has a tenant that is not valid: {error}.") from None


def _entry(item: Any) -> Entry:
    spec = msgspec.convert(item, VmafxTenantSpec)
    if unknown := _unknown(item, msgspec.to_builtins(spec)):
        raise msgspec.ValidationError(f"{unknown} is no field of a tenant")
    return Entry(spec.tenantId, spec)


def _unknown(given: Any, known: Any) -> str:
    """The first field of what was given that was not understood; empty if all were."""
    if not isinstance(given, dict) or not isinstance(known, dict):
        return ""
    for name, value in given.items():
        if name not in known:
            return str(name)
        if found := _unknown(value, known[name]):
            return f"{name}.{found}"
    return ""


class Reader:
    """Keeps a registry as young as what it reads from.

    Flow: ``start`` once, then ``run`` in a task group. ``stir`` has it read at once.
    ``changed`` is called when the tenants are others than before.

    Guarantees: what cannot be read changes nothing, and is told in the log; the
    registry grows old by it.
    """

    def __init__(
        self,
        registry: Registry,
        read: Read,
        *,
        refresh: float = REFRESH,
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        self._registry = registry
        self._read = read
        self._refresh = refresh
        self._changed = changed
        self._stirred = asyncio.Event()

    def stir(self, change: Change[VmafxTenant] | None = None) -> None:
        """Read again, soon."""
        self._stirred.set()

    async def start(self, read: Read | None = None) -> None:
        """Read the tenants, all of them right; once, it may be from elsewhere.

        Errors: :class:`ConfigError`.
        """
        try:
            await self._load(read or self._read, strict=True)
        except NotRead as error:
            raise ConfigError(f"The tenants cannot be read: {error}") from None

    async def run(self) -> None:
        """Read them again when they change, and now and then, until cancelled."""
        while True:
            try:
                async with asyncio.timeout(self._refresh):
                    await self._stirred.wait()
            except TimeoutError:
                pass
            self._stirred.clear()
            try:
                await self._load(self._read, strict=False)
            except TrimtabError as error:
                log.warning("The tenants are as they were: %s", error)

    async def _load(self, read: Read, *, strict: bool) -> None:
        # The time before: what is read is no younger.
        now = asyncio.get_running_loop().time()
        before = self._registry.verdicts
        self._registry.load(await read(), now=now, strict=strict)
        if self._registry.verdicts != before:
            self._changed()
