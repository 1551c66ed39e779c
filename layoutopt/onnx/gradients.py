"""Backward passes of elementwise operations and of those that locations do not pass through."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from layoutopt.graphs.op import Shape, dominates
from layoutopt.graphs.tensor import Tensor
from layoutopt.onnx.elementwise import UNARY, VARIADIC, broadcast_axis, together
from layoutopt.onnx.sketch import Node, Sketch, column


@dataclass(frozen=True, eq=False)
class Use:
    """An operation of a network, ready for its backward rule.

    Parameters
    ----------
    node
        The operation.
    outputs
        Its outputs; ``None`` for one that nobody reads.
    gradients
        The outputs' gradients; ``None`` where there is none.
    wanted
        Positions of the operands whose gradients are needed.  After the last operand those
        that bodies inside the node capture are counted on.
    """

    node: Node
    outputs: tuple[Tensor | None, ...]
    gradients: tuple[Tensor | None, ...]
    wanted: tuple[int, ...]

    @property
    def output(self) -> Tensor:
        """The first output that has a gradient."""
        found = zip(self.outputs, self.gradients, strict=True)
        return next(y for y, dy in found if y is not None and dy is not None)

    @property
    def gradient(self) -> Tensor:
        """The gradient of the first output that has one."""
        return next(dy for dy in self.gradients if dy is not None)

    def operand(self, position: int) -> Tensor:
        """Return an operand, or what comes after the last: a captured tensor."""
        captured = position - len(self.node.inputs)
        return self.node.operand(position) if captured < 0 else self.node.captured[captured]


Gradients: TypeAlias = Iterator[tuple[int, Tensor]]
"""Position and gradient of each wanted operand."""


@dataclass(frozen=True)
class Backward:
    """How the backward pass of an op type enters the graph.

    Parameters
    ----------
    build
        Adds its ops and pairs, and yields the wanted gradients.
    constant
        Positions of operands that are given, not learned: no gradient goes there.
    every
        Whether all outputs have gradients, or the first only.
    """

    build: Callable[[Sketch, Use], Gradients]
    constant: Collection[int] = ()
    every: bool = False


def reduced(sketch: Sketch, dy: Tensor, x: Tensor, placed: Shape | None = None) -> Tensor:
    """Return the gradient of an operand that was broadcast: summed up, in its shape.

    Parameters
    ----------
    dy
        The gradient before it is summed up.
    x
        The operand.
    placed
        The operand's shape beside the larger one; by default its own.
    """
    shape = x.shape if placed is None else placed
    if dy.shape == x.shape:
        return dy
    last = sketch.gradient_name(x)
    name = last if shape == x.shape else sketch.helper(last, "reduce")
    if dominates(dy.shape, shape):
        total = sketch.graph.sum_like_reduce(dy, shape, name=name)
    else:
        total = sketch.graph.barrier([dy], shape, name=name)
    return total if shape == x.shape else sketch.graph.reshape(total, x.shape, name=last)


Saved: TypeAlias = Callable[[Use, int], list[int]]
"""Positions of the operands that the gradient of one is computed with; -1 is the output."""


def nothing(_use: Use, _position: int) -> list[int]:
    """Of a linear operation: the gradient passes as it is, but for a factor."""
    return []


def output(_use: Use, _position: int) -> list[int]:
    """Of a function whose derivative follows from its value."""
    return [-1]


def operands(use: Use, _position: int) -> list[int]:
    """Of any other function."""
    return [i for i, x in enumerate(use.node.inputs) if x is not None]


def others(use: Use, position: int) -> list[int]:
    """Of a product."""
    return [i for i in operands(use, position) if i != position]


def quotient(_use: Use, position: int) -> list[int]:
    """Of ``y = a / b``: ``da = dy / b`` and ``db = -dy y / b``."""
    return [1, -1] if position else [1]


def condition(_use: Use, _position: int) -> list[int]:
    """Of a choice by the first operand."""
    return [0]


def elementwise(sketch: Sketch, use: Use, saved: Saved = operands) -> Gradients:
    """Add one op that reads the output's gradient with all that was saved for it.

    It stands for the gradients of all operands; those of broadcast ones are summed up.
    """
    axis = broadcast_axis(use.node)
    read = dict.fromkeys(i for position in use.wanted for i in saved(use, position))
    dy = use.gradient
    beside = {}
    for i in read:
        x = use.output if i < 0 else use.operand(i)
        if i == 1 and axis is not None:
            x = sketch.aligned(x, len(dy.shape), axis, use.output.name, "gradient.1")
        beside[x.index] = x
    total = dy
    if beside:
        name = sketch.helper(use.output.name, "gradient.back")
        total = together(sketch, name, [dy, *beside.values()], "elementwise_gradient")
    for position in use.wanted:
        x = use.operand(position)
        placed = axis is not None and position == 1
        shape = column(x.shape, len(dy.shape), axis or 0) if placed else None
        yield position, reduced(sketch, total, x, shape)


def opaque(sketch: Sketch, use: Use) -> Gradients:
    """Add a barrier for each gradient, which reads all there is, drawn to its operand."""
    present = [dy for dy in use.gradients if dy is not None]
    read = tuple({x.index: x for x in (*present, *use.node.operands)}.values())
    for position in use.wanted:
        yield position, _drawn_barrier(sketch, read, use.operand(position))


def rowwise(sketch: Sketch, use: Use, inputs: bool = False) -> Gradients:
    """Add a barrier that reads the output's gradient with the output, element by element.

    Parameters
    ----------
    inputs
        Whether the first operand is read, too.
    """
    dy, y, x = use.gradient, use.output, use.operand(0)
    read = [dy, y, x] if inputs else [dy, y]
    for saved in read[1:]:
        sketch.pair(dy, saved, "barrier_gradient.saved")
    for position in use.wanted:
        yield position, _drawn_barrier(sketch, read, use.operand(position))


def normalisation(sketch: Sketch, use: Use, channels: bool = True) -> Gradients:
    """Add a barrier that reads the output's gradient with data and gain, and reductions.

    Parameters
    ----------
    channels
        Whether a vector belongs to the channels, axis 1, rather than to the last axis.
    """
    dy, x, gain = use.gradient, use.operand(0), use.node.optional(1)
    rank = len(x.shape)
    sketch.pair(dy, x, "barrier_gradient.saved")
    read = [dy, x] if gain is None else [dy, x, gain]
    for position in use.wanted:
        p = use.operand(position)
        along = channels and p.shape == x.shape[1:2]
        if position:
            yield position, reduced(sketch, dy, p, column(p.shape, rank, 1) if along else None)
            continue
        if gain is not None:
            name = sketch.helper(use.output.name, "gradient")
            wide = channels and gain.shape == x.shape[1:2]
            beside = sketch.aligned(gain, rank, 1, name, "gain") if wide else gain
            sketch.tie(dy, beside, "barrier_gradient.parameter", name, "gain")
        yield position, _drawn_barrier(sketch, read, x)


def _drawn_barrier(sketch: Sketch, read: Collection[Tensor], x: Tensor) -> Tensor:
    dx = sketch.graph.barrier(read, x.shape, name=sketch.gradient_name(x))
    sketch.pair(dx, x, "barrier_gradient.operand")
    return dx


SAVED: dict[str, Saved] = (
    dict.fromkeys(("Add", "Mean", "Neg", "Sub", "Sum", "Trilu"), nothing)
    | dict.fromkeys(
        ("Elu", "Exp", "LeakyRelu", "Reciprocal", "Relu", "Selu", "Sigmoid", "Sqrt", "Tanh"),
        output,
    )
    | {"Mul": others, "Div": quotient, "Where": condition}
)
"""What elementwise op types save; all others save their operands."""

ELEMENTWISE_GRADIENTS = {
    name: Backward(partial(elementwise, saved=SAVED.get(name, operands)))
    for name in (*UNARY.split(), *VARIADIC.split(), "Clip", "PRelu", "Trilu", "Where")
}

OPAQUE = """
    AveragePool Gather GatherElements GatherND GlobalAveragePool GlobalLpPool GlobalMaxPool LpPool
    MaxPool NegativeLogLikelihoodLoss Pad ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax
    ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare Resize ScatterElements ScatterND
    SoftmaxCrossEntropyLoss Upsample
"""
"""Op types whose backward pass is known and opaque."""

UNLISTED = Backward(opaque, every=True)
"""For op types that have no rule."""

BARRIER_GRADIENTS = (
    dict.fromkeys(OPAQUE.split(), Backward(opaque))
    | dict.fromkeys(("LogSoftmax", "Softmax"), Backward(rowwise))
    | {
        "LRN": Backward(partial(rowwise, inputs=True)),
        "BatchNormalization": Backward(normalisation, constant=(3, 4)),
    }
    | dict.fromkeys(("InstanceNormalization", "GroupNormalization"), Backward(normalisation))
    | dict.fromkeys(
        ("LayerNormalization", "RMSNormalization"),
        Backward(partial(normalisation, channels=False)),
    )
)
