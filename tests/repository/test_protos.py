"""The messages of the wire are what the .proto files say."""

from __future__ import annotations

from pathlib import Path

from hack import protos


def test_what_was_made_of_the_proto_files_is_current(tmp_path: Path) -> None:
    assert protos.protos()
    assert protos.make(tmp_path) == 0
    made = sorted(tmp_path.rglob("*_pb2.py*"))
    assert len(made) == 2 * len(protos.protos())
    for file in made:
        kept = protos.SOURCES / file.relative_to(tmp_path)
        assert kept.read_text() == file.read_text(), (
            f"run python -m hack.protos: {kept}"
        )
