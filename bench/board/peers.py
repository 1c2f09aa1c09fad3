"""The peers: which programs compete, how each is built, and how each is started."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from bench import environments
from bench.measure import ROOT

PROGRAMS = ROOT / "bench" / "peers"
GO, RUST = PROGRAMS / "scoreboard-go", PROGRAMS / "scoreboard-rust"

VERSIONS = {"controller-runtime": "0.25.2", "kube-rs": "5.0.0"}
"""Of what is built here; `go.mod` and `Cargo.toml` hold the same."""

Command = list[str]


class Peer(NamedTuple):
    """A framework, used in one way."""

    name: str
    command: Callable[[], Command]
    variant: str = "default"
    workloads: str = "SP"
    needs: str | None = None
    """The toolchain that builds it."""

    @property
    def ours(self) -> bool:
        return self.name.startswith("trimtab")

    @property
    def there(self) -> bool:
        return self.needs is None or shutil.which(self.needs) is not None


def ours(*flags: str) -> Command:
    """This tree, with what it depends on and nothing else, as all others are run."""
    file = str(PROGRAMS / "scoreboard_ours.py")
    python = str(environments.python_of("trimtab"))
    return [python, "-m", "trimtab", "run", file, "--port", "0", *flags]


def kopf(package: str) -> Command:
    program = environments.python_of(package).parent / "kopf"
    return [str(program), "run", "-A", "-q", str(PROGRAMS / "scoreboard_kopf.py")]


def official() -> Command:
    python = environments.python_of("kubernetes")
    return [str(python), str(PROGRAMS / "scoreboard_official.py")]


def controller_runtime() -> Command:
    return [str(go_program("peer"))]


def kube_rs() -> Command:
    return [str(rust_program())]


PEERS = (
    Peer("trimtab", lambda: ours("--no-leader")),
    Peer("trimtab, leader elected", ours),
    Peer("controller-runtime", controller_runtime, needs="go"),
    Peer("controller-runtime tuned", controller_runtime, "tuned", needs="go"),
    Peer("kube-rs", kube_rs, needs="cargo"),
    Peer("kube-rs tuned", kube_rs, "tuned", needs="cargo"),
    Peer("kopf", lambda: kopf("kopf")),
    Peer("kopf tuned", lambda: kopf("kopf_uvloop"), "tuned"),
    Peer("official informer", official),
    # Of Pods, it has nothing to tune but which ones.
    Peer("official informer tuned", official, "tuned", workloads="S"),
)
QUICK = ("trimtab", "controller-runtime tuned", "kube-rs tuned")


def go_program(name: str, *, module: Path = GO) -> Path:
    """A program of a Go module, built if it is not there as it should be."""
    made = environments.cache_folder() / f"{module.name}-{name}"
    _build(["go", "build", "-trimpath", "-o", str(made), f"./{name}"], module)
    return made


def rust_program() -> Path:
    """The Rust program; cargo knows whether it is up to date.

    Built from a copy: what cargo writes down of where crates came from stays there.
    """
    copy = environments.cache_folder() / "scoreboard-rust"
    shutil.copytree(RUST, copy, dirs_exist_ok=True)
    target = environments.cache_folder() / "rust-target"
    _build(["cargo", "build", "--release", "--target-dir", str(target)], copy)
    return target / "release" / "scoreboard-rust"


def _build(command: Command, folder: Path) -> None:
    """Build at low priority: it takes minutes the first time."""
    done = subprocess.run(
        ["nice", "-n", "10", *command],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
    )
    if done.returncode:
        raise SystemExit(
            f"{' '.join(command)} in {folder} failed; the first time it needs the "
            f"network:\n{done.stderr.decode()}"
        )


def versions() -> Mapping[str, str]:
    python = {name: environments.version_of(name) for name in ("kopf", "kubernetes")}
    return VERSIONS | python
