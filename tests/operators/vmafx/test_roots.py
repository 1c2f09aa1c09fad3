"""Laws of the scoring roots: what is below none of them is refused, links and all."""

from __future__ import annotations

from pathlib import Path

import pytest

from trimtab.operators.vmafx.problems import BadInput
from trimtab.operators.vmafx.roots import Roots


def test_without_roots_everything_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="outside of the scoring roots"):
        Roots().check(str(tmp_path / "a.mp4"))


def test_what_lies_below_a_root_passes_and_nothing_else(tmp_path: Path) -> None:
    inside, outside = tmp_path / "in", tmp_path / "in-not"
    inside.mkdir()
    outside.mkdir()
    (inside / "link.mp4").symlink_to(outside / "a.mp4")
    (inside / "folder").symlink_to(outside)
    roots = Roots((str(inside),))
    for good in (inside / "a.mp4", inside / "b" / ".." / "a.mp4"):
        roots.check(str(good))
        roots.check(f"file://{good}")
    for bad in (
        outside / "a.mp4",
        inside / ".." / "in-not" / "a.mp4",
        inside / "link.mp4",
        inside / "folder" / "a.mp4",
        f"file://{outside}/a.mp4",
        f"file://{inside}/%2e%2e/in-not/a.mp4",
        "http://example.com/in/a.mp4",
    ):
        with pytest.raises(BadInput):
            roots.check(str(bad))


def test_an_address_must_begin_as_a_root_does() -> None:
    roots = Roots(("https://clips.example.com/public/",))
    roots.check("https://clips.example.com/public/a.mp4?x=1")
    for bad in (
        "https://clips.example.com/private/a.mp4",
        "https://clips.example.com/public/../private/a.mp4",
        "https://clips.example.com/public/%2e%2e/private/a.mp4",
        "https://clips.example.com/publicity/a.mp4",
        "http://clips.example.com/public/a.mp4",
        "https://clips.example.com@evil.example/public/a.mp4",
        "https://clips.example.com:8443/public/a.mp4",
        "/public/a.mp4",
    ):
        with pytest.raises(BadInput):
            roots.check(bad)
