"""What ops cost in each layout decides with what transforms cost."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

from layoutopt.base.result import Status
from layoutopt.conversion.convert import convert_graph
from layoutopt.conversion.cost_table import costs_from, read_costs
from layoutopt.conversion.graph import ConversionGraph
from tests.conversion.running import arrays_of, run, run_conversion
from tests.conversion.timed import least_time, mixed, table
from tests.support import refused


@pytest.mark.parametrize(("fixed", "per_byte"), [(3, 0), (0, 40000)])
def test_the_least_time_of_all_combinations(fixed: int, per_byte: int) -> None:
    """It is that of the best of all ways to fix each op's layout, each with its proved minimum."""
    for seed in range(24):
        graph = mixed(seed)
        costs = costs_from(table(seed, fixed, per_byte))
        found = convert_graph(graph, costs=costs, objective="time")
        assert found.status is Status.OPTIMAL
        assert found.objective == (least_time(graph, costs, fixed),), graph.name
        given = arrays_of(graph, seed)
        [name] = graph.outputs
        np.testing.assert_allclose(run_conversion(found, given)[name], run(graph, given)[name])


def chain() -> ConversionGraph:
    """Return two convolutions of 256 bytes of data, with 64 of weights."""
    graph = ConversionGraph("chain")
    x = graph.input("x", (1, 4, 4, 4))
    for n in range(2):
        x = graph.op("Conv", [x, graph.constant(f"w{n}", (4, 4, 1, 1))], name=f"conv{n}")
    graph.output(x)
    return graph


def test_it_pays_to_change_or_not() -> None:
    """Two convolutions that save 3 us each are worth two transforms of 2 us, not of 4."""
    lines = [
        {"type": "Conv", "layouts": "NCHW,OIHW", "us": 5},
        {"type": "Conv", "layouts": "NHWC,HWIO", "us": 2},
    ]
    for each, layouts, time in ((2, "NHWC,HWIO->NHWC", 8), (4, "None", 10)):
        costs = costs_from({"transform": {"us": each}, "op": lines})
        found = convert_graph(chain(), costs=costs, objective="time,count")
        assert [str(op.layouts) for op in found.graph.ops if op.type == "Conv"] == [layouts] * 2
        assert found.objective == (time * 10**9, 2 if each == 2 else 0)
        assert found.bound == found.objective


def test_bytes_of_ops_count() -> None:
    """What an op costs by bytes is for its operands and results: 2 x 256 + 64 each."""
    lines = [{"type": "Conv", "layouts": "NHWC,HWIO", "us_per_megabyte": Decimal("0.5")}]
    costs = costs_from({"op": lines})
    assert convert_graph(chain(), costs=costs, objective="time").objective == (2 * 576 * 500,)


WRONG = {
    "no table": ({"transform": 3}, "must have a table [transform]"),
    "another key": ({"ops": []}, "there is no 'ops'; known: op, transform"),
    "no type": ({"op": [{"layouts": "NHWC"}]}, "op 1: needs either a type of op or the name"),
    "both": ({"op": [{"type": "Conv", "name": "a", "layouts": "NHWC"}]}, "either a type"),
    "no layouts": ({"op": [{"type": "Conv"}]}, 'op 1: needs layouts, as in "NHWC,HWIO"'),
    "bad layout": ({"op": [{"type": "Conv", "layouts": "N!"}]}, "op 1: desired layout"),
    "text": ({"transform": {"us": "1"}}, "transform: us must be a number, not '1'"),
    "negative": ({"transform": {"us": -1}}, "us must be 0 or more, with up to 9 decimals"),
    "too fine": ({"transform": {"us_per_megabyte": Decimal("0.0001")}}, "up to 3 decimals"),
    "infinite": ({"transform": {"us": Decimal("inf")}}, "transform: us: value Infinity is not"),
    "endless": (
        {"transform": {"us": Decimal("1e999999999")}},
        "us: value has more than 400 digits",
    ),
    "too fine by far": (
        {"transform": {"us": Decimal("123456789012345678901234567890.1234567891")}},
        "up to 9 decimals",
    ),
    "unknown type": ({"op": [{"type": "Konv", "layouts": "NHWC"}]}, "did you mean Conv?"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_tables(case: str) -> None:
    """One line says what is wrong, and where."""
    document, words = WRONG[case]
    with refused(words):
        costs_from(document)


def test_times_beyond_64_bits() -> None:
    """Times that no 64 bits hold are refused in a line, where their differences do not fit either.

    Exact ones of any size are read.
    """
    one = Decimal("1e20")
    lines = [
        {"type": "Conv", "layouts": layouts, "us": us}
        for layouts, us in (("NCHW,OIHW", one), ("NHWC,HWIO", one + 1))
    ]
    costs = costs_from({"transform": {"us": 2}, "op": lines})
    assert [line.fixed for line in costs.lines] == [10**29, 10**29 + 10**9]
    for objective in ("time", "count,time"):
        with refused(f"objective {objective}: costs ", "needs smaller numbers"):
            convert_graph(chain(), costs=costs, objective=objective)


def test_files(tmp_path: Path) -> None:
    """A table is read from TOML exactly; what cannot be read is one line with the file's name."""
    path = tmp_path / "costs.toml"
    path.write_text('[transform]\nus = 0.1\n[[op]]\ntype = "Conv"\nlayouts = "NHWC"\nus = 2\n')
    costs = read_costs(path)
    assert (costs.fixed, [line.fixed for line in costs.lines]) == (10**8, [2 * 10**9])
    path.write_text("transform")
    with refused("costs.toml", "is not TOML"):
        read_costs(path)
    with refused("none.toml", "no such file"):
        read_costs(tmp_path / "none.toml")


def test_time_needs_costs_and_letters() -> None:
    """Time is no objective without a table; ops whose axes have no letters have no layouts."""
    with refused("time needs a table of costs"):
        convert_graph(chain(), objective="time")
    graph = ConversionGraph("relu")
    graph.output(graph.op("Relu", [graph.input("x", (1, 2, 3, 4))]))
    costs = costs_from({"op": [{"type": "Relu", "layouts": "NHWC", "us": 1}]})
    with refused("Relu 'relu0'", "its axes have no"):
        convert_graph(graph, costs=costs, objective="time")
