from __future__ import annotations

import csv
import io
import json
from decimal import Decimal

from layoutopt.bench.row import COLUMNS, row_of, to_csv, to_json, to_markdown, written
from tests.bench.support import failed, row
from tests.support import refused

ROWS = [row(instance="a,b", bound=Decimal("12.50")), failed(solver="mip", peak_bytes=None)]


def test_csv_keeps_digits() -> None:
    """A line for each row; numbers as they are, what is unknown empty, mappings as JSON."""
    one, other = csv.DictReader(io.StringIO(to_csv(ROWS).decode()))
    assert (one["instance"], one["score"], one["bound"]) == ("a,b", "12", "12.50")
    assert float(one["gap"]) == 0.5 / 12
    assert json.loads(one["parameters"]) == {"gap": 0.0, "time_limit": 10.0, "workers": 1}
    assert (other["score"], other["gap"], other["peak_bytes"]) == ("", "", "")
    assert other["error"] == "the worker was ended by SIGABRT"


def test_json_has_all() -> None:
    """The document names its format, and its rows have traces and pairs as well."""
    document = json.loads(to_json(ROWS), parse_float=Decimal)
    one, other = document["rows"]
    assert document["format"] == "layoutopt/bench/1"
    assert one["bound"] == Decimal("12.50")
    assert one["trace"][0] == [Decimal("0.1"), 3, None]
    assert one["pairs"] == [["a", "b", "1.5", 4, 2]]
    assert (other["status"], other["score"], other["gap"]) == ("failed", None, None)


def test_markdown_is_a_table() -> None:
    """Names that Markdown would take apart stay whole."""
    head, rule, first, second = to_markdown([row(instance="a|b"), ROWS[1]]).decode().splitlines()
    assert head.startswith("| instance | solver | status | score |")
    assert rule.count("---") == 8
    assert first == "| a\\|b | auto | optimal | 12 | 12 | 0 | 0.250 | 1,024 |"
    assert second == "| figures/call | mip | failed | - | - | - | 0.250 | - |"


def test_scores_are_decimals_of_few_digits() -> None:
    """Exponents whose digits would fill the memory are refused, as numbers of files are."""
    values = {name: written(name, getattr(ROWS[0], name)) for name in COLUMNS}
    for score in ("1e999999", "1e-999999", "nan", "x"):
        with refused(f"a row holds no score, but {score!r}"):
            row_of([*(values | {"score": score}).values()])
