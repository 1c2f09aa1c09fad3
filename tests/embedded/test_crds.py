"""Custom kinds are printed, scaled, selected and served as a real server does it.

It was asked, by `hack/record_crd_facts.py`.
"""

from __future__ import annotations

from copy import deepcopy
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hack.crd_corpus.definitions import base, definition
from hack.crd_corpus.schemas import integer, record, string
from tests.embedded.crd_replay import JSON, created, defined, facts, recorded, stored
from trimtab.embedded import definitions
from trimtab.embedded.crds import CLEANUP_FINALIZER, CustomKind, establish
from trimtab.embedded.discovery import resource_list
from trimtab.embedded.jsonpath import PathError, path
from trimtab.embedded.status import ApiProblem
from trimtab.embedded.tables import age

PANELS = facts("panels")
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
KINDS = {name: CustomKind(PANELS["crd"], name) for name in ("v1", "v2")}
STORED = [each for each in PANELS["stored"] if "read" in each]
# The columns that a definition does not describe.
OWN_PROSE = {"v1": {"Name"}, "v2": {"Name", "Age"}}


def established(crd: JSON, others: list[JSON], *, now: str = "now") -> JSON:
    """A definition as it is once the server has looked at its names."""
    definitions.set_defaults(crd)
    definitions.prepare(crd, None)
    establish(crd, others, now=now)
    return crd


def untimed(crd: JSON) -> JSON:
    """The status, without the times in it."""
    status: JSON = deepcopy(crd["status"])
    for condition in status["conditions"]:
        condition.pop("lastTransitionTime", None)
    return status


def with_versions(*versions: JSON) -> JSON:
    crd = base()
    (first,) = crd["spec"]["versions"]
    crd["spec"]["versions"] = [
        {**first, "storage": index == 0, **each} for index, each in enumerate(versions)
    ]
    return crd


# Tables.


@pytest.mark.parametrize("version", KINDS)
def test_a_table_has_the_columns_of_a_real_one(version: str) -> None:
    real = STORED[0]["tables"][version]["columns"]
    mine = [msgspec.to_builtins(each) for each in KINDS[version].columns()]
    assert [_column(each, version) for each in mine] == [
        _column(each, version) for each in real
    ]


def _column(column: JSON, version: str) -> JSON:
    """A column without what we say of it in our own words, where nobody else does."""
    own = column["name"] in OWN_PROSE[version]
    return {**column, "description": "" if own else column["description"]}


@pytest.mark.parametrize("version", KINDS)
@pytest.mark.parametrize("index", range(len(STORED)))
def test_a_row_has_the_cells_of_a_real_one(version: str, index: int) -> None:
    kind, case = KINDS[version], STORED[index]
    obj = deepcopy(case["read"])
    obj["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
    cells = [
        "" if column.type == "date" and cell and cell[0] != "<" else cell
        for column, cell in zip(kind.columns(), kind.row(obj, now=NOW), strict=True)
    ]
    assert cells == case["tables"][version]["cells"]


def test_a_date_is_shown_as_an_age() -> None:
    column = {"name": "At", "type": "date", "jsonPath": ".spec.at"}
    crd = definition(
        "things",
        record({"spec": record({"at": string()})}),
        additionalPrinterColumns=[column],
    )
    kind = CustomKind(crd, "v1")
    rows = {
        at: kind.row({"metadata": {"name": "a"}, "spec": {"at": at}}, now=NOW)[1]
        for at in ("2026-01-02T03:03:55Z", "2026-01-01T03:04:05Z", "", "soon")
    }
    assert list(rows.values()) == ["10s", "24h", "<unknown>", "<invalid>"]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "<invalid>"),
        (-1, "0s"),
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (185, "3m5s"),
        (600, "10m"),
        (10799, "179m"),
        (10800, "3h"),
        (11100, "3h5m"),
        (28800, "8h"),
        (172799, "47h"),
        (172800, "2d"),
        (176400, "2d1h"),
        (691200, "8d"),
        (63072000, "2y"),
        (63158400, "2y1d"),
        (252288000, "8y"),
    ],
)
def test_an_age_has_one_or_two_units(seconds: float, text: str) -> None:
    assert age(seconds) == text


