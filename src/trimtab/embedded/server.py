"""The server: a store, an API on it and HTTPS in front, to start and stop as one.

It listens on the loopback unless it is told otherwise, always with TLS, and keeps all
that it knows in one folder, or in memory.
"""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import logging
import shutil
import socket
import ssl
import tempfile
from collections.abc import Iterable
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from types import TracebackType
from typing import Self

from trimtab.client.errors import TrimtabError
from trimtab.embedded import access, files
from trimtab.embedded.api import Api, Settings
from trimtab.embedded.authentication import Authenticator, StaticToken, uid_in
from trimtab.embedded.driver import Driver
from trimtab.embedded.faults import Faults
from trimtab.embedded.identity import Identity
from trimtab.embedded.listener import Listener, Nodes
from trimtab.embedded.store import Store
from trimtab.embedded.tokens import Tokens

logger = logging.getLogger(__name__)

LOOPBACK = "127.0.0.1"
STORE = "store.db"
PKI = "pki"
KUBECONFIG = "kubeconfig"
RENEWAL_SECONDS = 86_400.0
ADVICE = "name another folder for the data, or see to its permissions"


class AddressProblem(TrimtabError):
    """The server cannot listen where it was told to."""


class Server:
    """An API server in this process.

    Flow: ``async with Server(data=folder) as server`` has it ready for clients when
    the block begins; ``server.kubeconfig`` is a file that lets its administrator in.

    Guarantees: what was answered is in the file when the process ends, in whatever
    way. At the end of the block watches end as if their time were up, requests under
    way are answered, and after at most five seconds nothing of it is left but the data.

    Errors: entering raises :class:`TrimtabError`, whose message is one sentence for
    people: the data is in use, damaged or cannot be written, the port is taken.
    """

    def __init__(
        self,
        *,
        data: Path | None = None,
        host: str = LOOPBACK,
        port: int = 0,
        kubeconfig: Path | None = None,
        tokens: Iterable[StaticToken] = (),
        faults: Faults | None = None,
    ) -> None:
        self._data = data
        self._host = host
        self._port = port
        self._kubeconfig = kubeconfig
        self._static = tuple(tokens)
        self._faults = faults
        self._stack = AsyncExitStack()
        self._renewal: asyncio.TimerHandle | None = None

    @property
    def url(self) -> str:
        """Where clients find it."""
        return self._url

    @property
    def kubeconfig(self) -> Path:
        """The file that lets the administrator in; in memory, it goes with the server.

        It is the one that was named, else ``kubeconfig`` in the folder of the data.
        """
        return self._written

    @property
    def driver(self) -> Driver:
        """For the in-process transport, beside those who come over HTTPS."""
        return self._driver

    def serve_nodes(self, nodes: Nodes | None) -> None:
        """Let somebody in this process answer for the pods that it runs."""
        self._listener.nodes = nodes

    async def __aenter__(self) -> Self:
        try:
            await self._start()
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._stack.aclose()

    async def _start(self) -> None:
        # The store first: its lock keeps a second server from everything else here.
        store = self._open_store()
        self._stack.callback(store.close)
        group = await self._stack.enter_async_context(asyncio.TaskGroup())
        now = datetime.now(UTC)
        keys = None if self._data is None else self._data / PKI
        self._identity = Identity(keys, now=now, names=_names(self._host))
        bound = bind(self._host, self._port)
        self._stack.callback(bound.close)
        address = bound.getsockname()
        tokens = Tokens(self._identity.signing_key, find=uid_in(store))
        api = self._make_api(store, tokens, address[1])
        self._driver = Driver(
            api, faults=self._faults, statistics=store.statistics, group=group
        )
        self._driver.start()
        self._stack.callback(self._driver.close)
        if self._faults is not None:
            self._faults.attach(api.forget)
        await self._listen(bound, tokens)
        self._write_kubeconfig()
        self._renew_later()
        self._stack.callback(self._renew_no_more)

    def _open_store(self) -> Store:
        if self._data is None:
            return Store(None)
        files.make_private_folder(self._data, advice=ADVICE)
        return Store(self._data / STORE)

    def _make_api(self, store: Store, tokens: Tokens, port: int) -> Api:
        host = _reachable(self._host)
        self._url = f"https://{host}:{port}"
        return Api(
            store,
            now=lambda: datetime.now(UTC),
            random=Random(),
            tokens=tokens,
            settings=Settings(address=f"{host}:{port}", ca=self._identity.ca.decode()),
            clock=asyncio.get_running_loop().time,
            static=self._static,
            issue=self._identity.issue,
        )

    async def _listen(self, bound: socket.socket, tokens: Tokens) -> None:
        self._context: ssl.SSLContext = self._identity.context()
        listener = Listener(
            self._driver,
            authenticator=Authenticator(
                tokens=tokens, now=lambda: datetime.now(UTC), static=self._static
            ),
            context=self._context,
        )
        self._listener = listener
        await listener.open(bound)
        self._stack.push_async_callback(listener.close)
        # Watches end before the listener waits for what is under way.
        self._stack.callback(self._driver.close)

    def _write_kubeconfig(self) -> None:
        self._written = self._kubeconfig_path()
        content = access.kubeconfig(
            self._url,
            ca=self._identity.ca,
            administrator=self._identity.administrator,
        )
        access.write(self._written, content)

    def _kubeconfig_path(self) -> Path:
        if self._kubeconfig is not None:
            return self._kubeconfig
        if self._data is not None:
            return self._data / KUBECONFIG
        folder = tempfile.mkdtemp(prefix="trimtab-")
        self._stack.callback(shutil.rmtree, folder, ignore_errors=True)
        self._kubeconfig = Path(folder) / KUBECONFIG
        return self._kubeconfig

    def _renew_later(self) -> None:
        loop = asyncio.get_running_loop()
        self._renewal = loop.call_later(RENEWAL_SECONDS, self._renew)

    def _renew_no_more(self) -> None:
        if self._renewal is not None:
            self._renewal.cancel()

    def _renew(self) -> None:
        """Certificates end, also those of a server that nobody stops for a year."""
        try:
            if self._identity.renew(datetime.now(UTC)):
                self._identity.arm(self._context)
                self._write_kubeconfig()
        except (TrimtabError, OSError) as error:
            logger.error("The certificates were not renewed: %s", error)
        self._renew_later()


