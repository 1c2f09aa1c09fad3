"""Laws of ``trimtab new``: what it writes passes its own tests, at once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.cli.commands import printed, refused

ROOT = Path(__file__).resolve().parents[2]


def run(folder: Path, *arguments: str) -> str:
    """Run a tool as somebody in the project would."""
    paths = os.pathsep.join((str(ROOT / "src"), str(folder / "src")))
    done = subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": paths, "PYTEST_ADDOPTS": ""},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_new_project_passes_its_own_tests_and_has_all_it_needs(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    modules: None,
) -> None:
    folder = tmp_path / "made"
    arguments = ("book-shop", "--group=shops.example.org", f"--output={folder}")
    assert "make dev" in printed(capsys, "new", *arguments)
    run(folder, "ruff", "check", ".")
    run(folder, "ruff", "format", "--check", ".")
    said = run(folder, "pytest", "-q", "-p", "no:cacheprovider")
    assert "2 passed" in said
    monkeypatch.setattr(sys, "path", [str(folder / "src"), *sys.path])
    printed(capsys, "chart", "book_shop.operator", f"--output={folder / 'chart'}")
    assert (folder / "chart/crds/bookshops.shops.example.org.yaml").is_file()
    values = yaml.safe_load((folder / "chart" / "values.yaml").read_text())
    assert values["source"] == "book_shop.operator"
    for name in ("Containerfile", "Makefile", ".github/workflows/ci.yaml"):
        assert "book" in (folder / name).read_text() or name.endswith("ci.yaml")
    makefile = (folder / "Makefile").read_text()
    for command in ("crd", "rbac"):  # kubectl reads what they print, and nothing else
        assert f"\t@trimtab {command} " in makefile
    example = yaml.safe_load((folder / "example.yaml").read_text())
    assert example["kind"] == "BookShop"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("Book_Shop",), "The name"),
        (("1shop",), "begin it with a letter"),
        (("import",), "cannot be the name of a Python package"),
        (("queue",), "is a module already"),
        (("trimtab",), "is a module already"),
        (("shop", "--kind=shop"), "as BookShop"),
        (("shop", "--group=shop"), "The group"),
        ((), "the following arguments are required: NAME"),
    ],
)
def test_a_name_that_cannot_be_is_one_sentence_and_nothing_is_written(
    arguments: tuple[str, ...],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert said in refused(capsys, "new", *arguments)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_there_is_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "notes").write_text("mine")
    said = refused(capsys, "new", "shop", f"--output={tmp_path}")
    assert "is there already" in said
    assert [path.name for path in tmp_path.iterdir()] == ["notes"]
