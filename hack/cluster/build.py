"""Builds the programs of the test control plane that this machine does not have.

Run as `.venv/bin/python hack/cluster/build.py`. It returns at once when they are all
found; else it builds what is missing with Go, from the sources that go.mod pins, into
the user's cache folder, where `trimtab.testing` looks for them.
"""

import contextlib
import datetime
import fcntl
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "src"))

from trimtab.testing import assets  # noqa: E402

HEARTBEAT = 30.0
"""Seconds between signs of life: kube-apiserver takes minutes to compile."""

SHOWN_LINES = 20
"""How much of Go's output is shown when a build fails for a reason of its own."""

OTHERWISE = (
    "set KUBEBUILDER_ASSETS to a folder that has etcd, kube-apiserver and kubectl"
)

PACKAGES = {
    "etcd": "./etcd",
    "helm": "helm.sh/helm/v4/cmd/helm",
    "kwok": "sigs.k8s.io/kwok/cmd/kwok",
    "controller-runtime-builtins": "sigs.k8s.io/controller-runtime/examples/builtins",
    "controller-runtime-crd": "sigs.k8s.io/controller-runtime/examples/crd",
}
"""Where a program's entry point is; the others are Kubernetes' own."""

MODULES = dict.fromkeys(assets.OPERATORS, "controller-runtime")
"""The folder of a program's module, if it is not its name."""

OFFLINE = re.compile(
    r"dial tcp|no such host|i/o timeout|connection refused|TLS handshake|proxyconnect"
    r"|network is unreachable|module lookup disabled|Client\.Timeout"
    r"|server misbehaving|: 50[0234] "
)
"""What Go says when it cannot download a module or a toolchain."""


class BuildError(Exception):
    """Why there is no control plane, in words for the user."""


def main() -> int:
    if not missing():
        return 0
    try:
        go = find_go()
        with only_one_build(assets.cache_folder()) as folder:
            for name in missing():  # again: somebody else may have built them meanwhile
                build(name, go=go, folder=folder)
    except BuildError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("The build was interrupted; run it again to go on.", file=sys.stderr)
        return 130
    return 0


def missing() -> list[str]:
    """The programs that this machine has in none of the usual places.

    Whoever brings a kube-apiserver chose what goes with it, and in which version. Where
    it is ours, the rest is too: many machines have some old kubectl on their PATH.
    """
    found = {name: assets.find(name) for name in assets.NAMES}
    apiserver = found["kube-apiserver"]
    if apiserver and apiserver.parent != assets.cache_folder():
        required = [name for name in found if name not in assets.OPTIONAL]
        return [name for name in required if found[name] is None]
    trusted = (assets.cache_folder(), assets.assets_folder())
    return [
        name for name, path in found.items() if not path or path.parent not in trusted
    ]


def find_go() -> Path:
    """The Go command, if it is new enough for go.mod."""
    found = shutil.which("go")
    needed = needed_go()
    if found is None:
        raise BuildError(
            "The test control plane is not built, and there is no Go to build it: "
            f"install Go {needed} or newer, or {OTHERWISE}."
        )
    # In this folder, so that a Go that can fetch the version go.mod asks for does.
    done = subprocess.run(
        [found, "version"], cwd=HERE, capture_output=True, text=True, check=False
    )
    version = re.search(r"\bgo(\d+\.\d+(?:\.\d+)?)", done.stdout)
    if done.returncode or version is None:
        said = last_line(done.stderr) or "it did not tell its version"
        raise BuildError(
            f"{found} cannot build the test control plane ({said}): install Go "
            f"{needed} or newer, or {OTHERWISE}."
        )
    if numbers(version[1]) < numbers(needed):
        raise BuildError(
            f"{found} is Go {version[1]}, too old for the test control plane: "
            f"install Go {needed} or newer, or {OTHERWISE}."
        )
    return Path(found)


def needed_go() -> str:
    """The version in go.mod's `go` line."""
    line = re.search(r"^go (\S+)$", (HERE / "go.mod").read_text(), re.MULTILINE)
    assert line, "go.mod has a go line"
    return line[1]


