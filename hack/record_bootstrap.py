"""Records what a fresh kube-apiserver has before anybody wrote anything to it.

Controllers run meanwhile, as they fill in the roles that are aggregated. The embedded
server installs the same objects. Run it again for a new version:
``.venv/bin/python hack/record_bootstrap.py``.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from trimtab.testing import Options, cluster, eventually

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / "src/trimtab/embedded/data/bootstrap.jsonl"
KINDS = (
    "namespaces",
    "clusterroles",
    "clusterrolebindings",
    "roles",
    "rolebindings",
    "priorityclasses",
    "apiservices",
    "flowschemas",
    "prioritylevelconfigurations",
)
SERVER_SET = ("uid", "resourceVersion", "creationTimestamp", "managedFields")


def plain(obj: dict[str, Any]) -> dict[str, Any]:
    """The object without what the server makes up."""
    meta = {k: v for k, v in obj["metadata"].items() if k not in SERVER_SET}
    kept = {k: v for k, v in obj.items() if k not in ("metadata", "status")}
    return {"apiVersion": kept.pop("apiVersion"), "kind": kept.pop("kind")} | {
        "metadata": meta,
        **kept,
    }


async def record() -> list[str]:
    lines = []
    options = Options(controllers=True)
    async with cluster("real", options=options) as control_plane:

        async def are_aggregated() -> bool:
            names = ("admin", "edit", "view")
            text = await control_plane.kubectl(
                "get", "clusterroles", *names, "-o", "json"
            )
            return all(each.get("rules") for each in json.loads(text)["items"])

        await eventually(are_aggregated, within=30)
        for kind in KINDS:
            text = await control_plane.kubectl("get", kind, "-A", "-o", "json")
            items = json.loads(text)["items"]
            lines += [
                json.dumps(plain(obj), separators=(",", ":"), sort_keys=True)
                for obj in items
            ]
    return lines


def main() -> None:
    lines = asyncio.run(record())
    DATA.write_text("\n".join(lines) + "\n")
    print(f"{len(lines)} objects written to {DATA.relative_to(ROOT)}.")


if __name__ == "__main__":
    main()
