"""Who looks after a cluster can see from its metrics what of it will go some day.

Each law runs unchanged on the embedded server and on kube-apiserver.
"""

from __future__ import annotations

import json

from tests.embedded.asking import Asker
from tests.embedded.asking import ask as ask
from tests.embedded.objects import definition
from trimtab.testing import eventually

GAUGE = "apiserver_requested_deprecated_apis"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


async def gauge(ask: Asker) -> set[str]:
    """What is said to be deprecated and in use."""
    text = (await ask("GET", "/metrics", accept="*/*")).body.decode()
    lines = [line for line in text.splitlines() if line.startswith(f"{GAUGE}{{")]
    assert all(float(line.rpartition(" ")[2]) == 1.0 for line in lines)
    return {line.rpartition(" ")[0].removeprefix(GAUGE) for line in lines}


def labels(
    resource: str, *, group: str = "", version: str = "v1", below: str = ""
) -> str:
    return (
        f'{{group="{group}",removed_release="",resource="{resource}",'
        f'subresource="{below}",version="{version}"}}'
    )


async def test_who_uses_what_is_deprecated_is_warned_and_seen(ask: Asker) -> None:
    told = await ask("GET", ask.path("endpoints"))
    assert [json.loads(each.removeprefix("299 - ")) for each in told.warnings] == [
        "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"
    ]
    assert (await ask("GET", ask.path("configmaps"))).warnings == ()
    found = await gauge(ask)
    assert labels("endpoints") in found
    assert labels("configmaps") not in found


async def test_a_deprecated_version_of_ones_own_kind_is_seen_too(ask: Asker) -> None:
    made = definition("olds", "Old")
    group = made["spec"]["group"]
    [version] = made["spec"]["versions"]
    version["deprecated"] = True
    await ask("POST", CRDS, made)
    path = ask.path("olds", group=group, version=version["name"])

    async def served() -> bool:
        return (await ask("GET", path)).status == 200

    try:
        await eventually(served, within=20)
        assert (await ask("GET", path)).warnings
        wanted = labels("olds", group=group, version=version["name"])
        assert wanted in await gauge(ask)
    finally:
        await ask("DELETE", f"{CRDS}/{made['metadata']['name']}")
