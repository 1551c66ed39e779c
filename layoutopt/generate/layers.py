"""Layers of training steps, forwards and backwards, and the update of what they learn.

A layer is a function that appends its forward pass and returns its output together with a
function ``back``.  That one appends the backward pass: it takes the output's gradient, notes those
of the layer's parameters, and returns the input's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise

from layoutopt.graphs.op import Shape
from layoutopt.graphs.tensor import Tensor
from layoutopt.graphs.unwinding import Graph

Back = Callable[[Tensor], Tensor]
"""From the gradient of a layer's output to that of its input."""


class Step:
    """One training step: a graph, its trainable parameters and their gradients.

    Parameters
    ----------
    graph
        Where everything is appended.
    states
        Suffixes of the optimiser's states: ``("m", "v")`` are those of Adam.
    """

    def __init__(self, graph: Graph, states: Sequence[str]) -> None:
        self.graph, self.states = graph, states
        self.gradients: dict[Tensor, Tensor] = {}

    def parameter(self, shape: Shape, name: str) -> Tensor:
        """Add a trainable parameter: a sink."""
        return self.graph.sink(shape, name=name)

    def learn(self, parameter: Tensor, gradient: Tensor) -> None:
        """Note a gradient; several of one parameter are added up one by one."""
        if parameter in self.gradients:
            gradient = self.graph.grow_elementwise([self.gradients[parameter], gradient])
        self.gradients[parameter] = gradient

    def update(self, flat: bool = False) -> None:
        """Add the optimiser's states and the update of every parameter that has a gradient.

        Parameters
        ----------
        flat
            Whether all parameters are updated at once, in one buffer into which they are
            flattened one after the other, with gradients and states in such buffers, too, as
            ZeRO (Rajbhandari et al. 2020) keeps them.
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
    step: Step, x: Tensor, weights: Sequence[Tensor], biases: Sequence[Tensor], name: str
) -> tuple[Tensor, Back]:
    """Add a product with weights, and a bias if there is one.

    Parameters
    ----------
    x
        Of shape ``(rows, inputs)``.
    weights
        Matrices of ``inputs`` rows that stand side by side: they are used as one.
    biases
        None, or a vector for each of the matrices.
    """
    graph = step.graph
    w = graph.concat(weights, 1) if len(weights) > 1 else weights[0]
    y: Tensor = graph.grow_matmul(x, w, name=name)
    if biases:
        bias = graph.concat(biases, 0) if len(biases) > 1 else biases[0]
        y = graph.grow_elementwise([y, bias], name=f"{name}.biased")

    def back(dy: Tensor) -> Tensor:
        gradient = graph.grow_matmul(x.T, dy, name=f"{name}.gradient")
        ends = accumulate((part.shape[1] for part in weights), initial=0)
        for part, (a, b) in zip(weights, pairwise(ends), strict=True):
            step.learn(part, gradient[:, a:b])
        if biases:
            total = graph.sum_like_reduce(dy, (dy.shape[1],))
            ends = accumulate((part.size for part in biases), initial=0)
            for part, (a, b) in zip(biases, pairwise(ends), strict=True):
                step.learn(part, total[a:b])
        return graph.grow_matmul(dy, w.T, name=f"{name}.back")

    return y, back


def norm(step: Step, x: Tensor, name: str, bias: bool = True) -> tuple[Tensor, Back]:
    """Add a normalisation along the last dimension, with a gain, and a bias if there is one.

    What it divides and subtracts is computed row by row and draws nothing.
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
    """Add the gradient of a network's output: known, whatever the output's layout is."""
    return graph.fixed_point([output], output.shape, name="loss.back")
