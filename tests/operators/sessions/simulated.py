"""Sessions in the simulation: the operator in three replicas, a backend, and laws.

Each replica has a memory of its own that ends with it, as a process has. Runners are
programs in model pods; they answer as long as they run.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from tests.operators.sessions.house import PROFILE
from trimtab import Client, Metadata, Operator
from trimtab.api.times import parse_rfc3339
from trimtab.cache import Scope
from trimtab.client import AlreadyExists, TrimtabError
from trimtab.client.calling import Caller, NoReply, Place, Reply
from trimtab.client.wire import Head
from trimtab.kinds import Namespace, Secret
from trimtab.operators.sessions.access import EXPIRES
from trimtab.operators.sessions.environment import AGUI_TOKEN
from trimtab.operators.sessions.kinds import (
    DESIRED,
    GROUP,
    KINDS,
    MANAGED,
    TERMINAL,
    AgenticSession,
)
from trimtab.operators.sessions.names import account_name, pod_name, token_secret_name
from trimtab.operators.sessions.operator import make
from trimtab.operators.sessions.settings import RUNNER_SECRETS, Limits, Settings
from trimtab.sim import Here, Program, Scenario
from trimtab.sim.hosts import HOST
from trimtab.sim.server import ObjectChange, Plain, Server

SESSIONS, PODS = f"{GROUP}/agenticsessions", "core/pods"
SECRETS, ACCOUNTS = "core/secrets", "core/serviceaccounts"
HOSTS = 8
"""Hosts whose memory is kept: more than live at a time."""
ANSWERING: set[str] = set()
"""The addresses of runners that run."""
WISHES: dict[str, str] = {}
"""What the backend last wished for each session."""


class Wire(Caller):
    """Calls to runners, without a network."""

    async def call(self, place: Place, method: str, path: str, **others: Any) -> Reply:
        await asyncio.sleep(random.uniform(0.001, 0.1))
        if place.host not in ANSWERING:
            raise NoReply(f"{place} gave no answer", sent=False)
        return Reply(200, b"{}", Head(status=200, headers=(), persistent=True))


async def runner(client: Client, here: Here) -> None:
    """A runner, until it is told to stop."""
    here.serve(_answer)
    ANSWERING.add(here.address)
    try:
        await asyncio.Event().wait()
    finally:
        ANSWERING.discard(here.address)


async def _answer(message: bytes) -> bytes:
    return b"ok"


async def _persist(call: Any) -> None:
    while True:
        try:
            return void(await call())
        except AlreadyExists:
            return None
        except TrimtabError:
            await asyncio.sleep(1)


def void(_: object) -> None:
    return None


class Town(msgspec.Struct, frozen=True):
    """Who is there, and what is wished for."""

    sessions: int = 3
    commands: int = 12
    pause: float = 5.0
    script: tuple[str, ...] = ()
    """Wishes for the first session, one after the other, instead of any by chance."""


async def backend(client: Client, here: Here, *, town: Town) -> None:
    """Makes the project, the sessions, and up its mind, again and again."""
    WISHES.clear()
    label = {"metadata": {"labels": {MANAGED: "true"}}}
    await _persist(partial(client.patch, Namespace, "default", label))
    key = Secret(
        metadata=Metadata(name=RUNNER_SECRETS, namespace="default"),
        data={"KEY": b"none"},
    )
    await _persist(partial(client.create, key))
    names = [f"agenticsession-{number}" for number in range(town.sessions)]
    for name in names:
        metadata = Metadata(name=name, namespace="default")
        await _persist(partial(client.create, AgenticSession(metadata=metadata)))
    for number in range(len(town.script) or town.commands):
        if town.script:
            await asyncio.sleep(town.pause)
            name, wish = names[0], town.script[number]
        else:
            await asyncio.sleep(random.expovariate(1 / town.pause))
            name, wish = random.choice(names), random.choice(("Running", "Stopped"))
        body = {"metadata": {"annotations": {DESIRED: wish}}}
        with suppress(TrimtabError):
            await client.patch(AgenticSession, name, body, namespace="default")
            WISHES[name] = wish


def sample(random: random.Random) -> Plain:
    """A session that people make; few have times that are up soon."""
    return {
        "spec": {
            "timeout": random.choice((0, 0, 300, 30)),
            "inactivityTimeout": random.choice((0, 0, 86400, 40)),
            "displayName": random.choice(("tea", "milk")),
            "repos": [{"url": f"https://git.example/{random.randrange(3)}"}]
            * random.randrange(2),
        }
    }


def operator(settings: Settings) -> Operator:
    """The operator, whose handlers are those of the host that they run on."""
    own: dict[Any, dict[str, Any]] = {}

    def made() -> Operator:
        return make(
            settings,
            random=random.Random(1),
            scope=Scope(namespaces=("default",)),
            caller=Wire(),
        )

    def on_host(name: str) -> Any:
        async def handle(obj: Any, ctx: Any) -> Any:
            host = HOST.get()
            if host not in own:
                if len(own) >= HOSTS:
                    del own[next(iter(own))]
                own[host] = {each.name: each for each in made().controllers()}
            return await own[host][name].handler(obj, ctx)

        return handle

    app = made()
    definitions = tuple(
        msgspec.structs.replace(each, handler=on_host(each.name))
        for each in app.controllers()
        if each.kind is AgenticSession  # projects have laws of their own
    )
    app.controllers = lambda: definitions  # type: ignore[method-assign]
    return app


# Laws


def phase_of(session: Plain) -> str:
    """The phase of a session; one that nobody has seen yet is pending."""
    return str((session.get("status") or {}).get("phase", "Pending"))


def _pods_of(server: Server, session: Plain) -> list[Plain]:
    uid = session["metadata"]["uid"]
    return [
        pod
        for pod in server.of(PODS)
        if any(each["uid"] == uid for each in pod["metadata"]["ownerReferences"])
    ]


def never_two_pods(server: Server, change: ObjectChange) -> Iterator[str]:
    """At no time are there two pods of one session."""
    if change.resource != PODS or change.after is None:
        return
    for session in server.of(SESSIONS):
        if len(found := _pods_of(server, session)) > 1:
            yield f"{session['metadata']['name']} has {len(found)} pods."


def over_is_over(server: Server, change: ObjectChange) -> Iterator[str]:
    """A session that is over has no pod and no token, and gets none."""
    if change.resource not in (SESSIONS, PODS) or change.after is None:
        return
    for session in server.of(SESSIONS):
        name = session["metadata"]["name"]
        if phase_of(session) not in TERMINAL:
            continue
        if _pods_of(server, session):
            yield f"{name} is {phase_of(session)} and has a pod."
        for left in (
            f"{SECRETS}/default/{token_secret_name(name)}",
            f"{ACCOUNTS}/default/{account_name(name)}",
        ):
            if left in server.objects:
                yield f"{name} is {phase_of(session)} and has {left}."


def running_is_ready(server: Server, change: ObjectChange) -> Iterator[str]:
    """A session begins to run only with a pod that is there and has answered."""
    before, after = change.before or {}, change.after
    if change.resource != SESSIONS or after is None:
        return
    if phase_of(after) != "Running" or phase_of(before) == "Running":
        return
    if not after["status"].get("answeredBy"):
        yield f"{change.key} runs, and nobody heard its runner."


def no_token_expires(server: Server, change: ObjectChange) -> Iterator[str]:
    """The token of a session with a pod is good."""
    now: datetime = server.now()
    for pod in server.of(PODS):
        name = pod["metadata"]["name"].removesuffix("-runner")
        secret = server.objects.get(f"{SECRETS}/default/{token_secret_name(name)}")
        session = server.objects.get(f"{SESSIONS}/default/{name}", {})
        if secret is None or phase_of(session) not in ("Creating", "Running"):
            continue
        if parse_rfc3339(secret["metadata"]["annotations"][EXPIRES]) <= now:
            yield f"The token of {name} has expired under its runner."


def no_word_changes_under_a_runner(
    server: Server, change: ObjectChange
) -> Iterator[str]:
    """What callers must show is read by a runner once, so it stays while that runs."""
    prefix = f"{SECRETS}/default/{token_secret_name('')}"
    before, after = change.before, change.after
    if not change.key.startswith(prefix) or not before or not after:
        return
    pod = f"{PODS}/default/{pod_name(change.key.removeprefix(prefix))}"
    changed = before["data"].get(AGUI_TOKEN) != after["data"].get(AGUI_TOKEN)
    if changed and pod in server.objects:
        yield f"{change.key} has another word, and {pod} is there."


def commands_are_obeyed(server: Server) -> Iterator[str]:
    """At rest a session is what was last wished for, and none runs without a pod."""
    for session in server.of(SESSIONS):
        name, phase = session["metadata"]["name"], phase_of(session)
        wish = WISHES.get(name)
        if wish == "Stopped" and phase not in TERMINAL:
            yield f"{name} was to stop, and is {phase}."
        timed = session["status"].get("stoppedReason") in ("timeout", "inactivity")
        if wish == "Running" and phase == "Stopped" and not timed:
            yield f"{name} was to run, and is {phase}."
        if phase not in ("Running", *TERMINAL):
            yield f"{name} is {phase} at rest."
        pod = f"{PODS}/default/{pod_name(name)}"
        if phase == "Running" and pod not in server.objects:
            yield f"{name} runs without a pod."


FULL = Town()
ONE = Town(sessions=1, pause=6.0, script=("Stopped", "Running"))
PATIENT = Town(sessions=2, commands=4, pause=1500.0)
HASTY = Town(sessions=1, pause=0.7, script=("Stopped", "Running") * 8)
FOLDER = TemporaryDirectory(prefix="sessions-")
"""Where operators of scenarios without a folder read what runners there are."""


def scenario(folder: Path, town: Town = FULL, **changes: Any) -> Scenario:
    """Sessions of people who change their minds."""
    registry = folder / "registry.json"
    registry.write_text(json.dumps([PROFILE]))
    settings = Settings(
        namespace="default",
        registry_path=str(registry),
        models_path=str(folder / "none"),
        limits=Limits(start_deadline=600.0, restart_budget=5, backoff=1.0),
    )
    people = Program("backend", partial(backend, town=town), ends=True, struck=False)
    given: dict[str, Any] = {
        "operator": operator(settings),
        "programs": (people,),
        "images": {"runner": runner},
        "kinds": (AgenticSession,),
        "samples": {AgenticSession: sample},
        "installs": KINDS,
        "always": (
            never_two_pods,
            over_is_over,
            running_is_ready,
            no_token_expires,
            no_word_changes_under_a_runner,
        ),
        "at_rest": (commands_are_obeyed,),
        "same": False,
        "keeps": (Secret,),
        "seconds": 90.0,
        "replicas": 2,
    }
    return Scenario(**{**given, **changes})


def town_scenario(**changes: Any) -> Scenario:
    """The same, for whoever has no folder."""
    return scenario(Path(FOLDER.name), **changes)


def hasty_scenario(**changes: Any) -> Scenario:
    """One in which people change their minds before they were obeyed."""
    return town_scenario(**{"town": HASTY, "seconds": 25.0, **changes})


def patient_scenario(**changes: Any) -> Scenario:
    """One in which runners work for hours."""
    return town_scenario(town=PATIENT, seconds=9000.0, patience=9000.0, **changes)
