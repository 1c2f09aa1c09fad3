"""Names of what belongs to a session."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.api.names import check_label_1035, check_label_value, check_subdomain
from trimtab.operators.sessions import names


def test_the_names_are_those_that_other_programs_look_for() -> None:
    assert names.pod_name("a") == "a-runner"
    assert names.service_name("a") == "session-a"
    assert names.account_name("a") == "ambient-session-a"
    assert names.role_name("a") == "ambient-session-a-role"
    assert names.binding_name("a") == "ambient-session-a-rb"
    assert names.token_secret_name("a") == "ambient-runner-token-a"


@given(st.text(alphabet="abz09-.", min_size=1, max_size=80))
def test_a_name_that_is_let_pass_makes_only_names_that_servers_take(
    name: str,
) -> None:
    if names.check(name) is not None:
        return
    check_label_1035(names.service_name(name))
    check_label_value(name)
    for made in (
        names.pod_name(name),
        names.account_name(name),
        names.role_name(name),
        names.binding_name(name),
        names.token_secret_name(name),
    ):
        check_subdomain(made)


def test_a_session_name_over_55_characters_is_refused_before_anything_is_made() -> None:
    assert names.check("s" * 55) is None
    refused = names.check("s" * 56)
    assert refused is not None
    assert "56 characters" in refused
    assert "at most 55" in refused


def test_a_session_name_of_64_characters_is_one_sentence() -> None:
    assert "64 characters" in (names.check("s" * 64) or "")


@pytest.mark.parametrize("name", ["two.parts", "-first", "last-", "Upper"])
def test_a_name_that_no_service_could_have_is_refused(name: str) -> None:
    assert "cannot be part" in (names.check(name) or "")
