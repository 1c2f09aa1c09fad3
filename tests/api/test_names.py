"""Laws of names: the server's rules in the server's words, and names that always fit.

``data/names.json`` was recorded from k8s.io/apimachinery.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from base64 import b32encode
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from trimtab.api.names import (
    Check,
    InvalidName,
    check_custom_group,
    check_group,
    check_kind,
    check_label,
    check_label_1035,
    check_label_key,
    check_label_value,
    check_subdomain,
    fit,
    hashed,
    plural,
)

RECORDED = json.loads(
    (Path(__file__).parent / "data" / "names.json").read_text("utf-8")
)
CHECKS: dict[str, Check] = {
    "label": check_label,
    "subdomain": check_subdomain,
    "label_1035": check_label_1035,
    "label_key": check_label_key,
    "label_value": check_label_value,
}
limits = st.integers(18, 63)
words = st.one_of(st.text(), st.from_regex(r"[a-z0-9.-]{0,80}", fullmatch=True))


def problems(check: Check, value: str) -> list[str]:
    try:
        check(value)
    except InvalidName as error:
        return list(error.problems)
    return []


@pytest.mark.parametrize("name", CHECKS)
def test_a_check_finds_the_problems_that_the_server_finds_in_its_words(
    name: str,
) -> None:
    assert len(RECORDED["facts"]) > 50
    for fact in RECORDED["facts"]:
        assert problems(CHECKS[name], fact["input"]) == fact[name], fact["input"]


def test_an_invalid_name_is_an_error_that_says_what_and_why() -> None:
    with pytest.raises(ValueError, match=r"^The label key 'a/b/c' is not valid: a val"):
        check_label_key("a/b/c", what="The label key")
    with pytest.raises(
        ValueError, match=r"^The name 'a\.b' is not valid: must not con"
    ):
        check_label("a.b")
    with pytest.raises(ValueError, match=r"aaa\.\.\.' is not valid: must be no more"):
        check_label("a" * 10_000)


def test_checking_a_hostile_text_takes_no_time() -> None:
    before = time.process_time()
    for check in CHECKS.values():
        for text in (
            "a" * 100_000 + "_",
            "a-" * 50_000,
            "a." * 50_000 + "_",
            "/" * 9999,
        ):
            problems(check, text)
    problems(check_label_value, "\ud800" * 100)
    assert time.process_time() - before < 2


@pytest.mark.parametrize("kind", ["Website", "website", "VmafxJob", "CSINode", "A1"])
def test_a_kind_may_have_capitals(kind: str) -> None:
    check_kind(kind)


@pytest.mark.parametrize("kind", ["", "1Website", "Web_site", "Web-", "Web.Site", "Ä"])
def test_a_kind_is_otherwise_a_label(kind: str) -> None:
    with pytest.raises(ValueError, match="may have mixed case, but should otherwise"):
        check_kind(kind)


def test_only_the_group_of_a_custom_resource_needs_a_dot() -> None:
    check_custom_group("example.com")
    check_group("apps")
    with pytest.raises(ValueError, match="should be a domain with at least one dot"):
        check_custom_group("apps")
    for check in (check_group, check_custom_group):
        for group in ("", "Example.com", "example.com/v1", "-a.b"):
            with pytest.raises(ValueError, match="a lowercase RFC 1123 subdomain"):
                check(group)


def test_hashed_names_are_the_same_for_ever() -> None:
    # Objects in clusters bear these names: a change here would orphan them.
    assert hashed("web", "default", "site") == "web-nknv8hgbrhnhpqej"
    assert hashed("web") == "web-w8q85zfj9qgp7ha1"
    assert hashed("", "a") == "x-tjpfhrgt99zc3jyr"
    assert hashed("9 Äpfel", "ü") == "x9-pfel-8v3kpd1qykffvcq9"
    assert (
        hashed("A long prefix, cut to length", "x", limit=24)
        == "a-long-j8trxkdcvj3pwgck"
    )
    assert fit("a" * 64) == "a" * 46 + "-x4m4zrdg3x54a65r"


def test_the_hash_is_80_bits_of_sha256_over_the_parts_and_their_lengths() -> None:
    digest = hashlib.sha256(b"3:web7:default4:site").digest()[:10]
    letters = str.maketrans(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", "0123456789abcdefghjkmnpqrstvwxyz"
    )
    expected = b32encode(digest).decode().translate(letters)
    assert hashed("web", "default", "site") == f"web-{expected}"


@given(words, st.lists(words, max_size=3), limits)
def test_a_hashed_name_is_a_valid_label_within_its_limit(
    prefix: str, parts: list[str], limit: int
) -> None:
    name = hashed(prefix, *parts, limit=limit)
    assert len(name) <= limit
    assert problems(check_label, name) == []
    assert problems(check_label_1035, name) == []
    assert not name.endswith("-")
    assert name == hashed(prefix, *parts, limit=limit)


@given(st.lists(words, min_size=1, max_size=3), st.lists(words, min_size=1, max_size=3))
@example(["a", "bc"], ["ab", "c"])
@example(["a", ""], ["a"])
@example(["", "a"], ["a", ""])
@example(["a", "1:b"], ["a", "1", "b"])
@example(["Web"], ["web"])
@example(["a" * 80 + "x"], ["a" * 80 + "y"])
@example(["a-b"], ["a.b"])
def test_different_parts_give_different_names(
    left: list[str], right: list[str]
) -> None:
    assert (hashed(*left) == hashed(*right)) is (left == right)


def test_a_hundred_thousand_names_do_not_meet() -> None:
    assert len({hashed("w", str(n)) for n in range(100_000)}) == 100_000


def test_a_hashed_name_keeps_what_it_can_of_its_prefix() -> None:
    assert hashed("My Website!", "x").startswith("my-website-")
    assert hashed("--a__b--", "x").startswith("a-b-")
    assert hashed("2024", "x").startswith("x2024-")
    assert re.fullmatch(r"x-[0-9a-z]{16}", hashed("!", "x"))
    assert not re.search("[ilou]", hashed("", "x")[2:])


@given(words, limits)
def test_a_name_that_fits_stays_and_any_other_becomes_one(
    name: str, limit: int
) -> None:
    fitted = fit(name, limit=limit)
    assert problems(check_label, fitted) == []
    assert len(fitted) <= limit
    assert fit(fitted, limit=limit) == fitted
    if len(name) <= limit and not problems(check_label, name):
        assert fitted == name
    else:
        assert fitted == hashed(name, limit=limit) != name


@pytest.mark.parametrize("limit", [-1, 0, 17, 64, 253])
def test_a_limit_that_no_label_can_keep_is_refused_for_every_name(limit: int) -> None:
    for name in ("a", "a" * 100):
        with pytest.raises(ValueError, match=r"choose a limit from 18 to 63\.$"):
            fit(name, limit=limit)
        with pytest.raises(ValueError, match=r"choose a limit from 18 to 63\.$"):
            hashed(name, limit=limit)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("Website", "websites"),
        ("VmafxJob", "vmafxjobs"),
        ("AgenticSession", "agenticsessions"),
        ("ProjectSettings", "projectsettings"),
        ("WorkerPool", "workerpools"),
        ("Policy", "policies"),
        ("Proxy", "proxies"),
        ("Class", "classes"),
        ("Gateway", "gateways"),
        ("Status", "statuses"),
        ("Bus", "buses"),
        ("Alias", "aliases"),
        ("Analysis", "analyses"),
        ("Box", "boxes"),
        ("Batch", "batches"),
        ("Mesh", "meshes"),
        ("Index", "indices"),
        ("Person", "people"),
        ("Key", "keys"),
        ("Database", "databases"),
        ("Redis", "redis"),
        # What Kubernetes itself serves.
        ("Endpoints", "endpoints"),
        ("EndpointSlice", "endpointslices"),
        ("Ingress", "ingresses"),
        ("IngressClass", "ingressclasses"),
        ("IPAddress", "ipaddresses"),
        ("Lease", "leases"),
        ("LimitRange", "limitranges"),
        ("Namespace", "namespaces"),
        ("NetworkPolicy", "networkpolicies"),
        ("PodDisruptionBudget", "poddisruptionbudgets"),
        ("PriorityClass", "priorityclasses"),
        ("ReplicaSet", "replicasets"),
        ("ServiceCIDR", "servicecidrs"),
        ("StorageClass", "storageclasses"),
        ("CustomResourceDefinition", "customresourcedefinitions"),
    ],
)
def test_the_plural_of_a_kind_is_the_one_that_others_expect(
    kind: str, expected: str
) -> None:
    assert plural(kind) == expected


@given(st.from_regex(r"[A-Z][A-Za-z0-9]{0,40}", fullmatch=True))
def test_the_plural_of_every_kind_can_stand_in_a_url(kind: str) -> None:
    check_label_1035(plural(kind))
