"""Whose token it is: proved by the issuers' own keys, or nobody is let in."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from tests.operators.vmafx.issuer import Issuer, rsa_key
from trimtab.client.calling import Caller
from trimtab.operators.vmafx import roles
from trimtab.operators.vmafx.calling import SERVICE
from trimtab.operators.vmafx.guarding import Guard
from trimtab.operators.vmafx.roots import Roots
from trimtab.operators.vmafx.tenancy import identities, keys, tokens
from trimtab.operators.vmafx.tenancy.identities import Doorkeeper, Unavailable
from trimtab.operators.vmafx.tenancy.judging import Entry
from trimtab.operators.vmafx.tenancy.keys import Keys
from trimtab.operators.vmafx.tenancy.opening import provider
from trimtab.operators.vmafx.tenancy.registry import Registry
from trimtab.runtime.access import Unauthenticated

HOUR = 3600.0


class Door:
    """A doorkeeper at work, and a clock that can be put forward."""

    def __init__(self, issuer: Issuer, calls: Caller, registry: Registry) -> None:
        self.issuer = issuer
        self.registry = registry
        self.keys = Keys(calls, ca=issuer.authority)
        self._loop = asyncio.get_running_loop()
        self._clock, self._ahead = self._loop.time, 0.0
        self.keeper = Doorkeeper(registry, self.keys, now=lambda: datetime.now(UTC))

    def later(self, seconds: float) -> None:
        """Put the loop's clock forward; the wall's stays."""
        self._ahead += seconds
        ahead, clock = self._ahead, self._clock
        self._loop.time = lambda: clock() + ahead  # type: ignore[method-assign]

    def load(self, *entries: Entry) -> None:
        self.registry.load(entries, now=self._loop.time())

    async def says(self, token: str) -> str:
        """What a caller is told; empty if it is let in."""
        try:
            await self.keeper.identity(token)
        except (Unauthenticated, roles.Denied, Unavailable) as error:
            return str(error)
        return ""


@asynccontextmanager
async def door(folder: Path, **options: Any) -> AsyncIterator[Door]:
    calls = Caller()
    async with Issuer(folder).serving() as issuer:
        registry = Registry(home="home", roots=Roots(), refresh=HOUR * 100, **options)
        made = Door(issuer, calls, registry)
        made.load(issuer.entry(), issuer.entry("beta", oidc={"tenantClaim": "org"}))
        async with asyncio.TaskGroup() as group:
            task = group.create_task(made.keys.run())
            try:
                yield made
            finally:
                task.cancel()
                await calls.close()


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[Door]:
    async with door(tmp_path) as made:
        yield made


async def test_a_token_stands_for_one_tenant_with_the_roles_it_allows(
    here: Door,
) -> None:
    said = ("vmafx:reader", "vmafx:admin", "vmafx:owner")
    found = await here.keeper.identity(here.issuer.token("acme", *said))
    assert (found.tenant, found.namespace) == ("acme", "vmafx-acme")
    assert found.roles == {"vmafx:reader"}  # what is not allowed is not there
    nothing = await here.keeper.identity(here.issuer.token())
    assert nothing.roles == {"vmafx:reader"}  # the default
    only = await here.keeper.identity(here.issuer.token("acme", "vmafx:admin"))
    assert only.roles == frozenset()  # who asks for too much gets no default for it
    here.load(here.issuer.entry(rbac={"allowedRoles": ["vmafx:writer"]}))
    assert (await here.keeper.identity(here.issuer.token())).roles == frozenset()
    words = here.issuer.token(vmafx_roles="openid vmafx:writer")
    assert (await here.keeper.identity(words)).roles == {"vmafx:writer"}
    assert here.issuer.asked == 1  # the keys are kept


def forged(head: dict[str, Any], claims: dict[str, Any], secret: bytes = b"") -> str:
    """A token that no library would make."""
    parts = [
        base64.urlsafe_b64encode(json.dumps(each).encode()).rstrip(b"=")
        for each in (head, claims)
    ]
    signed = b".".join(parts)
    proof = hmac.new(secret, signed, hashlib.sha256).digest() if secret else b""
    return b".".join([signed, base64.urlsafe_b64encode(proof).rstrip(b"=")]).decode()


def claims_of(token: str) -> dict[str, Any]:
    found: dict[str, Any] = jwt.decode(token, options={"verify_signature": False})
    return found


def now() -> int:
    return int(datetime.now(UTC).timestamp())


def _none(issuer: Issuer) -> str:
    return forged({"alg": "none", "kid": "first"}, claims_of(issuer.token()))


def _confused(issuer: Issuer) -> str:
    head = {"alg": "HS256", "kid": "first"}
    return forged(head, claims_of(issuer.token()), issuer.public_pem())


def _mislabelled(issuer: Issuer) -> str:
    head = {"alg": "ES256", "kid": "first"}
    return forged(head, claims_of(issuer.token()), issuer.public_pem())


def _brought(issuer: Issuer) -> str:
    """Signed by a key of the attacker's, which the token itself carries."""
    mine = rsa_key(1)
    jwk = jwt.algorithms.RSAAlgorithm.to_jwk(mine.public_key(), as_dict=True)
    headers = {"kid": "first", "jwk": jwk, "jku": "https://evil.example/keys"}
    return jwt.encode(claims_of(issuer.token()), mine, "RS256", headers=headers)


