"""Laws of checkpoints: a number names one model for ever, whenever it is killed."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from trimtab.client.errors import ConfigError
from trimtab.operators.vmafx.training.checkpoints import Record, Shelf
from trimtab.operators.vmafx.training.outputs import (
    Folder,
    Layout,
    Output,
    model_name,
    output_of,
)
from trimtab.operators.vmafx.training.problems import StateProblem

TIME = "2026-01-02T12:00:00Z"


class Killed(BaseException):
    """What a test does to a trainer."""


def folder(path: Path) -> Output:
    return Folder(path / "models")


def layout(path: Path) -> Output:
    return Layout(path / "models")


outputs = pytest.mark.parametrize("kind", [folder, layout])


def kept(shelf: Shelf, content: bytes) -> Record:
    return shelf.publish(content, Record(version=shelf.next, time=TIME, samples=7))


def shelf_of(path: Path, output: Output, **more: int) -> Shelf:
    state = path / "state"
    state.mkdir(parents=True, exist_ok=True)
    return Shelf(state, output, **more)


@outputs
def test_models_are_numbered_and_are_read_as_they_were_written(
    tmp_path: Path, kind: Callable[[Path], Output]
) -> None:
    output = kind(tmp_path)
    shelf = shelf_of(tmp_path, output)
    assert shelf.next == 1
    records = [kept(shelf, content) for content in (b"one", b"two", b"three")]
    assert [each.name for each in records] == ["v000001", "v000002", "v000003"]
    assert records[1].sha256 == hashlib.sha256(b"two").hexdigest()
    assert output.versions() == [1, 2, 3]
    assert shelf.read(2) == b"two"
    again = shelf_of(tmp_path, kind(tmp_path))
    assert (again.next, again.last) == (4, records[2])
    with pytest.raises(StateProblem):
        shelf.read(9)


@outputs
def test_killed_before_any_write_or_rename_no_number_is_lost_or_used_twice(
    tmp_path: Path, kind: Callable[[Path], Output], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every call that changes the disk is once the last one that is made."""
    ends = 0
    for point in itertools.count():
        place = tmp_path / str(point)
        kept(shelf_of(place, kind(place)), b"first")
        monkeypatch.setattr(os, "replace", deadly(os.replace, point))
        shelf = shelf_of(place, kind(place))
        try:
            kept(shelf, b"second")
            ends += 1
        except Killed:
            pass
        monkeypatch.undo()
        shelf = shelf_of(place, kind(place))
        known = shelf.finish()
        assert known.version in (1, 2)
        assert known.version == max(kind(place).versions())
        third = kept(shelf, b"third")
        assert third.version == known.version + 1
        contents = {1: b"first", 2: b"second"} | {third.version: b"third"}
        there = kind(place).versions()
        assert there == list(range(1, third.version + 1))
        assert all(shelf.read(each) == contents[each] for each in there)
        if ends:
            assert point > 3
            return


def deadly(real: Callable[..., Any], calls: int) -> Callable[..., Any]:
    left = [calls]

    def replace(*arguments: Any) -> Any:
        if not left[0]:
            raise Killed
        left[0] -= 1
        return real(*arguments)

    return replace


@outputs
def test_numbers_go_on_when_models_or_the_record_are_gone(
    tmp_path: Path, kind: Callable[[Path], Output]
) -> None:
    output = kind(tmp_path)
    shelf = shelf_of(tmp_path, output)
    for content in (b"one", b"two"):
        kept(shelf, content)
    output.remove(2)
    assert shelf_of(tmp_path, output).next == 3
    assert kept(shelf_of(tmp_path, output), b"three").version == 3
    (tmp_path / "state" / "version.json").unlink()
    assert shelf_of(tmp_path, output).next == 4
    (tmp_path / "state" / "version.json").write_text("{")
    with pytest.raises(StateProblem, match="which versions"):
        shelf_of(tmp_path, output)


@outputs
def test_old_models_go_but_never_the_one_in_use(
    tmp_path: Path, kind: Callable[[Path], Output]
) -> None:
    output = kind(tmp_path)
    shelf = shelf_of(tmp_path, output, keep=2)
    for content in (b"one", b"two", b"three"):
        kept(shelf, content)
    assert output.versions() == [2, 3]
    shelf.point(2)
    kept(shelf, b"four")
    assert output.versions() == [3, 4]


