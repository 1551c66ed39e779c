"""Cost networks in the commands ``solve``, ``check`` and ``compare``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from math import nan
from pathlib import Path
from typing import TYPE_CHECKING, Any

from layoutopt import __version__
from layoutopt.base.errors import InputError, errors_at
from layoutopt.base.numbers import counted, exact, exact_decimal, ratio, relative, seconds
from layoutopt.base.table import Table
from layoutopt.cli import options
from layoutopt.cli.options import OutputFiles
from layoutopt.cli.streams import note, reserved_stdout, say, shown

if TYPE_CHECKING:
    from layoutopt.network import Network, Solution


def load(path: Path, time_limit: float | None = None) -> tuple[Network, float]:
    """Read a network; return it with the seconds that this took."""
    from layoutopt.network import read

    return options.read_in_time(path, partial(read, path), time_limit)


def refuse(path: Path, given: dict[str, Any]) -> None:
    """Raise InputError for options that do not apply to cost networks."""
    for option, value in given.items():
        if value not in (None, False, (), []):
            name = option.replace("_", "-")
            raise InputError(f"--{name} does not apply to cost networks", file=str(path))


def solve_network(
    path: Path,
    solver: str,
    start: Path | None,
    search: options.Search,
    outputs: OutputFiles,
    no_seconds: bool,
) -> Solution:
    """Solve one network, write the requested files, and print a summary."""
    from layoutopt.io.solution import solution_bytes, solution_document
    from layoutopt.network import solve

    network, read = load(path, search.left)
    begun = None if start is None else _labels(start, network)
    certificate = "--certificate" in outputs.given
    with shown(search.quiet) as tell, reserved_stdout():
        asked: dict[str, Any] = {"certificate": certificate, "progress": tell, **search.asked()}
        found = solve(network, start=begun, solver=solver, **asked)
    times = {"read": read, "solve": found.seconds, "total": options.spent()}
    times = {} if no_seconds else times

    def document() -> bytes:
        return solution_bytes(solution_document(found, times, _hash(network)))

    makers = {"--json": document, "--certificate": lambda: _certificate(found, outputs)}
    outputs.write(makers, replace(found, seconds=times.get("total", nan)).summary)
    _note_infeasible(path, found)
    return found


def _note_infeasible(path: Path, found: Solution) -> None:
    """Print why a network has no solution, if this is proved."""
    if found.infeasible:
        why = "" if found.why is None else " ".join(str(found.why).split())
        note(f"layoutopt: {path}: infeasible: {why or 'no labelling is allowed'}")


def _hash(network: Network) -> str | None:
    """Return a network's hash, ``None`` without memory for it, as the answer must not be lost."""
    from layoutopt.network.certify import network_hash

    try:
        return network_hash(network)
    except MemoryError:
        return None


def _certificate(found: Solution, outputs: OutputFiles) -> bytes | None:
    """Return a solution's certificate; or print why there is none, or what it lacks."""
    from layoutopt.io.certificate import certificate_bytes

    path = outputs.given["--certificate"]
    if found.certificate is None:
        note(f"layoutopt: {path}: no certificate is written: {found.uncertified}")
        return None
    if found.uncertified:
        note(f"layoutopt: {path}: {found.uncertified}")
    return certificate_bytes(found.certificate)


def _labels(path: Path, network: Network) -> list[int]:
    """Return the labels of a network's solution file."""
    from layoutopt.io.solution import read_solution
    from layoutopt.network.pipeline import started

    labels = read_solution(path).labels
    if labels is None:
        raise InputError("has no labels", "$.labels", str(path))
    if len(labels) != len(network):
        reason = f"has {len(labels)} labels, the network has {counted(len(network), 'node')}"
        raise InputError(reason, "$.labels", str(path))
    with errors_at("$.labels", str(path)):
        started(network, labels)
    return labels


def check(path: Path, result: Path | None, certificate: Path | None, quiet: bool) -> int:
    """Check a solution, a certificate or both; return the exit code."""
    from layoutopt.io.certificate import read_certificate
    from layoutopt.io.solution import read_solution
    from layoutopt.network.certify import check_answer, check_certificate, network_hash

    network, _ = load(path)
    verdict = None
    document = None if result is None else read_solution(result)
    if document is not None and document.network_hash not in (None, network_hash(network)):
        raise InputError("belongs to another network", "$.network_hash", str(result))
    if certificate is not None:
        evidence = read_certificate(certificate)
        check = partial(check_certificate, network, evidence, str(certificate))
        verdict = options.verified(certificate, check)
        if verdict is None:
            return options.WRONG
    if document is not None:
        fault = check_answer(network, document.answer(), verdict)
        if fault or not quiet:
            say(f"{result}: {fault or _holds(document)}")
        if fault:
            return options.WRONG
    if quiet:
        return 0
    if verdict is not None:
        word = "a solver's bound is unverified" if verdict.unverified else "nothing is unverified"
        known = ("objective", verdict.objective), ("bound", verdict.bound)
        numbers = [f"{name} {exact(x)}" for name, x in known if x is not None]
        say(f"{certificate}: accepted: {', '.join([verdict.status, *numbers])}; {word}")
    elif document is not None and (document.bound is not None or not document.labels):
        what = "status" if document.labels is None else "bound"
        say(f"{result}: not checked: {what}; `solve --certificate` writes what proves it")
    return 0