def _changed(issuer: Issuer) -> str:
    """The signature of another token."""
    head, _, proof = issuer.token().split(".")
    other = issuer.token("acme", "vmafx:writer", sub="root").split(".")[1]
    return f"{head}.{other}.{proof}"


def _critical(issuer: Issuer) -> str:
    headers = {"kid": "first", "crit": ["exp"]}
    return jwt.encode(claims_of(issuer.token()), rsa_key(0), "RS256", headers=headers)


ATTACKS: dict[str, tuple[Callable[[Issuer], str], str]] = {
    "nothing": (lambda issuer: "", "no token"),
    "noise": (lambda issuer: "a.b.c", "not a signed JWT"),
    "too long": (lambda issuer: "a" * 20_000, "longer than"),
    "alg none": (_none, "signed by 'none'"),
    "key confusion": (_confused, "signed by 'HS256'"),
    "another algorithm's key": (_mislabelled, "no ES256 key 'first'"),
    "a key of its own": (_brought, "signature is not that of its issuer"),
    "a changed claim": (_changed, "signature is not that of its issuer"),
    "extensions": (_critical, "not a signed JWT"),
    "another issuer": (lambda i: i.token(iss="https://evil.example"), "No tenant has"),
    "wrong audience": (lambda i: i.token(aud="mail"), "not for the audience vmafx"),
    "no audience": (lambda i: i.token(aud=None), "not for the audience vmafx"),
    "expired": (lambda i: i.token(exp=now() - 31), "has expired"),
    "without an end": (lambda i: i.token(exp=None), "never expires"),
    "endless": (lambda i: i.token(exp=float("inf")), "exp is no time"),
    "not yet valid": (lambda i: i.token(nbf=now() + 120), "not valid yet"),
    "from the future": (lambda i: i.token(iat=now() + 120), "not valid yet"),
    "no tenant": (lambda i: i.token(tid=None), "of no tenant"),
    "an unknown tenant": (lambda i: i.token("gamma"), "of no tenant"),
    "a list of tenants": (lambda i: i.token(tid=["acme"]), "of no tenant"),
    "by another's claim": (lambda i: i.token("beta"), "of no tenant"),
    "two tenants at once": (lambda i: i.token("acme", org="beta"), "acme, beta"),
}


@pytest.mark.parametrize("attack", ATTACKS)
async def test_an_attack_is_refused_and_the_caller_is_told_nothing(
    here: Door, attack: str, caplog: pytest.LogCaptureFixture
) -> None:
    make, why = ATTACKS[attack]
    token = make(here.issuer)
    with caplog.at_level(logging.INFO, logger=identities.__name__):
        assert await here.says(token) == identities.UNKNOWN
    assert why in caplog.text  # who runs the platform is told
    assert not token or token not in caplog.text
    assert await here.says(here.issuer.token()) == ""


async def test_a_tenant_that_is_suspended_is_refused_at_once(here: Door) -> None:
    token = here.issuer.token()
    assert await here.says(token) == ""
    here.load(here.issuer.entry(enabled=False))
    assert await here.says(token) == identities.SUSPENDED
    with pytest.raises(roles.Denied):
        await here.keeper.identity(token)


async def test_tenants_that_were_not_read_for_long_let_nobody_in(here: Door) -> None:
    here.later(HOUR * 401)
    assert await here.says(here.issuer.token()) == identities.UNSURE


async def test_an_unknown_key_has_the_keys_read_once_in_a_cooldown(
    here: Door,
) -> None:
    issuer = here.issuer
    assert await here.says(issuer.token()) == ""
    flood = [
        jwt.encode(
            claims_of(issuer.token()), rsa_key(1), "RS256", headers={"kid": f"k{n}"}
        )
        for n in range(20)
    ]
    for _ in range(3):
        said = await asyncio.gather(*map(here.says, flood))
        assert set(said) == {identities.UNKNOWN}
        assert await here.says(issuer.token()) == ""
    assert issuer.asked == 1  # the cooldown of the first reading
    here.later(keys.COOLDOWN)
    await asyncio.gather(*map(here.says, flood))
    assert issuer.asked == 2
    # Who claims to be of nobody here has nothing read at all.
    here.later(keys.COOLDOWN)
    assert await here.says(issuer.token("gamma")) == identities.UNKNOWN
    assert issuer.asked == 2


