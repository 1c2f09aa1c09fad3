"""Authentication: whom a request comes from, by certificate or by token.

A client certificate comes first; it was verified when the connection was made. Then a
bearer token: one of the fixed ones, or a service account's. A request with neither is
nobody's, and nobody may see only whether the server is well and which version it is.
"""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from trimtab.client.credentials import Guarded
from trimtab.client.errors import TrimtabError
from trimtab.embedded import files, status
from trimtab.embedded.requests import User
from trimtab.embedded.store import Store
from trimtab.embedded.tokens import Tokens

AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"
ANONYMOUS = User("system:anonymous", (UNAUTHENTICATED,))
# What kube-apiserver's default roles let everybody see.
PUBLIC = frozenset({"/healthz", "/livez", "/readyz", "/version", "/version/"})
CREDENTIAL = "authentication.kubernetes.io/credential-id"

Headers = Mapping[str, str]


class _Meta(msgspec.Struct, gc=False):
    uid: str = ""


class _Head(msgspec.Struct, gc=False):
    metadata: _Meta


_head = msgspec.json.Decoder(_Head).decode


class StaticToken(Guarded, frozen=True, kw_only=True):
    """A token that was given to somebody beforehand, and does not end."""

    token: str
    user: str
    uid: str = ""
    groups: Sequence[str] = ()

    def shown(self) -> Mapping[str, object]:
        return {"user": self.user, "uid": self.uid, "groups": self.groups}


class StaticTokens:
    """The users of tokens that were given to them beforehand."""

    def __init__(self, tokens: Iterable[StaticToken] = ()) -> None:
        # By digest: a look-up then tells nothing about how much of a guess is right.
        self._users = {
            _digest(each.token): User(each.user, tuple(each.groups), each.uid)
            for each in tokens
        }

    def find(self, token: str) -> User | None:
        """Whose token it is; None if it is nobody's."""
        return self._users.get(_digest(token))


class TokenFileProblem(TrimtabError):
    """The file of static tokens cannot be used."""


class Authenticator:
    """Finds the user behind a request.

    Assumptions: certificates are those of a connection that our own TLS context made,
    so they are signed by our authority, in time, and meant for clients.
    """

    def __init__(
        self,
        *,
        tokens: Tokens,
        now: Callable[[], datetime],
        static: Iterable[StaticToken] = (),
    ) -> None:
        self._tokens = tokens
        self._now = now
        self._static = StaticTokens(static)

    def user(self, certificate: User | None, headers: Headers, path: str) -> User:
        """Who asks for a path; raises the 401 that everybody else gets."""
        if certificate is not None:
            return certificate
        scheme, _, token = headers.get("authorization", "").strip().partition(" ")
        if scheme.lower() == "bearer" and token.strip():
            found = self._by_token(token.strip())
            if found is None:
                raise status.unauthorized()
            return _authenticated(found)
        if path in PUBLIC:
            return ANONYMOUS
        raise status.unauthorized()

    def _by_token(self, token: str) -> User | None:
        found = self._static.find(token)
        if found is not None:
            return found
        return self._tokens.verify(token, now=self._now())


def certificate_user(
    parsed: Mapping[str, Any] | None, der: bytes | None
) -> User | None:
    """The user that a verified certificate names; None if it names none.

    ``parsed`` is what Python's ssl makes of the certificate that ``der`` holds.
    """
    if not parsed or der is None:
        return None
    parts = [part for name in parsed.get("subject", ()) for part in name]
    names = [value for key, value in parts if key == "commonName"]
    if not names or not names[-1]:
        return None
    groups = tuple(value for key, value in parts if key == "organizationName")
    proof = f"X509SHA256={hashlib.sha256(der).hexdigest()}"
    return _authenticated(User(names[-1], groups, "", {CREDENTIAL: (proof,)}))


def _authenticated(user: User) -> User:
    if AUTHENTICATED in user.groups:
        return user
    groups = (*user.groups, AUTHENTICATED)
    return msgspec.structs.replace(user, groups=groups)


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()


def uid_in(store: Store) -> Callable[[str, str, str], str | None]:
    """Finds the uid of an object of the core group, for tokens that name it."""

    def find(resource: str, namespace: str, name: str) -> str | None:
        place = f"{namespace}/{name}" if namespace else name
        row = store.get(f"core/{resource}/{place}")
        return None if row is None else _head(row.value).metadata.uid

    return find


def read_tokens(path: Path) -> list[StaticToken]:
    """The static tokens of a file: lines of token, user, uid and, quoted, groups.

    That is the format of kube-apiserver's ``--token-auth-file``.

    Errors: :class:`TokenFileProblem` names the line; the token is not shown.
    """
    content = files.read(path, advice="name another file of tokens")
    if content is None:
        raise TokenFileProblem(f"There is no file {path}: name one that has tokens.")
    found = []
    try:
        rows = list(csv.reader(content.decode().splitlines(), strict=True))
    except (csv.Error, ValueError):
        raise TokenFileProblem(
            f"{path} is not a list of comma-separated values: write token,user,uid "
            'and, if there are groups, ,"group1,group2" on each line.'
        ) from None
    for number, row in enumerate(rows, 1):
        if row and not row[0].startswith("#"):
            found.append(_static_token(row, f"Line {number} of {path}"))
    return found


def _static_token(row: list[str], where: str) -> StaticToken:
    parts = [part.strip() for part in row]
    if len(parts) < 3 or not parts[0] or not parts[1]:
        raise TokenFileProblem(
            f"{where} lacks a token, a user or a uid: write token,user,uid and, if "
            'there are groups, ,"group1,group2".'
        )
    names = parts[3].split(",") if len(parts) > 3 else []
    groups = tuple(name.strip() for name in names if name.strip())
    return StaticToken(token=parts[0], user=parts[1], uid=parts[2], groups=groups)
