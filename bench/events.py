"""What an event costs us: ``.venv/bin/python bench/events.py``; README."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

if __name__ == "__main__":
    # The tree that this file belongs to is measured, whatever is installed.
    sys.path[:1] = [str(ROOT), str(ROOT / "src")]
    from bench.board.events import main

    sys.exit(main())
