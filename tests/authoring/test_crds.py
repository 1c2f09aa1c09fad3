"""Laws of checking CRDs: each difference is found, with the objects that it concerns.

What is deployed is an older form of the definition that the classes make today.
"""

from __future__ import annotations

import copy
import gzip
import itertools
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.authoring.shelves import (
    Change,
    Plain,
    defined,
    deployed,
    properties,
    put,
    wanted,
)
from tests.client.clusters import client_of
from trimtab.authoring.crds import check
from trimtab.authoring.definition_changes import compare
from trimtab.authoring.findings import Report
from trimtab.client import Client
from trimtab.testing import Cluster


@pytest.fixture
async def client(cluster: Cluster, namespace: str) -> AsyncIterator[Client]:
    async with client_of(cluster, namespace=namespace) as client:
        yield client


def without_a_status_field(old: Plain) -> None:
    del properties(old, "status")["properties"]["books"]


def with_more_woods(old: Plain) -> None:
    properties(old)["properties"]["wood"]["enum"].append("cherry")


def with_an_optional_maker(old: Plain) -> None:
    properties(old)["required"].remove("maker")


def with_another_default(old: Plain) -> None:
    properties(old)["properties"]["boards"]["default"] = 5


def with_a_field_more(old: Plain) -> None:
    properties(old)["properties"]["colour"] = {"type": "string"}


def with_no_bound(old: Plain) -> None:
    del properties(old)["properties"]["boards"]["maximum"]
    del properties(old)["x-kubernetes-validations"]


def with_an_older_version(old: Plain) -> None:
    versions = old["spec"]["versions"]
    versions.append({**versions[0], "name": "v1beta1", "storage": False})


def stored_as_beta(old: Plain) -> None:
    with_an_older_version(old)
    first, second = old["spec"]["versions"]
    first["storage"], second["storage"] = False, True


REFUSED = (
    "stored objects would be invalid, so a write that touches that part is refused"
)
DROPPED = (
    "stored objects would lose it at their next write, and do not show it any more"
)

CASES: list[tuple[str, Change, list[Plain], list[str], bool]] = [
    (
        "a status field that the deployed schema does not have",
        without_a_status_field,
        [{}],
        ["loses   v1 status.books: the deployed schema does not have it"],
        True,
    ),
    (
        "a narrowed enum",
        with_more_woods,
        [{"wood": "cherry"}, {"wood": "pine"}],
        [
            'breaks  v1 spec.wood: it no longer takes "cherry"',
            f"1 of 2 {REFUSED}: NAMESPACE/shelf-0",
        ],
        True,
    ),
    (
        "a new required field that stored objects lack",
        with_an_optional_maker,
        [{}, {"maker": None}],
        [
            "breaks  v1 spec.maker: it is required",
            f"1 of 2 {REFUSED}: NAMESPACE/shelf-1",
        ],
        True,
    ),
    (
        "a removed version that objects may still be stored in",
        stored_as_beta,
        [{}],
        [
            "breaks  v1beta1: it is gone from the classes and still in storedVersions",
            "run trimtab migrate Shelf",
            "differs v1: objects are stored in it and were in v1beta1",
        ],
        True,
    ),
    (
        "a removed version that nothing is stored in",
        with_an_older_version,
        [],
        ["breaks  v1beta1: it is gone: whoever asks for it gets a 404"],
        True,
    ),
    (
        "a changed default",
        with_another_default,
        [{}, {"boards": 7}],
        [
            "changes v1 spec.boards: its default was 5 and is 3: new objects get 3",
            "1 of 2 stored objects have 5 written down and keep it: NAMESPACE/shelf-0",
        ],
        True,
    ),
    (
        "a field that would be pruned",
        with_a_field_more,
        [{"colour": "red"}, {}],
        [
            "loses   v1 spec.colour: the classes do not name it",
            f"1 of 2 {DROPPED}: NAMESPACE/shelf-0",
        ],
        True,
    ),
    (
        "a field that would be pruned and that no object has",
        with_a_field_more,
        [{}],
        ["none of 1 stored objects is concerned"],
        False,
    ),
    (
        "tighter bounds, and a rule",
        with_no_bound,
        [{"boards": 120}, {"boards": 70}, {"boards": 7}],
        [
            "breaks  v1 spec.boards: its maximum was not set and is 99",
            "breaks  v1 spec: there is a new rule: self.boards <= 50",
            f"1 of 3 {REFUSED}: NAMESPACE/shelf-0",
            f"2 of 3 {REFUSED}: NAMESPACE/shelf-0, NAMESPACE/shelf-1",
        ],
        True,
    ),
]


