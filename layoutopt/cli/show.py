"""``layoutopt show``: the size of an instance, or the summary of a result."""

from __future__ import annotations

from collections import Counter
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from layoutopt.base.errors import InputError, printable
from layoutopt.base.numbers import number, ratio
from layoutopt.cli import options, streams
from layoutopt.cli.streams import command_line, say, table, write_out

if TYPE_CHECKING:
    from layoutopt.base.result import Piece, UnwindingResult
    from layoutopt.graphs.unwinding import Graph
    from layoutopt.machine.simulation import Simulation

HEAVIEST = 5
"""Number of heaviest tensors shown."""

PHASES_SHOWN = 8
"""Rows of the table of exchanges."""


def machine_text(graph: Graph) -> str:
    """Return a graph's tile memory, the bytes of its sinks, and the heaviest ones."""
    from layoutopt.graphs.tiling import memory_of
    from layoutopt.machine.simulation import bytes_of

    memory = memory_of(graph)
    weights = {t.name: t.size * bytes_of(graph, t.index) for t in graph.sinks()}
    total = sum(weights.values())
    rows = [
        ["tiles", f"{memory.tiles:,} of {memory.bytes_per_tile:,} bytes"],
        ["sinks", f"{total:,} bytes of {memory.total:,} ({ratio(total / memory.total)})"],
    ]
    if memory.grain > 1:
        rows.append(["grain", f"{memory.grain:,} elements"])
    heavy = sorted(weights.items(), key=lambda item: -item[1])[:HEAVIEST]
    for i, (name, weight) in enumerate(heavy):
        share = ratio(weight / memory.total)
        rows.append(["" if i else "heaviest", f"{name}: {weight:,} bytes ({share})"])
    return table(rows, left=2)


def occupancy_text(result: UnwindingResult) -> str:
    """Return the occupancy of tiles by a result's sinks."""
    from layoutopt.check.occupancy import occupied
    from layoutopt.graphs.tiling import memory_of
    from layoutopt.machine.simulation import occupancy_rows

    rows = occupancy_rows(memory_of(result.graph), occupied(result.graph, result.layouts or {}))
    return table(rows, left=2)


def simulation_text(found: Simulation) -> str:
    """Return the summary of a simulation, and its longest exchanges."""
    text = table(found.rows(), left=2)
    if not found.phases:
        return text
    lines = [text, "", found.exchanges(PHASES_SHOWN).text()]
    if len(found.phases) > PHASES_SHOWN:
        lines.append(f"  ... and {len(found.phases) - PHASES_SHOWN:,} more phases")
    return "\n".join(lines)


def simulated(shown: UnwindingResult | Graph, why: str) -> Simulation:
    """Simulate a result on its graph's tile memory.

    Parameters
    ----------
    why
        The option that requires it, for errors.

    Raises
    ------
    InputError
        If there is no result with layouts and graph, or no tile memory.
    """
    from layoutopt.base.result import UnwindingResult
    from layoutopt.machine.simulation import simulate

    if not isinstance(shown, UnwindingResult) or shown.layouts is None:
        raise InputError(f"{why} requires a RESULT with layouts")
    if shown.graph.tile_memory is None:
        raise InputError(f"{why} requires a tile memory; give one by --tiles PRESET|FILE")
    return simulate(shown.graph, shown)


SINKS_SHOWN = 12
PIECES_SHOWN = 3


class By(StrEnum):
    """Meanings of a picture's colours."""

    LOCATION = "location"
    BYTES = "bytes"
    TENSOR = "tensor"


@options.grouped
def command(
    path: Annotated[
        Path,
        typer.Argument(metavar="INSTANCE|RESULT", help="An instance, an ONNX model or a result."),
    ],
    instance: Annotated[
        Path | None,
        typer.Option(
            metavar="INSTANCE", help="The instance of the result, needed to draw its layouts."
        ),
    ] = None,
    output: options.Output = None,
    svg: streams.Svg = None,
    png: streams.Png = None,
    html: options.Html = None,
    by: Annotated[By, typer.Option(help="Colour elements by location, or by tile.")] = By.LOCATION,
    simulate: Annotated[
        bool,
        typer.Option(
            "--simulate", help="On a tile memory, simulate: peak bytes, bytes exchanged and cycles."
        ),
    ] = False,
    overwrite: options.Overwrite = False,
    *,
    reading: options.Reading,
) -> int:
    """Show the size of an instance before and after reduction, or a result; draw either.

    Tensors are drawn as grids, a cell for each element, with one colour for each location; or,
    with --by bytes and --by tensor, the tiles of a tile memory.
    """
    targets = {"--svg": svg, "--png": png, "--html": html}
    options.place_output(output, targets)
    svg, png, html = targets.values()
    _check(targets, by, overwrite)
    shown = _shown(path, instance, reading)
    pictured = svg is not None or png is not None
    if _graph(shown) is None and (pictured or simulate or reading.tiles is not None):
        reason = "a result has no graph to draw or simulate; give it by --instance INSTANCE"
        raise InputError(reason, file=str(path))
    found = None
    if simulate or by is not By.LOCATION:
        found = simulated(shown, "--simulate" if simulate else f"--by {by}")
    more = found if simulate else None
    if "-" not in map(str, targets.values()):
        say(_text(shown, more))
    if pictured:
        streams.write_picture(_picture(shown, found, by), svg, png, overwrite)
    if html is not None:
        write_out(_page(shown).encode(), html, overwrite)
    return 0