def numbers(version: str) -> list[int]:
    return [int(number) for number in version.split(".")]


@contextlib.contextmanager
def only_one_build(folder: Path) -> Iterator[Path]:
    """Hold the folder's lock, after any other build has ended."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / ".lock").open("w")
    except OSError as error:
        raise BuildError(
            f"The cache folder {folder} cannot be written ({error.strerror}): set "
            f"XDG_CACHE_HOME to a folder that can, or {OTHERWISE}."
        ) from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"another build is at work in {folder}; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        for stale in folder.glob(".*.partial"):  # of a build that was killed
            stale.unlink()
        yield folder


def build(name: str, *, go: Path, folder: Path) -> None:
    """Build one program; it appears under its name only when it is whole."""
    partial = folder / f".{name}.partial"
    command = [str(go), "build", "-trimpath", "-buildvcs=false"]
    command += ["-ldflags", linker_flags(name), "-o", str(partial), package(name)]
    say(f"building {name} {version(name)}, once, into {folder}")
    begin = time.monotonic()
    try:
        run(name, command, begin=begin)
        partial.rename(folder / name)
    finally:
        partial.unlink(missing_ok=True)
    say(f"built {name} in {elapsed(begin)}")


def package(name: str) -> str:
    return PACKAGES.get(name) or f"k8s.io/kubernetes/cmd/{name}"


def module(name: str) -> Path:
    """The folder whose go.mod pins the program: clients have each their own."""
    folder = HERE / MODULES.get(name, name)
    return folder if (folder / "go.mod").exists() else HERE


def version(name: str) -> str:
    return assets.VERSIONS.get(name, assets.KUBERNETES_VERSION)


def linker_flags(name: str) -> str:
    """No debug information; and what `/version` and `kubectl version` tell."""
    if name in PACKAGES:
        return "-s -w"
    major, minor, _ = assets.KUBERNETES_VERSION.removeprefix("v").split(".")
    now = datetime.datetime.now(datetime.UTC)
    facts = {
        "gitMajor": major,
        "gitMinor": minor,
        "gitVersion": assets.KUBERNETES_VERSION,
        "gitCommit": "unknown",  # a Go module does not say
        "gitTreeState": "clean",
        "buildDate": now.strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    packages = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
    settings = (f"-X {each}.{key}={facts[key]}" for each in packages for key in facts)
    return " ".join(["-s", "-w", *settings])


def run(name: str, command: list[str], *, begin: float) -> None:
    """Run Go to its end, with a sign of life now and then."""
    # A go.work somewhere above would put other modules in the place of ours.
    environment = {**os.environ, "GOWORK": "off"}
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(
            command, cwd=module(name), env=environment, stdout=output, stderr=output
        )
        try:
            while (code := wait(process)) is None:
                say(f"still building {name}, {elapsed(begin)}")
        except BaseException:
            process.kill()
            process.wait()
            raise
        if code:
            output.seek(0)
            raise BuildError(explain(name, output.read()))


def wait(process: subprocess.Popen[bytes]) -> int | None:
    try:
        return process.wait(HEARTBEAT)
    except subprocess.TimeoutExpired:
        return None


def explain(name: str, output: str) -> str:
    """Why Go failed: one sentence, and its own words where only those can help."""
    for line in output.splitlines():
        if OFFLINE.search(line):
            return (
                f"Go could not download the modules that {name} is built from "
                f"({line.strip()[:300]}): connect to the network or set GOPROXY to a "
                f"mirror that you can reach, or {OTHERWISE}."
            )
    shown = "\n".join(output.splitlines()[-SHOWN_LINES:])
    return f"Go could not build {name}; the end of what it said:\n{shown}"


def last_line(text: str) -> str:
    return text.strip().splitlines()[-1] if text.strip() else ""


def elapsed(begin: float) -> str:
    seconds = time.monotonic() - begin
    return f"{seconds:.1f} s" if seconds < 60 else f"{seconds / 60:.1f} min"


def say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
