"""A policy counts for as long as it is there and bound, and as it is now."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator

import pytest

from hack.policy_corpus.bodies import (
    JSON,
    apply,
    check,
    config,
    mutating,
    mutating_binding,
    path_of,
    rule,
    validating,
    validating_binding,
)
from tests.embedded.asking import MERGE, Answer, Asker
from tests.embedded.asking import ask as ask
from trimtab.testing import eventually

pytestmark = pytest.mark.cluster("embedded", "real")


class Policies:
    """Policies for one namespace, which are gone when the test is over."""

    def __init__(self, ask: Asker) -> None:
        self._ask = ask
        self._made: list[str] = []
        self.name = f"changes-{secrets.token_hex(4)}.example.com"
        label = {"kubernetes.io/metadata.name": ask.namespace}
        self.match = {
            "resourceRules": [rule()],
            "namespaceSelector": {"matchLabels": label},
        }

    async def make(self, *objects: JSON) -> None:
        for obj in objects:
            path = path_of(obj)
            assert (await self._ask("POST", path, obj)).status == 201
            self._made.append(f"{path}/{obj['metadata']['name']}")

    async def change(self, obj: JSON, spec: JSON) -> None:
        where = f"{path_of(obj)}/{obj['metadata']['name']}"
        changed = await self._ask("PATCH", where, {"spec": spec}, media=MERGE)
        assert changed.status == 200

    async def drop(self, obj: JSON) -> None:
        where = f"{path_of(obj)}/{obj['metadata']['name']}"
        assert (await self._ask("DELETE", where)).status == 200

    async def tried(self) -> Answer:
        """What a request comes to, without anything being stored."""
        path = self._ask.path("configmaps")
        return await self._ask("POST", path, config("tried"), dryRun="All")

    async def until(self, status: int, told: str = "") -> None:
        async def as_wanted() -> bool:
            answer = await self.tried()
            return answer.status == status and told in answer.body.decode()

        await eventually(as_wanted, within=20)

    async def clear(self) -> None:
        for where in self._made:
            await self._ask("DELETE", where)


@pytest.fixture
async def policies(ask: Asker) -> AsyncIterator[Policies]:
    made = Policies(ask)
    yield made
    await made.clear()


async def test_a_policy_says_nothing_until_it_is_bound(policies: Policies) -> None:
    no = check("false", message="never")
    policy = validating(policies.name, no, matchConstraints=policies.match)
    await policies.make(policy)
    assert (await policies.tried()).status == 201
    await policies.make(validating_binding(policies.name))
    await policies.until(422, "never")


async def test_a_policy_says_nothing_more_once_it_or_its_binding_is_gone(
    policies: Policies,
) -> None:
    no = check("false", message="never")
    policy = validating(policies.name, no, matchConstraints=policies.match)
    binding = validating_binding(policies.name)
    await policies.make(policy, binding)
    await policies.until(422)
    await policies.drop(binding)
    await policies.until(201)
    await policies.make(binding)
    await policies.until(422)
    await policies.drop(policy)
    await policies.until(201)


async def test_a_policy_that_changes_is_asked_as_it_is_now(policies: Policies) -> None:
    policy = validating(policies.name, check("false"), matchConstraints=policies.match)
    await policies.make(policy, validating_binding(policies.name))
    await policies.until(422, "failed expression: false")
    await policies.change(policy, {"validations": [check("1 > 2", message="less")]})
    await policies.until(422, "less")
    await policies.change(policy, {"validations": [check("true")]})
    await policies.until(201)


async def test_what_a_policy_changes_is_what_it_says_now(policies: Policies) -> None:
    def made(value: str) -> JSON:
        text = f"Object{{metadata: Object.metadata{{labels: {{'by': '{value}'}}}}}}"
        return apply(text)

    policy = mutating(policies.name, made("one"), matchConstraints=policies.match)
    await policies.make(policy, mutating_binding(policies.name))
    await policies.until(201, '"by":"one"')
    await policies.change(policy, {"mutations": [made("two")]})
    await policies.until(201, '"by":"two"')
    await policies.drop(policy)

    async def as_before() -> bool:
        return "labels" not in (await policies.tried()).meta

    await eventually(as_before, within=20)
