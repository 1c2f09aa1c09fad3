"""Laws of the built-in slices that need no server: names, types, nulls, cost.

What the fields of Kubernetes are called was recorded from a real server; see
``hack/record_builtin_fields.py``.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import inspect

from trimtab import kinds
from trimtab.api.codec import convert, decode, decoder, encode
from trimtab.api.conditions import Condition, Conditions
from trimtab.api.objects import Object, wire
from trimtab.api.quantity import Quantity
from trimtab.api.resource import Metadata, Resource
from trimtab.api.schema import structural
from trimtab.api.selectors import LabelSelector
from trimtab.api.times import MicroTime
from trimtab.kinds import (
    Container,
    ContainerSummary,
    Deployment,
    DeploymentSpec,
    DeploymentStatus,
    EmptyDirVolumeSource,
    Pod,
    PodSpec,
    PodStatus,
    PodSummary,
    PodTemplateSpec,
    Role,
    Secret,
    Volume,
    WholePod,
)

DATA = Path(__file__).parent / "data"
FACTS = json.loads((DATA / "builtin_fields.json").read_text("utf-8"))
CLASSES: list[type[Object]] = [getattr(kinds, name) for name in vars(kinds)["__all__"]]
KINDS = [each for each in CLASSES if issubclass(each, Resource)]
PARTS = [each for each in CLASSES if not issubclass(each, Resource)]

OTHER_NAMES = {
    "Metadata": "ObjectMeta",
    "ContainerSummary": "Container",
    "PodSummary": "PodSpec",
    "WholePod": "Pod",
}
"""Classes that are not called what Kubernetes calls them."""

NEVER_NULL = {("core.v1.PodSpec", "containers"), ("rbac.v1.PolicyRule", "verbs")}
"""Fields that Go could write as null, but that the server refuses to store empty."""

LEAVES: dict[type, str] = {
    inspect.StrType: "string",
    inspect.IntType: "integer",
    inspect.BoolType: "boolean",
    inspect.BytesType: "bytes",
    inspect.DateTimeType: "time",
}
VALUES: dict[type, str] = {Quantity: "quantity", MicroTime: "microtime"}


def by_name(each: type) -> str:
    return each.__name__


def without_none(kind: inspect.Type) -> tuple[inspect.Type, ...]:
    """The arms of a union other than None."""
    arms = kind.types if isinstance(kind, inspect.UnionType) else (kind,)
    return tuple(arm for arm in arms if not isinstance(arm, inspect.NoneType))


def takes_null(kind: inspect.Type) -> bool:
    return isinstance(kind, inspect.UnionType) and kind.includes_none


def notation(kind: inspect.Type) -> str:
    """A Python type as the recorded facts write it; ``*`` is any named type."""
    arms = without_none(kind)
    if len(arms) > 1:
        return "int-or-string" if {type(arm) for arm in arms} == INT_OR_STR else "?"
    (arm,) = arms
    if type(arm) in LEAVES:
        return LEAVES[type(arm)]
    if isinstance(arm, inspect.CustomType):
        return "[Condition]" if arm.cls is Conditions else VALUES[arm.cls]
    if isinstance(arm, inspect.ListType | inspect.VarTupleType):
        return f"[{notation(arm.item_type)}]"
    if isinstance(arm, inspect.DictType):
        anything = isinstance(arm.value_type, inspect.AnyType)
        return "*" if anything else f"{{{notation(arm.value_type)}}}"
    assert isinstance(arm, inspect.StructType), arm
    return OTHER_NAMES.get(arm.cls.__name__, arm.cls.__name__)


INT_OR_STR = {inspect.IntType, inspect.StrType}


def agrees(ours: str, theirs: str) -> bool:
    """Whether a type is what the facts say, but for packages and kinds of condition."""
    bare = re.sub(r"\w+\.v1\.", "", theirs.removesuffix("?"))
    if "*" in ours:
        return re.fullmatch(re.escape(ours).replace(r"\*", r"\w+"), bare) is not None
    return ours == bare or (ours == "[Condition]" and bare.endswith("Condition]"))


@cache
def fields_of(kind: type[Object]) -> dict[str, inspect.Type]:
    """The fields of a class by their names in JSON."""
    info = inspect.type_info(kind)
    assert isinstance(info, inspect.StructType)
    return {field.encode_name: field.type for field in info.fields}


def structs_in(kind: inspect.Type) -> Iterator[type[Object]]:
    """The classes that a type is made of."""
    for arm in without_none(kind):
        if isinstance(arm, inspect.StructType):
            assert issubclass(arm.cls, Object)
            yield arm.cls
        elif isinstance(arm, inspect.ListType | inspect.VarTupleType):
            yield from structs_in(arm.item_type)
        elif isinstance(arm, inspect.DictType):
            yield from structs_in(arm.value_type)


def pairs() -> dict[type[Object], str]:
    """Every class that the kinds are made of, and the type that it is a slice of."""
    waiting: list[tuple[type[Object], str]] = [
        (kind, FACTS["kinds"][f"{kind.apiVersion}/{kind.kind}"]["type"])
        for kind in KINDS
    ]
    found: dict[type[Object], str] = {}
    while waiting:
        kind, name = waiting.pop()
        if kind in found:
            continue
        found[kind] = name
        for field, inner in fields_of(kind).items():
            theirs = FACTS["types"][name].get(field, "")
            waiting += [(each, theirs.strip("[]{}?")) for each in structs_in(inner)]
    return found


def some(kind: inspect.Type, *, arm: int) -> Any:
    """A value of a type that is nowhere empty; ``arm`` chooses in a union."""
    choices = without_none(kind)
    one = choices[arm % len(choices)]
    if isinstance(one, inspect.StructType):
        assert issubclass(one.cls, Object)
        return filled(one.cls, arm=arm)
    if isinstance(one, inspect.CustomType):
        return SOME_VALUES[one.cls]
    if isinstance(one, inspect.ListType | inspect.VarTupleType):
        return [some(one.item_type, arm=arm)]
    if isinstance(one, inspect.DictType):
        return {"key": some(one.value_type, arm=arm)}
    return SOME_LEAVES[type(one)]


SOME_LEAVES: dict[type, Any] = {
    inspect.StrType: "text",
    inspect.IntType: 7,
    inspect.BoolType: True,
    inspect.BytesType: b"\x00\xff\xfe",
    inspect.DateTimeType: datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
    inspect.AnyType: {"any": ["thing"]},
}
SOME_VALUES: dict[type, Any] = {
    Quantity: Quantity("1500m"),
    MicroTime: MicroTime(2026, 1, 2, 3, 4, 5, 678900, tzinfo=UTC),
    Conditions: Conditions([Condition(type="Ready", status="True")]),
}


def filled(kind: type[Object], *, arm: int = 0) -> Any:
    """An object of a class with every field set, but for those the server sets."""
    names = {info.encode_name: info.name for info in msgspec.structs.fields(kind)}
    given = {names[name]: inner for name, inner in fields_of(kind).items()}
    facts = kind.__facts__
    return kind(
        **{
            name: some(inner, arm=arm)
            for name, inner in given.items()
            if name not in facts or not facts[name].server_set
        }
    )


@pytest.mark.parametrize("kind", KINDS, ids=by_name)
def test_a_kind_is_where_the_server_has_it(kind: type[Resource]) -> None:
    facts = FACTS["kinds"][f"{kind.apiVersion}/{kind.kind}"]
    info = kind.__resource__
    assert (info.plural, info.namespaced) == (facts["plural"], facts["namespaced"])


def test_every_field_has_the_name_and_type_that_the_server_gives_it() -> None:
    wrong = [
        f"{kind.__name__}.{field}: ours {notation(ours)}, theirs {theirs}"
        for kind, name in pairs().items()
        for field, ours in fields_of(kind).items()
        if not agrees(notation(ours), theirs := FACTS["types"][name].get(field, "none"))
    ]
    assert wrong == []


def test_every_class_is_called_what_kubernetes_calls_it() -> None:
    wrong = {
        kind.__name__: name
        for kind, name in pairs().items()
        if OTHER_NAMES.get(kind.__name__, kind.__name__) != name.split(".")[-1]
    }
    assert wrong == {}


def test_every_public_class_is_a_part_of_some_kind() -> None:
    assert set(CLASSES) <= set(pairs())


def test_every_field_that_the_server_writes_as_null_can_be_read() -> None:
    wrong = [
        f"{kind.__name__}.{field}"
        for kind, name in pairs().items()
        for field, ours in fields_of(kind).items()
        if FACTS["types"][name].get(field, "").endswith("?")
        and not takes_null(ours)
        and notation(ours) != "[Condition]"
        and (name, field) not in NEVER_NULL
    ]
    assert wrong == []


@pytest.mark.parametrize("arm", [0, 1])
@pytest.mark.parametrize("kind", CLASSES, ids=by_name)
def test_what_is_written_reads_back_the_same(kind: type[Object], arm: int) -> None:
    value = filled(kind, arm=arm)
    assert decode(kind, encode(value)) == value
    assert convert(kind, wire(value)) == value


@pytest.mark.parametrize("kind", CLASSES, ids=by_name)
def test_a_write_carries_only_what_was_set(kind: type[Object]) -> None:
    fields = msgspec.structs.fields(kind)
    given = {
        field.name: some(field_type, arm=0)
        for field, field_type in zip(fields, fields_of(kind).values(), strict=True)
        if field.required
    }
    written = wire(kind(**given))
    written.pop("status", None)
    counters = {key for key, value in written.items() if value in (0, False)}
    head = set(kind.__head__)
    constants = {"apiGroup"} if kind.__name__ == "RoleRef" else set()
    assert set(written) - counters - head - constants == set(given)
    assert not counters or kind.__name__.endswith("Status")


@pytest.mark.parametrize("kind", PARTS, ids=by_name)
def test_every_part_can_stand_in_a_custom_resource(kind: type[Object]) -> None:
    assert structural(kind)["type"] == "object"


def holds_something_mutable(value: object) -> bool:
    """Whether somebody could change a value, and so every object that shares it."""
    if isinstance(value, Object):
        parts = [getattr(value, name) for name in value.__struct_fields__]
        return any(map(holds_something_mutable, parts))
    return isinstance(value, dict | list | set)


@pytest.mark.parametrize("kind", CLASSES, ids=by_name)
def test_a_default_that_could_be_changed_is_not_shared(kind: type[Object]) -> None:
    shared = [
        info.name
        for info in msgspec.structs.fields(kind)
        if holds_something_mutable(info.default)
    ]
    assert shared == []


def test_a_partial_deployment_is_a_partial_apply() -> None:
    deployment = Deployment(
        metadata=Metadata(name="web", namespace="default"),
        spec=DeploymentSpec(
            template=PodTemplateSpec(
                spec=PodSpec(containers=[Container(name="web", image="web:2")])
            )
        ),
    )
    assert wire(deployment)["spec"] == {
        "template": {"spec": {"containers": [{"name": "web", "image": "web:2"}]}}
    }


def test_an_empty_choice_is_still_a_choice() -> None:
    volume = Volume(name="scratch", emptyDir=EmptyDirVolumeSource())
    peer = kinds.NetworkPolicyPeer(podSelector=LabelSelector())
    rule = kinds.NetworkPolicySpec(ingress=[kinds.NetworkPolicyIngressRule()])
    assert wire(volume) == {"name": "scratch", "emptyDir": {}}
    assert wire(peer) == {"podSelector": {}}
    assert wire(rule) == {"ingress": [{}]}


def test_words_that_python_has_already_lose_their_underscore() -> None:
    block = kinds.IPBlock(cidr="10.0.0.0/8", except_=["10.1.0.0/16"])
    rule = kinds.NetworkPolicyIngressRule(
        from_=[kinds.NetworkPolicyPeer(ipBlock=block)]
    )
    assert wire(rule) == {
        "from": [{"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16"]}}]
    }
    assert decode(kinds.NetworkPolicyIngressRule, encode(rule)) == rule


def test_counters_that_the_server_leaves_out_are_zero() -> None:
    deployment = decode(Deployment, b'{"status": {"replicas": 2}}')
    assert deployment.status == DeploymentStatus(replicas=2)
    assert deployment.status.readyReplicas == 0


def test_an_object_without_spec_or_status_can_be_read() -> None:
    pod = decode(Pod, b'{"metadata": {"name": "web"}}')
    assert (pod.key, pod.spec, pod.status) == (("", "web"), PodSummary(), PodStatus())


def test_a_role_without_rules_can_be_read() -> None:
    assert decode(Role, b'{"metadata": {"name": "none"}, "rules": null}').rules is None


def test_secret_data_is_bytes_here_and_base64_on_the_wire() -> None:
    secret = decode(Secret, b'{"data": {"key": "AP/+", "empty": ""}}')
    assert secret.data == {"key": b"\x00\xff\xfe", "empty": b""}
    assert wire(secret)["data"] == {"key": "AP/+", "empty": ""}


def test_a_secret_never_shows_its_values() -> None:
    metadata = Metadata(name="login", namespace="default")
    secret = Secret(
        metadata=metadata, data={"token": b"hunter2"}, stringData={"more": "hunter2"}
    )
    shown = f"{secret} {secret!r} {[*secret.__rich_repr__()]} {[secret]}"
    assert "hunter2" not in shown
    assert "token" in shown
    assert "more" in shown


def test_unknown_fields_are_ignored() -> None:
    text = b"""{"apiVersion": "v1", "kind": "Pod", "future": {"a": [1]},
        "metadata": {"name": "web", "managedFields": [{"manager": "kubectl"}]},
        "spec": {"containers": [{"name": "web", "someday": 3.5}], "beyond": null}}"""
    pod = decode(Pod, text)
    assert pod.spec.containers == [ContainerSummary(name="web")]


def test_a_pod_is_written_whole_and_read_in_summary() -> None:
    container = Container(name="web", image="web:1", args=["--fast"])
    pod = Pod(spec=PodSpec(nodeName="one", containers=[container], hostname="web"))
    summary = ContainerSummary(name="web", image="web:1")
    assert wire(pod)["spec"] == {
        "nodeName": "one",
        "containers": [{"name": "web", "image": "web:1", "args": ["--fast"]}],
        "hostname": "web",
    }
    assert decode(Pod, encode(pod)).spec == PodSummary(
        nodeName="one", containers=[summary]
    )
    assert decode(WholePod, encode(pod)).spec == pod.spec


class NominatedStatus(PodStatus):
    nominatedNodeName: str = ""


class NominatedPod(Pod):
    status: NominatedStatus


def test_a_subclass_adds_a_field_and_stays_the_same_kind() -> None:
    text = b"""{"metadata": {"name": "web"},
        "status": {"phase": "Pending", "nominatedNodeName": "one"}}"""
    pod = decode(NominatedPod, text)
    assert (pod.status.phase, pod.status.nominatedNodeName) == ("Pending", "one")
    assert NominatedPod.__resource__ is Pod.__resource__
    assert wire(pod)["kind"] == "Pod"
    assert decode(NominatedPod, b"{}").status == NominatedStatus()
    assert isinstance(pod, Pod)


def test_a_cached_pod_costs_about_four_kibibytes() -> None:
    """Measured as what the allocator hands out, over many pods that differ."""
    text = (DATA / "pod.json").read_bytes()
    assert 6_000 <= len(text) <= 7_000
    texts = [text.replace(b"web-0", b"web-%03d" % number) for number in range(200)]
    decoder(Pod).decode(text)
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        pods = [decoder(Pod).decode(each) for each in texts]
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (after - before) / len(pods) <= 4608


def test_the_short_name_offers_what_the_long_one_does() -> None:
    from trimtab.api import kinds as long

    assert vars(kinds)["__all__"] == vars(long)["__all__"]
    assert all(
        getattr(kinds, name) is getattr(long, name) for name in vars(long)["__all__"]
    )


def test_importing_the_kinds_brings_in_nothing_heavy() -> None:
    heavy = ["aiohttp", "asyncio", "cryptography", "grpc", "numpy", "ssl", "yaml"]
    program = f"import sys, trimtab.kinds; print(set({heavy}) & set(sys.modules))"
    command = [sys.executable, "-c", program]
    path = {"PYTHONPATH": os.pathsep.join(sys.path)}
    run = subprocess.run(command, env=path, check=True, capture_output=True, text=True)
    assert run.stdout.strip() == "set()"
