"""Models: networks as ONNX files, read strictly and written to be read back.

What is read is a chain of ``Gemm``, activations, and ``Sub``, ``Div``, ``Mul``, ``Add``
with constants; anything else is refused by its name. What is written is opset 17, with
one input ``features`` and one output ``score``, any number of rows at once. Features
are brought to one scale inside of the model, if its base did so: whoever uses it hands
in what libvmaf said.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec
import numpy as np
import onnx
from google.protobuf.message import DecodeError
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from trimtab.operators.vmafx.training.network import (
    KINDS,
    Activation,
    Affine,
    Array,
    Dense,
    Network,
    Part,
    rounded,
)
from trimtab.operators.vmafx.training.problems import BadModel

FEATURES: Final = "vmafx.features"
"""The property with the names of the features, in their order, between commas."""
OPSET: Final = 17
_IR: Final = 8  # the one that came with opset 17: older runtimes read it
_LARGEST: Final = 64 << 20
_MOST_PARTS: Final = 64
_MOST_FEATURES: Final = 2_048
_AFFINE: Final = ("Add", "Sub", "Mul", "Div")
_CLOSE: Final = 1e-4


class Model(msgspec.Struct, frozen=True, kw_only=True):
    """A network with its weights, and what it says of itself."""

    network: Network
    vector: NDArray[np.float64]
    names: tuple[str, ...] = ()
    properties: Mapping[str, str] = {}
    # Of the file that it was read from; empty for one that was made here.
    sha256: str = ""


def load(path: Path) -> Model:
    """Read a model that is to learn.

    Errors: :class:`BadModel` for a file that cannot be read, or whose network is not a
    chain of ``Gemm`` and activations; it names what it found.
    """
    try:
        with path.open("rb") as file:
            content = file.read(_LARGEST + 1)
    except OSError as error:
        why = (error.strerror or "no reason given").lower()
        raise BadModel(f"The model {path} cannot be read: {why}.") from error
    return parse(content, name=str(path))


def parse(content: bytes, *, name: str) -> Model:
    """The same for what a file holds; ``name`` is for sentences."""
    if len(content) > _LARGEST:
        raise BadModel(f"The model {name} has more than {_LARGEST >> 20} MiB.")
    try:
        proto = onnx.load_model_from_string(content)
        _refuse_elsewhere(proto, name=name)
        onnx.checker.check_model(proto)
    except (DecodeError, onnx.checker.ValidationError, ValueError) as error:
        raise BadModel(
            f"{name} is no ONNX model that holds together: {_first_line(error)}."
        ) from error
    found = _Reader(proto.graph, name=name).read()
    properties = {each.key: each.value for each in proto.metadata_props}
    listed = properties.get(FEATURES, "")
    names = tuple(each.strip() for each in listed.split(",")) if listed else ()
    if names and len(names) != found[0].inputs:
        raise BadModel(
            f"{name} names {len(names)} features and takes {found[0].inputs}: mend its "
            f"property {FEATURES}."
        )
    return Model(
        network=found[0],
        vector=found[1],
        names=names,
        properties=properties,
        sha256=hashlib.sha256(content).hexdigest(),
    )


def _refuse_elsewhere(proto: onnx.ModelProto, *, name: str) -> None:
    """Refuse what points to other files, before anything would look for them."""
    tensors = [*proto.graph.initializer]
    for node in proto.graph.node:
        tensors += [each.t for each in node.attribute if each.HasField("t")]
    if any(each.data_location == onnx.TensorProto.EXTERNAL for each in tensors):
        raise BadModel(f"The weights of {name} are in another file: put them into it.")


class _Reader:
    """Walks the nodes of a graph, which have to be one chain."""

    def __init__(self, graph: onnx.GraphProto, *, name: str) -> None:
        self._graph = graph
        self._name = name
        self._constants = self._constant()
        self._parts: list[Part] = []
        self._vectors: list[Array] = []
        self._width = 0
        self._at = 0

    def read(self) -> tuple[Network, Array]:
        value = self._input()
        inputs = self._width
        for node in self._graph.node:
            if node.op_type != "Constant":
                value = self._node(node, value)
        outputs = [each.name for each in self._graph.output]
        if outputs != [value] or self._width != 1:
            raise self._other("its end is not one score")
        if not self._vectors:
            raise self._other("it has no Gemm, so nothing to learn")
        vector = np.concatenate(self._vectors)
        if not np.isfinite(vector).all():
            raise BadModel(f"{self._name} has weights that are no numbers.")
        return Network(inputs, tuple(self._parts)), vector

    def _other(self, why: str) -> BadModel:
        return BadModel(
            f"{self._name} cannot be trained, because {why}: a model that can is a "
            "chain of Gemm, Relu, LeakyRelu, Sigmoid and Tanh, from features to one "
            "score."
        )

    def _constant(self) -> dict[str, Array]:
        tensors = {each.name: each for each in self._graph.initializer}
        for node in self._graph.node:
            if node.op_type == "Constant" and node.attribute[0].name == "value":
                tensors[node.output[0]] = node.attribute[0].t
        found = {}
        for name, tensor in tensors.items():
            found[name] = numpy_helper.to_array(tensor).astype(np.float64)
        return found

    def _input(self) -> str:
        inputs = [
            each for each in self._graph.input if each.name not in self._constants
        ]
        if len(inputs) != 1 or len(self._graph.node) > _MOST_PARTS:
            nodes = len(self._graph.node)
            raise self._other(f"it has {len(inputs)} inputs and {nodes} nodes")
        sizes = inputs[0].type.tensor_type.shape.dim
        if len(sizes) != 2 or not 1 <= sizes[1].dim_value <= _MOST_FEATURES:
            raise self._other("its input is not rows of at most 2048 features")
        self._width = sizes[1].dim_value
        return inputs[0].name

    def _node(self, node: onnx.NodeProto, value: str) -> str:
        kind = node.op_type
        if value not in node.input or len(node.output) != 1:
            raise self._other(f"its {kind} is not one link of a chain")
        if kind == "Gemm" and node.input[0] == value:
            self._gemm(node)
        elif kind in _AFFINE:
            self._affine(node, value)
        elif kind in KINDS:
            slope = _attributes(node).get("alpha", 0.01)
            self._parts.append(Activation(kind, slope))
        elif kind != "Identity":
            raise self._other(f"it has a {kind}")
        return node.output[0]

    def _gemm(self, node: onnx.NodeProto) -> None:
        said = _attributes(node)
        if (said.get("alpha", 1.0), said.get("beta", 1.0)) != (1.0, 1.0):
            raise self._other("a Gemm of it is scaled by alpha or beta")
        weights = self._constants.get(node.input[1])
        if weights is None or weights.ndim != 2 or said.get("transA", 0.0):
            raise self._other("the weights of a Gemm are no constant")
        weights = weights.T if said.get("transB", 0.0) else weights
        inputs, outputs = weights.shape
        biases = np.zeros(outputs)
        if len(node.input) > 2 and node.input[2]:
            if (given := self._constants.get(node.input[2])) is None:
                raise self._other("the biases of a Gemm are no constant")
            biases = self._row(given, outputs)
        if inputs != self._width:
            raise self._other("a Gemm of it takes another number of values than come")
        part = Dense(inputs, outputs, self._at)
        self._parts.append(part)
        self._vectors += [weights.ravel(), biases]
        self._at += part.size
        self._width = outputs

    def _affine(self, node: onnx.NodeProto, value: str) -> None:
        kind = node.op_type
        first = node.input[0] == value
        other = self._constants.get(node.input[1] if first else node.input[0])
        if other is None or (not first and kind in ("Sub", "Div")):
            raise self._other(f"its {kind} is not with a constant")
        number = self._row(other, self._width)
        if not np.isfinite(number).all() or (kind == "Div" and not number.all()):
            raise self._other(f"its {kind} is with what is no number")
        one, zero = np.ones(self._width), np.zeros(self._width)
        made = {
            "Add": (one, number),
            "Sub": (one, -number),
            "Mul": (number, zero),
            "Div": (1.0 / number if kind == "Div" else one, zero),
        }[kind]
        # Two in a row are one: what is written and read again does not grow.
        if self._parts and isinstance(last := self._parts[-1], Affine):
            self._parts.pop()
            made = (last.scale * made[0], last.shift * made[0] + made[1])
        self._parts.append(Affine(*made))

    def _row(self, number: Array, width: int) -> Array:
        try:
            return np.array(np.broadcast_to(number, (1, width))[0])
        except ValueError:
            raise self._other("a constant of it does not fit") from None


def _attributes(node: onnx.NodeProto) -> dict[str, float]:
    """Those that are numbers: no other is looked at."""
    made = {}
    for each in node.attribute:
        value = helper.get_attribute_value(each)
        if isinstance(value, int | float):
            made[each.name] = float(value)
    return made


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or ["it cannot be decoded"])[0].rstrip(".")


def write(model: Model) -> bytes:
    """A model as ONNX.

    Guarantees: the same model is the same bytes, and reading them gives it again, in
    single precision.
    """
    writer = _Writer(rounded(model.vector))
    for part in model.network.parts:
        writer.add(part)
    graph = helper.make_graph(
        writer.ended(),
        "vmafx",
        [_rows("features", model.network.inputs)],
        [_rows("score", 1)],
        initializer=writer.constants,
    )
    made = helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=_IR,
        producer_name="trimtab",
    )
    said = dict(model.properties)
    if model.names:
        said[FEATURES] = ",".join(model.names)
    helper.set_model_props(made, said)
    onnx.checker.check_model(made, full_check=True)
    content: bytes = made.SerializeToString(deterministic=True)
    return content


def _rows(name: str, width: int) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["batch", width])


class _Writer:
    """Makes the nodes of a chain, and their constants."""

    def __init__(self, vector: Array) -> None:
        self.constants: list[onnx.TensorProto] = []
        self._vector = vector
        self._nodes: list[onnx.NodeProto] = []
        self._value = "features"

    def add(self, part: Part) -> None:
        if isinstance(part, Dense):
            weights, biases = part.weights(self._vector), part.biases(self._vector)
            self._link("Gemm", weights, biases)
        elif isinstance(part, Affine):
            self._link("Mul", part.scale)
            self._link("Add", part.shift)
        elif part.kind == "LeakyRelu":
            self._link(part.kind, alpha=part.slope)
        else:
            self._link(part.kind)

    def ended(self) -> list[onnx.NodeProto]:
        self._nodes[-1].output[0] = "score"
        return self._nodes

    def _link(self, kind: str, *constants: Array, **attributes: float) -> None:
        number = len(self._nodes)
        names = [f"{kind}.{number}.{index}" for index in range(len(constants))]
        for name, constant in zip(names, constants, strict=True):
            single = np.ascontiguousarray(constant, dtype=np.float32)
            self.constants.append(numpy_helper.from_array(single, name))
        made = f"{kind}.{number}"
        inputs = [self._value, *names]
        node = helper.make_node(kind, inputs, [made], made)
        for name, value in attributes.items():
            node.attribute.append(helper.make_attribute(name, value))
        self._nodes.append(node)
        self._value = made


def verify(content: bytes, model: Model, features: Array) -> Array:
    """The scores that a runtime gives to rows of features, after it has loaded a model.

    Errors: :class:`BadModel` if it cannot be loaded, has another form than promised,
    or scores otherwise than the network that it was made from.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(
            content, options, providers=["CPUExecutionProvider"]
        )
        inputs, outputs = session.get_inputs(), session.get_outputs()
        names = [each.name for each in (*inputs, *outputs)]
        if names != ["features", "score"] or inputs[0].shape[0] != "batch":
            raise BadModel(f"What was written has the ends {', '.join(names)}.")
        single = np.asarray(features, dtype=np.float32)
        found = session.run(["score"], {"features": single})[0]
    except BadModel:
        raise
    except Exception as error:  # the runtime has many of its own
        raise BadModel(
            f"The model that was written cannot be loaded: {_first_line(error)}."
        ) from error
    scores = np.asarray(found, dtype=np.float64)[:, 0]
    expected = model.network.scores(rounded(model.vector), single.astype(np.float64))
    if not np.allclose(scores, expected, rtol=_CLOSE, atol=_CLOSE * 10):
        worst = float(np.max(np.abs(scores - expected)))
        raise BadModel(
            f"The model that was written scores otherwise, by up to {worst:g}."
        )
    return scores
