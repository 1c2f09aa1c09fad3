"""What `pytest --cluster` does, seen from outside by running pytest."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.testing.helpers import ROOT

PLUGINS = ("-p", "trimtab.testing.plugin", "-p", "pytest_asyncio.plugin")

MIXED = """
import pytest

def test_plain():
    pass

def test_uses_the_fixture(cluster):
    pass

def test_uses_it_through_another(namespace):
    pass

@pytest.mark.cluster("current")
def test_starts_its_own():
    pass
"""

OTHERS = """
@pytest.mark.cluster("real")
def test_elsewhere():
    pass

@pytest.mark.cluster("real", "current")
def test_elsewhere_again():
    pass
"""

SHARED = """
import asyncio, os
import pytest
from trimtab.testing import Options

@pytest.fixture(scope="session")
def cluster_options():
    return Options(apiserver_flags=["--event-ttl=17s"])

seen = set()

@pytest.mark.parametrize("turn", [1, 2])
async def test_each_turn(turn, cluster, namespace):
    seen.add((cluster.server, namespace, id(asyncio.get_running_loop())))
    found = await cluster.kubectl("get", "namespace", namespace, "-o", "name")
    assert found == f"namespace/{namespace}\\n"
    with open(f"/proc/{cluster.pids['kube-apiserver']}/cmdline") as command:
        assert "--event-ttl=17s" in command.read()

async def test_one_server_many_namespaces(cluster):
    assert len({server for server, _, _ in seen}) == 1
    assert len({namespace for _, namespace, _ in seen}) == 2
    for _, namespace, _ in seen:
        phase = "jsonpath={.status.phase}"
        found = await cluster.kubectl("get", "namespace", namespace, "-o", phase)
        assert found == "Terminating"
    print("FOLDER", cluster.kubeconfig.parent, *cluster.pids.values())
"""


def run(folder: Path, text: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run pytest on one file of tests, with our plugin and few others."""
    (folder / "test_it.py").write_text(text)
    (folder / "pytest.ini").write_text(
        "[pytest]\nasyncio_mode = auto\nasyncio_default_fixture_loop_scope = function\n"
        "filterwarnings = error\naddopts = --strict-markers -p no:cacheprovider\n"
    )
    return subprocess.run(
        [sys.executable, "-m", "pytest", *PLUGINS, *arguments],
        cwd=folder,
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT / "src"),
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "KUBECONFIG": str(folder / "no-kubeconfig"),
        },
        capture_output=True,
        text=True,
        check=False,
    )


def test_without_the_option_cluster_tests_run_on_an_embedded_one(
    tmp_path: Path,
) -> None:
    done = run(tmp_path, MIXED)
    assert done.returncode == 0, done.stdout
    assert "3 passed, 1 deselected" in done.stdout


def test_tests_of_another_cluster_are_deselected_and_told(tmp_path: Path) -> None:
    text = MIXED + OTHERS
    done = run(tmp_path, text, "-k", "starts_its_own or plain or elsewhere")
    assert done.returncode == 0, done.stdout
    assert "1 passed, 5 deselected" in done.stdout
    assert "skipped" not in done.stdout
    told = "tests need another cluster and did not run: use --cluster=current or --cl"
    assert told in done.stdout


def test_a_marker_of_the_whole_file_holds_for_users_of_the_fixture(
    tmp_path: Path,
) -> None:
    text = "import pytest\npytestmark = pytest.mark.cluster('current')\n"
    done = run(tmp_path, text + "def test_it(cluster): raise AssertionError")
    assert "1 deselected" in done.stdout


def test_nothing_is_told_when_nothing_was_left_out(tmp_path: Path) -> None:
    done = run(tmp_path, "def test_plain(): pass")
    assert "1 passed" in done.stdout
    assert "cluster" not in done.stdout


def test_the_marker_is_on_every_test_that_uses_the_fixture(tmp_path: Path) -> None:
    chosen = ("--collect-only", "-q", "--cluster=real", "-m", "cluster")
    done = run(tmp_path, MIXED, *chosen)
    assert "test_uses_the_fixture" in done.stdout
    assert "test_uses_it_through_another" in done.stdout
    assert "test_plain" not in done.stdout
    assert "test_starts_its_own" not in done.stdout


def test_a_test_runs_only_on_a_kind_that_it_names(tmp_path: Path) -> None:
    done = run(tmp_path, MIXED, "--cluster=current", "-k", "starts_its_own")
    assert "1 passed" in done.stdout
    done = run(tmp_path, MIXED, "--cluster=real", "-k", "starts_its_own or plain")
    assert "1 passed, 3 deselected" in done.stdout
    assert (
        "1 test needs another cluster and did not run: use --cluster=current."
        in done.stdout
    )


def test_a_cluster_that_cannot_be_had_is_one_sentence(tmp_path: Path) -> None:
    text = "def test_one(cluster): pass\ndef test_two(cluster): pass"
    done = run(tmp_path, text, "--cluster=current")
    assert done.returncode == 1
    assert "2 errors" in done.stdout
    assert "no-kubeconfig does not exist: set KUBECONFIG" in done.stdout
    assert "Traceback" not in done.stdout


def test_a_cluster_can_be_asked_for_at_run_time(tmp_path: Path) -> None:
    text = "def test_late(request): request.getfixturevalue('cluster')"
    assert "1 passed" in run(tmp_path, text).stdout


def test_an_unknown_kind_is_refused(tmp_path: Path) -> None:
    done = run(tmp_path, MIXED, "--cluster=imaginary")
    assert done.returncode == 4
    assert "imaginary" in done.stderr


@pytest.mark.cluster("real")
def test_one_cluster_serves_the_run_and_ends_with_it(tmp_path: Path) -> None:
    done = run(tmp_path, SHARED, "--cluster=real", "-s")
    assert "3 passed" in done.stdout, done.stdout
    line = next(line for line in done.stdout.splitlines() if "FOLDER " in line)
    folder, *pids = line.partition("FOLDER ")[2].split()
    assert not Path(folder).exists()
    assert len(pids) == 2
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


def test_loading_the_plugin_costs_nothing_heavy() -> None:
    heavy = ("aiohttp", "cryptography", "yaml", "numpy", "grpc", "http.client")
    code = (
        "import sys, trimtab.testing.plugin\n"
        f"print([name for name in {heavy!r} if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[]"
