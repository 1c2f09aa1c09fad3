"""Records what a real API server says of its built-in kinds, for trimtab.embedded.

A control plane is started, asked, and stopped. Written are

- ``src/trimtab/embedded/data/definitions.jsonl``: the schema of every type, one to a
  line, as ``[name, kinds, schema]``. The schema is the server's own, without prose; a
  ``$ref`` is the bare name of a type, and stands beside what else a field says.
- ``src/trimtab/embedded/data/resources.jsonl``: every resource, in the server's order.
- ``tests/embedded/data/published.json``: what the server and kubectl answer once the
  CRDs of ``tests/embedded/data/published_crds.json`` are there, which the tests hold
  the embedded server's documents against.

So, with the programs that ``hack/cluster/build.py`` builds::

    PYTHONPATH=src python hack/record_embedded_facts.py
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

from trimtab.client.config import load
from trimtab.client.http import HttpTransport
from trimtab.client.transport import Progress, Request
from trimtab.testing.cluster import Cluster, cluster

JSON = dict[str, Any]
Ask = Callable[..., Awaitable[Any]]

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / "src" / "trimtab" / "embedded" / "data"
TESTS = ROOT / "tests" / "embedded" / "data"
CRDS = TESTS / "published_crds.json"

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
REFERENCE = "#/components/schemas/"
KINDS = "x-kubernetes-group-version-kind"
PROSE = ("description", "title", "example", "externalDocs")
LAST = (
    "com.example.samples.v1.Widget",
    "com.example.samples.v1.Gadget",
    "org.example.alpha.v1alpha1.Early",
)
EXPLAINED = (
    "deployment.spec.strategy",
    "service --recursive",
    "configmap --recursive",
    "pod.spec.containers.ports",
    "pod.spec.volumes --recursive",
    "customresourcedefinition.spec.versions.schema",
    "horizontalpodautoscaler.spec --recursive",
    "horizontalpodautoscaler --api-version=autoscaling/v1 --recursive",
    "widget --recursive",
    "widget.spec",
    "widget.spec.parts",
    "gadget",
)


def bare(schema: JSON) -> JSON:
    """A schema without prose, a reference written as the bare name of its type."""
    kept = {key: value for key, value in schema.items() if key not in PROSE}
    kept.pop(KINDS, None)
    if len(inner := kept.get("allOf", ())) == 1:
        kept |= inner[0]
        del kept["allOf"]
    if "$ref" in kept:
        kept["$ref"] = kept["$ref"].removeprefix(REFERENCE)
        # What every struct that is not a pointer says; it means nothing.
        if kept.get("default") == {}:
            del kept["default"]
    for key in ("items", "additionalProperties"):
        if isinstance(kept.get(key), dict):
            kept[key] = bare(kept[key])
    if "properties" in kept:
        kept["properties"] = {
            name: bare(each) for name, each in kept["properties"].items()
        }
    return kept


def kinds(schema: JSON) -> list[str]:
    """The kinds that a type is the schema of, such as ``apps/v1/Deployment``."""
    found = [
        f"{kind['group']}/{kind['version']}/{kind['kind']}".removeprefix("/")
        for kind in schema.get(KINDS, ())
    ]
    # Options and events of a watch are in every group; one of them says enough.
    return (
        found[:1] if "v1/DeleteOptions" in found or "v1/WatchEvent" in found else found
    )


def definitions(documents: dict[str, JSON]) -> dict[str, tuple[list[str], JSON]]:
    """Every type of every document; the server says the same of it in each."""
    found: dict[str, tuple[list[str], JSON]] = {}
    for path, document in documents.items():
        for name, schema in document.get("components", {}).get("schemas", {}).items():
            told = (kinds(schema), bare(schema))
            if found.setdefault(name, told) != told:
                raise SystemExit(f"{path} says something else of {name} than others do")
    return dict(sorted(found.items()))


def resources(
    group: str, version: str, listed: list[JSON], names: dict[str, str]
) -> Iterator[JSON]:
    """The resources of one group and version, each with its subresources."""
    place = f"{group}/{version}/".removeprefix("/")
    for each in listed:
        if "/" in each["name"]:
            continue
        beneath = [sub for sub in listed if sub["name"].startswith(f"{each['name']}/")]
        listing = place + each["kind"] + "List"
        told = {
            "group": group,
            "version": version,
            "kind": each["kind"],
            "list_kind": each["kind"] + "List" if listing in names else "",
            "plural": each["name"],
            "singular": each["singularName"],
            "short": each.get("shortNames"),
            "namespaced": each["namespaced"],
            "verbs": each["verbs"],
            "categories": each.get("categories"),
            "subresources": [
                {
                    "name": sub["name"].partition("/")[2],
                    "kind": sub["kind"],
                    "group": sub.get("group", group) if "version" in sub else group,
                    "version": sub.get("version", version),
                    "verbs": sub["verbs"],
                }
                for sub in beneath
            ],
            "storage_hash": each.get("storageVersionHash"),
            "definition": names[place + each["kind"]],
        }
        yield {key: value for key, value in told.items() if value not in (None, [])}


async def discovery(ask: Ask) -> JSON:
    """Every discovery document by its path, an aggregated one with a question mark."""
    found: JSON = {}
    for root in ("/api", "/apis"):
        found[root] = await ask(root)
        found[root + "?"] = await ask(root, accept=AGGREGATED)
    found["/api/v1"] = await ask("/api/v1")
    for group in found["/apis"]["groups"]:
        path = f"/apis/{group['name']}"
        found[path] = await ask(path)
        for version in group["versions"]:
            path = f"/apis/{version['groupVersion']}"
            found[path] = await ask(path)
    found["/api"]["serverAddressByClientCIDRs"][0]["serverAddress"] = "ADDRESS"
    return found


async def openapi(ask: Ask, within: str = "") -> dict[str, JSON]:
    """Every OpenAPI v3 document of a group and version, by its path."""
    index = await ask("/openapi/v3")
    return {
        path: await ask(f"/openapi/v3/{path}")
        for path in index["paths"]
        if within in path
        and path.startswith("api")
        and path.count("/") == path.startswith("apis/") + 1
    }


def operations(document: JSON) -> JSON:
    """What a document's paths say that the embedded server's say too."""
    return {
        path: {
            method: [operation["x-kubernetes-action"], *operation[KINDS].values()]
            for method, operation in methods.items()
            if method != "parameters" and "x-kubernetes-action" in operation
        }
        for path, methods in document["paths"].items()
        if "/watch/" not in path and not path.endswith("/")
    }


def shipped(documents: dict[str, JSON], found: JSON) -> dict[str, list[str]]:
    """The lines of each file that ships with the package."""
    types = definitions(documents)
    names = {kind: name for name, (listed, _) in types.items() for kind in listed}
    rows = [
        row
        for group, version in served(found)
        for row in resources(
            group, version, found[path_of(group, version)]["resources"], names
        )
    ]
    return {
        "definitions.jsonl": [line([name, *told]) for name, told in types.items()],
        "resources.jsonl": [line(row) for row in rows],
    }


def served(found: JSON) -> Iterator[tuple[str, str]]:
    """Every group and version, in the server's order."""
    yield "", "v1"
    for group in found["/apis"]["groups"]:
        for version in group["versions"]:
            yield group["name"], version["version"]


