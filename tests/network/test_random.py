"""Random networks of costs against all their labellings."""

from __future__ import annotations

import signal

import pytest

from layoutopt.base.limits import Progress
from layoutopt.network import CostNetwork, solve
from layoutopt.network import rows as coupling
from tests.network.oracle import best, draw


def _agree(first: int, *, rows: bool) -> None:
    for seed in range(first, first + 50):
        network = draw(seed, rows=rows)
        wanted, found = best(network), solve(network)
        if wanted is None:
            assert found.status == "infeasible", seed
        else:
            assert found.choice is not None
            assert not network.fault(found.choice), seed
            got = (network.cost(found.choice), found.cost, found.least)
            assert got == (wanted,) * 3, seed


@pytest.mark.parametrize("first", range(0, 300, 50))
def test_answers_are_the_best_of_all(first: int) -> None:
    """Status, cost and bound of random networks are those of all labellings."""
    _agree(first, rows=False)


@pytest.mark.parametrize("way", ["as it is", "priced", "without OR-Tools"])
def test_answers_keep_rows(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same with rows: by branching, by prices and CP-SAT, and by prices and branching."""
    if way != "as it is":
        monkeypatch.setattr(coupling, "BRANCHES", 0)
    if way == "without OR-Tools":
        monkeypatch.setattr(coupling, "find_spec", lambda _: None)
    for first in (0, 50):
        _agree(first, rows=True)


def test_ctrl_c_keeps_what_is_found() -> None:
    """A first Ctrl-C asks a solve to stop, and does not end the program."""
    asked = []

    def stop(message: Progress) -> None:
        if message.objective is not None and not asked:
            asked.append(message)
            signal.raise_signal(signal.SIGINT)

    net = CostNetwork()
    labels = net.domain(2)
    every = [net.node(f"n{k}", labels, [k, 3]) for k in range(6)]
    net.row({(name, 0): 1 for name in every}, high=3)
    found = solve(net, progress=stop)
    assert asked
    assert found.choice is not None
