"""Laws of fair turns: each its share, nobody starves, and no more at once than allowed.

The queue is the real one; the nodes are only how often somebody asks.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.operators.vmafx.platform import platform
from tests.operators.vmafx.test_queue import job
from tests.pool.test_core_view import steps
from trimtab.cache import Cache, Scope
from trimtab.client import Client
from trimtab.operators.vmafx import claims
from trimtab.operators.vmafx.desk import BY_UID, Desk
from trimtab.operators.vmafx.kinds import Run, VmafxJob, VmafxNode
from trimtab.operators.vmafx.nodes import BY_SESSION, Capability, Nodes
from trimtab.operators.vmafx.queue import JobQueue, Key
from trimtab.operators.vmafx.shares import Share
from trimtab.testing import Cluster, eventually

RUNS = Run(attempt=1, session="s", node="n")
WEIGHTS = st.dictionaries(
    st.sampled_from("abcdefgh"), st.integers(1, 50), min_size=2, max_size=8
)


def of(tenant: str, number: int, *, priority: int = 0, age: int = 0) -> VmafxJob:
    made = job(f"{tenant}-{number}", priority=priority, age=age)
    return replace(made, metadata=replace(made.metadata, namespace=f"ns-{tenant}"))


def changed(seen: VmafxJob, run: Run) -> VmafxJob:
    return replace(seen, status=replace(seen.status, run=run))


def shared(
    shares: dict[str, Share], tenant_of: Callable[[str], str] | None = None
) -> JobQueue:
    """A queue for tenants whose namespaces are named after them."""
    return JobQueue(
        tenant_of=tenant_of or (lambda namespace: namespace.removeprefix("ns-")),
        share_of=lambda tenant: shares.get(tenant, Share()),
    )


def tenant(key: Key | None) -> str:
    assert key is not None
    return key[0].removeprefix("ns-")


@given(weights=WEIGHTS, takes=st.integers(1, 400))
@settings(max_examples=40, deadline=None)
def test_in_a_busy_period_shares_are_as_the_weights(
    weights: dict[str, int], takes: int
) -> None:
    queue = shared({name: Share(weight=each) for name, each in weights.items()})
    for name in weights:
        queue.put(of(name, 0), now=0.0)
    got: Counter[str] = Counter()
    for number in range(takes):
        name = tenant(queue.take((), now=0.0))
        got[name] += 1
        queue.put(of(name, number + 1), now=0.0)
        queue.put(of(name, number + 1 + takes), now=0.0)
    for one in weights:
        for other in weights:
            apart = got[one] / weights[one] - got[other] / weights[other]
            allowed = 1 / weights[one] + 1 / weights[other]
            assert apart <= allowed + 1e-9, (got, weights)


@given(
    jobs=st.lists(
        st.tuples(st.sampled_from("abc"), st.integers(0, 3), st.integers(0, 5)),
        min_size=1,
        max_size=60,
    ),
    weights=st.fixed_dictionaries(dict.fromkeys("abc", st.integers(1, 9))),
)
@settings(max_examples=40, deadline=None)
def test_everything_is_given_and_within_a_tenant_by_priority_then_age(
    jobs: list[tuple[str, int, int]], weights: dict[str, int]
) -> None:
    queue = shared({name: Share(weight=each) for name, each in weights.items()})
    expected: dict[str, list[tuple[int, int, str]]] = {}
    for number, (name, priority, age) in enumerate(jobs):
        made = of(name, number, priority=priority, age=age)
        queue.put(made, now=0.0)
        order = (-priority, -age, made.metadata.uid)
        expected.setdefault(name, []).append(order)
    got: dict[str, list[str]] = {}
    while key := queue.take((), now=0.0):
        got.setdefault(tenant(key), []).append(f"uid-{key[1]}")
    assert got == {
        name: [uid for _, _, uid in sorted(each)] for name, each in expected.items()
    }


@given(weights=WEIGHTS, seed=st.integers(0, 2**16))
@settings(max_examples=20, deadline=None)
def test_nobody_starves_whatever_the_others_do(
    weights: dict[str, int], seed: int
) -> None:
    """Others come, go and come new; who waits is served within its share of turns."""
    random, names = Random(seed), sorted(weights)
    queue = shared({name: Share(weight=each) for name, each in weights.items()})
    first = names[0]
    queue.put(of(first, 0), now=0.0)
    bound = sum(-(-weights[each] // weights[first]) + 1 for each in names) + 60
    for number in range(1, bound):
        # One that was never there before, as well as some that come back.
        queue.put(of(f"new{number}", number), now=0.0)
        queue.put(of(random.choice(names[1:]), number), now=0.0)
        if tenant(queue.take((), now=0.0)) == first:
            return
    raise AssertionError(f"{first} was not served in {bound} turns")


def test_a_newcomer_and_one_that_was_away_gain_nothing_by_it() -> None:
    queue = shared({})
    got: Counter[str] = Counter()
    for number in range(300):
        queue.put(of("steady", number), now=0.0)
        if number % 3 == 0:  # one job, gone again, and so on
            queue.put(of("guest", number), now=0.0)
        got[tenant(queue.take((), now=0.0))] += 1
    assert got["guest"] <= 101
    assert got["steady"] >= 199


def test_a_tenant_at_its_limit_waits_until_one_of_its_jobs_ends() -> None:
    queue = shared({"a": Share(weight=100, running=2)})
    jobs = [of("a", number) for number in range(4)]
    for each in jobs:
        queue.put(each, now=0.0)
    queue.put(of("b", 0), now=0.0)
    assert [tenant(queue.take((), now=0.0)) for _ in range(3)] == ["a", "a", "b"]
    assert queue.take((), now=0.0) is None
    for each in jobs[:2]:
        assert not queue.put(changed(each, RUNS), now=0.0)
    assert queue.take((), now=0.0) is None
    done = replace(RUNS, outcome="completed")
    assert queue.put(changed(jobs[0], done), now=0.0) == [""]
    assert tenant(queue.take((), now=0.0)) == "a"
    assert queue.take((), now=0.0) is None
    assert queue.drop(jobs[1].key) == [""]
    assert tenant(queue.take((), now=0.0)) == "a"


def test_what_another_replica_gave_counts_as_well() -> None:
    queue = shared({"a": Share(running=3)})
    for number in range(6):
        queue.put(of("a", number), now=0.0)
        queue.put(of("b", number), now=0.0)
    for number in range(3):
        queue.put(changed(of("a", number), RUNS), now=0.0)
    assert [tenant(queue.take((), now=0.0)) for _ in range(6)] == ["b"] * 6
    assert queue.take((), now=0.0) is None


def test_a_claim_that_failed_costs_no_turn() -> None:
    queue = shared({})
    for number in range(20):
        queue.put(of("a", number), now=0.0)
        queue.put(of("b", number), now=0.0)
    got: Counter[str] = Counter()
    for number in range(20):
        key = queue.take((), now=0.0)
        assert key is not None
        if tenant(key) == "a" and number % 4 < 2:
            queue.put(of("a", int(key[1][2:])), now=0.0)  # it is as it was
        else:
            got[tenant(key)] += 1
    assert abs(got["a"] - got["b"]) <= 2


def test_what_no_node_could_do_does_not_catch_up_later() -> None:
    queue = shared({})
    for number in range(300):
        queue.put(replace_backend(of("a", number)), now=0.0)
        queue.put(of("b", number), now=0.0)
    for _ in range(100):
        assert tenant(queue.take(("cpu",), now=0.0)) == "b"
    got = Counter(tenant(queue.take(("cuda",), now=0.0)) for _ in range(100))
    assert abs(got["a"] - got["b"]) <= 2


def replace_backend(seen: VmafxJob) -> VmafxJob:
    return replace(seen, spec=replace(seen.spec, backend="cuda"))


def test_namespaces_without_a_tenant_share_as_tenants_do() -> None:
    """Also one that has the name of a tenant."""
    queue = shared({"a": Share(weight=2)}, lambda ns: "a" if ns == "ns-a" else "")
    other = of("a", 9)
    queue.put(replace(other, metadata=replace(other.metadata, namespace="a")), now=0.0)
    for number in range(8):
        queue.put(of("a", number), now=0.0)
        queue.put(of("b", number), now=0.0)
    got = [key[0] for _ in range(8) if (key := queue.take((), now=0.0))]
    assert Counter(got) == {"ns-a": 5, "ns-b": 2, "a": 1}


def test_a_node_of_a_tenant_gets_only_its_jobs() -> None:
    queue = shared({})
    queue.put(of("a", 1), now=0.0)
    queue.put(of("b", 1, priority=9), now=0.0)
    assert queue.take((), now=0.0, tenant="c") is None
    assert tenant(queue.take((), now=0.0, tenant="a")) == "a"
    assert queue.take((), now=0.0, tenant="a") is None
    assert tenant(queue.take((), now=0.0)) == "b"


def test_when_tenants_change_what_waits_is_shared_anew() -> None:
    owners = {"ns-a": "", "ns-b": ""}
    shares: dict[str, Share] = {}
    queue = shared(shares, lambda namespace: owners[namespace])
    lost = Run(attempt=1, lost=1, outcome="expired")
    for number in range(8):
        queue.put(of("a", number), now=0.0)
        queue.put(of("b", number), now=0.0)
    queue.put(changed(of("b", 9), lost), now=0.0)
    queue.put(changed(of("b", 10), RUNS), now=0.0)
    owners |= {"ns-b": "b"}
    shares["b"] = Share(running=1)
    queue.regroup(now=0.0)
    assert [tenant(queue.take((), now=0.0)) for _ in range(8)] == ["a"] * 8
    assert queue.take((), now=0.0) is None
    shares["b"] = Share()
    queue.regroup(now=0.0)
    assert [tenant(queue.take((), now=9.0)) for _ in range(9)] == ["b"] * 9
    assert len(queue) == 0


@asynccontextmanager
async def desk(client: Client, namespace: str, share: Share) -> AsyncIterator[Desk]:
    """A desk whose only tenant has all jobs."""
    cache, chance = Cache(client, random=Random(1)), Random(2)
    here = Scope(namespaces=(namespace,))
    known = cache.informer(VmafxNode, here, indexes=(BY_SESSION,))
    made = Desk(
        client,
        jobs=cache.informer(VmafxJob, here, indexes=(BY_UID,)),
        nodes=Nodes(client, known, namespace=namespace, random=chance),
        now=lambda: datetime.now(UTC),
        tenant_of=lambda namespace: "a",
        share_of=lambda tenant: share,
    )
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(cache.run())]
        await cache.wait_synced()
        tasks.append(group.create_task(made.run()))
        yield made
        for task in tasks:
            task.cancel()


@pytest.mark.cluster("embedded", "real")
async def test_a_node_that_waits_gets_what_a_limit_held_back_when_there_is_room(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    async with (
        platform(cluster, namespace, tmp_path) as here,
        desk(here.client, namespace, Share(running=1)) as made,
    ):
        can = Capability(backends=("cpu",))
        begun = await made.nodes.register("one", can, now=datetime.now(UTC))
        node = await made.nodes.find(begun.id, begun.token)
        for name in ("first", "second"):
            await here.submit(name, tmp_path / "a.mp4", tmp_path / "b.mp4")
        first = await made.pull(node, backends=("cpu",), wait=10.0)
        assert first is not None
        assert await made.pull(node, backends=("cpu",), wait=0.1) is None
        async with asyncio.TaskGroup() as group:
            pulling = group.create_task(made.pull(node, backends=("cpu",), wait=20.0))
            await eventually(lambda: bool(made._pullers))
            await made.report(node, first.metadata.uid, completed(begun.id))
        second = pulling.result()
        assert second is not None
        assert {first.metadata.name, second.metadata.name} == {"first", "second"}
        # Who has said that it leaves gets nothing any more.
        await made.report(node, second.metadata.uid, completed(begun.id))
        await made.beat(node, [], draining=True)
        await here.submit("third", tmp_path / "a.mp4", tmp_path / "b.mp4")
        assert await made.pull(node, backends=("cpu",), wait=20.0) is None


@pytest.mark.cluster("embedded", "real")
async def test_a_job_that_a_node_was_to_get_when_it_broke_off_is_for_the_next(
    cluster: Cluster,
    namespace: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with (
        platform(cluster, namespace, tmp_path) as here,
        desk(here.client, namespace, Share()) as made,
    ):
        can = Capability(backends=("cpu",))
        begun = await made.nodes.register("one", can, now=datetime.now(UTC))
        node = await made.nodes.find(begun.id, begun.token)

        def pull(group: asyncio.TaskGroup) -> asyncio.Task[VmafxJob | None]:
            return group.create_task(made.pull(node, backends=("cpu",), wait=20.0))

        def broken_off(_: object) -> None:
            first.cancel()

        async with asyncio.TaskGroup() as group:  # woken, and gone before it can ask
            first = pull(group)
            await eventually(lambda: len(made._pullers) == 1)
            second = pull(group)
            await eventually(lambda: len(made._pullers) == 2)
            unheard = made.watch(broken_off)
            await here.submit("woken", tmp_path / "a.mp4", tmp_path / "b.mp4")
        unheard()
        assert first.cancelled()
        assert (found := second.result())
        assert found.metadata.name == "woken"

        claimed = asyncio.Event()

        async def unanswered(*_: object) -> None:
            claimed.set()
            await asyncio.Event().wait()

        async with asyncio.TaskGroup() as group:  # gone in the middle of the claim
            with monkeypatch.context() as patched:
                patched.setattr(made._runs, "swap", unanswered)
                await here.submit("claimed", tmp_path / "a.mp4", tmp_path / "b.mp4")
                first = pull(group)
                await claimed.wait()
                first.cancel()
            second = pull(group)
        assert (found := second.result())
        assert found.metadata.name == "claimed"


def completed(session: str) -> Callable[[VmafxJob], Run | None]:
    return lambda seen: claims.report(
        seen, session=session, attempt=1, now=datetime.now(UTC), score=1.0
    )


def cost(jobs: int, tenants: int) -> int:
    """Calls that a hundred takes make, with so many jobs of so many tenants."""
    queue = shared({})
    for number in range(jobs):
        queue.put(of(f"t{number % tenants}", number), now=0.0)

    def work() -> None:
        for _ in range(100):
            queue.take(("cpu",), now=0.0)

    return steps(work)


def test_a_take_costs_the_same_whatever_the_number_of_jobs() -> None:
    few, many = cost(200, 5), cost(5000, 5)
    assert many <= few * 1.1
    assert cost(5000, 1000) <= few * 1.5


def test_who_is_gone_leaves_nothing_behind() -> None:
    queue = shared({})
    for number in range(500):
        made = of(f"t{number}", number)
        queue.put(replace_backend(made), now=0.0)  # nobody ever asks for this line
        queue.drop(made.key)
    assert len(queue) == len(queue._turns) == len(queue._tallies) == 0
    assert not queue._ready
    assert sum(map(len, queue._turns._lines.values())) <= 70