# JSON paths.


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (".a.b", [1]),
        (".a.nope", []),
        (".list[0]", ["x"]),
        (".list[-1]", ["z"]),
        (".list[0:2]", ["x", "y"]),
        (".list[*]", ["x", "y", "z"]),
        (".objects[?(@.n>1)].name", ["two"]),
        ('.objects[?(@.name=="one")].n', [1]),
        (".a['b']", [1]),
        (".dotted\\.key", ["d"]),
    ],
)
def test_a_path_finds_what_it_leads_to(text: str, found: list[Any]) -> None:
    value = {
        "a": {"b": 1},
        "list": ["x", "y", "z"],
        "objects": [{"name": "one", "n": 1}, {"name": "two", "n": 2}],
        "dotted.key": "d",
    }
    assert path(text).find(value) == found


@given(st.text(alphabet=".[]()*?@:0123456789'\"abc\\<>=!", max_size=20))
def test_any_text_is_a_path_or_a_mistake(text: str) -> None:
    try:
        path(f".{text}").find({"a": [{"b": 1}, {"c": [1, 2]}], "b": {"c": "d"}})
    except PathError:
        return


# Scale.


@pytest.mark.parametrize("index", range(len(STORED)))
def test_the_scale_of_an_object_is_the_real_one(index: int) -> None:
    case = STORED[index]
    answer = case["scale"]
    if answer["code"] == 200:
        spec, status = answer["body"]["spec"], answer["body"]["status"]
        assert KINDS["v1"].scale(case["read"]) == (
            spec["replicas"],
            status["replicas"],
            status["selector"],
        )
        return
    with pytest.raises(ApiProblem) as error:
        KINDS["v1"].scale(case["read"])
    assert error.value.code == answer["code"]
    assert error.value.message == answer["body"]["message"]


def test_every_scale_that_a_real_server_refuses_is_refused() -> None:
    for each in PANELS["objects"]:
        assert created(KINDS["v1"], each["object"]) == recorded(each["answer"])


@given(st.integers(0, 2**31 - 1))
def test_a_scale_that_was_set_is_the_scale(replicas: int) -> None:
    obj: JSON = {"spec": {"size": 1}}
    KINDS["v1"].set_scale(obj, replicas)
    assert KINDS["v1"].scale(obj) == (replicas, 0, "")
    assert obj["spec"]["size"] == 1


# Versions, fields and discovery.


@pytest.mark.parametrize("index", range(len(STORED)))
def test_an_object_is_read_in_each_version(index: int) -> None:
    case = STORED[index]
    obj = deepcopy(case["read"])
    KINDS["v2"].read(obj)
    assert obj == case["read2"]


def test_discovery_says_of_a_kind_what_a_real_server_says() -> None:
    listed = resource_list(
        [KINDS["v1"].resource], group="corpus.example.com", version="v1"
    )
    assert listed is not None
    assert listed["resources"] == PANELS["discovery"]


def test_fields_can_be_selected_that_a_version_names() -> None:
    obj = {"metadata": {"name": "a", "namespace": "b"}, "spec": {"size": 5}}
    assert KINDS["v1"].fields(obj) == {
        "metadata.name": "a",
        "metadata.namespace": "b",
        "spec.colour": "",
        "spec.size": "5",
        "spec.ready": "",
    }
    assert KINDS["v1"].supported_fields() == set(KINDS["v1"].fields(obj))
    assert "spec.size" not in KINDS["v2"].supported_fields()


def test_a_flag_is_selected_by_its_word() -> None:
    obj = {"metadata": {"name": "a"}, "spec": {"ready": True}}
    assert KINDS["v1"].fields(obj)["spec.ready"] == "true"


def test_a_deprecated_version_says_which_to_use() -> None:
    group = "corpus.example.com"
    crd = with_versions(
        {"name": "v1"},
        {"name": "v1beta1", "deprecated": True},
        {"name": "v2alpha1", "deprecated": True},
        {"name": "v2", "deprecated": True},
        {"name": "v3", "deprecated": True, "deprecationWarning": "go away"},
    )
    warnings = {
        each["name"]: CustomKind(crd, each["name"]).warning
        for each in crd["spec"]["versions"]
    }
    assert warnings == {
        "v1": "",
        "v1beta1": f"{group}/v1beta1 Widget is deprecated; use {group}/v1 Widget",
        "v2alpha1": f"{group}/v2alpha1 Widget is deprecated; use {group}/v1 Widget",
        "v2": f"{group}/v2 Widget is deprecated",
        "v3": "go away",
    }


def test_a_finalizer_without_a_domain_is_warned_of_once() -> None:
    kind = CustomKind(base(), "v1")
    obj = stored(kind, {"metadata": {"finalizers": ["mine"]}})
    assert len(kind.warnings(obj)) == 1
    assert kind.warnings(obj, obj) == []


