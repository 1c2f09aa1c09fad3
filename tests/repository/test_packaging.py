"""What is declared, what is locked and what is imported agree."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[2]
LOCK = ROOT / "requirements" / "dev.txt"
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
EXTRAS: dict[str, list[str]] = PROJECT["project"]["optional-dependencies"]
PINNED = re.compile(r"([A-Za-z0-9._-]+)==([^ ;]+)(?: ; .*)? \\")


def locked() -> dict[str, Version]:
    """Every locked package; a line that locks nothing exactly is an error here."""
    lines = LOCK.read_text().splitlines()
    named = [line for line in lines if line[:1] not in (" ", "#", "")]
    pins = [PINNED.fullmatch(line) for line in named]
    assert all(pins), [line for line, pin in zip(named, pins, strict=True) if not pin]
    return {canonicalize_name(pin[1]): Version(pin[2]) for pin in pins if pin}


def declared() -> list[Requirement]:
    """What Trimtab needs, and what developing it needs."""
    tools = (ROOT / "requirements" / "dev.in").read_text().splitlines()
    lines = [line for line in tools if line and not line.startswith("#")]
    needed = [*PROJECT["project"]["dependencies"], *EXTRAS["embedded"]]
    return [Requirement(line) for line in [*needed, *lines]]


@pytest.mark.parametrize("requirement", declared(), ids=str)
def test_each_locked_version_is_within_its_declared_range(
    requirement: Requirement,
) -> None:
    assert locked()[canonicalize_name(requirement.name)] in requirement.specifier


def test_the_build_tool_is_locked_within_its_range() -> None:
    (build,) = map(Requirement, PROJECT["build-system"]["requires"])
    assert locked()[canonicalize_name(build.name)] in build.specifier


def test_every_locked_package_has_a_hash() -> None:
    blocks = re.split(r"\n(?=\S)", LOCK.read_text())
    bare = [
        block for block in blocks if "==" in block and "--hash=sha256:" not in block
    ]
    assert bare == []


def test_the_lock_names_no_index() -> None:
    assert "://" not in LOCK.read_text()
    assert "index" not in LOCK.read_text()


def test_an_install_brings_only_what_an_operator_needs() -> None:
    needed = {Requirement(line).name for line in PROJECT["project"]["dependencies"]}
    assert needed == {"msgspec", "PyYAML", "prometheus_client"}


def test_the_extra_all_is_every_other_extra() -> None:
    (everything,) = map(Requirement, EXTRAS["all"])
    assert everything.name == "trimtab"
    assert everything.extras == set(EXTRAS) - {"all"}


def test_every_declared_range_has_an_end_or_a_reason_for_none() -> None:
    # cryptography counts its years in major versions and promises none of them, and the
    # versions of tzdata are the dates of what it holds.
    groups = [PROJECT["project"]["dependencies"], *EXTRAS.values()]
    requirements = [Requirement(line) for group in groups for line in group]
    endless = {r.name for r in requirements if "<" not in str(r.specifier)}
    assert endless <= {"cryptography", "trimtab", "tzdata"}


@pytest.mark.parametrize(
    "used", ["trimtab.api", "trimtab.client.http; trimtab.Client; trimtab.load"]
)
def test_importing_trimtab_imports_nothing_heavy(used: str) -> None:
    heavy = (
        "aiohttp cryptography grpc numpy opentelemetry prometheus_client yaml".split()
    )
    code = (
        f"import sys, trimtab, {used}\n"
        f"print([name for name in {heavy} if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT / "src",
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stderr, done.stdout.strip()) == ("", "[]")


def test_the_wheel_is_typed_licensed_and_holds_only_the_library(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel"]
    subprocess.run(
        [*command, "-d", str(tmp_path)], cwd=ROOT, check=True, capture_output=True
    )
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    folders = {name.partition("/")[0] for name in names}
    assert folders == {
        "trimtab",
        wheel.name.removesuffix("-py3-none-any.whl") + ".dist-info",
    }
    assert "trimtab/py.typed" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
