"""What users give to functions by mistake, or because NumPy takes it: it works, or is one line."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import layoutopt as lo
from layoutopt.base.errors import printable
from layoutopt.base.numbers import ratio
from layoutopt.conversion.cost_table import read_costs
from layoutopt.io.certificate import read_certificate
from layoutopt.onnx.read import read_attractions
from tests.examples.test_calls import GRAPH, RESULT

BOM = b"\xef\xbb\xbf"


def test_a_mark_of_byte_order_says_nothing(tmp_path: Path) -> None:
    """Editors of Windows write it before JSON and TOML."""

    def marked(name: str, text: bytes) -> Path:
        (tmp_path / name).write_bytes(BOM + text)
        return tmp_path / name

    path = tmp_path / "plain.json"
    lo.write_instance(GRAPH, path)
    assert lo.read(marked("graph.json", path.read_bytes())) == GRAPH
    lo.write_result(RESULT, path)
    assert lo.read_result(marked("result.json", path.read_bytes())).score == 12
    assert read_certificate(marked("c.json", b'{"format": "layoutopt/certificate/1"}'))
    assert read_attractions(marked("a.toml", b""))
    assert read_costs(marked("costs.toml", b"[transform]\nus = 1\n"))


def test_a_comparison_prints_as_a_table() -> None:
    lines = str(lo.compare(GRAPH)).splitlines()
    assert lines[0] == "small"
    assert lines[1].split()[:4] == ["solver", "status", "score", "bound"]
    assert [line.split()[0] for line in lines[2:]] == ["auto", "greedy0"]
    assert [line.split()[2] for line in lines[2:]] == ["12", "12"]


def test_names_cannot_steer_a_terminal() -> None:
    """Escape sequences, line feeds and marks of direction are spelt out."""
    graph = lo.Graph("a\x1b[31m\nb")
    x, t = graph.sink((2,), name="x\x1b]0;title\x07"), graph.source((2,), name="t\u202e\n")
    graph.valued_pair(x, t, 1)
    result = lo.unwind(graph)
    explained = lo.explain_pair(graph, result, x, t), lo.explain_sink(graph, result, x)
    for shown in (graph, result, lo.compare(graph), lo.schedule(graph, result), *explained):
        assert str(shown).replace("\n", "").isprintable(), shown
    assert len(str(lo.schedule(graph, result)).splitlines()) == 1
    assert printable("é\t\x1b") == "é\\t\\x1b"


def test_a_gap_to_a_score_of_zero_is_not_shown() -> None:
    """It is relative to nothing; the number in files stays what docs/formats.md says."""
    nothing = replace(RESULT, objective=Decimal(0), bound=Decimal(100))
    assert nothing.gap == 1e11
    assert "gap -," in repr(nothing)
    assert "e+11" not in nothing._repr_html_()
    comparison = lo.comparison.Comparison((nothing, replace(nothing, objective=Decimal(-5))))
    assert [row[4:6] + row[-1:] for row in comparison.rows()] == [
        ["-", "-", "0"],
        ["2,100.00%", "2,100.00%", "-"],
    ]
    assert [ratio(0.0, Decimal(0)), ratio(1e11, Decimal(0)), ratio(0.5)] == ["0", "-", "50.00%"]
