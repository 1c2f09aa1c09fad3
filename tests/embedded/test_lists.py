"""Laws of lists: which state, how much of it, and what is refused.

Every expectation here is what a real kube-apiserver answers; the same tests run there.
"""

from __future__ import annotations

from datetime import UTC, datetime
from random import Random

import msgspec
import pytest

from tests.embedded.apis import asked
from tests.embedded.asking import Asker
from tests.embedded.asking import ask as ask
from tests.embedded.objects import labelled
from trimtab.embedded.api import Api
from trimtab.embedded.store import Store
from trimtab.embedded.tokens import Tokens

MOMENT = datetime(2030, 1, 1, tzinfo=UTC)
NUMBER = "strconv.ParseUint: parsing"
TOKEN = "continue key is not valid: "


class Shelf(msgspec.Struct, frozen=True):
    """Three ConfigMaps of which the middle one was deleted, and what happened when."""

    path: str
    old: str
    current: str
    token: str

    def filled(self, query: str) -> str:
        words = {"OLD": self.old, "CURRENT": self.current, "TOKEN": self.token}
        for word, value in words.items():
            query = query.replace(word, value)
        return f"{self.path}?labelSelector=of&{query}"


@pytest.fixture
async def shelf(ask: Asker, namespace: str) -> Shelf:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    for name in ("a", "b", "c"):
        made = await ask("POST", path, labelled(name, of="shelf"))
        assert made.status == 201
    old = (await ask("GET", path)).obj["metadata"]["resourceVersion"]
    await ask("DELETE", f"{path}/b")
    page = (await ask("GET", f"{path}?labelSelector=of&limit=1")).obj["metadata"]
    return Shelf(path, old, page["resourceVersion"], page["continue"])


OLD, NOW = ["a", "b", "c"], ["a", "c"]


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("", NOW),
        ("resourceVersion=", NOW),
        ("resourceVersion=OLD", NOW),
        ("resourceVersion=CURRENT", NOW),
        ("resourceVersion=OLD&resourceVersionMatch=NotOlderThan", NOW),
        ("resourceVersion=OLD&resourceVersionMatch=Exact", OLD),
        ("resourceVersion=CURRENT&resourceVersionMatch=Exact", NOW),
        ("limit=1", ["a"]),
        ("limit=0", NOW),
        ("limit=-1", NOW),
        ("resourceVersion=OLD&limit=2", ["a", "b"]),
        ("resourceVersion=OLD&limit=2&resourceVersionMatch=NotOlderThan", NOW),
        ("resourceVersion=OLD&limit=2&resourceVersionMatch=Exact", ["a", "b"]),
        ("resourceVersion=CURRENT&limit=1", ["a"]),
        ("continue=TOKEN", ["c"]),
        ("continue=TOKEN&limit=1", ["c"]),
        ("continue=TOKEN&resourceVersion=0", ["c"]),
        ("continue=TOKEN&resourceVersion=0&limit=1", ["c"]),
    ],
)
async def test_a_list_is_of_the_state_that_was_asked_for(
    ask: Asker, shelf: Shelf, query: str, names: list[str]
) -> None:
    reply = await ask("GET", shelf.filled(query))
    assert (reply.status, reply.names) == (200, names)


@pytest.mark.parametrize("more", ["", "&limit=1", "&resourceVersionMatch=NotOlderThan"])
async def test_a_list_of_whatever_state_has_no_pages(
    ask: Asker, shelf: Shelf, more: str
) -> None:
    """Which state that is the server chooses: a real one may be a moment behind."""
    reply = await ask("GET", shelf.filled(f"resourceVersion=0{more}"))
    assert reply.names in (OLD, NOW)
    assert not reply.obj["metadata"].get("continue")


