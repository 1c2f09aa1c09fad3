"""``trimtab vmafx train``: a model that learns, begun, steered and followed."""

from __future__ import annotations

import argparse
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trimtab.cli import common

if TYPE_CHECKING:
    from trimtab.client import Client
    from trimtab.operators.vmafx.training.calling import Trainers
    from trimtab.operators.vmafx.training.course import Course
    from trimtab.operators.vmafx.training.kinds import (
        VmafxModelTraining,
        VmafxModelTrainingStatus,
    )

ABOUT = """
Have a model learn from the scores that nodes make, and follow it: its loss, the figures
of each gate, its versions. With --base it is begun, or changed; without, it is there
already. It is followed until Ctrl-C, or until --until; it learns on meanwhile.
"""
KEY = "base.onnx"
_LARGEST = 900 << 10
_EVERY = 1.0


def add(commands: argparse._SubParsersAction[Any]) -> None:
    """Describe the arguments."""
    made = commands.add_parser("train", help="have a model learn", description=ABOUT)
    made.set_defaults(run=run)
    made.add_argument("name", metavar="NAME", help="of the VmafxModelTraining")
    common.add_cluster(made)
    made.add_argument("--namespace", "-n", help="(default: the context's)")
    _add_wishes(made)
    steer = made.add_mutually_exclusive_group()
    steer.add_argument("--pause", action="store_true", help="learn no more for now")
    steer.add_argument("--resume", action="store_true", help="learn again")
    steer.add_argument(
        "--rollback",
        metavar="VERSION",
        help="go on from a version, as v000003, or from the last-good one",
    )
    made.add_argument(
        "--detach", action="store_true", help="begin or change it, and follow nothing"
    )
    made.add_argument(
        "--until",
        type=common.count,
        metavar="N",
        help="follow until N versions were seen",
    )
    made.add_argument(
        "--plot", type=Path, metavar="FILE", help="draw loss and gates at the end"
    )


def _add_wishes(made: argparse.ArgumentParser) -> None:
    made.add_argument(
        "--base",
        metavar="FILE|ADDRESS",
        help="the ONNX model to begin with: a file of this machine, which goes into a "
        "ConfigMap, or what spec.baseModel may be",
    )
    made.add_argument(
        "--output",
        metavar="ADDRESS",
        help="where models go: file:///FOLDER or oci:///FOLDER (default: the trainer's "
        "own folder)",
    )
    made.add_argument(
        "--selector",
        type=common.names,
        default=(),
        metavar="KEY=VALUE,…",
        help="learn from nodes with these labels (default: from all)",
    )
    made.add_argument("--interval", help="between checkpoints (default: 10m)")
    made.add_argument(
        "--min-samples",
        type=common.count,
        metavar="N",
        help="between checkpoints (default: 1000)",
    )
    made.add_argument(
        "--learning-rate",
        type=float,
        metavar="RATE",
        help="from 0 to 1 (default: the trainer's)",
    )
    made.add_argument(
        "--ema-decay",
        type=float,
        metavar="DECAY",
        help="of the average that is published, from 0 to 1 (default: the trainer's)",
    )
    made.add_argument(
        "--passes",
        type=common.count,
        metavar="N",
        help="steps for each half batch (default: the trainer's)",
    )
    made.add_argument("--claim", help="the PersistentVolumeClaim for what it knows")
    made.add_argument("--host-path", help="or a folder of the machine")


def run(options: argparse.Namespace) -> int:
    """Begin or change it, then follow it."""
    from trimtab.operators.vmafx.training.course import Course, plot

    course = Course()
    try:
        code = common.running(_called(options, course))
    except KeyboardInterrupt:
        code = 0
    if options.plot is not None:
        plot(course, options.plot, title=f"The training {options.name}")
        print(f"Drawn: {options.plot}")
    return code


async def _called(options: argparse.Namespace, course: Course) -> int:
    from trimtab.client import Client
    from trimtab.operators.vmafx.training.calling import Trainers

    trainers = Trainers(budget=_EVERY)
    config = common.config_of(options, namespace=options.namespace)
    async with Client(config) as client, trainers.open():
        changed = await _wished(client, options)
        if options.detach or (changed and options.base is None):
            return 0
        return await follow(client, trainers, options, course)


async def _wished(client: Client, options: argparse.Namespace) -> bool:
    """Write what the arguments wish for; whether there was anything."""
    from trimtab.client import NotFound
    from trimtab.operators.vmafx.training.kinds import VmafxModelTraining

    spec = wishes(options)
    if not spec:
        return False
    name, what = options.name, f"vmafxmodeltraining/{options.name}"
    try:
        made = await client.patch(VmafxModelTraining, name, {"spec": spec})
        print(f"{what} changed", flush=True)
    except NotFound:
        if options.base is None:
            raise
        made = await _created(client, name, spec)
        print(f"{what} created", flush=True)
    if options.base is not None and _is_file(options.base):
        await _keep_base(client, made, Path(options.base))
    return True


