"""Laws of ``trimtab crd``: it prints what the server takes, and compares on demand."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
import yaml

from tests.authoring.shelves import defined
from tests.cli.commands import printed, refused
from tests.client.clusters import client_of
from trimtab.cli.crd import DIFFERS, HARMS
from trimtab.testing import Cluster

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
pytestmark = pytest.mark.usefixtures("modules")

TWO_VERSIONS = """
from trimtab import Resource, Spec

class LampSpec(Spec):
    watts: int = {watts}

class Lamp(Resource, group="{group}", version="v1"):
    spec: LampSpec = LampSpec()

class OldLamp(Resource, group="{group}", version="v1beta1", kind="Lamp", storage=False):
    spec: LampSpec = LampSpec()
"""


def written(folder: Path, *, watts: int = 5, group: str = "lamps.example.com") -> str:
    file = folder / "lamps.py"
    file.write_text(TWO_VERSIONS.format(watts=watts, group=group))
    return str(file)


def test_the_classes_of_a_file_become_crds_with_all_their_versions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (lamp,) = yaml.safe_load_all(printed(capsys, "crd", written(tmp_path)))
    assert [each["name"] for each in lamp["spec"]["versions"]] == ["v1", "v1beta1"]
    (site,) = yaml.safe_load_all(printed(capsys, "crd", str(EXAMPLES / "website.py")))
    assert site["metadata"]["name"] == "websites.example.com"


def test_a_file_without_a_class_says_what_to_write(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty.py").write_text("")
    assert "write class Website(Resource" in refused(
        capsys, "crd", str(tmp_path / "empty.py")
    )


def test_the_exit_code_says_whether_anything_differs_and_whether_it_harms(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    cluster: Cluster,
    namespace: str,
) -> None:
    group = f"g{namespace[-8:].lstrip('-')}.example.com"
    file = written(tmp_path, group=group)
    flags = ("--check", f"--kubeconfig={cluster.kubeconfig}")
    assert "is not deployed" in printed(capsys, "crd", file, *flags, code=DIFFERS)
    (lamp,) = yaml.safe_load_all(printed(capsys, "crd", file))

    async def deploy() -> None:
        async with client_of(cluster, namespace=namespace) as client:
            await defined(client, lamp)

    asyncio.run(deploy())
    assert "as the classes say" in printed(capsys, "crd", file, *flags)
    written(tmp_path, group=group, watts=7)
    said = printed(capsys, "crd", file, *flags, code=HARMS)
    assert "spec.watts: its default was 5 and is 7" in said
