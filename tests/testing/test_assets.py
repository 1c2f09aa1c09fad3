"""Where the programs are looked for, and in which order."""

import re
from pathlib import Path

import pytest

from tests.testing.helpers import ROOT, script
from trimtab.testing import AssetsMissing, assets

GO_MOD = ROOT / "hack" / "cluster" / "go.mod"


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """The three places, all empty, in order."""
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path / "assets"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    cache = tmp_path / "cache" / "trimtab" / f"kubernetes-{assets.KUBERNETES_VERSION}"
    return {"assets": tmp_path / "assets", "cache": cache, "path": tmp_path / "path"}


def test_the_first_place_that_has_a_program_wins(places: dict[str, Path]) -> None:
    assert assets.find("etcd") is None
    for place in ("path", "cache", "assets"):
        program = script(places[place] / "etcd", "exit 0")
        assert assets.find("etcd") == program


def test_each_program_is_looked_for_by_itself(places: dict[str, Path]) -> None:
    etcd = script(places["assets"] / "etcd", "exit 0")
    manager = script(places["cache"] / "kube-controller-manager", "exit 0")
    found = assets.require("etcd", "kube-controller-manager")
    assert found == {"etcd": etcd, "kube-controller-manager": manager}


def test_what_cannot_be_run_is_not_a_program(places: dict[str, Path]) -> None:
    (places["assets"] / "etcd").mkdir(parents=True)
    script(places["cache"] / "etcd", "exit 0").chmod(0o644)
    assert assets.find("etcd") is None


def test_all_that_is_missing_is_named_in_one_sentence(places: dict[str, Path]) -> None:
    script(places["cache"] / "kubectl", "exit 0")
    with pytest.raises(AssetsMissing) as caught:
        assets.require("etcd", "kubectl", "kube-apiserver")
    message = str(caught.value)
    assert message.startswith("etcd, kube-apiserver not found in KUBEBUILDER_ASSETS")
    assert "make test-cluster" in message
    assert f"Go {assets.GO_VERSION}" in message
    assert "\n" not in message


def test_a_relative_folder_still_gives_absolute_programs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = script(tmp_path / "bin" / "etcd", "exit 0")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KUBEBUILDER_ASSETS", "bin")
    assert assets.find("etcd") == program
    monkeypatch.delenv("KUBEBUILDER_ASSETS")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", "bin")
    assert assets.find("etcd") == program


@pytest.mark.parametrize("value", [None, "", "relative/folder"])
def test_the_cache_is_in_the_home_folder_unless_xdg_names_another(
    value: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    if value is None:
        monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    else:
        monkeypatch.setenv("XDG_CACHE_HOME", value)
    assert assets.cache_folder().parent == tmp_path / ".cache" / "trimtab"


def test_the_versions_are_those_that_go_mod_pins() -> None:
    text = GO_MOD.read_text()
    pinned = dict(re.findall(r"^(?:require)?\s+(\S+) (v\S+)", text, re.MULTILINE))
    assert pinned["k8s.io/kubernetes"] == assets.KUBERNETES_VERSION
    assert pinned["go.etcd.io/etcd/server/v3"] == assets.ETCD_VERSION
    go = re.search(r"^go (\d+\.\d+)", text, re.MULTILINE)
    assert go
    assert go[1] == assets.GO_VERSION


@pytest.mark.parametrize(
    ("folder", "name", "module"),
    [
        ("helm", "helm", "helm.sh/helm/v4"),
        ("kwok", "kwok", "sigs.k8s.io/kwok"),
        *(
            ("controller-runtime", each, "sigs.k8s.io/controller-runtime")
            for each in assets.OPERATORS
        ),
    ],
)
def test_the_versions_of_clients_are_those_that_their_go_mod_pins(
    folder: str, name: str, module: str
) -> None:
    text = (GO_MOD.parent / folder / "go.mod").read_text()
    pinned = dict(re.findall(r"^(?:require)?\s+(\S+) (v\S+)", text, re.MULTILINE))
    assert pinned[module] == assets.VERSIONS[name]


def test_every_staging_module_is_replaced_by_the_same_version() -> None:
    replaced = re.findall(r"^replace (\S+) => (\S+) (\S+)$", GO_MOD.read_text(), re.M)
    version = assets.KUBERNETES_VERSION.replace("v1.", "v0.", 1)
    assert len(replaced) > 20
    assert {(name == target, pinned) for name, target, pinned in replaced} == {
        (True, version)
    }


def test_the_readme_names_the_version() -> None:
    readme = (GO_MOD.parent / "README.md").read_text()
    assert f"kubernetes-{assets.KUBERNETES_VERSION}/" in readme
    assert f"Go {assets.GO_VERSION}" in readme
