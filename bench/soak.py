"""Half an hour of churn, cuts and kills: ``.venv/bin/python bench/soak.py``.

Two replicas of ``soak_operator.py`` run as processes, each behind a relay that cuts its
connections or lets them fall silent. Objects are made, changed, spoiled and deleted
meanwhile, and whoever leads is killed, or stopped beyond its lease. One replica, the
witness, is never killed: its memory, tasks, threads and descriptors are measured. At
the end every object must be as its spec says, and nothing may be left of the others.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

if __name__ == "__main__":
    # The tree that this file belongs to is soaked, whatever is installed.
    sys.path[:1] = [str(ROOT), str(ROOT / "src")]
    from bench.soaking.main import main

    sys.exit(main())
