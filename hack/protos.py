"""Makes the Python of every .proto file in the tree: `python -m hack.protos`.

What it makes is kept in the tree, so that installing needs no compiler; a test makes it
again and compares.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ROOT / "src"


def protos() -> list[Path]:
    """Every .proto file of the package."""
    return sorted(SOURCES.rglob("*.proto"))


def make(to: Path) -> int:
    """Write the Python of all of them below a folder; protoc's exit code."""
    from grpc_tools import protoc

    names = [str(path.relative_to(SOURCES)) for path in protos()]
    arguments = ("", f"-I{SOURCES}", f"--python_out={to}", f"--pyi_out={to}", *names)
    code: int = protoc.main(arguments)
    return code


if __name__ == "__main__":
    sys.exit(make(SOURCES))
