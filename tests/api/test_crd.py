"""Laws of generated CRDs: names, versions, subresources, columns and their paths."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.api.kitchen import Kitchen
from trimtab.api.crd import crd
from trimtab.api.objects import Object, Spec, Status, field
from trimtab.api.paths import find, steps
from trimtab.api.resource import Column, Resource, ResourceMeta, Scale
from trimtab.kinds import Pod

GROUP = "example.com"


class Part(Object):
    name: str = ""
    count: int = 0


class SiteSpec(Spec):
    image: str = ""
    replicas: int = 1
    parts: list[Part] = []
    labels: dict[str, str] = {}
    options: dict[str, Any] = {}
    amount: float = 0.0


class SiteStatus(Status):
    replicas: int = 0
    selector: str = ""


def site(*, version: str = "v1", name: str = "Site", **keywords: Any) -> Any:
    """A kind with a spec and a status, under these class keywords."""
    namespace = {
        "__annotations__": {"spec": SiteSpec, "status": SiteStatus},
        "__module__": __name__,
    }
    keywords = {"group": GROUP, "version": version} | keywords
    return ResourceMeta(name, (Resource,), namespace, **keywords)


def version_of(kind: Any) -> dict[str, Any]:
    made: dict[str, Any] = crd(kind)["spec"]["versions"][0]
    return made


def test_a_crd_is_named_after_its_plural_and_group() -> None:
    made = crd(site(short="st", categories=("all",)))
    assert made["metadata"] == {"name": "sites.example.com"}
    assert made["spec"]["group"] == GROUP
    assert made["spec"]["scope"] == "Namespaced"
    assert made["spec"]["conversion"] == {"strategy": "None"}
    assert made["spec"]["names"] == {
        "kind": "Site",
        "listKind": "SiteList",
        "plural": "sites",
        "singular": "site",
        "shortNames": ["st"],
        "categories": ["all"],
    }


def test_a_crd_is_json_and_new_each_time() -> None:
    made = crd(Kitchen)
    assert json.loads(json.dumps(made)) == made
    made["spec"]["versions"].clear()
    assert crd(Kitchen)["spec"]["versions"]


def test_names_can_be_given() -> None:
    made = crd(site(plural="sitez", singular="zite", kind="Zite", namespaced=False))
    assert made["spec"]["scope"] == "Cluster"
    assert made["metadata"]["name"] == "sitez.example.com"
    names = made["spec"]["names"]
    assert (names["kind"], names["singular"]) == ("Zite", "zite")


@pytest.mark.parametrize(
    ("keywords", "problem"),
    [
        ({"plural": "Sites"}, "The plural 'Sites' is not valid"),
        ({"singular": "a b"}, "The singular 'a b' is not valid"),
        ({"short": "S"}, "One of short, 'S' is not valid"),
        ({"categories": ["A"]}, "One of categories, 'A' is not valid"),
        ({"version": "1"}, "The version '1' is not valid"),
        ({"group": "example"}, "at least one dot"),
        ({"group": "apps.k8s.io"}, "is for Kubernetes itself"),
        ({"group": "kubernetes.io"}, "is for Kubernetes itself"),
        ({"group": ""}, "The group '' is not valid"),
        ({"storage": False}, "Site needs one storage version and has none"),
        ({"deprecated": "a\nb"}, "must be one line"),
        ({"deprecated": "é" * 129}, "at most 256 bytes"),
    ],
)
def test_a_name_that_a_server_refuses_is_refused(
    keywords: dict[str, Any], problem: str
) -> None:
    with pytest.raises(ValueError, match=problem):
        crd(site(**keywords))


def test_a_kind_without_a_crd_is_refused() -> None:
    with pytest.raises(ValueError, match="Pod has no CRD: it is built in"):
        crd(Pod)
    with pytest.raises(ValueError, match="needs a class"):
        crd()


def test_versions_stand_in_the_order_of_kubernetes() -> None:
    given = [
        "v1alpha1",
        "v11beta2",
        "v1",
        "foo1",
        "v10",
        "v3beta1",
        "foo10",
        "v12alpha1",
    ]
    kinds = [site(version=each, storage=each == "v1") for each in given]
    made = [each["name"] for each in crd(*kinds)["spec"]["versions"]]
    # The order that the documentation of Kubernetes gives as its example.
    assert made == [
        *("v10", "v1", "v11beta2", "v3beta1", "v12alpha1", "v1alpha1"),
        *("foo1", "foo10"),
    ]


def test_exactly_one_version_is_stored() -> None:
    old, new = site(version="v1beta1", storage=False), site(version="v1")
    versions = crd(old, new)["spec"]["versions"]
    assert [(each["name"], each["storage"]) for each in versions] == [
        ("v1", True),
        ("v1beta1", False),
    ]
    with pytest.raises(ValueError, match="has v1, v2; put storage=False on all"):
        crd(new, site(version="v2"))
    with pytest.raises(ValueError, match="has the version v1 twice"):
        crd(new, site(version="v1", storage=False))


@pytest.mark.parametrize(
    ("keywords", "problem"),
    [
        ({"group": "example.org"}, "their group differs"),
        ({"kind": "Other"}, "their kind differs"),
        ({"plural": "others"}, "their plural differs"),
        ({"namespaced": False}, "their namespaced differs"),
        ({"short": "b"}, "differ in short"),
        ({"singular": "b"}, "differ in singular"),
    ],
)
def test_versions_agree_on_what_the_kind_is(
    keywords: dict[str, Any], problem: str
) -> None:
    new = site(short="a")
    with pytest.raises(ValueError, match=problem):
        crd(new, site(version="v1beta1", storage=False, **keywords))


def test_a_version_that_gives_no_short_names_takes_those_of_the_others() -> None:
    made = crd(site(short="a"), site(version="v1beta1", storage=False))
    assert made["spec"]["names"]["shortNames"] == ["a"]


def test_a_version_can_be_deprecated_with_a_warning_or_without() -> None:
    made = version_of(site(deprecated="use v2"))
    assert (made["deprecated"], made["deprecationWarning"]) == (True, "use v2")
    made = version_of(site(deprecated=""))
    assert made["deprecated"] is True
    assert "deprecationWarning" not in made
    assert "deprecated" not in version_of(site())


def test_a_version_can_be_kept_without_being_served() -> None:
    assert version_of(site(served=False))["served"] is False


def test_the_status_is_a_subresource_where_there_is_one() -> None:
    assert version_of(site())["subresources"] == {"status": {}}

    class Bare(Resource, group=GROUP, version="v1"):
        data: dict[str, str] = {}

    assert "subresources" not in version_of(Bare)


def test_scale_points_at_numbers_and_a_selector() -> None:
    scale = Scale(
        spec_replicas="spec.replicas",
        status_replicas=".status.replicas",
        label_selector=".status.selector",
    )
    assert version_of(site(scale=scale))["subresources"]["scale"] == {
        "specReplicasPath": ".spec.replicas",
        "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.selector",
    }


def test_columns_end_with_the_age_unless_there_is_one() -> None:
    image = Column(name="Image", path="spec.image", doc="What runs.", priority=1)
    made = version_of(site(columns=[image]))["additionalPrinterColumns"]
    assert made == [
        {
            "name": "Image",
            "type": "string",
            "jsonPath": ".spec.image",
            "description": "What runs.",
            "priority": 1,
        },
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    ]
    age = Column(name="AGE", path=".metadata.creationTimestamp", type="date")
    made = version_of(site(columns=[age, image]))["additionalPrinterColumns"]
    assert [each["name"] for each in made] == ["AGE", "Image"]


def test_without_columns_the_server_shows_its_own() -> None:
    assert "additionalPrinterColumns" not in version_of(site())


@pytest.mark.parametrize(
    "path",
    [
        ".spec.parts[0].name",
        ".spec.parts[*].count",
        '.spec.parts[?(@.name=="a")].count',
        ".spec.labels.anything",
        ".spec.labels.example\\.com/name",
        ".spec['image']",
        ".spec.options.any.thing[0]",
        ".metadata.labels.app",
        ".metadata.generation",
    ],
)
def test_a_column_may_point_anywhere_into_the_object(path: str) -> None:
    assert version_of(site(columns=[Column(name="It", path=path)]))


@pytest.mark.parametrize(
    ("keywords", "problem"),
    [
        (
            {"columns": [Column(name="It", path=".spec.imgae")]},
            r"the column 'It' points at '.spec.imgae', which the class does not have",
        ),
        ({"columns": [Column(name="It", path=".spec.parts.name")]}, "points at"),
        ({"columns": [Column(name="It", path=".spec.image.x")]}, "points at"),
        ({"columns": [Column(name="It", path=".metadata.nope")]}, "points at"),
        ({"columns": [Column(name="It", path=".spec[")]}, "is not a JSON path"),
        ({"columns": [Column(name="It", path="")]}, "is not a JSON path"),
        (
            {"columns": [Column(name="It", path=".spec.image", type="text")]},
            "has the type 'text'",
        ),
        (
            {"columns": [Column(name="It", path=".spec.image", format="x")]},
            "has the format 'x'",
        ),
        (
            {
                "scale": Scale(
                    spec_replicas=".spec.nope", status_replicas=".status.replicas"
                )
            },
            r"scale.spec_replicas points at '.spec.nope'",
        ),
        (
            {
                "scale": Scale(
                    spec_replicas=".status.replicas", status_replicas=".status.replicas"
                )
            },
            "scale.spec_replicas must lead to an integer in spec",
        ),
        (
            {
                "scale": Scale(
                    spec_replicas=".spec.replicas", status_replicas=".status.selector"
                )
            },
            "scale.status_replicas must lead to an integer in status",
        ),
        (
            {
                "scale": Scale(
                    spec_replicas=".spec.parts[0].count",
                    status_replicas=".status.replicas",
                )
            },
            "takes a path of plain fields",
        ),
        ({"selectable": ["spec.nope"]}, "selectable points at 'spec.nope'"),
        ({"selectable": ["spec.amount"]}, "must be str, int or bool fields"),
        ({"selectable": ["spec.labels"]}, "must be str, int or bool fields"),
        ({"selectable": ["spec.parts[0].name"]}, "a path of plain fields"),
        ({"selectable": ["spec.labels.app"]}, "a path of plain fields"),
        ({"selectable": ["metadata.name"]}, "a path of plain fields"),
        ({"selectable": ["spec.image", ".spec.image"]}, "names a field twice"),
        ({"selectable": ["spec.image"] * 9}, "has more than 8 fields"),
    ],
)
def test_a_path_that_leads_nowhere_is_an_error_at_definition(
    keywords: dict[str, Any], problem: str
) -> None:
    with pytest.raises(TypeError, match=f"^Site: .*{problem}"):
        site(**keywords)


def test_a_path_is_the_names_along_it() -> None:
    assert steps(".a.b\\.c['d.e'][0][*]") == ["a", "b.c", "d.e", None, None]


def test_a_path_finds_the_schema_of_what_it_names() -> None:
    schema = {"properties": {"a": {"items": {"properties": {"b": {"type": "string"}}}}}}
    assert find(schema, ".a[0].b") == {"type": "string"}
    assert find(schema, ".a.b") is None
    assert find(schema, ".b") is None


class Wide(SiteStatus):
    more: str = field(default="", name="more-of-it")


class Whole(Resource, group=GROUP, version="v1"):
    status: Wide = Wide()


def test_what_a_class_writes_is_what_its_crd_lists() -> None:
    status = version_of(Whole)["schema"]["openAPIV3Schema"]["properties"]["status"]
    assert set(status["properties"]) == set(Wide.__struct_encode_fields__)
