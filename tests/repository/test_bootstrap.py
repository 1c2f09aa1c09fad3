"""The environment is made once, completely or not at all, and refused in a sentence.

These run the real make and the real pip, in a small repository of their own whose one
locked package is a wheel in a folder, so that no test needs the network. An empty
environment takes Python four seconds, nearly all of them for its pip: Python makes one
for the whole file, and whoever makes another is handed a copy of it.
"""

from __future__ import annotations

import base64
import hashlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROJECT = """
[project]
name = "trimtab"
version = "1"
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
"""
# The least that can install a project in place.
BACKEND = """
import pathlib, zipfile
def build_editable(folder, config_settings=None, metadata_directory=None):
    name = "trimtab-1-py3-none-any.whl"
    with zipfile.ZipFile(pathlib.Path(folder) / name, "w") as wheel:
        wheel.writestr("trimtab.pth", str(pathlib.Path("src").resolve()))
        info = "trimtab-1.dist-info/"
        wheel.writestr(info + "METADATA", "Metadata-Version: 2.1\\nName: trimtab\\n"
            "Version: 1\\n")
        wheel.writestr(info + "WHEEL", "Wheel-Version: 1.0\\nGenerator: a test\\n"
            "Root-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr(info + "RECORD", "trimtab.pth,,\\n")
    return name
"""
# A Python that is not what it says it is, for machines that have only a good one.
PRETENDER = """
import runpy, sys
arguments = [word for word in sys.argv[1:] if word not in ("-I", "-S")]
sys.executable = {path!r}
{pretence}
if arguments[0] == "-c":
    exec(arguments[1], {{}})
else:
    sys.argv = arguments
    runpy.run_path(arguments[0], run_name="__main__")
"""
OLD = "sys.version_info = (3, 8, 18, 'final', 0)"
BARE = "sys.modules['ensurepip'] = None"
# Makes an environment as Python does, but from a copy; all else is Python's own.
QUICK = """
if arguments[:3] == ["-m", "venv", "--clear"]:
    import os, shutil
    shutil.rmtree(arguments[3], ignore_errors=True)
    shutil.copytree({empty!r}, arguments[3], symlinks=True, copy_function=os.link)
    sys.exit()
"""


def make_wheel(folder: Path) -> str:
    """Puts a package `pebble` into a folder and says the line that locks it."""
    folder.mkdir()
    path = folder / "pebble-1.0-py3-none-any.whl"
    code = b"COLOUR = 'grey'\n"
    digest = base64.urlsafe_b64encode(hashlib.sha256(code).digest()).rstrip(b"=")
    info = "pebble-1.0.dist-info/"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr("pebble.py", code)
        wheel.writestr(
            info + "METADATA", "Metadata-Version: 2.1\nName: pebble\nVersion: 1.0\n"
        )
        wheel.writestr(
            info + "WHEEL",
            "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        wheel.writestr(
            info + "RECORD", f"pebble.py,sha256={digest.decode()},{len(code)}\n"
        )
    return f"pebble==1.0 --hash=sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}"


class Tree:
    """A repository with our Makefile and bootstrap, and one locked package."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.stamp = root / ".venv" / "trimtab-stamp"
        for name in ("hack", "requirements", "src"):
            (root / name).mkdir(parents=True)
        shutil.copy(ROOT / "Makefile", root)
        shutil.copy(ROOT / "hack" / "bootstrap.py", root / "hack")
        lock = make_wheel(root / "wheels")
        (root / "requirements" / "dev.txt").write_text(lock + "\n")
        (root / "pyproject.toml").write_text(PROJECT)
        (root / "backend.py").write_text(BACKEND)

    def environment(self, **more: str) -> dict[str, str]:
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("PIP_", "PYTHON", "MAKE"))
        }
        pip = {"PIP_CONFIG_FILE": os.devnull, "PIP_FIND_LINKS": f"{self.root}/wheels"}
        return {**kept, "PIP_NO_INDEX": "1", **pip, **more}

    def make(self, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["make", "venv", *words],
            cwd=self.root,
            env=self.environment(**more),
            capture_output=True,
            text=True,
            check=False,
        )

    def pretender(self, name: str, pretence: str) -> Path:
        """A program on a PATH of its own that passes for another Python."""
        path = self.root / "path" / name
        path.parent.mkdir(exist_ok=True)
        script = path.with_name(f"{name}.script")
        script.write_text(PRETENDER.format(path=str(path), pretence=pretence))
        path.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{script}" "$@"\n')
        path.chmod(0o755)
        for tool in ("sh", "make"):
            where = shutil.which(tool)
            assert where is not None
            if not (path.parent / tool).exists():
                (path.parent / tool).symlink_to(where)
        return path

    def works(self) -> bool:
        code = "import pebble; assert pebble.COLOUR == 'grey'"
        command = [f"{self.root}/.venv/bin/python", "-c", code]
        return subprocess.run(command, check=False).returncode == 0


PYTHON = f"PYTHON={sys.executable}"


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path / "tree")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    """A tree whose environment is made."""
    tree = Tree(tmp_path_factory.mktemp("made") / "tree")
    done = tree.make(PYTHON)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") == 1, "the long step shows itself in one line"
    return tree


@pytest.fixture(scope="module")
def empty(made: Tree, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The environment of that tree as it was before anything was installed."""
    copy = tmp_path_factory.mktemp("empty") / "venv"
    shutil.copytree(made.root / ".venv", copy, symlinks=True)
    (copy / made.stamp.name).unlink()
    pip = [f"{copy}/bin/python", "-I", "-m", "pip", "--quiet"]
    subprocess.run([*pip, "uninstall", "--yes", "pebble", "trimtab"], check=True)
    return copy