FORBIDDEN = "resourceVersionMatch: Forbidden: resourceVersionMatch"
UNLESS = f"{FORBIDDEN} is forbidden unless resourceVersion is provided"
CONTINUED = f"{FORBIDDEN} is forbidden when continue is provided"
EXACT = f'{FORBIDDEN} "exact" is forbidden for resourceVersion "0"'
SENDING = "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list"
UNKNOWN = (
    'resourceVersionMatch: Unsupported value: "bad": supported values: "Exact", '
    '"NotOlderThan", ""'
)


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("resourceVersionMatch=Exact", UNLESS),
        ("resourceVersionMatch=NotOlderThan&limit=1", UNLESS),
        ("resourceVersionMatch=bad", f"[{UNLESS}, {UNKNOWN}]"),
        ("resourceVersionMatch=Exact&continue=TOKEN", f"[{UNLESS}, {CONTINUED}]"),
        ("resourceVersionMatch=bad&resourceVersion=OLD", UNKNOWN),
        ("resourceVersionMatch=Exact&resourceVersion=0", EXACT),
        ("resourceVersionMatch=Exact&resourceVersion=OLD&continue=TOKEN", CONTINUED),
        ("sendInitialEvents=true", SENDING),
        ("sendInitialEvents=no", SENDING),
        (
            "sendInitialEvents=true&resourceVersionMatch=NotOlderThan",
            f"[{UNLESS}, {SENDING}]",
        ),
    ],
)
async def test_options_that_do_not_fit_together_are_invalid(
    ask: Asker, shelf: Shelf, query: str, text: str
) -> None:
    reply = await ask("GET", shelf.filled(query))
    status = reply.obj
    assert (reply.status, status["reason"]) == (422, "Invalid")
    assert status["message"] == f'ListOptions.meta.k8s.io "" is invalid: {text}'
    assert status["details"]["kind"] == "ListOptions"
    assert len(status["details"]["causes"]) == 1 + text.count("]")


@pytest.mark.parametrize("match", ["", "&resourceVersionMatch=Exact"])
@pytest.mark.parametrize("version", ["abc", "-1"])
async def test_a_version_that_is_no_number_is_refused(
    ask: Asker, shelf: Shelf, version: str, match: str
) -> None:
    value = f'resourceVersion: Invalid value: "{version}": {NUMBER} "{version}": '
    reply = await ask("GET", shelf.filled(f"resourceVersion={version}{match}"))
    assert (reply.status, reply.obj["reason"]) == (400, "BadRequest")
    text = f"invalid resource version: {value}invalid syntax"
    assert reply.obj["message"] == text
    one = await ask("GET", f"{shelf.path}/a?resourceVersion={version}")
    assert (one.status, one.obj["message"]) == (500, f"{value}invalid syntax")


async def test_a_token_and_a_version_exclude_each_other(
    ask: Asker, shelf: Shelf
) -> None:
    for version in ("OLD", "CURRENT", "abc"):
        reply = await ask(
            "GET", shelf.filled(f"continue=TOKEN&resourceVersion={version}")
        )
        assert (reply.status, reply.obj["reason"]) == (400, "BadRequest")
        text = "specifying resource version is not allowed when using continue"
        assert reply.obj["message"] == text


async def test_a_token_that_nobody_gave_out_is_refused(
    ask: Asker, shelf: Shelf
) -> None:
    reply = await ask("GET", shelf.filled("continue=garbage"))
    assert (reply.status, reply.obj["reason"]) == (400, "BadRequest")
    assert reply.obj["message"].startswith(f"invalid continue token: {TOKEN}")


@pytest.mark.parametrize("match", ["", "&resourceVersionMatch=NotOlderThan"])
async def test_a_version_from_the_future_times_out(
    ask: Asker, shelf: Shelf, match: str
) -> None:
    reply = await ask("GET", shelf.filled(f"resourceVersion=999999999{match}"))
    assert (reply.status, reply.obj["reason"]) == (504, "Timeout")
    text = "Timeout: Too large resource version: 999999999, current: "
    assert reply.obj["message"].startswith(text)
    [cause] = reply.obj["details"]["causes"]
    assert cause["reason"] == "ResourceVersionTooLarge"


@pytest.mark.parametrize("option", ["limit", "timeoutSeconds"])
async def test_an_option_that_is_no_number_is_refused(
    ask: Asker, shelf: Shelf, option: str
) -> None:
    reply = await ask("GET", f"{shelf.path}?{option}=x")
    assert reply.status == 400
    assert reply.obj["message"] == 'strconv.ParseInt: parsing "x": invalid syntax'


