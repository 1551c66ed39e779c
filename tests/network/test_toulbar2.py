"""Networks in the formats of toulbar2, whose optima toulbar2 itself found."""

from __future__ import annotations

import codecs
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
from layoutopt.network.files import is_network
from tests.network.oracle import best, draw

FILES = Path(__file__).parents[1] / "cases/toulbar2"

OPTIMA = {
    "loose.cfn": Fraction(13, 4),
    "most.cfn": Fraction(37, 10),
    "cut.cfn": 0,
    "saved.cfn": 1,
    "infinite.cfn": Fraction(-7, 2),
    "plain.wcsp": 7,
    "shared.wcsp": 2,
}


@pytest.mark.parametrize("name", OPTIMA)
def test_optimum_is_that_of_toulbar2(tmp_path: Path, name: str) -> None:
    """Packed or not, as editors on Windows save it, and by its content where no name tells."""
    raw = (FILES / name).read_bytes()
    (tmp_path / f"windows-{name}").write_bytes(codecs.BOM_UTF8 + raw.replace(b"\n", b"\r\n"))
    (tmp_path / f"{name}.gz").write_bytes(gzip.compress(raw))
    (tmp_path / f"{name}.xz").write_bytes(lzma.compress(raw))
    (tmp_path / "unnamed").write_bytes(raw)
    (tmp_path / "misnamed.json").write_bytes(codecs.BOM_UTF8 + raw)
    for path in (FILES / name, *tmp_path.iterdir()):
        assert solve(read(path)).objective == OPTIMA[name]
        assert read(path).name == read(FILES / name).name
        assert is_network(path) == (path.name != "unnamed")


def test_probabilities_become_costs() -> None:
    """The likeliest labelling costs least, and what is impossible is forbidden."""
    network = read(FILES / "likely.uai", digits=9)
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


def test_bounds_are_far_from_zero(tmp_path: Path) -> None:
    """Toulbar2 reads bounds between -1 and 0 without their sign."""
    net = CostNetwork(sense="max", digits=3)
    net.node("x", net.domain(2), [-0.042, 0.001])
    write(net, tmp_path / "n.cfn")
    assert '"mustbe": ">-1.000"' in (tmp_path / "n.cfn").read_text()


def test_names_that_are_numbers_are_written_as_names(tmp_path: Path) -> None:
    """Neither layoutopt nor toulbar2, which reads no digit in front, takes them for numbers."""
    net = CostNetwork()
    d = net.domain(["3x3", "x"])
    for name, costs in [("a", [0, 9]), ("1", [0, 0, 9]), ("0", [9, 0])]:
        net.node(name, net.domain(3) if len(costs) == 3 else d, costs)
    write(net, tmp_path / "n.cfn")
    found = solve(read(tmp_path / "n.cfn"))
    assert (found.objective, found.labels) == (0, {"a": "_3x3", "_1": 0, "_0": "x"})
    net.node("_0", d)
    with pytest.raises(InputError, match="two names differ"):
        write(net, tmp_path / "n.cfn")


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
