"""A start that goes wrong says why, and leaves nothing behind.

The programs here are shell scripts that fail in the ways that real ones do, because
the real ones do not fail on demand.
"""

import asyncio
import socket
import tempfile
from pathlib import Path

import pytest

from tests.testing.helpers import is_alive, script
from trimtab.testing import AssetsMissing, ClusterError, Options, cluster, eventually
from trimtab.testing.real import reserved_port

SLEEPS = "echo $$ > {folder}/{name}.pid; exec sleep 1000"


class Programs:
    """A folder of programs, and everything that a start may leave behind."""

    def __init__(self, folder: Path) -> None:
        self.bin, self.temporary = folder / "bin", folder / "tmp"
        self.temporary.mkdir()
        for name in ("etcd", "kube-apiserver", "kubectl"):
            self.replace(name, SLEEPS.format(folder=folder, name=name))
        self.folder = folder

    def replace(self, name: str, text: str) -> None:
        script(self.bin / name, text)

    def started(self, name: str) -> int | None:
        path = self.folder / f"{name}.pid"
        text = path.read_text().strip() if path.exists() else ""
        return int(text) if text else None

    def assert_nothing_left(self, *names: str) -> None:
        for name in names:
            pid = self.started(name)
            assert pid is not None, f"{name} never ran"
            assert not is_alive(pid)
        assert list(self.temporary.iterdir()) == []


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Programs:
    made = Programs(tmp_path)
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(made.bin))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(made.temporary))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return made


async def test_a_program_that_never_gets_ready_is_an_error_in_time(
    programs: Programs,
) -> None:
    programs.replace("etcd", f"echo thinking; {SLEEPS}".format(**names(programs)))
    with pytest.raises(
        ClusterError, match=r"etcd was not ready within 0\.5 s"
    ) as caught:
        async with cluster("real", options=Options(ready_within=0.5)):
            pytest.fail("it cannot be ready")
    assert str(caught.value).endswith("its log ends with:\nthinking")
    programs.assert_nothing_left("etcd")


async def test_a_program_that_ends_early_shows_its_log(programs: Programs) -> None:
    programs.replace("kube-apiserver", "echo unknown flag: --nonsense >&2; exit 1")
    sock = f"echo $$ > {programs.folder}/etcd.pid; touch etcd.sock:0; exec sleep 1000"
    programs.replace("etcd", sock)
    with pytest.raises(
        ClusterError, match="kube-apiserver ended with code 1"
    ) as caught:
        async with cluster("real"):
            pytest.fail("it cannot be ready")
    assert "unknown flag: --nonsense" in str(caught.value)
    programs.assert_nothing_left("etcd")


async def test_a_start_that_is_cancelled_leaves_nothing(programs: Programs) -> None:
    async def start() -> None:
        async with cluster("real"):
            pytest.fail("it cannot be ready")

    async with asyncio.TaskGroup() as group:
        task = group.create_task(start())
        await eventually(lambda: programs.started("etcd"))
        task.cancel()
    assert task.cancelled()
    programs.assert_nothing_left("etcd")


def test_a_reserved_port_is_for_those_who_share_it_knowingly() -> None:
    with reserved_port() as port:
        with socket.socket() as stranger, pytest.raises(OSError, match="in use"):
            stranger.bind(("127.0.0.1", port))
        with socket.socket() as server:
            server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            server.bind(("127.0.0.1", port))
            server.listen()
            socket.create_connection(("127.0.0.1", port), timeout=5.0).close()


async def test_without_programs_it_says_what_to_do(
    programs: Programs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBEBUILDER_ASSETS", "/nowhere")
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(AssetsMissing, match="make test-cluster"):
        async with cluster("real"):
            pytest.fail("it cannot be ready")
    assert list(programs.temporary.iterdir()) == []


async def test_controllers_need_their_program(
    programs: Programs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(AssetsMissing, match=r"^kube-controller-manager not found"):
        async with cluster("real", options=Options(controllers=True)):
            pytest.fail("it cannot be ready")


def names(programs: Programs) -> dict[str, str]:
    return {"folder": str(programs.folder), "name": "etcd"}
