"""The figures of the unwinding notes (Graphcore poprithms, ``memory/unwind``) as graphs.

Where a figure names no value, each ValuedPair is worth 1 per element, so that the score
counts matches.
"""

from __future__ import annotations

from collections.abc import Callable

from layoutopt.graphs.store import Value
from layoutopt.graphs.tensor import Tensor
from layoutopt.graphs.unwinding import Graph


def valued_pair() -> Graph:
    """Two free tensors of six elements, worth 10 each."""
    graph = Graph(
        "valued_pair",
        "Figure valuedpair0 with both layouts free: 60 if all six positions match; "
        "the layouts drawn match at two and earn 20",
    )
    id0, id1 = graph.sink((2, 3), name="id0"), graph.sink((2, 3), name="id1")
    graph.valued_pair(id0, id1, 10)
    return graph


def valued_pair_drawn() -> Graph:
    """The same pair with the layouts drawn: nothing to choose."""
    graph = Graph(
        "valued_pair_drawn",
        "Figure valuedpair0 as drawn: two of six positions have the same colour, 20 of 60 points",
    )
    first = ["green", "pink", "light blue", "light green", "lavender", "magenta"]
    second = ["green", "plain magenta", "violet", "pink", "plain magenta", "magenta"]
    id0 = graph.source((2, 3), first, name="id0")
    id1 = graph.source((2, 3), second, name="id1")
    graph.valued_pair(id0, id1, 10)
    return graph


def single_pair() -> Graph:
    """A sink tied to a target."""
    graph = Graph(
        "single_pair", "Figures unwinding0 and unwinding1: a sink takes its target, 6 * 5 = 30"
    )
    sink, source = graph.sink((2, 3), name="sink"), graph.source((2, 3), name="source")
    graph.valued_pair(sink, source, 5)
    graph.barrier([sink], (2, 3), name="out")
    return graph


def unwindable_ops() -> Graph:
    """A chain of views, tied to the colours that are drawn at its end."""
    graph = Graph(
        "unwindable_ops",
        "Figure unwinding2: layouts flow through views; added here: a target with the colours "
        "drawn at the end, worth 1 per element, all 12 of which can match",
    )
    x = graph.sink((3, 6), name="x")
    sampled = graph.sub_sample(x, (1, 2), name="sampled")
    turned = graph.reverse(sampled, (1,), name="turned")
    shuffled = graph.dim_shuffle(sampled, (1, 0), name="shuffled")
    joined = graph.concat([turned, shuffled], 0, name="joined")
    sliced = graph.slice(joined, (1, 0), (5, 3), name="sliced")
    out = graph.reshape(sliced, (3, 4), name="out")
    colours = "green magenta grey pink white white orange grey white pink magenta white"
    target = graph.source((3, 4), colours.split(), name="target")
    graph.valued_pair(out, target, 1)
    return graph


def dim_shuffle() -> Graph:
    """A target behind a transposition."""
    graph = Graph(
        "dim_shuffle",
        "Figures unwinding3 and unwinding4: the sink is its target transposed back, 4 * 7.5 = 30",
    )
    sink = graph.sink((2, 2), name="sink")
    shuffled = graph.dim_shuffle(sink, (1, 0), name="shuffled")
    source = graph.source((2, 2), name="source")
    graph.valued_pair(shuffled, source, "7.5")
    return graph


def matmul() -> Graph:
    """Two targets of a matrix product, behind views."""
    graph = Graph(
        "matmul",
        "Figures matmul0 and matmul1: matmul(X.dimShuffle, concat(Y, Z.reverse)), both targets "
        "reached: 2 pairs, 12 elements at 1 each",
    )
    x, y, z = (
        graph.sink(shape, name=name)
        for name, shape in [("X", (3, 2)), ("Y", (3, 1)), ("Z", (3, 1))]
    )
    lhs = graph.dim_shuffle(x, (1, 0), name="lhs")
    rhs = graph.concat([y, graph.reverse(z, (0,), name="reversed")], 1, name="rhs")
    graph.valued_pair(lhs, graph.source((2, 3), name="createMatMulInputLHS"), 1)
    graph.valued_pair(rhs, graph.source((3, 2), name="createMatMulInputRHS"), 1)
    graph.fixed_point([lhs, rhs], (2, 2), name="matmul")
    return graph


