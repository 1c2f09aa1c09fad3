"""The pages of docs/ say what is so: their code runs, and their commands exist."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest

from trimtab.cli.loading import module_in
from trimtab.testing import Cluster

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"


def blocks(page: str, language: str) -> list[str]:
    text = (DOCS / page).read_text()
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


async def test_the_code_of_the_first_page_passes_the_tests_of_the_page_on_testing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cluster: Cluster, namespace: str
) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name in ("greetings", "alone", "together"):  # gone again afterwards
        monkeypatch.delitem(sys.modules, name, raising=False)
        monkeypatch.setitem(sys.modules, name, None)
        del sys.modules[name]
    (operator,) = blocks("index.md", "python")
    (tmp_path / "greetings.py").write_text(operator)
    module_in(tmp_path / "greetings.py")
    alone, together = blocks("testing.md", "python")
    (tmp_path / "alone.py").write_text(alone)
    (tmp_path / "together.py").write_text(together)
    tests: Any = module_in(tmp_path / "alone.py")
    await tests.test_a_greeting_becomes_a_config_map()
    tests = module_in(tmp_path / "together.py")
    await tests.test_a_config_map_that_is_deleted_comes_back(cluster, namespace)


def test_the_first_page_is_short() -> None:
    assert len((DOCS / "index.md").read_text().splitlines()) < 80


def test_every_command_is_on_the_page_of_tools_or_in_the_readme() -> None:
    from trimtab.cli.main import COMMANDS

    told = (DOCS / "tools.md").read_text() + (ROOT / "README.md").read_text()
    ours = set(COMMANDS) - {"sim", "kubelet"}
    assert {name for name in ours if f"trimtab {name}" not in told} == set()