def bind(host: str, port: int) -> socket.socket:
    """A socket that holds the address; port 0 takes any that is free.

    Errors: :class:`AddressProblem`.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        bound = socket.socket(family, kind, protocol)
        try:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bound.bind(address)
            # Two that are bound and do not listen would not notice each other.
            bound.listen(512)
        except BaseException:
            bound.close()
            raise
    except (OSError, OverflowError) as error:
        raise _address_problem(host, port, error) from error
    return bound


def _address_problem(host: str, port: int, error: Exception) -> AddressProblem:
    code = getattr(error, "errno", None)
    if code == errno.EADDRINUSE:
        return AddressProblem(
            f"Port {port} of {host} is taken: stop the program that listens there, or "
            "choose another port."
        )
    why = getattr(error, "strerror", None) or str(error)
    return AddressProblem(
        f"Nobody can listen on port {port} of {host} ({why}): choose another address "
        "or port."
    )


def _reachable(host: str) -> str:
    """How a client on this machine writes the host."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    if address.is_unspecified:
        return "[::1]" if address.version == 6 else LOOPBACK
    return f"[{address}]" if address.version == 6 else str(address)


def _names(host: str) -> tuple[str, ...]:
    """What the server's certificate must name besides the loopback."""
    try:
        if ipaddress.ip_address(host).is_unspecified:
            return (socket.gethostname(),)
    except ValueError:
        pass
    return (host,)
