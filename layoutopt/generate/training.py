"""Training steps: weights, their gradients and optimiser states, forwards and backwards."""

from __future__ import annotations

from layoutopt.graphs.tensor import Tensor
from layoutopt.graphs.unwinding import Graph

BIAS = 10
"""Value of a bias at what it is added to."""


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
        y = graph.grow_matmul(x, used, name=own)
        graph.grow_matmul(y, graph.dim_shuffle(used, (1, 0)), name=f"{own}.back")
        outputs.append(y)
    joined = graph.concat(outputs, 1) if fused else outputs[0]
    activated = graph.grow_elementwise([joined, bias], value=BIAS, name=f"{name}.y")
    gradient = graph.fixed_point([x, joined], w.shape, name=f"{name}.g")
    moments = [graph.sink(w.shape, name=f"{name}.{moment}") for moment in ("m", "v")]
    graph.grow_optimizer_step(w, gradient, moments, name=f"{name}.update")
    return graph.slice(activated, (0, 0), (x.shape[0], wide)) if fused else activated
