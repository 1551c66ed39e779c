"""Reshapes that follow each other become one, or none."""

from __future__ import annotations

import pytest

from layoutopt.conversion.graph import ConversionGraph
from layoutopt.conversion.rules.op import Op
from layoutopt.rewriting.write import fewer_reshapes

Shape = tuple[int | str, ...]

CASES: dict[str, tuple[Shape, list[tuple[str, Shape]], str, list[str]]] = {
    "two become one": ((2, 1, 3), [("a", (2, 3, 1)), ("b", (1, 2, 3))], "", ["b(x) 1 2 3"]),
    "three become one": (
        (2, 1, 3),
        [("a", (2, 3, 1)), ("b", (1, 2, 3)), ("c", (6, 1))],
        "",
        ["c(x) 6 1"],
    ),
    "there and back is nothing": (
        (2, 1, 3),
        [("a", (2, 3, 1)), ("b", (2, 1, 3)), ("c", (3, 2))],
        "",
        ["c(x)"],
    ),
    "an output stays": ((2, 1, 3), [("a", (2, 3, 1)), ("b", (2, 1, 3))], "", ["b(x) 2 1 3"]),
    "the network's own stay": (
        (2, 1, 3),
        [("a", (2, 3, 1)), ("b", (1, 2, 3))],
        "ab",
        ["a(x)", "b(a)"],
    ),
    "one of the network's own and a new one": (
        (2, 1, 3),
        [("a", (2, 3, 1)), ("b", (1, 2, 3))],
        "a",
        ["b(x) 1 2 3"],
    ),
    "one open size": (("n", 1, 3), [("a", ("n", 3, 1)), ("b", (1, "n", 3))], "", ["b(x) 1 -1 3"]),
    "two open sizes": (
        ("n", 1, "m"),
        [("a", ("n", "m", 1)), ("b", (1, "n", "m"))],
        "",
        ["a(x)", "b(a)"],
    ),
    "no elements": ((0, 1, 3), [("a", (0, 3, 1)), ("b", (1, 0, 3))], "", ["a(x)", "b(a)"]),
}


@pytest.mark.parametrize("case", CASES)
def test_chains(case: str) -> None:
    """A chain from an input to an output keeps the reshapes that it needs, with their shapes."""
    shape, chain, kept, expected = CASES[case]
    graph = ConversionGraph()
    last = graph.input("x", shape)
    for name, after in chain:
        last = graph.op("Reshape", [last], shape=after, name=name)
    graph.output(last)
    ops = fewer_reshapes(graph, kept)
    assert [written(op) for op in ops] == expected


def written(op: Op) -> str:
    """Return an op with what it reads, and its shape if that was written anew."""
    shape = "".join(f" {size}" for size in op.attributes.get("shape", ()))
    return f"{op.name}({op.inputs[0]}){shape}"
