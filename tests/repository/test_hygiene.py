"""The repository's files say what they are, and nothing of where they were made."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MODULES = sorted((ROOT / "src" / "trimtab").rglob("*.py"))
# Put together here, so that this file does not contain what it looks for.
HOSTS = [
    ".".join(words.split())
    for words in (
        "pypi org",
        "pythonhosted org",
        "proxy golang org",
        "sum golang org",
        "registry npmjs org",
        "crates io",
        "repo1 maven",
        "repo maven apache org",
        "deb debian org",
        "archive ubuntu com",
        "dl k8s io",
    )
]
# A user's home, and the folders of one particular machine.
PLACES = ["/" + word + "/" for word in ("root", "work", "Users")]


def tracked() -> list[Path]:
    """Every file that is, or is about to be, part of the repository."""
    try:
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT,
            capture_output=True,
            check=True,
        ).stdout.decode()
    except (OSError, subprocess.CalledProcessError):
        return without_git()
    return [ROOT / name for name in listed.split("\0") if (ROOT / name).is_file()]


def without_git() -> list[Path]:
    """The same for a tree that was unpacked from an archive."""
    hidden = re.compile(r"(^|/)(\.(?!ci/|gitignore)[^/]*|__pycache__)(/|$)")
    names = [path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*")]
    return [ROOT / n for n in names if not hidden.search(n) and (ROOT / n).is_file()]


def found(patterns: list[str]) -> list[str]:
    wanted = re.compile("|".join(map(re.escape, patterns)).encode(), re.IGNORECASE)
    hits = []
    for path in tracked():
        if match := wanted.search(path.read_bytes()):
            hits.append(f"{path.relative_to(ROOT)}: {match[0].decode()}")
    return hits


def test_no_file_names_a_package_registry() -> None:
    assert found(HOSTS) == []


def test_no_file_names_a_place_of_the_machine_it_was_written_on() -> None:
    assert found(PLACES) == []


@pytest.mark.parametrize(
    "module", MODULES, ids=[str(path.relative_to(ROOT)) for path in MODULES]
)
def test_every_module_says_what_it_is(module: Path) -> None:
    text = module.read_text()
    said = ast.get_docstring(ast.parse(text))
    assert said, f"{module} has no docstring: say in its first sentence what it is."


def test_the_commands_of_the_readme_exist() -> None:
    commands = re.findall(r"\bmake ([a-z-]+)", (ROOT / "README.md").read_text())
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert {"demo", "test"} <= set(commands)
    assert set(commands) <= set(targets)


def test_what_ci_runs_can_be_run() -> None:
    script = ROOT / ".ci" / "run"
    assert script.stat().st_mode & 0o111
    commands = [line for line in script.read_text().splitlines() if "make" in line]
    assert commands == ["make test", "make test-cluster"]
