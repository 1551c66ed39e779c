"""Layouts that tensors have, and those that are not as they should be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from layoutopt.conversion.backends import BACKENDS
from layoutopt.conversion.carried import carried
from layoutopt.conversion.convert import convert_graph
from layoutopt.conversion.desired import parse_desired
from layoutopt.conversion.graph import ConversionGraph
from layoutopt.conversion.requirements import Requirements
from layoutopt.conversion.rules.op import Op, Shape, Size
from layoutopt.conversion.rules.operator import RemapError
from layoutopt.conversion.rules.registry import OPERATORS, remap
from layoutopt.conversion.verify import verify
from layoutopt.layout.layout import Layout

NCHW = BACKENDS["nchw"]


def lines(graph: ConversionGraph, requirements: Requirements = NCHW) -> list[str]:
    """Return all violations as text."""
    return [str(violation) for violation in verify(graph, requirements)]


def image(layout: str = "*", shape: tuple[Size, ...] = (2, 32, 8, 8)) -> ConversionGraph:
    """Return a graph of one input ``x``."""
    graph = ConversionGraph()
    graph.input("x", shape, layout)
    return graph


def conv(graph: ConversionGraph, x: str, name: str = "conv", **settings: Any) -> str:
    """Add a convolution of 32 channels to 32."""
    w = graph.constant(f"{name}.w", (32, 32, 3, 3))
    return graph.op("Conv", [x, w], {"pads": (1, 1, 1, 1)}, name=name, **settings)


def after(op_type: str, layout: str, shape: Shape, attributes: Mapping[str, Any]) -> str:
    """Return the layout to which letters follow their axes through an op of one operand."""
    graph = image(layout, shape)
    result = graph.op(op_type, ["x"], attributes)
    return str(carried(graph)[result])


def test_dimensions_of_size_1_may_be_of_any_axis() -> None:
    """A converted graph has no transform of axes of size 1, and is as required."""
    graph, wanted = image("NCHW", (1, 1, 8, 8)), parse_desired("Conv=NHWC,HWIO")
    pooled = graph.op("MaxPool", ["x"], {"kernel_shape": (8, 8)}, shape=(1, 1, 1, 1))
    graph.output(graph.op("Conv", [pooled, graph.constant("w", (4, 1, 1, 1))]))
    found = convert_graph(graph, desired=wanted)
    assert found.objective == (0,)
    assert lines(found.graph, wanted) == []


def test_quantised_products_have_rows_of_their_left_operand() -> None:
    """The right one is the fourth input of QLinearMatMul; a vector leaves rows as one axis."""
    graph = image("NCHW", (2, 3, 4, 5))
    y, vector = graph.input("y", (5, 6), "IO"), graph.input("v", (5,))
    one = graph.constant("one", ())
    whole = graph.op("MatMulInteger", ["x", y], shape=(2, 3, 4, 6))
    inputs = ["x", one, one, y, one, one, one, one]
    quantised = graph.op("QLinearMatMul", inputs, shape=(2, 3, 4, 6))
    inputs[3] = vector
    thin = graph.op("QLinearMatMul", inputs, shape=(2, 3, 4))
    found = carried(graph)
    assert [str(found[name]) for name in (whole, quantised, thin)] == ["NCH*", "NCH*", "NC*"]


def test_a_forgotten_transpose_is_found() -> None:
    """The same without the first transpose, and with a ReLU's result used in both orders."""
    graph = image("NCHW", (2, 8, 8, 8))
    w = graph.constant("w", (3, 3, 8, 8), "HWIO")
    y = graph.op("Conv", ["x", w], layouts="NHWC,HWIO", shape=(2, 8, 8, 8))
    graph.op("Add", ["x", y])
    assert lines(graph, BACKENDS["nhwc"]) == [
        "Conv 'conv0', input 0 'x': has NCHW, needs NHWC: a convolution's data (N, C, H, W) "
        "consumed as a convolution's data (N, H, W, C): C is read as H, H is read as W, "
        "W is read as C",
        "Add 'add0', input 1 'conv0': has NHWC, needs NCHW: operands must have the same axes, "
        "and dimension 1 is H where others have C",
    ]


