"""Real kubectl commands, and the outcome that a real server gave for each.

``cases.txt`` has a command on each line, run in order in one namespace, so that state
builds up from top to bottom; ``expected.json`` has exit code and output as kubectl and
kube-apiserver v1.36.3 gave them; what differs between runs is replaced. A case that
begins with ``!`` only sets things up.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from trimtab.testing import Options
from trimtab.testing.assets import find
from trimtab.testing.cluster import started

HERE = Path(__file__).parent
VERSION = "v1.36."
SECONDS = 60
REPLACED = (
    (re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"), "<uid>"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"), "<time>"),
    (re.compile(r'(resourceVersion"?: ?)"?\d+"?'), r"\1<rv>"),
    (re.compile(r"\b10\.\d+\.\d+\.\d+\b"), "<ip>"),
    (re.compile(r"https://127\.0\.0\.1:\d+"), "<server>"),
    (
        re.compile(r"(?m)(?<=\s)(<invalid>|\d+(s|ms|m|m\d+s|h|h\d+m|d))(?=\s|$)"),
        "<age>",
    ),
    (re.compile(r"/tmp/(LIVE|MERGED)-\d+"), r"/tmp/\1"),
    (re.compile(r"(?m)^[EWI]\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ "), ""),
)


class Case(NamedTuple):
    name: str
    features: str
    command: str


class Outcome(NamedTuple):
    code: int
    output: str


def cases() -> list[Case]:
    lines = (HERE / "cases.txt").read_text().splitlines()
    found = [line for line in lines if line.strip() and not line.startswith("#")]
    return [Case(*(part.strip() for part in line.split(" | ", 2))) for line in found]


EXPECTED: dict[str, dict[str, Any]] = json.loads((HERE / "expected.json").read_text())
COMPARED = [case for case in cases() if not case.name.startswith("!")]


def normalised(text: str) -> str:
    for pattern, replacement in REPLACED:
        text = pattern.sub(replacement, text)
    # Widths of columns depend on ages and addresses; indentation does not.
    lines = [re.sub(r"(?<=\S) {2,}", "  ", line).rstrip() for line in text.splitlines()]
    return "\n".join(lines)


def kubectl() -> Path | None:
    """The kubectl that the outcomes were recorded with, if it is here."""
    found = find("kubectl")
    if found is None:
        return None
    told = subprocess.run(
        [found, "version", "--client", "--output=json"], capture_output=True, check=True
    )
    version: str = json.loads(told.stdout)["clientVersion"]["gitVersion"]
    return found if version.startswith(VERSION) else None


def run(case: Case, environment: dict[str, str]) -> Outcome:
    program = environment["KUBECTL"]
    functions = f'k(){{ {program} "$@"; }}; kn(){{ {program} -n kc-smoke "$@"; }}; '
    done = subprocess.run(
        ["bash", "-c", functions + case.command],
        cwd=HERE,
        env=environment,
        text=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=SECONDS,
        check=False,
    )
    return Outcome(done.returncode, normalised(done.stdout))


@pytest.fixture(scope="module")
def outcomes(request: pytest.FixtureRequest) -> Iterator[dict[str, Outcome]]:
    """Every command, run once in order on a cluster of its own."""
    program = kubectl()
    assert program is not None, "these tests are collected only where kubectl is"
    kind = request.config.getoption("--cluster")
    options = Options(controllers=True)
    with (
        started(kind, options=options) as cluster,
        tempfile.TemporaryDirectory() as home,
    ):
        environment = {
            **os.environ,
            "KUBECONFIG": str(cluster.kubeconfig),
            "KUBECTL": str(program),
            "HOME": home,
            "KUBECTL_KUBERC": "false",
            "LC_ALL": "C",
            "TZ": "UTC",
            "TMPDIR": "/tmp",
            # Each kubectl ends before it is worth its while to collect garbage.
            "GOGC": "off",
        }
        yield {case.name: run(case, environment) for case in cases()}


if kubectl() is not None:

    @pytest.mark.timeout(600)
    @pytest.mark.cluster("embedded", "real")
    @pytest.mark.parametrize("case", COMPARED, ids=lambda case: case.name)
    def test_kubectl_gets_what_a_real_server_gave_it(
        case: Case, outcomes: dict[str, Outcome]
    ) -> None:
        wanted = EXPECTED[case.name]
        assert outcomes[case.name] == Outcome(wanted["rc"], wanted["out"])


def test_every_case_has_an_outcome() -> None:
    assert [case.name for case in COMPARED] == list(EXPECTED)