@pytest.mark.parametrize(
    ("change", "objects", "said", "harmful"),
    [case[1:] for case in CASES],
    ids=[case[0] for case in CASES],
)
async def test_each_difference_is_found_with_the_objects_that_it_concerns(
    client: Client,
    namespace: str,
    change: Change,
    objects: list[Plain],
    said: list[str],
    harmful: bool,
) -> None:
    new = wanted()
    old = deployed(new, change)
    await defined(client, old)
    for index, spec in enumerate(objects):
        await put(client, old, f"shelf-{index}", **spec)
    report = await check(client, new)
    text = "\n".join(report.lines())
    for line in said:
        assert line.replace("NAMESPACE", namespace) in text
    assert (report.harmful, report.same) == (harmful, False)


async def test_what_was_deployed_from_the_classes_does_not_differ(
    client: Client,
) -> None:
    new = wanted()
    absent = await check(client, new)
    assert (absent.deployed, absent.same) == (False, False)
    await defined(client, new)
    await put(client, new, "shelf")
    report = await check(client, new)
    assert [*report.lines()] == [
        f"{new['metadata']['name']} is deployed as the classes say."
    ]


async def test_what_the_check_foretells_is_what_the_server_does(
    client: Client, namespace: str
) -> None:
    """The new definition is applied: what was said of each object comes true."""
    new = wanted()
    old = deployed(new, with_more_woods, with_a_field_more)
    await defined(client, old)
    await put(client, old, "sick", wood="cherry")
    await put(client, old, "loser", colour="red")
    report = await check(client, new)
    assert named(report, "spec.wood") == [f"{namespace}/sick"]
    assert named(report, "spec.colour") == [f"{namespace}/loser"]
    await client.apply(new, manager="test", force=True)
    again = await check(client, new)
    # The object is still there, and still says what the schema does not allow.
    assert named(again, "spec.wood") == [f"{namespace}/sick"]
    assert again.harmful


def named(report: Report, field: str) -> list[str]:
    return [
        name
        for finding in report.findings
        if finding.difference.field == field
        for name in finding.objects.names
    ]


def test_names_scope_subresources_and_columns_are_compared_too() -> None:
    def other(old: Plain) -> None:
        old["spec"]["scope"] = "Cluster"
        old["spec"]["names"]["shortNames"] = ["other"]
        version = old["spec"]["versions"][0]
        version["subresources"] = {}
        version["additionalPrinterColumns"] = [{"name": "x"}]
        properties(old)["properties"]["boards"]["type"] = "string"
        properties(old)["description"] = "Other words."

    new = wanted()
    found = {each.path: each.level for each in compare(deployed(new, other), new)}
    assert found["scope"] == "breaks"
    assert found["names.shortNames"] == "differs"
    assert found["v1 spec.boards"] == "breaks"
    levels: dict[str, list[Any]] = {}
    for each in compare(deployed(new, other), new):
        levels.setdefault(each.path, []).append((each.level, each.what))
    assert {level for level, _ in levels["v1"]} == {"breaks", "differs"}
    assert any("descriptions of 1 field" in what for _, what in levels["v1"])


def test_the_same_definition_has_no_differences() -> None:
    new = wanted()
    assert list(compare(new, deployed(new))) == []


def recorded() -> list[Plain]:
    """Definitions that a real server has taken."""
    found = []
    for name in ("crd_everything", "crd_panels", "crd_rules"):
        path = Path(__file__).parents[1] / "embedded" / "data" / f"{name}.json.gz"
        found += list(_definitions(json.loads(gzip.decompress(path.read_bytes()))))
    return found


def _definitions(value: Any) -> Iterator[Plain]:
    if isinstance(value, dict):
        if value.get("kind") == "CustomResourceDefinition" and "versions" in (
            value.get("spec") or {}
        ):
            yield value
        for inner in value.values():
            yield from _definitions(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _definitions(inner)


def test_no_definition_differs_from_itself_and_any_two_can_be_compared() -> None:
    every = [each for each in recorded() if _stores(each)]
    assert every
    for each in every[:40]:
        assert list(compare(each, copy.deepcopy(each))) == []
    for one, other in itertools.pairwise(every[:40]):
        for difference in compare(one, other):
            assert difference.what


def _stores(definition: Plain) -> bool:
    return any(each.get("storage") for each in definition["spec"]["versions"])


def test_judging_objects_needs_nothing_that_only_the_server_needs() -> None:
    code = (
        "import sys, trimtab.authoring.stored;"
        "sys.exit(', '.join({'aiohttp', 'cryptography'} & set(sys.modules)) or 0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
