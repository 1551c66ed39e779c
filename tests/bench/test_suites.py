"""The suites of this repository, and the tables of results that are made of them."""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path

import pytest

from benchmarks import results
from layoutopt.base.entries import built_in
from layoutopt.bench.suite import read_document, read_suite
from tests.bench.support import row

SUITES = sorted(results.SUITES.glob("*.toml"))
DOCS = results.PAGE.parent


@pytest.mark.parametrize("path", SUITES, ids=lambda path: path.stem)
def test_suites_can_be_read(path: Path) -> None:
    """Each names instances that are there, and solvers of this package."""
    assert read_suite(path, built_in).sources


def test_the_small_suite_is_what_it_says() -> None:
    """It has 1000 different instances, and five solvers."""
    suite = read_suite(results.SUITES / "small.toml", built_in)
    assert len({(source.family, source.name) for source in suite.sources}) == 1000
    assert len(suite.solves) == 5


def test_the_suite_of_the_guide_is_one(tmp_path: Path) -> None:
    """The example in the guide has no mistake."""
    [example] = re.findall(r"```toml\n(.*?)```", (DOCS / "bench.md").read_text("utf-8"), re.DOTALL)
    (tmp_path / "suite.toml").write_text(example)
    document = read_document(tmp_path / "suite.toml")
    assert document.family[0].seeds == "0..99"
    assert document.instances[0].training == "adam"


def test_tables_are_in_the_page() -> None:
    """Every table has its place there, which is found and filled."""
    text = results.PAGE.read_text(encoding="utf-8")
    for name in results.TABLES:
        changed = results.written(text, name, "| new |\n| --- |")
        assert changed != text
        assert results.written(changed, name, "| new |\n| --- |") == changed
    assert text.count("<!-- results:") == len(results.TABLES)


def test_one_table_is_replaced_and_nothing_else() -> None:
    """Text before, between and after tables stays."""
    page = "a\n\n<!-- results: x -->\n\n| 1 |\n| 2 |\n\nb\n\n<!-- results: y -->\n\n| 3 |\nc\n"
    assert results.written(page, "x", "| 4 |") == page.replace("| 1 |\n| 2 |", "| 4 |")
    with pytest.raises(ValueError, match="no table z"):
        results.written(page, "z", "")


def test_tables_say_what_rows_say() -> None:
    """A loss is against the optimum; lines go by size, kinds of random views are summed up."""
    size = {"ops": 1234, "pairs": 5, "free_elements": 70, "classes": 3}
    best = row(instance="light_net+adam", phases={"read": 0.5, "check": 0.25}, size=size)
    other = row(instance="light_net+adam", solver="greedy0", score=Decimal(9), seconds=1.5)
    assert results.training([best, other]).splitlines()[2] == (
        "| net | 1,234 | 5 | 70 | 3 | optimal | 12 | 0.50 | 0.25 | 1,024 | 25% |"
    )
    assert results.training([best]).endswith("| - |")
    assert results.networks([best]).splitlines()[2].endswith("| 0.50 | 0.25 | 1,024 |")
    lines = results.transformers([row(instance="z", size=size), row(instance="a", size={})])
    assert [line.split(" ")[1] for line in lines.splitlines()[2:]] == ["a", "z"]
    [line] = results.transformers([best, other]).splitlines()[2:]
    assert line.endswith("| optimal | 0.50 | 0.25 | 1,024 | 25% |")
    views = [
        row(instance="random-views-seed=1-ops=16", size=size),
        row(instance="random-views-ops=16", size=size, status="feasible", seconds=0.75),
        row(instance="random-views-ops=16-size=4", size=size),
    ]
    assert results.random_views(views).splitlines()[2:] == [
        "| 16 | 1 optimal, 0.25, 0.25, 1,024 | 1 optimal, 1 feasible, 0.50, 0.75, 1,024 |"
    ]
