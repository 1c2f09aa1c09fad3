"""The parts of training on a cluster, each by itself: pods, mirror, samples, course."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from trimtab.api import Metadata, wire
from trimtab.cli.vmafx import node as node_command
from trimtab.cli.vmafx import train
from trimtab.client import Client, ConfigError, load
from trimtab.client.calling import Caller
from trimtab.kinds import Namespace
from trimtab.operators.vmafx.feedback import BATCH, FRAMES, QUEUE, Feedback, samples
from trimtab.operators.vmafx.kinds import VmafxNode, VmafxNodeSpec
from trimtab.operators.vmafx.scores import Score
from trimtab.operators.vmafx.training import mirror, podspec
from trimtab.operators.vmafx.training.course import Course
from trimtab.operators.vmafx.training.kinds import (
    Checkpoint,
    DataSource,
    Gate,
    Storage,
    VmafxModelTraining,
    VmafxModelTrainingSpec,
    VmafxModelTrainingStatus,
)
from trimtab.operators.vmafx.training.mirror import SaidGate, SaidHistory, SaidJudged
from trimtab.operators.vmafx.training.podspec import TrainerSettings, settings_of
from trimtab.operators.vmafx.training.wanted import takes
from trimtab.operators.vmafx.wire import controller_pb2 as messages
from trimtab.testing import Cluster, eventually

BASE = "configmap://base/model.onnx"


def training(name: str = "model", **spec: Any) -> VmafxModelTraining:
    made = {
        "baseModel": BASE,
        "algorithm": "online-sgd-ema",
        "outputRegistry": "oci://registry.example.com/models",
        **spec,
    }
    return VmafxModelTraining(
        metadata=Metadata(name=name, namespace="here", uid="u"),
        spec=VmafxModelTrainingSpec(**made),
    )


# Pods


def arguments(made: VmafxModelTraining) -> str:
    pod = wire(podspec.pod(made, TrainerSettings(), digest="d"))
    return " ".join(pod["spec"]["containers"][0]["args"])


def test_the_same_training_is_the_same_pod_and_another_wish_another_one() -> None:
    def mark(**spec: Any) -> str:
        made = podspec.pod(training(**spec), TrainerSettings(), digest="d")
        return made.metadata.annotations[podspec.SPEC_HASH]

    others = [
        mark(checkpoint=Checkpoint(interval="5m")),
        mark(checkpoint=Checkpoint(minSamples=10)),
        mark(baseModel="file:///models/other.onnx"),
        mark(storage=Storage(claim="disk")),
    ]
    assert mark() == mark(paused=True) == mark(rollbackTo="v000001")
    assert len({mark(), *others}) == 5


@pytest.mark.parametrize(
    ("base", "expected"),
    [
        (BASE, f"--base {podspec.BASE}/model.onnx"),
        ("file:///models/base.onnx", "--base /models/base.onnx"),
        ("base.onnx", f"--base {podspec.STATE}/base.onnx"),
    ],
)
def test_a_base_model_is_found_in_the_pod(base: str, expected: str) -> None:
    assert expected in arguments(training(baseModel=base))


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("/models", "--output /models"),
        ("file:///models", "--output file:///models"),
        ("oci:///models", "--output oci:///models"),
        ("oci://registry.example.com/models", ""),
        ("models", ""),
    ],
)
def test_models_go_to_a_folder_or_stay_with_the_trainer(
    output: str, expected: str
) -> None:
    made = training(outputRegistry=output)
    found = arguments(made)
    assert expected in found if expected else "--output" not in found
    assert podspec.is_pushed_by_people(made) == (not expected)


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"baseModel": "vmaf_tiny_v2"}, "spec.baseModel: vmaf_tiny_v2 is nothing"),
        ({"baseModel": "configmap://base"}, "name configmap://NAME/KEY"),
        ({"checkpoint": Checkpoint(interval="soon")}, "'soon' is no duration"),
        ({"checkpoint": Checkpoint(interval="-1m")}, "'-1m' is no duration"),
        ({"storage": Storage(claim="a", hostPath="/b")}, "and not both"),
    ],
)
def test_what_no_trainer_can_be_made_of_is_told(
    spec: dict[str, Any], words: str
) -> None:
    assert words in podspec.problem(training(**spec))
    assert not podspec.problem(training())


def test_the_environment_says_what_trainers_have_in_common() -> None:
    assert settings_of({}) == TrainerSettings()
    named = {"VMAFX_TRAINER_IMAGE": "a/b:1", "VMAFX_TRAINER_USER": "any"}
    assert settings_of(named) == TrainerSettings(image="a/b:1", user=None)
    assert settings_of({"VMAFX_TRAINER_RHYTHM": "1.5s"}).rhythm == 1.5
    for wrong in ({"VMAFX_TRAINER_USER": "0"}, {"VMAFX_TRAINER_RHYTHM": "often"}):
        with pytest.raises(ConfigError, match="and not"):
            settings_of(wrong)


@pytest.mark.cluster("embedded", "real")
async def test_a_restricted_namespace_takes_the_pod(
    cluster: Cluster, namespace: str
) -> None:
    level = {"pod-security.kubernetes.io/enforce": "restricted"}
    async with Client(load(kubeconfig=cluster.kubeconfig)) as client:
        await client.patch(Namespace, namespace, {"metadata": {"labels": level}})
        for storage in (Storage(), Storage(claim="disk")):
            wished = training(storage=storage)
            made = podspec.pod(wished, TrainerSettings(), digest="d")
            where = replace(made.metadata, namespace=namespace)
            await client.create(replace(made, metadata=where), dry_run=True)


# Mirror


def test_what_a_trainer_says_is_mirrored_and_rounded() -> None:
    said = b"""{"phase": "running", "current_samples": 7, "model_version": "v000002",
        "last_checkpoint_time": "2026-01-02T03:04:05Z", "loss": 1.23456789, "steps": 9,
        "gate": {"passed": true, "outcome": "passed", "plcc": 0.98765432, "srocc": 0.9,
        "rmse": 2.0000001, "base": {"plcc": 0.5, "srocc": 0.4, "rmse": 9}},
        "features": ["vif", "adm"], "rollbacks": 1}"""
    found = mirror.learned(VmafxModelTrainingStatus(), mirror.read(said))
    assert (found.phase, found.modelVersion, found.steps) == ("Running", "v000002", 9)
    assert found.loss == 1.2346
    assert found.gate is not None
    assert mirror.figures(found.gate) == (
        "PLCC 0.9877, SROCC 0.9, RMSE 2.0 (the base: PLCC 0.5, SROCC 0.4, RMSE 9.0)."
    )
    assert found.features == ["vif", "adm"]
    assert mirror.learned(found, mirror.read(said)) == found


@pytest.mark.parametrize("answer", [None, b"", b"{", b"[]", b'{"steps": "x"}'])
def test_an_answer_that_cannot_be_read_changes_nothing(answer: bytes | None) -> None:
    before = VmafxModelTrainingStatus(phase="Running", currentSamples=3, loss=1.0)
    assert mirror.learned(before, mirror.read(answer)) == before


@given(st.floats())
def test_rounding_keeps_what_a_number_is_and_never_writes_nonsense(
    value: float,
) -> None:
    found = mirror.rounded(value)
    if found is not None:
        assert found == pytest.approx(value, rel=1e-3, abs=1e-4)
        assert msgspec.json.decode(msgspec.json.encode(found)) == found


# Who learns from whom


def test_a_model_learns_from_nodes_with_its_labels() -> None:
    def node(**labels: str) -> VmafxNode:
        metadata = Metadata(name="n", labels=labels)
        return VmafxNode(metadata=metadata, spec=VmafxNodeSpec(gpuVendor="cpu"))

    here = VmafxModelTrainingStatus(
        phase="Running", address="127.0.0.1:9091", features=["vif"]
    )
    every = replace(training(), status=here)
    some = replace(
        training(dataSource=DataSource(nodeSelector={"pool": "gpu"})), status=here
    )
    assert takes(every, node())
    assert takes(some, node(pool="gpu", zone="a"))
    assert not takes(some, node(pool="cpu"))
    assert not takes(some, node())
    assert not takes(replace(training(paused=True), status=here), node())
    changes: list[dict[str, Any]] = [
        *({"address": ""}, {"features": []}, {"phase": "Failed"})
    ]
    for change in changes:
        assert not takes(replace(every, status=replace(here, **change)), node())


# Samples


def score(frames: int, features: Sequence[str] = ("vif", "adm")) -> Score:
    series = {name: [float(at) for at in range(frames)] for name in features}
    told = tuple(float(at % 100) for at in range(frames))
    return Score(vmaf=50.0, features={}, frames=told, model="m", series=series)


@given(st.integers(1, 1000), st.integers(1, 100))
def test_frames_are_sent_evenly_over_a_clip_and_never_more_than_the_most(
    frames: int, most: int
) -> None:
    found = list(samples(score(frames), job="j", features=("adm",), most=most))
    places = [int(each.features[0]) for each in found]
    assert len(places) == min(frames, most)
    gaps = {b - a for a, b in pairwise(places)}
    assert not gaps or (min(gaps) >= 1 and max(gaps) - min(gaps) <= 1)


def test_features_are_in_the_order_that_was_asked_for_and_all_there() -> None:
    made = replace(score(3), series={"a": [1, 2, 3], "b": [4, 5, 6]})
    found = list(samples(made, job="j", features=("b", "a")))
    assert [each.features for each in found] == [[4, 1], [5, 2], [6, 3]]
    assert not list(samples(made, job="j", features=("a", "missing")))
    assert not list(samples(made, job="j", features=()))


class Listener:
    """A trainer's HTTP, which answers as it is told to."""

    def __init__(self) -> None:
        self.answers: list[bytes | int] = []
        self.token = ""
        """What it wants to be shown; without one it takes all."""
        self.refused = 0
        self.heard: list[dict[str, Any]] = []

    async def take(self, request: web.Request) -> web.Response:
        lines = (await request.read()).splitlines()
        shown = request.headers.get("Authorization", "")
        if self.token and shown != f"Bearer {self.token}":
            self.refused += 1
            return web.Response(status=401)
        answer = self.answers.pop(0) if self.answers else b'{"ok": true}\n'
        if isinstance(answer, int):
            return web.Response(status=answer)
        self.heard += [msgspec.json.decode(line) for line in lines]
        return web.Response(body=answer * len(lines))


