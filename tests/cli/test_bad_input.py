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
from tests.cli.failing import sentence
from tests.examples.scenarios import EXAMPLES
from trimtab.cli import allowed
from trimtab.testing import Cluster

WEBSITE = str(EXAMPLES / "website.py")
READING = (("run",), ("crd",), ("rbac",), ("chart",), ("dev",))
ASKING = {
    "run": ("run", WEBSITE, "--port=-1"),
    "crd": ("crd", WEBSITE, "--check"),
    "migrate": ("migrate", "X"),
    "kubelet": ("kubelet",),
    "pool serve": ("pool", "serve", "--port=0", "--endpoints=-1"),
    "pool ls": ("pool", "ls"),
    "pool acquire": ("pool", "acquire", "sql", "--tenant=x"),
    "pool release": ("pool", "release", "x"),
    "pool drain": ("pool", "drain", "x"),
    "pool explain": ("pool", "explain", "x"),
    "vmafx gateway": ("vmafx", "gateway", "--port=0"),
    "vmafx submit": ("vmafx", "submit", "a.mp4", "b.mp4"),
    "vmafx watch": ("vmafx", "watch", "x"),
    "vmafx cancel": ("vmafx", "cancel", "x"),
}
"""What each command is given that speaks to a cluster."""
BROKEN = {
    "syntax": ("def broken(:\n", "mine.py:1 cannot be loaded: SyntaxError"),
    "failure": (
        "import trimtab\n1 / 0\n",
        "mine.py:2 cannot be loaded: ZeroDivisionError",
    ),
    "two of one name": (
        "import trimtab\na = trimtab.Operator('x')\nb = trimtab.Operator('x')\n",
        "declares two operators named 'x'",
    ),
}
pytestmark = pytest.mark.usefixtures("modules")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home without a kubeconfig, in which nothing may be left behind."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    # Nobody has to wait here for a server that is being restarted.
    monkeypatch.setattr(allowed, "PATIENCE", 0.0)
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.chdir(home)
    return home


@pytest.mark.parametrize("command", READING)
@pytest.mark.parametrize(("content", "said"), BROKEN.values(), ids=BROKEN)
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


@pytest.mark.parametrize(("content", "said"), BROKEN.values(), ids=BROKEN)
def test_a_file_that_does_not_load_is_not_simulated(
    content: str, said: str, tmp_path: Path, folder: Path
) -> None:
    """In a process of its own, for it starts anew to have its sets in order."""
    (tmp_path / "mine.py").write_text(content)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    told = sentence("sim", str(tmp_path / "mine.py"), home=folder, env=env)
    assert said in told
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    "arguments",
    [("sim", WEBSITE, "--runs=0"), ("sim", WEBSITE, "--replicas=-1")],
)
def test_a_number_that_makes_no_sense_is_one_sentence(
    arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert "is not a number from 1 on" in refused(capsys, *arguments)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("run", WEBSITE, "--lease=0"), "'0' is not a number from 1 on"),
        (("run", WEBSITE, "--port=99999"), "'99999' is not a port"),
        (("pool", "serve", "--endpoints=-2"), "'-2' is not a port"),
        (("pool", "serve", "--lease=0"), "'0' is not a number of seconds above 0"),
        (("pool", "serve", "--grace=nan"), "'nan' is not a number of seconds"),
        (("pool", "acquire", "x", "--tenant=x", "--wait=x"), "'x' is not a number"),
        (("pool", "acquire", "x", "--tenant=x", "--exec", "true"), "--gateway"),
        (("pool", "serve", "--certificate=a", "--key=b"), "a, the certificate, cannot"),
        (("vmafx", "score", "a", "b", "--threads=-1"), "'-1' is not a number from 0"),
        (("vmafx", "node", "--threads=-1"), "'-1' is not a number from 0"),
        (("sessions", "logs", "x", "--tail=-1"), "'-1' is not a number from 1 on"),
    ],
)
def test_an_option_that_makes_no_sense_is_one_sentence(
    arguments: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said in refused(capsys, *arguments)


def test_files_that_are_no_certificate_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "text").write_text("hello")
    named = (f"--certificate={tmp_path}/text", f"--key={tmp_path}/text")
    assert "are no certificate and its key" in refused(capsys, "pool", "serve", *named)


