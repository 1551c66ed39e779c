"""Training steps: weights, their gradients and optimiser states, forwards and backwards."""

from __future__ import annotations

from layoutopt.graphs.tensor import Tensor
from layoutopt.graphs.unwinding import Graph

LHS, RHS, CHAIN = 100, 100, 50
"""Values of a matmul's operands at their targets, and of its result at its input."""

UPDATE, BIAS = 20, 10
"""Values of an update's operands, and of a bias at what it is added to."""


def training_step(layers: int, width: int, batch: int = 8, step: int = 0) -> Graph:
    """Return one step of training a chain of dense layers with Adam.

    Every layer multiplies activations by a weight matrix and adds a bias; the backward pass
    multiplies by the transposed matrix; the update reads gradient, weights and two moments.
    Every third layer is a fused one, whose weights are used in three slices, as queries,
    keys and values of attention are.

    Parameters
    ----------
    layers
        Number of layers.
    width
        Width of the first layer.
    batch
        Rows of the activations.
    step
        How much wider every layer is than the one before; with 0 all are alike.
    """
    graph = Graph(
        f"training-step-{layers}x{width}",
        f"Adam step of {layers} dense layers from width {width}, batch {batch}, step {step}",
    )
    x = graph.sink((batch, width), name="x")
    for n in range(layers):
        wide = width + step * (n + 1)
        x = _layer(graph, f"layer{n}", x, wide, fused=n % 3 == 2)
    return graph


def _layer(graph: Graph, name: str, x: Tensor, wide: int, fused: bool) -> Tensor:
    """Add a layer and return its activations."""
    parts = 3 if fused else 1
    rows = x.shape[1]
    w = graph.sink((rows, parts * wide), name=f"{name}.w")
    bias = graph.sink((parts * wide,), name=f"{name}.b")
    outputs = []
    for part in range(parts):
        own = f"{name}.{part}"
        lower, upper = (0, part * wide), (rows, (part + 1) * wide)
        used = graph.slice(w, lower, upper) if fused else w
        y = _matmul(graph, own, x, used)
        _matmul(graph, f"{own}.back", y, graph.dim_shuffle(used, (1, 0)))
        outputs.append(y)
    joined = graph.concat(outputs, 1) if fused else outputs[0]
    activated = graph.sum_like([joined, bias], BIAS, name=f"{name}.y")
    gradient = graph.fixed_point([x, joined], w.shape, name=f"{name}.g")
    moments = [graph.sink(w.shape, name=f"{name}.{moment}") for moment in ("m", "v")]
    graph.sum_like([w, gradient, *moments], UPDATE, name=f"{name}.update")
    return graph.slice(activated, (0, 0), (x.shape[0], wide)) if fused else activated


def _matmul(graph: Graph, name: str, lhs: Tensor, rhs: Tensor) -> Tensor:
    """Add a matmul with targets for its operands, and return its result."""
    y = graph.fixed_point([lhs, rhs], (lhs.shape[0], rhs.shape[1]), name=f"{name}.mm")
    for operand, value, side in ((lhs, LHS, "lhs"), (rhs, RHS, "rhs")):
        target = graph.source(operand.shape, name=f"{name}.{side}")
        graph.valued_pair(operand, target, value)
    if lhs.shape == y.shape:
        graph.valued_pair(lhs, y, CHAIN)
    return y
