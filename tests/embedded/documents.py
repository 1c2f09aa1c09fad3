"""What the real server published, and a server that publishes ours in its place."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import msgspec

from trimtab.embedded import discovery
from trimtab.embedded.discovery import custom_resources
from trimtab.embedded.facts import ServedResource, definitions, resources
from trimtab.embedded.openapi import Custom, OpenApi, custom_schemas
from trimtab.testing import assets
from trimtab.testing.kubectl import Kubectl

JSON = dict[str, Any]

DATA = Path(__file__).with_name("data")
RECORDED: JSON = json.loads((DATA / "published.json").read_text())
CRDS: list[JSON] = json.loads((DATA / "published_crds.json").read_text())["items"]


def table() -> tuple[ServedResource, ...]:
    """Built-in resources and those of the sample CRDs."""
    return (*resources(), *(each for crd in CRDS for each in custom_resources(crd)))


def custom() -> dict[str, Custom]:
    """What the sample CRDs say."""
    return {name: said for crd in CRDS for name, said in custom_schemas(crd).items()}


def openapi() -> OpenApi:
    return OpenApi(table(), definitions=definitions(), custom=custom())


def place(path: str) -> tuple[str, str]:
    """Group and version of a path such as ``apis/apps/v1`` or ``api/v1``."""
    parts = path.strip("/").split("/")
    return (parts[1], parts[2]) if len(parts) == 3 else ("", parts[1])


def discovered(path: str) -> JSON | None:
    """Our document for a path; a question mark at its end asks for the new form."""
    every = table()
    if path.endswith("?"):
        return discovery.aggregated(every, core=path == "/api?")
    if path == "/api":
        return discovery.api_versions("ADDRESS")
    if path == "/apis":
        return discovery.group_list(every)
    if path.startswith("/apis/") and path.count("/") == 2:
        return discovery.group(every, path.removeprefix("/apis/"))
    group, version = place(path)
    return discovery.resource_list(every, group=group, version=version)


class _Handler(BaseHTTPRequestHandler):
    """Answers with our documents, and with 404 to everything else."""

    protocol_version = "HTTP/1.1"
    documents = openapi()

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        wanted = self.headers.get("Accept", "")
        document, kind = self._document(path, wanted)
        status = 404 if document is None else 200
        if path == "/openapi/v2" and "application/json" not in wanted:
            document, status = None, 406
        body = msgspec.json.encode(document)
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _document(self, path: str, wanted: str) -> tuple[JSON | None, str]:
        if path == "/version":
            return {"major": "1", "minor": "36", "gitVersion": "v1.36.3"}, "text/json"
        if path == "/openapi/v2":
            return self.documents.v2(), "application/json"
        if path == "/openapi/v3":
            return self.documents.v3_index(), "application/json"
        if path.startswith("/openapi/v3/"):
            where = place(path.removeprefix("/openapi/v3/"))
            return self.documents.v3(*where), "application/json"
        if path in ("/api", "/apis") and "as=APIGroupDiscoveryList" in wanted:
            return discovered(f"{path}?"), discovery.AGGREGATED
        if path.startswith("/api"):
            return discovered(path), "application/json"
        return None, "application/json"

    def log_message(self, *_: object) -> None:
        """Nothing: a test that fails says why."""


@contextlib.contextmanager
def kubectl(folder: Path) -> Iterator[Kubectl | None]:
    """The real kubectl on a server of our documents; None if there is no kubectl."""
    program = assets.find("kubectl")
    if program is None:
        yield None
        return
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    thread = threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.01}
    )
    thread.start()
    try:
        address = f"http://127.0.0.1:{server.server_port}"
        kubeconfig = folder / "kubeconfig"
        kubeconfig.write_text(json.dumps(_kubeconfig(address)))
        yield Kubectl(program=program, kubeconfig=kubeconfig, cache=folder / "cache")
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _kubeconfig(address: str) -> JSON:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "ours", "cluster": {"server": address}}],
        "contexts": [{"name": "ours", "context": {"cluster": "ours"}}],
        "current-context": "ours",
    }
