"""Tokens: what one claims, and whether its signature and its claims hold.

Nothing here asks anybody: keys and the time are given. A token says itself which
algorithm it uses; it is believed only in choosing between two, each of which takes keys
of one kind, so that no key is ever used for what it was not made for.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final, Literal, cast, get_args

import jwt
import msgspec
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from trimtab.operators.vmafx.tenancy.kinds import Oidc, Role, VmafxTenantSpec

LONGEST: Final = 16 * 1024
SKEW: Final = 30.0
"""Seconds that the clocks of an issuer and of ours may differ."""
MOST_ROLES: Final = 64
MOST_TRIED: Final = 8
"""Keys that a token is tried with which names none."""
_SHOWN: Final = 64

Algorithm = Literal["RS256", "ES256"]
PublicKey = rsa.RSAPublicKey | ec.EllipticCurvePublicKey
# Signatures alone: times are judged by the clock that is given, the rest by name.
_SIGNATURE_ONLY: Final = cast(
    Any,
    {
        "verify_signature": True,
        **dict.fromkeys(
            ("verify_exp", "verify_nbf", "verify_iat", "verify_aud", "verify_iss"),
            False,
        ),
        "verify_sub": False,
        "verify_jti": False,
    },
)


class Refused(Exception):
    """Why a token is not accepted, for who runs the platform and nobody else."""


class Key(msgspec.Struct, frozen=True):
    """A key that an issuer signs with."""

    id: str
    algorithm: Algorithm
    public: PublicKey


class Claimed(msgspec.Struct, frozen=True):
    """What a token says before anybody has looked at its signature."""

    algorithm: Algorithm
    key: str
    """The id of the key; empty if it names none."""
    issuer: str
    claims: Mapping[str, Any]


def claimed(token: str) -> Claimed:
    """What a token says of itself. Errors: :class:`Refused`."""
    if not token:
        raise Refused("There is no token.")
    if len(token) > LONGEST:
        raise Refused(f"The token is longer than {LONGEST} bytes.")
    try:
        header = jwt.get_unverified_header(token)
        claims = jwt.decode(token, options={"verify_signature": False})
    except (jwt.InvalidTokenError, ValueError, RecursionError):
        raise Refused("The token is not a signed JWT.") from None
    algorithm, key = header.get("alg"), header.get("kid", "")
    if algorithm not in get_args(Algorithm):
        raise Refused(
            f"The token is signed by {shown(algorithm)}: RS256 and ES256 are accepted."
        )
    if "crit" in header or "b64" in header:
        raise Refused("The token needs extensions that are not known here.")
    issuer = claims.get("iss")
    if not isinstance(key, str) or not isinstance(issuer, str):
        raise Refused("The token does not say who made it.")
    return Claimed(cast(Algorithm, algorithm), key, issuer, claims)


def verified(token: str, said: Claimed, keys: Iterable[Key]) -> Mapping[str, Any]:
    """The claims of a token that one of the keys has signed. Errors: `Refused`."""
    fitting = [
        key
        for key in keys
        if key.algorithm == said.algorithm and said.key in ("", key.id)
    ]
    if not fitting:
        raise Refused(f"The issuer has no {said.algorithm} key {shown(said.key)}.")
    for key in fitting[:MOST_TRIED]:
        try:
            found: Mapping[str, Any] = jwt.decode(
                token,
                key.public,
                algorithms=[said.algorithm],
                options=_SIGNATURE_ONLY,
            )
        except jwt.InvalidTokenError:
            continue
        return found
    raise Refused("The signature is not that of its issuer.")


def check(claims: Mapping[str, Any], oidc: Oidc, *, now: datetime) -> None:
    """Let the claims of a verified token pass. Errors: :class:`Refused`."""
    if claims.get("iss") != oidc.issuer:
        raise Refused("The token is of another issuer.")
    audience = claims.get("aud")
    meant = audience if isinstance(audience, list) else [audience]
    if oidc.audience and oidc.audience not in meant:
        raise Refused(f"The token is not for the audience {oidc.audience}.")
    moment = now.timestamp()
    ends = _time(claims, "exp")
    if ends is None:
        raise Refused("The token never expires.")
    # Each is the condition for letting pass: what compares with nothing is refused.
    if not moment < ends + SKEW:
        raise Refused(f"The token has expired {moment - ends:.0f} s ago.")
    for name in ("nbf", "iat"):
        begins = _time(claims, name)
        if begins is not None and not moment >= begins - SKEW:
            raise Refused(f"The token is not valid yet, for {begins - moment:.0f} s.")


def roles_of(claims: Mapping[str, Any], spec: VmafxTenantSpec) -> frozenset[Role]:
    """The roles of a verified token that its tenant allows; the others are dropped."""
    said = claims.get(spec.oidc.rolesClaim)
    names = said.split() if isinstance(said, str) else said
    if not names:
        names = [spec.rbac.defaultRole]
    if not isinstance(names, list):
        return frozenset()
    allowed = set(spec.rbac.allowedRoles)
    return frozenset(role for role in allowed if role in names[:MOST_ROLES])


def shown(value: object) -> str:
    """What a stranger wrote, short and on one line."""
    return ascii(value)[:_SHOWN] if value else "without a name"


def _time(claims: Mapping[str, Any], name: str) -> float | None:
    value = claims.get(name)
    if value is None:
        return None
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not math.isfinite(value) or abs(value) > 1e12:
        raise Refused(f"Its {name} is no time.")
    return float(value)
