"""Laws of ``trimtab rbac``: it prints what kubectl can apply, for where it is used."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.cli.commands import printed, refused

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
pytestmark = pytest.mark.usefixtures("modules")


def test_the_roles_of_an_example_are_printed_with_their_bindings(
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = str(EXAMPLES / "website.py")
    made = list(yaml.safe_load_all(printed(capsys, "rbac", file, "--namespace=ops")))
    assert [each["kind"] for each in made] == [
        *("ServiceAccount", "ClusterRole", "ClusterRoleBinding"),
        *("Role", "RoleBinding"),
    ]
    role = made[3]
    assert role["metadata"]["namespace"] == "ops"
    assert {each["resources"][0] for each in role["rules"]} == {"leases"}


def test_for_a_list_of_namespaces_there_are_roles_only(
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = str(EXAMPLES / "buckets.py")
    flags = ("--namespace=ops", "--namespaces=a,b")
    made = list(yaml.safe_load_all(printed(capsys, "rbac", file, *flags)))
    assert not [each for each in made if "Cluster" in each["kind"]]
    roles = {each["metadata"]["namespace"] for each in made if each["kind"] == "Role"}
    assert roles == {"a", "b", "ops"}


def test_a_kind_that_is_in_no_namespace_cannot_be_left_to_some(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "lands.py"
    file.write_text(
        "import trimtab\n"
        "class Land(trimtab.Resource, group='l.example.com', version='v1',"
        " namespaced=False): pass\n"
        "app = trimtab.Operator('lands')\n"
        "@app.reconciles(Land, scope=trimtab.Scope(everything=True))\n"
        "async def land(wish, ctx): ...\n"
    )
    said = refused(capsys, "rbac", str(file), "--namespaces=a")
    assert "Land objects are in no namespace" in said
    assert "is not a list" in refused(capsys, "rbac", str(file), "--namespaces=a,,b")
