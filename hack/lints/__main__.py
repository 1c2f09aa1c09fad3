"""Runs every lint rule over the library: `python -m hack.lints`."""

from __future__ import annotations

import sys
from pathlib import Path

from hack.lints import check

ROOT = Path(__file__).resolve().parents[2]
CHECKED = ROOT / "src" / "trimtab"


def main() -> int:
    files = sorted(CHECKED.rglob("*.py"))
    findings = [
        finding
        for file in files
        for finding in check(file.relative_to(ROOT).as_posix(), file.read_text())
    ]
    for finding in sorted(findings):
        print(finding)
    print(f"{len(files)} files checked, {len(findings)} findings.")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
