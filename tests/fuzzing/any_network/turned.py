"""Loops, scans and branches whose values are transposed before, inside and behind them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from typing import Any

import numpy as np
from onnx import ValueInfoProto, helper

from tests.fuzzing.any_network import bodies
from tests.fuzzing.any_network.scope import Scope, info
from tests.fuzzing.any_network.steps import Piece

ACTS = ("Relu", "Sin", "Softsign", "Neg", "Abs", "Identity", "Softmax", "GlobalAveragePool")


def usual(rank: int) -> tuple[tuple[int, ...], ...]:
    """Return the order as it is, and those that exporters write, there and back."""
    every = tuple(range(rank))
    if rank < 3:
        return every, every[::-1]
    return every, (0, *every[2:], 1), (0, every[-1], *every[1:-1])


def turned(scope: Scope, name: str) -> str:
    """Return a value behind a transpose, or at times itself."""
    draw, rank = scope.draw, scope[name].ndim
    perm = draw.choice(usual(rank)[1:])
    if draw.random() < 0.2:
        perm = tuple(draw.sample(range(rank), rank))
    new = scope.names.new("t")
    wanted = draw.random() < 0.85
    return new if wanted and scope.add_named("Transpose", [name], [new], perm=perm) else name


def like(scope: Scope, shape: Sequence[int], name: str) -> str | None:
    """Return a value of a shape: one, or a transpose of it; None if there is none."""
    value = scope[name]
    if sorted(value.shape) != sorted(shape):
        return None
    every = [p for p in permutations(range(value.ndim)) if value.transpose(p).shape == tuple(shape)]
    few = [p for p in every if p in usual(value.ndim)]
    perm = scope.draw.choice(few or every)
    if perm == tuple(range(value.ndim)):
        return name
    new = scope.names.new("t")
    return new if scope.add_named("Transpose", [name], [new], perm=perm) else None


def acted(scope: Scope, name: str) -> str:
    """Return what some ops make of a value, of the same shape if all goes well."""
    draw = scope.draw
    for _ in range(draw.choice((0, 1, 1, 2, 3))):
        new, shape = scope.names.new("t"), scope[name].shape
        alike = [n for n, v in scope.arrays("f").items() if sorted(v.shape) == sorted(shape)]
        other = like(scope, shape, draw.choice(alike)) if draw.random() < 0.4 else None
        if other is not None:
            node = helper.make_node(draw.choice(("Add", "Mul", "Sub")), [name, other], [new])
        else:
            node = helper.make_node(draw.choice(ACTS), [name], [new])
        if draw.random() < 0.15:
            bodies.grow(scope, 1)
        if scope.add_nodes(node) and scope[new].shape == shape:
            name = new
    return name


def _declared(scope: Scope, name: str) -> ValueInfoProto:
    """Return a body's input with its shape, with open sizes, or without a shape."""
    value, choice = scope.values[name], scope.draw.random()
    if choice < 0.5:
        return info(name, value)
    return info(name, value, None if choice < 0.8 else [None] * value.ndim)


def _given(scope: Scope) -> str | None:
    """Return a value for a body, behind a transpose."""
    name = scope.pick("f", 2, 4)
    if name is None or scope.depth >= bodies.DEEPEST or not scope[name].size:
        return None
    return turned(scope, name)


def _capture(body: Scope) -> None:
    """Let a body transpose what it captures, at times."""
    if body.draw.random() < 0.5 and body.outer is not None:
        name = body.outer.pick("f", 2, 4)
        if name is not None:
            turned(body, name)


def _behind(scope: Scope, names: Sequence[str]) -> bool:
    """Transpose results, if there are any, and let ops read them."""
    for name in names:
        if scope[name].ndim > 1:
            acted(scope, turned(scope, name))
    return bool(names)


def turned_loop(scope: Scope) -> bool:
    """A Loop that carries values and collects others, of none, one or several rounds."""
    draw = scope.draw
    starts = [_given(scope) for _ in range(draw.choice((1, 1, 2)))]
    carried = [name for name in dict.fromkeys(starts) if name is not None]
    if not carried:
        return False
    body, step, go = bodies.loop_body(scope)
    held = bodies.entered(body, [scope[name] for name in carried])
    _capture(body)
    made = [acted(body, turned(body, name)) for name in held]
    outputs = [bodies.own_name(body, go)]
    for name in held:
        shape = body.values[name].shape
        found = [like(body, shape, other) for other in draw.sample(made, len(made))]
        passed = [n for n in held if body.values[n].shape == shape]
        chosen = next((x for x in found if x is not None), draw.choice(passed))
        raw = draw.random() < 0.15 and chosen in body.values
        outputs.append(chosen if raw else bodies.own_name(body, chosen))
    collected = draw.choice((0, 0, 1, 2))
    outputs += [bodies.own_name(body, turned(body, draw.choice(made))) for _ in range(collected)]
    if len(set(outputs)) < len(outputs):
        return False
    inputs = [info(n, body.values[n]) for n in (step, go)]
    inputs += [_declared(body, name) for name in held]
    graph = bodies.graph_of(body, "turned", outputs, inputs)
    rounds = draw.choice((1, 2, 3) if collected else (0, 1, 2, 3))
    count = scope.integers(rounds)
    first = bodies.truth(scope) if draw.random() < 0.3 and not collected else ""
    reads = [count, first, *carried]
    return _behind(scope, scope.add_all("Loop", reads, len(outputs) - 1, body=graph))


