"""Reading: forms of answers, selectors, pages, versions, and what is not there."""

from __future__ import annotations

from urllib.parse import quote

from tests.differential.kinds import sample, typed
from tests.differential.scenario import GROUP, YAML, Run, scenario
from tests.differential.wire import JSON

TABLE = f"{JSON};as=Table;v=v1;g=meta.k8s.io"
PARTIAL = f"{JSON};as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
PARTIALS = f"{JSON};as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"


@scenario
def forms_of_an_object_and_of_a_list(do: Run) -> None:
    for plural in ("configmaps", "things", "pods", "services", "deployments"):
        do.create(plural, sample(plural, labels={"mine": "yes"}))
        some = f"{plural}?labelSelector=mine"
        for accept in (TABLE, PARTIAL, PARTIALS, YAML, "*/*", "", f"{TABLE},{JSON}"):
            do("GET", f"{plural}/a", accept=accept)
            do("GET", some, accept=accept)
        for include in ("None", "Metadata", "Object", "Odd", ""):
            do("GET", f"{some}&includeObject={include}", accept=TABLE)
        none = f"{plural}?labelSelector=nothing"
        for accept in (JSON, TABLE, PARTIALS, YAML):
            do("GET", none, accept=accept)
        do("POST", plural, sample(plural, "b"), accept=TABLE)
        do("POST", plural, sample(plural, "c"), accept=PARTIAL)
        do("POST", plural, sample(plural, "d"), accept=YAML)
        do("DELETE", f"{plural}/b", accept=TABLE)
        do("DELETE", f"{plural}/c", accept=PARTIAL)


@scenario
def forms_that_nobody_can_make(do: Run) -> None:
    for plural in ("configmaps", "things"):
        do.create(plural, sample(plural))
        for accept in (
            "text/html",
            "application/xml",
            "image/*",
            "text/html, */*",
            f"{JSON};as=Table;v=v9;g=meta.k8s.io",
            f"{JSON};as=Odd;v=v1;g=meta.k8s.io",
            f"{JSON};as=Table;v=v1;g=odd",
            f"{JSON};as=Table",
            f"{JSON};charset=utf-8",
            f"{JSON};q=0.1,{YAML};q=0.9",
            "application/*",
            "nonsense",
            ";;",
            f"{JSON};stream=watch",
        ):
            do("GET", f"{plural}/a", accept=accept)
            do("GET", f"{plural}?labelSelector=nothing", accept=accept)
            do("POST", plural, sample(plural), accept=accept)
    for path in ("/api", "/apis", "/api/v1", f"/apis/{GROUP}/v1"):
        for accept in ("text/html", YAML, "*/*"):
            do("GET", path, accept=accept)


@scenario
def content_types_of_bodies(do: Run) -> None:
    text = b"metadata:\n  name: y1\n"
    for plural in ("configmaps", "things"):
        do("POST", plural, text, media=YAML)
        body = {**typed(plural), "metadata": {"name": "j1"}}
        for media in (
            "text/plain",
            "application/xml",
            f"{JSON}; charset=utf-8",
            f"{JSON};;",
            "application/octet-stream",
            "nonsense",
            "application/merge-patch+json",
            "APPLICATION/JSON",
            "*/*",
        ):
            do("POST", plural, body, media=media)
            do("PUT", f"{plural}/j1", body, media=media)
            do("PATCH", f"{plural}/j1", body, media=media)
            do("DELETE", f"{plural}/j1", {}, media=media)


@scenario
def pretty_answers(do: Run) -> None:
    for plural in ("configmaps", "things"):
        do.create(plural, sample(plural))
        for query in ("?pretty=true", "?pretty=1", "?pretty", "?pretty=false", ""):
            reply = do("GET", f"{plural}/a{query}")
            do.story[-1]["lines"] = reply.body.count(b"\n") > 2
        for agent in ("curl/8.0", "Wget/1", "Mozilla/5.0 (X)"):
            reply = do("GET", f"{plural}/a", agent=agent)
            do.story[-1]["lines"] = reply.body.count(b"\n") > 2
        reply = do("GET", f"{plural}/none?pretty=true")
        do.story[-1]["lines"] = reply.body.count(b"\n") > 2


