"""Laws of the authorizer alone: what it reads off a request, and what it keeps."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from trimtab.embedded.rbac.attributes import Attributes, attributes_of
from trimtab.embedded.rbac.authorizer import Authorizer
from trimtab.embedded.rbac.index import BINDINGS, CLUSTER_BINDINGS, CLUSTER_ROLES, ROLES
from trimtab.embedded.rbac.rules import Rule, uncovered
from trimtab.embedded.requests import ApiRequest, User, target_of
from trimtab.embedded.store import Store

WORDS = ("namespaces", "pods", "status", "finalize", "watch", "proxy", "a", "", "log")
JANE = User("jane", ("crew",))

paths = st.lists(st.sampled_from(WORDS), max_size=7)
prefixes = st.sampled_from(["/api/v1/", "/apis/g.io/v1/", "/api/", "/apis/g.io/", "/"])


@given(prefixes, paths, st.sampled_from(["GET", "POST", "PUT", "PATCH", "DELETE"]))
def test_what_is_authorized_is_what_is_done(
    prefix: str, words: list[str], method: str
) -> None:
    path = prefix + "/".join(words)
    target = target_of(path)
    asked = attributes_of(ApiRequest(method=method, path=path, user=JANE))
    if target is None:
        return
    assert asked.is_resource
    assert (asked.group, asked.resource) == (target.group, target.resource)
    assert asked.name == target.name
    assert asked.subresource == target.subresource.partition("/")[0]
    assert target.namespace in ("", asked.namespace)
    assert (asked.verb == "watch") == target.watch


names = st.sampled_from(["one", "two"])
places = st.sampled_from(["", "here"])
subjects = st.lists(
    st.sampled_from([("User", "jane"), ("Group", "crew"), ("User", "joe")]), max_size=3
)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("role"), names, places, st.sampled_from(["get", "list"])),
        st.tuples(st.just("binding"), names, places, names, subjects),
        st.tuples(st.just("no role"), names, places),
        st.tuples(st.just("no binding"), names, places),
    ),
    max_size=12,
)


def _take(store: Store, step: Any) -> None:
    what, name, place, *rest = step
    role = f"{ROLES}{place}/" if place else CLUSTER_ROLES
    binding = f"{BINDINGS}{place}/" if place else CLUSTER_BINDINGS
    key = (role if "role" in what else binding) + name
    obj: dict[str, Any] = {"metadata": {"name": name, "namespace": place}}
    if what.startswith("no "):
        if store.get(key) is not None:
            store.delete(key)
        return
    if what == "role":
        pods = {"apiGroups": [""], "resources": ["pods"]}
        obj["rules"] = [{"verbs": [rest[0]], **pods}]
    else:
        kind = "Role" if place else "ClusterRole"
        obj["roleRef"] = {"kind": kind, "name": rest[0]}
        obj["subjects"] = [{"kind": kind, "name": name} for kind, name in rest[1]]
    store.put(key, msgspec.json.encode(obj))


@given(steps)
def test_the_index_that_followed_is_the_one_made_anew(taken: list[Any]) -> None:
    store = Store(None)
    followed = Authorizer(store)
    for step in taken:
        _take(store, step)
    anew = Authorizer(store)
    for place in ("", "here", "there"):
        for verb in ("get", "list"):
            asked = Attributes(verb=verb, resource="pods", namespace=place)
            assert followed.may(JANE, asked) == anew.may(JANE, asked)
        assert followed.rules(JANE, place) == anew.rules(JANE, place)
    store.close()


some = st.lists(st.sampled_from(["a", "b", "*"]), min_size=1, max_size=2).map(tuple)
rules = st.builds(
    Rule,
    verbs=some,
    groups=some,
    resources=st.sampled_from([("a",), ("a/s",), ("*/s",), ("*",)]),
    names=st.sampled_from([(), ("n",), ("n", "m")]),
)
actions = st.builds(
    Attributes,
    verb=st.sampled_from("ab"),
    group=st.sampled_from("ab"),
    resource=st.sampled_from("ab"),
    subresource=st.sampled_from(["", "s"]),
    name=st.sampled_from(["", "n", "m"]),
)


@given(st.lists(rules, max_size=3), st.lists(rules, max_size=3), actions)
def test_whoever_has_all_that_rules_allow_may_do_all_they_allow(
    held: list[Rule], wanted: list[Rule], asked: Attributes
) -> None:
    if not uncovered(held, wanted) and any(each.allows(asked) for each in wanted):
        assert any(each.allows(asked) for each in held)