def unbroadcast_add() -> Graph:
    """A sum whose one operand comes out of a barrier."""
    graph = Graph(
        "unbroadcast_add",
        "Figures unbroadcastadd0 and unbroadcastadd1: matmul(A, B) + C with the product as a "
        "barrier; A and B first, then C: 3 pairs, 16 elements at 1 each",
    )
    a, b, c = (
        graph.sink(shape, name=name)
        for name, shape in [("A", (2, 3)), ("B", (3, 2)), ("C", (2, 2))]
    )
    graph.valued_pair(a, graph.source((2, 3), name="target_A"), 1)
    graph.valued_pair(b, graph.source((3, 2), name="target_B"), 1)
    product = graph.barrier([a, b], (2, 2), name="matmul")
    graph.sum_like([product, c], 1, name="Out")
    return graph


def broadcast_add() -> Graph:
    """A sum whose one operand is broadcast."""
    graph = Graph(
        "broadcast_add",
        "Figures broadcastadd0 to broadcastadd2: the bias is tied to a SumLikeReduce of the "
        "activation, whose layout is known: 1 pair, 2 elements at 1 each",
    )
    activation = graph.source((2, 2), name="activation")
    bias = graph.sink((2, 1), name="bias")
    graph.sum_like([activation, bias], 1, name="sum")
    return graph


def call() -> Graph:
    """A subgraph that is called twice."""
    graph = Graph(
        "call",
        "Figures call0 to call2: two calls of matmul(a.transpose, b.reshape) and the sum of their "
        "results, all 9 pairs satisfied: 48 elements at 1 each",
    )
    a, b = graph.sink((2, 3), name="a"), graph.sink((3, 2), name="b")
    lhs = graph.dim_shuffle(a, (1, 0), name="lhs")
    rhs = graph.reshape(b, (2, 3), name="rhs")
    out = graph.fixed_point([lhs, rhs], (2, 2), name="out")
    graph.valued_pair(lhs, graph.source((3, 2), name="target_lhs"), 1)
    graph.valued_pair(rhs, graph.source((2, 3), name="target_rhs"), 1)
    results: list[Tensor] = []
    for left, right, result in [("A", "B", "E"), ("C", "D", "F")]:
        copies = [(graph.sink((2, 3), name=left), a), (graph.sink((3, 2), name=right), b)]
        results += graph.call(copies, [out], 1, names=[result])
    graph.sum_like(results, 1, name="sumOut")
    return graph


def chained_calls(
    target: Value, chain: Value, copy: Value, opaque: bool = False, name: str = "", text: str = ""
) -> Graph:
    """Return three calls in a chain of a subgraph that is a matrix product.

    With ``t``, ``m`` and ``c`` for the three values the optimum is the larger of
    ``10 t + 24 c`` (solution 1 of the notes: the product's input ``x`` takes its target) and
    ``4 t + 6 m + 36 c`` (solution 2: it takes the product's output).

    Parameters
    ----------
    target, chain, copy
        Value per element of a target, of the product's input agreeing with its output, and
        of a copy into or out of the subgraph.
    opaque
        Whether the product is a barrier instead of a fixed point; only solution 1 is left then.
    """
    values = f"vTargetLayout = {target}, vMatMulChain = {chain}, vCopy = {copy}"
    graph = Graph(name, f"Figures fixedpoint0 and fixedpoint1 with {values}: {text}")
    w, x = graph.sink((2, 2), name="w"), graph.sink((3, 2), name="x")
    op = graph.barrier if opaque else graph.fixed_point
    out = op([x, w], (3, 2), name="matmul")
    graph.valued_pair(w, graph.source((2, 2), name="target_w"), target)
    graph.valued_pair(x, graph.source((3, 2), name="target_x"), target)
    graph.valued_pair(x, out, chain)
    copied = graph.sink((3, 2), name="input")
    for result in ("a", "b", "c"):
        (copied,) = graph.call([(copied, x)], [out], copy, names=[result])
    return graph