async def test_keys_are_rotated_under_load_and_nobody_is_refused(here: Door) -> None:
    issuer, refused, stop = here.issuer, [], False
    calls = 0

    async def caller() -> None:
        nonlocal calls
        while not stop:
            refused.append(await here.says(issuer.token()))
            calls += 1
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as group:
        for _ in range(8):
            group.create_task(caller())
        for number in range(4):
            at = calls
            while calls < at + 24:
                await asyncio.sleep(0)
            here.later(keys.COOLDOWN)
            issuer.rotate(f"key-{number}")
        stop = True
    assert set(refused) == {""}
    assert issuer.asked <= 5
    # The first is not shown any more: after a quarter of an hour it is no key.
    old = jwt.encode(
        claims_of(issuer.token()), rsa_key(0), "RS256", headers={"kid": "first"}
    )
    assert await here.says(old) == ""
    del issuer.shown["first"]
    here.later(keys.FRESH)
    assert await here.says(old) == identities.UNKNOWN


async def test_keys_that_cannot_be_read_again_are_kept_for_a_day(here: Door) -> None:
    issuer = here.issuer
    token = issuer.token(exp=now() + 10**6)
    assert await here.says(token) == ""
    issuer.status = 500
    for _ in range(3):
        here.later(keys.FRESH)
        assert await here.says(token) == ""
    assert issuer.asked >= 2
    # A key that came meanwhile is not known: that is nobody's fault.
    issuer.rotate("second")
    assert await here.says(issuer.token()) == identities.UNSURE
    here.later(keys.KEPT - 3 * keys.FRESH)
    assert await here.says(token) == identities.UNSURE
    issuer.status = 200
    here.later(keys.COOLDOWN)
    assert await here.says(token) == ""
    assert await here.says(issuer.token()) == ""


async def test_an_issuer_that_hangs_holds_up_nobody_who_was_let_in_before(
    here: Door,
) -> None:
    issuer = here.issuer
    token = issuer.token(exp=now() + 10**6)
    assert await here.says(token) == ""
    issuer.status = 500
    here.later(keys.FRESH)
    assert await here.says(token) == ""
    issuer.held = asyncio.Event()
    here.later(keys.COOLDOWN)
    async with asyncio.timeout(keys.DEADLINE / 2):
        assert await here.says(token) == ""  # while it is asked


async def test_who_hangs_up_does_not_end_the_reading_for_others(here: Door) -> None:
    issuer = here.issuer
    issuer.held = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        first = group.create_task(here.says(issuer.token()))
        second = group.create_task(here.says(issuer.token()))
        while not issuer.asked:
            await asyncio.sleep(0)
        first.cancel()
        issuer.held.set()
        assert await second == ""
    assert issuer.asked == 1