async def test_pages_are_of_one_state_while_writes_go_on(
    ask: Asker, namespace: str
) -> None:
    path = f"/api/v1/namespaces/{namespace}/secrets"
    for number in range(5):
        await ask("POST", path, {"metadata": {"name": f"s{number}"}})
    names, version, token = [], set(), ""
    remaining = []
    while True:
        page = await ask(
            "GET", f"{path}?limit=2&continue={token}" if token else f"{path}?limit=2"
        )
        names += page.names
        meta = page.obj["metadata"]
        version.add(meta["resourceVersion"])
        remaining.append(meta.get("remainingItemCount"))
        token = meta.get("continue", "")
        if not token:
            break
        await ask("DELETE", f"{path}/s4")
        await ask("POST", path, {"metadata": {"name": f"t{len(names)}"}})
    assert names == [f"s{number}" for number in range(5)]
    assert len(version) == 1
    assert remaining == [3, 1, None]


async def test_a_selected_list_does_not_say_how_much_is_left(
    ask: Asker, shelf: Shelf
) -> None:
    meta = (await ask("GET", shelf.filled("limit=1"))).obj["metadata"]
    assert meta["continue"]
    assert "remainingItemCount" not in meta


@pytest.mark.parametrize(
    ("selector", "names"),
    [
        ("fieldSelector=metadata.name=a", ["a"]),
        ("fieldSelector=metadata.name==c", ["c"]),
        ("fieldSelector=metadata.name!=a", ["c"]),
        ("labelSelector=of in (shelf,other)", ["a", "c"]),
        ("labelSelector=of notin (shelf)", []),
        ("labelSelector=of=shelf,of!=other", ["a", "c"]),
    ],
)
async def test_selectors_choose(
    ask: Asker, shelf: Shelf, selector: str, names: list[str]
) -> None:
    more = "" if selector.startswith("label") else "&labelSelector=of"
    reply = await ask("GET", f"{shelf.path}?{selector}{more}")
    chosen = [name for name in reply.names if name != "kube-root-ca.crt"]
    assert (reply.status, chosen) == (200, names)


@pytest.mark.parametrize(
    "selector",
    [
        "labelSelector=!!",
        "labelSelector=a in (",
        "labelSelector=a=b=c",
        "labelSelector=-a",
        "labelSelector=n>x",
        "fieldSelector=foo",
        "fieldSelector=foo=bar",
    ],
)
async def test_a_selector_that_makes_no_sense_is_refused(
    ask: Asker, shelf: Shelf, selector: str
) -> None:
    reply = await ask("GET", f"{shelf.path}?{selector}")
    assert (reply.status, reply.obj["reason"]) == (400, "BadRequest")


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/api/v1/pods", "PodList"),
        ("/apis/apps/v1/deployments", "DeploymentList"),
    ],
)
async def test_an_empty_list_has_no_items_but_a_list_of_them(
    ask: Asker, path: str, kind: str
) -> None:
    found = (await ask("GET", f"{path}?labelSelector=nobody=here")).obj
    assert found.pop("metadata").keys() == {"resourceVersion"}
    version = "apps/v1" if "apps" in path else "v1"
    assert found == {"kind": kind, "apiVersion": version, "items": []}


async def test_items_of_a_built_in_kind_do_not_say_what_they_are(
    ask: Asker, shelf: Shelf
) -> None:
    for item in (await ask("GET", shelf.filled(""))).obj["items"]:
        assert "kind" not in item
        assert "apiVersion" not in item


def test_a_list_whose_state_is_forgotten_can_be_gone_on_with() -> None:
    store = Store(None)
    api = Api(store, now=lambda: MOMENT, random=Random(1), tokens=Tokens())
    path = "/api/v1/namespaces/default/secrets"
    for name in ("a", "b", "c"):
        asked(api, "POST", path, {"metadata": {"name": name}})
    first = asked(api, "GET", f"{path}?limit=1").obj["metadata"]
    asked(api, "POST", path, {"metadata": {"name": "d"}})
    api.forget()
    reply = asked(api, "GET", f"{path}?limit=1&continue={first['continue']}")
    assert (reply.status, reply.obj["reason"]) == (410, "Expired")
    text = "The provided continue parameter is too old to display a consistent list"
    assert reply.obj["message"].startswith(text)
    token = reply.obj["metadata"]["continue"]
    assert asked(api, "GET", f"{path}?continue={token}").names == ["b", "c", "d"]
    exact = f"{path}?resourceVersion={first['resourceVersion']}"
    old = asked(api, "GET", f"{exact}&resourceVersionMatch=Exact")
    assert (old.status, old.obj["reason"]) == (410, "Expired")
    assert asked(api, "GET", exact).names == ["a", "b", "c", "d"]
    store.close()
