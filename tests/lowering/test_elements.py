"""Problems over elements: nodes, orders, memory, and labels that come back."""

from __future__ import annotations

import random
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from layoutopt.base import limits as base_limits
from layoutopt.base.errors import SizeError
from layoutopt.base.limits import Limits
from layoutopt.base.numbers import to_decimal
from layoutopt.base.result import read, written
from layoutopt.check.elements import evaluate
from layoutopt.generate.random_graphs import random_graph
from layoutopt.graphs.locations import FixedElements
from layoutopt.graphs.unwinding import Graph
from layoutopt.lowering.elements import kinds as kinds_module
from layoutopt.lowering.elements.groups import find_groups
from layoutopt.lowering.elements.kinds import memory_needed
from layoutopt.lowering.lower import Lowered, lower
from layoutopt.network.problem import Labelling, split
from layoutopt.unwinding import unwind
from tests.support import allowed, hard_graph, random_labels


def graphs(count: int) -> Iterator[Graph]:
    """Yield random graphs of all kinds, small and not so small, signed and not."""
    for seed in range(count):
        yield random_graph(
            seed,
            elements=random.Random(seed).choice([4, 8, 16, 40]),
            ops=8 + seed % 9,
            pairs=3 + seed % 5,
            barriers=seed % 3 > 0,
            negative=seed % 2 == 0,
            mappings=seed % 5 > 0,
        )


def some_labels(problem: Labelling, seed: int) -> np.ndarray:
    """Return an arbitrary labelling in which no label leaves its component."""
    parts = split(replace(problem, precedence=None))
    return parts.join([random_labels(part, seed + i) for i, part in enumerate(parts.parts)])


def score(lowered: Lowered, labels: np.ndarray) -> Decimal:
    """Return what the lowering says that labels are worth."""
    return to_decimal(lowered.constant + lowered.problem.value(labels), lowered.unit)


def test_scores_and_orders_agree_with_the_specification() -> None:
    """The layouts of any labelling are complete, and score what the problem says.

    Arbitrary labels may break the barrier order, of which only the order rule complains; both
    sides agree on what is in order.
    """
    free = classes = merged = 0
    seen = {True: 0, False: 0}
    for graph in graphs(160):
        lowered = lower(graph, Limits())
        for seed in range(3 if lowered.problem.precedence is None else 6):
            labels = some_labels(lowered.problem, seed)
            legal = allowed(lowered.problem, labels.tolist())
            found = evaluate(graph, lowered.layouts(labels))
            assert all(line.startswith("barrier order") for line in found.violations)
            assert legal == (not found.violations), graph.name
            assert found.score == score(lowered, labels), graph.name
            seen[legal] += 1
        free += lowered.problem.nodes > 0
        classes += lowered.size["classes"]
        merged += lowered.size["components"] - lowered.size["classes"]
    assert free > 105  # the graphs are not trivial,
    assert merged > classes / 10  # some components are merged,
    assert seen[True] > 240  # most orders are possible,
    assert seen[False] > 10  # and some are not


