"""Attention of several heads, forwards and backwards."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from layoutopt.generate.layers import Back, Step, linear
from layoutopt.graphs.tensor import Tensor
from layoutopt.graphs.unwinding import Graph


@dataclass(frozen=True)
class Heads:
    """Sizes of an attention layer.

    Parameters
    ----------
    batch, sequence
        Number of sequences, and tokens of each.
    queries, keys
        Number of query heads, and of key and value heads: each serves ``queries / keys``.
    size
        Width of a head.
    """

    batch: int
    sequence: int
    queries: int
    keys: int
    size: int

    @property
    def widths(self) -> tuple[int, int, int]:
        """Widths of all queries, all keys and all values."""
        return self.queries * self.size, self.keys * self.size, self.keys * self.size

    def split(self, x: Tensor, heads: int) -> Tensor:
        """Return rows of tokens as ``(batch, heads, sequence, size)``."""
        return x.reshape(self.batch, self.sequence, heads, self.size).transpose(0, 2, 1, 3)

    def merge(self, x: Tensor) -> Tensor:
        """Return heads as rows of tokens: the inverse of :meth:`split`."""
        return x.transpose(0, 2, 1, 3).reshape(self.batch * self.sequence, -1)

    def repeat(self, x: Tensor) -> Tensor:
        """Return key or value heads, each as often as there are queries for it."""
        if self.keys == self.queries:
            return x
        one = (self.batch, self.keys, 1, self.sequence, self.size)
        every = (self.batch, self.keys, self.queries // self.keys, self.sequence, self.size)
        whole = (self.batch, self.queries, self.sequence, self.size)
        return x.reshape(one).broadcast_to(every).reshape(whole)

    def gather(self, graph: Graph, gradient: Tensor) -> Tensor:
        """Return the sums of the gradients of repeated heads."""
        if self.keys == self.queries:
            return gradient
        one = (self.batch, self.keys, 1, self.sequence, self.size)
        every = (self.batch, self.keys, self.queries // self.keys, self.sequence, self.size)
        total = graph.sum_like_reduce(gradient.reshape(every), one)
        return total.reshape(self.batch, self.keys, self.sequence, self.size)


Projections = Callable[[list[Tensor]], Tensor]
"""From the gradients of queries, keys and values to that of what they are projected from."""


def sliced_projections(
    step: Step, x: Tensor, heads: Heads, biased: bool, name: str
) -> tuple[list[Tensor], Projections]:
    """Add queries, keys and values as products with three slices of one weight matrix."""
    graph, total = step.graph, sum(heads.widths)
    w = step.parameter((x.shape[1], total), f"{name}.w")
    bias = step.parameter((total,), f"{name}.b") if biased else None
    parts, outputs, start = [], [], 0
    for role, width in zip("qkv", heads.widths, strict=True):
        parts.append(w[:, start : start + width])
        y: Tensor = graph.grow_matmul(x, parts[-1], name=f"{name}.{role}")
        if bias is not None:
            y = graph.grow_elementwise([y, bias[start : start + width]])
        outputs.append(y)
        start += width

    def back(gradients: list[Tensor]) -> Tensor:
        columns = [graph.grow_matmul(x.T, g) for g in gradients]
        step.learn(w, graph.concat(columns, 1, name=f"{name}.gradient"))
        if bias is not None:
            sums = [graph.sum_like_reduce(g, g.shape[1:]) for g in gradients]
            step.learn(bias, graph.concat(sums, 0))
        inputs = [graph.grow_matmul(g, p.T) for g, p in zip(gradients, parts, strict=True)]
        return graph.grow_elementwise(inputs, name=f"{name}.back")

    return outputs, back


def joined_projections(
    step: Step, x: Tensor, heads: Heads, biased: bool, name: str
) -> tuple[list[Tensor], Projections]:
    """Add queries, keys and values as slices of a product with three joined weight matrices."""
    weights = [
        step.parameter((x.shape[1], width), f"{name}.{role}.w")
        for role, width in zip("qkv", heads.widths, strict=True)
    ]
    biases = [
        step.parameter((width,), f"{name}.{role}.b")
        for role, width in zip("qkv", heads.widths, strict=True)
        if biased
    ]
    y, linear_back = linear(step, x, weights, biases, name)
    first, second, _ = heads.widths
    outputs = [y[:, :first], y[:, first : first + second], y[:, first + second :]]

    def back(gradients: list[Tensor]) -> Tensor:
        return linear_back(step.graph.concat(gradients, 1))

    return outputs, back


def rotary(graph: Graph, x: Tensor, tables: list[Tensor], inverse: bool = False) -> Tensor:
    """Add the rotation of a head's two halves by angles that grow with the position.

    It is ``x * cos + concat([-second, first]) * sin`` (Su et al. 2021), and its inverse, which
    carries gradients back, the same with the other half negated.

    Parameters
    ----------
    tables
        Cosines and sines, of shape ``(sequence, size)``; with none nothing is rotated.
    """
    if not tables:
        return x
    first, second = x[..., : x.shape[-1] // 2], x[..., x.shape[-1] // 2 :]
    if inverse:
        turned = graph.concat([second, graph.grow_elementwise([first])], -1)
    else:
        turned = graph.concat([graph.grow_elementwise([second]), first], -1)
    return graph.grow_elementwise([x, turned, *tables])


def attention(
    step: Step, x: Tensor, heads: Heads, tables: list[Tensor], biased: bool, joined: bool, name: str
) -> tuple[Tensor, Back]:
    """Add attention without its output projection.

    Parameters
    ----------
    x
        Of shape ``(batch * sequence, width)``.
    tables
        Of rotary positions, or none.
    biased
        Whether the projections have a bias.
    joined
        Whether the weights of the projections are three that are joined, or slices of one.
    """
    graph = step.graph
    project = joined_projections if joined else sliced_projections
    (q, k, v), projections_back = project(step, x, heads, biased, f"{name}.qkv")
    q = rotary(graph, heads.split(q, heads.queries), tables)
    k = heads.repeat(rotary(graph, heads.split(k, heads.keys), tables))
    v = heads.repeat(heads.split(v, heads.keys))
    scores = graph.grow_matmul(q, k.swapaxes(2, 3), name=f"{name}.scores")
    shares = graph.grow_elementwise([scores], name=f"{name}.softmax")
    mixed = graph.grow_matmul(shares, v, name=f"{name}.mixed")

    def back(dy: Tensor) -> Tensor:
        gradient = heads.split(dy, heads.queries)
        dv = graph.grow_matmul(shares.swapaxes(2, 3), gradient)
        d_shares = graph.grow_matmul(gradient, v.swapaxes(2, 3))
        d_scores = graph.grow_elementwise([d_shares, shares])
        dq = rotary(graph, graph.grow_matmul(d_scores, k), tables, inverse=True)
        dk = heads.gather(graph, graph.grow_matmul(d_scores.swapaxes(2, 3), q))
        dk = rotary(graph, dk, tables, inverse=True)
        return projections_back(list(map(heads.merge, (dq, dk, heads.gather(graph, dv)))))

    return heads.merge(mixed), back
