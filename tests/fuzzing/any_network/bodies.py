"""Nodes that hold graphs, and functions: their bodies grow in scopes of their own."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import numpy as np
from onnx import GraphProto, helper

from tests.fuzzing.any_network.scope import Array, Names, Scope, Value, declared, info
from tests.fuzzing.any_network.steps import Found, reads

DEEPEST = 2
"""Bodies within bodies."""


def grow(scope: Scope, count: int) -> None:
    """Add pieces to a graph."""
    from tests.fuzzing.any_network import pieces  # which in turn tries nodes with bodies

    pieces.grow(scope, count)


def inner_scope(scope: Scope, names: Names | None = None) -> Scope:
    """Return an empty graph inside another one."""
    return Scope(scope.draw, scope.opset, names or scope.names, scope)


def entered(body: Scope, values: Sequence[Value]) -> list[str]:
    """Return the names of new inputs of a body, of which the first run has some values."""
    names = [body.names.new("v") for _ in values]
    body.values.update(zip(names, values, strict=True))
    return names


def loop_body(scope: Scope) -> tuple[Scope, str, str]:
    """Return the body of a loop, and its inputs for the round and for the condition."""
    body = inner_scope(scope)
    step, go = body.names.new("i"), body.names.new("c")
    body.values.update({step: np.array(0), go: np.array(True)})
    return body, step, go


def graph_of(body: Scope, name: str, outputs: list[str], inputs: list[Any]) -> GraphProto:
    """Return a body as a graph; outputs are declared with their shapes, or without."""
    values = body.visible()
    shapes = ["its" if body.draw.random() < 0.9 else None for _ in outputs]
    ends = [info(n, values[n], shape) for n, shape in zip(outputs, shapes, strict=True)]
    graph = helper.make_graph(body.nodes, name, inputs, ends, body.initialisers)
    graph.sparse_initializer.extend(body.sparse)
    for name in dict.fromkeys(x for node in body.nodes for x in node.output if x in body.values):
        if name not in outputs and body.draw.random() < 0.15:
            graph.value_info.append(declared(body.draw, name, body.values[name], wrong=0.05))
    return graph


def own_name(body: Scope, name: str) -> str:
    """Return a value under a name that the body itself makes, as its outputs must have."""
    if any(name in node.output for node in body.nodes) and body.draw.random() < 0.7:
        return name
    made = body.names.new("t")
    body.nodes.append(helper.make_node("Identity", [name], [made]))
    body.values[made] = body[name]
    return made


def own_like(body: Scope, name: str) -> list[str]:
    """Return the values that a body has itself, of the shape and type of one of them."""
    like = body.values[name]
    alike = body.arrays("f", like.ndim, like.ndim).items()
    same = [n for n, v in alike if v.shape == like.shape and v.dtype == like.dtype]
    return [n for n in same if n in body.values]


def truth(scope: Scope) -> str:
    """Return a condition: an input, a constant, or computed."""
    found = [n for n, v in scope.arrays("b").items() if v.shape == ()]
    if found and scope.draw.random() < 0.5:
        return scope.draw.choice(found)
    return scope.constant(np.array(scope.draw.random() < 0.5))


def if_node(scope: Scope) -> Found:
    """An If whose branches read outer values, of one result or two."""
    if scope.depth >= DEEPEST or not scope.arrays("f"):
        return False
    draw, condition = scope.draw, truth(scope)
    same = draw.random() < 0.3
    count = scope.names.count
    branches, ends = [], []
    for _ in range(2):
        if same:
            scope.names.count = count  # siblings may use the same names
        body = inner_scope(scope)
        grow(body, draw.choice((0, 1, 2, 3)))
        branches.append(body)
    scope.names.count = count + 500 if same else scope.names.count
    pairs = []
    for _ in range(draw.choice((1, 1, 2))):
        one = branches[0].pick()
        if one is None:
            return False
        like = branches[0][one]
        fits = [n for n, v in branches[1].arrays().items() if v.dtype == like.dtype]
        if scope.opset < 11:  # where branches must give equal shapes
            fits = [n for n in fits if branches[1][n].shape == like.shape]
        if fits:
            pairs.append((one, fits[-1] if draw.random() < 0.6 else draw.choice(fits)))
    if not pairs:
        return False
    for n, body in enumerate(branches):
        outputs = [own_name(body, pair[n]) for pair in pairs]
        if len(set(outputs)) < len(outputs):
            return False
        ends.append(graph_of(body, draw.choice(("b", f"b{n}", "")) or f"branch{n}", outputs, []))
    more = {"then_branch": ends[0], "else_branch": ends[1]}
    return scope.add_all("If", [condition], len(pairs), **more)


def loop_node(scope: Scope) -> Found:
    """A Loop that carries values, and collects others."""
    if scope.depth >= DEEPEST:
        return False
    draw = scope.draw
    carried = [n for n in dict.fromkeys([scope.pick("f", 1, 4), scope.pick("f", 1, 4)]) if n]
    carried = carried[: draw.choice((1, 1, 2))]
    if not carried:
        return False
    body, step, go = loop_body(scope)
    inner = entered(body, [scope[n] for n in carried])
    inputs = [info(n, body.values[n], None if draw.random() < 0.3 else "its") for n in inner]
    inputs = [*(info(n, body.values[n]) for n in (step, go)), *inputs]
    grow(body, draw.choice((1, 2, 3)))
    outputs = [own_name(body, go)]
    for name in inner:
        fits = own_like(body, name)
        outputs.append(own_name(body, fits[-1] if draw.random() < 0.7 else draw.choice(fits)))
    for _ in range(draw.choice((0, 1))):
        outputs.append(own_name(body, body.pick("fi", 0, 4) or step))
    if len(set(outputs)) < len(outputs):
        return False
    graph = graph_of(body, "loop", outputs, inputs)
    count = scope.integers(draw.choice((1, 2, 3)))
    first = "" if draw.random() < 0.4 else truth(scope)
    if first and not scope[first] and len(outputs) > len(carried) + 1:
        return False  # of what no round collects, onnxruntime makes the shape that it has inferred
    return scope.add_all("Loop", [count, first, *carried], len(outputs) - 1, body=graph)


@reads("f", 2, 4, since=9)
def scan_node(scope: Scope, draw: Random, name: str, data: Array) -> Found:
    """A Scan along any axis and direction, with and without a state."""
    if scope.depth >= DEEPEST:
        return False
    axis = draw.randrange(data.ndim)
    if not data.size:  # onnxruntime divides by zero
        return False
    body = inner_scope(scope)
    state, element = body.names.new("v"), body.names.new("v")
    start = scope.drawn([2, 1])
    body.values.update({state: scope[start], element: data.take(0, axis)})
    inputs = [info(n, body.values[n]) for n in (state, element)]
    grow(body, draw.choice((1, 2, 3)))
    fits = own_like(body, state)
    found = body.pick("f", 0, 3)
    if not fits or found is None:
        return False
    outputs = [own_name(body, draw.choice(fits)), own_name(body, found)]
    if len(set(outputs)) < 2:
        return False
    more: dict[str, Any] = {}
    if axis or draw.random() < 0.5:
        more["scan_input_axes"] = [axis if draw.random() < 0.7 else axis - data.ndim]
    more |= {"scan_input_directions": [draw.choice((0, 1))]} if draw.random() < 0.4 else {}
    if draw.random() < 0.4:
        more["scan_output_axes"] = [draw.choice((0, -1, body[outputs[1]].ndim))]
    graph = graph_of(body, "scan", outputs, inputs)
    more |= {"body": graph, "num_scan_inputs": 1}
    return scope.add_all("Scan", [start, name], len(outputs), **more)


def scan_of_many(scope: Scope) -> Found:
    """A Scan with several states and inputs, each along an axis and in a direction of its own."""
    draw = scope.draw
    if scope.depth >= DEEPEST or scope.opset < 9:
        return False
    first = scope.pick("f", 2, 4)
    if first is None:
        return False
    steps = scope[first].shape[draw.randrange(scope[first].ndim)]
    fits = [n for n, v in scope.arrays("f", 1, 4).items() if steps in v.shape and v.size]
    if not fits or not steps:
        return False
    scanned = [draw.choice(fits) for _ in range(draw.choice((1, 2, 3)))]
    axes = [draw.choice([a for a, size in enumerate(scope[n].shape) if size == steps])
            for n in scanned]  # fmt: skip
    starts = [scope.pick("f", 1, 4) or first for _ in range(draw.choice((0, 1, 2)))]
    body = inner_scope(scope)
    held = entered(body, [scope[n] for n in starts])
    slices = [scope[n].take(0, axis) for n, axis in zip(scanned, axes, strict=True)]
    elements = entered(body, slices)
    inputs = [info(n, body.values[n]) for n in (*held, *elements)]
    grow(body, draw.choice((1, 2, 3)))
    outputs = [own_name(body, draw.choice(own_like(body, name))) for name in held]
    for _ in range(draw.choice((1, 2)) if not held else draw.choice((0, 1, 2))):
        outputs.append(own_name(body, body.pick("f", 0, 3) or elements[0]))
    if len(set(outputs)) < len(outputs):
        return False
    more: dict[str, Any] = {}
    if any(axes) or draw.random() < 0.5:
        more["scan_input_axes"] = axes
    if draw.random() < 0.5:
        more["scan_input_directions"] = [draw.choice((0, 1)) for _ in scanned]
    collected = outputs[len(held) :]
    if collected and draw.random() < 0.5:
        ranks = [body[n].ndim + 1 for n in collected]
        more["scan_output_axes"] = [draw.randrange(r) - draw.choice((0, r)) for r in ranks]
    if collected and draw.random() < 0.4:
        more["scan_output_directions"] = [draw.choice((0, 1)) for _ in collected]
    graph = graph_of(body, "scan", outputs, inputs)
    more |= {"body": graph, "num_scan_inputs": len(scanned)}
    return scope.add_all("Scan", [*starts, *scanned], len(outputs), **more)


@reads("f", 2, 4)
def nested_ifs(scope: Scope, draw: Random, name: str, data: Array) -> Found:
    """Ifs inside of an If, whose branches transpose back what is transposed outside of all."""
    if scope.depth >= DEEPEST:
        return False
    order = draw.sample(range(data.ndim), data.ndim)
    turned = scope.transposed(name, order)
    condition, other = truth(scope), truth(scope)
    made = scope.names.new("t")
    one, two = (_branch(scope, turned, order, draw.random() < 0.6, other) for _ in range(2))
    if not scope.add_named("If", [condition], [made], then_branch=one, else_branch=two):
        return False
    return scope.transposed(made, np.argsort(order) if draw.random() < 0.5 else order)


def _branch(
    scope: Scope, turned: str, order: list[int], deeper: bool, condition: str
) -> GraphProto:
    """Return a branch that gives a value of the shape of one that it captures."""
    draw, body = scope.draw, inner_scope(scope)
    back = np.argsort(order).tolist()
    act = draw.choice(("Relu", "Sin", "Neg"))
    names = [body.names.new("t") for _ in range(4)]
    nodes = [helper.make_node("Transpose", [turned], names[:1], perm=back)]
    nodes.append(helper.make_node(act, names[:1], names[1:2]))
    nodes.append(helper.make_node("Transpose", names[1:2], names[2:3], perm=order))
    body.nodes += nodes
    body.values.update(dict.fromkeys(names[:2], scope[turned].transpose(back)))
    body.values[names[2]] = scope[turned]
    last = names[2]
    if deeper:
        reads = (draw.choice((turned, names[2])) for _ in range(2))
        one, two = (_branch(body, name, order, False, condition) for name in reads)
        last = names[3]
        node = helper.make_node("If", [condition], [last], then_branch=one, else_branch=two)
        body.nodes.append(node)
        body.values[last] = body.values[names[2]]
    return graph_of(body, "branch", [last], [])


def function(scope: Scope) -> Found:
    """A call of a function of the model: a new one, or one that is there."""
    root, draw = scope.root(), scope.draw
    if scope.depth >= DEEPEST:
        return False
    if root.functions and draw.random() < 0.4:
        chosen = draw.choice(root.functions)
        reads = [scope.pick("f", 2, 4) for _ in chosen.input]
        made = [scope.names.new("t") for _ in chosen.output]
        if None in reads:
            return False
        return scope.add_named(chosen.name, [*map(str, reads)], made, domain="own")
    given = [n for n in dict.fromkeys([scope.pick("f", 2, 4), scope.pick("f", 2, 4)]) if n]
    if not given or scope.closed:
        return False
    body = Scope(draw, scope.opset, Names(draw), scope)
    body.closed = True
    inner = [f"p{n}" for n in range(len(given))]
    body.values.update((n, scope[o]) for n, o in zip(inner, given, strict=True))
    rank = body.values["p0"].ndim
    order = draw.sample(range(rank), rank)
    attributes = {"order": order} if draw.random() < 0.6 and _turn(body, order) else {}
    defaults = attributes if draw.random() < 0.3 else {}
    grow(body, draw.choice((1, 2, 3)))
    found = body.pick("f")
    if found is None:
        return False
    outputs = [own_name(body, found)]
    name = draw.choice(("Own", "Relu", f"F{len(root.functions)}", "Transpose"))
    if any(f.name == name for f in root.functions):
        return False
    more: list[Any] = [helper.make_attribute(*pair) for pair in defaults.items()]
    own = [n for n in attributes if n not in defaults]
    imports = body.imports()
    made = helper.make_function("own", name, inner, outputs, body.nodes, imports, own, more)
    root.functions.append(made)
    before = "own" in root.domains
    root.domains.add("own")
    results = [scope.names.new("t") for _ in outputs]
    given_attributes = {} if defaults and draw.random() < 0.5 else attributes
    if scope.add_named(name, given, results, domain="own", **given_attributes):
        if draw.random() < 0.4:
            function(scope)  # which may call this one
        return True
    root.functions.pop()
    if not before:
        root.domains.discard("own")
    return False


def _turn(body: Scope, order: list[int]) -> bool:
    """Transpose a function's operand, or let another function do so, by its attribute."""
    unary = [f for f in body.root().functions if len(f.input) == 1]
    defaults = {f.name: [a.name for a in f.attribute_proto] for f in unary}
    one = next((f for f in unary if "order" in (*f.attribute, *defaults[f.name])), None)
    word, name, domain = ("order", one.name, "own") if one else ("perm", "Transpose", None)
    turn = helper.make_node(name, ["p0"], ["turned"], domain=domain, **{word: order})
    found = body.run([turn], ["turned"])
    if found is None:
        return False
    body.values["turned"] = np.asarray(found[0])
    turn.ClearField("attribute")
    turn.attribute.add(name=word, ref_attr_name="order", type=7)
    body.nodes.append(turn)
    return True
