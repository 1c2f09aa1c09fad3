"""Laws of commands that cannot do what they are asked: one sentence, nothing written.

A file that does not load, two operators of one name, no cluster, no permission.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.commands import refused
from tests.examples.scenarios import EXAMPLES
from trimtab.testing import Cluster

WEBSITE = str(EXAMPLES / "website.py")
READING = (("run",), ("crd",), ("rbac",), ("chart",))
ASKING = (("run", WEBSITE, "--port=-1"), ("crd", WEBSITE, "--check"), ("migrate", "X"))
pytestmark = pytest.mark.usefixtures("modules")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home without a kubeconfig, in which nothing may be left behind."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.chdir(home)
    return home


@pytest.mark.parametrize("command", READING)
@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("def broken(:\n", "mine.py:1 cannot be loaded: SyntaxError"),
        ("import trimtab\n1 / 0\n", "mine.py:2 cannot be loaded: ZeroDivisionError"),
        (
            "import trimtab\na = trimtab.Operator('x')\nb = trimtab.Operator('x')\n",
            "declares two operators named 'x'",
        ),
    ],
    ids=["syntax", "failure", "two of one name"],
)
def test_a_file_that_does_not_load_is_told_by_every_command(
    command: tuple[str, ...],
    content: str,
    said: str,
    tmp_path: Path,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "mine.py").write_text(content)
    assert said in refused(capsys, *command, str(tmp_path / "mine.py"))
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("command", READING)
def test_a_name_that_is_no_operator_s_is_told_by_every_command(
    command: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    said = refused(capsys, *command, WEBSITE, "--operator=other")
    assert "declares no operator 'other'; it has 'websites'" in said


@pytest.mark.parametrize("command", ASKING, ids=["run", "crd", "migrate"])
def test_without_a_cluster_every_command_says_so(
    command: tuple[str, ...], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "kubeconfig" in refused(capsys, *command)
    gone = folder / "gone"
    assert "gone" in refused(capsys, *command, f"--kubeconfig={gone}")


def changed(cluster: Cluster, folder: Path, **user: Any) -> str:
    """The cluster's kubeconfig with something else in it."""
    content = json.loads(cluster.kubeconfig.read_text())
    content["users"][0]["user"].update(user)
    path = folder / "changed"
    path.write_text(json.dumps(content))
    return f"--kubeconfig={path}"


@pytest.mark.parametrize(
    "command", [("crd", WEBSITE, "--check"), ("migrate", "X")], ids=["crd", "migrate"]
)
def test_without_permission_the_server_s_own_words_are_told(
    command: tuple[str, ...],
    cluster: Cluster,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    acting = {"as": "nobody"}
    said = refused(capsys, *command, changed(cluster, tmp_path, **acting))
    assert "forbidden" in said
    assert 'User "nobody" cannot' in said


def test_a_reader_that_stops_reading_is_no_failure() -> None:
    """As in ``trimtab crd FILE | head -1``."""
    reading, writing = os.pipe()
    os.close(reading)
    command = (sys.executable, "-m", "trimtab", "crd", WEBSITE)
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, timeout=30)
    os.close(writing)
    assert (done.returncode, done.stderr) == (128 + signal.SIGPIPE, b"")