@pytest.fixture
def quick(tree: Tree, empty: Path) -> Path:
    """A Python that takes no time to make an environment."""
    return tree.pretender("python3.12", QUICK.format(empty=str(empty)))


def test_the_first_run_installs_what_is_locked(made: Tree) -> None:
    assert made.stamp.exists()
    assert made.works()


def test_a_second_run_needs_no_network_and_little_time(made: Tree) -> None:
    began = time.monotonic()
    done = made.make(PYTHON, PIP_FIND_LINKS="", PIP_INDEX_URL="http://127.0.0.1:9/")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert time.monotonic() - began < 10


def test_a_changed_project_is_installed_again_without_the_packages(made: Tree) -> None:
    (made.root / "pyproject.toml").write_text(PROJECT + "# changed\n")
    packages = made.stamp.read_text().splitlines()[0]
    done = made.make(PYTHON, PIP_FIND_LINKS="")
    assert done.returncode == 0, done.stderr
    assert "Trimtab itself" in done.stdout
    assert made.stamp.read_text().splitlines()[0] == packages
    assert made.make(PYTHON).stdout == ""


def test_a_copied_tree_does_not_use_the_environment_of_the_first(
    made: Tree, tmp_path: Path, quick: Path
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(made.root, copy, symlinks=True)
    done = subprocess.run(
        ["make", "venv", f"PYTHON={quick}"],
        cwd=copy,
        env=made.environment(PIP_FIND_LINKS=""),  # so that making it anew fails
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert "could not be installed" in done.stderr
    assert not (copy / ".venv" / "trimtab-stamp").exists()
    assert made.works()


def test_a_package_that_is_not_the_locked_one_is_refused(
    tree: Tree, quick: Path
) -> None:
    lock = tree.root / "requirements" / "dev.txt"
    lock.write_text("pebble==1.0 --hash=sha256:" + "0" * 64 + "\n")
    done = tree.make(f"PYTHON={quick}")
    assert done.returncode != 0
    assert "THESE PACKAGES DO NOT MATCH THE HASHES" in done.stderr
    assert not tree.stamp.exists()


@pytest.fixture
def silent_index() -> Iterator[socket.socket]:
    """A package index that accepts a connection and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(50)
        yield server


def test_an_interrupted_install_is_made_anew(
    tree: Tree, silent_index: socket.socket, quick: Path
) -> None:
    address = f"http://127.0.0.1:{silent_index.getsockname()[1]}/"
    process = subprocess.Popen(
        ["make", "venv", f"PYTHON={quick}"],
        cwd=tree.root,
        env=tree.environment(PIP_NO_INDEX="", PIP_FIND_LINKS="", PIP_INDEX_URL=address),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    connection, _ = silent_index.accept()
    with connection:
        os.killpg(process.pid, signal.SIGINT)
        _, errors = process.communicate()
    assert process.returncode != 0
    assert b"Stopped" in errors
    assert b"Traceback" not in errors
    assert not tree.stamp.exists()
    assert tree.make(f"PYTHON={quick}").returncode == 0
    assert tree.works()


def refusal(done: subprocess.CompletedProcess[str]) -> str:
    """The one line that a user sees, besides make's own."""
    (line,) = [text for text in done.stderr.splitlines() if not text.startswith("make")]
    assert done.returncode != 0
    assert done.stdout == ""
    return line


def test_a_python_that_is_too_old_is_refused_in_a_sentence(tree: Tree) -> None:
    path = tree.pretender("python3", OLD)
    sentence = refusal(tree.make(PATH=str(path.parent)))
    assert "needs Python 3.11 or newer" in sentence
    assert "3.8.18" in sentence
    assert "apt install" in sentence


def test_a_python_without_venv_is_refused_in_a_sentence(tree: Tree) -> None:
    path = tree.pretender("python3", BARE)
    sentence = refusal(tree.make(PATH=str(path.parent)))
    assert "apt install python3-venv" in sentence


def test_a_machine_without_python_is_told_so_in_a_sentence(tree: Tree) -> None:
    path = tree.pretender("unrelated", "")
    sentence = refusal(tree.make(PATH=str(path.parent)))
    assert "there is no python3 here" in sentence


def test_a_newer_python_on_the_path_is_found(tree: Tree, quick: Path) -> None:
    tree.pretender("python3", OLD)
    tree.pretender("python3.13", BARE)
    done = tree.make(PATH=str(quick.parent))
    assert done.returncode == 0, done.stderr
    assert f"with {quick}" in done.stdout
    assert tree.make(PATH=str(quick.parent)).stdout == "", "nor searched for again"


def test_a_python_that_was_named_is_not_replaced_by_another(tree: Tree) -> None:
    old = tree.pretender("old", OLD)
    (old.parent / "python3.12").symlink_to(sys.executable)
    sentence = refusal(tree.make(f"PYTHON={old}", PATH=str(old.parent)))
    assert str(old) in sentence