def growing_loop(scope: Scope) -> bool:
    """A Loop that carries a value that is longer after each round, whatever is declared of it."""
    start, draw = _given(scope), scope.draw
    if start is None:
        return False
    body, step, go = bodies.loop_body(scope)
    value = scope[start]
    [held] = bodies.entered(body, [value])
    rank, axis = value.ndim, draw.randrange(value.ndim)
    order = draw.sample(range(rank), rank)
    back = [int(n) for n in np.argsort(order)]
    shape = [1 if n == axis else size for n, size in enumerate(value.shape)]
    piece = scope.drawn(shape, value.dtype)
    moved, more, longer, last = (body.names.new("t") for _ in range(4))
    nodes = [
        helper.make_node("Transpose", [held], [moved], perm=order),
        helper.make_node("Transpose", [piece], [more], perm=order),
        helper.make_node("Concat", [moved, more], [longer], axis=back[axis]),
        helper.make_node("Transpose", [longer], [last], perm=back),
    ]
    if not body.add_nodes(*nodes):
        return False
    inputs = [*(info(n, body.values[n]) for n in (step, go)), _declared(body, held)]
    graph = bodies.graph_of(body, "growing", [bodies.own_name(body, go), last], inputs)
    count = scope.integers(draw.choice((1, 2)))
    return _behind(scope, scope.add_all("Loop", [count, "", start], 1, body=graph))


def turned_scan(scope: Scope) -> bool:
    """A Scan along any axes of one value or two, and of what it gives, with a state or without."""
    first, draw = _given(scope), scope.draw
    if first is None or scope.opset < 9:
        return False
    body = bodies.inner_scope(scope)
    shape = scope[first].shape
    axis = draw.randrange(len(shape))
    scanned, axes = [first], [axis]
    if draw.random() < 0.3:
        perm = draw.sample(range(len(shape)), len(shape))
        other = scope.names.new("t")
        if scope.add_named("Transpose", [first], [other], perm=perm):
            scanned, axes = [first, other], [axis, perm.index(axis)]
    states, held = list[str](), list[str]()
    if draw.random() < 0.6:
        states = [turned(scope, scope.drawn([3, 2]))]
        held = bodies.entered(body, [scope[states[0]]])
    slices = [scope[name].take(0, place) for name, place in zip(scanned, axes, strict=True)]
    elements = bodies.entered(body, slices)
    _capture(body)
    outputs = []
    for name in held:
        found = like(body, body.values[name].shape, acted(body, turned(body, name)))
        outputs.append(bodies.own_name(body, found or name))
    ends = [acted(body, turned(body, draw.choice(elements))) for _ in range(draw.choice((1, 1, 2)))]
    outputs += [bodies.own_name(body, turned(body, end)) for end in ends]
    if len(set(outputs)) < len(outputs):
        return False
    ranks = [body[name].ndim for name in outputs[len(held) :]]
    options: dict[str, Any] = {}
    if any(axes) or draw.random() < 0.5:
        options["scan_input_axes"] = [a - len(shape) if draw.random() < 0.3 else a for a in axes]
    if draw.random() < 0.4:
        options["scan_input_directions"] = [draw.choice((0, 1)) for _ in scanned]
    if draw.random() < 0.7:
        options["scan_output_axes"] = [draw.randint(-rank - 1, rank) for rank in ranks]
    if draw.random() < 0.4:
        options["scan_output_directions"] = [draw.choice((0, 1)) for _ in ranks]
    inputs = [_declared(body, name) for name in (*held, *elements)]
    graph = bodies.graph_of(body, "turned", outputs, inputs)
    options |= {"body": graph, "num_scan_inputs": len(scanned)}
    reads = [*states, *scanned]
    return _behind(scope, scope.add_all("Scan", reads, len(outputs), **options))


def turned_if(scope: Scope) -> bool:
    """An If whose branches transpose what they capture and what they give back."""
    name, draw = _given(scope), scope.draw
    if name is None:
        return False
    condition, value = bodies.truth(scope), scope[name]
    shape = draw.sample(value.shape, value.ndim)
    count, ends = draw.choice((1, 1, 2)), list[list[str]]()
    branches = [bodies.inner_scope(scope) for _ in range(2)]
    for body in branches:
        _capture(body)
        found = [like(body, shape, acted(body, turned(body, name))) for _ in range(count)]
        ends.append([bodies.own_name(body, end) for end in found if end is not None])
        if len(set(ends[-1])) < count:
            return False
    graphs = [bodies.graph_of(b, f"b{n}", ends[n], []) for n, b in enumerate(branches)]
    more = {"then_branch": graphs[0], "else_branch": graphs[1]}
    return _behind(scope, scope.add_all("If", [condition], count, **more))


TURNED: dict[Piece, int] = {turned_loop: 2, turned_scan: 1, turned_if: 1, growing_loop: 1}
"""Pieces with bodies and transposes around and inside them."""
