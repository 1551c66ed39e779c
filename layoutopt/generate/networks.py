"""Networks in which one weight has many uses: experts, unrolled, recomputed and called layers."""

from __future__ import annotations

from collections.abc import Callable

from layoutopt.base.errors import InputError
from layoutopt.generate.layers import Back, TrainingStep, at_least, linear, loss
from layoutopt.graphs.tensor import Tensor
from layoutopt.graphs.unwinding import Graph

COPY = 10  # value of a copy into or out of a subgraph, a tenth of that of a product's operands


def mixture_of_experts_step(
    experts: int = 4, width: int = 8, feed_forward: int = 16, tokens: int = 16, active: int = 2
) -> Graph:
    """Return one training step of a mixture of experts with Adam.

    The weights of all experts are two tensors of rank 3, of which every expert uses a slice,
    forwards and, transposed, backwards; their gradients are stacked.  With so many experts
    ``active`` for each token, each gets ``tokens * active / experts`` rows, rounded up.
    """
    at_least(1, experts=experts, width=width, feed_forward=feed_forward)
    at_least(1, tokens=tokens, active=active)
    if active > experts:
        raise InputError(f"active is {active}; it must be at most experts, which is {experts}")
    graph = Graph(f"mixture-{experts}x{width}", f"Adam step of {experts} experts")
    step = TrainingStep(graph, ("m", "v"))
    x = graph.sink((tokens, width), name="x")
    router = step.parameter((width, experts), "router.w")
    up = step.parameter((experts, width, feed_forward), "up.w")
    down = step.parameter((experts, feed_forward, width), "down.w")
    gates, router_back = linear(step, x, [router], [], "router")
    rows = (experts, -(-tokens * active // experts), width)
    sent = graph.fixed_point([x, gates], rows, name="sent")
    results, backs = [], []
    for e in range(experts):
        result, back = _expert(step, sent[e], up[e], down[e], f"expert{e}")
        results.append(result)
        backs.append(back)
    out = graph.fixed_point([*results, gates], x.shape, name="out")
    returned = graph.fixed_point([loss(graph, out), gates], rows, name="returned")
    stacks = [back(returned[e]) for e, back in enumerate(backs)]
    for parameter, slices in zip((up, down), zip(*stacks, strict=True), strict=True):
        step.learn(parameter, graph.concat([g.reshape(1, *g.shape) for g in slices], 0))
    router_back(graph.fixed_point([returned, *results], gates.shape, name="router.loss"))
    step.update()
    return graph


def _expert(
    step: TrainingStep, x: Tensor, up: Tensor, down: Tensor, name: str
) -> tuple[Tensor, Callable[[Tensor], tuple[Tensor, Tensor]]]:
    """Add two products; ``back`` returns the gradients of their weights."""
    graph = step.graph
    inner = graph.grow_matmul(x, up, name=f"{name}.up")
    active = graph.grow_elementwise([inner])
    outer = graph.grow_matmul(active, down, name=f"{name}.down")

    def back(dy: Tensor) -> tuple[Tensor, Tensor]:
        down_gradient = graph.grow_matmul(active.T, dy)
        gradient = graph.grow_elementwise([graph.grow_matmul(dy, down.T), active])
        up_gradient = graph.grow_matmul(x.T, gradient)
        graph.grow_matmul(gradient, up.T, name=f"{name}.back")
        return up_gradient, down_gradient

    return outer, back


def rnn_unrolled(
    steps: int = 6, width: int = 6, inputs: int = 4, batch: int = 3, classes: int = 5
) -> Graph:
    """Return one training step of an unrolled recurrent network with momentum.

    The two weights and the bias of the recurrence are used in every step of time, forwards and
    backwards, and every use wants a layout of its own.  There are ``classes`` outputs after the
    last.
    """
    at_least(1, steps=steps, width=width, inputs=inputs, batch=batch, classes=classes)
    graph = Graph(f"rnn-{steps}x{width}", f"momentum step of {steps} steps of a recurrence")
    step = TrainingStep(graph, ("momentum",))
    x = graph.sink((steps, batch, inputs), name="x")
    read = step.parameter((inputs, width), "read.w")
    carry = step.parameter((width, width), "carry.w")
    bias = step.parameter((width,), "bias")
    output = step.parameter((width, classes), "output.w")
    h: Tensor = graph.sink((batch, width), name="start")
    backs: list[tuple[Back, Back, Tensor]] = []
    for t in range(steps):
        seen, read_back = linear(step, x[t], [read], [], f"step{t}.read")
        kept, carry_back = linear(step, h, [carry], [bias], f"step{t}.carry")
        h = graph.grow_elementwise([kept, seen], name=f"step{t}")
        backs.append((read_back, carry_back, h))
    scores, output_back = linear(step, h, [output], [], "output")
    gradient = output_back(loss(graph, scores))
    for read_back, carry_back, state in reversed(backs):
        inner = graph.grow_elementwise([gradient, state])
        read_back(inner)
        gradient = carry_back(inner)
    step.update()
    return graph


def recomputed(layers: int = 4, width: int = 6, batch: int = 3) -> Graph:
    """Return one training step of dense layers that keeps no activations, with Adam.

    The backward pass runs every layer's forward product a second time, as activation checkpointing
    (Chen et al. 2016) does, so that each weight is used three times.
    """
    at_least(1, layers=layers, width=width, batch=batch)
    graph = Graph(f"recomputed-{layers}x{width}", f"Adam step of {layers} layers, run twice")
    step = TrainingStep(graph, ("m", "v"))
    x = graph.sink((batch, width), name="x")
    weights = [step.parameter((width, width), f"layer{n}.w") for n in range(layers)]
    biases = [step.parameter((width,), f"layer{n}.b") for n in range(layers)]
    y = x
    for n in range(layers):
        y, _ = linear(step, y, [weights[n]], [biases[n]], f"layer{n}")
    gradient, again = loss(graph, y), x
    backs = []
    for n in range(layers):
        again, back = linear(step, again, [weights[n]], [biases[n]], f"layer{n}.again")
        backs.append(back)
    for back in reversed(backs):
        gradient = back(gradient)
    step.update()
    return graph


def chained_calls(calls: int = 8, width: int = 6, batch: int = 3, copy: int = COPY) -> Graph:
    """Return many calls, one after the other, of one subgraph of two dense layers.

    What a call returns is what the next one is given.  The subgraph's input may lie as its first
    product wants it, or as its last one's output, which makes copies, of value ``copy`` per
    element, cheaper: with many calls the second wins.
    """
    at_least(1, calls=calls, width=width, batch=batch)
    at_least(0, copy=copy)
    graph = Graph(f"calls-{calls}x{width}", f"{calls} calls of one subgraph, in a chain")
    x = graph.sink((batch, width), name="callee.x")
    y: Tensor = x
    for n in range(2):
        w = graph.sink((width, width), name=f"callee.w{n}")
        y = graph.grow_matmul(y, w, name=f"callee.y{n}")
    given: Tensor = graph.sink((batch, width), name="x")
    for n in range(calls):
        (given,) = graph.call([(given, x)], [y], copy, names=[f"call{n}"])
    return graph
