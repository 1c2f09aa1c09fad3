"""The page of lessons is true: what it names is there, and nothing is left out."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
JOURNEYS = (
    *("start", "stop", "resume", "kill -9", "OOM", "image typo", "timeout"),
    *("inactivity", "repos added and changed", "workflow applied", "retention"),
    *("secret rotation", "namespace deleted in the middle"),
    "operator killed -9 at each phase",
)
PAGE = ROOT / "docs" / "designs" / "063-sessions-lessons.md"


def test_every_test_that_the_lessons_name_is_there() -> None:
    named = set(re.findall(r"\btest_\w+", PAGE.read_text()))
    there = {path.stem for path in (ROOT / "tests").rglob("test_*.py")}
    assert named
    assert named <= there


def test_every_audit_item_and_fault_with_a_test_of_its_name_has_one() -> None:
    tests = "\n".join(
        path.read_text() for path in Path(__file__).parent.glob("test_*.py")
    )
    for item in range(1, 7):
        assert f"test_audit_{item}_" in tests, item
    for fault in ("faults_a_and_b", "fault_c", "fault_e", "fault_g"):
        assert f"test_{fault}_" in tests, fault


def test_no_lesson_is_left_out() -> None:
    audit, rest = PAGE.read_text().split("## Faults")
    faults, rest = rest.split("## Holes")
    holes, _ = rest.split("## From end to end")
    for part, expected in (
        (audit, [str(number) for number in range(1, 7)]),
        (faults, list("ABCDEFGH")),
        (holes, [str(number) for number in range(1, 12)]),
    ):
        assert re.findall(r"^\| (\w+) \|", part, re.MULTILINE) == expected


def test_all_that_is_done_to_sessions_is_done_from_end_to_end() -> None:
    _, rest = PAGE.read_text().split("## From end to end")
    rows = re.findall(r"^\| ([\w -]+?) \| (.+?) \|", rest, re.MULTILINE)
    assert len(rows) == len(JOURNEYS) + 1  # and the head of the table
    assert [what for what, _ in rows[1:]] == list(JOURNEYS)
    tests = (Path(__file__).parent / "test_end_to_end.py").read_text()
    for _, said in rows[1:]:
        words = re.sub(r"[^a-z]+", "_", said.partition(":")[0].lower())
        assert words == "the_same" or f"test_{words}" in tests, said
