"""The third part of the demo: a model learns from scores, and a liar is found out.

A small model is fitted to clips of one kind. A trainer runs in a pod of this machine
and learns from jobs with clips of another kind; when it tells scores better than the
base, it is kept. Then a stranger sends samples that say the opposite, and is refused; a
node that has the token sends them as well, and the gate throws them out. What happened
is drawn.
"""

from __future__ import annotations

import asyncio
import os
import platform
import sys
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from http import HTTPStatus
from pathlib import Path
from random import Random

import msgspec

from examples.scoring import clip, first_line, node_token, program
from trimtab import Client, Metadata
from trimtab.client import WatchEvent
from trimtab.client.calling import Caller
from trimtab.operators.vmafx import scoring, tools
from trimtab.operators.vmafx.app import app
from trimtab.operators.vmafx.feedback import Sample, samples
from trimtab.operators.vmafx.kinds import VmafxJob, VmafxJobSpec
from trimtab.operators.vmafx.training.calling import place_of
from trimtab.operators.vmafx.training.kinds import VmafxModelTraining
from trimtab.operators.vmafx.training.tokens import Key, bearer
from trimtab.testing import install

NAME = "model"
FEATURES = ("adm", "motion", "vif_scale0", "vif_scale1", "vif_scale2", "vif_scale3")
KNOWN, TAUGHT = "testsrc2", "mandelbrot"
FRAMES = 24
# How strongly the clips are encoded; a quarter of them judges, and teaches nothing.
LESSONS = (46, 34, 22, 28, 40, 31, 14, 43, 18, 25, 37, 20, 30, 36)
TRAINER = {"VMAFX_TRAINER_USER": "any", "VMAFX_TRAINER_RHYTHM": "500ms"}


async def pair(folder: Path, kind: str, crf: int) -> tuple[Path, Path]:
    """A clip, and what an encoder made of it."""
    whole, frames = folder / f"{kind}.mp4", ("-frames:v", str(FRAMES))
    if not whole.exists():
        picture = ("-f", "lavfi", "-i", f"{kind}=size=160x90:rate=25")
        await clip(whole, *picture, *frames, "-crf", "4", "-pix_fmt", "yuv420p")
    spoiled = folder / f"{kind}-{crf}.mp4"
    return whole, await clip(spoiled, "-i", str(whole), "-crf", str(crf))


async def known(folder: Path) -> list[Sample]:
    """What libvmaf says of some clips of the kind that the base model knows."""
    ffmpeg = await tools.find()
    found: list[Sample] = []
    for crf in (14, 46):
        whole, spoiled = await pair(folder, KNOWN, crf)
        told = await scoring.score(str(whole), str(spoiled), ffmpeg=ffmpeg, threads=1)
        found += samples(told, job=f"{KNOWN}-{crf}", features=FEATURES)
    return found


def fitted(to: Path, found: list[Sample]) -> Path:
    """A model that fits them."""
    from trimtab.operators.vmafx.training import base
    from trimtab.operators.vmafx.training.samples import Sample as Known

    taught = msgspec.convert([msgspec.to_builtins(each) for each in found], list[Known])
    model, figures = base.fitted(taught, FEATURES, random=Random(1), hidden=16)
    base.save(model, to)
    print(f"A model is fitted to clips of one kind; of these it tells: {figures}.")
    return to


def opposite(found: list[Sample]) -> bytes:
    """The same frames with false scores, as a node would send them."""
    lies = [
        Sample(f"lie-{number}-{each.job_id}", each.features, 100 - each.true_score)
        for number in range(10)
        for each in found
    ]
    return b"".join(msgspec.json.encode(each) + b"\n" for each in lies)


@asynccontextmanager
async def kubelet(folder: Path, at: tuple[str, ...]) -> AsyncIterator[None]:
    """This machine as a node, while the block runs; it talks to a file."""
    with (folder.parent / "kubelet.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "trimtab", "kubelet", "--alone", "--name=laptop"),
            *("--folder", str(folder), *at),
            stdout=log,
            stderr=log,
        )
        try:
            yield
        finally:
            process.terminate()
            await process.wait()


async def until(
    client: Client, holds: Callable[[VmafxModelTraining], object]
) -> VmafxModelTraining:
    """The training when it is as wished for."""
    async with asyncio.timeout(60):
        async with client.watch(VmafxModelTraining, initial_events=True) as events:
            async for event in events:
                if isinstance(event, WatchEvent) and holds(event.object):
                    return event.object
    raise RuntimeError("the watch ended before it was so; run the demo again")


