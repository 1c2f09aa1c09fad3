"""A virtual environment for each peer, with exactly the packages that it is locked to.

They live in the user's cache folder and are made once: the folder's name holds what it
was made from (the lock file and the Python), so a change makes another.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOCKS = ROOT / "bench" / "peers"


def cache_folder() -> Path:
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    # The XDG specification says that a relative path must be ignored.
    if not base.is_absolute():
        base = Path.home() / ".cache"
    return base / "trimtab" / "bench"


def python_of(package: str) -> Path:
    """The interpreter that has ``package``; made now if it is not there yet."""
    lock = LOCKS / f"{package}.txt"
    facts = lock.read_bytes() + sys.version.encode()
    folder = cache_folder() / f"{package}-{hashlib.sha256(facts).hexdigest()[:12]}"
    python = folder / "bin" / "python"
    ready = folder / "ready"  # written last, so half an environment is never used
    if not ready.exists():
        print(f"Making {folder} ...", flush=True)
        shutil.rmtree(folder, ignore_errors=True)
        _run(sys.executable, "-I", "-m", "venv", str(folder))
        pip = (str(python), "-I", "-m", "pip", "install", "--quiet", "--no-deps")
        _run(*pip, "--requirement", str(lock))
        ready.touch()
    return python


def version_of(package: str) -> str:
    """The version of a peer that its lock file names."""
    for line in (LOCKS / f"{package}.txt").read_text().splitlines():
        name, equals, rest = line.partition("==")
        if equals and name.replace("_", "-") == package.replace("_", "-"):
            return rest.split()[0]
    raise LookupError(f"{package}.txt does not name {package}: lock it again.")


def _run(*command: str) -> None:
    try:
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
    except subprocess.CalledProcessError as error:
        raise SystemExit(
            f"{' '.join(command)} failed, for the reason above: the first run needs "
            "the network."
        ) from error
