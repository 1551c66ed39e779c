"""Pages, tables and pictures that commands write."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from layoutopt import Graph, read, read_result, write_instance
from tests.cli.conftest import Run
from tests.pictures.test_chart import read as read_svg
from tests.pictures.test_chart import texts
from tests.report.test_parts import read as read_page
from tests.report.test_result import sections


@pytest.fixture
def store(run: Run, instance: Path) -> Path:
    """Return a store of two solves of the instance."""
    path = instance.with_name("store.sqlite")
    assert run("bench", instance, "--store", path, "--in-process", "--quiet").code == 0
    return path


def test_solve_writes_a_page(run: Run, instance: Path) -> None:
    """With how score and bound grew and the command line; the summary is printed as ever."""
    page = instance.with_name("page.html")
    ran = run("solve", instance, "--html", page)
    assert ran.code == 0
    assert "optimal" in ran.out
    text = page.read_text()
    assert {"layouts", "pairs", "why", "size", "origin"} <= set(sections(text))
    assert f"layoutopt solve {instance} --html {page}" in read_page(text).text


def test_the_page_has_the_whole_run(run: Run, tmp_path: Path) -> None:
    """A search reports while it runs, and the page draws that; also next to a result file."""
    from tests.support import hard_graph

    path, page, result = tmp_path / "hard.json", tmp_path / "page.html", tmp_path / "result.json"
    write_instance(hard_graph(1, 6), path)
    assert run("solve", path, "--html", page, "--json", result, "--quiet").code == 0
    assert "progress" in sections(page.read_text())
    assert "Gap over time" in page.read_text()
    assert read_result(result).status == "optimal"


def test_solve_writes_a_page_without_solution(run: Run, instance: Path) -> None:
    """The exit code stays, and the page says what is known."""
    page = instance.with_name("page.html")
    words = ["solve", instance, "--solver", "greedy0", "--time-limit", 0, "--html", page]
    assert run(*words).code == 4
    assert "any earn" in page.read_text()


def test_show_writes_the_same_page_of_a_result(run: Run, instance: Path) -> None:
    """But for how score and bound grew, which a file does not hold."""
    first, second = instance.with_name("a.html"), instance.with_name("b.html")
    result = instance.with_name("result.json")
    assert run("solve", instance, "--html", first, "--json", result, "--quiet").code == 0
    words = ["show", result, "--instance", instance, "--html", second]
    assert run(*words).code == 0
    expected = [key for key in sections(first.read_text()) if key != "progress"]
    assert sections(second.read_text()) == expected
    assert str(read(instance).draw(read_result(result).layouts)) in second.read_text()


def test_pages_go_to_stdout_alone(run: Run, instance: Path, store: Path) -> None:
    """With - nothing else is printed."""
    for words in (["solve", instance], ["compare", instance], ["bench", "show", store]):
        out = run(*words, "--html", "-").out
        assert out.startswith("<!DOCTYPE html>")
        assert out.endswith("</html>\n")


def test_compare_writes_tables(run: Run, instance: Path) -> None:
    """CSV with all digits, Markdown and a page with the same numbers as the terminal."""
    tables = [instance.with_name(name) for name in ("a.csv", "a.md", "a.html")]
    words = ["compare", instance, "--csv", tables[0], "--markdown", tables[1], "--html", tables[2]]
    ran = run(*words)
    assert ran.code == 0
    rows = list(csv.DictReader(io.StringIO(tables[0].read_text())))
    assert [(row["instance"], row["solver"], float(row["score"])) for row in rows] == [
        ("aliases", "auto", 15),
        ("aliases", "greedy0", 8),
    ]
    last = ran.out.splitlines()[-1].split()
    assert [cell.strip() for cell in tables[1].read_text().splitlines()[3].split("|")[1:-1]] == last
    assert (last[-3], last[-1]) == ("87.50%", "46.67%")  # 7 of 8, 7 of 15
    text = tables[2].read_text()
    assert {"losses", "origin"} <= set(sections(text))
    assert " ".join(map(str, ["layoutopt", *words])) in read_page(text).text


def test_compare_tells_pairs_where_asked(run: Run, instance: Path) -> None:
    """greedy0 wins the pair at a, worth 8, and loses five at b, worth 3 each."""
    assert "best" not in run("compare", instance).out.replace("to best bound", "")
    lines = run("compare", instance, "--pairs").out.splitlines()
    pairs = [line.split() for line in lines[lines.index("") + 1 :]]
    assert pairs[0][:3] == ["instance", "solver", "pair"]
    assert [row[1:] for row in pairs[1:]] == [
        *(["greedy0", f"identity{i}", "b", "3", "1", "0", "1", "3"] for i in range(5)),
        ["greedy0", "x", "a", "8", "1", "1", "0", "-8"],
    ]
    rows = list(csv.DictReader(io.StringIO(run("compare", instance, "--pairs", "--csv", "-").out)))
    assert [row["lost"] for row in rows] == ["3", "3", "3", "3", "3", "-8"]
    assert "| greedy0 | x | a |" in run("compare", instance, "--pairs", "--markdown", "-").out


def test_a_nameless_instance_has_its_files_name(run: Run, instance: Path) -> None:
    """In every table."""
    graph = Graph()
    graph.valued_pair(graph.sink((1,)), graph.source((1,)), 1)
    path = instance.with_name("nameless.json")
    write_instance(graph, path)
    for flag in ("--csv", "--markdown", "--html"):
        assert "nameless.json" in run("compare", path, flag, "-").out


def test_bench_show_writes_a_page(run: Run, store: Path) -> None:
    """Of the rows that are chosen."""
    page = store.with_name("page.html")
    ran = run("bench", "show", store, "--html", page)
    assert ran.code == 0
    assert "greedy0" in ran.out
    assert {"solvers", "profiles", "solves", "origin"} <= set(sections(page.read_text()))
    ran = run("bench", "show", store, "--solver", "auto", "--html", "-")
    assert "greedy0" not in "".join(read_page(ran.out).text)


@pytest.mark.parametrize(
    ("words", "title"),
    [
        ([], "Time to proof, relative to the fastest"),
        (["--plot", "profile"], "Time to proof, relative to the fastest"),
        (["--plot", "time"], "Instances proved over time"),
        (["--plot", "gap"], "Instances by gap"),
    ],
)
def test_bench_show_draws(run: Run, store: Path, words: list[str], title: str) -> None:
    """By default the performance profile."""
    svg = store.with_name("a.svg")
    assert run("bench", "show", store, "--svg", svg, *words).code == 0
    assert title in texts(read_svg(svg.read_text()))


def test_pictures_in_pixels(run: Run, instance: Path, store: Path) -> None:
    """--png writes PNG, of layouts and of charts."""
    pytest.importorskip("matplotlib")
    first, second = instance.with_name("a.png"), instance.with_name("b.png")
    assert run("show", instance, "--png", first).code == 0
    assert run("bench", "show", store, "--png", second).code == 0
    for path in (first, second):
        assert path.read_bytes().startswith(b"\x89PNG")


def test_wrong_wishes_are_told_in_one_line(run: Run, instance: Path, store: Path) -> None:
    """Before any work is done, and with nothing written."""
    page, other = instance.with_name("page.html"), instance.with_name("there.csv")
    other.write_text("mine")
    for words, told in [
        (["solve", instance, "--html", page, "--json", page], "--json and --html name the same"),
        (["show", instance, "--html", instance.parent], "is a directory"),
        (["compare", instance, "--csv", other], "--overwrite"),
        (["compare", instance, "--csv", page, "--markdown", page], "name the same file"),
        (["compare", instance, "--html", "-", "--csv", "-"], "name the same file"),
        (["show", instance, "--png", "-"], "a file is required"),
        (["bench", "show", store, "--png", "-"], "a file is required"),
        (["bench", "show", store, "--plot", "gap"], "requires --svg FILE or --png FILE"),
        (
            ["bench", "show", store, "--plot", "x", "--svg", page],
            "known: profile, time, gap, trace",
        ),
        (
            ["bench", "show", store, "--plot", "trace", "--svg", page],
            "no solve has a gap over time",
        ),
        (["bench", "show", store, "--html", store], "--overwrite"),
    ]:
        ran = run(*words)
        assert ran.code == 2
        assert ran.out == ""
        assert told in ran.err
        assert ran.err.count("\n") == 1
        assert not page.exists()
    assert other.read_text() == "mine"
