"""Laws of who may come in, over a real connection."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.embedded.standin import JO, Standing, standing
from trimtab.embedded.authentication import (
    PUBLIC,
    StaticToken,
    TokenFileProblem,
    certificate_user,
    read_tokens,
    uid_in,
)
from trimtab.embedded.store import Store
from trimtab.embedded.tokens import ISSUER, Tokens

PRIVATE = ("/", "/api", "/apis", "/metrics", "/nothing", "/healthz/etcd", "/openapi/v2")


@pytest.fixture
async def server() -> AsyncIterator[Standing]:
    async with standing() as made:
        yield made


async def ask(
    server: Standing,
    path: str,
    *,
    token: str = "",
    anonymous: bool = True,
    headers: Any = None,
) -> tuple[int, dict[str, Any]]:
    headers = [*(headers or {}).items()] if isinstance(headers, dict) else headers or []
    if token:
        headers = [*headers, ("Authorization", f"Bearer {token}")]
    async with server.session(anonymous=anonymous) as session:
        async with session.get(path, headers=headers) as answer:
            return answer.status, await answer.json()


@pytest.mark.parametrize("path", PRIVATE)
async def test_nobody_learns_anything_but_that_they_are_nobody(
    server: Standing, path: str
) -> None:
    code, status = await ask(server, path)
    assert code == 401
    assert status == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "Unauthorized",
        "reason": "Unauthorized",
        "code": 401,
    }
    assert not server.api.requests


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
async def test_nobody_may_write(server: Standing, method: str) -> None:
    async with server.session(anonymous=True) as session:
        async with session.request(method, "/api/v1/pods", data=b"{}") as answer:
            assert answer.status == 401
    assert not server.api.requests


@pytest.mark.parametrize("path", sorted(PUBLIC))
async def test_everybody_may_see_health_and_version(
    server: Standing, path: str
) -> None:
    code, seen = await ask(server, path)
    assert (code, seen["user"]) == (200, "system:anonymous")
    assert seen["groups"] == ["system:unauthenticated"]


@pytest.mark.parametrize("path", ["/healthz", "/nothing"])
async def test_a_wrong_token_is_worse_than_none(server: Standing, path: str) -> None:
    assert (await ask(server, path, token="wrong"))[0] == 401


@pytest.mark.parametrize("value", ["", "Bearer", "Bearer ", "Basic am86c2VjcmV0"])
async def test_what_is_no_token_is_like_none(server: Standing, value: str) -> None:
    headers = {"Authorization": value}
    assert (await ask(server, "/version", headers=headers))[0] == 200
    assert (await ask(server, "/api", headers=headers))[0] == 401


async def test_a_static_token_is_its_user(server: Standing) -> None:
    code, seen = await ask(server, "/api", token=JO.token)
    assert (code, seen["user"]) == (200, "jo")
    assert seen["groups"] == ["crew", "system:authenticated"]


async def test_a_service_account_s_token_is_its_account(server: Standing) -> None:
    account = {"metadata": {"namespace": "a", "name": "b", "uid": "c"}}
    token = Tokens(server.identity.signing_key).issue(
        account, audiences=[ISSUER], now=datetime.now(UTC), seconds=600
    )
    code, seen = await ask(server, "/api", token=token)
    assert (code, seen["user"]) == (200, "system:serviceaccount:a:b")
    assert seen["groups"][-1] == "system:authenticated"


async def test_a_certificate_is_its_user_whatever_token_comes_with_it(
    server: Standing,
) -> None:
    for token in ("", JO.token, "wrong"):
        code, seen = await ask(server, "/api", token=token, anonymous=False)
        assert (code, seen["user"]) == (200, "admin")
        assert seen["groups"] == ["system:masters", "system:authenticated"]
        [proof] = seen["extra"]["authentication.kubernetes.io/credential-id"]
        assert proof.startswith("X509SHA256=")


async def test_a_body_of_nobody_s_is_not_read(server: Standing) -> None:
    reader, writer = await server.raw(anonymous=True)
    writer.write(b"POST /api HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n")
    assert (await reader.readline()).startswith(b"HTTP/1.1 401 ")
    writer.transport.abort()


def test_a_certificate_without_a_name_is_nobody_s() -> None:
    subject = ((("organizationName", "system:masters"),),)
    assert certificate_user({"subject": subject}, b"der") is None
    assert certificate_user({}, b"der") is None
    assert certificate_user(None, None) is None


def test_tokens_are_read_as_the_real_server_reads_them(tmp_path: Path) -> None:
    path = tmp_path / "tokens.csv"
    path.write_text('t1,jo,1,"crew, staff"\n\n# nobody\nt2, al ,2\n')
    assert read_tokens(path) == [
        StaticToken(token="t1", user="jo", uid="1", groups=("crew", "staff")),
        StaticToken(token="t2", user="al", uid="2"),
    ]


@pytest.mark.parametrize(
    "content", ["secret-token,jo\n", ",jo,1\n", "secret-token,,1\n"]
)
def test_a_bad_line_of_tokens_is_named_and_its_token_is_not(
    tmp_path: Path, content: str
) -> None:
    path = tmp_path / "tokens.csv"
    path.write_text("t,u,1\n" + content)
    with pytest.raises(TokenFileProblem, match="Line 2 of") as caught:
        read_tokens(path)
    assert "secret-token" not in str(caught.value)


def test_a_file_of_tokens_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(TokenFileProblem, match=r"no file .*tokens\.csv"):
        read_tokens(tmp_path / "tokens.csv")


def test_no_token_is_in_a_repr() -> None:
    assert JO.token not in repr(JO)


def test_the_uid_of_an_object_is_found_where_it_is_stored() -> None:
    store = Store(None)
    value = b'{"kind":"Pod","metadata":{"name":"b","uid":"u-1"}}'
    store.put("core/pods/a/b", value)
    store.put("core/nodes/n", b'{"metadata":{"uid":"u-2"}}')
    find = uid_in(store)
    assert find("pods", "a", "b") == "u-1"
    assert find("nodes", "", "n") == "u-2"
    assert find("pods", "a", "c") is None
    store.close()


async def test_a_connection_is_asked_who_it_is_once(
    server: Standing, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []
    real = certificate_user

    def counting(parsed: Any, der: Any) -> Any:
        asked.append(parsed)
        return real(parsed, der)

    monkeypatch.setattr("trimtab.embedded.listener.certificate_user", counting)
    async with server.session() as session:
        for _ in range(5):
            async with session.get("/api") as answer:
                assert answer.status == 200
                await answer.read()
    assert len(asked) == 1
