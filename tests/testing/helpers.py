"""What several tests of `trimtab.testing` share."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that ended and was not reaped does not."""
    try:
        os.kill(pid, 0)
        stat = Path(f"/proc/{pid}/stat").read_text()
    except ProcessLookupError:
        return False
    except FileNotFoundError:  # it just ended, or there is no /proc here
        return sys.platform != "linux"
    return stat.rpartition(")")[2].split()[0] != "Z"


def until(check: Callable[[], bool], *, within: float = 10.0) -> bool:
    """Poll until `check` holds; whether it did in time."""
    deadline = time.monotonic() + within
    while not check():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def script(path: Path, text: str) -> Path:
    """An executable shell script."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def start_python(code: str, *arguments: str) -> subprocess.Popen[str]:
    """Run Python code that can import trimtab, with its output on a pipe."""
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        stdout=subprocess.PIPE,
        text=True,
    )
