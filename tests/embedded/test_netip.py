"""Addresses are read as Go reads them, and refused in its words."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.embedded.netip import why_not_address, why_not_prefix

TEXTS = st.text("0123456789abf.:%/", max_size=20)
ADDRESSES = st.ip_addresses().map(str)


def is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


@given(TEXTS | ADDRESSES)
def test_a_text_is_refused_only_if_it_is_no_address(text: str) -> None:
    assert (why_not_address(text) == "") == is_address(text)


@given(st.ip_addresses(), st.integers(0, 200))
def test_a_prefix_is_no_longer_than_its_address(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address, bits: int
) -> None:
    fits = bits <= address.max_prefixlen
    assert (why_not_prefix(f"{address}/{bits}") == "") == fits


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("1.2.3", "IPv4 address too short"),
        ("1.02.3.4", "IPv4 field has octet with leading zero"),
        ("1.2.3.256", "IPv4 field has value >255"),
        ("1:2", "address string too short"),
        ("1::2::3", 'multiple :: in address (at ":3")'),
        ("::1:2:3:4:5:6:7:8", "the :: must expand to at least one field of zeros"),
        (
            "1:2:1.2.3.4",
            (
                "embedded IPv4 address must replace the final 2 fields of the address "
                '(at "1.2.3.4")'
            ),
        ),
        ("%eth0", "missing IPv6 address"),
        ("here", "unable to parse IP"),
    ],
)
def test_what_is_wrong_with_an_address_is_said(text: str, reason: str) -> None:
    assert why_not_address(text) == f'ParseAddr("{text}"): {reason}'