@scenario
def label_selectors(do: Run) -> None:
    for plural in ("secrets", "things"):
        for name, labels in (
            ("a", {"app": "x", "tier": "1"}),
            ("b", {"app": "y", "tier": "2"}),
            ("c", {"app": ""}),
            ("d", {}),
        ):
            do.prepare("POST", plural, sample(plural, name, labels=labels))
        for selector in (
            "app",
            "!app",
            "app=x",
            "app==x",
            "app!=x",
            "app in (x,y)",
            "app notin (x)",
            "app in ()",
            "app in (x,)",
            "app=x,tier=1",
            "app=,tier!=1",
            "tier>1",
            "tier<2",
            "tier>x",
            " app = x ",
            ",",
            "app,",
            "=x",
            "app=x=y",
            "app in x",
            "app in (x",
            "a b",
            "app=x y",
            "APP/x/y=1",
            "app=" + "v" * 64,
            "!!app",
            "app notin (x),!tier",
        ):
            found = do("GET", f"{plural}?labelSelector={quote(selector)}")
            do.story[-1]["body"] = _shortly(do.story[-1]["body"])
            assert found.status


@scenario
def field_selectors(do: Run) -> None:
    cases = {
        "secrets": ("type=Opaque", "type!=Opaque", "metadata.namespace=x", "data=1"),
        "pods": ("status.phase=Pending", "spec.nodeName=", "status.phase!=Running,"),
        "things": ("spec.color=red", "spec.color!=red", "spec.text=a", "spec.color="),
        "leases": ("metadata.name in (a)", "metadata.name>a", "spec=1"),
        "strangers": ("metadata.name=a", "metadata.name=a,metadata.name=b"),
    }
    for plural, selectors in cases.items():
        do.prepare("POST", plural, sample(plural))
        do.prepare("POST", plural, sample(plural, "b"))
        for selector in (
            *selectors,
            "metadata.name=a",
            "metadata.name!=a",
            "metadata.name==b",
            "metadata.name",
            "metadata.uid=1",
            "=",
            "a=b=c",
            r"metadata.name=a\,b",
            r"metadata.name=a\x",
            f"metadata.namespace={do.namespace},metadata.name=a",
        ):
            do("GET", f"{plural}?fieldSelector={quote(selector)}")
            do.story[-1]["body"] = _shortly(do.story[-1]["body"])


def _shortly(body: object) -> object:
    """Only the names of a list, as its objects are compared elsewhere."""
    if isinstance(body, dict) and isinstance(body.get("items"), list):
        names = [each["metadata"]["name"] for each in body["items"]]
        return {**body, "items": names}
    return body


@scenario
def lists_in_pages(do: Run) -> None:
    for plural in ("secrets", "things"):
        for number in range(7):
            labels = {"odd": str(number % 2)}
            do.prepare("POST", plural, sample(plural, f"a{number}", labels=labels))
        for query in ("limit=3", "limit=3&labelSelector=odd%3D1", "limit=7", "limit=0"):
            page = do.get(f"{plural}?{query}")
            while token := page["metadata"].get("continue"):
                page = do.get(f"{plural}?{query}&continue={quote(token)}")
        for query in ("limit=-1", "limit=x", "continue=x", "continue=e30", "limit=1.5"):
            do("GET", f"{plural}?{query}")
        token = do.get(f"{plural}?limit=2")["metadata"]["continue"]
        for more in (
            "resourceVersion=1",
            "resourceVersion=0",
            "resourceVersionMatch=Exact",
            "resourceVersion=1&resourceVersionMatch=Exact",
            "labelSelector=odd%3D1&limit=1",
            "limit=0",
        ):
            do("GET", f"{plural}?continue={quote(token)}&{more}")
        do.prepare("POST", plural, sample(plural, "a11"))
        do.prepare("DELETE", f"{plural}/a3")
        do.get(f"{plural}?limit=9&continue={quote(token)}")