async def test_an_issuer_vouches_for_its_own_tenants_only(
    here: Door, tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    async with Issuer(tmp_path / "other").serving() as other:
        other.keys = other.shown = {"first": rsa_key(1)}
        here.keys._ca = here.issuer.authority + other.authority
        here.load(here.issuer.entry("acme"), other.entry("beta"))
        assert await here.says(here.issuer.token("acme")) == ""
        assert await here.says(other.token("beta")) == ""
        for bad in (
            other.token("acme"),
            other.token("acme", iss=here.issuer.url),
            here.issuer.token("beta"),
            here.issuer.token("beta", iss=other.url),
        ):
            assert await here.says(bad) == identities.UNKNOWN


@pytest.mark.parametrize("location", ["http://localhost:1/keys", "", "/loop"])
async def test_keys_come_by_https_and_by_no_way_to_http(
    here: Door, location: str, caplog: pytest.LogCaptureFixture
) -> None:
    issuer = here.issuer
    issuer.status, issuer.location = 302, location
    with caplog.at_level(logging.WARNING):
        assert await here.says(issuer.token()) == identities.UNSURE
    expected = {"": "answers 302", "/loop": "answers 404"}
    assert expected.get(location, "by https only") in caplog.text


@pytest.mark.parametrize(
    "keys", ["https://a..b/keys", "https://localhost/a b\n", "https://localhost/\u043a"]
)
async def test_an_address_that_cannot_be_asked_is_one_tenants_trouble(
    here: Door, keys: str
) -> None:
    issuer = here.issuer
    here.load(issuer.entry("acme", oidc={"jwksEndpoint": keys}), issuer.entry("beta"))
    assert await here.says(issuer.token("acme")) == identities.UNSURE
    assert await here.says(issuer.token("beta")) == ""


async def test_a_way_from_https_to_https_is_followed(here: Door) -> None:
    url = here.issuer.url
    here.load(here.issuer.entry(oidc={"jwksEndpoint": f"{url}/moved"}))
    assert await here.says(here.issuer.token()) == ""


async def test_an_issuer_whose_certificate_nobody_vouches_for_has_no_keys(
    here: Door,
) -> None:
    here.keys._ca = None  # whom the system trusts
    assert await here.says(here.issuer.token()) == identities.UNSURE


async def test_one_provider_vouches_for_the_users_of_all_tenants(
    tmp_path: Path,
) -> None:
    async with door(tmp_path) as here:
        url = here.issuer.url
        one = provider(issuer=url, keys=f"{url}/keys", audience="vmafx")
        registry = Registry(
            home="vmafx-home", roots=Roots(("/clips/{tenant}",)), provider=one
        )
        keeper = Doorkeeper(registry, here.keys, now=lambda: datetime.now(UTC))
        token = here.issuer.token("delta", "vmafx:admin", "vmafx:root")
        found = await keeper.identity(token)
        assert (found.tenant, found.namespace) == ("delta", "vmafx-delta")
        assert found.roles == {"vmafx:admin"}
        assert registry.roots("delta").allowed == ("/clips/delta",)
        for bad in ("../etc", "A", "home", ""):  # the last two are no one's namespace
            if bad == "home":
                assert (await keeper.identity(here.issuer.token(bad))).namespace == ""
                continue
            with pytest.raises(Unauthenticated):
                await keeper.identity(here.issuer.token(bad))


async def test_a_call_that_goes_on_has_to_prove_itself_again(here: Door) -> None:
    guard = Guard(roles.Everybody(), namespace="home", tenants=here.keeper)
    with pytest.raises(LookupError):
        _ = guard.identity  # of no call
    await guard.check(f"{SERVICE}/StreamJobs", here.issuer.token())
    assert guard.identity.tenant == "acme"
    assert await guard.reaches("vmafx-acme")
    for other in ("home", "vmafx-beta", "elsewhere", ""):
        assert not await guard.reaches(other)
    await guard.recheck()
    here.load(here.issuer.entry(enabled=False))
    with pytest.raises(roles.Denied):
        await guard.recheck()


def test_a_role_opens_the_methods_of_the_table_and_no_others() -> None:
    every = ("reader", "writer", "admin", "node")
    for method, needed in roles.METHODS.items():
        names = {role.name for role in needed}
        for role in every:
            if role in names:
                roles.check_names({f"vmafx:{role}"}, method)
            else:
                with pytest.raises(roles.Denied, match=needed[0].name):
                    roles.check_names({f"vmafx:{role}", role}, method)
    with pytest.raises(roles.Denied, match="nobody"):
        roles.check_names({f"vmafx:{role}" for role in every}, f"{SERVICE}/Unlisted")


def jwks(*found: Any) -> bytes:
    return json.dumps({"keys": found}).encode()


def test_only_public_keys_for_signatures_of_a_sane_size_are_used() -> None:
    small = rsa.generate_private_key(public_exponent=65537, key_size=1024)
    wide = ec.generate_private_key(ec.SECP384R1())
    as_rsa, as_ec = jwt.algorithms.RSAAlgorithm, jwt.algorithms.ECAlgorithm
    good = as_rsa.to_jwk(rsa_key(0).public_key(), as_dict=True)
    for bad in (
        as_rsa.to_jwk(small.public_key(), as_dict=True),
        as_rsa.to_jwk(rsa_key(0), as_dict=True),  # with its private part
        as_ec.to_jwk(wide.public_key(), as_dict=True),
        {"kty": "oct", "k": "c2VjcmV0", "alg": "HS256"},
        {**good, "use": "enc"},
        {**good, "alg": "RS512"},
        {**good, "key_ops": ["encrypt"]},
        {**good, "kid": 7},
        {**good, "n": "!"},
        {"kty": "RSA"},
        "text",
    ):
        assert keys.parsed(jwks(bad)) == ()
    [found] = keys.parsed(jwks("text", {**good, "kid": "a"}))
    assert (found.id, found.algorithm) == ("a", "RS256")
    assert len(keys.parsed(jwks(*[good] * 100))) == keys.MOST_KEYS
    for broken in (b"", b"[]", b'{"keys": 3}', b"<html>", b'{"a": []}'):
        with pytest.raises(keys.NoKeys):
            keys.parsed(broken)


def test_what_a_stranger_wrote_is_shown_short_and_on_one_line() -> None:
    assert len(tokens.shown("x\n" * 1000)) <= 64
    assert "\n" not in tokens.shown("a\nb")
