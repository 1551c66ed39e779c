"""Cost networks written to files and read again."""

from __future__ import annotations

import dataclasses
import itertools
import json
import random
import re
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from layoutopt.base.errors import InputError
from layoutopt.network import CostNetwork, Network, read, write
from layoutopt.network.network import span_windows
from tests.network.oracle import draw
from tests.support import refused

ENDINGS = (".json", ".json.gz", ".npz")


def assert_same(one: Any, two: Any, place: str = "network") -> None:
    """Two networks have equal arrays, of equal kinds, and equal other parts."""
    assert type(one) is type(two), place
    if isinstance(one, np.ndarray):
        assert one.dtype == two.dtype, place
        assert one.shape == two.shape, place
        assert one.tolist() == two.tolist(), place
    elif isinstance(one, tuple):
        assert len(one) == len(two), place
        for i, (a, b) in enumerate(zip(one, two, strict=True)):
            assert_same(a, b, f"{place}[{i}]")
    elif dataclasses.is_dataclass(one):
        for part in dataclasses.fields(one):
            name = part.name
            assert_same(getattr(one, name), getattr(two, name), f"{place}.{name}")
    else:
        assert one == two, place


def odd() -> Network:
    """Return a network with numbers of all kinds, windows, and names that need care."""
    net = CostNetwork('odd \\ "name" mustbe é \u2028', "max")
    d, e = net.domain(["NCHW", "NHWC", ""]), net.domain(2, open=True)
    x, y = net.node("x y", d, [Fraction(1, 3), 10**40, None]), net.node("", d)
    a, b = net.node("a", e, [Decimal("0.125"), -7]), net.node("é", e)
    net.table(x, y, [[1, None, 2], [0, 0, -(10**30)], [None, None, Fraction(-5, 7)]])
    net.table(y, x, [[1, None, 2], [0, 0, -(10**30)], [None, None, Fraction(-5, 7)]])
    net.equal(a, b, Decimal("1e-20"))
    net.tie(a, b)
    net.row({(x, 0): Fraction(1, 7), (y, 1): 10**25}, low=-3, high=10**26, name="a row")
    net.row({(x, 1): 1}, high=Fraction(1, 2))
    net.windows({x: (0, 4), y: [(2, 6), (9, 10)]}, {x: [1, 2, 3], y: [Decimal("2.5")] * 3}, 4)
    return dataclasses.replace(net.build(), constant=-(10**50))


@pytest.mark.parametrize("ending", ENDINGS)
def test_every_network_is_read_as_it_was_written(tmp_path: Path, ending: str) -> None:
    """Arrays, their kinds and units are the same, whatever the network."""
    path = tmp_path / f"network{ending}"
    empty = CostNetwork().build()
    for network in (empty, odd(), *(draw(seed, rows=seed % 2 == 1) for seed in range(150))):
        write(network, path)
        again = read(path)
        assert_same(network, again)
        assert_same(network.usages, again.usages)


def test_numbers_of_any_unit_are_kept(tmp_path: Path) -> None:
    """What numbers mean does not depend on the unit that a network counts in."""
    net = CostNetwork()
    d = net.domain(2)
    net.node("a", d, [3, 5])
    for unit in (
        Fraction(2),
        Fraction(1, 10),
        Fraction(7, 3),
        Fraction(1, 10**401),
        Fraction(10**401),
    ):
        network = dataclasses.replace(net.build(), unit=unit)
        for ending in ENDINGS:
            write(network, tmp_path / f"n{ending}")
            assert_same(network, read(tmp_path / f"n{ending}"))


def test_the_example_of_the_docs_is_read(tmp_path: Path) -> None:
    """What docs/formats.md shows is a network."""
    text = (Path(__file__).parents[2] / "docs/formats.md").read_text()
    [shown] = re.findall(r'```json\n(\{"format": "layoutopt/network/1".*?)```', text, re.DOTALL)
    (tmp_path / "shown.json").write_text(shown)
    assert repr(read(tmp_path / "shown.json")) == "Network('step': 4 nodes, 2 edges, 1 rows)"


