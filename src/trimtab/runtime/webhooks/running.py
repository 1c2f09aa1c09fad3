"""Running webhooks: certificates, the server and the configurations, kept together.

One task goes round: it does what the certificates are due for, serves them, and has
them trusted, in this order, whenever something of it changed. A pass that fails is
tried again; what was served before goes on.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import datetime, timedelta
from random import Random
from typing import TYPE_CHECKING, Protocol

from trimtab.client import Client
from trimtab.client.errors import TrimtabError
from trimtab.runtime.metrics import Sample
from trimtab.runtime.threads import Threads
from trimtab.runtime.webhooks.certificates import require_cryptography
from trimtab.runtime.webhooks.configurations import Place
from trimtab.runtime.webhooks.declarations import together
from trimtab.runtime.webhooks.files import FileSource, NoCertificates
from trimtab.runtime.webhooks.injection import Injection, targets_of
from trimtab.runtime.webhooks.options import WebhookOptions
from trimtab.runtime.webhooks.routing import Router
from trimtab.runtime.webhooks.secret import Material, NotOurs, SecretSource, Terms
from trimtab.runtime.webhooks.serving import CannotServe, Server

if TYPE_CHECKING:
    from trimtab.runtime.operator import Operator

PAUSES = (0.2, 5.0)
"""Seconds before a pass that failed is tried again: at first, and at most."""
LOOK = 60.0
"""Seconds after which all is looked at again anyway."""

logger = logging.getLogger("trimtab.runtime.webhooks")


class Unreached(TrimtabError):
    """Webhooks are declared, and nothing says how an API server reaches them."""


class Source(Protocol):
    """Where certificates come from."""

    async def run(self) -> None: ...

    def due(self) -> float: ...

    async def advance(self, *, trusted: Collection[bytes]) -> Material: ...


def check_reached(operator: Operator, options: WebhookOptions | None) -> WebhookOptions:
    """The options of webhooks that are declared.

    Errors: :class:`Unreached` without any.
    """
    if options is None:
        raise Unreached(
            f"The operator {operator.name} declares webhooks, and nothing says how "
            "the API server reaches them: name the Service that leads here with "
            "--webhook-service, or an address with --webhook-url https://HOST:PORT."
        )
    return options


class Webhooks:
    """The webhooks of the operators of one process, at one port.

    Each operator has configurations of its own; they share the certificates, which are
    in the Secret of the first one.

    Flow: ``run()`` in a task group; ``ready`` is set when API servers were told of the
    webhooks and are answered. ``stop()`` says that it will end, ``lingered()`` waits
    until it may; cancelling ``run`` ends it.

    Guarantees: while certificates are renewed, no request is answered under one that
    API servers were not told of. When ``run`` has ended, nothing of it runs any more.

    Errors: ``ValueError`` for declarations that cannot be served; ``Unreached``,
    ``CryptographyMissing``; from ``run``: ``CannotServe``, ``NoCertificates``,
    ``NotOurs``. Anything else is tried again.
    """

    def __init__(
        self,
        operators: Sequence[Operator],
        client: Client,
        options: WebhookOptions | None,
        *,
        random: Random,
        now: Callable[[], datetime],
        threads: Threads,
    ) -> None:
        self.options = check_reached(operators[0], options)
        self._operators = tuple(operators)
        declared = together(each.webhooks for each in operators)
        declared.check()
        self._client = client
        self._random = random
        self._now = now
        self._threads = threads
        self.router = Router(declared, threads=threads)
        self.server = Server(
            self.options.host,
            self.options.port,
            answer=self.router.answer,
            serves=self.router.serves,
        )
        self.ready = asyncio.Event()
        self._wake = asyncio.Event()
        self._source = self._certificates()
        self._injections: tuple[Injection, ...] = ()
        self._problem = "the webhooks are not served so far"
        self._bundle: tuple[bytes, ...] | None = None
        self._settling: float | None = None
        """Since when all that must be trusted is, by the loop's clock."""
        self._stops: float | None = None
        self._pause = PAUSES[0]

    def _certificates(self) -> Source:
        options = self.options
        if options.certificates:
            injects = not options.inject_from
            return FileSource(options.certificates, injects=injects)
        require_cryptography()
        operator = self._operators[0].name
        terms = Terms(
            operator=operator,
            names=options.names(self._client.config.namespace),
            lifetime=timedelta(seconds=options.lifetime),
        )
        return SecretSource(
            self._client,
            options.secret or f"{operator}-webhooks",
            terms,
            now=self._now,
            random=self._random,
            wake=self._wake.set,
        )

    def problem(self) -> str | None:
        """Why API servers should not be led here; None if they should.

        Once they are answered, trouble with what comes next is no reason.
        """
        if self._stops is not None:
            return "the webhooks are about to end"
        return None if self.ready.is_set() else self._problem

    def samples(self) -> Iterator[Sample]:
        for (name, outcome), count in self.router.outcomes.items():
            yield Sample("webhook_reviews", (name, outcome), count)
        yield Sample("webhook_trouble", (), bool(self._problem))

    async def run(self) -> None:
        """Serve until cancelled."""
        await self.server.open()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._source.run(), name="certificates")
            try:
                while True:
                    self._wake.clear()
                    seconds = await self._tried(group)
                    try:
                        async with asyncio.timeout(seconds):
                            await self._wake.wait()
                    except TimeoutError:
                        continue
            finally:
                await self.server.close()
                self._threads.close()

    def stop(self) -> None:
        """Say that it will end: connections are given up with their next answer."""
        if self._stops is None:
            self._stops = asyncio.get_running_loop().time() + self.options.linger
            self.server.ending = True

    async def lingered(self) -> None:
        """Wait until others had their time to notice."""
        if self._stops is not None and self.ready.is_set():
            left = self._stops - asyncio.get_running_loop().time()
            await asyncio.sleep(max(0.0, left))

    async def _tried(self, group: asyncio.TaskGroup) -> float:
        """Go round once; seconds until the next time."""
        try:
            seconds = await self._round(group)
        except (CannotServe, NoCertificates, NotOurs):
            if not self.ready.is_set():
                raise
            self._problem = "the certificates cannot be replaced"
            logger.exception("The certificates of the webhooks cannot be replaced.")
            seconds = PAUSES[1]
        except TrimtabError as error:
            problem = f"the webhooks cannot be declared: {error}"
            if problem != self._problem:
                logger.error("Of the webhooks: %s", error)
            self._problem = problem
            seconds = self._pause * self._random.uniform(0.8, 1.2)
            self._pause = min(self._pause * 2, PAUSES[1])
        else:
            self._pause = PAUSES[0]
        return seconds

    async def _round(self, group: asyncio.TaskGroup) -> float:
        clock = asyncio.get_running_loop().time
        material = await self._source.advance(trusted=self._trusted(clock()))
        self.server.load(material.serving)
        injections = self._injections or await self._begun(group)
        if material.bundle != self._bundle:
            self._bundle, self._settling = material.bundle, None
        missing = [
            each
            for injection in injections
            for each in await injection.inject(material.bundle)
        ]
        gone = [each for made in injections for each in made.withdrawn.values()]
        self._problem = "; ".join([*missing, *gone])
        if missing:
            self._settling = None
            return PAUSES[0] * 5
        if self._settling is None:
            self._settling = clock()
        if not self.ready.is_set():
            logger.info("Webhooks are served at port %d.", self.server.port)
            self.ready.set()
        return self._next(material, clock())

    async def _begun(self, group: asyncio.TaskGroup) -> tuple[Injection, ...]:
        """Listen, and follow the configurations, whose address that may be."""
        await self.server.start(group)
        self._injections = tuple(map(self._injection, self._operators))
        for each in self._injections:
            group.create_task(each.run(), name="configurations")
        return self._injections

    def _injection(self, operator: Operator) -> Injection:
        namespace = self._client.config.namespace
        place = Place(
            operator=operator.name,
            namespace=namespace,
            client=self.options.client_config(namespace, port=self.server.port),
            inject_from=self.options.inject_from,
        )
        return Injection(
            self._client,
            targets_of(operator.webhooks, place),
            manager=f"{operator.name}.webhooks",
            now=self._now,
            random=self._random,
            wake=self._wake.set,
        )

    def _trusted(self, now: float) -> Collection[bytes]:
        """The authorities that have been trusted everywhere for a while."""
        since = self._settling
        settled = since is not None and now >= since + self.options.settle
        return (self._bundle or ()) if settled else ()

    def _next(self, material: Material, now: float) -> float:
        seconds = min(self._source.due(), LOOK)
        if material.waiting and self._settling is not None:
            seconds = min(seconds, self._settling + self.options.settle - now)
        return max(seconds, 0.01)
