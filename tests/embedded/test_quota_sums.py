"""The sums of quotas follow the store: they are always what the objects take."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.embedded.apis import api_on, asked, settle
from trimtab.embedded.api import Api
from trimtab.embedded.quota import Quotas
from trimtab.embedded.store import Store

Plain = dict[str, Any]
PLACE = "/api/v1/namespaces/default"
HARD = {
    "pods": "3",
    "requests.cpu": "1",
    "services": "3",
    "services.nodeports": "3",
    "secrets": "2",
    "count/resourcequotas": "2",
    "requests.storage": "5Gi",
}
KINDS = ("pods", "services", "secrets", "persistentvolumeclaims")


def body(plural: str, name: str, size: int) -> Plain:
    spec: Plain = {}
    if plural == "pods":
        resources = {"requests": {"cpu": f"{size}00m"}}
        spec = {"containers": [{"name": "c", "image": "x", "resources": resources}]}
    elif plural == "services":
        kind = "NodePort" if size % 2 else "ClusterIP"
        ports = [{"name": f"p{index}", "port": 80 + index} for index in range(size)]
        spec = {"type": kind, "ports": ports}
    elif plural == "persistentvolumeclaims":
        resources = {"requests": {"storage": f"{size}Gi"}}
        spec = {"accessModes": ["ReadWriteOnce"], "resources": resources}
    return {"metadata": {"name": name}, **({"spec": spec} if spec else {})}


def limit(api: Api, name: str, hard: Plain) -> None:
    quota = {"metadata": {"name": name}, "spec": {"hard": hard}}
    assert asked(api, "POST", f"{PLACE}/resourcequotas", quota).status == 201


def used(api: Api, name: str) -> Plain:
    settle(api)
    found = asked(api, "GET", f"{PLACE}/resourcequotas/{name}").obj["status"]["used"]
    assert isinstance(found, dict)
    return found


steps = st.lists(
    st.tuples(
        st.sampled_from(("POST", "PUT", "DELETE")),
        st.sampled_from(KINDS),
        st.sampled_from("abc"),
        st.integers(min_value=1, max_value=6),
    ),
    max_size=15,
)


@settings(max_examples=5)
@given(steps)
def test_a_sum_is_what_the_objects_take_and_never_more_than_allowed(
    given_steps: list[tuple[str, str, str, int]],
) -> None:
    store = Store(None)
    api = api_on(store)
    limit(api, "q", HARD)
    for method, plural, name, size in given_steps:
        path = f"{PLACE}/{plural}" + ("" if method == "POST" else f"/{name}")
        if method == "DELETE":
            asked(api, method, f"{path}?gracePeriodSeconds=0")
        else:
            asked(api, method, path, body(plural, name, size))
    settle(api)  # a claim goes when nothing protects it any more
    fresh = Quotas(store, catalog=api.catalog)
    fresh.start()
    [quota] = fresh._quotas["default"].values()
    assert {key: str(value) for key, value in quota.used.items()} == used(api, "q")
    assert all(amount <= quota.hard[key] for key, amount in quota.used.items())
    store.close()


def test_what_was_refused_elsewhere_was_never_taken() -> None:
    api = api_on(Store(None))
    limit(api, "q", {"secrets": "2"})
    assert asked(api, "POST", f"{PLACE}/secrets", body("secrets", "a", 0)).status == 201
    again = asked(api, "POST", f"{PLACE}/secrets", body("secrets", "a", 0))
    assert again.obj["reason"] == "AlreadyExists"
    assert used(api, "q") == {"secrets": "1"}


def test_a_kind_that_comes_later_is_counted_from_then_on() -> None:
    api = api_on(Store(None))
    limit(api, "q", {"count/things.example.com": "1"})
    assert used(api, "q") == {}
    names = {"plural": "things", "kind": "Thing"}
    schema = {"openAPIV3Schema": {"type": "object"}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    crd = {
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": names,
            "versions": [version],
        },
    }
    crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    assert asked(api, "POST", crds, crd).status == 201
    assert used(api, "q") == {"count/things.example.com": "0"}
    path = "/apis/example.com/v1/namespaces/default/things"
    thing = {"apiVersion": "example.com/v1", "kind": "Thing"}
    made = asked(api, "POST", path, {**thing, "metadata": {"name": "a"}})
    assert made.status == 201, made.body
    refused = asked(api, "POST", path, {**thing, "metadata": {"name": "b"}})
    name = "count/things.example.com=1"
    assert refused.obj["message"] == (
        'things.example.com "b" is forbidden: exceeded quota: q, requested: '
        f"{name}, used: {name}, limited: {name}"
    )
