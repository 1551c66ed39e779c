"""Tables of ``docs/results.md``: ``python -m benchmarks.results [--store FILE]``.

What the store does not know yet is solved first, one solve at a time.  Then each table of the
page that follows ``<!-- results: NAME -->`` is written anew; with ``--only NAME ...``, these.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

from benchmarks.measure import markdown
from layoutopt.base.numbers import number
from layoutopt.bench.executors import JobExecutor, Processes
from layoutopt.bench.row import Row
from layoutopt.bench.run import batch

PAGE = Path(__file__).parents[1] / "docs/results.md"
SUITES = Path(__file__).parent / "suites"

SIZES = ("ops", "pairs", "sink elements", "classes", "status")
NETWORK_HEAD = ("network", *SIZES, "score", "import s", "solve s", "peak MiB")


def networks(rows: Sequence[Row]) -> str:
    """Return what the proof of each network takes."""
    return markdown(NETWORK_HEAD, [_network(row) for row in rows])


def training(rows: Sequence[Row]) -> str:
    """Return the same for training steps, with what greedy0 loses where it was run."""
    lines = [[*_network(row), loss] for row, loss in _with_losses(rows)]
    return markdown((*NETWORK_HEAD, "greedy0 loses"), lines)


def transformers(rows: Sequence[Row]) -> str:
    """Return what the proof of each training step takes."""
    head = ("training step", *SIZES, "build s", "solve s", "peak MiB", "greedy0 loses")
    by_size = sorted(rows, key=lambda row: row.size.get("free_elements", 0))
    proved = _with_losses(by_size)
    lines = [[row.instance, *_sizes(row), *_seconds(row), loss] for row, loss in proved]
    return markdown(head, lines)


def _with_losses(rows: Sequence[Row]) -> list[tuple[Row, str]]:
    """Return the rows of auto, each with what greedy0 loses on its instance."""
    greedy = {row.instance: row for row in rows if row.solver == "greedy0"}
    return [(row, _loss(row, greedy.get(row.instance))) for row in rows if row.solver == "auto"]


def random_views(rows: Sequence[Row]) -> str:
    """Return a line for each number of ops, with a column for each size."""
    kinds: dict[int, dict[int, list[Row]]] = {}
    elements: dict[int, int] = {}
    for row in rows:
        given = dict(part.split("=") for part in row.instance.split("-") if "=" in part)
        size = int(given.get("size", 8))
        kinds.setdefault(int(given.get("ops", 64)), {}).setdefault(size, []).append(row)
        elements[size] = max(elements.get(size, 0), row.size.get("free_elements", 0))
    sizes = sorted(elements)
    head = ("ops", *(f"size {size}, {elements[size]:,} elements" for size in sizes))
    return markdown(
        head, [[str(n), *(_kind(kinds[n][size]) for size in sizes)] for n in sorted(kinds)]
    )


def _kind(rows: Sequence[Row]) -> str:
    seconds = [row.seconds for row in rows]
    statuses = Counter(row.status for row in rows).most_common()
    told = ", ".join(f"{count} {status}" for status, count in statuses)
    return f"{told}, {median(seconds):.2f}, {max(seconds):.2f}, {_peak(rows)}"


def _network(row: Row) -> list[str]:
    name = re.sub(r"^light_|\+.*$", "", row.instance)
    return [name, *_sizes(row), number(row.score), *_seconds(row)]


def _sizes(row: Row) -> list[str]:
    names = ("ops", "pairs", "free_elements", "classes")
    return [*(f"{row.size.get(name, 0):,}" for name in names), row.status]


def _seconds(row: Row) -> list[str]:
    return [f"{row.phases['read']:.2f}", f"{row.seconds:.2f}", _peak([row])]


def _peak(rows: Sequence[Row]) -> str:
    return f"{max(row.peak_bytes or 0 for row in rows) / 2**20:,.0f}"


def _loss(best: Row, other: Row | None) -> str:
    if other is None or other.score is None or best.score is None:
        return "-"
    return f"{100 * (best.score - other.score) / best.score:.2g}%"


TABLES: dict[str, tuple[tuple[str, ...], Callable[[Sequence[Row]], str]]] = {
    "networks": (("networks",), networks),
    "training": (("training", "training_greedy"), training),
    "random-views": (("random_views",), random_views),
    "transformers": (("transformers",), transformers),
}
"""For each table the suites that it is made of, and the function that makes it."""


def written(text: str, name: str, table: str) -> str:
    """Return a page with one of its tables replaced.

    Raises
    ------
    ValueError
        If it has no such table.
    """
    found = re.compile(rf"(<!-- results: {re.escape(name)} -->\n\n)(?:\|[^\n]*\n)+")
    if not found.search(text):
        raise ValueError(f"there is no table {name}")
    return found.sub(lambda match: f"{match[1]}{table}\n", text)


def tables(store: Path, executor: JobExecutor, names: Sequence[str]) -> dict[str, str]:
    """Return tables by name, from a store that is completed first."""
    found = {}
    for name in names:
        suites, make = TABLES[name]
        report = batch([SUITES / f"{suite}.toml" for suite in suites], store, executor)
        if report.interrupted:
            raise KeyboardInterrupt
        found[name] = make(report.rows)
    return found


def main() -> None:
    """Write the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", type=Path, default=Path("results.sqlite"))
    parser.add_argument("--only", nargs="*", choices=TABLES, default=list(TABLES))
    given = parser.parse_args()
    with Processes(1) as executor:
        found = tables(given.store, executor, given.only)
    text = PAGE.read_text(encoding="utf-8")
    for name, table in found.items():
        print(table, end="\n\n")
        text = written(text, name, table)
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
