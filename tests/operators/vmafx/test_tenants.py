"""What belongs to whom: a registry of tenants, and where it is read from."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as some

from trimtab.client import ConfigError
from trimtab.operators.vmafx.problems import BadInput
from trimtab.operators.vmafx.roots import Roots
from trimtab.operators.vmafx.shares import Share
from trimtab.operators.vmafx.tenancy import reading
from trimtab.operators.vmafx.tenancy.admitting import Admitting, TooMany
from trimtab.operators.vmafx.tenancy.judging import Entry, judged, places_of
from trimtab.operators.vmafx.tenancy.kinds import VmafxTenantSpec
from trimtab.operators.vmafx.tenancy.opening import Tenancy, provider
from trimtab.operators.vmafx.tenancy.reading import NotRead, Reader
from trimtab.operators.vmafx.tenancy.registry import REFRESH, STALE, Registry
from trimtab.testing import eventually

OIDC = {"issuer": "https://id.example", "jwksEndpoint": "https://id.example/keys"}


def entry(tenant: str, name: str = "", /, **changes: Any) -> Entry:
    oidc = {**OIDC, **changes.pop("oidc", {})}
    plain = {"tenantId": tenant, "oidc": oidc, **changes}
    return Entry(name or tenant, msgspec.convert(plain, VmafxTenantSpec))


def registry(*entries: Entry, roots: tuple[str, ...] = ()) -> Registry:
    made = Registry(home="home", roots=Roots(roots))
    made.load(entries, now=0.0)
    return made


ids = some.sampled_from(["acme", "beta", "gamma", "A"])
places = some.lists(some.sampled_from(["n1", "n2", "n3", "home"]), max_size=3)


@given(some.lists(some.tuples(ids, places), max_size=6))
def test_a_namespace_has_one_tenant_at_most_and_it_is_one_that_claims_it(
    wished: list[tuple[str, list[str]]],
) -> None:
    entries = [
        entry(id, f"t{n}", namespaces=found) for n, (id, found) in enumerate(wished)
    ]
    made = registry(*entries)
    for place in ("n1", "n2", "n3", "home", "vmafx-acme", "elsewhere"):
        claiming = [each.spec for each in entries if place in places_of(each.spec)]
        tenant = made.tenant_of(place)
        if len(claiming) != 1:
            assert tenant == ""
        if tenant:
            assert [spec.tenantId for spec in claiming] == [tenant]
        elif claiming:
            assert made.roots_in(place) == Roots()


def test_of_two_with_one_id_neither_is_served() -> None:
    verdicts = judged([entry("acme", "one"), entry("acme", "two"), entry("beta")])
    assert [each.reason for each in verdicts] == [
        "IdTakenTwice",
        "IdTakenTwice",
        "Served",
    ]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"oidc": {"jwksEndpoint": "http://id.example/keys"}}, "by https only"),
        ({"oidc": {"jwksEndpoint": "https://a:b@id.example/"}}, "no password"),
        ({"oidc": {"jwksEndpoint": "https://[x"}}, "is no address"),
        ({"oidc": {"issuer": ""}}, "cannot be empty"),
        ({"oidc": {"tenantClaim": ""}}, "cannot be empty"),
        ({"scoring": {"roots": ["clips"]}}, "neither a whole path nor an address"),
        ({"quota": {"weight": 0}}, "a weight at least one"),
    ],
)
def test_a_tenant_that_is_wrong_is_told_so_and_lets_nobody_in(
    changes: dict[str, Any], said: str
) -> None:
    wrong = entry("acme", **changes)
    [verdict] = judged([wrong])
    assert verdict.reason == "NotValid"
    assert said in verdict.message
    made = registry(wrong, entry("beta"))
    assert made.candidates("https://id.example")[0].tenantId == "beta"
    assert made.tenant_of("vmafx-acme") == ""
    with pytest.raises(ConfigError, match="1 of 2 tenants cannot be served"):
        made.load([wrong, entry("beta")], now=0.0, strict=True)


def test_roots_are_the_tenants_own_and_the_placeholder_is_its_id(
    tmp_path: Path,
) -> None:
    mine, theirs = tmp_path / "acme", tmp_path / "beta"
    for folder in (mine, theirs):
        folder.mkdir()
        (folder / "clip.mp4").touch()
    (mine / "link.mp4").symlink_to(theirs / "clip.mp4")
    (mine / "folder").symlink_to(theirs)
    special = entry("gamma", scoring={"roots": ["/films/{tenant}"]})
    made = registry(
        entry("acme"), entry("beta"), special, roots=(f"{tmp_path}/{{tenant}}",)
    )
    roots = made.roots("acme")
    roots.check(str(mine / "clip.mp4"))
    for bad in (
        theirs / "clip.mp4",
        mine / "link.mp4",
        mine / "folder" / "clip.mp4",
        mine / ".." / "beta" / "clip.mp4",
        f"file://{mine}/%2e%2e/beta/clip.mp4",
    ):
        with pytest.raises(BadInput) as refused:
            roots.check(str(bad))
        assert "gamma" not in str(refused.value)
    assert made.roots("gamma").allowed == ("/films/gamma",)
    assert made.roots("").allowed == ()  # a placeholder is nobody's folder


def test_quotas_are_what_the_tenant_was_given() -> None:
    made = registry(
        entry("acme", quota={"maxRunning": 2, "maxPending": 3, "weight": 5}),
        entry("beta", sharesNodes=True),
    )
    assert made.share_of("acme") == Share(weight=5, running=2)
    assert made.share_of("unknown") == Share()
    assert (made.most_pending("acme"), made.most_pending("beta")) == (3, None)
    assert made.shares_nodes("beta")
    assert not made.shares_nodes("acme")


def test_nobody_gets_beyond_its_quota_however_many_ask_at_once() -> None:
    made = registry(entry("acme", quota={"maxPending": 3}))
    waiting = {"acme": 1}
    admitting = Admitting(made, lambda tenant: waiting.get(tenant, 0))
    with admitting.one("acme"), admitting.one("acme"):
        with pytest.raises(TooMany, match="3 jobs of the caller may wait"):
            with admitting.one("acme"):
                pass
        with admitting.one("other"):
            pass
    assert admitting.has_room("acme")


FILE = """
tenants:
  - tenantId: acme
    oidc: {issuer: https://id.example, jwksEndpoint: https://id.example/keys}
    namespaces: [video]
  - tenantId: beta
    enabled: false
    oidc: {issuer: https://id.example, jwksEndpoint: https://id.example/keys}
"""


def test_a_file_has_tenants_and_nothing_that_nobody_knows() -> None:
    acme, beta = reading.parsed(FILE.encode(), "file")
    assert (acme.spec.namespaces, beta.spec.enabled) == (["video"], False)
    for bad, said in (
        (FILE.replace("enabled", "enabeld"), "not valid: enabeld is no field"),
        (FILE.replace("issuer", "isuer"), "not valid: "),
        (FILE.replace("video", "{}"), "not valid: Expected `str`"),
        ("tenants: 3", "no list below the word tenants"),
        ("[]", "no list below the word tenants"),
        ("", "no list below the word tenants"),
        ("tenants: [", "neither YAML nor JSON"),
    ):
        with pytest.raises(NotRead, match=said):
            reading.parsed(bad.encode(), "file")


async def test_the_start_is_strict_and_what_comes_later_is_lenient(
    tmp_path: Path,
) -> None:
    file = tmp_path / "tenants.yaml"
    made = Registry(home="home", roots=Roots())
    changes: list[int] = []
    reader = Reader(
        made,
        reading.from_file(file),
        changed=lambda: changes.append(len(made.verdicts)),
    )
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        await reader.start()
    file.write_text(FILE.replace("https://id.example/keys", "http://id.example/keys"))
    with pytest.raises(ConfigError, match="2 of 2 tenants cannot be served"):
        await reader.start()
    assert made.is_stale(asyncio.get_running_loop().time())
    file.write_text(FILE)
    await reader.start()
    async with asyncio.TaskGroup() as group:
        running = group.create_task(reader.run())
        wrong = FILE.replace("https://id.example/keys", "http://id.example/keys", 1)
        file.write_text(wrong)
        reader.stir()
        await eventually(lambda: made.tenant_of("video") == "")
        assert made.tenant_of("vmafx-beta") == "beta"
        file.write_text("nonsense")
        reader.stir()
        reader.stir()
        file.write_text(FILE)
        reader.stir()
        await eventually(lambda: made.tenant_of("video") == "acme")
        running.cancel()
    assert changes == [2, 2, 2]  # what is as it was is no change


def test_what_was_read_too_long_ago_is_not_believed() -> None:
    made = registry(entry("acme"))
    assert not made.is_stale(STALE * REFRESH)
    assert made.is_stale(STALE * REFRESH + 0.001)


def test_there_is_one_source_of_tenants() -> None:
    one = provider(issuer="https://id.example", keys="https://id.example/keys")
    with pytest.raises(ConfigError, match="name one of both"):
        Tenancy(file=Path("x"), provider=one)
    with pytest.raises(ConfigError, match="by https only"):
        provider(issuer="https://id.example", keys="http://id.example/keys")
    with pytest.raises(ConfigError, match="an issuer and an address"):
        provider(issuer="", keys="https://id.example/keys")


@given(some.text(max_size=70))
def test_of_a_provider_every_id_that_can_be_one_has_its_own_namespace(
    name: str,
) -> None:
    one = provider(issuer="https://id.example", keys="https://id.example/keys")
    made = Registry(home="vmafx-home", roots=Roots(), provider=one)
    place = made.place(name)
    assert place in ("", f"vmafx-{name}")
    assert not place or made.tenant_of(place) == name
    assert made.tenant_of("vmafx-home") == made.tenant_of("default") == ""