def test_a_folder_has_sums_that_sha256sum_checks_and_says_which_is_the_latest(
    tmp_path: Path,
) -> None:
    shelf = shelf_of(tmp_path, Folder(tmp_path / "models"))
    kept(shelf, b"one")
    kept(shelf, b"two")
    models = tmp_path / "models"
    assert sorted(each.name for each in models.iterdir()) == [
        "latest",
        "model_v000001.onnx",
        "model_v000001.onnx.sha256",
        "model_v000002.onnx",
        "model_v000002.onnx.sha256",
    ]
    line = (models / "model_v000002.onnx.sha256").read_text()
    assert line == f"{hashlib.sha256(b'two').hexdigest()}  model_v000002.onnx\n"
    assert (models / "latest").read_text() == "model_v000002.onnx\n"
    shelf.point(1)
    assert (models / "latest").read_text() == "model_v000001.onnx\n"
    (models / "model_v000001.onnx").write_bytes(b"other")
    with pytest.raises(StateProblem, match=r"not what its \.sha256 says"):
        shelf.read(1)


def test_a_layout_is_one_by_the_image_spec(tmp_path: Path) -> None:
    shelf = shelf_of(tmp_path, Layout(tmp_path / "models"))
    kept(shelf, b"one")
    kept(shelf, b"two")
    root = tmp_path / "models"
    mark = json.loads((root / "oci-layout").read_text())
    assert mark == {"imageLayoutVersion": "1.0.0"}
    index = json.loads((root / "index.json").read_text())
    assert index["schemaVersion"] == 2
    assert index["mediaType"] == "application/vnd.oci.image.index.v1+json"
    tags = {
        each["annotations"]["org.opencontainers.image.ref.name"]: each
        for each in index["manifests"]
    }
    assert set(tags) == {"v000001", "v000002", "latest"}
    assert tags["latest"]["digest"] == tags["v000002"]["digest"]
    manifest = json.loads(blob(root, tags["v000002"]))
    assert manifest["schemaVersion"] == 2
    assert manifest["mediaType"] == tags["v000002"]["mediaType"]
    assert manifest["artifactType"] == "application/vnd.vmafx.model"
    assert blob(root, manifest["config"]) == b"{}"
    assert manifest["config"]["mediaType"] == "application/vnd.oci.empty.v1+json"
    (layer,) = manifest["layers"]
    assert blob(root, layer) == b"two"
    title = layer["annotations"]["org.opencontainers.image.title"]
    assert title == model_name(2)
    assert not list(root.rglob(".*.new"))


def blob(root: Path, descriptor: dict[str, Any]) -> bytes:
    """What a descriptor points to, if it is what it says."""
    algorithm, _, name = descriptor["digest"].partition(":")
    content: bytes = (root / "blobs" / algorithm / name).read_bytes()
    assert hashlib.new(algorithm, content).hexdigest() == name
    assert len(content) == descriptor["size"]
    return content


def test_what_others_keep_in_a_layout_stays(tmp_path: Path) -> None:
    root = tmp_path / "models"
    root.mkdir()
    theirs = {
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "digest": f"sha256:{'0' * 64}",
        "size": 1,
        "annotations": {"org.opencontainers.image.ref.name": "theirs"},
    }
    (root / "index.json").write_text(
        json.dumps({"schemaVersion": 2, "manifests": [theirs], "annotations": {}})
    )
    shelf = shelf_of(tmp_path, Layout(root), keep=1)
    kept(shelf, b"one")
    kept(shelf, b"two")
    assert Layout(root).versions() == [2]
    index = json.loads((root / "index.json").read_text())
    assert theirs in index["manifests"]
    (root / "index.json").write_text("[]")
    with pytest.raises(StateProblem, match="no index"):
        Layout(root).versions()


@pytest.mark.parametrize(
    ("place", "kind", "where"),
    [
        ("/models", Folder, "/models"),
        ("file:///models", Folder, "/models"),
        ("oci:/models", Layout, "/models"),
        ("oci:models", Layout, "models"),
        ("oci:///models", Layout, "/models"),
    ],
)
def test_an_output_is_named_by_its_place(
    place: str, kind: type[Folder | Layout], where: str
) -> None:
    found = output_of(place)
    assert isinstance(found, kind)
    assert found.folder == Path(where)


@pytest.mark.parametrize("place", ["oci://example.com/models", "s3:///models", "oci:"])
def test_what_is_elsewhere_is_refused(place: str) -> None:
    with pytest.raises(ConfigError):
        output_of(place)
