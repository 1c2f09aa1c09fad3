"""Laws of loading: files and modules, one and several, each operator once."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.cli.commands import refused
from trimtab.cli.loading import NotAnOperator, operators_of, source_of

pytestmark = pytest.mark.usefixtures("modules")

ONE = """
import trimtab
class {kind}(trimtab.Resource, group="load.example.com", version="v1"): pass
app = trimtab.Operator("{name}")
@app.reconciles({kind}, scope=trimtab.Scope(everything=True))
async def seen(wish, ctx): ...
"""


def write(folder: Path, file: str, *, name: str, kind: str = "Oven") -> str:
    path = folder / file
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_text(ONE.format(name=name, kind=kind))
    return str(path)


def test_several_files_and_modules_are_loaded_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "bakery_here/__init__.py", name="unused")
    write(tmp_path, "bakery_here/ovens.py", name="ovens")
    file = write(tmp_path, "mills.py", name="mills")
    found = operators_of(["bakery_here.ovens", file])
    assert [each.name for each in found] == ["ovens", "mills"]


def test_two_operators_of_one_name_are_refused_wherever_they_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [write(tmp_path, f"{n}.py", name="ovens") for n in ("one", "two")]
    said = refused(capsys, "run", *files)
    assert "one.py and" in said
    assert "both declare an operator named 'ovens'" in said
    twice = tmp_path / "twice.py"
    twice.write_text("import trimtab\na = trimtab.Operator('x')\n" * 1)
    twice.write_text(twice.read_text() + "b = trimtab.Operator('x')\n")
    for command in ("run", "crd", "rbac"):
        assert "declares two operators named 'x'" in refused(
            capsys, command, str(twice)
        )


def test_a_file_that_is_named_twice_is_loaded_twice_and_refused(tmp_path: Path) -> None:
    file = write(tmp_path, "one.py", name="ovens")
    with pytest.raises(NotAnOperator, match="both declare"):
        operators_of([file, file])


def test_a_module_that_is_not_there_or_fails_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(NotAnOperator, match="There is no file and no module nowhere"):
        source_of("nowhere_at_all")
    (tmp_path / "failing_here.py").write_text("1 / 0\n")
    with pytest.raises(NotAnOperator, match="failing_here cannot be loaded: ZeroDiv"):
        source_of("failing_here")


def test_of_two_saves_in_one_moment_the_last_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    for name in ("one", "two"):
        file = write(tmp_path, "saved.py", name=name)
        os.utime(file, (1_700_000_000, 1_700_000_000))
        assert [each.name for each in operators_of([file])] == [name]
