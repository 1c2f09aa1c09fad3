"""Injection: telling API servers of the webhooks, and whom to trust there.

Each replica declares its webhooks once, when it starts, by server-side apply; so the
replica that started last has the last word, and versions that run side by side do not
fight. From then on it only sees to it that its authorities are trusted: they are added
to whatever a configuration trusts already, and what has expired goes. So nobody who is
late can take away the trust that somebody else needs. And a configuration that is
deleted stays so until the next start: a release goes, or somebody had to.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from functools import partial
from random import Random
from typing import Any, NamedTuple

from trimtab.api.codec import convert
from trimtab.api.resource import Resource
from trimtab.cache import Scope
from trimtab.cache.informer import Informer
from trimtab.client import Client
from trimtab.client.errors import Conflict, NotFound
from trimtab.runtime.webhooks.certificates import lasting, split
from trimtab.runtime.webhooks.configurations import (
    KINDS,
    CustomResourceDefinition,
    Place,
    configuration,
    configuration_name,
    conversion,
    encoded,
)
from trimtab.runtime.webhooks.declarations import Declarations, definition_name

Plain = dict[str, Any]
Bundle = tuple[bytes, ...] | None

logger = logging.getLogger("trimtab.runtime.webhooks")


class Target(NamedTuple):
    """An object that tells API servers of webhooks."""

    kind: type[Resource]
    name: str
    make: Callable[..., Plain]
    """What of it is ours, with the authorities in ``bundle``."""
    made: bool
    """Whether it is ours as a whole; a CRD is somebody else's."""

    def __str__(self) -> str:
        return f"{self.kind.kind} {self.name}"


def targets_of(declared: Declarations, place: Place) -> list[Target]:
    """The objects that tell of all that is declared."""
    found = [
        Target(
            kind,
            configuration_name(place.operator, place.namespace),
            partial(configuration, declared, verb, place),
            True,
        )
        for verb, kind in KINDS.items()
        if declared.of(verb)
    ]
    found += [
        Target(
            CustomResourceDefinition,
            definition_name(kind),
            partial(conversion, kind, place),
            False,
        )
        for kind, *_ in declared.converted()
    ]
    return found


class Injection:
    """Keeps the configurations of one operator as they must be.

    Flow: ``run()`` in a task group; ``inject()`` at first, whenever ``wake`` was called
    or the authorities have changed.
    """

    def __init__(
        self,
        client: Client,
        targets: Sequence[Target],
        *,
        manager: str,
        now: Callable[[], datetime],
        random: Random,
        wake: Callable[[], None],
    ) -> None:
        self._client = client
        self._manager = manager
        self._now = now
        self._declared: set[Target] = set()
        self.withdrawn: dict[Target, str] = {}
        """Configurations that somebody deleted, with a sentence on each."""
        self._targets: list[tuple[Target, Informer[Any]]] = []
        for each in targets:
            scope = Scope(fields=f"metadata.name={each.name}")
            informer = Informer(client, each.kind, scope, random=random)
            informer.subscribe(lambda _: wake())
            self._targets.append((each, informer))

    async def run(self) -> None:
        """Follow the configurations."""
        async with asyncio.TaskGroup() as group:
            for _, informer in self._targets:
                group.create_task(informer.run(), name=str(informer))

    async def inject(self, bundle: Bundle) -> list[str]:
        """Declare, and have the authorities trusted.

        Returns what is still missing, as sentences: CRDs that nobody has installed, and
        objects that somebody changed at the same moment.

        Errors: what the client raises.
        """
        missing = []
        for target, informer in self._targets:
            await informer.wait_synced()
            try:
                problem = await self._injected(target, informer, bundle)
            except (Conflict, NotFound):
                problem = f"{target} was just changed by somebody else"
            if problem:
                missing.append(problem)
        return missing

    async def _injected(
        self, target: Target, informer: Informer[Any], bundle: Bundle
    ) -> str:
        obj = informer.store.get(("", target.name))
        if obj is not None:
            self.withdrawn.pop(target, None)
        elif not target.made:
            self._declared.discard(target)
            return f"The {target} is not installed"
        elif target in self._declared:
            self._withdraw(target)
            return ""
        if obj is None or target not in self._declared or not _trusts(obj):
            await self._declare(target, informer, obj, bundle)
        elif bundle is not None:
            await self._trust(target, informer, obj, bundle)
        return ""

    def _withdraw(self, target: Target) -> None:
        if target not in self.withdrawn:
            said = f"The {target} was deleted, and is declared at the next start"
            self.withdrawn[target] = said
            logger.warning("%s.", said)

    async def _declare(
        self, target: Target, informer: Informer[Any], obj: Any, bundle: Bundle
    ) -> None:
        body = target.make(bundle=self._with_known(obj, bundle))
        if obj is not None:
            body["metadata"]["resourceVersion"] = obj.metadata.resourceVersion
        logger.info("Declaring webhooks in the %s.", target)
        made = await self._client.apply(body, manager=self._manager, force=True)
        informer.store.written(convert(target.kind, made))
        self._declared.add(target)

    async def _trust(
        self,
        target: Target,
        informer: Informer[Any],
        obj: Any,
        bundle: tuple[bytes, ...],
    ) -> None:
        """Add what is not trusted so far, wherever the object names webhooks."""
        operations: list[Plain] = []
        for path, trusted in _trusts(obj):
            wanted = self._together(trusted, bundle)
            if wanted != trusted:
                value = encoded(wanted)
                operations.append({"op": "add", "path": path, "value": value})
        if operations:
            # An object of another revision cannot become one of this: a conflict.
            operations.append(
                {
                    "op": "replace",
                    "path": "/metadata/resourceVersion",
                    "value": obj.metadata.resourceVersion,
                }
            )
            made = await self._client.patch(
                target.kind,
                target.name,
                operations,
                how="json",
                manager=self._manager,
            )
            informer.store.written(made)

    def _with_known(self, obj: Any, bundle: Bundle) -> Bundle:
        if bundle is None or obj is None:
            return bundle
        known = [each for _, trusted in _trusts(obj) for each in trusted]
        return self._together(known, bundle)

    def _together(
        self, trusted: Iterable[bytes], bundle: Iterable[bytes]
    ) -> tuple[bytes, ...]:
        """What is trusted already and still good, and what must be."""
        own = tuple(bundle)
        others = [each for each in dict.fromkeys(trusted) if each not in own]
        kept = set(lasting(others, now=self._now())) | set(own)
        return tuple(each for each in dict.fromkeys((*trusted, *own)) if each in kept)


def _trusts(obj: Any) -> list[tuple[str, tuple[bytes, ...]]]:
    """Where an object names webhooks, and whom it trusts there."""
    if isinstance(obj, CustomResourceDefinition):
        webhook = obj.spec.conversion.webhook
        if obj.spec.conversion.strategy != "Webhook" or webhook is None:
            return []
        path = "/spec/conversion/webhook/clientConfig/caBundle"
        return [(path, split(webhook.clientConfig.caBundle))]
    return [
        (f"/webhooks/{i}/clientConfig/caBundle", split(each.clientConfig.caBundle))
        for i, each in enumerate(obj.webhooks)
    ]
