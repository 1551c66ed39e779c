"""Random conversion graphs: the exact engine, heuristics, exhaustive search, and what is computed.

Graph ``k`` of a seed is always the same.  The new graph of every solver must compute what the old
one does; the exact engine's cost must be the least of exhaustive search; and no heuristic may cost
less.  Networks with costs of layouts are tried with each op fixed in every way.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import markdown
from layoutopt.base.result import Status
from layoutopt.conversion.backends import BlockedCpu
from layoutopt.conversion.convert import SOLVERS, convert_graph
from layoutopt.conversion.cost_table import costs_from
from layoutopt.conversion.graph import ConversionGraph
from layoutopt.conversion.result import Conversion
from tests.conversion.drawn import drawn
from tests.conversion.exhaustive import least
from tests.conversion.running import arrays_of, run, run_conversion
from tests.conversion.timed import least_time, mixed, table

OBJECTIVES = (
    "bytes",
    "count",
    "bytes,count",
    "count,bytes",
    "count,changed,bytes",
    "changed,count",
)


TRIED = 8
"""Graphs of up to so many ops are searched exhaustively."""


@dataclass(frozen=True, eq=False)
class Question:
    """A graph, and the arguments of :func:`~layoutopt.conversion.convert.convert_graph`."""

    kind: str
    graph: ConversionGraph
    arguments: dict[str, Any]
    best: Callable[[Conversion], tuple[int, ...]] | None = None
    """The least cost, by another way; ``None`` where that would take too long."""


def question(seed: int, k: int) -> Question:
    """Return the ``k``-th question of a seed; kinds take turns."""
    kind = KINDS[k % len(KINDS)]
    draw = random.Random(f"conversion/{seed}/{k}")
    number = draw.getrandbits(40)
    if kind == "costs":
        return _with_costs(draw, number)
    every: dict[str, dict[str, Any]] = {
        "equal sizes": {"sizes": (2,)},
        "views twice": {"repeated": 0.5},
    }
    settings = every.get(kind, {})
    most = draw.randint(2, TRIED) if kind != "larger" else draw.randint(TRIED + 1, 30)
    graph = drawn(number, most, **settings)
    objective = draw.choice(OBJECTIVES)
    free_io = draw.random() < 0.3
    arguments: dict[str, Any] = {"objective": objective, "free_io": free_io}
    if kind == "blocks":
        return Question(kind, graph, arguments | {"desired": BlockedCpu(2)})
    if kind == "larger":
        return Question(kind, graph, arguments)
    return Question(kind, graph, arguments, partial(_searched, graph, objective, free_io))


def _searched(
    graph: ConversionGraph, objective: str, free_io: bool, found: Conversion
) -> tuple[int, ...]:
    """Return the least cost; nothing above what was found needs to be looked at."""
    return least(graph, objective, free_io, found.objective) or ()


def _with_costs(draw: random.Random, number: int) -> Question:
    fixed, per_byte = draw.choice([(3, 0), (0, 40000)])
    graph, costs = mixed(number), costs_from(table(number, fixed, per_byte))
    arguments = {"objective": "time", "costs": costs}
    return Question("costs", graph, arguments, lambda _: (least_time(graph, costs, fixed),))


KINDS = ("small", "equal sizes", "views twice", "blocks", "costs", "larger")
"""Kinds of questions."""

HEURISTIC_SHARE = 3
"""Each heuristic sees one question in so many."""


class Comparison:
    """Graphs compared, and what was seen of them."""

    def __init__(self) -> None:
        self.graphs: Counter[str] = Counter()
        self.asked: Counter[str] = Counter()
        self.disagreements: Counter[str] = Counter()

    def compare(self, seed: int, k: int, folder: Path) -> None:
        """Compare what is said of one graph; a disagreement is written to a folder."""
        asked = question(seed, k)
        heuristics = [
            name
            for n, name in enumerate(SOLVERS[1:])
            if (k // len(KINDS) + n) % HEURISTIC_SHARE == 0
        ]
        self.graphs[asked.kind] += 1
        self.asked.update(["auto", *heuristics, *(["exhaustive search"] if asked.best else [])])
        try:
            what = compared(asked, heuristics)
        except Exception as error:  # whatever it is, it should not have happened
            what = f"{type(error).__name__}: {error}"
        if what:
            self.disagreements[asked.kind] += 1
            folder.mkdir(parents=True, exist_ok=True)
            path = folder / f"conversion-{seed}-{k}.txt"
            ops = "\n".join(map(str, asked.graph.ops))
            path.write_text(f"{what}\n{asked.kind}, {asked.arguments}\n{ops}\n")
            print(f"seed {seed}, conversion graph {k}: {what}; see {path}", flush=True)

    def tables(self) -> str:
        """Return a table of kinds, and one of partners."""
        kinds = [
            [kind, f"{self.graphs[kind]:,}", f"{self.disagreements[kind]:,}"] for kind in KINDS
        ]
        asked = [[name, f"{number:,}"] for name, number in self.asked.items()]
        first = markdown(["kind", "graphs", "disagreements"], kinds)
        return f"{first}\n\n{markdown(['partner', 'graphs'], asked)}"


def compared(asked: Question, heuristics: list[str]) -> str:
    """Return what is wrong, if anything is."""
    graph = asked.graph
    given = arrays_of(graph, 0)
    before = run(graph, given)
    best = convert_graph(graph, **asked.arguments)
    if best.status is not Status.OPTIMAL or best.bound != best.objective:
        return f"auto: {best.status}, cost {best.objective}, bound {best.bound}"
    if asked.best is not None and (least_cost := asked.best(best)) != best.objective:
        return f"auto costs {best.objective}, exhaustive search finds {least_cost}"
    found = {"auto": best}
    found |= {name: convert_graph(graph, **asked.arguments, solver=name) for name in heuristics}
    for name, conversion in found.items():
        if conversion.objective < best.objective:
            return f"{name} costs {conversion.objective}, auto proves {best.objective}"
        if conversion.bound > best.objective:
            return f"{name} proves {conversion.bound}, auto costs {best.objective}"
        wrong = _computes_else(graph, conversion, given, before)
        if wrong:
            return f"{name}: {wrong}"
    return ""


def _computes_else(
    graph: ConversionGraph, conversion: Conversion, given: dict[str, Any], before: dict[str, Any]
) -> str:
    """Return in what the new graph computes something else; freed outputs may be permuted."""
    after = run_conversion(conversion, given)
    for name in graph.outputs:
        order = conversion.freed.get(name)
        expected = before[name] if order is None else before[name].transpose(order)
        if after[name].shape != expected.shape or not np.allclose(after[name], expected, 1e-12):
            return f"output {name} is another one"
    return ""
