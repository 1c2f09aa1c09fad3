"""Laws of service-account tokens."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.embedded.certificates import new_key
from trimtab.embedded.tokens import ISSUER, LEEWAY, REMEMBERED, Tokens

NOW = datetime(2026, 11, 15, 12, 0, tzinfo=UTC)
ACCOUNT = {"metadata": {"namespace": "team", "name": "builder", "uid": "u-1"}}
POD = {"kind": "Pod", "name": "builder-0", "uid": "p-1"}
KEY = new_key()


def issue(tokens: Tokens, *, seconds: int = 3600, **options: Any) -> str:
    options.setdefault("audiences", tokens.audiences)
    return tokens.issue(ACCOUNT, now=NOW, seconds=seconds, **options)


def part(token: str, index: int) -> Any:
    text = token.split(".")[index]
    return json.loads(urlsafe_b64decode(text + "=" * (-len(text) % 4)))


def repacked(token: str, index: int, content: Any) -> str:
    parts = token.split(".")
    raw = json.dumps(content).encode()
    parts[index] = urlsafe_b64encode(raw).decode().rstrip("=")
    return ".".join(parts)


def test_a_token_says_what_the_real_server_s_say() -> None:
    token = issue(Tokens(KEY))
    claims = part(token, 1)
    assert part(token, 0)["alg"] == "ES256"
    assert len(part(token, 0)["kid"]) == 43
    began = int(NOW.timestamp())
    assert claims.pop("jti")
    assert claims == {
        "aud": [ISSUER],
        "exp": began + 3600,
        "iat": began,
        "iss": ISSUER,
        "kubernetes.io": {
            "namespace": "team",
            "serviceaccount": {"name": "builder", "uid": "u-1"},
        },
        "nbf": began,
        "sub": "system:serviceaccount:team:builder",
    }


def test_a_token_is_its_account() -> None:
    tokens = Tokens(KEY)
    token = issue(tokens)
    user = tokens.verify(token, now=NOW)
    assert user is not None
    assert user.name == "system:serviceaccount:team:builder"
    assert user.groups == ("system:serviceaccounts", "system:serviceaccounts:team")
    assert user.uid == "u-1"
    proof = user.extra["authentication.kubernetes.io/credential-id"]
    assert proof == (f"JTI={part(token, 1)['jti']}",)


def test_a_token_that_is_bound_to_a_pod_names_it() -> None:
    tokens = Tokens(KEY)
    token = issue(tokens, bound=POD)
    assert part(token, 1)["kubernetes.io"]["pod"] == {"name": "builder-0", "uid": "p-1"}
    user = tokens.verify(token, now=NOW)
    assert user is not None
    assert user.extra["authentication.kubernetes.io/pod-name"] == ("builder-0",)
    assert user.extra["authentication.kubernetes.io/pod-uid"] == ("p-1",)


def test_no_two_tokens_are_alike() -> None:
    tokens = Tokens(KEY)
    assert issue(tokens) != issue(tokens)


def test_tokens_survive_the_process_with_their_key() -> None:
    assert Tokens(KEY).verify(issue(Tokens(KEY)), now=NOW) is not None


def test_tokens_of_another_key_are_nobody_s() -> None:
    assert Tokens(new_key()).verify(issue(Tokens(KEY)), now=NOW) is None
    assert Tokens().verify(issue(Tokens()), now=NOW) is None


@pytest.mark.parametrize(
    ("after", "good"),
    [
        (-LEEWAY - 1, False),
        (-LEEWAY + 1, True),
        (0, True),
        (3600 + LEEWAY - 1, True),
        (3600 + LEEWAY, False),
        (10**9, False),
    ],
)
def test_a_token_is_good_for_its_time_and_a_minute_of_skew(
    after: float, good: bool
) -> None:
    tokens = Tokens(KEY)
    token = issue(tokens)
    for _ in range(2):  # a remembered signature does not make it last longer
        found = tokens.verify(token, now=NOW + timedelta(seconds=after))
        assert (found is not None) == good


def test_a_token_for_others_is_nobody_s_here() -> None:
    tokens = Tokens(KEY)
    assert tokens.verify(issue(tokens, audiences=["vault"]), now=NOW) is None
    both = issue(tokens, audiences=["vault", ISSUER])
    assert tokens.verify(both, now=NOW) is not None


@pytest.mark.parametrize("gone", ["serviceaccounts", "pods"])
@pytest.mark.parametrize("instead", [None, "another-uid"])
def test_a_token_ends_with_what_it_names(gone: str, instead: str | None) -> None:
    there: dict[str, str | None] = {"serviceaccounts": "u-1", "pods": "p-1"}
    tokens = Tokens(KEY, find=lambda resource, namespace, name: there[resource])
    token = issue(tokens, bound=POD)
    assert tokens.verify(token, now=NOW) is not None
    there[gone] = instead
    assert tokens.verify(token, now=NOW) is None


def test_a_look_up_is_for_the_objects_that_the_token_names() -> None:
    asked: list[tuple[str, str, str]] = []

    def find(resource: str, namespace: str, name: str) -> str:
        asked.append((resource, namespace, name))
        return {"nodes": "n-1"}.get(resource, "u-1")

    tokens = Tokens(KEY, find=find)
    bound = {"kind": "Node", "name": "one", "uid": "n-1"}
    assert tokens.verify(issue(tokens, bound=bound), now=NOW) is not None
    assert asked == [("serviceaccounts", "team", "builder"), ("nodes", "", "one")]


def test_what_was_not_signed_is_nobody_s() -> None:
    tokens = Tokens(KEY)
    token = issue(tokens)
    claims = part(token, 1)
    raised = {**claims, "sub": "system:serviceaccount:kube-system:admin"}
    longer = {**claims, "exp": claims["exp"] + 1}
    unsigned = repacked(token, 0, {**part(token, 0), "alg": "none"})
    symmetric = repacked(token, 0, {**part(token, 0), "alg": "HS256"})
    for forged in (
        repacked(token, 1, raised),
        repacked(token, 1, longer),
        unsigned,
        unsigned.rsplit(".", 1)[0] + ".",
        symmetric,
    ):
        assert tokens.verify(forged, now=NOW) is None


@given(st.data())
def test_a_changed_letter_makes_a_token_nobody_s(data: st.DataObject) -> None:
    tokens = Tokens(KEY)
    token = issue(tokens)
    place = data.draw(st.integers(0, len(token) - 1))
    letter = data.draw(st.sampled_from("ABab01-_.=+/ é"))
    changed = token[:place] + letter + token[place + 1 :]
    assert (tokens.verify(changed, now=NOW) is not None) == (changed == token)


@given(st.text(max_size=200) | st.text("aA0-_.", max_size=60))
def test_no_text_is_too_odd_to_be_refused(text: str) -> None:
    assert Tokens(KEY).verify(text, now=NOW) is None


def test_endless_text_is_refused_unread() -> None:
    assert Tokens(KEY).verify("a" * 10_000_000 + ".b.c", now=NOW) is None


def test_what_is_remembered_has_a_bound() -> None:
    tokens = Tokens(KEY)
    for _ in range(REMEMBERED + 10):
        assert tokens.verify(issue(tokens), now=NOW) is not None
    assert len(tokens._verified) == REMEMBERED


def test_a_key_is_in_no_repr() -> None:
    tokens = Tokens(KEY)
    issue(tokens)
    assert "PRIVATE" not in repr(tokens)
    assert "PRIVATE" not in repr(vars(tokens)["_signer"])