@asynccontextmanager
async def listening(listener: Listener) -> AsyncIterator[messages.Trainer]:
    application = web.Application()
    application.router.add_post("/samples", listener.take)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        port = runner.addresses[0][1]
        yield messages.Trainer(
            name="here/model", address=f"127.0.0.1:{port}", features=["vif"]
        )
    finally:
        await runner.cleanup()


@asynccontextmanager
async def sending(**options: Any) -> AsyncIterator[Feedback]:
    calls = Caller()
    made = Feedback(calls, **options)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(made.run())
        try:
            yield made
        finally:
            task.cancel()
            await calls.close()


async def test_a_sample_is_sent_until_a_trainer_has_it_or_finds_it_wrong() -> None:
    listener = Listener()
    listener.answers = [
        503,
        b'{"ok": false, "retryable": true}\n',
        b"no answer\n",
        b'{"ok": false, "error": "bad"}\n',
    ]
    async with listening(listener) as trainer, sending(pause=0.01) as feedback:
        assert feedback.offer([trainer], job="one", found=score(3)) == 3
        await feedback.flush(within=10)
        assert feedback.offer([trainer], job="two", found=score(2)) == 2
        await feedback.flush(within=10)
        found = feedback.statistics()
    assert (found.taken, found.refused, found.dropped, found.waiting) == (2, 3, 0, 0)
    assert listener.heard[-1] == {"job_id": "two", "features": [1.0], "true_score": 1.0}


