"""Records protobuf bodies made by Go, each beside the JSON of the same object.

The kinds are those that the embedded server serves, and what its subresources take; the
Go program beside this file fills their types. ``samples.jsonl`` adds objects that any
server takes; ``openapi.json`` and ``openapi_third.json`` are documents of OpenAPI, one
of each version. Run it again for a new version (needs Go and the modules that go.mod
names): ``.venv/bin/python hack/protobuf/record.py``.
"""

from __future__ import annotations

import base64
import gzip
import json
import os
import subprocess
from pathlib import Path

from trimtab.embedded import facts

HERE = Path(__file__).resolve().parent
DATA = HERE.parents[1] / "tests/embedded/data/protobuf.json.gz"
SAMPLES = HERE / "samples.jsonl"
DOCUMENTS = ("openapi.json", "openapi_third.json")
# Clients send them with the version of the group that they delete from.
OPTIONS = {("v1", "DeleteOptions"), ("apps/v1", "DeleteOptions")}


def kinds() -> list[tuple[str, str]]:
    """The version and name of each kind that a request can carry."""
    found = set(OPTIONS)
    for resource in facts.resources():
        found.add((resource.api_version, resource.kind))
        for each in resource.subresources:
            if not each.kind.endswith("Options"):  # those are in the query
                prefix = f"{each.group}/" if each.group else ""
                found.add((prefix + each.version, each.kind))
    return sorted(found)


def go(program: str, given: bytes) -> bytes:
    """What a Go program beside this file makes of its input."""
    told = subprocess.run(
        ["go", "run", program],
        cwd=HERE,
        env={**os.environ, "GOWORK": "off", "GOFLAGS": "-mod=mod"},
        input=given,
        stdout=subprocess.PIPE,
        check=True,
    )
    return told.stdout


def main() -> None:
    named = [{"apiVersion": version, "kind": kind} for version, kind in kinds()]
    asked = "".join(f"{json.dumps(each)}\n" for each in named) + SAMPLES.read_text()
    told = go(".", asked.encode())
    lines = told.splitlines()
    DATA.write_bytes(gzip.compress(told, mtime=0))
    print(f"{len(lines)} bodies in {DATA.stat().st_size} bytes: {DATA.name}.")
    for name in DOCUMENTS:
        document = (HERE / name).read_bytes()
        encoded = base64.b64encode(go("./openapi", document)).decode()
        recorded = {"document": json.loads(document), "protobuf": encoded}
        DATA.with_name(name).write_text(json.dumps(recorded) + "\n")


if __name__ == "__main__":
    main()
