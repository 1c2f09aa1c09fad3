"""Programs run beside a test, and never stay behind it."""

import json
import os
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.testing.helpers import is_alive, script, start_python, until
from trimtab.testing import ClusterError
from trimtab.testing.processes import Keeper

SLEEP = ["sleep", "1000"]

# Starts two programs, tells about them, and waits.
PARENT = """
import json, os, signal, sys, time
from trimtab.testing.processes import Keeper
# Who was started in the background of a shell ignores it.
signal.signal(signal.SIGINT, signal.default_int_handler)
keeper = Keeper()
keeper.start("one", ["sleep", "1000"])
keeper.start("two", ["sleep", "1000"])
child = os.fork() if sys.argv[1] == "fork" else 0
if sys.argv[1] == "fork" and child == 0:
    time.sleep(1000)
facts = {"folder": str(keeper.folder), "pids": list(keeper.pids.values())}
print(json.dumps(facts | {"keeper": keeper._process.pid, "child": child}), flush=True)
time.sleep(1000)
"""


def test_a_program_runs_in_a_private_folder_until_it_is_closed() -> None:
    with Keeper() as keeper:
        keeper.start("sleep", SLEEP)
        (pid,) = keeper.pids.values()
        assert is_alive(pid)
        assert stat.S_IMODE(keeper.folder.stat().st_mode) == 0o700
        assert (keeper.folder / "sleep.log").exists()
    assert not is_alive(pid)
    assert not keeper.folder.exists()
    assert keeper.pids == {}


def test_closing_twice_does_nothing_more() -> None:
    keeper = Keeper()
    keeper.close()
    keeper.close()


def test_one_program_stops_alone() -> None:
    with Keeper() as keeper:
        keeper.start("one", SLEEP)
        keeper.start("two", SLEEP)
        one = keeper.pids["one"]
        keeper.stop("one")
        assert not is_alive(one)
        assert is_alive(keeper.pids["two"])
        assert list(keeper.pids) == ["two"]
        keeper.raise_if_ended()


def test_a_program_that_ended_is_reported_with_the_end_of_its_log() -> None:
    with Keeper() as keeper:
        lines = "seq 1 100; echo the reason; exit 7"
        keeper.start("brief", ["sh", "-c", lines])
        with pytest.raises(ClusterError, match="brief ended with code 7") as caught:
            until(lambda: has_ended(keeper))
    shown = str(caught.value).splitlines()
    assert shown[-1] == "the reason"
    assert len(shown) == 21


def has_ended(keeper: Keeper) -> bool:
    keeper.raise_if_ended()
    return False


def test_a_program_that_does_not_exist_is_reported() -> None:
    with Keeper() as keeper, pytest.raises(ClusterError, match="cannot start ghost"):
        keeper.start("ghost", ["/nowhere/ghost"])


def test_a_program_outlives_the_thread_that_started_it() -> None:
    with Keeper() as keeper:
        thread = threading.Thread(target=keeper.start, args=("sleep", SLEEP))
        thread.start()
        thread.join()
        # The kernel would have sent its signal when the thread ended.
        keeper.start("later", SLEEP)
        keeper.raise_if_ended()
        assert is_alive(keeper.pids["sleep"])


def test_after_the_keeper_was_killed_calls_say_so() -> None:
    with Keeper() as keeper:
        keeper.start("sleep", SLEEP)
        pid = keeper.pids["sleep"]
        os.kill(keeper._process.pid, signal.SIGKILL)
        with pytest.raises(ClusterError, match="has ended, and the cluster with it"):
            keeper.start("more", SLEEP)
        if sys.platform == "linux":
            assert until(lambda: not is_alive(pid))
        else:
            os.kill(pid, signal.SIGKILL)
    subprocess.run(["rm", "-r", str(keeper.folder)], check=True)


def test_a_program_that_ignores_sigterm_is_killed() -> None:
    with Keeper() as keeper:
        loop = "trap '' TERM; echo ready; while :; do sleep 0.1; done"
        keeper.start("stubborn", ["sh", "-c", loop])
        log = keeper.folder / "stubborn.log"
        assert until(lambda: "ready" in log.read_text())
        pid = keeper.pids["stubborn"]
    assert not is_alive(pid)


@pytest.mark.parametrize(
    "number",
    [signal.SIGKILL, signal.SIGTERM, signal.SIGINT],
    ids=lambda each: each.name,
)
def test_nothing_outlives_a_process_that_a_signal_ended(number: signal.Signals) -> None:
    parent = start_python(PARENT, "alone")
    assert parent.stdout
    with parent.stdout:
        facts = json.loads(parent.stdout.readline())
    parent.send_signal(number)
    parent.wait(10)
    assert_all_gone(facts)


def test_a_fork_that_holds_the_pipe_open_changes_nothing() -> None:
    parent = start_python(PARENT, "fork")
    assert parent.stdout
    with parent.stdout:
        facts = json.loads(parent.stdout.readline())
    try:
        parent.kill()
        parent.wait(10)
        assert_all_gone(facts)
        assert is_alive(facts["child"])
    finally:
        os.kill(facts["child"], signal.SIGKILL)


def assert_all_gone(facts: dict[str, object]) -> None:
    pids, folder = facts["pids"], Path(str(facts["folder"]))
    assert isinstance(pids, list)
    assert len(pids) == 2
    everything = [*pids, facts["keeper"]]
    assert until(lambda: not any(is_alive(pid) for pid in everything))
    assert until(lambda: not folder.exists())


def test_a_folder_with_a_long_name_is_no_trouble(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = tmp_path / ("d" * 120)
    deep.mkdir()
    monkeypatch.setenv("TMPDIR", str(deep))
    where = script(tmp_path / "where", "pwd")
    with Keeper() as keeper:
        keeper.start("where", [str(where)])
        log = keeper.folder / "where.log"
        assert until(lambda: log.read_text().strip() == str(keeper.folder))
        assert keeper.folder.is_relative_to(deep)