async def test_a_queue_that_is_full_drops_and_counts_and_never_waits() -> None:
    async with sending(pause=60.0) as feedback:
        gone = messages.Trainer(name="gone", address="127.0.0.1:9", features=["vif"])
        jobs = QUEUE // FRAMES + 2
        for number in range(jobs):
            feedback.offer([gone], job=str(number), found=score(1000))
        found = feedback.statistics()
    assert found.waiting == QUEUE
    assert found.dropped == jobs * FRAMES - QUEUE


@pytest.mark.parametrize("address", ["127.0.0.1:9", "", "nowhere", f"{'x' * 99}.y:1"])
async def test_a_trainer_that_is_not_there_holds_up_no_other(address: str) -> None:
    listener = Listener()
    async with listening(listener) as trainer, sending(pause=60.0) as feedback:
        gone = messages.Trainer(name="gone", address=address, features=["vif"])
        feedback.offer([gone, trainer], job="j", found=score(2 * BATCH))
        await eventually(lambda: feedback.statistics().taken == FRAMES)
        assert feedback.statistics().waiting == FRAMES


# Course


def told(steps: int, loss: float, **more: Any) -> VmafxModelTrainingStatus:
    return VmafxModelTrainingStatus(phase="Running", steps=steps, loss=loss, **more)


