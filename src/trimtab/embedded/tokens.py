"""Service-account tokens: who a pod says it is, signed by this server.

A token is a JWT with the claims that kube-apiserver writes. It is good for as long as
it says, for the audiences that it names, and while the account (and the pod, secret or
node that it is bound to) is still the one that it was issued for.
"""

from __future__ import annotations

import hashlib
import uuid
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec

from trimtab.embedded.requests import User

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric import ec

ISSUER = "https://kubernetes.default.svc"
ALGORITHM = "ES256"
# How far the clocks of two machines may be apart, as in the real server.
LEEWAY = 60.0
# A signature takes a hundred microseconds to check, so the last ones are remembered.
REMEMBERED = 256
# Longer ones are nobody's: ours have about a thousand characters.
LONGEST = 16 << 10
NUMBER_BYTES = 32

Find = Callable[[str, str, str], str | None]
"""The uid of the object with this resource, namespace and name; None if it is gone."""


class Reference(msgspec.Struct, frozen=True, omit_defaults=True):
    """An object that a token names: gone, or another of that name, ends the token."""

    name: str = ""
    uid: str = ""


class Account(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The claim ``kubernetes.io``: whose token it is, and what it is bound to."""

    namespace: str
    node: Reference | None = None
    pod: Reference | None = None
    secret: Reference | None = None
    serviceaccount: Reference


class Claims(msgspec.Struct, frozen=True, kw_only=True):
    """What a token says."""

    aud: list[str]
    exp: int
    iat: int
    iss: str
    jti: str = ""
    kubernetes: Account = msgspec.field(name="kubernetes.io")
    nbf: int
    sub: str


class Header(msgspec.Struct, frozen=True):
    """How a token is signed."""

    alg: str
    kid: str


class Tokens:
    """Issues tokens and recognizes its own.

    Assumptions: ``key`` is a P-256 key in PEM; without one a new key is made at the
    first use, and its tokens end with the process.
    """

    def __init__(
        self,
        key: bytes | None = None,
        *,
        audiences: Sequence[str] = (ISSUER,),
        find: Find | None = None,
    ) -> None:
        self.audiences = tuple(audiences)
        self._pem = key
        self._find = find
        self._signer: _Signer | None = None
        self._verified: OrderedDict[bytes, Claims] = OrderedDict()

    def __repr__(self) -> str:
        return f"Tokens(audiences={self.audiences!r})"

    def keys(self) -> dict[str, Any]:
        """The keys that tokens are signed with, for whoever else checks them."""
        return {"keys": [self._signing.public()]}

    def issue(
        self,
        account: Mapping[str, Any],
        *,
        audiences: Sequence[str],
        now: datetime,
        seconds: int,
        bound: Mapping[str, Any] | None = None,
    ) -> str:
        """A token for a ServiceAccount, perhaps ``bound`` to a Pod, Secret or Node.

        ``bound`` has the object's ``kind``, ``name`` and ``uid``.
        """
        meta = account["metadata"]
        namespace, name = meta["namespace"], meta["name"]
        began = int(now.timestamp())
        claims = Claims(
            aud=list(audiences),
            exp=began + seconds,
            iat=began,
            iss=ISSUER,
            jti=str(uuid.uuid4()),
            kubernetes=Account(
                namespace=namespace,
                serviceaccount=Reference(name, meta.get("uid", "")),
                **_binding(bound),
            ),
            nbf=began,
            sub=username(namespace, name),
        )
        return self._signing.sign(claims)

    def verify(self, token: str, *, now: datetime) -> User | None:
        """Whose token it is; None if it is not ours, or not good here and now."""
        claims = self._claims(token)
        if claims is None or not self._is_good(claims, now.timestamp()):
            return None
        return user_of(claims)

    @property
    def _signing(self) -> _Signer:
        if self._signer is None:
            self._signer = _Signer(self._pem)
        return self._signer

    def _claims(self, token: str) -> Claims | None:
        """What a token says, if we signed that."""
        if len(token) > LONGEST or token.count(".") != 2:
            return None
        digest = hashlib.sha256(token.encode(errors="replace")).digest()
        claims = self._verified.get(digest)
        if claims is not None:
            self._verified.move_to_end(digest)
            return claims
        claims = self._signing.read(token)
        if claims is not None:
            self._verified[digest] = claims
            if len(self._verified) > REMEMBERED:
                self._verified.popitem(last=False)
        return claims

    def _is_good(self, claims: Claims, now: float) -> bool:
        in_time = claims.nbf - LEEWAY <= now < claims.exp + LEEWAY
        meant = not set(claims.aud).isdisjoint(self.audiences)
        return in_time and meant and claims.iss == ISSUER and self._is_there(claims)

    def _is_there(self, claims: Claims) -> bool:
        """Whether all that the token names is still what it was."""
        if self._find is None:
            return True
        account = claims.kubernetes
        named = [("serviceaccounts", account.namespace, account.serviceaccount)]
        if account.secret:
            named.append(("secrets", account.namespace, account.secret))
        if account.pod:
            named.append(("pods", account.namespace, account.pod))
        elif account.node:  # beside a pod it only tells where the pod is
            named.append(("nodes", "", account.node))
        return all(
            self._find(resource, namespace, each.name) == each.uid
            for resource, namespace, each in named
        )


def username(namespace: str, name: str) -> str:
    """The user that a service account is."""
    return f"system:serviceaccount:{namespace}:{name}"


def account_groups(namespace: str) -> tuple[str, str]:
    """The groups that every service account of a namespace is in."""
    return "system:serviceaccounts", f"system:serviceaccounts:{namespace}"


def user_of(claims: Claims) -> User:
    """The user that a token stands for."""
    account = claims.kubernetes
    prefix = "authentication.kubernetes.io"
    extra: dict[str, tuple[str, ...]] = {}
    if claims.jti:
        extra[f"{prefix}/credential-id"] = (f"JTI={claims.jti}",)
    for kind, each in (("node", account.node), ("pod", account.pod)):
        if each:
            extra[f"{prefix}/{kind}-name"] = (each.name,)
            extra[f"{prefix}/{kind}-uid"] = (each.uid,)
    return User(
        username(account.namespace, account.serviceaccount.name),
        account_groups(account.namespace),
        account.serviceaccount.uid,
        extra,
    )


def _binding(bound: Mapping[str, Any] | None) -> dict[str, Reference]:
    if not bound:
        return {}
    kind = str(bound["kind"]).lower()
    assert kind in ("pod", "secret", "node"), "the API checks what it binds to"
    return {kind: Reference(bound.get("name", ""), bound.get("uid", ""))}


class _Signer:
    """One key: signs claims, and reads what it has signed."""

    def __init__(self, pem: bytes | None) -> None:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ec

        self._key: ec.EllipticCurvePrivateKey
        if pem is None:
            self._key = ec.generate_private_key(ec.SECP256R1())
        else:
            key = serialization.load_pem_private_key(pem, password=None)
            assert isinstance(key, ec.EllipticCurvePrivateKey), "identity makes it"
            self._key = key
        self._public = self._key.public_key()
        public = self._public.public_bytes(
            serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        self._header = Header(ALGORITHM, _text(hashlib.sha256(public).digest()))

    def public(self) -> dict[str, str]:
        """What others need to check a signature: a JSON web key."""
        numbers = self._public.public_numbers()
        x, y = (
            _text(each.to_bytes(NUMBER_BYTES, "big")) for each in (numbers.x, numbers.y)
        )
        return {
            "use": "sig",
            "kty": "EC",
            "kid": self._header.kid,
            "crv": "P-256",
            "alg": ALGORITHM,
            "x": x,
            "y": y,
        }

    def sign(self, claims: Claims) -> str:
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import ec, utils

        parts = (msgspec.json.encode(each) for each in (self._header, claims))
        signed = ".".join(map(_text, parts))
        signature = self._key.sign(signed.encode(), ec.ECDSA(hashes.SHA256()))
        pair = utils.decode_dss_signature(signature)
        raw = b"".join(number.to_bytes(NUMBER_BYTES, "big") for number in pair)
        return f"{signed}.{_text(raw)}"

    def read(self, token: str) -> Claims | None:
        """The claims of a token that this key signed; None for anything else."""
        header, payload, signature = token.split(".")
        try:
            if msgspec.json.decode(_raw(header), type=Header) != self._header:
                return None
            if not self._is_signed(f"{header}.{payload}".encode(), _raw(signature)):
                return None
            return msgspec.json.decode(_raw(payload), type=Claims)
        except (ValueError, msgspec.DecodeError):  # nothing that we could have written
            return None

    def _is_signed(self, signed: bytes, raw: bytes) -> bool:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import ec, utils

        if len(raw) != 2 * NUMBER_BYTES:
            return False
        pair = (raw[:NUMBER_BYTES], raw[NUMBER_BYTES:])
        signature = utils.encode_dss_signature(
            *(int.from_bytes(n, "big") for n in pair)
        )
        try:
            self._public.verify(signature, signed, ec.ECDSA(hashes.SHA256()))
        except InvalidSignature:
            return False
        return True


def _text(data: bytes) -> str:
    return urlsafe_b64encode(data).decode().rstrip("=")


def _raw(text: str) -> bytes:
    data = urlsafe_b64decode(text + "=" * (-len(text) % 4))
    if _text(data) != text:
        raise ValueError("not the one way to write it")
    return data
