"""The page of lessons is true: what it names is there, and nothing is left out."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "designs" / "041-pool-lessons.md"


def test_every_test_that_the_lessons_name_is_there() -> None:
    named = set(re.findall(r"\btest_\w+", PAGE.read_text()))
    there = {path.stem for path in (ROOT / "tests").rglob("test_*.py")}
    assert named
    assert named <= there


def test_no_lesson_is_left_out() -> None:
    mistakes, weaknesses = PAGE.read_text().split("## Weaknesses")
    for part, count in ((mistakes, 40), (weaknesses, 36)):
        numbers = re.findall(r"^\| (\d+) \|", part, re.MULTILINE)
        assert numbers == [str(number) for number in range(1, count + 1)]
