"""Laws of the recorded facts, some of them checked by hand against the Go types."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Iterator

import pytest
from msgspec import UNSET

from hack import record_embedded_facts as record
from trimtab.embedded.facts import DATA, Definitions, definitions, resources
from trimtab.embedded.types import OBJECT_META, Type
from trimtab.testing import cluster

META = "io.k8s.apimachinery.pkg.apis.meta.v1."
API = "io.k8s.api."
EXTENSIONS = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1."


def field(path: str) -> Type:
    """``core.v1.PodSpec.containers`` and the like."""
    package, version, name, member = path.split(".")
    prefix = META.removesuffix("v1.") if package == "meta" else f"{API}{package}."
    return definitions().type(f"{prefix}{version}.{name}").fields[member]


@pytest.mark.parametrize(
    ("path", "keys", "patch_key"),
    [
        ("core.v1.PodSpec.containers", "name", "name"),
        ("core.v1.PodSpec.initContainers", "name", "name"),
        ("core.v1.PodSpec.volumes", "name", "name"),
        ("core.v1.PodSpec.imagePullSecrets", "name", "name"),
        ("core.v1.PodSpec.hostAliases", "ip", "ip"),
        (
            "core.v1.PodSpec.topologySpreadConstraints",
            "topologyKey whenUnsatisfiable",
            "topologyKey",
        ),
        ("core.v1.Container.env", "name", "name"),
        ("core.v1.Container.ports", "containerPort protocol", "containerPort"),
        ("core.v1.Container.volumeMounts", "mountPath", "mountPath"),
        ("core.v1.ServiceSpec.ports", "port protocol", "port"),
        ("core.v1.PodStatus.conditions", "type", "type"),
        ("apps.v1.DeploymentStatus.conditions", "type", "type"),
        ("meta.v1.ObjectMeta.ownerReferences", "uid", "uid"),
    ],
)
def test_lists_of_named_things_are_merged_by_name(
    path: str, keys: str, patch_key: str
) -> None:
    node = field(path)
    assert (node.shape, node.list_type, node.atomic) == ("list", "map", False)
    assert node.keys == tuple(keys.split())
    assert node.patch_key == patch_key
    assert node.patch_strategy[0] == "merge"
    assert node.element is not None
    assert node.element.fields.keys() >= set(node.keys)


@pytest.mark.parametrize(
    ("path", "shape"),
    [
        ("core.v1.PodSpec.tolerations", "list"),
        ("core.v1.Container.args", "list"),
        ("core.v1.PodSpec.nodeSelector", "map"),
        ("core.v1.ServiceSpec.selector", "map"),
        ("apps.v1.DeploymentSpec.selector", "object"),
        ("core.v1.EnvVarSource.configMapKeyRef", "object"),
        ("meta.v1.ObjectMeta.managedFields", "list"),
        ("networking.v1.IngressSpec.rules", "list"),
    ],
)
def test_these_are_replaced_as_a_whole(path: str, shape: str) -> None:
    node = field(path)
    assert (node.shape, node.atomic) == (shape, True)


@pytest.mark.parametrize(
    ("path", "strategy"),
    [
        ("core.v1.PodSpec.volumes", ("merge", "retainKeys")),
        ("apps.v1.DeploymentSpec.strategy", ("retainKeys",)),
        ("policy.v1.PodDisruptionBudgetSpec.selector", ("replace",)),
        ("meta.v1.ObjectMeta.finalizers", ("merge",)),
        ("core.v1.PodSpec.tolerations", ()),
    ],
)
def test_patches_merge_as_the_go_types_say(
    path: str, strategy: tuple[str, ...]
) -> None:
    assert field(path).patch_strategy == strategy


def test_finalizers_are_a_set() -> None:
    node = field("meta.v1.ObjectMeta.finalizers")
    assert (node.list_type, node.keys, node.atomic) == ("set", (), False)


def test_a_merged_list_without_a_list_type_is_one_by_its_merge_key() -> None:
    merge = {"type": "array", "items": {}, "x-kubernetes-patch-strategy": "merge"}
    fields = {"a": merge, "b": {**merge, "x-kubernetes-patch-merge-key": "name"}}
    line = ["T", [], {"type": "object", "properties": fields}]
    node = Definitions(json.dumps(line).encode()).type("T")
    assert (node.fields["a"].list_type, node.fields["a"].keys) == ("set", ())
    assert (node.fields["b"].list_type, node.fields["b"].keys) == ("map", ("name",))


@pytest.mark.parametrize(
    ("name", "shape", "scalar", "form"),
    [
        ("io.k8s.apimachinery.pkg.api.resource.Quantity", "scalar", "int-or-string",
         "quantity"),
        ("io.k8s.apimachinery.pkg.util.intstr.IntOrString", "scalar", "int-or-string",
         "int-or-string"),
        (f"{META}Time", "scalar", "string", "date-time"),
        (f"{META}MicroTime", "scalar", "string", "date-time"),
        (f"{META}FieldsV1", "any", "", ""),
        (f"{META}Patch", "any", "", ""),
        ("io.k8s.apimachinery.pkg.runtime.RawExtension", "any", "", ""),
        (f"{EXTENSIONS}JSON", "any", "", ""),
        (f"{EXTENSIONS}JSONSchemaPropsOrArray", "any", "", ""),
        (f"{EXTENSIONS}JSONSchemaPropsOrBool", "any", "", ""),
        (f"{EXTENSIONS}CustomResourceSubresourceStatus", "object", "", ""),
        (f"{META}ObjectMeta", "object", "", ""),
    ],
)  # fmt: skip
def test_special_types_have_their_shapes(
    name: str, shape: str, scalar: str, form: str
) -> None:
    node = definitions().type(name)
    assert (node.shape, node.scalar, node.format) == (shape, scalar, form)
    assert (node.name, node.facts) == (name, {})


def test_a_raw_extension_is_replaced_as_a_whole_and_json_is_merged() -> None:
    raw = definitions().type("io.k8s.apimachinery.pkg.runtime.RawExtension")
    assert raw.atomic
    assert not definitions().type(f"{EXTENSIONS}JSON").atomic


def test_enums_defaults_and_requirements_are_there() -> None:
    protocol = field("core.v1.ContainerPort.protocol")
    assert protocol.facts["enum"] == ["SCTP", "TCP", "UDP"]
    assert protocol.default == "TCP"
    container = definitions().type(f"{API}core.v1.Container")
    assert container.required == ("name",)
    assert container.fields["image"].default is UNSET
    assert container.fields["name"].default == ""


def reached(root: Type) -> Iterator[Type]:
    """All nodes of a graph, each once."""
    waiting, seen = [root], {id(root)}
    while waiting:
        node = waiting.pop()
        yield node
        inner = [*node.fields.values(), *([node.element] if node.element else ())]
        waiting += [each for each in inner if id(each) not in seen]
        seen |= {id(each) for each in inner}


def test_a_definition_is_one_type_wherever_it_occurs() -> None:
    pod, job = (
        definitions().of(group, "v1", kind)
        for group, kind in (("", "Pod"), ("batch", "CronJob"))
    )
    spec = f"{API}core.v1.PodSpec"
    (of_pod,) = [node for node in reached(pod) if node.name == spec]
    (of_job,) = [node for node in reached(job) if node.name == spec]
    assert of_pod is of_job
    assert definitions().of("", "v1", "Pod") is pod


def test_a_field_that_says_how_to_merge_shares_the_fields_of_its_type() -> None:
    strategy = field("apps.v1.DeploymentSpec.strategy")
    shared = definitions().type(f"{API}apps.v1.DeploymentStrategy")
    assert strategy is not shared
    assert strategy.fields is shared.fields
    assert shared.patch_strategy == ()
    claim = field("core.v1.PersistentVolumeSpec.claimRef")
    assert claim.atomic is False
    assert definitions().type(f"{API}core.v1.ObjectReference").atomic is True


def test_a_type_may_contain_itself() -> None:
    props = definitions().type(f"{EXTENSIONS}JSONSchemaProps")
    assert props.fields["not"] is props
    assert props.fields["properties"].element is props
    assert props.fields.keys() >= {"$ref", "default", "description", "type", "items"}
    assert len(list(reached(props))) > 20


def test_no_definition_is_a_list_or_a_map() -> None:
    # A copy may be made before the type that it is a copy of is complete; fields,
    # which are shared, may come later, but an element would be lost.
    for node in map(definitions().type, definitions().names):
        assert node.shape in ("object", "scalar", "any")
        assert node.element is None


def test_a_type_is_shown_in_one_line() -> None:
    pod = definitions().of("", "v1", "Pod")
    assert repr(pod) == "<Type object io.k8s.api.core.v1.Pod>"
    assert repr(pod.fields["kind"]) == "<Type scalar string>"


def test_every_resource_has_the_type_of_an_object() -> None:
    for each in resources():
        node = definitions().type(each.definition)
        assert node is definitions().of(each.group, each.version, each.kind)
        assert node.fields["kind"].scalar == "string"
        assert node.fields["metadata"].name == OBJECT_META
        if each.list_kind:
            listed = definitions().of(each.group, each.version, each.list_kind)
            assert listed.fields["items"].element is node


def test_what_is_not_known_is_a_key_error() -> None:
    with pytest.raises(KeyError, match="apps/v1/Pod"):
        definitions().of("apps", "v1", "Pod")
    with pytest.raises(KeyError):
        definitions().type("io.k8s.api.core.v1.Nothing")
    assert definitions().name("apps", "v1", "Pod") == ""


def test_subresources_speak_their_own_kinds() -> None:
    pods, deployments = (
        next(each for each in resources() if each.plural == plural)
        for plural in ("pods", "deployments")
    )
    eviction = pods.subresource("eviction")
    assert eviction is not None
    assert (eviction.group, eviction.kind, eviction.verbs) == (
        *("policy", "Eviction"),
        ("create",),
    )
    scale = deployments.subresource("scale")
    assert scale is not None
    assert (scale.group, scale.version, scale.kind) == ("autoscaling", "v1", "Scale")
    assert pods.subresource("scale") is None


def test_resources_stand_in_the_order_of_the_server() -> None:
    groups = list(dict.fromkeys(each.group for each in resources()))
    assert groups[:4] == ["", "apiregistration.k8s.io", "apps", "events.k8s.io"]
    versions = [each.version for each in resources() if each.group == "autoscaling"]
    assert versions == ["v2", "v1"]
    assert groups[-1] == "flowcontrol.apiserver.k8s.io"


def test_the_facts_are_small_and_without_prose() -> None:
    files = [DATA / "definitions.jsonl", DATA / "resources.jsonl"]
    assert sum(path.stat().st_size for path in files) < 250_000
    for name in definitions().names:
        for schema in schemas(definitions().schema(name)):
            assert not isinstance(schema.get("description"), str)


def schemas(schema: record.JSON) -> Iterator[record.JSON]:
    yield schema
    for each in schema.get("properties", {}).values():
        yield from schemas(each)
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield from schemas(schema[key])


def test_what_nobody_asks_for_costs_no_memory() -> None:
    data = (DATA / "definitions.jsonl").read_bytes()
    tracemalloc.start()
    try:
        made = Definitions(data)
        idle = tracemalloc.get_traced_memory()[0]
        for name in made.names:
            made.type(name)
        busy = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert idle < 512 * 1024
    assert busy < 5 * 1024 * 1024


@pytest.mark.cluster("real")
async def test_the_facts_are_those_of_the_server() -> None:
    # A cluster of its own: the CRDs of other tests come and go while it is asked.
    async with cluster("real") as fresh, record.asking(fresh) as ask:
        found = record.shipped(await record.openapi(ask), await record.discovery(ask))
    for name, lines in found.items():
        assert lines == (DATA / name).read_text().splitlines()
