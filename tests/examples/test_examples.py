"""Laws of the examples: they do what they say, as they stand."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.client.clusters import client_of
from tests.examples.scenarios import EXAMPLES, HOOKED, SCENARIOS, example, served
from tests.runtime.operating import running
from trimtab.sim import Scenario
from trimtab.sim.provided import provided
from trimtab.sim.search import Search
from trimtab.testing import Cluster, operating


def test_the_demo_runs_from_the_classes_to_a_status_and_back() -> None:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "demo.py"), "--no-training"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    for said in (
        "kind: CustomResourceDefinition",
        "now: trimtab run website.py",
        "Website default/shop wishes for 3 copies,",
        "Deployment default/shop has been told to run 3,",
        "The operator has stopped, and its lease is free.",
    ):
        assert said in done.stdout


@pytest.mark.long
def test_the_demo_draws_a_model_that_learns(tmp_path: Path) -> None:
    plot = tmp_path / "training.png"
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "demo.py"), "--plot", str(plot)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    for said in (
        "v000001 was kept: PLCC",
        "Somebody lied, and was found out: ",
        "Forgotten: ",
        f"Drawn: {plot}",
    ):
        assert said in done.stdout
    assert plot.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("name", SCENARIOS)
async def test_an_example_does_what_it_says(
    cluster: Cluster, namespace: str, name: str
) -> None:
    app = example(name)
    async with client_of(cluster, namespace=namespace) as client:
        await served(client, app)
        async with running(app, cluster, client):
            await SCENARIOS[name](client, app)


@pytest.mark.parametrize("name", HOOKED)
async def test_an_example_with_webhooks_does_what_it_says(
    cluster: Cluster, namespace: str, name: str
) -> None:
    app = example(name)
    async with operating.running(app, cluster, namespace) as run:
        await HOOKED[name](run.client, app)


@pytest.mark.parametrize("name", HOOKED)
def test_an_example_with_webhooks_is_simulated_without_them(name: str) -> None:
    scenario = Scenario(operator=example(name), seconds=20.0, objects=2)
    search = Search(scenario)
    with provided():
        report = search.run(search.plan(1))
    assert report.violations == []
    assert any(report.writes_of)


def test_every_example_has_a_scenario() -> None:
    files = {file.stem for file in EXAMPLES.glob("*.py")} - {
        "demo",
        "scoring",
        "training",
    }
    assert files == set(SCENARIOS) | set(HOOKED)