async def _created(
    client: Client, name: str, spec: dict[str, Any]
) -> VmafxModelTraining:
    from trimtab.api import Metadata, convert
    from trimtab.operators.vmafx.training.kinds import (
        VmafxModelTraining,
        VmafxModelTrainingSpec,
    )

    whole = {"algorithm": "online-sgd-ema", "outputRegistry": "models", **spec}
    return await client.create(
        VmafxModelTraining(
            metadata=Metadata(name=name),
            spec=convert(VmafxModelTrainingSpec, whole),
        )
    )


def wishes(options: argparse.Namespace) -> dict[str, Any]:
    """The part of a spec that the arguments speak of."""
    selector = dict(each.partition("=")[::2] for each in options.selector)
    storage = {"claim": options.claim, "hostPath": options.host_path}
    checkpoint = {"interval": options.interval, "minSamples": options.min_samples}
    config = {
        "learningRate": options.learning_rate,
        "emaDecay": options.ema_decay,
        "passes": options.passes,
    }
    found = {
        "baseModel": _base(options),
        "outputRegistry": options.output,
        "dataSource": {"nodeSelector": selector} if selector else None,
        "storage": _said(storage),
        "checkpoint": _said(checkpoint),
        "algorithmConfig": _said(config),
        "paused": True if options.pause else False if options.resume else None,
        "rollbackTo": options.rollback,
    }
    return {key: value for key, value in found.items() if value is not None}


def _said(values: dict[str, Any]) -> dict[str, Any] | None:
    return {key: value for key, value in values.items() if value is not None} or None


def _base(options: argparse.Namespace) -> str | None:
    base: str | None = options.base
    if base is None or not _is_file(base):
        return base
    return f"configmap://{_map_name(options.name)}/{KEY}"


def _is_file(base: str) -> bool:
    return "://" not in base and Path(base).is_file()


def _map_name(training: str) -> str:
    from trimtab.api import fit

    return fit(f"{training}-base")


async def _keep_base(client: Client, training: VmafxModelTraining, file: Path) -> None:
    """Put a model where the trainer's pod finds it; it goes with its training."""
    from trimtab.api import Metadata, owner_of
    from trimtab.client import ConfigError
    from trimtab.kinds import ConfigMap

    content = common.contents(file, what="the base model")
    if len(content) > _LARGEST:
        raise ConfigError(
            f"{file} has {len(content) >> 10} KiB, and a ConfigMap takes "
            f"{_LARGEST >> 10}: put it into the storage of the training instead."
        )
    metadata = Metadata(
        name=_map_name(training.metadata.name),
        namespace=training.metadata.namespace,
        ownerReferences=(owner_of(training),),
    )
    kept = ConfigMap(metadata=metadata, binaryData={KEY: content})
    await client.apply(kept, manager="trimtab-vmafx-train")


async def follow(
    client: Client, trainers: Trainers, options: argparse.Namespace, course: Course
) -> int:
    """Tell what becomes of a training, until it is deleted or has been followed."""
    live = sys.stderr.isatty()
    async for status in _seen(client, trainers, options.name):
        lines = course.add(status)
        _tell(lines, f"{status.currentSamples} samples, {course.shown}", live=live)
        if lines and (past := await trainers.history(status.address)):
            course.recall(past)
        if options.until is not None and len(course.versions) >= options.until:
            break
    return 0


def _tell(lines: list[str], now: str, *, live: bool) -> None:
    """Print what is new, and on a terminal how it is now, on a line of its own."""
    if live:
        print("\r\033[K", end="", file=sys.stderr, flush=True)
    for line in lines:
        print(line, flush=True)
    if live:
        print(now, end="", file=sys.stderr, flush=True)


async def _seen(
    client: Client, trainers: Trainers, name: str
) -> AsyncIterator[VmafxModelTrainingStatus]:
    """How a training is, every second: as its trainer says where that can be reached
    from here, else as its object says."""
    import asyncio

    from trimtab.operators.vmafx.training import mirror
    from trimtab.operators.vmafx.training.kinds import VmafxModelTraining

    while True:
        status = (await client.get(VmafxModelTraining, name)).status
        said = None
        if status.address:
            said = mirror.read(await trainers.status(status.address))
        yield mirror.learned(status, said) if said is not None else status
        await asyncio.sleep(_EVERY)
