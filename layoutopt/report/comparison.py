"""The page of a comparison."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from layoutopt.base.errors import InputError
from layoutopt.base.numbers import counted, number, ratio
from layoutopt.base.result import UnwindingResult, with_given
from layoutopt.base.table import Table
from layoutopt.comparison import COLUMNS, Comparison
from layoutopt.graphs.display import TENSORS
from layoutopt.report import pages, words
from layoutopt.report.layouts import changed, drawn
from layoutopt.report.pages import Cell, Section, joined, parts, valued

PAIRS = 30  # rows of a table of pairs per solver
INSTANCES = 100  # largest number of instances with tables of losses


def comparison_html(found: Comparison | Sequence[Comparison], command: str = "") -> str:
    """Return a self-contained HTML page of one or more comparisons.

    Parameters
    ----------
    found
        Comparisons by :func:`layoutopt.compare`.
    command
        The command line that made it.
    """
    every = [found] if isinstance(found, Comparison) else list(found)
    title = (every[0].name or "unnamed") if len(every) == 1 else counted(len(every), "instance")
    sections = [Section("solvers", "Solvers", _solvers(every))]
    if len(every) == 1:
        sections.append(Section("losses", "Where solvers lose", _lost(every[0])))
        sections.append(Section("layouts", "Layouts", _pictures(every[0])))
    else:
        sections += [
            Section(_key(i), one.name or "unnamed", _lost(one))
            for i, one in enumerate(every[:INSTANCES])
        ]
    sections.append(words.origin(command, _made(every)))
    return pages.page(title, "layoutopt · comparison", _lead(every), sections)


def _lead(every: Sequence[Comparison]) -> str:
    if len(every) != 1:
        return ""
    [found] = every
    facts = [
        ("best score", number(found.best)),
        ("best bound", number(found.bound)),
        ("by", "-" if found.winner is None else found.winner.solver),
        ("solvers", f"{len(found.results):,}"),
    ]
    return parts.facts(facts)


def _solvers(every: Sequence[Comparison]) -> str:
    """Return a table of all results, with links to the sections of instances."""
    rows = []
    for i, found in enumerate(every):
        title = found.name or "unnamed"
        linked = parts.link(_key(i), title) if len(every) > 1 and i < INSTANCES else title
        instance = [Cell(found.name, linked)] if len(every) > 1 else []
        each = zip(_named(found), found.rows(), found.gaps(), found.losses(), strict=True)
        for (name, result), cells, gap, loss in each:
            values = result.score, result.bound, result.gap, gap, result.seconds.get("total"), loss
            status = words.status(result.status, with_given(result))
            head = [*instance, Cell(name, kind="label"), status]
            rows.append([*head, *map(valued, cells[2:], values)])
    told = (
        "Gap: to the solver's own bound.  To best bound: to the lowest bound that any solver "
        "proved, the most that can be missing to the optimum.  Loss: against the best score."
    )
    table = Table([*(["instance"] if len(every) > 1 else []), *COLUMNS], rows)
    return parts.table(table, sortable=True) + parts.paragraph(told, "soft")


def _named(found: Comparison) -> list[tuple[str, UnwindingResult]]:
    """Return the results with the names of their solvers, and their seeds if these differ."""
    several = len({result.seed for result in found.results}) > 1
    return [(f"{r.solver} seed {r.seed}" if several else r.solver, r) for r in found.results]


def _key(i: int) -> str:
    return f"instance-{i + 1}"


def _lost(found: Comparison) -> str:
    """Return the differences of each solver from the best result by pair."""
    best = found.winner
    if best is None:
        why = next((f": {r.infeasible}" for r in found.results if r.infeasible), "")
        return parts.paragraph(f"No solver found layouts{why}.")
    try:
        every = [found.lost(result) for result in found.results]
    except InputError as error:
        return parts.paragraph(f"Pairs cannot be compared: {error}.", "soft")
    tables = []
    for (name, result), pairs, loss in zip(_named(found), every, found.losses(), strict=True):
        if not pairs:
            continue
        rows = [
            [
                Cell(p.a, parts.pair(p.a, p.b), kind="name"),
                valued(number(p.lost), p.lost),
                valued(number(p.value), p.value),
                f"{p.matched:,}",
                f"{p.best:,}",
                f"{p.elements:,}",
            ]
            for p in pairs[:PAIRS]
        ]
        share = f" loses {ratio(loss)}" if best.score else ""
        scores = f"{number(result.score)} in place of {number(best.score)}"
        told = f"{name}{share} against {best.solver}: {scores}"
        head = ["pair", "loses", "value", "matched", "matched by the best", "positions"]
        table = Table(head, rows, hidden=len(pairs) - PAIRS, noun="pair")
        tables.append(parts.table(table, caption=told, sortable=True))
    nothing = "All solvers that found layouts match the same pairs at as many positions."
    return joined(tables) or parts.paragraph(nothing)


def _pictures(found: Comparison) -> str:
    """Return pictures of the distinct layouts, if the graph is small."""
    names: dict[str, list[str]] = defaultdict(list)
    for name, result in _named(found):
        small = result.graph is not None and len(result.graph.shapes) <= TENSORS
        if small and not changed(result):
            names[drawn(result)].append(f"{name}: {number(result.score)}")
    return parts.beside([(", ".join(some), drawn) for drawn, some in names.items() if drawn])


def _made(every: Sequence[Comparison]) -> list[tuple[str, str]]:
    results = [result for found in every for result in found.results]
    versions = dict.fromkeys(f"layoutopt {r.version}, seed {r.seed}" for r in results)
    return [("results", "; ".join(versions))] if versions else []