def test_a_course_tells_each_version_and_each_refusal_once() -> None:
    course = Course()
    passed = Gate(passed=True, outcome="passed", rmse=2.0, plcc=0.9)
    failed = Gate(outcome="failed", rmse=9.0, reason="It is worse.")
    assert course.add(told(1, 9.0)) == ["Running"]
    assert course.add(told(1, 9.0)) == []
    kept = {"modelVersion": "v000001", "gate": passed, "currentSamples": 5}
    assert course.add(told(2, 4.0, **kept)) == [
        "v000001 after 5 samples: PLCC 0.9, RMSE 2.0."
    ]
    assert course.add(told(3, 3.0, **kept)) == []
    lost = {**kept, "gate": failed}
    assert course.add(told(4, 8.0, **lost)) == ["Forgotten: It is worse. RMSE 9.0."]
    assert course.losses == [(1, 9.0), (2, 4.0), (3, 3.0), (4, 8.0)]
    assert [each.version for each in course.judged] == ["v000001", ""]


def test_a_version_is_that_of_the_gate_which_it_passed() -> None:
    course = Course()
    lost = {"modelVersion": "v000001", "gate": Gate(outcome="failed", rmse=9.0)}
    course.add(told(9, 8.0, **lost))  # it came too late to see more
    passed, failed = SaidGate(passed=True), SaidGate(outcome="failed", rmse=9.0)
    past = [SaidJudged(4, passed), SaidJudged(9, failed)]
    course.recall(SaidHistory(losses=[(4, 1.0)], gates=past))
    assert [(each.steps, each.version) for each in course.judged] == [
        (4, "v000001"),
        (9, ""),
    ]
    course.recall(SaidHistory(gates=[SaidJudged(1, passed), *past]))
    assert {each.version for each in course.judged} == {""}, "nobody knows whose it is"


def test_a_long_course_stays_small() -> None:
    course = Course()
    for step in range(1, 10_000):
        course.add(told(step, float(step)))
    assert len(course.losses) <= 2000
    assert course.losses[-1] == (9999, 9999.0)


# Commands


def parsed(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers()
    for each in (train, node_command):
        each.add(commands)
    return parser.parse_args(arguments)


def test_a_command_writes_what_it_speaks_of_and_nothing_else(tmp_path: Path) -> None:
    base = tmp_path / "any.onnx"
    base.write_bytes(b"a model")
    made = parsed(
        *("train", "small", "--base", str(base), "--selector", "pool=film,zone=a"),
        *("--interval", "5m", "--host-path", "/models", "--passes", "4"),
    )
    assert train.wishes(made) == {
        "baseModel": "configmap://small-base/base.onnx",
        "dataSource": {"nodeSelector": {"pool": "film", "zone": "a"}},
        "storage": {"hostPath": "/models"},
        "checkpoint": {"interval": "5m"},
        "algorithmConfig": {"passes": 4},
    }
    assert train.wishes(parsed("train", "small")) == {}
    assert train.wishes(parsed("train", "small", "--resume")) == {"paused": False}
    back = parsed("train", "small", "--rollback", "last-good")
    assert train.wishes(back) == {"rollbackTo": "last-good"}


def test_a_node_has_labels_that_labels_can_be() -> None:
    given = parsed("node", "--label", "pool=film", "--label", "zone=")
    assert node_command.labels_of(given, {}) == {"pool": "film", "zone": ""}
    named = {"VMAFX_NODE_LABELS": "pool=film,a=b"}
    assert node_command.labels_of(parsed("node"), named) == {"pool": "film", "a": "b"}
    for wrong in ("pool", "=film", "pool=a b", "po ol=a"):
        with pytest.raises(ConfigError, match="label"):
            node_command.labels_of(parsed("node", "--label", wrong), {})
