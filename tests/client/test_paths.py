"""Paths: whatever is asked for, a request goes where it belongs and nowhere else."""

from __future__ import annotations

from urllib.parse import unquote

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from tests.client.faults import FaultServer
from tests.client.kinds import ConfigMap, Namespace, Website
from trimtab.api.resource import Info
from trimtab.client import Client
from trimtab.client.paths import path, query

nasty = st.text(alphabet="./\\%?#&;:@ \n\r\0ab~é\u2028\ud800", max_size=8)
texts = nasty | st.text(max_size=20)


def segments(made: str) -> list[str]:
    assert made.startswith("/")
    return made[1:].split("/")


@given(texts, texts, texts)
@example("..", "a", "b")
@example("a", "../../secrets/x", "b")
@example("a", "b", "../..")
@example("a", "%2e%2e", "b")
def test_a_name_stays_in_its_own_segment(
    namespace: str, name: str, subresource: str
) -> None:
    assume(namespace)
    info = ConfigMap.__resource__
    try:
        made = path(info, namespace=namespace, name=name, subresource=subresource)
    except ValueError:
        return
    found = segments(made)
    assert found[:3] == ["api", "v1", "namespaces"]
    assert unquote(found[3]) == namespace
    assert found[4] == "configmaps"
    assert unquote(found[5]) == name
    assert [unquote(part) for part in found[6:]] == subresource.split("/")
    for part in found:
        assert part not in ("", ".", "..")
        assert unquote(unquote(part)) == unquote(part)
        assert not set(part) & set("?#&; \\\n\r\0")
        assert part.isascii()


@given(texts, texts, texts, texts)
def test_no_part_of_a_kind_leads_out_of_its_place(
    group: str, version: str, plural: str, name: str
) -> None:
    info = Info(group=group, version=version, kind="X", plural=plural)
    try:
        made = path(info, name=name)
    except ValueError:
        return
    found = [unquote(part) for part in segments(made)]
    expected = ["apis", group, version] if group else ["api", version]
    assert found == [*expected, plural, name]


@pytest.mark.parametrize("bad", ["", ".", "..", "a/b", "/", "a%2fb", "../x"])
def test_what_cannot_be_a_name_is_refused_with_what_it_was_for(bad: str) -> None:
    with pytest.raises(ValueError, match="cannot be the name of a ConfigMap"):
        path(ConfigMap.__resource__, namespace="x", name=bad)


def test_the_places_of_things() -> None:
    maps, spaces = ConfigMap.__resource__, Namespace.__resource__
    assert path(maps) == "/api/v1/configmaps"
    assert path(maps, namespace="x") == "/api/v1/namespaces/x/configmaps"
    assert path(spaces, namespace="x", name="y") == "/api/v1/namespaces/y"
    made = path(Website.__resource__, namespace="x", name="a", subresource="status")
    root = "/apis/tests.trimtab.dev/v1/namespaces/x/websites/a"
    assert made == f"{root}/status"
    made = path(maps, namespace="x", name="system:a", subresource="proxy/b/c")
    assert made.endswith("/configmaps/system:a/proxy/b/c")


@given(st.lists(st.tuples(st.text(), st.text() | st.none() | st.booleans())))
def test_a_query_leaves_out_what_is_not_said(
    pairs: list[tuple[str, str | bool | None]],
) -> None:
    kept = [(key, value) for key, value in pairs if value not in (None, "")]
    words = {True: "true", False: "false"}
    assert query(pairs) == tuple(
        (key, words[value] if isinstance(value, bool) else str(value))
        for key, value in kept
    )


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=texts, value=st.text(alphabet="=&?#+% \nä\u2028\0x", max_size=10))
async def test_a_server_sees_exactly_what_was_asked_for(
    server: FaultServer, client: Client, name: str, value: str
) -> None:
    try:
        wanted = path(ConfigMap.__resource__, namespace="default", name=name)
    except ValueError:
        return
    await client.get(ConfigMap, name, resource_version=value or None)
    target = server.requests[-1].target
    assert target.partition("?")[0] == wanted
    _, _, asked = target.partition("?resourceVersion=")
    assert unquote(asked.replace("+", " ")) == value
