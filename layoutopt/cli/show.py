"""``layoutopt show``: the size of an instance, or the summary of a result."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from layoutopt.base.errors import InputError, printable
from layoutopt.base.numbers import counted, more, ratio
from layoutopt.base.table import Table
from layoutopt.cli import options
from layoutopt.cli.options import OutputFiles, argument, flag, option
from layoutopt.cli.streams import command_line

if TYPE_CHECKING:
    from layoutopt.base.result import Piece, UnwindingResult
    from layoutopt.graphs.unwinding import Graph
    from layoutopt.machine.simulation import Simulation

HEAVIEST = 5  # number of heaviest tensors shown
PHASES_SHOWN = 8  # rows of the table of exchanges

SINKS_SHOWN, PIECES_SHOWN = 12, 3


@options.grouped
def command(
    path: Annotated[Path, argument("INSTANCE|RESULT", "An instance, an ONNX model or a result.")],
    instance: Annotated[
        Path | None, option("INSTANCE", "The instance of the result, needed to draw its layouts.")
    ] = None,
    output: options.Output = None,
    svg: options.Svg = None,
    png: options.Png = None,
    html: options.Html = None,
    by: Annotated[
        Literal["location", "bytes", "tensor"],
        typer.Option(help="Colour elements by location, or by tile."),
    ] = "location",
    simulate: Annotated[
        bool,
        flag("On a tile memory, simulate: peak bytes, bytes exchanged and cycles.", "--simulate"),
    ] = False,
    overwrite: options.Overwrite = False,
    *,
    reading: options.Reading,
) -> int:
    """Show the size of an instance before and after reduction, or a result; draw either.

    Tensors are drawn as grids, a cell for each element, with one colour for each location; or,
    with --by bytes and --by tensor, the tiles of a tile memory.
    """
    files = {"--svg": svg, "--png": png, "--html": html}
    outputs = OutputFiles(files, overwrite, output=output, inputs=[path, instance])
    if by != "location" and not outputs.pictured:
        raise InputError(f"--by {by} requires --svg FILE or --png FILE")
    graph, result = _read(path, instance, reading)
    if graph is None and (outputs.pictured or simulate or reading.tiles is not None):
        reason = "a result has no graph to draw or simulate; give it by --instance INSTANCE"
        raise InputError(reason, file=str(path))
    found = None
    if simulate or by != "location":
        found = simulated(graph, result, "--simulate" if simulate else f"--by {by}")

    picture = ""
    if outputs.pictured and graph is not None:
        tiles = None if by == "location" else found
        picture = str(graph.draw(result) if tiles is None else tiles.draw(by))

    def text() -> str:
        if result is not None:
            told = result_text(result)
            return f"{told}\n\n{simulation_text(found)}" if found is not None and simulate else told
        return "" if graph is None else instance_text(graph)

    page = {"--html": lambda: _page(graph, result).encode()}
    outputs.write(options.picture_makers(picture) | page, text)
    return 0


def _read(
    path: Path, instance: Path | None, reading: options.Reading
) -> tuple[Graph | None, UnwindingResult | None]:
    from layoutopt.io.result import read_result, with_graph

    if not _is_result(path):
        if instance is not None:
            raise InputError("is not a result, which --instance requires", file=str(path))
        return reading.load(path)[0], None
    result = read_result(path)
    if instance is None:
        return None, result
    graph, _ = reading.load(instance)
    return graph, with_graph(result, graph, str(path))


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


def simulated(graph: Graph | None, result: UnwindingResult | None, why: str) -> Simulation:
    """Simulate a result on its graph's tile memory, which the option ``why`` requires."""
    from layoutopt.machine.simulation import simulate

    if graph is None or result is None or result.layouts is None:
        raise InputError(f"{why} requires a RESULT with layouts")
    if graph.tile_memory is None:
        raise InputError(f"{why} requires a tile memory; give one by --tiles PRESET|FILE")
    return simulate(graph, result)


