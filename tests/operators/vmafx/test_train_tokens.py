"""Laws of tokens: each trainer has its own, made of one key that few may read."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.authoring.accounts import account, running_as
from tests.client.clusters import client_of
from tests.operators.vmafx.platform import Platform
from tests.operators.vmafx.school import ENVIRONMENT, Films, School
from tests.operators.vmafx.test_train_parts import (
    Listener,
    listening,
    score,
    sending,
    training,
)
from tests.operators.vmafx.trainers import Script, play_kubelet, script
from trimtab.authoring.permissions import CLUSTER, Rule, rules_of
from trimtab.client import Client, NotFound
from trimtab.kinds import Secret
from trimtab.operators.vmafx import programs
from trimtab.operators.vmafx.operator import make
from trimtab.operators.vmafx.tools import Ffmpeg
from trimtab.operators.vmafx.training import podspec, reconciling, tokens, wanted
from trimtab.operators.vmafx.training.tokens import (
    ENTRY,
    SECRET,
    BadKey,
    Key,
    digest_of,
    token_of,
)
from trimtab.operators.vmafx.wire import controller_pb2 as wire
from trimtab.runtime.webhooks.declarations import Declarations
from trimtab.testing import Cluster, eventually, install

served = pytest.mark.cluster("embedded", "real")


@served
async def test_all_who_make_the_first_key_have_the_same_and_it_is_read_again(
    cluster: Cluster, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with client_of(cluster, namespace=namespace) as client:

        def key(seed: int | None = None) -> Key:
            chance = None if seed is None else random.Random(seed)
            return Key(client, namespace=namespace, random=chance)

        with pytest.raises(NotFound):
            await key().fresh()
        several = [key(seed) for seed in range(5)]
        async with asyncio.TaskGroup() as group:
            for each in several:
                group.create_task(each.fresh())
        shown = {each.token(training()) for each in several}
        assert len(shown) == 1
        reader = key()
        await reader.fresh()
        assert reader.token(training()) in shown
        kept = await client.get(Secret, SECRET)
        assert len(kept.data[ENTRY]) == tokens.SIZE
        # What it is made of shows nowhere.
        told = f"{reader!r} {reader.__dict__.keys()} {kept!r}"
        assert str(kept.data[ENTRY]) not in told
        # Another key is another token: at once for who was refused.
        await client.delete(Secret, SECRET)
        await key(9).fresh()
        await reader.fresh()
        assert reader.token(training()) in shown
        reader.forget()
        await reader.fresh()
        assert reader.token(training()) not in shown
        await client.patch(Secret, SECRET, {"data": {ENTRY: "c2hvcnQ="}})
        reader.forget()
        with pytest.raises(BadKey, match="delete it"):
            await reader.fresh()
        assert reader.is_known  # what it knew does for now


@given(st.sampled_from(["name", "namespace", "uid"]), st.text("abc/", min_size=1))
def test_another_training_has_another_token(field: str, value: str) -> None:
    one = training()
    other = replace(one, metadata=replace(one.metadata, **{field: value}))
    key, same = b"k" * tokens.SIZE, getattr(one.metadata, field) == value
    assert (token_of(key, one) == token_of(key, other)) == same
    assert token_of(b"l" * tokens.SIZE, one) != token_of(key, one)
    assert len(token_of(key, one)) == 64


async def test_who_shows_the_wrong_token_tries_again_and_drops_nothing() -> None:
    listener = Listener()
    listener.token = "new"
    async with listening(listener) as trainer, sending(pause=0.01) as feedback:
        trainer.token = "old"
        feedback.offer([trainer], job="one", found=score(3))
        await eventually(lambda: listener.refused >= 2)
        found = feedback.statistics()
        assert (found.taken, found.dropped) == (0, 0)
        trainer.token = "new"  # it comes with the next job
        feedback.offer([trainer], job="two", found=score(2))
        await eventually(lambda: feedback.statistics().taken == 5)
        found = feedback.statistics()
    assert (found.refused, found.dropped, found.waiting) == (0, 0, 0)


def granted_to_gateway(namespace: str) -> list[Rule]:
    """What the chart grants to a gateway of one namespace."""
    plain = [(each.place, each.plain()) for each in programs.GATEWAY.rights]
    return [
        Rule(
            place=CLUSTER if place == "cluster" else namespace,
            group=each["apiGroups"][0],
            resource=each["resources"][0],
            names=tuple(each.get("resourceNames", ())),
            verbs=tuple(each["verbs"]),
        )
        for place, each in plain
    ]


async def told(here: School, port: int) -> Callable[[], Awaitable[str]]:
    """A node that pulls a job; the token that it hears of with it."""
    numbers = iter(range(1000))

    async def pulled() -> str:
        name = f"job-{next(numbers)}"
        await here.here.submit(name, Path("/a"), Path("/b"))
        async with here.here.caller(port, "node") as caller:
            session = await caller.register(wire.RegisterNodeRequest(name="n"))
            answer = await caller.pull(
                wire.PullWorkRequest(
                    node_id=session.node_id,
                    session_token=session.session_token,
                    wait_seconds=10.0,
                )
            )
        return "".join(each.token for each in answer.trainers)

    return pulled


@served
async def test_a_token_reaches_all_and_a_new_key_is_followed_under_the_chart_s_rights(
    cluster: Cluster,
    namespace: str,
    tmp_path: Path,
    ffmpeg: Ffmpeg,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for module in (tokens, wanted):
        monkeypatch.setattr(module, "LIFETIME", 0.2)
    monkeypatch.setattr(reconciling, "AGAIN", 0.2)
    app = make(random=random.SystemRandom(), environment=ENVIRONMENT)
    app.webhooks, app.leader = Declarations(), False
    app.within((namespace,))
    async with (
        client_of(cluster, namespace=namespace) as admin,
        script(namespace) as trainer,
    ):
        kinds = [each.kind for each in app.controllers()]
        await install(admin, *dict.fromkeys(kinds))
        here = School(Platform(admin, namespace, tmp_path), Films(tmp_path, ffmpeg))
        own = rules_of(app, namespace=namespace)
        others = granted_to_gateway(namespace)
        async with (
            account(cluster, admin, own, name=f"{namespace}-op") as operator,
            account(cluster, admin, others, name=f"{namespace}-gw") as gateway,
            running_as(operator, app, namespace),
            here.here._stack,
        ):
            port = await here.here.gateway(client=gateway.connect())
            await _followed(here, trainer, await told(here, port))
            assert operator.denied() == gateway.denied() == []
            await _denied(admin)


async def _followed(
    here: School, trainer: Script, pulled: Callable[[], Awaitable[str]]
) -> None:
    admin = here.here.client
    trainer.known = "what nobody knows"
    await here.begin("model", b"a model", paused=True)
    made = await play_kubelet(here, "model", trainer.host)
    # Refused with what it knows, the operator tries again until it is known.
    await eventually(lambda: trainer.refused)
    trainer.known = first = await here.token("model")
    await here.until("model", lambda it: it.status.phase == "Paused")
    assert trainer.shown == first
    assert made.metadata.annotations[podspec.DIGEST] == digest_of(first)
    await here.change("model", paused=False)
    await here.until("model", lambda it: it.status.phase == "Running")
    await eventually(lambda: _is(pulled, first), within=20)
    await admin.delete(Secret, SECRET)

    async def is_told() -> bool:
        pod = await here.pod("model")
        try:
            trainer.known = await here.token("model")
        except NotFound:
            return False
        assert pod.metadata.uid == made.metadata.uid
        return pod.metadata.annotations[podspec.DIGEST] == digest_of(trainer.known)

    await eventually(is_told, within=20)
    assert trainer.known != first
    await eventually(lambda: _is(pulled, trainer.known), within=20)
    await here.change("model", rollbackTo="v000001")
    await here.until("model", lambda it: it.status.rolledBackTo == "v000001")
    assert trainer.shown == trainer.known


async def _is(pulled: Callable[[], Awaitable[str]], expected: str) -> bool:
    return await pulled() == expected


async def _denied(admin: Client) -> None:
    """Neither may read or change a Secret that is another's."""
    namespace = admin.config.namespace
    for name in (f"{namespace}-op", f"{namespace}-gw"):
        user = f"system:serviceaccount:{namespace}:{name}"

        async def may(verb: str, secret: str, user: str = user) -> bool:
            answer = await admin.may(
                user, verb, Secret, namespace=namespace, name=secret
            )
            return answer.allowed

        assert await may("get", SECRET)
        for verb in ("list", "watch", "patch", "update", "delete"):
            assert not await may(verb, SECRET), verb
        for verb in ("get", "list", "watch", "patch", "update", "delete"):
            assert not await may(verb, "anybody-s"), verb
