"""An object that is sent in protobuf is stored as if it had been sent in JSON.

Each law runs unchanged on the embedded server and on kube-apiserver.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.embedded.asking import JSON, Asker, Plain, ask
from tests.embedded.protobuf_bodies import Body, bodies, samples, without_nulls
from trimtab.embedded.bodies import PROTOBUF
from trimtab.testing import eventually

__all__ = ["ask"]

OWN = ("uid", "resourceVersion", "creationTimestamp")
"""What each object has of its own, however it came."""


@pytest.mark.parametrize("sample", samples(), ids=lambda sample: sample.kind)
async def test_both_forms_of_an_object_store_the_same(ask: Asker, sample: Body) -> None:
    path = sample.path(ask.namespace)
    in_protobuf = await _stored(ask, path, sample.protobuf, media=PROTOBUF)
    in_json = await _stored(ask, path, without_nulls(sample.object), media=JSON)
    assert in_protobuf == in_json


async def test_options_in_protobuf_are_heeded(ask: Asker) -> None:
    """Those of Go are full of values, such as a UID that no object has."""
    options = next(
        each
        for each in bodies()
        if each.known == ("v1", "DeleteOptions") and each.filling == "full"
    )
    path = ask.path("configmaps")
    await ask("POST", path, {"metadata": {"name": "kept"}})
    answer = await ask("DELETE", f"{path}/kept", options.protobuf, media=PROTOBUF)
    in_json = await ask("DELETE", f"{path}/kept", options.object)
    assert answer.refusal == in_json.refusal
    assert answer.status == 422
    assert (await ask("GET", f"{path}/kept")).status == 200


@pytest.mark.parametrize("cut", [3, 40, -1], ids=["magic", "kind", "object"])
async def test_half_a_body_is_a_bad_request(ask: Asker, cut: int) -> None:
    sample = samples()[0]
    broken = sample.protobuf.rstrip(b'\x1a\x00"')[:cut]
    answer = await ask("POST", ask.path("configmaps"), broken, media=PROTOBUF)
    assert answer.refusal[:2] == (400, "BadRequest")


async def _stored(ask: Asker, path: str, body: Any, *, media: str) -> Plain:
    """What a body is stored as, before a controller sees it; then it is gone."""
    made = await ask("POST", path, body, media=media)
    assert made.status == 201, made.obj
    place = f"{path}/{made.meta['name']}"
    await ask("DELETE", place, gracePeriodSeconds="0")

    async def is_gone() -> bool:
        return (await ask("GET", place)).status == 404

    await eventually(is_gone, within=30, describe=f"{place} is gone")
    return _common(made.obj)


def _common(obj: Plain) -> Plain:
    """What does not depend on when the object was made."""
    meta = {key: value for key, value in obj["metadata"].items() if key not in OWN}
    meta["managedFields"] = [
        {key: value for key, value in each.items() if key != "time"}
        for each in meta["managedFields"]
    ]
    for condition in (obj.get("status") or {}).get("conditions") or ():
        condition.pop("lastTransitionTime", None)
    return {**obj, "metadata": meta}
