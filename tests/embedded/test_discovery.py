"""Laws of discovery: our documents are those of the real server."""

from __future__ import annotations

import copy
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.embedded.documents import CRDS, JSON, RECORDED, discovered, kubectl, table
from trimtab.embedded import discovery
from trimtab.embedded.discovery import custom_resources, storage_hash, version_order
from trimtab.embedded.facts import resources

DOCUMENTS = [path for path in RECORDED if path.startswith("/")]
# The order that the documentation of Kubernetes gives as its example.
ORDER = "v10 v2 v1 v11beta2 v10beta3 v3beta1 v12alpha1 v11alpha2 foo1 foo10".split()


def sorted_resources(document: JSON) -> JSON:
    """The real server lists the resources of CRDs in an order that is by chance."""
    listed = document.get("resources")
    if listed is None or "example" not in document.get("groupVersion", ""):
        return document
    return {**document, "resources": sorted(listed, key=lambda row: str(row["name"]))}


@pytest.mark.parametrize("path", DOCUMENTS)
def test_each_document_is_that_of_the_real_server(path: str) -> None:
    document = discovered(path)
    assert document is not None
    assert sorted_resources(document) == sorted_resources(RECORDED[path])


def test_without_crds_there_is_nothing_else() -> None:
    ours = discovery.aggregated(resources(), core=False)
    theirs = RECORDED["/apis?"]["items"]
    builtin = [each for each in theirs if "example" not in each["metadata"]["name"]]
    assert ours["items"] == builtin


def test_what_is_not_there_has_no_document() -> None:
    assert discovery.group(table(), "nobody.example.com") is None
    assert discovery.group(table(), "") is None
    assert discovery.resource_list(table(), group="apps", version="v2") is None


@given(st.randoms())
def test_the_most_mature_version_comes_first(random: Random) -> None:
    shuffled = list(ORDER)
    random.shuffle(shuffled)
    assert sorted(shuffled, key=version_order) == ORDER


def test_the_preferred_version_of_a_crd_is_the_most_mature() -> None:
    group = discovery.group(table(), "samples.example.com")
    assert group is not None
    assert group["preferredVersion"]["version"] == "v1"


def changed(**status: Any) -> JSON:
    crd = copy.deepcopy(CRDS[0])
    crd["status"] = status
    return crd


def test_a_crd_that_goes_away_takes_no_new_objects() -> None:
    leaving = changed(conditions=[{"type": "Terminating", "status": "True"}])
    verbs = {verb for each in custom_resources(leaving) for verb in each.verbs}
    assert verbs == {"delete", "deletecollection", "get", "list", "watch"}


def test_a_crd_is_known_by_the_names_that_were_accepted() -> None:
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget"}
    first, *_ = custom_resources(changed(acceptedNames=names))
    assert first.short == ()
    assert first.list_kind == "WidgetList"
    wished, *_ = custom_resources(changed(acceptedNames={}))
    assert wished.short == ("wi", "wid")


def test_a_version_that_is_not_served_is_nowhere() -> None:
    assert {each.version for each in custom_resources(CRDS[0])} == {
        *("v1", "v1beta1", "v2alpha1"),
    }
    crd = changed()
    for version in crd["spec"]["versions"]:
        version["served"] = version["name"] == "v1beta1"
    (only,) = custom_resources(crd)
    assert only.storage_hash == ""


def test_every_version_of_a_kind_has_the_hash_of_the_one_that_is_stored() -> None:
    hashes = {each.storage_hash for each in custom_resources(CRDS[0])}
    assert hashes == {storage_hash("samples.example.com", "v1", "Widget")}


def test_the_hashes_of_built_in_kinds_are_made_like_those_of_custom_ones() -> None:
    same = [
        each
        for each in resources()
        if each.storage_hash == storage_hash(each.group, each.version, each.kind)
    ]
    assert len(same) > 50


def rows(table: str) -> list[list[str]]:
    """The lines of a table of kubectl, without their padding."""
    return [line.split() for line in table.splitlines()]


def listed() -> list[list[str]]:
    """What ``kubectl api-resources -o wide`` makes of our documents."""
    found = []
    for root in ("/api?", "/apis?"):
        document = discovered(root)
        assert document is not None
        for group in document["items"]:
            name = group["metadata"].get("name", "")
            for row in preferred(group):
                version = row.pop("version")
                cells = [
                    row["resource"],
                    ",".join(row.get("shortNames", ())),
                    f"{name}/{version}" if name else version,
                    str(row["scope"] == "Namespaced").lower(),
                    row["responseKind"]["kind"],
                    ",".join(row["verbs"]),
                    ",".join(row.get("categories", ())),
                ]
                found.append([cell for cell in cells if cell])
    return found


def preferred(group: JSON) -> list[JSON]:
    """Each resource of a group in the first version that has it."""
    found: dict[str, JSON] = {}
    for version in group["versions"]:
        for row in version["resources"]:
            found.setdefault(row["resource"], {**row, "version": version["version"]})
    return list(found.values())


def test_the_table_of_resources_is_that_of_the_real_server() -> None:
    theirs = rows(RECORDED["api-resources"])[1:]
    # kubectl sorts what a server names first.
    assert sorted(map(sorted_verbs, listed())) == sorted(map(sorted_verbs, theirs))


def sorted_verbs(row: list[str]) -> list[str]:
    return [",".join(sorted(cell.split(","))) for cell in row]


def versions() -> str:
    """What ``kubectl api-versions`` makes of our documents."""
    found = ["v1"]
    for group in discovery.group_list(table())["groups"]:
        found += [version["groupVersion"] for version in group["versions"]]
    return "".join(f"{version}\n" for version in sorted(found))


def test_the_versions_are_those_of_the_real_server() -> None:
    assert versions() == RECORDED["api-versions"]


async def test_kubectl_finds_in_our_documents_what_it_finds_in_the_real_ones(
    tmp_path: Path,
) -> None:
    with kubectl(tmp_path) as tool:
        if tool is None:
            test_the_table_of_resources_is_that_of_the_real_server()
            test_the_versions_are_those_of_the_real_server()
            return
        assert await tool.run("api-versions") == RECORDED["api-versions"]
        table = await tool.run("api-resources", "-o", "wide")
    assert rows(table) == rows(RECORDED["api-resources"])
