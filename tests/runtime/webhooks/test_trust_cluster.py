"""Laws of trust: no certificate is served before all were told, and for long enough.

The times are those at which this very process serves and has told, by its own clock;
how late a server is to notice is what the time that is waited is for.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest

from tests.runtime.webhooks.sites import (
    OldSite,
    Site,
    counts,
    down,
    local,
    operator,
    serving,
    up,
)
from trimtab import Client
from trimtab.api.kinds.core import Secret
from trimtab.client.errors import Conflict, NotFound
from trimtab.runtime.webhooks import rotation, running, secret
from trimtab.runtime.webhooks.injection import Injection, Target
from trimtab.runtime.webhooks.running import Webhooks
from trimtab.runtime.webhooks.serving import Server
from trimtab.testing import Cluster, eventually

SETTLE = 0.25
AGES = 20.0
"""Longer than any machine takes for what waits for nothing."""


class Record:
    """When each certificate was first served, and how long its authority was known."""

    def __init__(self) -> None:
        self.trusted: dict[bytes, float] = {}
        """Since when each authority is trusted everywhere, without a break."""
        self.served: dict[bytes, tuple[float, dict[bytes, float]]] = {}
        """By certificate: when it was served, and what was trusted at that moment."""

    def waited(self, kept: Secret) -> float:
        """Seconds for which all knew who signed what the Secret says to serve."""
        ours = kept.data["tls.crt"]
        ((moment, trusted),) = [
            found for pem, found in self.served.items() if ours in pem
        ]
        return moment - trusted.get(kept.data["tls-ca.crt"], moment)


@pytest.fixture
def record(monkeypatch: pytest.MonkeyPatch) -> Record:
    made = Record()
    load, inject = Server.load, Injection.inject

    def loads(server: Server, pem: bytes) -> None:
        load(server, pem)
        now = asyncio.get_running_loop().time()
        made.served.setdefault(pem, (now, dict(made.trusted)))

    async def injects(injection: Injection, bundle: Any) -> list[str]:
        missing = await inject(injection, bundle)
        now = asyncio.get_running_loop().time()
        good = () if missing else (bundle or ())
        made.trusted = {each: made.trusted.get(each, now) for each in good}
        return missing

    monkeypatch.setattr(Server, "load", loads)
    monkeypatch.setattr(Injection, "inject", injects)
    return made


async def renewed(client: Client) -> Secret:
    """The Secret, once another certificate than before is the one to serve."""
    before = await client.get(Secret, "pages-webhooks")
    await client.delete(Secret, "pages-webhooks")
    return await replaced(client, before)


async def replaced(client: Client, before: Secret) -> Secret:
    async def other() -> Secret | None:
        try:
            found = await client.get(Secret, "pages-webhooks")
        except NotFound:
            return None
        return found if found.data["tls.crt"] != before.data["tls.crt"] else None

    found = await eventually(other)
    assert found is not None
    return found


class Mutant(NamedTuple):
    """One text of what waits, and one that does not wait as long."""

    module: ModuleType
    owner: object
    name: str
    old: str
    new: str
    settle: float = AGES

    def apply(self, monkeypatch: pytest.MonkeyPatch) -> None:
        text = Path(str(self.module.__file__)).read_text()
        assert text.count(self.old) == 1
        made = ModuleType(self.module.__name__)
        exec(text.replace(self.old, self.new), made.__dict__)
        owner = made
        if isinstance(self.owner, type):
            owner = getattr(made, self.owner.__name__)
        changed = getattr(owner, self.name)
        # All else that it knows is what everybody knows.
        made.__dict__.update(vars(self.module))
        monkeypatch.setattr(self.owner, self.name, changed)


MUTANTS = {
    "nothing is waited for": Mutant(
        running,
        Webhooks,
        "_trusted",
        "settled = since is not None and now >= since + self.options.settle",
        "settled = since is not None",
    ),
    "what was known before counts": Mutant(
        running,
        Webhooks,
        "_round",
        "self._bundle, self._settling = material.bundle, None",
        "self._bundle = material.bundle",
    ),
    "nobody need know": Mutant(
        rotation,
        rotation,
        "wish",
        "settled = kept.next.authority in trusted",
        "settled = True",
    ),
    "what is announced is served": Mutant(
        secret,
        secret,
        "material",
        "serving=kept.current.pem",
        "serving=(kept.next or kept.current).pem",
        SETTLE,  # it is served before anybody knows, and renewed after this time
    ),
}


async def waited(
    cluster: Cluster, namespace: str, record: Record, *, settle: float = SETTLE
) -> float:
    """Have a certificate renewed; how long it was known before it was served."""
    app = operator()
    app.converts(OldSite, Site)(up).back(down)
    options = local(settle=settle)
    async with serving(app, cluster, namespace, options) as (client, manager):
        assert manager.webhooks is not None
        assert manager.webhooks._settling is not None
        manager.webhooks._settling -= settle  # the first one is known for long
        found = await renewed(client)
        server = manager.webhooks.server
        await eventually(lambda: found.data["tls.crt"] in server._loaded)
        await counts(client)
    return record.waited(found)


async def test_a_certificate_is_served_when_all_have_known_of_it_for_a_while(
    cluster: Cluster, namespace: str, record: Record
) -> None:
    assert await waited(cluster, namespace, record) >= SETTLE


@pytest.mark.parametrize("mutant", MUTANTS.values(), ids=MUTANTS)
async def test_the_law_sees_who_does_not_wait(
    cluster: Cluster,
    namespace: str,
    record: Record,
    monkeypatch: pytest.MonkeyPatch,
    mutant: Mutant,
) -> None:
    mutant.apply(monkeypatch)
    found = await waited(cluster, namespace, record, settle=mutant.settle)
    assert found < mutant.settle


async def test_where_one_configuration_cannot_be_told_nothing_new_is_served(
    cluster: Cluster, namespace: str, record: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = operator()
    app.converts(OldSite, Site)(up).back(down)
    trust, refused, open_again = Injection._trust, asyncio.Event(), asyncio.Event()
    tries = 0

    async def trusts(injection: Injection, target: Target, *others: Any) -> None:
        nonlocal tries
        *_, bundle = others
        if not target.made and len(bundle) > 1 and not open_again.is_set():
            tries += 1
            if tries > 1:
                refused.set()
            raise Conflict("somebody was faster", status=409)
        await trust(injection, target, *others)

    monkeypatch.setattr(Injection, "_trust", trusts)
    options = local(settle=0.05)
    async with serving(app, cluster, namespace, options) as (client, _):
        before = await client.get(Secret, "pages-webhooks")
        await client.delete(Secret, "pages-webhooks")
        await asyncio.wait_for(refused.wait(), 20)
        found = await client.get(Secret, "pages-webhooks")
        assert found.data["tls.crt"] == before.data["tls.crt"]
        assert len(record.served) == 1
        open_again.set()
        await replaced(client, before)
