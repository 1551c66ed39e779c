"""``layoutopt explain``: explanations of a pair's loss or a sink's locations."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from layoutopt.base.errors import InputError, errors_at
from layoutopt.cli import options
from layoutopt.cli.options import OutputFiles, argument, option
from layoutopt.cli.streams import note, reserved_stdout, shown

if TYPE_CHECKING:
    from layoutopt.base.result import UnwindingResult
    from layoutopt.graphs.store import GraphStore


@options.grouped
def command(
    instance: options.GraphPath,
    result: Annotated[
        Path | None, argument("RESULT", "Its result; by default it is solved first.")
    ] = None,
    pair: Annotated[tuple[str, str] | None, option("A B", "Explain the pair of A and B.")] = None,
    sink: Annotated[str | None, option("NAME", "Explain the locations of this sink.")] = None,
    alternatives: Annotated[
        int | None, option("N", "With --sink, the number of pairs examined (3).")
    ] = None,
    time_limit: options.TimeLimit = None,
    memory_limit: options.MemoryLimit = None,
    seed: options.Seed = 0,
    workers: options.Workers = 1,
    output: options.Output = None,
    json: options.Json = None,
    overwrite: options.Overwrite = False,
    *,
    reading: options.Reading,
    barriers: options.Barriers = None,
    quiet: options.Quiet = False,
) -> int:
    """Explain why a pair does not match, or why a sink lies where it does.

    The graph is solved again a few times with modified values of pairs.
    """
    from layoutopt.base.limits import Stopped
    from layoutopt.explain.explanation import explanation_bytes
    from layoutopt.graphs.tiling import apply_hook_mode

    options.limit(time_limit, memory_limit, workers=workers)
    outputs = OutputFiles(
        {"--json": json}, overwrite, quiet, output, [instance, result, *reading.files]
    )
    if (pair is None) == (sink is None):
        raise InputError("give either --pair A B or --sink NAME")
    if alternatives is not None and (pair is not None or alternatives < 0):
        raise InputError(f"--alternatives {alternatives}: must be 0 or more, with --sink NAME")
    graph = apply_hook_mode(reading.load(instance, options.left(time_limit))[0], barriers)
    with errors_at(file=str(instance)):
        explain = _explainer(graph, pair, sink, alternatives)
    with shown(quiet) as tell, reserved_stdout():
        how: dict[str, Any] = {"seed": seed, "workers": workers, "progress": tell}
        found = _result(graph, result, how | {"time_limit": options.left(time_limit)})
        if found.layouts is not None:
            interrupted = found.stopped is Stopped.INTERRUPTED  # with no time left for the rest
            how["time_limit"] = 0.0 if interrupted else options.left(time_limit)
            with errors_at(file="" if result is None else str(result)):
                told = explain(graph, found, **how)
    if found.layouts is None:
        why = found.infeasible and f"infeasible: {found.infeasible}"
        note(f"layoutopt: {instance}: {why or f'no layouts to explain ({found.stopped})'}")
        return options.exit_code(found)
    outputs.write({"--json": lambda: explanation_bytes(graph.name, told)}, lambda: str(told))
    return 0


def _explainer(
    graph: GraphStore, pair: tuple[str, str] | None, sink: str | None, alternatives: int | None
) -> Callable[..., Any]:
    """Return what explains a pair or a sink; refuse unknown names before anything is solved."""
    from layoutopt.explain.pair import explain_pair
    from layoutopt.explain.sink import ALTERNATIVES, explain_sink
    from layoutopt.graphs.locations import layout_sink
    from layoutopt.graphs.store import pair_ends

    if pair is not None:
        pair_ends(graph, *pair)
        return partial(explain_pair, a=pair[0], b=pair[1])
    assert sink is not None
    layout_sink(graph, sink)
    count = ALTERNATIVES if alternatives is None else alternatives
    return partial(explain_sink, sink=sink, alternatives=count)


def _result(graph: GraphStore, path: Path | None, how: dict[str, Any]) -> UnwindingResult:
    """Return the result of a file, or solve the graph."""
    from layoutopt.io.instance import check_hash
    from layoutopt.io.result import read_result
    from layoutopt.unwinding import unwind

    if path is None:
        return unwind(graph, **how)
    found = read_result(path)
    check_hash(found.instance_hash, graph, str(path))
    return found