def path_of(group: str, version: str) -> str:
    return f"/apis/{group}/{version}" if group else f"/api/{version}"


def line(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def fields_of(explained: str) -> str:
    """What follows the prose of ``kubectl explain``, without the prose in between."""
    lines = explained.partition("FIELDS:\n")[2].splitlines()
    return "\n".join(each for each in lines if "\t<" in each or "enum:" in each)


def said(schema: Any, own: set[str]) -> Any:
    """A published schema with no prose but what the CRDs brought along."""
    if isinstance(schema, list):
        return [said(each, own) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: said(value, own)
        for key, value in schema.items()
        if key != "description" or not isinstance(value, str) or value in own
    }


def descriptions(value: Any) -> Iterator[str]:
    """All the prose of the CRDs."""
    if isinstance(value, list):
        for each in value:
            yield from descriptions(each)
    elif isinstance(value, dict):
        for key, each in value.items():
            if key == "description" and isinstance(each, str):
                yield each
            yield from descriptions(each)


async def answers(ready: Cluster, ask: Ask) -> JSON:
    """What the tests hold documents against."""
    own = set(descriptions(json.loads(CRDS.read_text())))
    documents = await openapi(ask)
    third = custom_types(documents)
    second = (await ask("/openapi/v2"))["definitions"]
    explained = {
        f"explain {words}": fields_of(await ready.kubectl("explain", *words.split()))
        for words in EXPLAINED
    }
    return {
        **await discovery(ask),
        "api-resources": await ready.kubectl("api-resources", "-o", "wide"),
        "api-versions": await ready.kubectl("api-versions"),
        **explained,
        **{f"paths {path}": operations(each) for path, each in documents.items()},
        "v3 schemas": said(third, own),
        "v2 schemas": said(custom_only(second), own),
    }


def custom_types(documents: dict[str, JSON]) -> JSON:
    """The types of the sample CRDs in some OpenAPI v3 documents."""
    found: JSON = {}
    for document in documents.values():
        found |= custom_only(document["components"]["schemas"])
    return found


def custom_only(schemas: JSON) -> JSON:
    return {name: each for name, each in schemas.items() if ".example." in name}


async def published(ask: Ask) -> None:
    """Return once the CRDs are in every document."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        third = custom_types(await openapi(ask, within="example"))
        second = (await ask("/openapi/v2"))["definitions"]
        if all(name in third and name in second for name in LAST):
            return
        await asyncio.sleep(0.2)
    raise SystemExit("the server did not publish the sample CRDs within 30 s")


@contextlib.asynccontextmanager
async def asking(ready: Cluster) -> AsyncIterator[Ask]:
    """A function that gets a path from the cluster."""
    transport = HttpTransport(load(kubeconfig=ready.kubeconfig))

    async def ask(path: str, accept: str = "application/json") -> Any:
        request = Request(method="GET", path=path, headers=(("Accept", accept),))
        response = await transport.send(request, progress=Progress())
        body = await response.read(limit=50_000_000)
        response.close()
        return json.loads(body)

    try:
        yield ask
    finally:
        await transport.close()


async def main() -> None:
    """Start a server, write the facts."""
    async with cluster("real") as ready, asking(ready) as ask:
        files = shipped(await openapi(ask), await discovery(ask))
        await ready.kubectl("create", "-f", str(CRDS))
        await published(ask)
        told = await answers(ready, ask)
    DATA.mkdir(exist_ok=True)
    for name, lines in files.items():
        (DATA / name).write_text("\n".join(lines) + "\n")
    keyed = [f"{json.dumps(key)}: {line(value)}" for key, value in told.items()]
    (TESTS / "published.json").write_text("{\n" + ",\n".join(keyed) + "\n}\n")


if __name__ == "__main__":
    asyncio.run(main())
