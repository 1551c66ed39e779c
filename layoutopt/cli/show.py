"""``layoutopt show``: how large an instance is, or what a result says."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from layoutopt.cli import options, solve
from layoutopt.cli.text import number, table

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
    attractions: options.Attractions = None,
    dim: options.Dim = None,
) -> int:
    """Show what reductions leave of an instance, or a result."""
    if _is_result(path):
        from layoutopt.io.result import read_result

        typer.echo(result_text(read_result(path).result()))
    else:
        graph, _ = options.load(path, attractions, dim)
        typer.echo(instance_text(graph))
    return 0


def _is_result(path: Path) -> bool:
    """Return whether a file says that it is a result; whatever is wrong shows later."""
    import msgspec

    from layoutopt.errors import InputError
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
