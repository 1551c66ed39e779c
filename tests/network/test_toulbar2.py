"""Networks in the formats of toulbar2, whose optima toulbar2 itself found."""

from __future__ import annotations

import dataclasses
import gzip
import itertools
import lzma
import math
from fractions import Fraction
from pathlib import Path

import pytest

from layoutopt.base.errors import InputError
from layoutopt.network import CostNetwork, read, solve, write
from tests.network.oracle import best, draw

CFN = """# what toulbar2 reads, too
{ problem: {name: t, mustbe: <10.00}
  variables: {x: 2 y: [a b]}
  functions: { f: {scope: [x] costs: [0.505 0.7]}
  g: {scope: [x y], defaultcost: 1.25, costs:[0 a 3  1 b 2]} h: {scope: [], costs: [1.5]}}}
"""

MOST = """{"problem": {"name": "t", "mustbe": ">-10.0"}, "variables": {"x": 2, "y": ["a", "b"]},
 "functions": {"f": {"scope": ["x"], "costs": [0.5, 0.7]},
               "g": {"scope": ["x", "y"], "costs": [1, 2, 3, -10]}}}"""

CUT = """{"problem": {"name": "t", "mustbe": "<10"}, "variables": {"x": 2},
 "functions": {"f": {"scope": ["x"], "costs": [1.99, -0.99]}}}"""

SAVED = """{"problem": {"name": "t", "mustbe": "<5.0"}, "variables": [2, 3],
 "functions": [{"scope": [0], "costs": [6, -3]},
               {"scope": [0, 1], "costs": [-5, 7, 6, 6, 6, 6]}]}"""

INFINITE = """{"problem": {"name": "t", "mustbe": "<5.0"}, "variables": {"x": 2, "z": 2},
 "functions": {"a": {"scope": ["x"], "costs": [1.5, inf]},
               "b": {"scope": ["x", "z"], "defaultcost": inf, "costs": [0, 0, -5.00000]}}}"""

WCSP = """t 2 2 3 10
2 2
1 0 0 2
0 5
1 3
2 0 1 1 2
0 0 4
0 1 10
0 3 0
"""

SHARED = """t 3 2 3 10
2 2 2
-2 0 1 1 2
0 0 4
0 1 10
2 1 2 0 -1
1 0 0 1
0 5
"""

UAI = """MARKOV
2
2 2
2
1 0
2 0 1
2
0.3 0.7
4
0.1 0.2 3e-1 0
"""


@pytest.mark.parametrize(
    ("name", "text", "optimum"),
    [
        ("a.cfn", CFN, Fraction(13, 4)),
        ("b.cfn", MOST, Fraction(37, 10)),
        ("c.cfn", CUT, 0),
        ("d.cfn", SAVED, 1),
        ("e.cfn", INFINITE, Fraction(-7, 2)),
        ("f.wcsp", WCSP, 7),
        ("g.wcsp", SHARED, 2),
    ],
)
def test_optimum_is_that_of_toulbar2(
    tmp_path: Path, name: str, text: str, optimum: Fraction
) -> None:
    """Packed or not, and by its content where the name says nothing."""
    (tmp_path / name).write_text(text)
    (tmp_path / f"{name}.gz").write_bytes(gzip.compress(text.encode()))
    (tmp_path / f"{name}.xz").write_bytes(lzma.compress(text.encode()))
    (tmp_path / "unnamed").write_text(text)
    for path in (name, f"{name}.gz", f"{name}.xz", "unnamed"):
        assert solve(read(tmp_path / path)).objective == optimum


def test_probabilities_become_costs(tmp_path: Path) -> None:
    """The likeliest labelling costs least, and what is impossible is forbidden."""
    (tmp_path / "n.uai").write_text(UAI)
    network = read(tmp_path / "n.uai", digits=9)
    found = solve(network)
    assert found.labels == {"x0": 1, "x1": 0}
    assert found.objective is not None
    assert abs(float(found.objective) + math.log(0.7 * 0.3)) < 2e-9
    assert 10**9 % found.network.unit.denominator == 0
    assert [*itertools.chain(*network.tables[0].allowed.tolist())] == [True, True, True, False]


def test_every_closed_network_is_written_as_cfn(tmp_path: Path) -> None:
    """What is read again has the same best cost, in either sense and any decimal unit."""
    for seed in range(200):
        network = draw(seed)
        unit = Fraction(1, (1, 10, 4)[seed % 3])
        network = dataclasses.replace(network, constant=seed % 7 - 3, unit=unit)
        if any(domain.open for domain in network.domains):
            with pytest.raises(InputError, match="open domains cannot be written"):
                write(network, tmp_path / "n.cfn")
            continue
        write(network, tmp_path / "n.cfn")
        again = read(tmp_path / "n.cfn")
        one, two = best(network), best(again)
        assert (one is None) == (two is None), seed
        if one is not None and two is not None:
            assert one * unit == two * again.unit, seed


def test_what_cfn_cannot_hold_is_not_written(tmp_path: Path) -> None:
    """Rows, costs that are no decimals, and names that would become one."""
    net = CostNetwork()
    d = net.domain(2)
    net.node("a b", d, [Fraction(1, 3), 0])
    with pytest.raises(InputError, match="not a decimal"):
        write(net.build(), tmp_path / "n.cfn")
    net.node("a:b", d)
    with pytest.raises(InputError, match="two names differ in spaces"):
        write(dataclasses.replace(net.build(), unit=Fraction(1)), tmp_path / "n.cfn")
    net.row({("a b", 0): 1}, high=1)
    with pytest.raises(InputError, match="rows of limits"):
        write(net.build(), tmp_path / "n.cfn")