# Definitions on their way into service.


def test_a_definition_is_established_as_by_a_real_server() -> None:
    real = facts("updates")["created"]["body"]
    crd = established(base(), [])
    assert crd["spec"] == real["spec"]
    assert untimed(crd) == real["status"]


@pytest.mark.parametrize("index", range(len(facts("updates")["rivals"])))
def test_names_that_are_taken_are_refused_as_by_a_real_server(index: int) -> None:
    rivals = facts("updates")["rivals"]
    others = [facts("updates")["created"], *(each["answer"] for each in rivals[:index])]
    crd = established(deepcopy(rivals[index]["crd"]), [each["body"] for each in others])
    real = rivals[index]["answer"]["body"]
    assert crd["spec"] == real["spec"]
    assert untimed(crd) == real["status"]


def test_the_names_of_another_group_are_no_rivals() -> None:
    first = established(base(), [])
    second = base()
    second["spec"]["group"] = "other.example.com"
    assert definitions.is_true(established(second, [first]), "NamesAccepted")


def test_establishing_again_changes_nothing() -> None:
    crd = established(base(), [], now="first")
    before = deepcopy(crd)
    establish(crd, [], now="second")
    assert crd == before


def test_a_name_that_was_freed_is_accepted_later() -> None:
    first = established(base(), [])
    second = base()
    second["metadata"]["name"] = "gadgets.corpus.example.com"
    second["spec"]["names"].update(plural="gadgets")
    established(second, [first], now="early")
    assert not definitions.is_true(second, "Established")
    establish(second, [], now="late")
    assert definitions.is_true(second, "Established")
    accepted = definitions.condition(second, "NamesAccepted")
    assert accepted is not None
    assert accepted["lastTransitionTime"] == "late"


def test_a_definition_that_goes_waits_for_its_objects() -> None:
    crd = established(base(), [])
    definitions.terminating(crd, now="now")
    definitions.terminating(crd, now="later")
    assert crd["metadata"]["finalizers"] == [CLEANUP_FINALIZER]
    condition = definitions.condition(crd, "Terminating")
    assert condition is not None
    assert (condition["status"], condition["reason"]) == (
        "True",
        "InstanceDeletionPending",
    )
    assert condition["lastTransitionTime"] == "now"


def test_a_protected_group_is_judged_by_its_annotation() -> None:
    crd = base()
    crd["spec"]["group"] = "things.k8s.io"
    key = "api-approved.kubernetes.io"
    crd["metadata"]["annotations"] = {key: "unapproved, a test"}
    established(crd, [])
    found = definitions.condition(crd, "KubernetesAPIApprovalPolicyConformant")
    assert found is not None
    assert (found["status"], found["reason"]) == ("False", "UnapprovedAnnotation")


def test_a_schema_that_is_not_structural_is_reported_until_it_is() -> None:
    crd = base()
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["bad"] = {"maxLength": 5}
    established(crd, [])
    found = definitions.condition(crd, "NonStructuralSchema")
    assert found is not None
    assert found["status"] == "True"
    assert "properties[bad].type: Required value" in found["message"]
    schema["properties"]["bad"] = {"type": "string"}
    establish(crd, [], now="later")
    assert definitions.condition(crd, "NonStructuralSchema") is None


def test_a_version_stays_stored_until_somebody_says_otherwise() -> None:
    old = established(base(), [])
    new = deepcopy(old)
    first = new["spec"]["versions"][0]
    new["spec"]["versions"].append({**deepcopy(first), "name": "v2", "storage": True})
    first["storage"] = False
    definitions.prepare(new, old)
    assert new["status"]["storedVersions"] == ["v1", "v2"]
    new["spec"]["versions"] = new["spec"]["versions"][1:]
    answer = defined(new, old)
    assert answer.code == 422
    assert "was previously a storage version" in answer.causes[0]


def test_a_kind_is_called_what_was_accepted_not_what_is_wished() -> None:
    crd = established(base(), [])
    crd["spec"]["names"]["singular"] = "later"
    assert CustomKind(crd, "v1").resource.singular == "widget"


def test_a_cluster_wide_kind_has_no_namespace_to_select() -> None:
    crd = definition("things", record({"spec": record({"x": integer()})}))
    crd["spec"]["scope"] = "Cluster"
    kind = CustomKind(crd, "v1")
    assert kind.supported_fields() == {"metadata.name"}
    assert kind.fields({"metadata": {"name": "a"}}) == {"metadata.name": "a"}
