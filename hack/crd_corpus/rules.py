"""Rules: every CEL case of the corpus, in a fixed order."""

from __future__ import annotations

from collections.abc import Iterator

from hack.crd_corpus.cases import Case
from hack.crd_corpus.group_rules import group_rules
from hack.crd_corpus.special_rules import special_rules
from hack.crd_corpus.value_rules import value_rules


def cases() -> Iterator[Case]:
    yield from (*value_rules(), *group_rules(), *special_rules())
