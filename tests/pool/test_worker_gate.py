"""Laws of the gate: whatever is asked of it, in whatever order."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as some

from trimtab.pool import secrets
from trimtab.pool.worker.gate import Gate, Phase, Refused, Use

KEY, UID = b"k" * 32, "uid"

EPOCHS = some.integers(0, 5)
CHECKOUTS = some.sampled_from("ab")
STEPS = some.lists(
    some.tuples(
        some.sampled_from(("begin", "fence", "clean", "use", "end")), EPOCHS, CHECKOUTS
    ),
    max_size=40,
)


class Client:
    """One use, as the one who serves it sees it."""

    def __init__(self) -> None:
        self.dropped = 0
        self.use: Use | None = None

    def drop(self) -> None:
        self.dropped += 1


class Model:
    """A gate, every use that it let in, and what must be true of both."""

    def __init__(self) -> None:
        self.gate = Gate(KEY, UID)
        self.clients: list[Client] = []
        self.cleaned: set[tuple[int, str]] = set()
        self.highest = 0

    def do(self, step: str, epoch: int, checkout: str) -> None:
        gate = self.gate
        if step == "begin":
            gate.begin(epoch, checkout=checkout)
            assert (gate.phase, gate.epoch) == (Phase.OPEN, epoch)
        elif step == "fence":
            gate.fence(epoch)
        elif step == "clean":
            gate.clean(epoch, checkout=checkout)
            self.cleaned.add((epoch, checkout))
        elif step == "use":
            self.enter(epoch, checkout)
        elif self.clients:
            client = self.clients.pop(epoch % len(self.clients))
            assert client.use is not None
            client.use.end()
        self.check(epoch if step in ("begin", "fence", "clean") else 0)

    def enter(self, epoch: int, checkout: str) -> None:
        client = Client()
        token = secrets.token(KEY, UID, checkout, epoch)
        client.use = self.gate.admit(token, drop=client.drop)
        self.clients.append(client)
        assert (client.use.epoch, client.use.checkout) == (epoch, checkout)
        assert (epoch, checkout) not in self.cleaned
        assert epoch == self.highest

    def check(self, epoch: int) -> None:
        self.highest = max(self.highest, epoch)
        assert self.gate.epoch >= self.highest
        served = set()
        for client in self.clients:
            assert client.use is not None
            assert client.dropped <= 1
            if not client.dropped:
                served.add((client.use.epoch, client.use.checkout))
        assert len(served) <= 1, "two checkouts are served at once"
        assert all(epoch == self.highest for epoch, _ in served)
        assert not served & self.cleaned


@given(STEPS)
def test_no_lower_epoch_is_served_and_no_two_checkouts_share_a_worker(
    steps: list[tuple[str, int, str]],
) -> None:
    model = Model()
    for step in steps:
        before = model.gate.epoch
        with suppress(Refused):
            model.do(*step)
        assert model.gate.epoch >= before


@given(STEPS, EPOCHS)
def test_a_refused_call_changes_nothing(
    steps: list[tuple[str, int, str]], epoch: int
) -> None:
    model = Model()
    for step in steps:
        gate = model.gate
        before = (gate.phase, gate.epoch, gate.checkout)
        dropped = [client.dropped for client in model.clients]
        try:
            model.do(*step)
        except Refused:
            assert before == (gate.phase, gate.epoch, gate.checkout)
            assert dropped == [client.dropped for client in model.clients]


def test_a_program_that_was_started_again_serves_nobody_until_it_is_begun() -> None:
    gate = Gate(KEY, UID, floor=7)
    with pytest.raises(Refused):
        gate.admit(secrets.token(KEY, UID, "a", 7), drop=lambda: None)
    with pytest.raises(Refused, match="epoch 6 is over"):
        gate.begin(6, checkout="a")
    gate.begin(8, checkout="b")
    with pytest.raises(Refused):
        gate.admit(secrets.token(KEY, UID, "a", 7), drop=lambda: None)
    assert gate.admit(secrets.token(KEY, UID, "b", 8), drop=lambda: None).epoch == 8


def test_the_same_begin_twice_drops_nobody() -> None:
    gate, client = Gate(KEY, UID), Client()
    gate.begin(3, checkout="a")
    client.use = gate.admit(secrets.token(KEY, UID, "a", 3), drop=client.drop)
    gate.begin(3, checkout="a")
    assert client.dropped == 0
    with pytest.raises(Refused, match="another checkout"):
        gate.begin(3, checkout="b")


def test_a_checkout_that_was_cleaned_never_opens_again() -> None:
    gate = Gate(KEY, UID)
    gate.begin(3, checkout="a")
    gate.clean(3, checkout="a")
    gate.clean(3, checkout="a")
    with pytest.raises(Refused):
        gate.begin(3, checkout="a")
    with pytest.raises(Refused):
        gate.fence(3)


async def test_a_gate_is_quiet_only_when_whoever_was_dropped_has_let_go() -> None:
    gate, client = Gate(KEY, UID), Client()
    gate.begin(1, checkout="a")
    client.use = gate.admit(secrets.token(KEY, UID, "a", 1), drop=client.drop)
    gate.begin(2, checkout="b")
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(gate.quiet())
        await asyncio.sleep(0)
        assert (client.dropped, waiting.done()) == (1, False)
        client.use.end()
    assert waiting.done()


def test_a_token_is_worth_nothing_elsewhere_and_shows_nowhere() -> None:
    mine = secrets.token(KEY, UID, "a", 1)
    others = {
        secrets.token(b"x" * 32, UID, "a", 1),
        secrets.token(KEY, "other", "a", 1),
        secrets.token(KEY, UID, "b", 1),
        secrets.token(KEY, UID, "a", 2),
        secrets.control(KEY, UID),
    }
    assert mine not in others
    assert len(others) == 5
    gate = Gate(KEY, UID)
    gate.begin(1, checkout="a")
    assert mine not in repr(gate)
    assert not gate.controls(mine)
    assert gate.controls(secrets.control(KEY, UID))
