"""The page of lessons is true: what it names is there, and nothing is left out."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "designs" / "052-vmafx-lessons.md"
LIMITS = ROOT / "docs" / "limits.md"


def test_every_test_and_law_that_the_lessons_name_is_there() -> None:
    text = PAGE.read_text()
    named = set(re.findall(r"\btest_\w+", text))
    there = {path.stem for path in (ROOT / "tests").rglob("test_*.py")}
    assert named
    assert named <= there
    for file in re.findall(r"`(tests/\S+\.py)`", text):
        assert (ROOT / file).exists(), file


def test_no_lesson_is_left_out_and_what_is_not_there_is_a_limit() -> None:
    mistakes, weaknesses = PAGE.read_text().split("## Weaknesses")
    for part, count in ((mistakes, 25), (weaknesses, 17)):
        rows = re.findall(r"^\| (\d+) \|.*\| (.+) \|$", part, re.MULTILINE)
        assert [number for number, _ in rows] == [str(n) for n in range(1, count + 1)]
        assert all(
            "test_" in closes
            or "Limits" in closes
            or "as " in closes
            or "studio" in closes
            for _, closes in rows
        )
    limits = LIMITS.read_text()
    for word in ("trainer", "tenants", "fair", "scaling"):
        assert word in limits.partition("## Video scoring")[2].partition("\n## ")[0]
