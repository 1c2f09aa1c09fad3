"""Suspended Jobs say that they are, with nobody there to run any Job.

Each law runs unchanged on the embedded server and on kube-apiserver with the
controllers of Kubernetes beside it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.embedded.asking import MERGE, Asker, Plain, asking
from trimtab.embedded.suspended import followed
from trimtab.testing import Options, eventually
from trimtab.testing.cluster import cluster as started

NOW = "2026-01-01T00:00:00Z"


@pytest.fixture
async def ask(request: pytest.FixtureRequest) -> AsyncIterator[Asker]:
    kind = request.config.getoption("--cluster")
    async with started(kind, options=Options(controllers=True)) as cluster:
        async with asking(cluster, "default") as made:
            yield made


def job(*, suspend: bool, **more: Any) -> Plain:
    container = {"name": "main", "image": "x"}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "one"},
        "spec": {"suspend": suspend, "template": template, **more},
    }


async def test_a_job_says_whether_it_is_suspended(ask: Asker) -> None:
    path = ask.path("jobs", group="batch")

    async def comes_to(status: str, reason: str, message: str) -> Plain:
        async def is_said() -> Plain | None:
            state: Plain = (await ask("GET", f"{path}/one")).obj["status"]
            said = [
                (each["type"], each["status"], each["reason"], each["message"])
                for each in state.get("conditions", ())
            ]
            return state if said == [("Suspended", status, reason, message)] else None

        found = await eventually(is_said, within=20)
        assert found is not None
        return found

    made = await ask("POST", path, job(suspend=True))
    assert made.status == 201
    state = await comes_to("True", "JobSuspended", "Job suspended")
    assert "startTime" not in state
    assert (state["ready"], state["terminating"]) == (0, 0)
    entries = (await ask("GET", f"{path}/one")).meta["managedFields"]
    assert {each["manager"] for each in entries} == {"tests", "kube-controller-manager"}

    await ask("PATCH", f"{path}/one", {"spec": {"suspend": False}}, media=MERGE)
    state = await comes_to("False", "JobResumed", "Job resumed")
    assert state["startTime"] >= made.meta["creationTimestamp"]

    await ask("PATCH", f"{path}/one", {"spec": {"suspend": True}}, media=MERGE)
    state = await comes_to("True", "JobSuspended", "Job suspended")
    assert "startTime" not in state


@pytest.mark.parametrize(
    "other",
    [
        job(suspend=False),
        job(suspend=True, managedBy="example.com/other"),
        {
            **job(suspend=True),
            "metadata": {"name": "one", "deletionTimestamp": NOW},
        },
        {
            **job(suspend=True),
            "status": {"conditions": [{"type": "Complete", "status": "True"}]},
        },
    ],
    ids=["running", "managed", "dying", "done"],
)
def test_other_jobs_are_left_alone(other: Plain) -> None:
    assert followed(other, now=NOW) is None


def test_what_is_said_is_not_said_again() -> None:
    suspended = job(suspend=True)
    state = followed(suspended, now=NOW)
    assert followed({**suspended, "status": state}, now=NOW) is None
