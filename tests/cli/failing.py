"""Commands that fail: one sentence on standard error, and nothing else."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path


def sentence(command: str, *arguments: str, home: Path, env: Mapping[str, str]) -> str:
    """The one sentence that a command ends with."""
    done = subprocess.run(
        [sys.executable, "-m", "trimtab", command, *arguments],
        env=env,
        cwd=home,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("\n") == 1, done.stderr
    assert done.stderr.startswith("trimtab")
    return done.stderr
