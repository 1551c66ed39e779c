"""Random instances for the comparisons of solvers and models, and what they contain."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from decimal import Decimal

from layoutopt.generate.random_graphs import random_graph
from layoutopt.graphs.ops import type_name
from layoutopt.graphs.tensor import Tensor
from layoutopt.graphs.unwinding import Graph
from layoutopt.io.instance import instance_bytes
from models.exhaustive import maximum
from models.statement import Statement, added, state


def mixed(seed: int) -> Graph:
    """Return a graph of all ops; some families have no barriers, some negative values."""
    return random_graph(
        seed,
        elements=5 + seed % 2,
        ops=8 + seed % 5,
        pairs=4 + seed % 4,
        barriers=seed % 4 > 0,
        negative=seed % 5 == 0,
    )


def tangle(seed: int) -> Graph:
    """Return a graph of a few sinks, and barriers that compete for them.

    Barriers read whole sinks, slices of them and other barriers' outputs, and have up to
    three outputs; pairs tie these to sinks, mostly to those that the barriers or their
    competitors read.
    """
    draw = random.Random(seed)
    graph = Graph(f"tangle-{seed}", f"barriers that compete for a few sinks, seed {seed}")
    sinks = [graph.sink((draw.randint(1, 3),)) for _ in range(draw.randint(2, 3))]
    parts = [graph.slice(s, (i,), (i + 1,)) for s in sinks for i in range(s.size)]
    outputs: list[Tensor] = []
    for _ in range(draw.randint(2, 5)):
        inputs = draw.sample([*sinks, *parts], draw.randint(1, 2))
        if outputs and draw.random() < 0.4:
            inputs.append(draw.choice(outputs))
        shapes = [(draw.randint(1, 3),) for _ in range(draw.choice([1, 1, 2, 3]))]
        outputs += graph.barrier(inputs, shapes=shapes)
        if draw.random() < 0.2:
            outputs.append(graph.reverse(outputs[-1], (0,)))
    targets = [graph.source((1,), ["here"]), graph.source((2,)), graph.fixed_point(sinks, (3,))]
    for _ in range(draw.randint(4, 8)):
        a = draw.choice([*outputs, *outputs, *targets])
        alike = [t for t in [*sinks, *parts] if t.size == a.size]
        if alike:
            graph.valued_pair(a, draw.choice(alike), draw.choice([1, 2, 3, 5, "1.5", -1]))
    for _ in range(draw.randint(0, 2)):
        a, b = draw.sample(parts, 2)
        graph.valued_pair(a, b, draw.choice([1, 2, 4, -3]))
    return graph


def apart(seed: int) -> Graph:
    """Return a graph of elements that mostly repel each other, with few locations for them.

    Several fresh locations are needed here, and some elements do best with one together.
    """
    draw = random.Random(seed)
    graph = Graph(f"apart-{seed}", f"elements that repel each other, seed {seed}")
    sinks = [graph.sink((n,)) for n in draw.choice([(2, 2), (3, 2), (2, 2, 1), (1, 3)])]
    parts = [graph.slice(s, (i,), (i + 1,)) for s in sinks for i in range(s.size)]
    known = [graph.source((1,), [draw.choice("pq")]) for _ in range(draw.randint(0, 3))]
    if draw.random() < 0.4:
        known.append(graph.barrier([draw.choice([*sinks, *parts])], (1,)))
    for a in parts:
        for b in parts[: a.index - parts[0].index]:
            if draw.random() < 0.6:
                graph.valued_pair(a, b, draw.choice([-4, -2, -1, 1, 3]))
        for target in known:
            if draw.random() < 0.5:
                graph.valued_pair(a, target, draw.choice([-2, 1, "0.5", 2]))
    return graph


def wide(graph: Graph, seed: int) -> Graph:
    """Return a graph again with values that take up to 24 digits together, far beyond 64 bits."""
    draw = random.Random(seed)
    again = graph.copy()
    again.name += "-wide"
    again.pairs = [
        (a, b, value.scaleb(draw.choice([-9, 0, 3, 12])) + draw.choice([-1, 0, 1]) * TINY)
        for a, b, value in graph.pairs
    ]
    return again


TINY = Decimal("1e-10")

FAMILIES: dict[str, Callable[[int], Graph]] = {"mixed": mixed, "tangle": tangle, "apart": apart}


def stated(graph: Graph) -> Statement:
    """Return the statement of a graph, by way of its file."""
    return state(instance_bytes(graph).decode())


def features(graph: Graph) -> Iterator[str]:
    """Name what is in a graph that a solver may get wrong."""
    yield from {type_name(op) for op in graph.ops}
    given = stated(graph)
    sinks = [{k for k, e in enumerate(given.elements) if e[0] == s.name} for s in graph.sinks()]
    offered = {given.barrier_of[place] for _, place in given.earn} - {None}
    chosen = {arc for e, place in given.earn for arc in added(given, e, place)}
    arcs = chosen | given.arcs
    found = {
        "order matters": maximum(given) < maximum(given, ordered=False),
        "exclusive barriers": any(b != c and (c, b) in arcs for b, c in chosen),
        "part of a sink read": any(r & s and s - r for r in given.reads.values() for s in sinks),
        "chain of barriers": any(b in offered or c in offered for b, c in given.arcs),
        "several outputs": any(
            len(outputs) > 1 and op.id in offered
            for op, outputs in zip(graph.ops, graph.op_outputs, strict=True)
        ),
        "element in several barriers": any(
            len({b for b, r in given.reads.items() if e in r}) > 1 for e, _ in given.earn
        ),
        "negative agreement": any(v < 0 for v in given.agree.values()),
        "negative location": any(v < 0 for v in given.earn.values()),
        "fractions": any(v.denominator > 1 for v in given.earn.values()),
        "constant": given.constant != 0,
        "unconstrained element": any(
            not any(e in key for key in given.agree) and not any(e == f for f, _ in given.earn)
            for e in range(len(given.elements))
        ),
        "no location": not given.locations,
        "nothing to choose": not given.agree and not given.earn,
        "shared location": len(given.locations) < sum(own_sizes(graph)),
    }
    yield from (name for name, holds in found.items() if holds)


def own_sizes(graph: Graph) -> Iterator[int]:
    """Yield the size of each tensor that has locations of its own."""
    for tensor in graph.tensors():
        if graph.kind(tensor).value in ("source", "fixed point", "barrier"):
            yield tensor.size
