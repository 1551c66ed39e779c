"""Benchmarks of cost networks: their own evaluator, and one programme for all solvers."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest

from benchmarks import iopddl, other_solvers, registers, sharding


def test_evaluator_keeps_the_rules(tmp_path: Path) -> None:
    """It adds up costs, and refuses what is forbidden or uses too much."""
    problem = {
        "nodes": {
            "intervals": [[0, 2], [1, 3]],
            "costs": [[4, 7], [1, 10**18]],
            "usages": [[6, 2], [5, 9]],
        },
        "edges": {"nodes": [[1, 0]], "costs": [[1, 5, 0, 0]]},
        "usage_limit": 10,
    }
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"problem": problem}))
    assert iopddl.evaluated(path, [1, 0]) == 7 + 1 + 5
    with pytest.raises(ValueError, match="11 is used at time 1"):
        iopddl.evaluated(path, [0, 0])
    with pytest.raises(ValueError, match="forbidden"):
        iopddl.evaluated(path, [1, 1])


@pytest.mark.parametrize("tied", [False, True])
def test_solvers_agree_on_sharding(tied: bool) -> None:
    """The network and the integer programme have one optimum."""
    make = partial(sharding.draw, 2, 5, tied, 1)
    found = other_solvers.ours(make, 60).answer
    for solve in (other_solvers.with_highs, other_solvers.directly):
        other = solve(make, 60).answer
        assert (found[0], other[0]) == ("optimal", "optimal")
        assert found[1] == found[2] == round(other[1])


@pytest.mark.parametrize("family", registers.FAMILIES)
def test_solvers_agree_on_registers(family: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The network, a direct statement and the programme have one optimum, which is printed."""
    make = partial(registers.FAMILIES[family], 7, 3, 1)
    found = other_solvers.ours(make, 60).answer
    for solve in (other_solvers.directly, other_solvers.with_cpsat, other_solvers.with_highs):
        other = solve(make, 60).answer
        assert (found[0], other[0]) == ("optimal", "optimal")
        assert found[1] == found[2] == round(other[1]) == round(other[2])
    other_solvers.compare(make, ["layoutopt"], 60)
    assert f"| layoutopt | optimal | {found[1]} | {found[1]} |" in capsys.readouterr().out
