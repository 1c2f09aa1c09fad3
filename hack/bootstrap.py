"""Makes `.venv` with exactly the locked packages, or says in one sentence why not.

Run by make, with whatever Python the machine has. It uses the standard library only
and parses on Python 3.5, because telling an old Python's user what to install is
part of its work: no f-strings, and no newer syntax than that.

A stamp, written last, says which lock, which Python and which folder the environment
was made for. Where it still holds, nothing is done and no network is needed. Where
only pyproject.toml changed, only Trimtab itself is installed again, offline. Anything
else, an interrupted run too, makes the whole environment anew.
"""

import fcntl
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import time

OLDEST = (3, 11)
NEWEST_TRIED = (3, 14)

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
VENV = os.path.join(ROOT, ".venv")
VENV_PYTHON = os.path.join(VENV, "bin", "python")
STAMP = os.path.join(VENV, "trimtab-stamp")
LOCK = os.path.join(ROOT, "requirements", "dev.txt")
PROJECT = os.path.join(ROOT, "pyproject.toml")

WANTED = "Trimtab needs Python {}.{} or newer".format(*OLDEST)
# Run by a candidate: its last printed word is "good", "old" or "bare".
PROBE = """
import sys
try:
    import ensurepip, venv
    bare = False
except ImportError:
    bare = True
print("old" if sys.version_info[:2] < {!r} else "bare" if bare else "good")
""".format(OLDEST)


class Refusal(Exception):
    """A sentence for the user; nothing else is printed."""


def digest(*parts: bytes) -> str:
    """One short name for all the parts, in order."""
    total = hashlib.sha256()
    for part in parts:
        total.update(hashlib.sha256(part).digest())
    return total.hexdigest()


def contents(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def wanted_stamp(asked: str) -> "list[str]":
    """The stamp's two lines: what the packages, and what Trimtab itself, depend on.

    The folder is part of the first: an environment names its own folder in many
    places, so a copied or moved one would quietly run the tree it was made for.
    """
    packages = digest(asked.encode(), ROOT.encode(), contents(LOCK), contents(__file__))
    return ["packages " + packages, "project " + digest(contents(PROJECT))]


def found_stamp() -> "list[str]":
    """The stamp of the environment that is there; empty if there is no usable one."""
    # Following the link to the base interpreter finds one that was uninstalled.
    if not os.access(VENV_PYTHON, os.X_OK):
        return []
    try:
        return contents(STAMP).decode().splitlines()
    except OSError:
        return []


def probe(python: str) -> str:
    """What a candidate can do: "good", "old", "bare" (no venv), or "absent"."""
    try:
        answer = subprocess.run(
            [python, "-c", PROBE], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
    except OSError:
        return "absent"
    # A version manager's shim exists on PATH for versions that are not chosen.
    return answer.stdout.decode().strip() if answer.returncode == 0 else "absent"


def refusal(state: str, python: str) -> str:
    """The sentence for a Python that cannot be used."""
    version = ".".join(str(number) for number in sys.version_info[:3])
    if state == "bare":
        return (
            "Python {} ({}) has no venv module to make an environment with: install it"
            " (Debian and Ubuntu: apt install python3-venv) and run make again."
        ).format(version, python)
    return (
        "{}, and {} is {}: install a newer one (Debian and Ubuntu: apt install python3"
        " python3-venv), or name one with make PYTHON=/path/to/python."
    ).format(WANTED, python, version)


def choose(exactly: bool) -> str:
    """The interpreter to build with: this one, else a newer one from PATH."""
    state = probe(sys.executable)
    if state == "good":
        return sys.executable
    minors = range(NEWEST_TRIED[1], OLDEST[1] - 1, -1)
    names = ["python3.{}".format(minor) for minor in minors]
    for name in [] if exactly else names:
        other = shutil.which(name)
        if other is not None and probe(other) == "good":
            return other
    raise Refusal(refusal(state, sys.executable))


def run(command: "list[str]", failure: str) -> None:
    """Runs one step; its words are shown only if it fails."""
    environment = dict(os.environ, PIP_DISABLE_PIP_VERSION_CHECK="1", PIP_USER="0")
    answer = subprocess.run(
        command,
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    if answer.returncode != 0:
        sys.stderr.write("\n" + answer.stdout.decode(errors="replace"))
        raise Refusal(failure)


def pip(arguments: "list[str]", failure: str) -> None:
    # -I keeps PYTHONPATH and the user's own packages out of the environment.
    run([VENV_PYTHON, "-I", "-m", "pip", "--quiet", "install", *arguments], failure)


def install_packages(python: str) -> None:
    """A fresh environment with the locked packages; what was there goes away."""
    run(
        [python, "-I", "-m", "venv", "--clear", VENV],
        "The environment {} could not be made, for the reason above.".format(VENV),
    )
    pip(
        ["--require-hashes", "--no-deps", "-r", LOCK],
        "The locked packages could not be installed, for the reason above: the first"
        " run needs the network; once that works, run make again.",
    )


def install_project() -> None:
    """Trimtab itself, in place, with the locked build tool: needs no network."""
    pip(
        ["--no-build-isolation", "--no-deps", "--no-index", "--editable", ROOT],
        "Trimtab itself could not be installed, for the reason above.",
    )


def ensure(exactly: bool) -> None:
    """Brings `.venv` to what the lock says.

    Guarantees: each line of the stamp is there only when its part is complete.
    """
    # The Python that was asked for, not the one that was chosen, is in the stamp: a
    # second run need not search again.
    packages, project = wanted_stamp(asked=sys.version)
    found = found_stamp()
    if found == [packages, project]:
        return
    began = time.time()
    if found[:1] == [packages]:
        say("Installing Trimtab itself into .venv ...")
    else:
        python = choose(exactly)
        count = sum(line[:1].isalnum() for line in contents(LOCK).splitlines())
        say("Making .venv with {} and {} locked packages ...".format(python, count))
        write_stamp([])
        install_packages(python)
    write_stamp([packages])
    install_project()
    write_stamp([packages, project])
    say(" done in {:.0f} s.\n".format(time.time() - began))


def write_stamp(lines: "list[str]") -> None:
    """Replaces the stamp; with no lines, there is none."""
    if lines:
        with open(STAMP, "w") as file:
            file.write("\n".join(lines) + "\n")
    elif os.path.exists(STAMP):
        os.remove(STAMP)


def say(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def main(arguments: "list[str]") -> int:
    # Being told to end is like being interrupted: pip must not go on alone.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        # Two makes at once: the second waits, then finds the work done.
        with open(__file__) as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            ensure(exactly="--exactly" in arguments)
    except Refusal as refused:
        sys.stderr.write("{}\n".format(refused))
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("\nStopped; the next make starts the environment anew.\n")
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