def _page(graph: Graph | None, result: UnwindingResult | None) -> str:
    from layoutopt.report.pages import whole
    from layoutopt.report.result import report_html

    if result is not None:
        return report_html(result, command=command_line())
    return "" if graph is None else whole(graph.name or "unnamed", graph.to_html())


def instance_text(graph: Graph) -> str:
    """Return the sizes of a graph before and after reduction."""
    from layoutopt.explain.outline import outline
    from layoutopt.graphs.ops import type_name

    types = Counter(map(type_name, graph.ops)).most_common()
    ops = ", ".join(f"{count:,} {kind}" for kind, count in types)
    lines = [
        printable(f"{graph.name or 'unnamed'}: {graph.description}".rstrip(": ")),
        f"  {counted(len(graph.ops), 'op')}: {ops}",
        f"  {counted(len(graph.pairs), 'valued pair')}",
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


def machine_text(graph: Graph) -> str:
    """Return a graph's tile memory, the bytes of its sinks, and the heaviest ones."""
    from layoutopt.graphs.tiling import memory_of
    from layoutopt.machine.simulation import bytes_of, tiles_of

    memory = memory_of(graph)
    weights = {t.name: t.size * bytes_of(graph, t.index) for t in graph.sinks()}
    total = sum(weights.values())
    rows = [
        ["tiles", tiles_of(memory)],
        ["sinks", f"{total:,} bytes of {memory.total:,} ({ratio(total / memory.total)})"],
    ]
    if memory.grain > 1:
        rows.append(["grain", f"{memory.grain:,} elements"])
    heavy = sorted(weights.items(), key=lambda item: -item[1])[:HEAVIEST]
    for i, (name, weight) in enumerate(heavy):
        share = ratio(weight / memory.total)
        rows.append(["" if i else "heaviest", f"{name}: {weight:,} bytes ({share})"])
    return Table((), rows, left=2).text()


def simulation_text(found: Simulation) -> str:
    """Return the summary of a simulation, and its longest exchanges."""
    lines = [Table((), found.rows(), left=2).text()]
    if found.phases:
        hidden = len(found.phases) - PHASES_SHOWN
        table = replace(found.exchanges(PHASES_SHOWN), hidden=hidden, noun="phase")
        lines += ["", table.text()]
    return "\n".join(lines)


def result_text(result: UnwindingResult) -> str:
    """Return the summary of a result, the occupancy of tiles, and the pieces of its sinks."""
    lines = [result.summary()]
    layouts = result.layouts or {}
    if layouts and result.graph is not None and result.graph.tile_memory is not None:
        from layoutopt.check.elements import occupied
        from layoutopt.machine.simulation import occupancy_rows

        used = occupancy_rows(result.graph.tile_memory, occupied(result.graph, layouts))
        lines += ["", Table((), used, left=2).text()]
    if layouts:
        rows = []
        for sink, pieces in list(layouts.items())[:SINKS_SHOWN]:
            rows += [[sink if i == 0 else "", text] for i, text in enumerate(_pieces(sink, pieces))]
        head = ["sink", "takes the locations of"]
        lines += ["", Table(head, rows, 2, len(layouts) - SINKS_SHOWN, "sink").text()]
    return "\n".join(lines)


def _pieces(sink: str, pieces: tuple[Piece, ...]) -> list[str]:
    from layoutopt.base.result import elements

    lines = []
    for piece in pieces[:PIECES_SHOWN]:
        origin, start, to, loops = piece
        what = "its own" if origin == sink else origin
        where = ", ".join(f"{n} x {a:+d} -> {b:+d}" for n, a, b in loops)
        lines.append(f"{what}: {elements(piece):,} from {start} to {to}, loops {where}")
    if len(pieces) > PIECES_SHOWN:
        lines.append(more(len(pieces) - PIECES_SHOWN, "piece"))
    return lines or ["nothing: it has no elements"]
