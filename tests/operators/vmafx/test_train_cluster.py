"""A model learns on a cluster: real scores, a trainer in a pod, a gate, versions."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.operators.vmafx.school import (
    ENOUGH,
    LESSONS,
    NAMES,
    Films,
    School,
    again,
    fit,
    judged,
    school,
)
from tests.operators.vmafx.training.school import base, samples
from trimtab.client import NotFound
from trimtab.kinds import Secret, Service
from trimtab.operators.vmafx.tools import Ffmpeg
from trimtab.operators.vmafx.training import tokens
from trimtab.operators.vmafx.training.base import save
from trimtab.operators.vmafx.training.kinds import Storage
from trimtab.operators.vmafx.training.samples import Sample
from trimtab.testing import Cluster, eventually

pytestmark = pytest.mark.cluster("real")


@pytest.fixture(scope="session")
def films(reference: Path, ffmpeg: Ffmpeg) -> Films:
    return Films(reference.parent, ffmpeg)


async def test_a_model_learns_from_scores_and_loses_nothing_that_is_good(
    cluster: Cluster, namespace: str, films: Films, ffmpeg: Ffmpeg, tmp_path: Path
) -> None:
    known = await films.scored("picture", 14, 46)
    first = fit(known)
    async with school(cluster, namespace, tmp_path, films) as here:
        models = tmp_path / "models"
        selector = {"nodeSelector": {"pool": "film"}}
        output = f"file://{models}"
        await here.begin("model", first, outputRegistry=output, dataSource=selector)
        await _learns(here, ffmpeg)
        model = (models / "model_v000001.onnx").read_bytes()
        unseen = await films.scored("fractal", 16, 27, 33, 41)
        before, after = judged(first, unseen), judged(model, unseen)
        print(f"\nunseen clips, the base: {before}\nunseen clips, v000001: {after}")
        assert after.rmse < before.rmse
        assert after.plcc > before.plcc
        assert after.srocc >= before.srocc
        shown = await cluster.kubectl("get", "vmtrain", "-n", namespace)
        assert "v000001" in shown
        assert "true" in shown
        await _survives(here, models, known=[*known, *unseen])
        await here.begin("broken", b"no model")
        broken = await here.until("broken", lambda it: it.status.phase == "Failed")
        assert "is no ONNX model" in broken.status.message
        assert not broken.status.conditions.is_true("Ready")


async def test_a_trainer_that_runs_follows_a_new_key_also_without_mounts(
    cluster: Cluster,
    namespace: str,
    films: Films,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tokens, "LIFETIME", 0.2)
    folder = tmp_path / "trainer"
    folder.mkdir()
    save(base(), folder / "base.onnx")
    # Some laptops let pods have no mounts of their own.
    kubelet = {"mounts": False, "refresh": 0.2, "housekeeping": 0.2}
    async with school(cluster, namespace, tmp_path, films, **kubelet) as here:
        storage = Storage(hostPath=str(folder))
        await here.begin("model", b"", baseModel="base.onnx", storage=storage)
        await here.runs("model")
        first, known = await here.token("model"), samples(3, seed=1)
        assert await here.send("model", known) == 3
        before = await here.pod("model")
        await here.here.client.delete(Secret, tokens.SECRET, namespace=namespace)

        async def is_followed() -> bool:
            try:
                return await here.send("model", known) == 3
            except NotFound:  # there is no key for a moment
                return False

        await eventually(is_followed, within=30)
        assert await here.send("model", known, token=first) == 0
        after = await here.pod("model")
        assert after.metadata.uid == before.metadata.uid
        assert [each.restartCount for each in after.status.containerStatuses] == [0]


async def _learns(here: School, ffmpeg: Ffmpeg) -> None:
    """Jobs are scored, and the model is kept when it is better than the base."""
    port = await here.here.gateway()
    names = await here.submit(*(("fractal", crf) for crf in LESSONS))
    ready = await here.runs("model")
    assert ready.status.features == list(NAMES)
    async with here.scoring(port, ffmpeg, pool="film") as feedback:
        for name in names:
            await here.here.ended(name)
        await feedback.flush(within=20.0)
        sent = feedback.statistics()
    assert (sent.taken, sent.refused, sent.dropped) == (ENOUGH, 0, 0)
    kept = await here.until("model", lambda it: it.status.modelVersion == "v000001")
    gate = kept.status.gate
    assert gate is not None
    assert gate.passed
    assert gate.rmse is not None
    assert gate.base.rmse is not None
    assert gate.rmse < gate.base.rmse
    assert kept.status.conditions.is_true("Ready")
    assert kept.status.conditions.is_true("GatePassed")
    assert await here.events("CheckpointWritten") == [
        f"Model checkpoint written: version=v000001 samples={ENOUGH}"
    ]
    await here.here.client.get(
        Service, "vmafx-trainer-model", namespace=here.here.namespace
    )


async def _survives(here: School, models: Path, *, known: list[Sample]) -> None:
    """Poison is thrown out, and kill -9 costs nothing that was acknowledged."""
    lies = again(known, times=3, wrong=True)
    before = (await here.get("model")).status.currentSamples
    for stranger in ("", "0" * 64):
        assert await here.send("model", lies, token=stranger) == 0
    assert await here.send("model", lies) == len(lies) > ENOUGH
    spoiled = await here.until("model", lambda it: it.status.rollbacks == 1)
    assert spoiled.status.currentSamples == before + len(lies)
    assert spoiled.status.modelVersion == "v000001"
    assert not spoiled.status.conditions.is_true("GatePassed")
    assert "the last good model is back" in (await here.events("GateRejected"))[0]
    taken = spoiled.status.currentSamples + await here.send("model", known)
    await here.kill("model")
    back = await here.until("model", lambda it: it.status.currentSamples >= taken)
    assert back.status.currentSamples == taken
    assert back.status.modelVersion == "v000001"
    assert back.status.rollbacks == 1
    await here.send("model", again(known, times=3))
    await here.until("model", lambda it: it.status.modelVersion == "v000002")
    names = sorted(each.name for each in models.glob("*.onnx"))
    assert names == ["model_v000001.onnx", "model_v000002.onnx"]
    assert (models / "latest").exists()
