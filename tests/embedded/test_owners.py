"""The index of owners agrees with a plain look at all references, whatever happened."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from trimtab.embedded.owners import Owners

UIDS = st.sampled_from("uvw")
KEYS = st.sampled_from("abcd")
REFERENCES = st.lists(st.tuples(UIDS, st.booleans()), max_size=3)


@given(st.lists(st.tuples(KEYS, REFERENCES), max_size=20))
def test_the_index_says_what_the_references_say(
    steps: list[tuple[str, list[tuple[str, bool]]]],
) -> None:
    owners = Owners()
    model: dict[str, dict[str, bool]] = {}
    for key, references in steps:
        before, after = model.get(key, {}), dict(references)
        freed = owners.name(key, references)
        model[key] = after
        assert set(freed) == {
            uid for uid, blocks in before.items() if blocks and not after.get(uid)
        }
        for uid in "uvw":
            named = {key for key, names in model.items() if uid in names}
            assert set(owners.dependents(uid)) == named
            assert owners.has_dependents(uid) == bool(named)
            blocked = any(names.get(uid) for names in model.values())
            assert owners.is_blocked(uid) == blocked


@given(st.lists(st.tuples(KEYS, REFERENCES), max_size=20))
def test_nothing_is_kept_of_who_is_gone(
    steps: list[tuple[str, list[tuple[str, bool]]]],
) -> None:
    owners = Owners()
    for key, references in steps:
        owners.name(key, references)
    for key in "abcd":
        owners.name(key, ())
    assert not any((owners._named, owners._dependents, owners._blocking))
