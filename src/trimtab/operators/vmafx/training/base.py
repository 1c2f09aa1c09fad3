"""Base models: what a training begins from, when there is none yet.

``fitted`` is a real fit to scores that are known: a hidden layer of random directions,
and the weights behind it that predict those scores best (ridge regression, so there is
one solution). It brings the features to one scale inside: what it is given is what
libvmaf said. ``untrained`` knows nothing, not even the scales; it says so in its
property ``vmafx.origin``, and is made only for who asks for it by this name.

``python -m trimtab.operators.vmafx.training.base OUT --features adm,vif,motion --from
SAMPLES`` makes one from a file of samples, one JSON object a line.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Final

import numpy as np

from trimtab.client.errors import ConfigError, TrimtabError
from trimtab.operators.vmafx.training import durable, models
from trimtab.operators.vmafx.training.judging import Figures, figures
from trimtab.operators.vmafx.training.models import Model
from trimtab.operators.vmafx.training.network import (
    Activation,
    Affine,
    Array,
    Dense,
    Network,
    rounded,
)
from trimtab.operators.vmafx.training.problems import BadSample
from trimtab.operators.vmafx.training.samples import Sample, read

HIDDEN: Final = 64
ORIGIN: Final = "vmafx.origin"
FEWEST: Final = 16
_MOST: Final = 1_000_000
_RIDGE: Final = 1e-2
# Of a model that has seen no score: the middle, and how far scores are from it.
_CENTRE, _SPREAD = 50.0, 25.0


def fitted(
    samples: Sequence[Sample],
    names: Sequence[str],
    *,
    random: Random,
    hidden: int = HIDDEN,
) -> tuple[Model, Figures]:
    """A model that fits samples, and how well it does: on the samples themselves.

    Errors: :class:`ConfigError` for too few samples, or scores that are all the same.
    """
    if len(samples) < FEWEST:
        raise ConfigError(
            f"{len(samples)} samples are too few to fit a model to: bring {FEWEST}."
        )
    rows = np.array([each.features for each in samples])
    truth = np.array([each.true_score for each in samples])
    centre, spread = float(truth.mean()), float(truth.std())
    if not spread > 0:
        raise ConfigError("All scores are the same: there is nothing to fit.")
    network = _network(_scaling(rows), hidden, centre=centre, spread=spread)
    vector = _random_vector(network, random)
    _solve(network, vector, rows, (truth - centre) / spread)
    model = _model(network, vector, names, origin="fitted")
    return model, figures(network.scores(rounded(vector), rows), truth)


def untrained(names: Sequence[str], *, random: Random, hidden: int = HIDDEN) -> Model:
    """A model that knows nothing: random weights, and features as they come."""
    plain = Affine(np.ones(len(names)), np.zeros(len(names)))
    network = _network(plain, hidden, centre=_CENTRE, spread=_SPREAD)
    return _model(network, _random_vector(network, random), names, origin="untrained")


def _network(scaling: Affine, hidden: int, *, centre: float, spread: float) -> Network:
    inputs = len(scaling.scale)
    first = Dense(inputs, hidden, 0)
    last = Dense(hidden, 1, first.size)
    ending = Affine(np.array([spread]), np.array([centre]))
    return Network(inputs, (scaling, first, Activation("Relu"), last, ending))


def _scaling(rows: Array) -> Affine:
    """Each feature with a mean of zero, and a deviation of one."""
    mean, deviation = rows.mean(axis=0), rows.std(axis=0)
    # One that never changes says nothing; dividing by its noise would make it loud.
    still = deviation <= 1e-6 * (1.0 + np.abs(mean))
    scale = 1.0 / np.where(still, 1.0, deviation)
    return Affine(scale, -mean * scale)


def _random_vector(network: Network, random: Random) -> Array:
    """Weights as large as their number allows (He), and biases between -1 and 1."""
    made = np.zeros(network.size)
    for part in network.parts:
        if isinstance(part, Dense):
            size = (2.0 / part.inputs) ** 0.5
            count = part.inputs * part.outputs
            drawn = [random.gauss(0.0, size) for _ in range(count)]
            part.weights(made)[:] = np.reshape(drawn, (part.inputs, part.outputs))
            part.biases(made)[:] = [random.uniform(-1, 1) for _ in range(part.outputs)]
    return made


def _solve(network: Network, vector: Array, rows: Array, wanted: Array) -> None:
    """Set the last layer to what predicts best."""
    scaling, first, _, last, _ = network.parts
    assert isinstance(scaling, Affine)
    assert isinstance(first, Dense)
    assert isinstance(last, Dense)
    value = rows * scaling.scale + scaling.shift
    value = np.maximum(value @ first.weights(vector) + first.biases(vector), 0.0)
    value = np.hstack([value, np.ones((len(rows), 1))])
    ridge = _RIDGE * len(rows) * np.eye(value.shape[1])
    solved = np.linalg.solve(value.T @ value + ridge, value.T @ wanted)
    last.weights(vector)[:, 0] = solved[:-1]
    last.biases(vector)[:] = solved[-1:]


def _model(
    network: Network, vector: Array, names: Sequence[str], *, origin: str
) -> Model:
    if len(names) != network.inputs or len(set(names)) != len(names):
        raise ConfigError(
            f"{len(names)} names for {network.inputs} features: name each of them once."
        )
    if wrong := [each for each in names if not each or "," in each]:
        raise ConfigError(f"{wrong[0]!r} is no name of a feature.")
    properties = {ORIGIN: origin}
    return Model(
        network=network, vector=vector, names=tuple(names), properties=properties
    )


def save(model: Model, path: Path) -> None:
    """Write a model that was made here to a file, after it was loaded and compared."""
    content = models.write(model)
    models.verify(content, model, np.zeros((2, model.network.inputs)))
    durable.write(path, content, mode=0o644)


def main(arguments: Sequence[str] | None = None) -> int:
    """Make a model; the exit code."""
    options = _parser().parse_args(arguments)
    names = [each.strip() for each in options.features.split(",")]
    random = Random(options.seed)
    try:
        if options.samples is None:
            model = untrained(names, random=random, hidden=options.hidden)
            said = "It knows nothing: its weights are random."
        else:
            found = _samples(options.samples, len(names))
            model, how = fitted(found, names, random=random, hidden=options.hidden)
            said = f"Of the {len(found)} samples themselves it tells: {how}."
        save(model, options.out)
    except (TrimtabError, OSError) as error:
        print(f"base: {error}", file=sys.stderr)
        return 1
    print(f"{options.out} is made. {said}")
    return 0


def _samples(path: Path, width: int) -> list[Sample]:
    found: list[Sample] = []
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if number > _MOST:
                raise BadSample(f"{path} has more than {_MOST} lines.")
            try:
                found.append(read(line, width=width))
            except BadSample as error:
                raise BadSample(f"{path}, line {number}: {error}") from None
    return found


def _parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="python -m trimtab.operators.vmafx.training.base",
        description="Make a model that a training can begin from.",
    )
    made.add_argument("out", type=Path, metavar="OUT", help="the file to make")
    made.add_argument(
        "--features", required=True, help="the names of the features, between commas"
    )
    made.add_argument("--hidden", type=int, default=HIDDEN, help="size of its layer")
    made.add_argument("--seed", type=int, default=0, help="of what is random")
    source = made.add_mutually_exclusive_group(required=True)
    source.add_argument(
        "--from", type=Path, dest="samples", metavar="FILE", help="samples to fit"
    )
    source.add_argument(
        "--untrained", action="store_true", help="fit nothing: random weights"
    )
    return made


if __name__ == "__main__":
    sys.exit(main())