def chained_calls_target() -> Graph:
    """Three calls in a chain, where the matmul's target layout is worth the most."""
    text = "solution 1 is best, 10 * 10 + 24 * 1 = 124; solution 2 earns 106"
    return chained_calls(10, 5, 1, name="chained_calls_target", text=text)


def chained_calls_chain() -> Graph:
    """Three calls in a chain, where the output's layout is worth the most."""
    text = "solution 2 is best, 4 * 5 + 6 * 10 + 36 * 1 = 116; solution 1 earns 74"
    return chained_calls(5, 10, 1, name="chained_calls_chain", text=text)


def chained_calls_copies() -> Graph:
    """Three calls in a chain, where copies tip the balance, which Greedy0 does not weigh."""
    text = (
        "solution 2 is best, 4 * 10 + 6 * 9 + 36 * 1 = 130; greedy0 takes the largest value "
        "first and ends at solution 1, 124"
    )
    return chained_calls(10, 9, 1, name="chained_calls_copies", text=text)


def chained_calls_barrier() -> Graph:
    """The same with a barrier for the matmul: its input cannot take its output's layout."""
    text = (
        "with the matmul as a barrier solution 2 is impossible and solution 1 the best, "
        "10 * 10 + 24 * 1 = 124"
    )
    return chained_calls(10, 9, 1, opaque=True, name="chained_calls_barrier", text=text)


SHARED: dict[str, tuple[str, ...]] = {
    "A": ("light blue", "light green", "yellow", "pink"),
    "D": ("dark red", "violet", "yellow", "dark green"),
}
"""Locations of the two sources in figure objectivefunction0, as they are drawn."""


def _objective_function(name: str, text: str, colours: dict[str, tuple[str, ...]] | None) -> Graph:
    graph = Graph(name, f"Figure objectivefunction0: {text}")
    where = colours or {}
    a = graph.source((4,), where.get("A"), name="A")
    b, c = graph.sink((4,), name="B"), graph.sink((2, 2), name="C")
    d = graph.source((2, 2), where.get("D"), name="D")
    e = graph.reshape(b, (2, 2), name="E")
    for x, y, value in [(a, b, 5), (c, d, 2), (c, e, 7), (d, e, 11)]:
        graph.valued_pair(x, y, value)
    return graph


def objective_function() -> Graph:
    """Two targets that share one location."""
    text = (
        "maximum 85, as A[2] and D[1,0] are one location; the layout drawn scores 43, not the 32 "
        "that the notes' table adds up to, which would need them to be two locations"
    )
    return _objective_function("objective_function", text, SHARED)


def objective_function_distinct() -> Graph:
    """The same with all locations distinct."""
    text = (
        "with all locations of A and D distinct its maximum is 80, not 85, and the layout drawn "
        "scores the 32 of the notes' table"
    )
    return _objective_function("objective_function_distinct", text, None)


FIGURES: dict[str, Callable[[], Graph]] = {
    build.__name__: build
    for build in (
        valued_pair,
        valued_pair_drawn,
        single_pair,
        unwindable_ops,
        dim_shuffle,
        matmul,
        unbroadcast_add,
        broadcast_add,
        call,
        chained_calls_target,
        chained_calls_chain,
        chained_calls_copies,
        chained_calls_barrier,
        objective_function,
        objective_function_distinct,
    )
}
"""Builders by the name of their instance."""
