"""Layers of training steps: forward pass, backward pass, and update of parameters.

A layer is a function that appends its forward pass and returns its output together with a
function ``back``.  That one appends the backward pass: it takes the output's gradient, records
of the layer's parameters, and returns the input's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise

from layoutopt.base.errors import InputError
from layoutopt.base.numbers import least
from layoutopt.graphs.ops import Shape
from layoutopt.graphs.tensor import Tensor
from layoutopt.graphs.unwinding import Graph


def at_least(low: int, **numbers: int) -> None:
    """Refuse numbers that are too small."""
    for name, number in numbers.items():
        least(name, number, low)


def divides(**numbers: int) -> None:
    """Refuse two numbers of which the first does not divide the second."""
    (name, part), (whole_name, whole) = numbers.items()
    if whole % part:
        raise InputError(f"{name} is {part}; it must divide {whole_name}, which is {whole}")


BIAS = 10  # value of a bias at what it is added to


def training_step(layers: int, width: int, batch: int = 8, step: int = 0) -> Graph:
    """Return one step of training a chain of dense layers with Adam.

    Every layer multiplies activations by a weight matrix and adds a bias; the backward pass
    multiplies by the transposed matrix; the update reads gradient, weights and two moments. Every
    third layer is a fused one, whose weights are used in three slices, as queries, keys and values
    of attention are.  ``width`` is that of the first layer, and every layer is wider by ``step``
    than the one before; with 0 all are alike.
    """
    at_least(1, layers=layers, width=width, batch=batch)
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


Back = Callable[[Tensor], Tensor]  # from the gradient of a layer's output to that of its input


class TrainingStep:
    """One training step: a graph, its trainable parameters and their gradients.

    ``states`` are suffixes of the optimiser's states: ``("m", "v")`` are those of Adam.
    """

    def __init__(self, graph: Graph, states: Sequence[str]) -> None:
        self.graph, self.states = graph, states
        self.gradients: dict[Tensor, Tensor] = {}

    def parameter(self, shape: Shape, name: str) -> Tensor:
        """Add a trainable parameter: a sink."""
        return self.graph.sink(shape, name=name)

    def learn(self, parameter: Tensor, gradient: Tensor) -> None:
        """Record a gradient; several of one parameter are added up."""
        if parameter in self.gradients:
            gradient = self.graph.grow_elementwise([self.gradients[parameter], gradient])
        self.gradients[parameter] = gradient

    def learn_beside(self, parameters: Sequence[Tensor], gradient: Tensor) -> None:
        """Record the gradient of parameters that stand side by side along the last dimension."""
        ends = accumulate((x.shape[-1] for x in parameters), initial=0)
        for parameter, (a, b) in zip(parameters, pairwise(ends), strict=True):
            self.learn(parameter, gradient[..., a:b])

    def update(self, flat: bool = False) -> None:
        """Add the optimiser's states and the update of every parameter that has a gradient.

        If ``flat``, all parameters are updated at once, in one buffer into which they are flattened
        one after the other, with gradients and states in such buffers, too, as ZeRO (Rajbhandari et
        al. 2020) keeps them.
        """
        if not flat:
            for parameter, gradient in self.gradients.items():
                self._update(parameter, gradient, parameter.name)
            return
        buffer, gradients = (
            self.graph.concat([x.flatten() for x in tensors], 0)
            for tensors in (list(self.gradients), list(self.gradients.values()))
        )
        self._update(buffer, gradients, "flat")

    def _update(self, parameter: Tensor, gradient: Tensor, name: str) -> None:
        states = [self.graph.sink(parameter.shape, name=f"{name}.{s}") for s in self.states]
        self.graph.grow_optimizer_step(parameter, gradient, states, name=f"{name}.update")


def linear(
    step: TrainingStep, x: Tensor, weights: Sequence[Tensor], biases: Sequence[Tensor], name: str
) -> tuple[Tensor, Back]:
    """Add a product of ``x``, of shape ``(rows, inputs)``, with weights, and a bias if wanted.

    Several weights are matrices of ``inputs`` rows that stand side by side and are used as one;
    there are no biases, or a vector for each of them.
    """
    graph = step.graph
    w = graph.concat(weights, 1) if len(weights) > 1 else weights[0]
    y: Tensor = graph.grow_matmul(x, w, name=name)
    if biases:
        bias = graph.concat(biases, 0) if len(biases) > 1 else biases[0]
        y = graph.grow_elementwise([y, bias], name=f"{name}.biased")

    def back(dy: Tensor) -> Tensor:
        step.learn_beside(weights, graph.grow_matmul(x.T, dy, name=f"{name}.gradient"))
        if biases:
            step.learn_beside(biases, graph.sum_like_reduce(dy, (dy.shape[1],)))
        return graph.grow_matmul(dy, w.T, name=f"{name}.back")

    return y, back


def norm(step: TrainingStep, x: Tensor, name: str, bias: bool = True) -> tuple[Tensor, Back]:
    """Add a normalisation along the last dimension, with a gain, and a bias if there is one.

    Mean and variance are computed by row and form no pairs.
    """
    graph = step.graph
    own = [step.parameter(x.shape[-1:], f"{name}.gain")]
    own += [step.parameter(x.shape[-1:], f"{name}.bias")] if bias else []
    y = graph.grow_elementwise([x, *own], name=name)

    def back(dy: Tensor) -> Tensor:
        for parameter in own:
            step.learn(parameter, graph.sum_like_reduce(dy, parameter.shape))
        return graph.grow_elementwise([dy, x, own[0]], name=f"{name}.back")

    return y, back


def loss(graph: Graph, output: Tensor) -> Tensor:
    """Add the gradient of a network's output, a fixed point."""
    return graph.fixed_point([output], output.shape, name="loss.back")
