"""Small graphs on which Greedy0 does not find the optimum, one reason each."""

from __future__ import annotations

from collections.abc import Callable

from layoutopt.graphs.unwinding import Graph


def aliases(copies: int = 4) -> Graph:
    """Return one element under several names, each worth 1 with one location.

    Greedy0's loss grows with ``copies`` without limit.
    """
    graph = Graph(
        "aliases",
        f"{copies} aliases of one element are worth 1 each with location B; one pair worth 1.1 "
        "draws it to A",
    )
    x = graph.sink((1,), name="x")
    a, b = graph.source((1,), name="A"), graph.source((1,), name="B")
    graph.valued_pair(x, a, "1.1")
    for k in range(copies):
        graph.valued_pair(graph.identity(x, name=f"alias{k}"), b, 1)
    return graph


def hub() -> Graph:
    """Return copies from one tensor to three that are already set."""
    graph = Graph(
        "hub",
        "three leaves take B for 4; the hub takes A for 3, though being copied to the three "
        "leaves is worth 2 each",
    )
    centre = graph.sink((2,), name="hub")
    a, b = graph.source((2,), name="A"), graph.source((2,), name="B")
    graph.valued_pair(centre, a, 3)
    for k in range(3):
        leaf = graph.sink((2,), name=f"leaf{k}")
        graph.valued_pair(leaf, b, 4)
        graph.valued_pair(centre, leaf, 2)
    return graph


def chain() -> Graph:
    """Return copies in a chain between two targets."""
    graph = Graph(
        "chain",
        "x -> y -> z with x drawn to A, z to B: greedy0 gives z to B for 4.5 before it knows "
        "that y is worth 4 and A another 1 at z",
    )
    x, y, z = (graph.sink((2,), name=name) for name in "xyz")
    a, b = graph.source((2,), name="A"), graph.source((2,), name="B")
    graph.valued_pair(x, a, 5)
    graph.valued_pair(x, y, 4)
    graph.valued_pair(y, z, 4)
    graph.valued_pair(z, b, "4.5")
    graph.valued_pair(z, a, 1)
    return graph


def shared_location() -> Graph:
    """Return a sink with three targets, two of which lie at one place."""
    graph = Graph(
        "shared_location",
        "sources S and T have one location, worth 2 + 2 together; greedy0 takes the 3 of R",
    )
    x = graph.sink((1,), name="x")
    graph.valued_pair(x, graph.source((1,), [7], name="S"), 2)
    graph.valued_pair(x, graph.source((1,), [7], name="T"), 2)
    graph.valued_pair(x, graph.source((1,), [0], name="R"), 3)
    return graph


def negative() -> Graph:
    """Return a tensor that had better stay away from the only target."""
    graph = Graph(
        "negative", "matching the only target costs 1; greedy0 takes any direction that is left"
    )
    x = graph.sink((2,), name="x")
    graph.valued_pair(x, graph.source((2,), name="target"), -1)
    return graph


def no_source() -> Graph:
    """Return two tensors that nothing known leads to."""
    graph = Graph(
        "no_source", "no tensor is known at the start, so greedy0 gives x and y places apart"
    )
    graph.valued_pair(graph.sink((3,), name="x"), graph.sink((3,), name="y"), 1)
    return graph


def expand_copies() -> Graph:
    """Return a broadcast element whose copies agree on another location than its first."""
    graph = Graph(
        "expand_copies",
        "one element is broadcast to four, of which three want location b; greedy0 unwinds the "
        "first one only, which wants a",
    )
    x = graph.sink((1,), name="x")
    out = graph.expand(x, (4,), name="out")
    graph.valued_pair(out, graph.source((4,), list("abbb"), name="target"), 1)
    return graph


def no_way_back() -> Graph:
    """Return a target behind the part of a broadcast that Greedy0 does not unwind."""
    graph = Graph(
        "no_way_back",
        "the target is tied to the second copy of a broadcast element, from which greedy0 knows "
        "no way back",
    )
    x = graph.sink((1,), name="x")
    second = graph.slice(graph.expand(x, (2,), name="both"), (1,), (2,), name="second")
    graph.valued_pair(second, graph.source((1,), name="target"), 5)
    return graph


def first_way() -> Graph:
    """Return an element that a tensor holds three times."""
    graph = Graph(
        "first_way",
        "x stands three times in a concat whose target wants a, b, b; greedy0 unwinds the first "
        "way and earns one match instead of two",
    )
    x = graph.sink((1,), name="x")
    out = graph.concat([x, x, x], 0, name="out")
    graph.valued_pair(out, graph.source((3,), list("abb"), name="target"), 1)
    return graph


def barrier_too_late() -> Graph:
    """Return a pair of high value behind a barrier that is known only later."""
    graph = Graph(
        "barrier_too_late",
        "x would earn 10 with the barrier's output, but greedy0 gives it away for 4 before the "
        "barrier's input, worth 1, is set",
    )
    x, y = graph.sink((2,), name="x"), graph.sink((2,), name="y")
    known = graph.barrier([y], (2,), name="barrier")
    graph.valued_pair(x, known, 10)
    graph.valued_pair(x, graph.source((2,), name="target_x"), 4)
    graph.valued_pair(y, graph.source((2,), name="target_y"), 1)
    return graph


def barrier_too_early() -> Graph:
    """Return two barriers that exclude each other."""
    graph = Graph(
        "barrier_too_early",
        "f reads x and g reads y, so y = f(x) worth 5 and x = g(y) worth 8 exclude each other; "
        "greedy0 sets x for 3, which makes f known and g impossible",
    )
    x, y = graph.sink((2,), name="x"), graph.sink((2,), name="y")
    f, g = graph.barrier([x], (2,), name="f"), graph.barrier([y], (2,), name="g")
    graph.valued_pair(y, f, 5)
    graph.valued_pair(x, g, 8)
    graph.valued_pair(x, graph.source((2,), name="target_x"), 3)
    graph.valued_pair(y, graph.source((2,), name="target_y"), 1)
    return graph


TRAPS: dict[str, Callable[[], Graph]] = {
    build.__name__: build
    for build in (
        aliases,
        hub,
        chain,
        shared_location,
        negative,
        no_source,
        expand_copies,
        no_way_back,
        first_way,
        barrier_too_late,
        barrier_too_early,
    )
}
"""Builders by the name of their instance."""
