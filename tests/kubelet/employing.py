"""Employing: plays the Jobs of `data/jobs.yaml`, and writes down what is said of them.

As with pods, the same code records a real controller and compares ours with it.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec
import yaml

from tests.kubelet.telling import DATA, SHELL, Plain
from trimtab import Client
from trimtab.api.kinds import Event, Job
from trimtab.testing.waiting import eventually

RECORDED = DATA / "real_jobs.json"
JOBS, EVENTS = Job.__resource__, Event.__resource__
COUNTS = ("active", "ready", "terminating", "succeeded", "failed")
INDEXES = ("completedIndexes", "failedIndexes")


class Play(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One Job: what its pods run, and what is waited for."""

    run: str
    until: str
    spec: Plain = {}
    policy: str = "Never"

    def job(self, name: str, namespace: str) -> Plain:
        main = {
            "name": "main",
            "image": SHELL,
            "imagePullPolicy": "Never",
            "command": ["sh", "-c", self.run],
        }
        pod = {
            "restartPolicy": self.policy,
            "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": 5,
            "dnsPolicy": "Default",
            "containers": [main],
        }
        return {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {**self.spec, "template": {"spec": pod}},
        }


def plays() -> dict[str, Play]:
    text = (DATA / "jobs.yaml").read_text()
    return msgspec.convert(yaml.safe_load(text), dict[str, Play])


def recorded() -> dict[str, Plain]:
    return msgspec.json.decode(RECORDED.read_bytes(), type=dict[str, Plain])


async def play(client: Client, namespace: str, name: str, what: Play) -> None:
    """Bring a Job to where it is waited for."""
    await client.create(what.job(name, namespace))

    async def look() -> bool:
        job = await client.get(JOBS, name, namespace=namespace)
        found = {c["type"]: c["status"] for c in job["status"].get("conditions", ())}
        return found.get(what.until) == "True"

    await eventually(look, within=50, every=0.2, describe=f"{name} is {what.until}")


async def told(client: Client, namespace: str, name: str) -> Plain:
    """What is said of a Job by now, without what differs from run to run."""
    status = (await client.get(JOBS, name, namespace=namespace))["status"]
    events = set()
    async for each in client.list(EVENTS, namespace=namespace):
        if each["involvedObject"]["name"] == name:
            message = _plain(each["message"], name)
            events.add((each["type"], each["reason"], message))
    return {
        "conditions": sorted(_condition(each, name) for each in status["conditions"]),
        **{key: status.get(key) or 0 for key in COUNTS},
        **{key: status[key] for key in INDEXES if status.get(key)},
        "times": sorted(key for key in status if key.endswith("Time")),
        "events": sorted(map(list, events)),
    }


def _condition(condition: Plain, name: str) -> list[str]:
    words = (condition.get(key, "") for key in ("reason", "message"))
    reason, message = (_plain(word, name) for word in words)
    return [condition["type"], condition["status"], reason, message]


def _plain(text: Any, name: str) -> str:
    """A text without the end of a pod's name, and without its namespace.

    Its index is left out, too: of Events that come at once, a real one loses some.
    """
    text = re.sub(rf"\b{name}(?:-\d+)?-[a-z0-9]{{5}}\b", f"{name}-SUFFIX", text)
    return re.sub(r"pod [\w-]+/", "pod NAMESPACE/", text)
