"""A network: numbers in a row become a score, and the score says how to do better.

It is a chain of three kinds of parts: *dense* layers, whose weights are learned;
*activations* between them; and *affine* parts, which bring features to one scale and
the result to that of a score, and are never learned. All that is learned is one vector,
so that whatever is done to the weights is done to a vector.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]
Kind: TypeAlias = Literal["Relu", "LeakyRelu", "Sigmoid", "Tanh"]

KINDS: Final[tuple[Kind, ...]] = ("Relu", "LeakyRelu", "Sigmoid", "Tanh")


class Affine(NamedTuple):
    """``x * scale + shift``, each feature by itself."""

    scale: Array
    shift: Array


class Dense(NamedTuple):
    """``x @ weights + biases``, which the vector has from ``at`` on, in this order."""

    inputs: int
    outputs: int
    at: int

    @property
    def size(self) -> int:
        return (self.inputs + 1) * self.outputs

    def weights(self, vector: Array) -> Array:
        """A view of its weights, one row for each input."""
        end = self.at + self.inputs * self.outputs
        return vector[self.at : end].reshape(self.inputs, self.outputs)

    def biases(self, vector: Array) -> Array:
        """A view of its biases."""
        return vector[self.at + self.inputs * self.outputs : self.at + self.size]


class Activation(NamedTuple):
    """A bend, the same for each number; ``slope`` is that of a leaky one below zero."""

    kind: Kind
    slope: float = 0.01


Part: TypeAlias = Affine | Dense | Activation


class Network(NamedTuple):
    """The form of a network, which does not change while it learns.

    Assumptions: the parts fit each other, and the last gives one number; whoever reads
    a model sees to that.
    """

    inputs: int
    parts: tuple[Part, ...]

    @property
    def size(self) -> int:
        """How many numbers are learned."""
        return sum(part.size for part in self.parts if isinstance(part, Dense))

    def scores(self, vector: Array, features: Array) -> Array:
        """The score of each row of features."""
        value = features
        for part in self.parts:
            value = _forward(part, vector, value)
        return value[:, 0]

    def slope(
        self, vector: Array, features: Array, truth: Array
    ) -> tuple[float, Array]:
        """The mean of the squared errors, and where it grows: its gradient."""
        values = [features]
        for part in self.parts:
            values.append(_forward(part, vector, values[-1]))
        error = values[-1][:, 0] - truth
        gradient = np.zeros_like(vector)
        back = (2.0 / len(truth)) * error[:, np.newaxis]
        for part, before, after in zip(
            reversed(self.parts), values[-2::-1], values[:0:-1], strict=True
        ):
            back = _backward(part, vector, (before, after), back, into=gradient)
        return float(np.mean(error * error)), gradient


def _forward(part: Part, vector: Array, value: Array) -> Array:
    if isinstance(part, Affine):
        return value * part.scale + part.shift
    if isinstance(part, Dense):
        return value @ part.weights(vector) + part.biases(vector)
    if part.kind == "Relu":
        return np.maximum(value, 0.0)
    if part.kind == "LeakyRelu":
        return np.where(value > 0.0, value, part.slope * value)
    if part.kind == "Tanh":
        return np.tanh(value)
    # The same as 1 / (1 + exp(-x)), for which no number is too large.
    return 0.5 * (1.0 + np.tanh(0.5 * value))


def _backward(
    part: Part,
    vector: Array,
    around: tuple[Array, Array],
    back: Array,
    *,
    into: Array,
) -> Array:
    """What the error of a part's result is of what came in; adds to the gradient."""
    before, after = around
    if isinstance(part, Affine):
        return back * part.scale
    if isinstance(part, Dense):
        part.weights(into)[:] += before.T @ back
        part.biases(into)[:] += back.sum(axis=0)
        return back @ part.weights(vector).T
    if part.kind == "Relu":
        return back * (before > 0.0)
    if part.kind == "LeakyRelu":
        return back * np.where(before > 0.0, 1.0, part.slope)
    if part.kind == "Tanh":
        return back * (1.0 - after * after)
    return back * after * (1.0 - after)


def rounded(vector: Array) -> Array:
    """The vector as a model holds it, in single precision."""
    return vector.astype(np.float32).astype(np.float64)