def _check(targets: options.Targets, by: By, overwrite: bool) -> None:
    """Refuse incompatible options before any work."""
    options.check_targets(targets, overwrite)
    streams.check_png(targets["--png"])
    if by is not By.LOCATION and targets["--svg"] is None and targets["--png"] is None:
        raise InputError(f"--by {by} requires --svg FILE or --png FILE")


def _shown(path: Path, instance: Path | None, reading: options.Reading) -> UnwindingResult | Graph:
    """Return a graph, a result, or a result with its graph."""
    from layoutopt.io.result import read_result, with_graph

    result = read_result(path) if _is_result(path) else None
    if result is None:
        if instance is not None:
            raise InputError("is not a result, which --instance requires", file=str(path))
        return reading.load(path)[0]
    if instance is None:
        return result
    graph, _ = reading.load(instance)
    return with_graph(result, graph, str(path))


def _graph(shown: UnwindingResult | Graph) -> Graph | None:
    from layoutopt.base.result import UnwindingResult

    graph: Graph | None = shown.graph if isinstance(shown, UnwindingResult) else shown
    return graph


def _text(shown: UnwindingResult | Graph, found: Simulation | None) -> str:
    from layoutopt.base.result import UnwindingResult

    if not isinstance(shown, UnwindingResult):
        return instance_text(shown)
    told = result_text(shown)
    return told if found is None else f"{told}\n\n{simulation_text(found)}"


def _picture(shown: UnwindingResult | Graph, found: Simulation | None, by: By) -> str:
    from layoutopt.base.result import UnwindingResult

    if found is not None and by is not By.LOCATION:
        return str(found.draw(by))
    graph = _graph(shown)
    result = shown if isinstance(shown, UnwindingResult) else None
    return "" if graph is None else str(graph.draw(result))


def _page(shown: UnwindingResult | Graph) -> str:
    """Return the page of a result, or of an instance."""
    from layoutopt.base.result import UnwindingResult
    from layoutopt.report.pages import whole
    from layoutopt.report.result import report_html

    if isinstance(shown, UnwindingResult):
        return report_html(shown, command=command_line())
    return whole(shown.name or "unnamed", shown.to_html())


def _is_result(path: Path) -> bool:
    """Return whether a file is a result by its format; other errors are found later."""
    import msgspec

    from layoutopt.base.files import read_utf8
    from layoutopt.io.result import FORMAT
    from layoutopt.reading import is_function

    if path.suffix == ".onnx" or is_function(str(path)):
        return False
    try:
        document = msgspec.json.decode(read_utf8(path), type=dict[str, msgspec.Raw])
    except msgspec.DecodeError:
        return False
    return bytes(document.get("format", b"")) == f'"{FORMAT}"'.encode()


def instance_text(graph: Graph) -> str:
    """Return the sizes of a graph before and after reduction."""
    from layoutopt.explain.outline import outline
    from layoutopt.graphs.ops import type_name

    types = Counter(map(type_name, graph.ops)).most_common()
    ops = ", ".join(f"{count:,} {kind}" for kind, count in types)
    lines = [
        printable(f"{graph.name or 'unnamed'}: {graph.description}".rstrip(": ")),
        f"  {len(graph.ops):,} ops: {ops}",
        f"  {len(graph.pairs):,} valued pairs",
        "",
    ]
    if graph.tile_memory is not None:
        lines += [machine_text(graph), ""]
    for title, sizes in outline(graph).items():
        told = ", ".join(f"{n:,} {name.replace('_', ' ')}" for name, n in sizes.items())
        lines.append(f"  {title:<19} {told}")
    if not sizes["parts"]:
        lines.append("  reductions alone prove the optimum, but for barrier order")
    return "\n".join(lines)


def result_text(result: UnwindingResult) -> str:
    """Return the summary of a result, and the pieces of its sinks."""
    lines = [result.summary()]
    layouts = result.layouts or {}
    if layouts and result.graph is not None and result.graph.tile_memory is not None:
        lines += ["", occupancy_text(result)]
    if layouts:
        rows = [["sink", "takes the locations of"]]
        for sink, pieces in list(layouts.items())[:SINKS_SHOWN]:
            rows += [[sink if i == 0 else "", text] for i, text in enumerate(_pieces(sink, pieces))]
        lines += ["", table(rows, left=2)]
    if len(layouts) > SINKS_SHOWN:
        lines.append(f"  ... and {len(layouts) - SINKS_SHOWN} more sinks")
    return "\n".join(lines)


def _pieces(sink: str, pieces: tuple[Piece, ...]) -> list[str]:
    shown = []
    for origin, start, to, loops in pieces[:PIECES_SHOWN]:
        count = 1
        for extent, _, _ in loops:
            count *= extent
        what = "its own" if origin == sink else origin
        where = ", ".join(f"{n} x {a:+d} -> {b:+d}" for n, a, b in loops)
        shown.append(f"{what}: {number(count)} from {start} to {to}, loops {where}")
    if len(pieces) > PIECES_SHOWN:
        shown.append(f"... and {len(pieces) - PIECES_SHOWN} more pieces")
    return shown or ["nothing: it has no elements"]
