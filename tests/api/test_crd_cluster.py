"""Laws of generated CRDs that only a server can confirm."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import strategies as st

from tests.api.classes import random_kind
from tests.api.kitchen import (
    Door,
    Kitchen,
    KitchenSpec,
    KitchenStatus,
    Port,
    Seen,
    kitchen_spec,
)
from tests.api.strategies import objects, samples
from trimtab.api.codec import convert
from trimtab.api.conditions import Conditions
from trimtab.api.crd import crd
from trimtab.api.objects import Spec, Status, wire
from trimtab.api.resource import Metadata, Resource
from trimtab.client import Client, load
from trimtab.testing import Cluster, KubectlFailed, eventually

JSON = dict[str, Any]

pytestmark = pytest.mark.cluster

KITCHENS = "kitchens.kitchens.example.com"
STRICT = ("--validate=strict", "--warnings-as-errors", "--filename=-")
NOW = datetime(2026, 1, 2, tzinfo=UTC)


class OldSpec(Spec):
    """What one could wish of a chair once."""

    legs: int = 4


class NewSpec(OldSpec):
    """What one can wish of a chair."""

    color: str = ""


class ChairStatus(Status):
    """What became of a chair."""

    sat: int = 0


class OldChair(
    Resource,
    group="kitchens.example.com",
    version="v1beta1",
    kind="Chair",
    storage=False,
    deprecated="v1beta1 of Chair is old; use v1",
):
    """A thing to sit on."""

    spec: OldSpec = OldSpec()
    status: ChairStatus = ChairStatus()


class Chair(Resource, group="kitchens.example.com", version="v1", short="ch"):
    """A thing to sit on, of some color."""

    spec: NewSpec = NewSpec()
    status: ChairStatus = ChairStatus()


@pytest.fixture(scope="module")
def kitchens(
    cluster: Cluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    """A cluster that serves the kinds of these tests, warnings being errors."""
    run = cluster.tool.run_blocking
    folder = tmp_path_factory.mktemp("crds")
    made = [crd(Kitchen), crd(OldChair, Chair)]
    for number, each in enumerate(made):
        path = folder / f"{number}.json"
        path.write_text(json.dumps(each))
        strict = ("--validate=strict", "--warnings-as-errors")
        run("create", *strict, f"--filename={path}")
    names = [f"crd/{each['metadata']['name']}" for each in made]
    run("wait", "--for=condition=Established", "--timeout=30s", *names)
    yield cluster
    run("delete", *names, "--wait=false")


def documents(text: str) -> list[JSON]:
    """The objects that kubectl printed one after the other."""
    reader, found = json.JSONDecoder(), []
    text = text.strip()
    while text:
        document, end = reader.raw_decode(text)
        found.append(document)
        text = text[end:].lstrip()
    return found


async def create(cluster: Cluster, namespace: str, *written: JSON) -> list[JSON]:
    """Create objects under strict validation; what came back, in their order."""
    text = "\n".join(json.dumps(each) for each in written)
    arguments = ("create", f"--namespace={namespace}", "--output=json", *STRICT)
    return documents(await cluster.kubectl(*arguments, stdin=text))


async def apply(
    cluster: Cluster, namespace: str, *written: JSON, manager: str, more: str = ""
) -> list[JSON]:
    """Apply objects on the server as a field manager."""
    text = "\n".join(json.dumps(each) for each in written)
    arguments = (
        *("apply", "--server-side", f"--field-manager={manager}"),
        *(f"--namespace={namespace}", "--output=json", *STRICT),
        *([more] if more else []),
    )
    return documents(await cluster.kubectl(*arguments, stdin=text))


async def replace_status(
    cluster: Cluster, namespace: str, *written: JSON
) -> list[JSON]:
    """Write the status of objects that were read before."""
    text = "\n".join(json.dumps(each) for each in written)
    here = (f"--namespace={namespace}", "--subresource=status", "--output=json")
    return documents(await cluster.kubectl("replace", *here, *STRICT, stdin=text))


def kitchen(name: str = "mine", **wishes: Any) -> JSON:
    made = Kitchen(metadata=Metadata(name=name), spec=kitchen_spec(**wishes))
    return {key: value for key, value in wire(made).items() if key != "status"}


def status(name: str, value: JSON) -> JSON:
    return {**Kitchen.__head__, "metadata": {"name": name}, "status": value}


def lost(sent: Any, found: Any, path: str = "") -> Iterator[str]:
    """Where something that was sent is not there; nulls count."""
    if isinstance(sent, dict) and isinstance(found, dict):
        for key, value in sent.items():
            if key in found:
                yield from lost(value, found[key], f"{path}.{key}")
            else:
                yield f"{path}.{key}"
    elif isinstance(sent, list) and isinstance(found, list) and len(sent) == len(found):
        for number, (mine, theirs) in enumerate(zip(sent, found, strict=True)):
            yield from lost(mine, theirs, f"{path}[{number}]")
    elif isinstance(sent, float) and isinstance(found, int):
        # The same double, printed with zeros for the digits that do not matter.
        yield from () if sent == float(found) else (path,)
    elif sent != found:
        yield path


async def test_the_generated_crd_is_established_and_structural(
    kitchens: Cluster,
) -> None:
    found = json.loads(await kitchens.kubectl("get", "crd", KITCHENS, "--output=json"))
    conditions = {
        each["type"]: each["status"] for each in found["status"]["conditions"]
    }
    assert conditions["Established"] == "True"
    assert conditions["NamesAccepted"] == "True"
    assert "NonStructuralSchema" not in conditions


async def test_the_server_keeps_the_generated_schema_as_it_is(
    kitchens: Cluster,
) -> None:
    found = json.loads(await kitchens.kubectl("get", "crd", KITCHENS, "--output=json"))
    assert list(lost(crd(Kitchen)["spec"], found["spec"])) == []


async def test_every_class_that_can_be_defined_is_a_crd_that_the_server_takes(
    cluster: Cluster,
) -> None:
    for seeded in (secrets.randbits(32) for _ in range(3)):
        made = json.dumps(crd(random_kind(seeded=seeded, size=60)))
        try:
            await cluster.kubectl("create", "--dry-run=server", *STRICT, stdin=made)
        except KubectlFailed as refused:
            raise AssertionError(f"{seeded}: {refused.stderr}") from None


@pytest.mark.parametrize("round", range(3))
async def test_random_objects_come_back_with_nothing_lost(
    kitchens: Cluster, namespace: str, round: int
) -> None:
    seeded = secrets.randbits(32)
    drawn = samples(
        st.tuples(objects(KitchenSpec), objects(KitchenStatus)), 40, seeded=seeded
    )
    names = [f"{round}-{number}" for number in range(len(drawn))]
    specs = [
        {**Kitchen.__head__, "metadata": {"name": name}, "spec": wire(spec)}
        for name, (spec, _) in zip(names, drawn, strict=True)
    ]
    found = await create(kitchens, namespace, *specs)
    for each, (_, said) in zip(found, drawn, strict=True):
        each["status"] = wire(said)
    # Not by apply: kubectl writes some control characters as no YAML parser takes them.
    found = await replace_status(kitchens, namespace, *found)
    for (spec, said), sent, back in zip(drawn, specs, found, strict=True):
        assert list(lost(sent["spec"], back["spec"])) == [], seeded
        assert list(lost(wire(said), back["status"])) == [], seeded
        read = convert(Kitchen, back)
        assert read.spec == spec, seeded
        assert read.status == said, seeded


async def test_defaults_are_filled_in_in_the_spec_and_never_in_the_status(
    kitchens: Cluster, namespace: str
) -> None:
    required = ("name", "tall", "size", "weight", "opened")
    sent = kitchen()
    sent["spec"] = {key: sent["spec"][key] for key in required}
    sent["spec"]["back"] = {"panes": 1}
    sent["spec"]["ports"] = [{"port": 80}]
    [found] = await create(kitchens, namespace, sent)
    spec = found["spec"]
    assert spec["percent"] == 50
    assert spec["memory"] == "16Gi"
    assert spec["words"] == ["one"]
    assert spec["door"] == {"color": "white", "panes": 2}
    assert spec["front"] == {"color": "black", "panes": 2}
    assert spec["back"] == {"color": "white", "panes": 1}
    assert spec["ports"] == [{"port": 80, "protocol": "TCP"}]
    assert spec["span"] == {"low": 0, "high": 2**63 - 1}
    assert {"nickname", "labels", "selector", "options"}.isdisjoint(spec)
    [said] = await apply(
        kitchens,
        namespace,
        status("mine", {"door": {"panes": 1}}),
        manager="test",
        more="--subresource=status",
    )
    assert said["status"] == {"door": {"panes": 1}}
    assert convert(Kitchen, said).status.door == Door(panes=1)


async def test_an_object_without_a_spec_gets_the_defaults_of_one(
    kitchens: Cluster, namespace: str
) -> None:
    [found] = await create(
        kitchens, namespace, {**Chair.__head__, "metadata": {"name": "bare"}}
    )
    assert found["spec"] == {"legs": 4}


@pytest.mark.parametrize(
    ("wish", "said"),
    [
        ({"name": ""}, "at least 1 chars"),
        ({"name": "x" * 41}, "may not be more than 40"),
        ({"percent": 101}, "less than or equal to 100"),
        ({"ratio": 1}, "should be less than 1"),
        ({"even": 3}, "should be a multiple of 2"),
        ({"small": 2**31}, "int32"),
        ({"size": 2**63}, "int64"),
        ({"code": "nope"}, "should match"),
        ({"address": "nowhere"}, "must be of type ipv4"),
        ({"secret": "?"}, "must be of type byte"),
        ({"opened": "yesterday"}, "must be of type date-time"),
        ({"memory": "much"}, "should match"),
        ({"color": "blue"}, 'supported values: "red", "green"'),
        ({"turns": 4}, 'supported values: "1", "2", "3"'),
        ({"heat": "Warm"}, 'supported values: "Low", "High"'),
        ({"scores": [1, 200]}, "less than or equal to 100"),
        ({"words": ["x"] * 21}, "must have at most 20 items"),
        ({"labels": {str(i): "" for i in range(21)}}, "must have at most 20"),
        ({"unique": ["a", "a"]}, "Duplicate value"),
        ({"ports": [{"port": 1}, {"port": 1}]}, "Duplicate value"),
        ({"span": {"low": 2, "high": 1}}, "low is high"),
        ({"unknown": 1}, 'unknown field "spec.unknown"'),
        ({"door": {"colour": "red"}}, 'unknown field "spec.door.colour"'),
    ],
)
async def test_bounds_choices_and_rules_are_enforced_in_our_words(
    kitchens: Cluster, wish: JSON, said: str
) -> None:
    sent = kitchen()
    sent["spec"] |= wish
    with pytest.raises(KubectlFailed) as refused:
        await create(kitchens, "default", sent)
    assert said in refused.value.stderr


async def test_a_rule_of_the_resource_and_one_over_time_are_enforced(
    kitchens: Cluster, namespace: str
) -> None:
    with pytest.raises(KubectlFailed, match="the name is too long"):
        await create(kitchens, namespace, kitchen("x" * 201))
    await create(kitchens, namespace, kitchen(fixed="a"))
    patch = json.dumps({"spec": {"fixed": "b"}})
    with pytest.raises(KubectlFailed, match="fixed stays as it is"):
        await kitchens.kubectl(
            *("patch", KITCHENS, "mine", f"--namespace={namespace}"),
            *("--type=merge", f"--patch={patch}"),
        )


async def test_a_list_map_is_merged_by_its_keys(
    kitchens: Cluster, namespace: str
) -> None:
    head = {**Kitchen.__head__, "metadata": {"name": "mine"}}
    mine = Port(port=80, note="mine")
    theirs = Port(port=80, protocol="UDP", note="theirs")
    await create(kitchens, namespace, kitchen())
    for manager, port in (("a", mine), ("b", theirs)):
        applied = {**head, "spec": {"ports": [wire(port)]}}
        await apply(kitchens, namespace, applied, manager=manager)
    [found] = await apply(kitchens, namespace, head, manager="c")
    assert convert(Kitchen, found).spec.ports == [mine, theirs]
    [found] = await apply(kitchens, namespace, head, manager="a")
    assert convert(Kitchen, found).spec.ports == [theirs]


async def test_owners_write_their_parts_of_a_status_side_by_side(
    kitchens: Cluster, namespace: str
) -> None:
    await create(kitchens, namespace, kitchen())
    ready = Conditions().set("Ready", True, reason="Hot", now=NOW)
    warm = Conditions().set("Warm", False, reason="Cold", now=NOW + timedelta(hours=1))
    judged = Kitchen.status_of("judge")(score=0.0, cleared=None, seen=[Seen(who="me")])
    for manager, part in (
        ("controller", Kitchen.status_of()(phase="Hot", conditions=ready)),
        ("judge", judged),
        ("heater", Kitchen.status_of()(conditions=warm)),
    ):
        [found] = await apply(
            kitchens,
            namespace,
            status("mine", wire(part)),
            manager=manager,
            more="--subresource=status",
        )
    assert found["status"]["cleared"] is None
    read = convert(Kitchen, found).status
    assert read == KitchenStatus(
        phase="Hot",
        score=0.0,
        seen=[Seen(who="me")],
        conditions=Conditions([*ready.values(), *warm.values()]),
    )


async def test_a_text_is_applied_whatever_characters_it_has(
    kitchens: Cluster, namespace: str
) -> None:
    odd = "".join(map(chr, (1, *range(0x7E, 0xA1), 0x2028, 0xFEFF, 0xFFFE, 0x1F642)))
    await create(kitchens, namespace, kitchen())
    async with Client(load(kubeconfig=kitchens.kubeconfig)) as client:
        found = await client.apply_status(
            Kitchen,
            "mine",
            Kitchen.status_of("judge")(cleared=odd),
            manager="judge",
            namespace=namespace,
        )
    assert found.status.cleared == odd


async def test_the_scale_subresource_scales(kitchens: Cluster, namespace: str) -> None:
    await create(kitchens, namespace, kitchen())
    here = f"--namespace={namespace}"
    await kitchens.kubectl("scale", KITCHENS, "mine", here, "--replicas=7")
    said = status("mine", {"replicas": 3, "selector": "app=mine"})
    await apply(kitchens, namespace, said, manager="test", more="--subresource=status")
    path = f"/apis/kitchens.example.com/v1/namespaces/{namespace}/kitchens/mine/scale"
    scale = json.loads(await kitchens.kubectl("get", "--raw", path))
    assert scale["spec"] == {"replicas": 7}
    assert scale["status"] == {"replicas": 3, "selector": "app=mine"}


async def test_selectable_fields_select(kitchens: Cluster, namespace: str) -> None:
    await create(
        kitchens,
        namespace,
        kitchen("red"),
        kitchen("green", color="green"),
        kitchen("low", color="green", tall=False),
    )

    async def names(selector: str) -> str:
        return await kitchens.kubectl(
            *("get", "kit", f"--namespace={namespace}", "--output=name"),
            f"--field-selector={selector}",
        )

    said = status("red", {"phase": "Hot"})
    await apply(kitchens, namespace, said, manager="test", more="--subresource=status")
    assert (await names("spec.color=red")).split() == [f"kitchen.{KITCHENS[9:]}/red"]
    assert "low" in await names("spec.color=green,spec.tall=false")
    assert (await names("status.phase=Hot")).split() == [f"kitchen.{KITCHENS[9:]}/red"]


async def test_columns_are_shown_with_the_age_at_the_end(
    kitchens: Cluster, namespace: str
) -> None:
    await create(kitchens, namespace, kitchen(size=42))
    ready = Conditions().set("Ready", True, reason="Hot", now=NOW)
    said = status("mine", wire(KitchenStatus(conditions=ready)))
    await apply(kitchens, namespace, said, manager="test", more="--subresource=status")

    async def row(*more: str) -> dict[str, str]:
        here = f"--namespace={namespace}"
        text = await kitchens.kubectl("get", "ki", "mine", here, *more)
        head, line = (each.split() for each in text.splitlines())
        return dict(zip(head, line, strict=True))

    shown = await row()
    assert list(shown) == ["NAME", "SIZE", "READY", "AGE"]
    assert (shown["SIZE"], shown["READY"]) == ("42", "True")
    # A column of lower priority has its place; it shows only when asked for.
    wide = await row("--output=wide")
    assert list(wide) == ["NAME", "SIZE", "READY", "LABEL", "AGE"]


async def test_two_versions_are_served_and_one_is_stored(
    kitchens: Cluster, namespace: str
) -> None:
    made = Chair(metadata=Metadata(name="blue"), spec=NewSpec(color="blue"))
    await create(kitchens, namespace, wire(made))
    here = f"--namespace={namespace}"

    async def read(version: str, *more: str) -> JSON:
        name = f"chairs.{version}.kitchens.example.com"
        answer = await kitchens.kubectl("get", name, "blue", here, "-ojson", *more)
        found: JSON = json.loads(answer)
        return found

    found = json.loads(
        await kitchens.kubectl("get", "crd", "chairs.kitchens.example.com", "-ojson")
    )
    assert found["status"]["storedVersions"] == ["v1"]
    assert (await read("v1", "--warnings-as-errors"))["spec"]["color"] == "blue"
    assert convert(OldChair, await read("v1beta1")).spec == OldSpec(legs=4)
    with pytest.raises(KubectlFailed, match="v1beta1 of Chair is old; use v1"):
        await read("v1beta1", "--warnings-as-errors")


async def test_explain_tells_what_the_classes_say(kitchens: Cluster) -> None:
    async def explained() -> bool:
        try:
            text = await kitchens.kubectl("explain", "kitchens.spec.name")
        except KubectlFailed:  # the server publishes new kinds after a moment
            return False
        return "What people call it." in text

    await eventually(explained, within=30.0, every=0.5, describe="kubectl explain")
