"""The family of random graphs: seeded, legal, and of every kind."""

from __future__ import annotations

from collections import Counter

from layoutopt.generate.random_graphs import random_graph
from layoutopt.graphs.ops import type_name
from layoutopt.io.instance import OP_TYPES, instance_bytes, parse_instance


def test_every_op_type_occurs() -> None:
    """A few hundred graphs hold every op of the format, and odd sizes besides."""
    types: Counter[str] = Counter()
    shapes = set()
    for seed in range(400):
        graph = random_graph(seed)
        types.update(type_name(op) for op in graph.ops)
        shapes.update(graph.shapes)
    assert set(types) == set(OP_TYPES)
    assert min(types.values()) > 20
    assert () in shapes
    assert any(0 in shape for shape in shapes)


def test_equal_arguments_give_equal_graphs() -> None:
    """The seed decides everything, and files of the graphs are read again."""
    for seed in range(50):
        graph = random_graph(seed, negative=True)
        assert graph == random_graph(seed, negative=True)
        assert parse_instance(instance_bytes(graph)) == graph
        assert graph.name == f"random-{seed}"
