"""Orders with parts of axes: blocks that are required, and what a reshape leaves."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest

from layoutopt.base.result import Status
from layoutopt.conversion.backends import BlockedCpu
from layoutopt.conversion.convert import convert_graph
from layoutopt.conversion.cost_table import costs_from
from layoutopt.conversion.desired import parse_desired
from layoutopt.conversion.graph import ConversionGraph
from layoutopt.conversion.modes import VIEWS, Mode, ModeTable, further_modes
from layoutopt.conversion.rules.op import Op, Size
from layoutopt.layout.factors import (
    OPEN,
    AxisFactor,
    Form,
    Item,
    Order,
    group_of,
    has_factors,
    order_of,
)
from tests.conversion.drawn import drawn
from tests.conversion.exhaustive import least
from tests.conversion.running import assert_same, results_of
from tests.layout.drawn import formed

OBJECTIVES = ["bytes,count", "count,bytes"]


@pytest.mark.parametrize("free_io", [False, True])
@pytest.mark.parametrize("block", [2, 3])
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_required_blocks_are_exact(objective: str, block: int, free_io: bool) -> None:
    """On random graphs whose convolutions take blocks, the cost is that of exhaustive search."""
    wanted, blocked = BlockedCpu(block), 0
    for seed in range(20_000 + 100 * block, 20_016 + 100 * block):
        graph = drawn(seed, 4 + seed % 8)
        if free_io:
            graph.output(graph.ops[len(graph.ops) // 2].outputs[0])
        found = convert_graph(graph, objective=objective, desired=wanted, free_io=free_io)
        assert found.status is Status.OPTIMAL
        most = found.objective[0], found.objective[1]
        assert found.objective == least(graph, objective, free_io, most, wanted), seed
        blocked += any(op.layouts is not None for op in found.graph.ops)
    assert blocked > 4


def test_a_freed_output_stays_free_where_blocks_are_another_choice() -> None:
    """Blocks at a higher price do not ask for the output as it is written."""
    graph = ConversionGraph()
    x, w = graph.input("x", (1, 16, 8, 8)), graph.constant("w", (32, 16, 1, 1))
    graph.output(graph.op("Conv", [x, w]))
    lines = [("NHWC,HWIO", 1), ("NCHW16c,OIHW16i16o", 50)]
    ops = [{"type": "Conv", "layouts": layouts, "us": us} for layouts, us in lines]
    costs = costs_from({"transform": {"us": 5}, "op": ops})
    found = convert_graph(graph, costs=costs, objective="time", free_io=True)
    assert found.objective == found.bound == (10**9,)
    assert [*found.freed.values()] == [(0, 2, 3, 1)] * 2


@pytest.mark.parametrize("free_io", [False, True])
@pytest.mark.parametrize("seed", range(40))
def test_graphs_in_blocks_compute_the_same(seed: int, free_io: bool) -> None:
    """Outputs are what they were, and the proved number of transposes is what is there."""
    graph = drawn(21_000 + seed)
    wanted = BlockedCpu(2 + seed % 2)
    found = convert_graph(graph, objective="count,bytes", free_io=free_io, desired=wanted)
    assert_same(graph, found, seed)


def _orders(shape: tuple[int, ...], draw: Random) -> list[Order]:
    """Return random orders, each of them once, some axes cut into two parts."""
    found: dict[Order, None] = {}
    for _ in range(12):
        items: list[int | AxisFactor] = []
        for axis, size in enumerate(shape):
            inner = draw.choice([d for d in range(1, size + 1) if size % d == 0])
            if draw.random() < 0.7 and 1 < inner < size:
                items += [AxisFactor(axis, inner, size // inner), AxisFactor(axis, 1, inner)]
            else:
                items.append(axis)
        draw.shuffle(items)
        found[order_of(tuple(items), shape)] = None
        found[order_of(tuple(sorted(items, key=_place)), shape)] = None
    return [*found]


def _place(item: int | AxisFactor) -> tuple[int, int]:
    return (item.axis, item.stride) if isinstance(item, AxisFactor) else (item, 0)


def one(
    type: str,
    *shapes: tuple[Size, ...] | None,
    opset: int = 18,
    out: tuple[int, ...] | None = None,
    **attributes: object,
) -> Op:
    """Return an op, as a graph would have it."""
    graph = ConversionGraph(opset=opset)
    names = [graph.input(f"x{n}", shape) for n, shape in enumerate(shapes)]
    graph.op(type, names, attributes, shape=out)
    return graph.ops[0]


C, D = (2, 12, 3, 4), (2, 4, 6, 2)
OPS = {
    "relu": one("Relu", C),
    "add": one("Add", C, C),
    "add channels": one("Add", C, (12, 1, 1)),
    "add a row": one("Add", C, (3, 4)),
    "add a scalar": one("Add", C, ()),
    "mul both ways": one("Mul", (2, 12, 1, 4), (1, 12, 3, 1)),
    "where": one("Where", C, (2, 1, 3, 4), C),
    "clip": one("Clip", C, (), ()),
    "concat": one("Concat", C, (2, 24, 3, 4), axis=1),
    "concat apart": one("Concat", C, (2, 12, 5, 4), axis=-2),
    "concat of one": one("Concat", (2, 1, 3, 4), (2, 12, 3, 4), axis=1),
    "concat odd": one("Concat", C, (2, 7, 3, 4), axis=1),
    "mean": one("ReduceMean", C, axes=(2, 3), keepdims=1),
    "mean of channels": one("ReduceMean", C, axes=(1,), keepdims=1),
    "sum away": one("ReduceSum", C, axes=(1, 3), keepdims=0),
    "max of all": one("ReduceMax", C, axes=(0, 1, 2, 3), keepdims=0),
    "argmax": one("ArgMax", C, axis=2, keepdims=0),
    "argmax of channels": one("ArgMax", C, axis=1),
    "softmax": one("Softmax", C, axis=3),
    "softmax of channels": one("Softmax", C, axis=1),
    "old softmax": one("Softmax", C, opset=11, axis=3),
    "pad": one("Pad", C, pads=(0, 0, 1, 0, 0, 0, 0, 2)),
    "pad channels": one("Pad", C, pads=(0, 1, 0, 0, 0, 0, 0, 0)),
    "pad of named axes": one("Pad", C, pads=(1, 0, 0, 2), axes=(-1, 2)),
    "pad of axes in another order": one("Pad", C, pads=(0, 0, 1, 0, 0, 0, 0, 2), axes=(0, 1, 3, 2)),
    "quantise": one("QuantizeLinear", C, (), (), opset=21),
    "quantise channels": one("QuantizeLinear", C, (12,), (12,), opset=21),
    "dequantise": one("DequantizeLinear", C, (), (), opset=21),
    "dequantise by a vector of one": one("DequantizeLinear", (12,), (1,), (1,), opset=21),
    "slice": one("Slice", C, (1,), (1,), axes=(2,), out=(2, 12, 2, 4)),
    "split": one("Split", D, axis=2),
    "flatten": one("Flatten", C, axis=1),
    "flatten in the middle": one("Flatten", D, axis=2),
    "join": one("Reshape", C, shape=(2, 12, 12)),
    "join all but one": one("Reshape", C, shape=(2, -1)),
    "cut": one("Reshape", (2, 12, 12), shape=(2, 4, 3, 12)),
    "cut and join": one("Reshape", (4, 6, 10), shape=(8, 3, 10)),
    "cut through": one("Reshape", (4, 9), shape=(6, 6)),
    "gemm": one("Gemm", (6, 12), (12, 4)),
    "gemm turned": one("Gemm", (12, 6), (4, 12), transA=1, transB=1),
    "gemm with rows": one("Gemm", (6, 12), (12, 4), (6, 1)),
    "gemm with columns": one("Gemm", (6, 12), (12, 4), (4,)),
    "gemm with a row": one("Gemm", (12, 6), (6, 4), (1, 4), opset=7),
    "gemm with a number": one("Gemm", (12, 6), (6, 4), ()),
    "gemm with all": one("Gemm", (12, 6), (6, 8), (12, 8), alpha=1.0),
    "matmul": one("MatMul", (2, 6, 12), (12, 4)),
    "matmul as gemm": replace(one("MatMul", (6, 12), (12, 4)), element_type="float"),
    "matmul of batches": one("MatMul", (4, 6, 12), (2, 4, 12, 4)),
    "gather": one("Gather", C, (2,), axis=1),
    "cumsum": one("CumSum", C, (), axis=1),
}
NEVER = {
    "old softmax",
    "gather",
    "cumsum",
    "cut through",
    "pad of axes in another order",
    "dequantise by a vector of one",
}
"""Ops that run on whole axes only."""


@pytest.mark.parametrize("name", OPS)
def test_each_mode_computes_the_same(name: str) -> None:
    """On operands in the forms of a mode an op gives the same results, in the forms it tells."""
    op, draw, tried = OPS[name], Random(name), 0
    every = ModeTable().of(op).every
    for slot, shape in enumerate((*op.input_shapes, *op.output_shapes)):
        assert shape is not None
        for order in _orders(shape, draw):  # type: ignore[arg-type]  # sizes are known
            if not has_factors(order) and op.type not in VIEWS:
                continue
            for mode in further_modes(op, slot, order, every):
                assert mode.orders[slot] == order
                _same(op, mode)
                tried += 1
    assert (tried > 0) == (name not in NEVER)


def _modes(op: Op, slot: int, order: Order) -> list[Mode]:
    return further_modes(op, slot, order, ModeTable().of(op).every)


def _same(op: Op, mode: Mode) -> None:
    draw = np.random.default_rng(1)
    given = [draw.integers(0, 2, s).astype(_kind(op, n)) for n, s in enumerate(op.input_shapes)]  # type: ignore[arg-type]
    if op.type == "Slice":
        given[1:] = [np.array([1]), np.array([3])]
    if op.type in ("QuantizeLinear", "DequantizeLinear"):
        given[1] = given[1] / 4 + 0.25
    wanted = results_of(op, given)
    inputs = [_formed(x, form) for x, form in zip(given, mode.inputs, strict=True)]
    inputs = [inputs[n] for n in mode.operands or range(len(inputs))]
    kind = mode.type or op.type
    bias = inputs.pop() if kind == "MatMul" and len(inputs) > 2 else 0
    shapes, names = tuple(x.shape for x in inputs), op.inputs[: len(inputs)]
    changed = replace(op, type=kind, attributes=mode.attributes, inputs=names, input_shapes=shapes)
    found = results_of(changed, inputs)
    found = [each + bias for each in found] if kind == "MatMul" else found
    for a, b, form in zip(wanted, found, mode.outputs, strict=True):
        np.testing.assert_allclose(b, _formed(a, form), rtol=1e-12)


def _kind(op: Op, n: int) -> str:
    if op.type == "Where" and n == 0:
        return "bool"
    quantised = {"QuantizeLinear": (2,), "DequantizeLinear": (0, 2)}.get(op.type, ())
    return "uint8" if n in quantised else "float64"


def _formed(array: np.ndarray, form: Form | None) -> np.ndarray:
    return array if form is None else formed(array, form)


BLOCKS: Order = (0, AxisFactor(1, 4, 3), 2, 3, AxisFactor(1, 1, 4))
"""NCHW4c of 12 channels."""

BEHIND: Order = (AxisFactor(1, 4, 3), 2, 3, 0, AxisFactor(1, 1, 4))
"""The same with N next to the channels inside."""

IMAGES: Order = (AxisFactor(0, 3, 2), 1, AxisFactor(0, 1, 3))
"""Channels behind the number of the image, and in front of its pixels."""

NO_MODES: dict[str, tuple[Op, int, Order]] = {
    "axes in another order, no parts": (OPS["relu"], 0, (0, 2, 3, 1)),
    "a shape that is computed": (one("Reshape", C, (3,), out=("N", 12, 12)), 0, BLOCKS),
    "what is reshaped has no known rank": (one("Reshape", None, shape=C, out=C), 1, BLOCKS),
    "no elements": (one("Reshape", (0, 12, 3, 4), shape=(0, 12, 12)), 0, BLOCKS),
    "joined with an open size": (one("Reshape", (4, "N", 6), shape=(-1, 6)), 0, (0, 2, 1)),
    "two open sizes": (one("Reshape", ("N", "C", 3, 4), shape=(0, -1, 12)), 0, (2, 3, 0, 1)),
    "cut from an open size": (one("Reshape", ("N", 6), shape=(4, -1, 6)), 1, (1, 2, 0)),
    "a row times a matrix": (
        one("MatMul", (12,), (12, 4)),
        1,
        (AxisFactor(0, 1, 4), 1, AxisFactor(0, 4, 3)),
    ),
    "rows of unknown rank": (
        one("Gemm", (6, 12), (12, 4), None),
        0,
        (0, AxisFactor(1, 1, 4), AxisFactor(1, 4, 3)),
    ),
    "a scaled product": (one("Gemm", (6, 12), (12, 4), alpha=2.0), 0, IMAGES),
    "before Add broadcasts": (one("Gemm", (6, 12), (12, 4), (4,), opset=6), 0, IMAGES),
    "a single column": (one("Gemm", (6, 12), (12, 1)), 0, IMAGES),
    "no columns": (one("MatMul", (6, 12), (12, 0)), 0, IMAGES),
    "scales": (OPS["quantise channels"], 1, (AxisFactor(0, 1, 4), AxisFactor(0, 4, 3))),
    "an unknown operand": (one("Concat", C, None, axis=0, out=(4, 12, 3, 4)), 0, BLOCKS),
    "pads that are computed": (one("Pad", C, (8,), out=(2, 12, 4, 4)), 0, BLOCKS),
    "a slice of unknown axes": (one("Slice", C, (1,), (1,), (1,), out=(2, 12, 2, 4)), 0, BLOCKS),
    "a slice of unknown starts": (one("Slice", C, (1,), (1,), out=(1, 12, 3, 4)), 0, BLOCKS),
}


@pytest.mark.parametrize("name", NO_MODES)
def test_what_is_not_known_runs_on_whole_axes(name: str) -> None:
    """There is no mode in parts where it could not be written, or would need what is not known."""
    assert not _modes(*NO_MODES[name])


@pytest.mark.parametrize(
    ("shape", "order", "size", "written"),
    [
        (("N", 12, 3, 4), BLOCKS, (0, 12, 12), (0, 3, 12, 4)),
        (("N", 12, 3, 4), BLOCKS, (-1, 12, 12), (-1, 3, 12, 4)),
        (("N", 12, 3, 4), BEHIND, (0, 12, 12), (3, 12, -1, 4)),
        (("N", 12, 3, 4), BEHIND, (0, 36, 4), (3, 3, 4, 0, 4)),
        ((2, 12, "N", 4), BLOCKS, (2, 3, 4, -1, 4), (2, 3, -1, 4, 4)),
    ],
)
def test_open_sizes_are_copied_or_left_open(
    shape: tuple[Size, ...], order: Order, size: tuple[int, ...], written: tuple[int, ...]
) -> None:
    """A Reshape of blocks beside an open size computes the same, whatever that size is."""
    [mode] = _modes(one("Reshape", shape, shape=size), 0, order)
    assert mode.attributes["shape"] == written
    for n in (1, 5):
        known = tuple(n if size == "N" else size for size in shape)
        _same(one("Reshape", known, shape=size), mode)


@pytest.mark.parametrize(
    ("shape", "size", "slot", "order", "written"),
    [
        (("N", 4, 6), (-1, 6), 0, (0, 2, 1), (-1, 6, 4)),
        (("N", 6), (-1, 4, 6), 1, (1, 0, 2), (4, -1, 6)),
        (("N", 2, 4, 6), (-1, 8, 6), 0, (1, 0, 2, 3), (2, -1, 4, 6)),
        (("N", 6), (-1, 4, 6), 0, (AxisFactor(0, 8, OPEN), 1, AxisFactor(0, 1, 8)), (-1, 6, 2, 4)),
    ],
)
def test_the_outermost_of_joined_axes_may_be_open(
    shape: tuple[Size, ...], size: tuple[int, ...], slot: int, order: Order, written: Any
) -> None:
    """Its outermost factor is what is left: the Reshape computes the same, however much that is."""
    [mode] = _modes(one("Reshape", shape, shape=size), slot, order)
    assert mode.attributes["shape"] == written
    for n in (8, 24):
        op = one("Reshape", tuple(n if size == "N" else size for size in shape), shape=size)
        forms = map(_closed, mode.forms, op.shapes)
        _same(op, replace(mode, inputs=(next(forms),), outputs=(next(forms),)))


def _closed(form: Form | None, shape: Any) -> Form | None:
    """Return a form with the sizes of its outermost factors, which are open."""

    def closed(item: Item) -> Item:
        is_open = isinstance(item, AxisFactor) and item.size == OPEN
        return item._replace(size=shape[item.axis] // item.stride) if is_open else item  # type: ignore[union-attr]

    dims = [tuple(map(closed, group_of(dim))) for dim in form or ()]
    return form and tuple(dim[0] if len(dim) == 1 else dim for dim in dims)


def test_an_operand_that_is_left_out_has_no_form() -> None:
    """A Gemm whose third operand is left out runs as one of two operands."""
    gemm, order = OPS["gemm"], (0, AxisFactor(1, 1, 4), AxisFactor(1, 4, 3))
    left_out = replace(gemm, inputs=(*gemm.inputs, ""), input_shapes=(*gemm.input_shapes, None))
    pairs = zip(_modes(gemm, 0, order), _modes(left_out, 0, order), strict=True)
    for plain, found in pairs:
        assert (found.inputs, found.outputs) == ((*plain.inputs, None), plain.outputs)


def test_a_tower_in_blocks() -> None:
    """Convolutions in blocks, with sums, joins and pools between, need two transforms in all."""
    graph = ConversionGraph("tower")
    x = graph.input("x", (1, 32, 8, 8), "NCHW")
    left = graph.op("Relu", [graph.op("Conv", [x, graph.constant("a", (32, 32, 1, 1))])])
    right = graph.op("Conv", [left, graph.constant("b", (32, 32, 1, 1))])
    both = graph.op("Concat", [graph.op("Add", [left, right]), right], {"axis": 1})
    pooled = graph.op("MaxPool", [both], {"kernel_shape": (2, 2), "strides": (2, 2)})
    graph.output(graph.op("Conv", [pooled, graph.constant("c", (16, 64, 1, 1))], name="y"))
    found = convert_graph(graph, objective="count,bytes", desired=BlockedCpu())
    assert found.objective == (2, 32 * 64 * 4 + 16 * 16 * 4)
    assert found.graph.tensors["y"].shape == (1, 16, 4, 4)
    assert [(one.before, one.after) for one in found.remaining] == [
        ("NCHW", "NCHW16c"),
        ("NHWC", "NCHW"),
    ]


@pytest.mark.parametrize("channels", [1, 3])
def test_elementwise_ops_run_padded_whatever_the_number_of_channels(channels: int) -> None:
    """One channel is padded like three; a constant with one is not broadcast into padding."""
    graph = ConversionGraph()
    x, shift = graph.input("x", (1, 4, 3)), graph.constant("s", (1, channels, 1))
    first = graph.op("Conv", [x, graph.constant("a", (channels, 4, 1))])
    relu = graph.op("Relu", [graph.op("Add", [first, shift])])
    graph.output(graph.op("Conv", [relu, graph.constant("b", (4, channels, 1))]))
    wanted = parse_desired("Conv=NCW4c,OIW4i4o", padding=True)
    found = convert_graph(graph, objective="count", desired=wanted)
    assert found.objective == (2,)
    assert_same(graph, found, 0)


def test_transforms_that_pad_or_cut_are_told_as_one() -> None:
    """Ops at their ends are those of the network, not a Transpose beside a Pad or a Slice."""
    graph = ConversionGraph()
    x, w = graph.input("x", (1, 3, 4, 4)), graph.constant("w", (6, 3, 1, 1))
    graph.output(graph.op("Relu", [graph.op("Conv", [x, w], name="c")], name="y"))
    found = convert_graph(graph, desired=parse_desired("Conv=NCHW8c", padding=True))
    assert {op.type for op in found.graph.ops} >= {"Pad", "Transpose", "Slice"}
    ends = [(one.giver, one.takers) for one in found.remaining]
    assert ends == [("input 'x'", ("Conv 'c'",)), ("Conv 'c'", ("output 'y'",))]


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_padded_blocks_are_exact(objective: str) -> None:
    """Where blocks do not divide channels are padded, and the cost is that of exhaustive search."""
    wanted, padded = parse_desired("Conv=NCW2c", padding=True), 0
    for seed in range(23_000, 23_032):
        graph = drawn(seed, 4 + seed % 7)
        found = convert_graph(graph, objective=objective, desired=wanted)
        assert found.status is Status.OPTIMAL
        most = found.objective[0], found.objective[1]
        assert found.objective == least(graph, objective, False, most, wanted), seed
        assert_same(graph, found, seed)
        padded += any(op.name.startswith(("pad_", "slice_")) for op in found.graph.ops)
    assert padded > 5
