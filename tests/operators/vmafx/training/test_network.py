"""Laws of networks: gradients are slopes, and a file scores as its network does."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from trimtab.operators.vmafx.training import models
from trimtab.operators.vmafx.training.models import Model
from trimtab.operators.vmafx.training.network import (
    KINDS,
    Activation,
    Affine,
    Dense,
    Network,
    Part,
)
from trimtab.operators.vmafx.training.problems import BadModel


@st.composite
def networks(draw: st.DrawFn) -> Model:
    """A chain of any length, with or without scales at its ends."""
    seed = draw(st.integers(0, 2**32 - 1))
    chance = np.random.default_rng(seed)
    widths = draw(st.lists(st.integers(1, 6), min_size=1, max_size=4))
    parts: list[Part] = []
    if draw(st.booleans()):
        scale = chance.uniform(0.2, 3.0, widths[0])
        parts.append(Affine(scale, chance.normal(size=widths[0])))
    at = 0
    for inputs, outputs in zip(widths, [*widths[1:], 1], strict=True):
        dense = Dense(inputs, outputs, at)
        at += dense.size
        slope = draw(st.sampled_from([0.01, 0.25]))
        parts += [dense, Activation(draw(st.sampled_from(KINDS)), slope)]
    parts.append(Affine(np.array([20.0]), np.array([50.0])))
    network = Network(widths[0], tuple(parts))
    return Model(network=network, vector=chance.normal(size=network.size))


@settings(max_examples=20, deadline=None)
@given(model=networks(), seed=st.integers(0, 2**32 - 1), count=st.integers(1, 5))
def test_the_gradient_is_the_slope_of_the_loss(
    model: Model, seed: int, count: int
) -> None:
    chance = np.random.default_rng(seed)
    network, vector = model.network, model.vector
    features = chance.normal(size=(count, network.inputs))
    truth = chance.uniform(0, 100, count)
    loss, gradient = network.slope(vector, features, truth)
    scores = network.scores(vector, features)
    assert loss == pytest.approx(np.mean((scores - truth) ** 2))
    direction = chance.normal(size=network.size)
    small = 1e-6
    ahead, _ = network.slope(vector + small * direction, features, truth)
    behind, _ = network.slope(vector - small * direction, features, truth)
    measured = (ahead - behind) / (2 * small)
    assert gradient @ direction == pytest.approx(
        measured, rel=1e-4, abs=1e-3 * (1 + abs(loss) ** 0.5)
    )


@settings(max_examples=8, deadline=None)
@given(model=networks(), count=st.integers(1, 7))
def test_a_file_scores_as_its_network_and_is_the_same_when_written_again(
    model: Model, count: int
) -> None:
    content = models.write(model)
    features = np.random.default_rng(count).normal(size=(count, model.network.inputs))
    assert models.verify(content, model, features).shape == (count,)
    again = models.parse(content, name="again")
    assert again.network.inputs == model.network.inputs
    assert models.write(again) == content


def made(model: Model) -> onnx.ModelProto:
    return onnx.load_model_from_string(models.write(model))


def simple(**properties: str) -> Model:
    network = Network(2, (Dense(2, 3, 0), Activation("Relu"), Dense(3, 1, 9)))
    vector = np.arange(13.0) / 10
    return Model(network=network, vector=vector, properties=properties)


def test_a_file_has_the_ends_and_the_version_that_were_promised() -> None:
    names = ("adm2", "motion2")
    model = Model(network=simple().network, vector=simple().vector, names=names)
    proto = made(model)
    assert [(each.domain, each.version) for each in proto.opset_import] == [("", 17)]
    assert [each.name for each in proto.graph.input] == ["features"]
    assert [each.name for each in proto.graph.output] == ["score"]
    rows = proto.graph.input[0].type.tensor_type.shape.dim[0]
    assert rows.dim_param == "batch"
    assert models.parse(models.write(model), name="it").names == names


def test_a_model_of_another_program_with_transposed_weights_is_read() -> None:
    weights = np.array([[1.0, 2.0]], dtype=np.float32)
    nodes = [
        helper.make_node("Sub", ["x", "mean"], ["a"]),
        helper.make_node("Div", ["a", "scale"], ["b"]),
        helper.make_node("Gemm", ["b", "w"], ["y"], transB=1),
    ]
    constants = {"mean": [1.0, 2.0], "scale": [2.0, 4.0]}
    initial = [numpy_helper.from_array(weights, "w")] + [
        numpy_helper.from_array(np.array(value, dtype=np.float32), name)
        for name, value in constants.items()
    ]
    content = graph(nodes, initial).SerializeToString()
    found = models.parse(content, name="other")
    rows = np.array([[3.0, 6.0]])
    assert found.network.scores(found.vector, rows) == pytest.approx([3.0])


def graph(
    nodes: list[onnx.NodeProto], initial: list[onnx.TensorProto]
) -> onnx.ModelProto:
    ends = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [None, width])
        for name, width in (("x", 2), ("y", 1))
    ]
    chain = helper.make_graph(nodes, "g", ends[:1], ends[1:], initializer=initial)
    return helper.make_model(
        chain, opset_imports=[helper.make_opsetid("", 17)], ir_version=8
    )


def weight(name: str = "w", *shape: int) -> onnx.TensorProto:
    return numpy_helper.from_array(np.ones(shape or (2, 1), dtype=np.float32), name)


def gemm(*inputs: str, alpha: float = 1.0) -> onnx.NodeProto:
    return helper.make_node("Gemm", list(inputs), ["y"], alpha=alpha)


def outside() -> onnx.ModelProto:
    found = graph([gemm("x", "w")], [weight()])
    tensor = found.graph.initializer[0]
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="weights.bin")
    tensor.ClearField("raw_data")
    return found


OTHERS: dict[str, tuple[Callable[[], onnx.ModelProto], str]] = {
    "a convolution": (
        lambda: graph(
            [helper.make_node("Softplus", ["x"], ["a"]), gemm("a", "w")], [weight()]
        ),
        "it has a Softplus",
    ),
    "a matrix product": (
        lambda: graph([helper.make_node("MatMul", ["x", "w"], ["y"])], [weight()]),
        "it has a MatMul",
    ),
    "a branch": (
        lambda: graph(
            [
                helper.make_node("Relu", ["x"], ["a"]),
                helper.make_node("Tanh", ["x"], ["b"]),
                gemm("b", "w"),
            ],
            [weight()],
        ),
        "not one link of a chain",
    ),
    "a sum of what came in": (
        lambda: graph(
            [helper.make_node("Add", ["x", "x"], ["a"]), gemm("a", "w")], [weight()]
        ),
        "not with a constant",
    ),
    "a scaled gemm": (
        lambda: graph([gemm("x", "w", alpha=2.0)], [weight()]),
        "scaled by alpha",
    ),
    "nothing to learn": (
        lambda: graph(
            [helper.make_node("Relu", ["x"], ["y"])],
            [],
        ),
        "not one score",
    ),
    "weights elsewhere": (outside, "in another file"),
    "weights that are none": (
        lambda: graph(
            [gemm("x", "w")],
            [numpy_helper.from_array(np.full((2, 1), np.nan, np.float32), "w")],
        ),
        "no numbers",
    ),
}


@pytest.mark.parametrize("what", OTHERS)
def test_another_architecture_is_refused_by_its_name(what: str) -> None:
    build, why = OTHERS[what]
    with pytest.raises(BadModel, match=why) as error:
        models.parse(build().SerializeToString(), name="other.onnx")
    assert "other.onnx" in str(error.value)
    assert str(error.value).endswith(".")


def test_what_is_no_model_or_names_other_features_is_refused() -> None:
    with pytest.raises(BadModel, match="no ONNX model"):
        models.parse(b"hello", name="text")
    wrong = simple(**{models.FEATURES: "a,b,c"})
    with pytest.raises(BadModel, match="names 3 features and takes 2"):
        models.parse(models.write(wrong), name="wrong")


def test_a_file_that_scores_otherwise_is_found_out() -> None:
    model = simple()
    other = Model(network=model.network, vector=model.vector + 0.01)
    features = np.ones((3, 2))
    with pytest.raises(BadModel, match="scores otherwise"):
        models.verify(models.write(other), model, features)
    with pytest.raises(BadModel, match="cannot be loaded"):
        models.verify(b"hello", model, features)
