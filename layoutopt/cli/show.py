"""``layoutopt show``: how large an instance is, or what a result says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from layoutopt.cli import options, solve
from layoutopt.cli.text import number, table
from layoutopt.errors import InputError

if TYPE_CHECKING:
    from layoutopt.graphs.unwinding import Graph
    from layoutopt.pieces import Piece
    from layoutopt.result import UnwindingResult

SINKS_SHOWN = 12
PIECES_SHOWN = 3


def command(
    path: Annotated[
        Path, typer.Argument(metavar="INSTANCE|RESULT", help="An instance, network or result.")
    ],
    instance: Annotated[
        Path | None,
        typer.Option(metavar="INSTANCE", help="What a result is of, to draw its layouts."),
    ] = None,
    svg: Annotated[
        Path | None, typer.Option("--svg", metavar="FILE", help="Draw it here; - is stdout.")
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option("--html", metavar="FILE", help="Write a page about it here; - is stdout."),
    ] = None,
    overwrite: options.Overwrite = False,
    attractions: options.Attractions = None,
    dim: options.Dim = None,
) -> int:
    """Show what reductions leave of an instance, or a result; draw either.

    Tensors are drawn as grids, a cell for each element, with one colour for each location.
    """
    if svg is not None and svg == html:
        raise InputError("--svg and --html name the same file", file=str(svg))
    for target in (svg, html):
        options.check_target(target, overwrite)
    result = _read(path) if _is_result(path) else None
    if result is None:
        if instance is not None:
            raise InputError("is no result; --instance is for results", file=str(path))
        graph, _ = options.load(path, attractions, dim)
    elif instance is not None:
        graph, _ = options.load(instance, attractions, dim)
        result = _joined(result, graph, path, instance)
    elif svg is not None:
        reason = "a result alone has no graph to draw; --instance INSTANCE names it"
        raise InputError(reason, file=str(path))
    if "-" not in (str(svg), str(html)):
        typer.echo(instance_text(graph) if result is None else result_text(result))
    if svg is not None:
        _write(str(graph.draw(result)), svg, overwrite)
    if html is not None:
        _write(_page(result or graph), html, overwrite)
    return 0


def _read(path: Path) -> UnwindingResult:
    from layoutopt.io.result import read_result

    return read_result(path).result()


def _joined(result: UnwindingResult, graph: Graph, path: Path, instance: Path) -> UnwindingResult:
    """Return a result with its graph."""
    if graph.name != result.instance:
        whose = f"is of {result.instance!r}, but {instance} is {graph.name!r}"
        raise InputError(whose, file=str(path))
    try:
        graph.draw(result)
    except InputError as error:
        raise error.located(file=str(path)) from None
    return replace(result, graph=graph)


def _page(shown: UnwindingResult | Graph) -> str:
    from layoutopt.graphs.display import document
    from layoutopt.pictures.html import page
    from layoutopt.result import UnwindingResult, result_html

    if isinstance(shown, UnwindingResult):
        return page(shown.instance or "unnamed", result_html(shown))
    return page(shown.name or "unnamed", document(shown))


def _write(text: str, path: Path, overwrite: bool) -> None:
    from layoutopt.io.files import write_bytes

    if str(path) == "-":
        typer.echo(text)
    else:
        write_bytes(path, f"{text}\n".encode(), overwrite=overwrite)


def _is_result(path: Path) -> bool:
    """Return whether a file says that it is a result; whatever is wrong shows later."""
    import msgspec

    from layoutopt.io.files import read_bytes
    from layoutopt.io.result import FORMAT

    if path.suffix == ".onnx":
        return False
    try:
        document = msgspec.json.decode(read_bytes(path), type=dict[str, msgspec.Raw])
    except (InputError, msgspec.DecodeError):
        return False
    return bytes(document.get("format", b"")) == f'"{FORMAT}"'.encode()


def instance_text(graph: Graph) -> str:
    """Return the sizes of a graph before and after reduction."""
    from layoutopt.outline import outline

    found = outline(graph)
    ops = ", ".join(f"{count:,} {kind}" for kind, count in found.ops.items())
    lines = [
        f"{graph.name or 'unnamed'}: {graph.description}".rstrip(": "),
        f"  {len(graph.ops):,} ops: {ops}",
        f"  {len(graph.pairs):,} valued pairs",
        "",
    ]
    steps = [
        ("the graph", found.graph),
        ("tied by pairs", found.lowered),
        ("one of each class", found.problem),
        ("left by reductions", found.left),
    ]
    for title, sizes in steps:
        told = ", ".join(f"{n:,} {name.replace('_', ' ')}" for name, n in sizes.items())
        lines.append(f"  {title:<19} {told}")
    if not found.left["parts"]:
        lines.append("  reductions alone prove the optimum, but for barrier order")
    return "\n".join(lines)


def result_text(result: UnwindingResult) -> str:
    """Return the summary of a result, and where its sinks lie."""
    lines = [solve.summary(result)]
    layouts = result.layouts or {}
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
