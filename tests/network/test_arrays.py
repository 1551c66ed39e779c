"""Networks from arrays and data frames, and the packages that a network needs."""

from __future__ import annotations

import random
import subprocess
import sys
from decimal import Decimal
from typing import Any
from unittest import mock

import networkx as nx
import numpy as np
import pytest

from layoutopt.base.errors import InputError
from layoutopt.network import CostNetwork, builder, solve
from layoutopt.network.network import Sense
from tests.network.oracle import best


def test_arrays_say_what_calls_say(monkeypatch: pytest.MonkeyPatch) -> None:
    """Costs, tables for each edge or by number, infinite costs, names and rounding."""
    costs = np.array([[0, 3], [1, np.inf], [2, 2]])
    tables = np.array([[[0, 2], [1, np.inf]], [[1, 0], [0, 1]]])
    made = CostNetwork.from_arrays(
        costs, [[0, 1], [1, 2]], tables, nodes=["a", "b", "c"], labels=["x", "y"]
    )
    net = CostNetwork()
    d = net.domain(["x", "y"])
    a, b, c = net.node("a", d, [0, 3]), net.node("b", d, [1, None]), net.node("c", d, [2, 2])
    net.table(a, b, [[0, 2], [1, None]])
    net.table(b, c, [[1, 0], [0, 1]])
    assert best(made.build()) == best(net.build())
    assert solve(made).labels == solve(net).labels
    assert solve(CostNetwork.from_arrays(-costs, sense="max")).labels == {"0": 0, "1": 0, "2": 0}
    exact = mock.Mock(side_effect=builder.exact)
    monkeypatch.setattr(builder, "exact", exact)
    shared = CostNetwork.from_arrays(
        [[0.125, 1], [0, 0, 0.26]], [(0, 1)] * 9, [[[0, 1, 2], [3, 4.0, 5]]], [0] * 9, digits=2
    ).build()
    assert exact.call_count == 3  # a table that edges share is converted once
    assert shared.sizes.tolist() == [2, 3]
    assert Decimal("0.12") == shared.costs[0] * shared.unit


class Frame:
    """The least that every kind of data frame has: its columns by name."""

    def __init__(self, **columns: list[Any]) -> None:
        self._columns = columns

    def __getitem__(self, name: str) -> Any:
        return iter(self._columns[name])


def test_data_frames_are_read_by_their_columns() -> None:
    """Long tables: a row for each label, or pair of labels; what is missing is forbidden."""
    nodes = Frame(node=["a", "a", "b", "b"], label=["x", "y"] * 2, cost=[0, 2, float("nan"), 1])
    pairs = Frame(u=["a", "a"], v=["b", "b"], u_label=["x", "y"], v_label=["y", "y"], cost=[5, 1])
    found = solve(CostNetwork.from_frames(nodes, pairs))
    assert found.labels == {"a": "y", "b": "y"}
    assert found.objective == 4
    assert found.frame() == {"node": ["a", "b"], "label": ["y", "y"], "number": [1, 1]}
    equal = Frame(u=["a"], v=["b"], equal=[-9])
    assert solve(CostNetwork.from_frames(nodes, equal)).objective == -6
    assert solve(CostNetwork.from_frames(nodes)).objective == 1


class Missing:
    """A missing value of nullable columns, as of pandas."""

    def __str__(self) -> str:
        return "<NA>"

    def __ne__(self, other: object) -> bool:
        raise TypeError("boolean value of NA is ambiguous")


class Column(list[Any]):
    """A column of Arrow, whose entries are no Python numbers until they are listed."""

    def __iter__(self) -> Any:
        return map(str, super().__iter__())

    def to_pylist(self) -> list[Any]:
        """Return the entries as numbers and texts of Python."""
        return [*super().__iter__()]


def test_values_of_data_frames_may_be_missing_or_of_arrow() -> None:
    """Costs of nullable columns may be missing, as may not names."""
    nodes = {"node": ["a", "a"], "label": ["x", "y"], "cost": [Missing(), 2]}
    assert solve(CostNetwork.from_frames(nodes)).labels == {"a": "y"}
    arrow = {name: Column(column) for name, column in nodes.items()}
    assert solve(CostNetwork.from_frames(arrow)).objective == 2
    for hole in (None, float("nan"), Missing()):
        with pytest.raises(InputError, match="column 'node' has no value in row 1"):
            CostNetwork.from_frames({**nodes, "node": ["a", hole]})


def test_labels_and_costs_that_are_none_are_refused() -> None:
    """Whatever stands in their place, there is one line."""
    with pytest.raises(InputError, match="names of labels must be strings"):
        CostNetwork.from_arrays([[0, 1]], labels=[["x"], ["y"]])
    graph = nx.Graph()
    graph.add_node("a", costs=3)
    with pytest.raises(InputError, match="costs of node 'a' must be listed, got 3"):
        CostNetwork.from_networkx(graph)


@pytest.mark.parametrize("sense", ["min", "max"])
@pytest.mark.parametrize("largest", [2**40, 2**61, 2**63 - 1, 2**70])
def test_costs_beyond_64_bits(sense: Sense, largest: int) -> None:
    """Nodes of closed domains that are drawn together or apart, against all labellings."""
    for seed in range(8):
        draw, net = random.Random(seed), CostNetwork(sense=sense)
        labels = net.domain(2)
        for k in range(4):
            net.node(
                f"{k}", labels, [draw.choice([0, draw.randint(-largest, largest)]) for _ in "ab"]
            )
            for other in range(k):
                net.equal(f"{other}", f"{k}", draw.randint(-largest, largest))
        made = net.build()
        assert solve(made).objective == best(made)


ALONE = """
import sys
for name in ("ortools", "msgspec", "networkx", "typer", "rich", "jinja2", "onnx", "matplotlib"):
    sys.modules[name] = None
import random
from layoutopt.base.errors import InputError
from layoutopt.network import CostNetwork, solve
r = random.Random(0)
net = CostNetwork("alone")
labels = net.domain(["a", "b", "c", "d"])
names = [net.node(f"n{k}", labels, [r.randint(0, 9) for _ in range(4)]) for k in range(12)]
for u in range(12):
    for v in range(u):
        if r.random() < 0.5:
            net.table(names[u], names[v], [[r.randint(0, 9) for _ in range(4)] for _ in range(4)])
found = solve(net)
print(found.status, found.objective, found.labels["n0"])
net.row({(name, "a"): 1 for name in names}, low=4, high=5)
print(solve(net).status)
spin = CostNetwork("equal", "max")
d = spin.domain(4)
for k in range(9):
    spin.node(f"s{k}", d, [r.randint(0, 9) for _ in range(4)])
for u in range(9):
    for v in range(u):
        spin.equal(f"s{u}", f"s{v}", r.randint(1, 9))
print(solve(spin).status)
loaded = {name.partition(".")[0] for name in sys.modules if sys.modules[name] is not None}
print(sorted(loaded & {"numpy", "scipy", "pandas", "ortools", "msgspec", "networkx"}))
"""


def test_numpy_and_scipy_are_all_that_a_network_needs() -> None:
    """Without any other package networks are stated and solved, also those with rows."""
    done = subprocess.run(
        [sys.executable, "-c", ALONE], capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    assert done.stdout.split()[0] == "optimal"
    assert done.stdout.splitlines()[1:] == ["optimal", "optimal", "['numpy', 'scipy']"]
