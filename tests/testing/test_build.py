"""What `hack/cluster/build.py` says and does, with Go and without."""

import fcntl
import importlib.util
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType

import pytest

from tests.testing.helpers import ROOT, script
from trimtab.testing import assets

BUILD = ROOT / "hack" / "cluster" / "build.py"
VERSION = f"kubernetes-{assets.KUBERNETES_VERSION}"

GO = r"""
echo "$@" >> "$FAKE_GO_LOG"
echo "${PWD##*/}" >> "$FAKE_GO_LOG.folders"
case $1 in
version) echo "go version go${FAKE_GO_VERSION:-1.99.0} linux/amd64" ;;
build)
  if [ -n "$FAKE_GO_SAYS" ]; then echo "$FAKE_GO_SAYS" >&2; exit 1; fi
  while [ "$1" != -o ]; do shift; done
  printf '#!/bin/sh\nexit 0\n' > "$2"
  chmod 755 "$2"
  ;;
esac
"""


class Machine:
    """A machine with nothing on it but a shell and, if wanted, a Go of our own."""

    def __init__(self, folder: Path) -> None:
        self.bin = folder / "bin"
        self.bin.mkdir()
        for tool in ("sh", "chmod"):
            (self.bin / tool).symlink_to(shutil.which(tool) or tool)
        self.cache = folder / "cache" / "trimtab" / VERSION
        self.log = folder / "go.log"
        self.log.touch()
        self.environment = {
            "HOME": str(folder),
            "PATH": str(self.bin),
            "XDG_CACHE_HOME": str(folder / "cache"),
            "FAKE_GO_LOG": str(self.log),
        }

    def install_go(self, **settings: str) -> None:
        script(self.bin / "go", GO)
        self.environment.update(settings)

    def build(self) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, str(BUILD)],
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )

    def calls(self) -> list[str]:
        return self.log.read_text().splitlines()

    def folders(self) -> list[str]:
        """Where each call was made."""
        return self.log.with_name(f"{self.log.name}.folders").read_text().splitlines()


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.fixture
def build_module() -> ModuleType:
    spec = importlib.util.spec_from_file_location("cluster_build", BUILD)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def assert_one_sentence(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 1
    text = done.stderr.strip()
    assert "\n" not in text, text
    assert text.endswith(".")
    assert "KUBEBUILDER_ASSETS" in text
    return text


def test_without_go_and_assets_one_sentence_says_what_to_do(machine: Machine) -> None:
    text = assert_one_sentence(machine.build())
    assert "there is no Go" in text
    assert f"install Go {assets.GO_VERSION}" in text
    assert not machine.cache.exists()


def test_a_go_that_is_too_old_is_named_and_not_used(machine: Machine) -> None:
    machine.install_go(FAKE_GO_VERSION="1.20.3")
    text = assert_one_sentence(machine.build())
    assert "is Go 1.20.3, too old" in text
    assert machine.calls() == ["version"]


def test_a_go_that_does_not_work_is_one_sentence(machine: Machine) -> None:
    script(machine.bin / "go", "echo no toolchain for you >&2; exit 1")
    assert "(no toolchain for you)" in assert_one_sentence(machine.build())


def test_no_network_is_one_sentence(machine: Machine) -> None:
    said = "go: k8s.io/api@v0.36.3: dial tcp: lookup mirror.example: no such host"
    machine.install_go(FAKE_GO_SAYS=said)
    text = assert_one_sentence(machine.build())
    assert "could not download the modules" in text
    assert said in text


def test_a_build_that_fails_shows_what_go_said(machine: Machine) -> None:
    machine.install_go(FAKE_GO_SAYS="main.go:3: syntax error")
    done = machine.build()
    assert done.returncode == 1
    assert "Go could not build etcd" in done.stderr
    assert "main.go:3: syntax error" in done.stderr
    assert [path.name for path in machine.cache.iterdir()] == [".lock"]


def test_what_is_missing_is_built_and_a_second_run_does_nothing(
    machine: Machine,
) -> None:
    machine.install_go()
    first = machine.build()
    assert first.returncode == 0, first.stderr
    for name in assets.NAMES:
        assert f"built {name} in " in first.stdout
        assert os.access(machine.cache / name, os.X_OK)
    assert not list(machine.cache.glob("*.partial"))
    calls = machine.calls()
    second = machine.build()
    assert (second.returncode, second.stdout, second.stderr) == (0, "", "")
    assert machine.calls() == calls


def test_only_what_is_missing_is_built(machine: Machine) -> None:
    machine.install_go()
    for name in assets.NAMES:
        if name != "kube-controller-manager":
            script(machine.cache / name, "exit 0")
    assert machine.build().returncode == 0
    built = [call for call in machine.calls() if call.startswith("build")]
    assert len(built) == 1
    assert built[0].endswith("k8s.io/kubernetes/cmd/kube-controller-manager")


def test_each_program_is_built_by_the_module_that_pins_it(machine: Machine) -> None:
    machine.install_go()
    assert machine.build().returncode == 0
    calls = zip(machine.folders(), machine.calls(), strict=True)
    built = [(folder, call.split()[-1]) for folder, call in calls]
    kubernetes = "k8s.io/kubernetes/cmd/"
    assert [each for each in built if not each[1].startswith(kubernetes)] == [
        ("cluster", "version"),
        ("cluster", "./etcd"),
        ("helm", "helm.sh/helm/v4/cmd/helm"),
        ("kwok", "sigs.k8s.io/kwok/cmd/kwok"),
        ("controller-runtime", "sigs.k8s.io/controller-runtime/examples/builtins"),
        ("controller-runtime", "sigs.k8s.io/controller-runtime/examples/crd"),
    ]


def test_assets_without_a_controller_manager_are_complete(machine: Machine) -> None:
    for name in ("etcd", "kube-apiserver", "kubectl"):
        script(machine.bin.parent / "mine" / name, "exit 0")
    machine.environment["KUBEBUILDER_ASSETS"] = str(machine.bin.parent / "mine")
    done = machine.build()
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_lone_kubectl_on_the_path_does_not_stand_in_for_ours(
    machine: Machine,
) -> None:
    machine.install_go()
    script(machine.bin / "kubectl", "exit 0")
    assert machine.build().returncode == 0
    assert (machine.cache / "kubectl").exists()


def test_a_control_plane_on_the_path_is_used_as_it_is(machine: Machine) -> None:
    for name in ("etcd", "kube-apiserver", "kubectl"):
        script(machine.bin / name, "exit 0")
    done = machine.build()
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_programs_are_told_their_version(machine: Machine) -> None:
    machine.install_go()
    machine.build()
    call = next(call for call in machine.calls() if call.endswith("cmd/kube-apiserver"))
    for package in ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version"):
        assert f"-X {package}.gitVersion={assets.KUBERNETES_VERSION} " in call
        assert f"-X {package}.gitTreeState=clean " in call


def test_two_builds_at_once_build_once(machine: Machine) -> None:
    machine.install_go()
    machine.cache.mkdir(parents=True)
    with (machine.cache / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        waiting = subprocess.Popen(
            [sys.executable, str(BUILD)],
            env=machine.environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert waiting.stdout
        with waiting.stdout:
            assert "another build is at work" in waiting.stdout.readline()
            for name in assets.NAMES:
                script(machine.cache / name, "exit 0")
            fcntl.flock(lock, fcntl.LOCK_UN)
            assert waiting.stdout.read() == ""
    assert waiting.wait(10) == 0
    assert machine.calls() == ["version"]


def test_the_remains_of_a_killed_build_are_removed(machine: Machine) -> None:
    machine.install_go()
    machine.cache.mkdir(parents=True)
    (machine.cache / ".kubectl.partial").write_text("half")
    assert machine.build().returncode == 0
    assert not list(machine.cache.glob(".*.partial"))


def test_a_cache_that_cannot_be_written_is_one_sentence(machine: Machine) -> None:
    machine.install_go()
    machine.cache.parents[1].write_text("a file where the folder should be")
    assert "cannot be written" in assert_one_sentence(machine.build())


def test_a_long_build_shows_that_it_lives(
    build_module: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    monkeypatch.setattr(build_module, "HEARTBEAT", 0.01)
    done = tmp_path / "done"

    def say(text: str) -> None:
        print(text)
        done.touch()

    monkeypatch.setattr(build_module, "say", say)
    slow = script(tmp_path / "slow", f"while [ ! -e {done} ]; do sleep 0.01; done")
    build_module.run("etcd", [str(slow)], begin=time.monotonic() - 90)
    assert "still building etcd, 1.5 min" in capsys.readouterr().out


def test_when_nothing_is_missing_it_returns_at_once(machine: Machine) -> None:
    for name in assets.NAMES:
        script(machine.cache / name, "exit 0")
    best = min(_seconds(machine) for _ in range(3))
    # A fifth of a second on an idle machine; a build takes minutes.
    assert best < 10.0


def _seconds(machine: Machine) -> float:
    begin = time.monotonic()
    assert machine.build().returncode == 0
    return time.monotonic() - begin
