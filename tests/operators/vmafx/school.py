"""A school for models: clips, what libvmaf says of them, and a trainer in a pod."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from tests.kubelet.laptop import laptop, marked
from tests.operators.vmafx import clips
from tests.operators.vmafx.platform import Platform, node, platform
from trimtab.api import Metadata
from trimtab.client.calling import Caller
from trimtab.kinds import ConfigMap, Event, Pod
from trimtab.operators.vmafx.feedback import Feedback, acks, samples
from trimtab.operators.vmafx.scoring import score
from trimtab.operators.vmafx.tools import Ffmpeg
from trimtab.operators.vmafx.training.calling import place_of
from trimtab.operators.vmafx.training.kinds import (
    AlgorithmConfig,
    Checkpoint,
    VmafxModelTraining,
    VmafxModelTrainingSpec,
)
from trimtab.operators.vmafx.training.tokens import Key, bearer
from trimtab.testing import Cluster, eventually

if TYPE_CHECKING:  # what learns takes a second to import, and not every test needs it
    from trimtab.operators.vmafx.training.judging import Figures
    from trimtab.operators.vmafx.training.samples import Sample

NAMES = ("adm", "motion", "vif_scale0", "vif_scale1", "vif_scale2", "vif_scale3")
FRAMES = 24
LESSONS = (46, 34, 22, 28, 40, 31, 14, 43, 18, 25, 37, 20, 30, 36)
"""How strongly clips are encoded that a model learns from; a quarter of them judge."""
ENOUGH = len(LESSONS) * FRAMES
"""Samples after which the model is judged."""
QUICK = AlgorithmConfig(learningRate=3e-3, emaDecay=0.95, passes=32)
"""So that a few clips are enough to learn something from."""
KINDS = {
    "picture": "testsrc2=size=160x90:rate=25",
    "fractal": "mandelbrot=size=160x90:rate=25",
    "life": "life=size=160x90:rate=25:ratio=0.3:mold=10",
}
ENVIRONMENT = {"VMAFX_TRAINER_USER": "any", "VMAFX_TRAINER_RHYTHM": "300ms"}


class Films:
    """Pairs of clips in a folder, made when somebody asks for them."""

    def __init__(self, folder: Path, ffmpeg: Ffmpeg) -> None:
        self.folder = folder
        self._ffmpeg = ffmpeg

    def pair(self, kind: str, crf: int) -> tuple[Path, Path]:
        """A clip, and the same after an encoder; the higher the crf, the worse."""
        whole = self.folder / f"{kind}.mp4"
        spoiled = self.folder / f"{kind}-{crf}.mp4"
        frames = ("-frames:v", str(FRAMES), "-c:v", "libx264", "-pix_fmt", "yuv420p")
        if not whole.exists():
            source = ("-f", "lavfi", "-i", KINDS[kind])
            clips.made(whole, *source, *frames, "-crf", "4")
        if not spoiled.exists():
            clips.made(spoiled, "-i", str(whole), *frames, "-crf", str(crf))
        return whole, spoiled

    async def scored(self, kind: str, *crfs: int) -> list[Sample]:
        """What libvmaf says of the frames of some pairs."""
        from trimtab.operators.vmafx.training.samples import Sample

        found: list[Sample] = []
        for crf in crfs:
            pair = [str(each) for each in self.pair(kind, crf)]
            told = await score(*pair, ffmpeg=self._ffmpeg, threads=1)
            name = f"{kind}-{crf}"
            found += [
                Sample(
                    job_id=each.job_id,
                    features=tuple(each.features),
                    true_score=each.true_score,
                )
                for each in samples(told, job=name, features=NAMES)
            ]
        return found


def again(known: Iterable[Sample], *, times: int, wrong: bool = False) -> list[Sample]:
    """The same samples from other jobs; wrong ones say the opposite."""
    return [
        replace(
            each,
            job_id=f"{each.job_id}-{number}-{wrong}",
            true_score=100.0 - each.true_score if wrong else each.true_score,
        )
        for number in range(times)
        for each in known
    ]


def fit(known: Sequence[Sample]) -> bytes:
    """A model that fits what is known, as a file."""
    from trimtab.operators.vmafx.training import base, models

    model, _ = base.fitted(known, NAMES, random=Random(1), hidden=16)
    return models.write(model)


def judged(model: bytes, known: Sequence[Sample]) -> Figures:
    """How well a model tells scores, by a runtime that knows nothing of ours."""
    import numpy as np
    import onnxruntime

    from trimtab.operators.vmafx.training.judging import figures

    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    rows = np.array([each.features for each in known], dtype=np.float32)
    told = np.asarray(session.run(["score"], {"features": rows})[0], dtype=np.float64)
    return figures(told[:, 0], np.array([each.true_score for each in known]))


class School:
    """What a test does with it."""

    def __init__(self, here: Platform, films: Films) -> None:
        self.here = here
        self.films = films
        self.caller = Caller()

    async def begin(self, name: str, model: bytes, **spec: Any) -> None:
        """A training that begins from a model in a ConfigMap."""
        where = self.here.namespace
        metadata = Metadata(name=f"{name}-base", namespace=where)
        kept = ConfigMap(metadata=metadata, binaryData={"model.onnx": model})
        await self.here.client.create(kept)
        wishes = {
            "baseModel": f"configmap://{name}-base/model.onnx",
            "checkpoint": Checkpoint(
                interval="100ms", minSamples=len(LESSONS) * FRAMES
            ),
            "algorithmConfig": QUICK,
            "outputRegistry": "models",
            **spec,
        }
        await self.here.client.create(
            VmafxModelTraining(
                metadata=Metadata(name=name, namespace=where),
                spec=VmafxModelTrainingSpec(algorithm="online-sgd-ema", **wishes),
            )
        )

    async def change(self, name: str, **spec: Any) -> None:
        await self.here.client.patch(
            VmafxModelTraining, name, {"spec": spec}, namespace=self.here.namespace
        )

    async def get(self, name: str) -> VmafxModelTraining:
        return await self.here.client.get(
            VmafxModelTraining, name, namespace=self.here.namespace
        )

    async def until(
        self,
        name: str,
        holds: Callable[[VmafxModelTraining], object],
        *,
        within: float = 30.0,
    ) -> VmafxModelTraining:
        """The training when it is as wished for."""
        last: VmafxModelTraining | None = None

        async def look() -> VmafxModelTraining | None:
            nonlocal last
            last = await self.get(name)
            return last if holds(last) else None

        try:
            found = await eventually(look, within=within, every=0.1)
        except AssertionError as error:
            raise AssertionError(f"{name} never was: {last and last.status}") from error
        assert found is not None
        return found

    async def runs(self, name: str) -> VmafxModelTraining:
        return await self.until(name, lambda it: it.status.address)

    async def submit(self, *pairs: tuple[str, int]) -> list[str]:
        """Jobs, to be scored in this order."""
        names = [f"{kind}-{crf}" for kind, crf in pairs]
        for place, (name, pair) in enumerate(zip(names, pairs, strict=True)):
            made = self.films.pair(*pair)
            await self.here.submit(name, *made, priority=len(pairs) - place)
        return names

    async def token(self, name: str) -> str:
        """What is shown to a trainer, as whoever may read the key makes it."""
        key = Key(self.here.client, namespace=self.here.namespace)
        await key.fresh()
        return key.token(await self.get(name))

    async def send(
        self, name: str, known: Sequence[Sample], *, token: str | None = None
    ) -> int:
        """Bring samples to a trainer as a node does; how many it has for good."""
        address = (await self.get(name)).status.address
        shown = await self.token(name) if token is None else token
        reply = await self.caller.call(
            place_of(address),
            "POST",
            "/samples",
            headers=bearer(shown),
            body=b"".join(msgspec.json.encode(each) + b"\n" for each in known),
            within=30.0,
        )
        return sum(each.ok for each in acks(reply.body))

    async def pod(self, name: str) -> Pod:
        return await self.here.client.get(
            Pod, f"vmafx-trainer-{name}", namespace=self.here.namespace
        )

    async def kill(self, name: str) -> None:
        """Kill the process of a trainer, as the kernel would for memory."""
        pod = await self.pod(name)
        for pid in marked(pod.metadata.uid):
            os.kill(pid, signal.SIGKILL)

        async def is_back() -> bool:
            found = (await self.pod(name)).status
            again = [each.restartCount for each in found.containerStatuses]
            return again > [0] and found.conditions.is_true("Ready")

        await eventually(is_back, within=30.0)

    async def events(self, reason: str) -> list[str]:
        """What people were told, under this word."""
        found = self.here.client.list(Event, namespace=self.here.namespace)
        return [each.message async for each in found if each.reason == reason]

    @asynccontextmanager
    async def scoring(
        self, port: int, ffmpeg: Ffmpeg, **labels: str
    ) -> AsyncIterator[Feedback]:
        """A node that scores, and sends what it finds."""
        feedback = Feedback(self.caller, pause=0.5)

        def labelled(options: Any) -> Any:
            return replace(options, labels=labels)

        async with node(
            self.here,
            port,
            "teacher",
            ffmpeg=ffmpeg,
            change=labelled,
            feedback=feedback,
        ):
            yield feedback


@asynccontextmanager
async def school(
    cluster: Cluster, namespace: str, folder: Path, films: Films, **kubelet: Any
) -> AsyncIterator[School]:
    """The platform and a machine for pods, while the block runs."""
    async with (
        platform(cluster, namespace, films.folder, environment=ENVIRONMENT) as here,
        laptop(cluster, namespace, folder, **kubelet),
    ):
        made = School(here, films)
        try:
            yield made
        finally:
            await made.caller.close()
