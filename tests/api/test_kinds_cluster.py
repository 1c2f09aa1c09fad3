"""Laws of the built-in slices that only a server can confirm.

Every field of every slice is sent, under strict field validation, and read back.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from tests.api.samples.objects import objects
from trimtab import kinds
from trimtab.api.codec import convert, decode
from trimtab.api.objects import Object, wire
from trimtab.api.resource import Metadata, OwnerReference, Resource
from trimtab.kinds import (
    Container,
    Event,
    LimitRange,
    ObjectReference,
    Pod,
    PodSpec,
    PolicyRule,
    ProjectedVolumeSource,
    Role,
    Volume,
    WholePod,
)
from trimtab.testing import Cluster
from trimtab.testing.errors import KubectlFailed

JSON = dict[str, Any]

KINDS: list[type[Resource]] = [
    kind
    for kind in (getattr(kinds, name) for name in vars(kinds)["__all__"])
    if issubclass(kind, Resource)
]
RUNTIME_CLASS = {
    "apiVersion": "node.k8s.io/v1",
    "kind": "RuntimeClass",
    "metadata": {"name": "sample"},
    "handler": "sample",
}

NOT_KEPT = {
    # Only with the feature gate CoordinatedLeaderElection, which is off by default.
    "Lease.spec.preferredHolder",
    "Lease.spec.strategy",
    # Go leaves out what is false.
    "PriorityClass.globalDefault",
}
ALWAYS_THERE = {
    "ClusterRole",
    "ClusterRoleBinding",
    "Namespace",
    "PriorityClass",
    "Role",
    "RoleBinding",
    "Service",
}
"""Kinds of which every server has objects, nobody having made any."""

SET_BY_THE_SERVER = {"JobSpec.selector", "PodSpec.ephemeralContainers"}
"""Fields that are there to be read, and that a create may not set."""


def resource(kind: type[Resource]) -> str:
    """How kubectl is told which resource is meant."""
    info = kind.__resource__
    return f"{info.plural}.{info.version}.{info.group}"


def missing(sent: Any, found: Any, path: str = "") -> Iterator[str]:
    """Where something that was sent is not found; what the server added is fine."""
    if isinstance(sent, dict) and isinstance(found, dict):
        for key, value in sent.items():
            yield from missing(value, found.get(key), f"{path}.{key}")
    elif isinstance(sent, list) and isinstance(found, list):
        found = found + [None] * len(sent)
        for number, value in enumerate(sent):
            yield from missing(value, found[number], f"{path}[{number}]")
    elif sent != found:
        yield path


def as_kept(written: JSON) -> JSON:
    """What the server keeps of a write: text of a Secret becomes bytes."""
    text = written.pop("stringData", {})
    if text:
        encoded = {key: b64encode(each.encode()).decode() for key, each in text.items()}
        written["data"] = written.get("data", {}) | encoded
    return written


async def created(cluster: Cluster, sample: Resource) -> Resource:
    """Create an object, write its status, and read it back as its class."""
    written = wire(sample)
    status = written.pop("status", None)
    text = json.dumps(written)
    answer = await cluster.kubectl(
        "create", "--validate=strict", "--output=json", "--filename=-", stdin=text
    )
    if status:
        metadata = {
            key: written["metadata"].get(key, "") for key in ("name", "namespace")
        }
        part = {**sample.__head__, "metadata": metadata, "status": status}
        answer = await cluster.kubectl(
            "apply",
            "--server-side",
            "--force-conflicts",
            "--subresource=status",
            "--validate=strict",
            "--output=json",
            "--filename=-",
            stdin=json.dumps(part),
        )
    return decode(whole(sample), answer)


def whole(sample: Resource) -> type[Resource]:
    """The class that reads back all that a sample writes."""
    return WholePod if isinstance(sample, Pod) else type(sample)


@pytest.mark.cluster("real", "embedded")
async def test_what_a_slice_writes_the_server_takes_and_keeps(
    cluster: Cluster, namespace: str
) -> None:
    await cluster.kubectl("apply", "--filename=-", stdin=json.dumps(RUNTIME_CLASS))
    lost = set()
    for sample in objects(namespace, namespace=namespace):
        found = wire(await created(cluster, sample))
        sent = as_kept(wire(sample))
        lost |= {sample.kind + path for path in missing(sent, found)}
    assert lost - NOT_KEPT == set()


@pytest.mark.cluster("real", "embedded")
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
async def test_whatever_a_fresh_server_has_can_be_read(
    cluster: Cluster, kind: type[Resource]
) -> None:
    answer = await cluster.kubectl(
        "get", resource(kind), "--all-namespaces", "--output=json"
    )
    items = json.loads(answer)["items"]
    assert items or kind.kind not in ALWAYS_THERE
    found = [convert(kind, item) for item in items]
    assert [each.metadata.name for each in found] == [
        item["metadata"]["name"] for item in items
    ]


def sparse(namespace: str) -> list[Resource]:
    """Objects of which the server writes some part as null."""
    metadata = Metadata(name="sparse", namespace=namespace)
    about = ObjectReference(namespace=namespace)
    volume = Volume(name="empty", projected=ProjectedVolumeSource())
    spec = PodSpec(containers=[Container(name="web", image="web")], volumes=[volume])
    return [
        Event(metadata=metadata, involvedObject=about),
        LimitRange(metadata=metadata),
        Pod(metadata=metadata, spec=spec),
        Role(metadata=metadata),
    ]


@pytest.mark.cluster("real")
async def test_what_the_server_writes_as_null_can_be_read(
    cluster: Cluster, namespace: str
) -> None:
    nulls = {
        "eventTime",
        "firstTimestamp",
        "lastTimestamp",
        "limits",
        "sources",
        "rules",
    }
    for sample in sparse(namespace):
        answer = await cluster.kubectl(
            "create",
            "--validate=false",
            "--output=json",
            "--filename=-",
            stdin=json.dumps(wire(sample)),
        )
        nulls -= set(re.findall(r'"(\w+)": null', answer))
        assert decode(whole(sample), answer).key == sample.key
    assert nulls == set()


@pytest.mark.cluster("real")
@pytest.mark.parametrize(
    "kind_of",
    [
        lambda metadata: Role(metadata=metadata, rules=[PolicyRule(resources=["a"])]),
        lambda metadata: Pod(metadata=metadata, spec=PodSpec(hostname="a")),
    ],
    ids=["PolicyRule.verbs", "PodSpec.containers"],
)
async def test_a_list_that_reads_as_never_null_is_refused_when_empty(
    cluster: Cluster, namespace: str, kind_of: Any
) -> None:
    sample = kind_of(Metadata(name="empty", namespace=namespace))
    with pytest.raises(KubectlFailed, match="Required value"):
        await created(cluster, sample)


def set_fields(value: Any) -> Iterator[tuple[type[Object], str]]:
    """The fields, as (class, name), that an object and its parts set."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for item in value:
            yield from set_fields(item)
    if isinstance(value, Object):
        for info in msgspec.structs.fields(type(value)):
            inner = getattr(value, info.name)
            if info.encode_name in wire(value):
                yield type(value), info.name
            yield from set_fields(inner)


def test_the_samples_set_every_field_of_every_slice() -> None:
    seen = {
        each for sample in objects("a", namespace="b") for each in set_fields(sample)
    }
    # A create may not have ephemeral containers: kubectl debug adds them.
    summaries = {
        *(WholePod, kinds.PodSummary, kinds.ContainerSummary),
        kinds.EphemeralContainer,
    }
    wanted = {
        (kind, info.name)
        for kind in (getattr(kinds, name) for name in vars(kinds)["__all__"])
        for info in msgspec.structs.fields(kind)
        if kind not in summaries
    }
    unset = {f"{kind.__name__}.{name}" for kind, name in wanted - seen}
    assert unset - SET_BY_THE_SERVER == set()
    assert {Metadata, OwnerReference}.isdisjoint(kind for kind, _ in wanted)