@pytest.mark.parametrize("command", READING)
def test_a_name_that_is_no_operator_s_is_told_by_every_command(
    command: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    said = refused(capsys, *command, WEBSITE, "--operator=other")
    assert "declares no operator 'other'; it has 'websites'" in said


@pytest.mark.parametrize("command", ASKING.values(), ids=ASKING)
def test_without_a_cluster_every_command_says_so(
    command: tuple[str, ...], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "kubeconfig" in refused(capsys, *command)
    gone = folder / "gone"
    assert "gone" in refused(capsys, *command, f"--kubeconfig={gone}")
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("command", ASKING.values(), ids=ASKING)
def test_where_no_server_answers_every_command_says_so(
    command: tuple[str, ...],
    cluster: Cluster,
    tmp_path: Path,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    content = json.loads(cluster.kubeconfig.read_text())
    content["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:9"
    path = tmp_path / "elsewhere"
    path.write_text(json.dumps(content))
    said = refused(capsys, *command, f"--kubeconfig={path}")
    assert "no connection to the API server (127.0.0.1:9" in said
    assert list(folder.iterdir()) == []


def changed(cluster: Cluster, folder: Path, **user: Any) -> str:
    """The cluster's kubeconfig with something else in it."""
    content = json.loads(cluster.kubeconfig.read_text())
    content["users"][0]["user"].update(user)
    path = folder / "changed"
    path.write_text(json.dumps(content))
    return f"--kubeconfig={path}"


@pytest.mark.parametrize("command", ASKING.values(), ids=ASKING)
def test_without_permission_the_server_s_own_words_are_told(
    command: tuple[str, ...],
    cluster: Cluster,
    tmp_path: Path,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    acting = {"as": "nobody"}
    said = refused(capsys, *command, changed(cluster, tmp_path, **acting))
    assert "forbidden" in said
    assert 'User "nobody" cannot' in said
    assert ("trimtab rbac prints the roles" in said) == (command[0] == "run")
    assert list(folder.iterdir()) == []


def test_a_folder_of_a_node_that_cannot_be_made_is_told(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    named = (f"--folder={tmp_path}/file/x", f"--kubeconfig={cluster.kubeconfig}")
    assert "name another folder" in refused(capsys, "kubelet", *named)


@pytest.mark.parametrize(
    "command", [("ls", "x"), ("explain", "x"), ("release", "x"), ("drain", "x")]
)
def test_what_is_not_there_is_told_as_that_or_as_a_kind_that_is_not_installed(
    command: tuple[str, ...], cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    said = refused(capsys, "pool", *command, f"--kubeconfig={cluster.kubeconfig}")
    absent = (
        "There is no",
        "not found",
        "the server has no such kind: install its CRD",
    )
    assert any(each in said for each in absent)
    assert "page not found" not in said


def test_a_package_that_is_not_installed_is_told_with_what_brings_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(options: object) -> int:
        raise ModuleNotFoundError("No module named 'grpc'", name="grpc")

    monkeypatch.setattr("trimtab.cli.log.run", run)
    assert "pip install 'trimtab[vmafx]'" in refused(capsys, "log")


def test_a_simulation_that_is_interrupted_says_how_far_it_came() -> None:
    command = (sys.executable, "-m", "trimtab", "sim", WEBSITE, "--minutes=5")
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "Simulating websites.\n"
        running.send_signal(signal.SIGINT)
        said, complaints = running.communicate(timeout=60)
    assert (running.returncode, complaints) == (128 + signal.SIGINT, "")
    assert said.startswith("Stopped after ")


def test_a_reader_that_stops_reading_is_no_failure() -> None:
    """As in ``trimtab crd FILE | head -1``."""
    reading, writing = os.pipe()
    os.close(reading)
    command = (sys.executable, "-m", "trimtab", "crd", WEBSITE)
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, timeout=30)
    os.close(writing)
    assert (done.returncode, done.stderr) == (128 + signal.SIGPIPE, b"")