@scenario
def versions_of_lists_and_objects(do: Run) -> None:
    for plural in ("secrets", "things"):
        first = do.create(plural, sample(plural))["metadata"]["resourceVersion"]
        second = do.create(plural, sample(plural, "b"))["metadata"]["resourceVersion"]
        do("GET", f"{plural}?resourceVersion=999999999&timeoutSeconds=1")
        for version in ("", "0", first, second, "x", "-1", "1.5"):
            for match in ("", "Exact", "NotOlderThan", "Odd"):
                do(
                    "GET",
                    f"{plural}?timeoutSeconds=1&resourceVersion={version}"
                    f"&resourceVersionMatch={match}",
                )
                _hide(do, first, second)
            do("GET", f"{plural}?limit=1&resourceVersion={version}&timeoutSeconds=1")
            _hide(do, first, second)
            do("GET", f"{plural}/a?resourceVersion={version}")
            _hide(do, first, second)


def _hide(do: Run, *versions: str) -> None:
    """What was asked, without versions that differ from server to server."""
    for number, version in enumerate(versions):
        asked = do.story[-1]["asked"]
        do.story[-1]["asked"] = asked.replace(f"={version}", f"=R{number}")


@scenario
def what_is_not_there(do: Run) -> None:
    for plural in ("configmaps", "things", "worlds", "namespaces"):
        for method in ("GET", "PUT", "DELETE"):
            body = {**typed(plural), "metadata": {"name": "none"}}
            do(method, f"{plural}/none", body if method == "PUT" else None)
        do.patch(f"{plural}/none", {})
    for path in (
        "/api/v1/nope",
        "/api/v1/namespaces/x/nope",
        "/api/v2",
        "/api/v2/pods",
        "/apis/nope",
        "/apis/nope/v1",
        "/apis/nope/v1/things",
        "/apis/apps/v9",
        "/apis/apps/v9/deployments",
        "/apis/apps/v1/nope",
        f"/apis/{GROUP}/v1/nope",
        f"/apis/{GROUP}/v9",
        f"/apis/{GROUP}/v9/things",
        f"/apis/{GROUP}",
        "/nope",
        "/api/",
        "/apis/",
        "/api/v1/",
        "/api/v1/replicationcontrollers/",
        "//api/v1",
        "/api/v1/namespaces/x/pods/a/nope",
        "/api/v1/namespaces/x/configmaps/a/status",
        f"/apis/{GROUP}/v1/namespaces/x/strangers/a/status",
        f"/apis/{GROUP}/v1/namespaces/x/things/a/nope",
        "/API/v1",
        "/api/v1/componentstatuses/none",
    ):
        for method in ("GET", "POST", "DELETE"):
            made = {"metadata": {"name": "a"}} if method == "POST" else None
            do(method, path, made)


@scenario
def methods_that_are_not_allowed(do: Run) -> None:
    targets = (
        "leases",
        "leases/a",
        "pods/a/status",
        "pods/a/log",
        "pods/a/eviction",
        "pods/a/binding",
        "deployments/a/scale",
        "things",
        "things/a",
        "things/a/status",
        "things/a/scale",
        "/api/v1/configmaps",
        "/api/v1/configmaps/a",
        f"/apis/{GROUP}/v1/things",
        f"/apis/{GROUP}/v1/worlds",
        "/api/v1/namespaces",
        "/api",
        "/apis",
        "/api/v1",
        f"/apis/{GROUP}/v1",
        "/version",
        "/healthz",
        "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
        "/api/v1/namespaces/default/finalize",
    )
    for target in targets:
        for method in ("POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE"):
            if target == "/api/v1/namespaces" and method == "DELETE":
                continue
            wants = method in ("POST", "PUT", "PATCH")
            do(method, target, b"{}" if wants else None)