def test_weights_that_are_computed_may_be_named() -> None:
    """A reshape forgets the letters, or is told others."""
    graph = image()
    kernel = conv(graph, graph.input("kernel", (32, 32, 5, 5)), "first")
    free = graph.op("Reshape", [kernel], {"shape": (32, 32, 5, 5)})
    graph.op("Conv", ["x", free])
    told = graph.op("Reshape", [kernel], layouts="->OIHW", shape=(32, 32, 5, 5))
    graph.op("Conv", ["x", told])
    assert lines(graph) == []
    wrong = graph.op("Reshape", [kernel], layouts="->NCHW", shape=(32, 32, 5, 5))
    graph.op("Conv", ["x", wrong])
    assert len(lines(graph)) == 1


class Aligned(Requirements):
    """Data in NHWC whose rows are aligned to 64 bytes."""

    def default_layout(self, rank: int) -> Layout:
        """Return the layout of images."""
        return Layout.parse("NH[a=64]WC" if rank == 4 else "*" * rank)


def test_a_batch_of_unknown_size_does_not_matter_to_inner_strides() -> None:
    graph = image("NHWC", ("batch", 8, 8, 4))
    graph.op("LRN", ["x"], {"size": 1}, layouts="NHWC", shape=("batch", 8, 8, 4))
    assert lines(graph, Aligned()) == []
    other = image("NHWC", (1, 8, "width", 4))
    other.op("LRN", ["x"], {"size": 1}, layouts="NHWC->NH[a=64]WC", shape=(1, 8, "width", 4))
    assert lines(other, Aligned()) == [
        "LRN 'lrn0', input 0 'x': has NHWC, needs NH[a=64]WC: the stride of dimension 1 (H) is "
        "known to be a multiple of 16 bytes only, not a multiple of 64"
    ]


def test_ops_of_ranks_that_they_are_not_written_for_are_listed() -> None:
    """What cannot be checked is said, not passed over; opaque ops need nothing."""
    graph = ConversionGraph()
    graph.input("x", None)
    graph.add(Op("Conv", {}, ("x", "x"), ("y",), name="conv"))
    graph.add(Op("my::Op", {}, ("x",), ("z",), name="opaque"))
    [line] = lines(graph)
    assert line.startswith("Conv 'conv', input 0 'x': has __undef__")
    assert "not written for data of this rank" in line


@pytest.mark.parametrize("op_type", OPERATORS)
def test_of_unknown_ranks_nothing_is_told(op_type: str) -> None:
    """Of no type of op an error, a layout, or an order of axes that it could run in."""
    graph = ConversionGraph()
    graph.input("x", None)
    attributes = {"axis": 0, "equation": "ij,jk->ik"}
    op = Op(op_type, attributes, ("x", "x"), ("y",), name="it")
    graph.add(op)
    assert carried(graph)["y"].is_any or carried(graph)["y"].undefined
    with pytest.raises(RemapError):
        remap(graph.ops[0], (1, 0))


def test_operands_left_out_are_not_looked_at() -> None:
    graph = image()
    scales = {"scales": (1.0, 1.0, 2.0, 2.0)}
    graph.op("Resize", ["x", "", ""], scales, shape=(2, 32, 16, 16))
    graph.input("y", (2, 32, 8, 8), "NCHW")
    clipped = graph.op("Clip", ["y", "", graph.constant("most", ())])
    assert str(carried(graph)[clipped]) == "NCHW"
    assert lines(graph) == []
    assert len(lines(graph, BACKENDS["nhwc"])) == 2


class Picky(Requirements):
    """Takes nothing, for reasons of its own, and wants all ReLUs in NHWC."""

    def input_requirement(self, op: Op, n: int) -> Layout:
        """Return NHWC."""
        return Layout.parse("NHWC")

    def is_satisfied_by(
        self, carried: Layout, required: Layout, shape: Shape | None, element_bytes: int
    ) -> bool:
        """Return whether it says nothing."""
        return required.is_any


def test_backends_may_have_reasons_of_their_own() -> None:
    """Also for ops to which axes do not matter."""
    graph = image("NHWC")
    graph.op("Relu", ["x"])
    assert lines(graph, Picky()) == [
        "Relu 'relu0', input 0 'x': has NHWC, needs NHWC: the backend does not take it so"
    ]