def test_large_components_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same for one component of up to 110 elements, each of a colour of its own."""
    for side in range(3, 11):
        if side > 6:  # colours of many elements are looked up by sorting, or in a table
            monkeypatch.setattr(kinds_module, "TABLE", -(10**9))
        graph = hard_graph(side, side)
        lowered = lower(graph, Limits())
        assert lowered.size["components"] == lowered.size["classes"] == 1
        for seed in range(10):
            labels = some_labels(lowered.problem, seed)
            found = evaluate(graph, lowered.layouts(labels))
            assert (found.violations, found.score) == ((), score(lowered, labels))


def test_order_rules_agree_with_the_specification() -> None:
    """The lowered order rule forbids exactly what the specification forbids.

    Every named label is tried at every node, all other nodes fresh.
    """
    agreed = forbidden = 0
    for graph in graphs(180):
        lowered = lower(graph, Limits())
        problem = lowered.problem
        fresh = problem.labels + np.arange(problem.nodes)
        for node, label in problem.reward_at.tolist():
            labels = fresh.copy()
            labels[node] = label
            legal = allowed(problem, labels.tolist())
            found = evaluate(graph, lowered.layouts(labels))
            assert legal == (not found.violations), (graph.name, node, label)
            agreed += 1
            forbidden += not legal
    assert agreed > 450
    assert forbidden > 13


class TestReaders:
    """Which barriers read which elements, where parts of one sink are read by different ones."""

    def test_overlapping_parts(self) -> None:
        """B reads x0 x1, c reads x1 x2: x1 may take neither's locations, x3 both's.

        x0 may take c's, x2 b's, but not together.
        """
        graph = Graph("overlap")
        x = graph.sink((4,), name="x")
        graph.valued_pair(graph.barrier([graph.slice(x, (0,), (2,))], (4,), name="b"), x, 3)
        graph.valued_pair(graph.barrier([graph.slice(x, (1,), (3,))], (4,), name="c"), x, 5)
        lowered = lower(graph, Limits())
        order = lowered.problem.precedence
        assert order is not None
        assert [order.reader_sets[s] for s in order.node_readers] == [(0,), (0, 1), (1,), ()]
        legal = {}
        for node, label in lowered.problem.reward_at.tolist():
            labels = lowered.problem.labels + np.arange(4)
            labels[node] = label
            found = evaluate(graph, lowered.layouts(labels))
            legal[node, int(order.label_barrier[label])] = not found.violations
            assert allowed(lowered.problem, labels.tolist()) == (not found.violations)
        assert legal == {
            **{(0, 0): False, (0, 1): True},
            **{(1, 0): False, (1, 1): False},
            **{(2, 0): True, (2, 1): False},
            **{(3, 0): True, (3, 1): True},
        }

    def test_many_readers(self) -> None:
        """Only sets of barriers that read some element are kept, and the empty set."""
        graph = Graph("many")
        x = graph.sink((2,), name="x")
        for _ in range(5):
            y = graph.sink((2,))
            graph.valued_pair(graph.barrier([x], (2,)), y, 1)
            graph.valued_pair(x, y, 1)
        order = lower(graph, Limits()).problem.precedence
        assert order is not None
        assert order.reader_sets == ((), (0, 1, 2, 3, 4))
        assert unwind(graph).score == 10

    def test_readers_tell_classes_apart(self) -> None:
        """Elements that are alike but for who reads them are different classes."""
        graph = Graph("half")
        x = graph.sink((6,), name="x")
        graph.valued_pair(graph.barrier([graph.slice(x, (0,), (2,))], (6,), name="b"), x, 3)
        lowered = lower(graph, Limits())
        assert (lowered.size["components"], lowered.size["classes"]) == (6, 2)
        assert sorted(lowered.problem.rewards.tolist()) == [2, 4]  # copies; the unit is 3
        assert unwind(graph).score == 12


def test_labels_of_layouts_come_back() -> None:
    """Reading labels off layouts gives labels of the same value."""
    for graph in graphs(90):
        lowered = lower(graph, Limits())
        labels = some_labels(lowered.problem, 1)
        origins = {}
        number = {t.name: t.index for t in graph.tensors()}
        for name, pieces in lowered.layouts(labels).items():
            sink = graph.tensor(name)
            tensor, element = np.zeros((2, sink.size), np.int64)
            for piece in pieces:
                tensor[written(piece)], element[written(piece)] = number[piece[0]], read(piece)
            origins[sink.index] = tensor, element
        back = lowered.labels(origins)
        assert lowered.problem.value(back) == lowered.problem.value(labels)


def test_equal_groups_are_solved_once() -> None:
    """A thousand copies of one small graph give one group kind, weights times a thousand."""
    graph = Graph("copies")
    for _ in range(1000):
        x = graph.sink((2, 2))
        graph.valued_pair(graph.dim_shuffle(x, (1, 0)), graph.source((2, 2)), "2.5")
    lowered = lower(graph, Limits())
    assert lowered.size["groups"] == 1000
    assert lowered.size["group_kinds"] == 1
    assert lowered.size["components"] == 4000
    assert lowered.problem.nodes == lowered.size["classes"] == 1
    assert lowered.problem.rewards.tolist() == [4000]
    found = evaluate(graph, lowered.layouts(np.zeros(1, np.int64)))
    assert (found.violations, found.score) == ((), 10000)


def test_unlike_groups_are_not_merged() -> None:
    """Groups that differ in a value, a shape, a view, a mapping or a root stay apart."""
    graph = Graph("unlike")

    def group(value: float, shape: tuple[int, ...], back: bool, mapping: list[int] | None) -> None:
        x, s = graph.sink(shape), graph.source(shape, mapping)
        graph.valued_pair(graph.reverse(x, [0] if back else []), s, value)

    group(1, (4,), True, None)
    group(2, (4,), True, None)
    group(1, (5,), True, None)
    group(1, (4,), False, None)
    group(1, (4,), True, [1, 2, 3, 4])
    group(1, (4,), True, [1, 2, 3, 3])
    y = graph.sink((4,))
    graph.valued_pair(graph.reverse(y, [0]), graph.sink((4,)), 1)
    group(1.0, (4,), True, None)  # the first once more
    lowered = lower(graph, Limits())
    assert (lowered.size["groups"], lowered.size["group_kinds"]) == (8, 7)


def test_isomorphic_components_are_merged() -> None:
    """Rings that tie elements of one sink to each other are told apart by length only.

    x (6) rotated by one gives one ring of six, rotated by two two rings of three.
    """
    for step, components, nodes in [(1, 1, 6), (2, 2, 3), (3, 3, 2)]:
        graph = Graph("rings")
        x = graph.sink((6,), name="x")
        tail = graph.slice(x, (step,), (6,))
        graph.valued_pair(graph.concat([tail, graph.slice(x, (0,), (step,))], 0), x, 1)
        lowered = lower(graph, Limits())
        assert lowered.size["components"] == components
        assert (lowered.size["classes"], lowered.problem.nodes) == (1, nodes)
        total = lowered.problem.total()
        assert total == 6  # multiplicities make up for what is merged


def test_alike_but_not_isomorphic() -> None:
    """A ring of six and two rings of three look alike from every element, and are told apart.

    All are in one sink, so that nothing but the length of the rings tells them apart.
    """
    graph = Graph("decoy")
    x = graph.sink((12,), name="x")
    after = [1, 2, 3, 4, 5, 0, 7, 8, 6, 10, 11, 9]
    rotated = graph.concat([graph.slice(x, (i,), (i + 1,)) for i in after], 0)
    graph.valued_pair(rotated, x, 1)
    lowered = lower(graph, Limits())
    assert (lowered.size["components"], lowered.size["classes"]) == (3, 2)
    assert lowered.problem.nodes == 9
    assert sorted(lowered.problem.weights.tolist()) == [1] * 6 + [2] * 3


def test_wide_numbers() -> None:
    """Values that do not fit 64 bits are kept exactly, multiplicities included."""
    graph = Graph("wide")
    x, y = graph.sink((3,), name="x"), graph.sink((3,), name="y")
    s = graph.source((3,), name="s")
    graph.valued_pair(x, y, "1e40")
    graph.valued_pair(x, s, "1e-40")
    lowered = lower(graph, Limits())
    assert lowered.problem.weights.tolist() == [3 * 10**80]
    assert lowered.problem.rewards.tolist() == [3]
    assert lowered.unit == Fraction(1, 10**40)
    found = evaluate(graph, lowered.layouts(np.zeros(2, np.int64)))
    assert found.score == score(lowered, np.zeros(2, np.int64))
    assert Fraction(found.score or 0) == 3 * (10**40 + Fraction(1, 10**40))


class TestMemory:
    """Graphs that do not fit."""

    def test_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A group that needs a byte more than there is is named, with both numbers."""
        graph = Graph("large")
        small, x = graph.sink((2,), name="small"), graph.sink((2**16,), name="x")
        graph.valued_pair(small, graph.source((2,)), 1)
        graph.valued_pair(x, graph.source((2**16,)), 1)
        needed = max(
            memory_needed(graph, group) for group in find_groups(graph, FixedElements(graph))
        )
        monkeypatch.setattr(base_limits, "available_memory", lambda: needed - 1)
        with pytest.raises(SizeError) as error:
            lower(graph, Limits())
        gib = f"{needed / 2**30:.3g} GiB"
        assert str(error.value) == (
            f"tracing every element of the group of tensor 'x' needs about {gib}; "
            f"this machine has {gib} free"
        )
        for enough in (needed, None):
            monkeypatch.setattr(base_limits, "available_memory", lambda enough=enough: enough)
            assert lower(graph, Limits()).problem.nodes == 2

    def test_no_elements_are_made_before(self) -> None:
        """A tensor of 2^60 elements, to be traced one by one, is refused at once, not tried."""
        graph = Graph("huge")
        x = graph.sink((2**60,), name="x")
        graph.valued_pair(x, graph.source((2**60,)), 1)
        with pytest.raises(SizeError, match="group of tensor 'x' needs about"):
            lower(graph, Limits(), lift_from=2**62)

    def test_systems_that_do_not_tell(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Without a table of free memory the whole memory counts; without that, anything goes."""

        def no_table(_name: str) -> None:
            raise OSError

        graph = Graph("huge")
        graph.valued_pair(graph.sink((2**60,)), graph.source((2**60,)), 1)
        monkeypatch.setattr(base_limits, "open", no_table, raising=False)
        with pytest.raises(SizeError, match="this machine has"):
            lower(graph, Limits(), lift_from=2**62)
        monkeypatch.setattr(base_limits, "GROUPS", Path("/nowhere"))
        monkeypatch.setattr(base_limits.os, "sysconf_names", {})
        small = Graph("small")
        small.valued_pair(small.sink((2,)), small.source((2,)), 1)
        assert lower(small, Limits()).problem.nodes == 1

    def test_estimate(self) -> None:
        """What is estimated grows with elements and pairs, and is no less than what is used."""
        estimates = []
        for size, pairs in [(10**5, 1), (2 * 10**5, 1), (2 * 10**5, 3)]:
            graph = Graph()
            x = graph.sink((size,))
            for _ in range(pairs):
                graph.valued_pair(graph.reverse(x, [0]), graph.source((size,)), 1)
            [group] = find_groups(graph, FixedElements(graph))
            tracemalloc.start()
            lower(graph, Limits())
            used = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            estimates.append(memory_needed(graph, group))
            assert used < 1.5 * estimates[-1] + 2**20
        assert estimates == sorted(set(estimates))


def test_time_runs_out() -> None:
    """A deadline in the past ends the lowering."""
    graph = random_graph(2)
    with pytest.raises(TimeoutError):
        lower(graph, Limits(deadline=0.0))
