"""Not a peer but the server's own pace: the same bytes, read and thrown away.

Blocking sockets, no JSON: nobody in Python can be faster than this, so whoever is as
fast has been waiting for the server.
"""

from __future__ import annotations

import base64
import http.client
import json
import os
import re
import ssl
import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

from bench.peers.probe import PAGE, Probe

PODS = "/api/v1/pods?"
NEXT = re.compile(rb'"continue":"([^"]+)"')
WATCH = urlencode(
    {
        "watch": "true",
        "allowWatchBookmarks": "true",
        "sendInitialEvents": "true",
        "resourceVersionMatch": "NotOlderThan",
    }
)


def connect() -> http.client.HTTPSConnection:
    """A connection as the test cluster's kubeconfig, which is JSON, describes it."""
    config = json.loads(Path(os.environ["KUBECONFIG"]).read_text())
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    context = ssl.create_default_context(
        cadata=_text(cluster, "certificate-authority-data")
    )
    with tempfile.NamedTemporaryFile("w") as file:
        file.write(_text(user, "client-certificate-data"))
        file.write(_text(user, "client-key-data"))
        file.flush()
        context.load_cert_chain(file.name)
    server = urlsplit(cluster["server"]).netloc
    return http.client.HTTPSConnection(server, context=context)


def _text(part: dict[str, Any], key: str) -> str:
    return base64.b64decode(part[key]).decode()


def list_pods(probe: Probe, connection: http.client.HTTPSConnection) -> None:
    after = ""
    while True:
        query = {"limit": str(PAGE)} | ({"continue": after} if after else {})
        connection.request("GET", PODS + urlencode(query))
        page = connection.getresponse().read()
        probe.count += page.count(b'"creationTimestamp":"')
        found = NEXT.search(page, 0, 2048)
        if found is None:
            return
        after = found[1].decode()


def watch_pods(probe: Probe, connection: http.client.HTTPSConnection) -> None:
    connection.request("GET", PODS + WATCH)
    answer = connection.getresponse()
    while not probe.complete:
        probe.count += answer.read1(1 << 18).count(b"\n")
    connection.close()


PHASES = {"list": list_pods, "watch": watch_pods}


def main() -> None:
    probe = Probe()
    connection = connect()
    probe.begin()
    if probe.phase != "start":
        PHASES[probe.phase](probe, connection)
    probe.end()


main()