REFUSED = json.loads((Path(__file__).parents[1] / "cases/refused_networks.json").read_text())
"""Texts that are no networks, by the name of their file, with the reason."""


@pytest.mark.parametrize(
    ("name", "text", "reason"), [(name, *row) for name in REFUSED for row in REFUSED[name]]
)
def test_bad_files_are_refused_in_one_line(
    tmp_path: Path, name: str, text: str, reason: str
) -> None:
    """The line names the file, and what is wrong."""
    path = tmp_path / name
    path.write_text(text)
    with refused(f"{path}: ", reason):
        read(path)


def test_spans_and_lists_of_members_say_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows are written as spans where their lists are long; archives once held lists of items."""
    monkeypatch.setattr("layoutopt.network.document.ENTRIES", 2)
    path, network = tmp_path / "n.json", odd()
    write(network, path)
    assert '"spans"' in path.read_text()
    assert_same(network, read(path))
    old = tmp_path / "n.npz"
    write(network, old)
    with np.load(old) as archive:
        arrays = dict(archive)
    for k, usage in enumerate(network.usages):
        del arrays[f"usages.{k}.spans"]
        lists = [usage.counted(row).tolist() for row in range(usage.rows)]
        arrays[f"usages.{k}.starts"] = np.cumsum([0, *map(len, lists)])
        arrays[f"usages.{k}.members"] = np.array([*itertools.chain(*lists)], np.int64)
    np.savez(old, **arrays)
    assert_same(network, read(old))
    np.savez(old, **(arrays | {"usages.0.starts": np.array([0, 99])}))
    with pytest.raises(InputError, match="lists of nodes"):
        read(old)


def test_windows_are_the_largest_sets_of_live_nodes() -> None:
    """Each row counts a set of nodes that are live at its time, and no set is within another."""
    for seed in range(200):
        r = random.Random(seed)
        live = [(r.randrange(4), r.randrange(9), r.randrange(9)) for _ in range(r.randrange(9))]
        times, spans = span_windows(*np.array(live, np.int64).reshape(-1, 3).T)
        sets = [frozenset(u for u, a, b in live if a <= time < b) for time in range(9)]
        largest = {own for own in sets if own and not any(own < other for other in sets)}
        counted = [
            frozenset(u for u, a, b in spans.tolist() if a <= row < b) for row in range(len(times))
        ]
        assert counted == [sets[time] for time in times.tolist()]
        assert largest <= set(counted)


def test_archives_are_read_by_their_content(tmp_path: Path) -> None:
    """Arrays that lack something, hold something else or end too early are refused."""
    path = tmp_path / "n.npz"
    write(odd(), path)
    raw = path.read_bytes()
    path.write_bytes(raw[: len(raw) // 2])
    with pytest.raises(InputError, match=r"no whole \.npz file"):
        read(path)
    path.write_bytes(raw)
    with np.load(path) as archive:
        good = dict(archive)
    for key, wrong in (
        ("costs", np.zeros((1, 2), np.int64)),
        ("domain_of", np.array([0.5])),
        ("nodes", np.array([1, 2])),
        ("usages.0.spans", np.array([[0, 0, 99]])),
        ("unit", np.array("0")),
        ("strange", np.array(1)),
    ):
        np.savez(path, **(good | {key: wrong}))
        with pytest.raises(
            InputError, match=key.partition(".")[0] if "." not in key else "rows 0 to"
        ):
            read(path)


@pytest.mark.parametrize("name", ["n.npz.gz", "n.json.xz", "n.wcsp", "n.txt", "n"])
def test_networks_are_written_under_documented_names_only(tmp_path: Path, name: str) -> None:
    """Another name is refused, and no file appears."""
    with pytest.raises(InputError, match="must end in"):
        write(draw(1), tmp_path / name)
    assert not [*tmp_path.iterdir()]
