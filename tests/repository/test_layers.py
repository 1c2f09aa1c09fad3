"""The layer contracts of pyproject.toml refuse each import that the layers forbid."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LINTER = Path(sys.executable).parent / "lint-imports"
PACKAGES = [
    *("api", "client", "cache", "runtime", "pool", "operators"),
    *("embedded", "kubelet", "sim", "testing", "authoring", "console", "cli"),
]


def lint(tree: Path, files: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Runs the linter, with our contracts, over a tree of made-up modules."""
    for name, text in {"__init__.py": "", **files}.items():
        path = tree / "trimtab" / name
        for folder in path.relative_to(tree).parents[:-1]:
            (tree / folder).mkdir(parents=True, exist_ok=True)
            (tree / folder / "__init__.py").touch()
        path.write_text(text)
    return subprocess.run(
        [LINTER, "--no-cache", "--no-logo", f"--config={ROOT / 'pyproject.toml'}"],
        cwd=tree,
        env={**os.environ, "PYTHONPATH": str(tree)},
        capture_output=True,
        text=True,
        check=False,
    )


FORBIDDEN = [
    ("api", "trimtab.client"),
    ("api", "aiohttp"),
    ("api", "yaml"),
    ("client", "trimtab.cache"),
    ("cache", "trimtab.runtime"),
    ("runtime", "trimtab.pool"),
    ("runtime", "trimtab.embedded"),
    ("pool", "trimtab.operators"),
    ("embedded", "trimtab.cache"),
    ("embedded", "trimtab.runtime"),
    ("kubelet", "trimtab.operators"),
    ("sim", "trimtab.operators"),
    ("testing", "trimtab.operators"),
    ("operators", "trimtab.embedded"),
    ("operators/vmafx", "trimtab.operators.sessions"),
    ("authoring", "trimtab.operators"),
    ("runtime", "trimtab.authoring"),
    ("console", "trimtab.cli"),
]


def module(package: str) -> str:
    return f"{package}/code.py"


@pytest.mark.parametrize(("importer", "imported"), FORBIDDEN)
def test_an_import_against_the_layers_is_refused(
    tmp_path: Path, importer: str, imported: str
) -> None:
    files = {module(package): "" for package in PACKAGES}
    files["operators/sessions/code.py"] = ""
    # Inside a function it is an import all the same.
    files[module(importer)] = f"def late():\n    import {imported}\n"
    done = lint(tmp_path, files)
    assert done.returncode == 1, done.stdout
    assert f"is not allowed to import {imported}" in done.stdout


def test_the_imports_that_the_layers_allow_are_accepted(tmp_path: Path) -> None:
    allowed = {
        "client": "api",
        "cache": "client",
        "runtime": "cache",
        "pool": "runtime",
        "operators/vmafx": "pool",
        "embedded": "client",
        "kubelet": "runtime",
        "sim": "embedded",
        "testing": "sim",
        "authoring": "embedded",
        "console": "runtime",
        "cli": "operators.vmafx",
    }
    files = {module(above): f"import trimtab.{b}" for above, b in allowed.items()}
    done = lint(tmp_path, {module("api"): "import msgspec", **files})
    assert done.returncode == 0, done.stdout


def test_a_tree_with_only_some_layers_is_accepted(tmp_path: Path) -> None:
    files = {module("api"): "", module("client"): "import trimtab.api"}
    done = lint(tmp_path, files)
    assert done.returncode == 0, done.stdout


def test_a_package_that_is_no_layer_is_refused(tmp_path: Path) -> None:
    done = lint(tmp_path, {module("api"): "", module("utils"): ""})
    assert done.returncode == 1
    assert "trimtab.utils" in done.stdout
