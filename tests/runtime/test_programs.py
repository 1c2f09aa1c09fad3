"""Laws of the programs beside an operator: what is declared wrong is told at once."""

from __future__ import annotations

import pytest

from trimtab import Operator
from trimtab.kinds import ConfigMap, Secret
from trimtab.runtime.programs import Program, Right


def test_a_program_is_one_word_with_numbers_for_its_ports() -> None:
    with pytest.raises(ValueError, match="one word"):
        Program(name="two-words", about="", arguments="")
    with pytest.raises(ValueError, match="has no 'http'"):
        Program(name="web", about="", arguments="", ports=("http",))
    made = Program(
        name="web",
        about="",
        arguments="",
        ports=("http",),
        values={"ports": {"http": 80}},
    )
    app = Operator("shop")
    assert (app.programs, app.installed) == ((), True)
    app.alongside(made, installed=False)
    assert (app.programs, app.installed) == ((made,), False)


def test_a_right_is_a_rule_of_a_role() -> None:
    assert Right(ConfigMap, ("get", "list")).plain() == {
        "apiGroups": [""],
        "resources": ["configmaps"],
        "verbs": ["get", "list"],
    }
    assert Right(Secret, ("patch",), "status", names=("a",)).plain() == {
        "apiGroups": [""],
        "resources": ["secrets/status"],
        "resourceNames": ["a"],
        "verbs": ["patch"],
    }
