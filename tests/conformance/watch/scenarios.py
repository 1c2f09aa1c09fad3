"""The scenarios: what servers and networks do to watches, each as a short play."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from random import Random

from tests.conformance.watch.server import Fault
from tests.conformance.watch.stage import IDLE, Failed, Scenario, Stage
from tests.conformance.watch.world import Event

MiB = 1 << 20
SEVERAL_PAGES = 1200


async def ordinary(stage: Stage) -> None:
    """Nothing goes wrong."""
    await stage.start()
    await stage.begun()
    stage.world.create("new")
    stage.world.touch("w000001", "w000002")
    stage.world.delete("w000003")
    stage.server.announce()
    await stage.settled()
    stage.server.end_watches()
    await stage.ends()


async def dropped_list(stage: Stage) -> None:
    """The connection breaks within the first answer; an object goes meanwhile."""

    def meanwhile() -> None:
        stage.world.delete("w000000")
        stage.world.touch("w000001")

    stage.server.plant("list", Fault(cut=0.5, then=meanwhile), Fault(cut=0.9))
    await stage.start()
    await stage.ends()


async def dropped_page(stage: Stage) -> None:
    """The connection breaks within the second page, again and again."""

    def meanwhile() -> None:
        stage.world.delete(min(stage.world.objects))  # it was in the first page

    faults = [Fault(cut=0.5, then=meanwhile) for _ in range(5)]
    stage.server.plant("page", *faults)
    await stage.start()
    await stage.asked("page")
    await stage.ends()


async def dropped_stream(stage: Stage) -> None:
    """A watch that begins with what is there breaks before it has sent all of it."""

    def meanwhile() -> None:
        stage.world.delete("w000000")
        stage.world.touch("w000001")

    stage.server.plant("stream", Fault(cut=0.5, then=meanwhile))
    await stage.start()
    await stage.asked("stream")
    await stage.ends()


async def expired_page(stage: Stage) -> None:
    """The second page comes too late: its revision is forgotten."""

    def meanwhile() -> None:
        stage.world.delete(min(stage.world.objects))
        stage.world.compact()

    stage.server.plant("page", Fault(status=410, then=meanwhile))
    await stage.start()
    await stage.asked("page")
    await stage.ends()


def _goes_on_unseen(stage: Stage) -> None:
    """Everything that can happen to objects happens, and nobody can tell of it."""
    world = stage.world
    world.delete("w000000", "w000001", "w000002")
    world.create("w000002", "unseen")  # the second of its name
    world.touch("w000003")
    world.compact()


async def gone_as_answer(stage: Stage) -> None:
    """410 as the answer to a watch."""
    await stage.start()
    await stage.begun()
    _goes_on_unseen(stage)
    stage.server.plant("watch", Fault(status=410))
    stage.server.cut_watches()
    await stage.ends()


async def gone_in_stream(stage: Stage) -> None:
    """410 as an event, after the watch was answered with 200."""
    await stage.start()
    await stage.begun()
    _goes_on_unseen(stage)
    stage.server.plant("watch", Fault(status=410, in_stream=True))
    stage.server.cut_watches()
    await stage.ends()


async def throttled(stage: Stage) -> None:
    """429 with Retry-After to lists and to watches: nobody comes back early."""
    stage.server.plant("list", *[Fault(status=429, retry_after=1)] * 2)
    stage.server.plant("watch", Fault(status=429, retry_after=1))
    await stage.start()
    await stage.settled()
    await stage.ends()
    asked = [each for each in stage.server.requests if each.verb != "other"]
    lists = [each.time for each in asked if each.verb == "list"][:3]
    watches = [each.time for each in asked if each.verb == "watch"][:2]
    pauses = [b - a for times in (lists, watches) for a, b in pairwise(times)]
    if any(pause < 0.95 for pause in pauses):
        raise Failed(f"came back after {min(pauses):.2f} s, not 1 s")


async def duplicated(stage: Stage) -> None:
    """Every event comes twice, the second time after all the others."""
    await stage.start()
    await stage.begun()
    stage.server.distort = lambda events: events + events
    stage.world.create("a", "b", "c")
    stage.world.touch("a")
    stage.world.delete("b")
    stage.world.delete("w000001")
    stage.server.announce()
    await stage.settled()
    await stage.ends()


async def reordered(stage: Stage) -> None:
    """Events come in any order, in one piece and in several."""
    await stage.start()
    await stage.begun()
    random = Random(3)

    def shuffled(events: list[Event]) -> list[Event]:
        return random.sample(events, len(events))

    stage.server.distort = shuffled
    for number in range(6):
        stage.world.create(f"n{number}")
        stage.world.touch(f"n{number}", "w000001")
        stage.world.touch(f"n{number}")
        stage.world.delete(f"w00001{number}")
        if number % 2:
            stage.world.delete(f"n{number}")
        if number % 3 == 2:
            stage.server.announce()
            await asyncio.sleep(0.05)
    stage.server.announce()
    await stage.settled()
    stage.server.distort = list
    await stage.ends()


async def late_by_a_piece(stage: Stage) -> None:
    """An object's creation, and another's last change, come after newer events."""
    await stage.start()
    await stage.begun()
    world, late = stage.world, list[Event]()
    world.create("late")
    world.touch("w000001")
    late += world.history[-2:]
    world.touch("w000002")
    world.delete("w000001")
    stage.server.distort = lambda events: [each for each in events if each not in late]
    stage.server.announce()
    await asyncio.sleep(0.2)
    stage.server.distort = list
    stage.server.say(late)
    await stage.settled()
    await stage.ends()


async def only_bookmarks(stage: Stage) -> None:
    """Other kinds change, this one does not: a bookmark tells, a new watch uses it."""
    await stage.start()
    await stage.begun()
    for _ in range(12):
        await asyncio.sleep(IDLE / 6)
        stage.world.revision += 100
        stage.server.bookmark()
    await asyncio.sleep(IDLE / 2)  # so that a busy machine has read the last of them
    lists, watches = stage.server.asked("list", "stream"), stage.server.asked("watch")
    if watches + lists > 2:
        stage.notes.append("watched again although there were bookmarks")
    stage.world.compact()
    stage.server.cut_watches()
    await stage.ends()
    if stage.server.asked("list", "stream") > lists:
        stage.notes.append("listed again although a bookmark was there")


async def half_open(stage: Stage) -> None:
    """The network goes: the connection is there, and nothing comes through it."""
    await stage.start()
    await stage.begun()
    stage.server.mute_watches()
    stage.world.delete("w000000")
    stage.world.create("unseen")
    await stage.ends()


async def deleted_while_away(stage: Stage) -> None:
    """The server cannot be reached for a while, and things happen."""
    await stage.start()
    await stage.begun()
    stage.server.refusing = True
    stage.server.cut_all()
    stage.world.delete("w000000", "w000001")
    stage.world.create("w000001", "unseen")
    stage.world.touch("w000002")
    await asyncio.sleep(1.0)
    stage.server.refusing = False
    await stage.ends()


async def kind_recreated(stage: Stage) -> None:
    """The definition of the kind is deleted, and made again a little later."""
    await stage.start()
    await stage.begun()
    stage.world.destroy_kind()
    stage.server.announce_kind("DELETED")
    stage.server.end_watches()
    await stage.settled()
    stage.world.restore_kind()
    stage.server.announce_kind("ADDED")
    stage.world.create("w000001", "first")
    await stage.ends()


async def compacted_restart(stage: Stage) -> None:
    """The server starts again and remembers only what is."""
    await stage.start()
    await stage.begun()
    stage.server.refusing = True
    stage.server.cut_all()
    _goes_on_unseen(stage)
    await asyncio.sleep(0.5)
    stage.server.refusing = False
    await stage.ends()


async def anything(stage: Stage, *, seed: int = 1) -> None:
    """All of it at once, in a random order that the seed repeats."""
    random, world, server = Random(seed), stage.world, stage.server
    trouble = (
        server.announce,
        server.bookmark,
        server.end_watches,
        server.cut_watches,
        server.cut_all,
        world.compact,
        lambda: server.plant("watch", Fault(status=410, in_stream=True)),
        lambda: server.plant("watch", Fault(status=410)),
        lambda: server.plant("watch", Fault(status=500)),
        lambda: server.plant("list", Fault(cut=0.5)),
    )
    await stage.start()
    await stage.begun()
    for step in range(80):
        name = random.choice([*world.objects])
        random.choice((world.touch, world.delete))(name)
        world.create(f"n{step}")
        if random.random() < 0.3 and name not in world.objects:
            world.create(name)  # another of the same name
        server.announce()
        if random.random() < 0.5:
            random.choice(trouble)()
        await asyncio.sleep(random.choice((0, 0, 0.01, 0.03)))
    server.forgive()
    await stage.ends()


async def many(stage: Stage) -> None:
    """Many objects, listed and, after a 410, listed again: memory stays bounded."""
    await stage.start()
    await stage.begun()
    size = sum(len(each.data) for each in stage.world.objects.values())
    await asyncio.sleep(0.5)
    steady = (await stage.subject.report()).rss
    await stage.subject.reset()
    _goes_on_unseen(stage)
    stage.server.plant("watch", Fault(status=410))
    stage.server.cut_watches()
    await stage.settled()
    above = (await stage.subject.report()).peak - steady
    stage.notes.append(f"{steady / MiB:.0f} MiB, a new list {above / MiB:+.0f} MiB")
    await stage.ends()
    if above > size / 2 + 8 * MiB:
        raise Failed(
            f"a new list of {size / MiB:.0f} MiB took {above / MiB:.0f} MiB of memory"
        )


SCENARIOS = (
    Scenario("ordinary", ordinary),
    Scenario("drop in the list", dropped_list),
    Scenario("drop in a page", dropped_page, objects=SEVERAL_PAGES, padding=3000),
    Scenario("drop in the WatchList", dropped_stream, way="stream"),
    Scenario("410 for a page", expired_page, objects=SEVERAL_PAGES, padding=3000),
    Scenario("410 as answer", gone_as_answer),
    Scenario("410 in the stream", gone_in_stream),
    Scenario("429", throttled),
    Scenario("duplicated events", duplicated),
    Scenario("reordered events", reordered),
    Scenario("late events", late_by_a_piece),
    Scenario("bookmarks only", only_bookmarks),
    Scenario("half-open connection", half_open),
    Scenario("deleted while away", deleted_while_away),
    Scenario("CRD recreated", kind_recreated),
    Scenario("compacted restart", compacted_restart),
    Scenario("anything at once", anything),
    Scenario("5,000 objects", many, objects=5000, padding=3000, memory=True),
    Scenario(
        "100,000 objects", many, objects=100_000, padding=800, memory=True, long=True
    ),
)