@asynccontextmanager
async def programs(
    client: Client, folder: Path, at: tuple[str, ...]
) -> AsyncIterator[None]:
    """Operator, gateway, a node that scores, and a kubelet for the trainer's pod."""
    os.environ.update(TRAINER)
    token = await node_token(client, folder)
    async with AsyncExitStack() as stack:
        start = stack.enter_async_context
        await start(program("run", "trimtab.operators.vmafx.app", "--port", "0", *at))
        await start(kubelet(folder / "kubelet", at))
        serve = ("vmafx", "gateway", "--port", "0", "--root", str(folder), *at)
        gateway = await start(program(*serve))
        address = (await first_line(gateway)).removeprefix("Serving on ").rstrip(".")
        work = ("vmafx", "node", "--gateway", address, "--token", str(token))
        await start(program(*work, "--name", "teacher"))
        yield


async def show(client: Client, kubeconfig: Path, *, plot: Path) -> None:
    """Fit a model, have it learn, lie to it, and draw what happened."""
    if platform.system() != "Linux":
        print("Pods run as processes on Linux only: the trainer is left out.")
        return
    await install(client, *app.kinds())
    at = ("--kubeconfig", str(kubeconfig))
    with tempfile.TemporaryDirectory(prefix="trimtab-demo-") as name:
        folder = Path(name)
        found = await known(folder)
        base = fitted(folder / "base.onnx", found)
        async with programs(client, folder, at):
            await begin(client, base, folder / "trainer", at)
            print("Its trainer runs in a pod; now a node scores clips for it to learn.")
            await teach(client, folder)
            kept = await until(client, lambda it: it.status.modelVersion)
            print(f"{kept.status.modelVersion} was kept: {told(kept)}", flush=True)
            await lie(client, kept, found)
            lied = await until(client, lambda it: it.status.rollbacks)
            print(f"Somebody lied, and was found out: {told(lied)}")
            print(f"{lied} is {lied.status.modelVersion} again.", flush=True)
            await command("train", NAME, "--until", "1", "--plot", str(plot), *at)


def told(training: VmafxModelTraining) -> str:
    found = training.status.conditions.get("GatePassed")
    return found.message if found is not None else ""


async def command(*arguments: str) -> None:
    """A command of trimtab vmafx, to its end."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "trimtab", "vmafx", *arguments)
    )
    if await process.wait():
        raise RuntimeError(f"trimtab vmafx {arguments[0]} failed; run the demo again")


async def begin(client: Client, base: Path, storage: Path, at: tuple[str, ...]) -> None:
    """A training, once its trainer takes samples."""
    quick = ("--interval", "100ms", "--learning-rate", "0.003", "--passes", "32")
    enough = ("--min-samples", str(len(LESSONS) * FRAMES), "--ema-decay", "0.95")
    # Files of this machine: not every laptop lets a pod have mounts of its own.
    files = ("--base", base.as_uri(), "--host-path", str(storage))
    await command("train", NAME, *files, *quick, *enough, "--detach", *at)
    await until(client, lambda it: it.status.address)


async def teach(client: Client, folder: Path) -> None:
    """Jobs with clips that the model does not know, in this order."""
    for place, crf in enumerate(LESSONS):
        whole, spoiled = await pair(folder, TAUGHT, crf)
        spec = VmafxJobSpec(
            reference=str(whole), distorted=str(spoiled), priority=len(LESSONS) - place
        )
        metadata = Metadata(name=f"lesson-{place + 1}")
        await client.create(VmafxJob(metadata=metadata, spec=spec))


async def lie(
    client: Client, training: VmafxModelTraining, found: list[Sample]
) -> None:
    """Send false samples: first as a stranger, then as a node that has the token."""
    key = Key(client, namespace=client.config.namespace)
    await key.fresh()
    caller = Caller()
    try:
        for token in ("", key.token(training)):
            reply = await caller.call(
                place_of(training.status.address),
                "POST",
                "/samples",
                headers=bearer(token),
                body=opposite(found),
                within=30.0,
            )
            if reply.status == HTTPStatus.UNAUTHORIZED:
                print(
                    "A stranger's samples are refused; now those of a node that lies."
                )
    finally:
        await caller.close()
