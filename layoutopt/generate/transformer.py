"""Training steps of transformers, by shape.

Every weight is used in the forward pass and, transposed, in the backward pass; gradients are
fixed points; weights, gradients and Adam's two states are drawn together.  Biases, gains and
positions broadcast, and are drawn to barriers that reduce what they are added to.

The shapes of ``PRESETS`` are those of the papers' tables, and their numbers of parameters the
published ones: GPT-2 of Radford et al. 2019 (124,439,808 and 1,557,611,200 as released), LLaMA 7B
(6,738,415,616) and Llama 2 70B (68,976,648,192) of Touvron et al. 2023.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from layoutopt.base.errors import InputError
from layoutopt.generate.layers import Back, TrainingStep, at_least, divides, linear, loss, norm
from layoutopt.graphs.tensor import Tensor
from layoutopt.graphs.unwinding import Graph


@dataclass(frozen=True)
class Heads:
    """Sizes of an attention layer: ``batch`` sequences of tokens, and heads of width ``size``.

    Each key and value head serves ``queries / keys`` query heads.
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
    step: TrainingStep, x: Tensor, heads: Heads, biased: bool, name: str
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
    step: TrainingStep, x: Tensor, heads: Heads, biased: bool, name: str
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
    carries gradients back, the same with the other half negated.  Tables are cosines and sines, of
    shape ``(sequence, size)``; with none nothing is rotated.
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
    step: TrainingStep,
    x: Tensor,
    heads: Heads,
    tables: list[Tensor],
    biased: bool,
    joined: bool,
    name: str,
) -> tuple[Tensor, Back]:
    """Add attention without its output projection to ``x``, of shape ``(batch * sequence, width)``.

    There are tables of rotary positions, or none.  The weights of the projections are three that
    are joined, or slices of one.
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


TABLE = 100  # value of an embedding table at the layout from which its rows are read best


@dataclass(frozen=True)
class _Plan:
    """What all layers of a transformer have in common."""

    heads: Heads
    feed_forward: int
    gated: bool
    biased: bool
    joined: bool


def transformer_step(
    layers: int = 2,
    width: int = 16,
    heads: int = 4,
    kv_heads: int = 0,
    feed_forward: int = 32,
    vocabulary: int = 24,
    context: int = 8,
    batch: int = 2,
    sequence: int = 8,
    gated: bool = False,
    rotary: bool = False,
    biased: bool = True,
    tied: bool = True,
    joined: bool = False,
    flat: bool = False,
) -> Graph:
    """Return one training step of a transformer with Adam.

    There are ``kv_heads`` key and value heads: 0 for as many as query heads, fewer are repeated.
    The feed-forward network may be ``gated``: three matrices, not two.  The output's weights may be
    the embedding table's (``tied``).  Positions are learned for a ``context``, 0 for none, or
    queries and keys rotated by theirs.  Weights of queries, keys and values are three, ``joined``
    for one product, or slices of one for three products.  Parameters, gradients and states may be
    updated in ``flat`` buffers.
    """
    keys = kv_heads or heads
    at_least(1, layers=layers, width=width, heads=heads, kv_heads=keys, batch=batch)
    at_least(1, sequence=sequence, feed_forward=feed_forward, vocabulary=vocabulary)
    at_least(0, context=context)
    divides(heads=heads, width=width)
    divides(kv_heads=keys, heads=heads)
    size = width // heads
    if rotary and size % 2:
        raise InputError(f"rotary needs heads of even width, not {size}")
    if 0 < context < sequence:
        raise InputError(f"sequence is {sequence}; it must be at most context, which is {context}")
    plan = _Plan(Heads(batch, sequence, heads, keys, size), feed_forward, gated, biased, joined)
    graph = Graph(f"transformer-{layers}x{width}", f"Adam step of {layers} layers of width {width}")
    step = TrainingStep(graph, ("m", "v"))
    angles = ["cos", "sin"] if rotary else []
    tables = [graph.sink((sequence, size), name=f"rotary.{name}") for name in angles]
    table = step.parameter((vocabulary, width), "embedding")
    x, back = _embedding(step, table, plan.heads, context)
    backs = [back]
    for n in range(layers):
        for layer in (_attention, _feed_forward):
            x, back = _residual(step, x, plan, layer, tables, f"layer{n}")
            backs.append(back)
    x, back = norm(step, x, "norm", biased)
    output = table if tied else step.parameter(table.shape, "output.w")
    gradient = back(_output(step, x, output))
    for back in reversed(backs):
        gradient = back(gradient)
    step.update(flat)
    return graph


def _embedding(
    step: TrainingStep, table: Tensor, heads: Heads, context: int
) -> tuple[Tensor, Back]:
    """Add rows of a table, which is drawn to the layout that suits any, and positions."""
    graph, width = step.graph, table.shape[1]
    tokens = graph.sink((heads.batch, heads.sequence), name="tokens")
    shape = (heads.batch, heads.sequence, width)
    graph.valued_pair(table, graph.source(table.shape, name="embedding.target"), TABLE)
    x = graph.fixed_point([tokens, table], shape, name="embedding.rows")
    positions = step.parameter((context, width), "positions") if context else None
    if positions is not None:
        x = graph.grow_elementwise([x, positions[: heads.sequence]], name="embedded")

    def back(dy: Tensor) -> Tensor:
        step.learn(table, graph.fixed_point([tokens, dy], table.shape, name="embedding.gradient"))
        if positions is not None:
            summed = graph.sum_like_reduce(dy.reshape(shape), shape[1:])
            unused = graph.fixed_point([], (context - heads.sequence, width))
            step.learn(positions, graph.concat([summed, unused], 0))
        return dy

    return x.reshape(-1, width), back


def _output(step: TrainingStep, x: Tensor, table: Tensor) -> Tensor:
    graph = step.graph
    scores = graph.grow_matmul(x, table.T, name="output")
    gradient = loss(graph, scores)
    step.learn(table, graph.grow_matmul(gradient.T, x, name="output.gradient"))
    return graph.grow_matmul(gradient, table, name="output.back")


Layer = Callable[[TrainingStep, Tensor, _Plan, list[Tensor], str], tuple[Tensor, Back]]


def _residual(
    step: TrainingStep, x: Tensor, plan: _Plan, layer: Layer, tables: list[Tensor], name: str
) -> tuple[Tensor, Back]:
    """Add a normalised layer beside which its input goes on."""
    own = f"{name}{layer.__name__.replace('_', '.', 1)}"
    normed, norm_back = norm(step, x, f"{own}.norm", plan.biased)
    y, layer_back = layer(step, normed, plan, tables, own)

    def back(dy: Tensor) -> Tensor:
        return step.graph.grow_elementwise([dy, norm_back(layer_back(dy))])

    return step.graph.grow_elementwise([x, y], name=f"{own}.added"), back


def _dense(
    step: TrainingStep, x: Tensor, width: int, plan: _Plan, name: str
) -> tuple[Tensor, Back]:
    w = step.parameter((x.shape[1], width), f"{name}.w")
    biases = [step.parameter((width,), f"{name}.b")] if plan.biased else []
    return linear(step, x, [w], biases, name)


def _attention(
    step: TrainingStep, x: Tensor, plan: _Plan, tables: list[Tensor], name: str
) -> tuple[Tensor, Back]:
    mixed, mixed_back = attention(step, x, plan.heads, tables, plan.biased, plan.joined, name)
    y, dense_back = _dense(step, mixed, x.shape[1], plan, f"{name}.out")
    return y, lambda dy: mixed_back(dense_back(dy))


def _feed_forward(
    step: TrainingStep, x: Tensor, plan: _Plan, _: list[Tensor], name: str
) -> tuple[Tensor, Back]:
    graph = step.graph
    up, up_back = _dense(step, x, plan.feed_forward, plan, f"{name}.up")
    if plan.gated:
        gate, gate_back = _dense(step, x, plan.feed_forward, plan, f"{name}.gate")
    active = graph.grow_elementwise([gate, up] if plan.gated else [up], name=f"{name}.active")
    y, down_back = _dense(step, active, x.shape[1], plan, f"{name}.down")

    def back(dy: Tensor) -> Tensor:
        gradient = down_back(dy)
        if not plan.gated:
            return up_back(graph.grow_elementwise([gradient, up]))
        both = graph.grow_elementwise([gradient, gate, up])
        return graph.grow_elementwise([up_back(both), gate_back(both)])

    return y, back


_GPT2 = partial(
    transformer_step, vocabulary=50257, context=1024, batch=8, sequence=1024, biased=True
)
_LLAMA = partial(
    transformer_step,
    vocabulary=32000,
    context=0,
    batch=1,
    gated=True,
    rotary=True,
    biased=False,
    tied=False,
    joined=True,
)

PRESETS: dict[str, Callable[..., Graph]] = {
    "gpt2-small": partial(_GPT2, layers=12, width=768, heads=12, feed_forward=3072),
    "gpt2-xl": partial(_GPT2, layers=48, width=1600, heads=25, feed_forward=6400),
    "llama-7b": partial(_LLAMA, layers=32, width=4096, heads=32, feed_forward=11008, sequence=2048),
    "llama-70b": partial(
        _LLAMA, layers=80, width=8192, heads=64, kv_heads=8, feed_forward=28672, sequence=4096
    ),
}
"""Training steps of well-known networks; every number can be replaced."""