def _holds(document: Any) -> str:
    objective = document.answer()["objective"]
    if objective is None:
        return "no labels; no claim is wrong"
    return f"allowed; the labels cost {exact(objective)}, as the result says"


COLUMNS = ("network", "solver", "status", "objective", "bound", "gap", "to best bound", "seconds")
CSV_COLUMNS = (
    *("instance", "solver", "status", "stopped", "objective", "bound", "best_bound"),
    *("gap", "gap_to_best_bound", "seconds", "seed", "version"),
)


def compare_networks(
    paths: Sequence[Path],
    solvers: Sequence[str] | None,
    search: options.Search,
    outputs: OutputFiles,
    no_seconds: bool,
) -> int:
    """Compare solvers on networks; print and write the table; return the exit code."""
    from layoutopt.base.files import encode_list
    from layoutopt.io.solution import solution_document
    from layoutopt.network.files import is_network

    rows: list[list[str]] = []
    plain: list[list[object]] = []  # the same as data, for CSV
    documents = []
    codes: list[int] = []
    try:
        for path in paths:
            with options.reported(codes, path):
                if path.is_file() and not is_network(path):
                    raise InputError("is not a cost network; compare it separately")
                network, _ = load(path)
                found = _solved(network, solvers or ["all"], search)
                codes.append(min(map(options.exit_code, found)))
                _note_infeasible(path, next((x for x in found if x.infeasible), found[0]))
                name = network.name or path.name
                rows += _rows(name, found, no_seconds)
                plain += _csv_rows(name, found, no_seconds)
                own = _hash(network)
                times = [{} if no_seconds else {"solve": x.seconds} for x in found]
                documents += [
                    solution_document(x, t, own) for x, t in zip(found, times, strict=True)
                ]
                if found[-1].stopped == "interrupted":
                    break
    finally:  # also after Ctrl-C while a network is read
        table = Table(COLUMNS, rows, left=3)
        makers = {
            "--json": lambda: encode_list(documents),
            "--csv": lambda: Table(CSV_COLUMNS, plain).csv().encode(),
            "--markdown": lambda: table.markdown().encode(),
        }
        if documents:
            outputs.write(makers, lambda: table.text(""))
    return max(codes)


def _solved(network: Network, solvers: Sequence[str], search: options.Search) -> list[Solution]:
    from layoutopt.network import solve
    from layoutopt.network.pipeline import HEURISTICS

    every = ["auto", *_fitting(network, HEURISTICS)]
    names = dict.fromkeys(x for name in solvers for x in (every if name == "all" else [name]))
    found: list[Solution] = []
    how = search.asked() | {"time_limit": search.time_limit}
    for name in names:
        with shown(search.quiet) as tell, reserved_stdout():
            found.append(solve(network, solver=name, progress=tell, **how))
        if found[-1].stopped == "interrupted":
            break
    return found


def _fitting(network: Network, heuristics: Sequence[str]) -> Sequence[str]:
    """Return the heuristics that apply to a network; none supports rows."""
    if network.usages:
        return ()
    return heuristics if len(network.equal_edges) else heuristics[:1]


def _rows(name: str, found: Sequence[Solution], no_seconds: bool) -> Iterator[list[str]]:
    best = _best_bound(found)
    for x in found:
        gaps = [ratio(gap, x.objective) for gap in (x.gap, _left(x, best))]
        spent = "-" if no_seconds else seconds(x.seconds)
        yield [name, x.solver, str(x.status), exact(x.objective), exact(x.bound), *gaps, spent]


def _csv_rows(name: str, found: Sequence[Solution], no_seconds: bool) -> Iterator[list[object]]:
    best = _best_bound(found)
    for x in found:
        numbers = [_plain(value) for value in (x.objective, x.bound, best)]
        spent = "" if no_seconds else f"{x.seconds:.6f}"
        rest = [x.gap, _left(x, best), spent, x.seed, __version__]
        yield [name, x.solver, x.status, x.stopped, *numbers, *rest]


def _best_bound(found: Sequence[Solution]) -> Fraction | int | None:
    bounds = [x.bound for x in found if x.bound is not None]
    best = min if found[0].network.sense == "max" else max
    return best(bounds, default=None)


def _left(x: Solution, best: Fraction | int | None) -> float | None:
    """Return the gap of a solution to the best bound."""
    if best is None or x.objective is None:
        return None
    return abs(relative(x.objective - best, x.objective))


def _plain(value: Fraction | int | None) -> str:
    """Return a number with all digits, or as ``p/q``; an empty string if it is unknown."""
    try:
        return "" if value is None else f"{exact_decimal(value):f}"
    except InputError:
        return str(value)
