"""Laws of the ledger: what need not be applied again, and what must."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab import Metadata
from trimtab.api.resource import OwnerReference
from trimtab.kinds import ConfigMap
from trimtab.runtime.ledger import SWEPT, Ledger, carries, digest_of

PLACE: Any = (ConfigMap, ("shop", "a"), "")


def obj(*, uid: str = "u", generation: int = 0, revision: str = "5") -> ConfigMap:
    metadata = Metadata(uid=uid, generation=generation, resourceVersion=revision)
    return ConfigMap(metadata=metadata)


def always(kind: object, key: object) -> bool:
    return True


def test_what_nobody_will_forget_is_swept_out_and_the_rest_stays() -> None:
    there = {("shop", str(number)) for number in range(0, 10 * SWEPT, 10)}
    ledger = Ledger(lambda kind, key: key in there)
    for number in range(10 * SWEPT):
        ledger.record((ConfigMap, ("shop", str(number)), ""), 1, obj())
        assert len(ledger) <= 2 * SWEPT + 1
    assert all(ledger.same((ConfigMap, key, ""), 1, obj()) for key in there)


def test_an_intent_stands_while_the_object_is_what_it_made_of_it() -> None:
    ledger = Ledger(always)
    assert not ledger.stands(PLACE, 1, obj())
    ledger.record(PLACE, 1, obj())
    assert ledger.stands(PLACE, 1, obj())
    assert not ledger.stands(PLACE, 2, obj()), "another intent"
    assert not ledger.stands(PLACE, 1, obj(uid="v")), "another object of that name"
    assert not ledger.stands(PLACE, 1, obj(revision="6")), "somebody wrote"


def test_where_there_is_a_generation_only_that_counts() -> None:
    ledger = Ledger(always)
    ledger.record(PLACE, 1, obj(generation=3))
    assert ledger.stands(PLACE, 1, obj(generation=3, revision="9"))
    assert not ledger.stands(PLACE, 1, obj(generation=4))


def test_nothing_is_known_of_what_was_forgotten() -> None:
    ledger = Ledger(always)
    for part in ("", "status:", "status:door"):
        ledger.record((ConfigMap, ("shop", "a"), part), 1, obj())
    ledger.forget(ConfigMap, ("shop", "a"), "", "status:")
    assert len(ledger) == 1
    ledger.forget(ConfigMap, ("shop", "a"), "status:door")
    assert not len(ledger)


texts = st.text("abc", max_size=2)
maps = st.dictionaries(texts, texts, max_size=3)


@given(wanted=maps, there=maps)
def test_metadata_carries_an_intent_if_all_of_it_is_there(
    wanted: dict[str, str], there: dict[str, str]
) -> None:
    holds = all(there.get(key) == value for key, value in wanted.items())
    intent = Metadata(labels=wanted, annotations=wanted)
    whole = {**there, **wanted}
    assert carries(Metadata(labels=there, annotations=whole), intent) is holds
    assert carries(Metadata(labels=whole, annotations=there), intent) is holds
    assert carries(Metadata(labels=whole, annotations=whole), intent)


def reference(uid: str) -> OwnerReference:
    return OwnerReference(apiVersion="v1", kind="ConfigMap", name="a", uid=uid)


@pytest.mark.parametrize(
    ("now", "intent"),
    [
        (Metadata(), Metadata(finalizers=["example.com/a"])),
        (Metadata(), Metadata(ownerReferences=[reference("u")])),
        (
            Metadata(ownerReferences=[reference("v")]),
            Metadata(ownerReferences=[reference("u")]),
        ),
    ],
)
def test_owners_and_finalizers_that_were_removed_are_missed(
    now: Metadata, intent: Metadata
) -> None:
    assert not carries(now, intent)
    assert carries(intent, intent)
    assert carries(intent, now) == (not now.ownerReferences)


@given(one=st.binary(max_size=40), other=st.binary(max_size=40))
def test_the_digest_tells_intents_apart(one: bytes, other: bytes) -> None:
    assert (digest_of(one) == digest_of(other)) is (one == other)
