"""Laws of sizes: what is too large to be read, to be valid, or to be stored.

Each law runs unchanged on the embedded server and on kube-apiserver.
"""

from __future__ import annotations

import pytest

from tests.client.clusters import client_of, defines
from tests.embedded.asking import APPLY, MERGE, Asker, Plain
from tests.embedded.asking import ask as ask
from tests.embedded.objects import GROUP, config_map, definition, deployment
from trimtab.testing import Cluster, eventually

STORED = 3 << 19
SENT = 1 << 21
NEAR = 4096
"""What an object has besides its text, and a request besides the object."""


def tome(length: int, name: str = "one") -> Plain:
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "Tome",
        "metadata": {"name": name},
        "spec": {"text": "x" * length},
    }


@pytest.fixture
async def tomes(cluster: Cluster, ask: Asker) -> str:
    """The path of a kind that holds a text of any length."""
    crd = definition("tomes", "Tome")
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"]["properties"]["text"] = {"type": "string"}
    async with client_of(cluster, namespace=ask.namespace) as client:
        await defines(client, crd)
    path = ask.path("tomes", group=GROUP)

    async def is_served() -> bool:
        return (await ask("GET", path)).status == 200

    await eventually(is_served, within=20)
    return path


async def test_what_is_too_large_is_refused(ask: Asker) -> None:
    path = ask.path("configmaps")
    body = b" " * (3 * 1024 * 1024 + 1)
    refused = await ask("POST", path, body)
    assert refused.refusal[:2] == (413, "RequestEntityTooLarge")
    large = config_map("one", data={"a": "x" * (1024 * 1024 + 1)})
    refused = await ask("POST", path, large)
    assert refused.refusal == (
        422,
        "Invalid",
        'ConfigMap "one" is invalid: []: Too long: may not be more than 1048576 bytes',
    )


async def test_numbers_are_of_the_size_that_the_field_has(ask: Asker) -> None:
    path = ask.path("deployments", group="apps")
    for number in (2**31, 2**63, 1.5):
        body = deployment(spec={"replicas": number})
        refused = await ask("POST", path, body)
        assert refused.refusal == (
            400,
            "BadRequest",
            (
                'Deployment in version "v1" cannot be handled as a Deployment: json: '
                f"cannot unmarshal number {number} into Go struct field "
                "DeploymentSpec.spec.replicas of type int32"
            ),
        )


async def test_an_object_may_be_as_large_as_etcd_takes(ask: Asker, tomes: str) -> None:
    for length in (STORED - NEAR, STORED + NEAR, SENT - NEAR):
        made = await ask("POST", tomes, tome(length, f"t{length}"))
        if length < STORED:
            assert made.status == 201
            found = await ask("GET", f"{tomes}/t{length}")
            assert len(found.obj["spec"]["text"]) == length
        else:
            assert made.refusal == (500, "", "etcdserver: request is too large")
            assert (await ask("GET", f"{tomes}/t{length}")).status == 404


async def test_what_is_larger_than_any_message_says_so(ask: Asker, tomes: str) -> None:
    code, reason, told = (await ask("POST", tomes, tome(SENT + NEAR))).refusal
    assert (code, reason) == (500, "")
    assert told.startswith(
        "rpc error: code = ResourceExhausted desc = trying to send message larger than "
        "max (2"
    )
    assert told.endswith(f" vs. {SENT})")


@pytest.mark.parametrize("media", [MERGE, APPLY])
async def test_a_change_that_makes_an_object_too_large_is_no_change(
    ask: Asker, tomes: str, media: str
) -> None:
    made = await ask("POST", tomes, tome(10))
    query = {"fieldManager": "me", "force": "true"} if media == APPLY else {}
    body = tome(STORED + NEAR)
    refused = await ask("PATCH", f"{tomes}/one", body, media=media, **query)
    assert refused.refusal == (500, "", "etcdserver: request is too large")
    assert (await ask("GET", f"{tomes}/one")).obj == made.obj


async def test_a_dry_run_does_not_ask_etcd(ask: Asker, tomes: str) -> None:
    made = await ask("POST", tomes, tome(STORED + NEAR), dryRun="All")
    assert made.status == 201
