"""``layoutopt layout``: meaning of layouts, offsets of elements, and steps of transforms."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from layoutopt.base.errors import InputError
from layoutopt.base.table import Table
from layoutopt.cli import options
from layoutopt.cli.options import argument, option
from layoutopt.cli.streams import note, say

if TYPE_CHECKING:
    from layoutopt.layout.layout import Layout
    from layoutopt.layout.placement import Placement

app = options.group(
    help="Read, convert and explain layouts of tensors, such as NHWC, NCHW16c or {3,2,1,0}."
)

Text = Annotated[str, argument("LAYOUT", "A layout in any notation.")]
Dialect = Annotated[
    str | None,
    option("DIALECT", "Notation of the layout: glow, tvm, onednn or xla; recognised by default."),
]
Shape = Annotated[str, argument("SHAPE", "Sizes in logical order, such as 1,32,7,7.")]
Logical = Annotated[
    str | None, option("AXES", "Names of the axes in the order of SHAPE, such as NCHW or OIHW.")
]
Bytes = Annotated[
    int, option("N", "Bytes of an element, for alignment and sizes.", "--element-bytes")
]

SHOWN = 16  # rows of the table of offsets


@app.command("parse", cls=options.Command)
def parse(text: Text, dialect: Dialect = None) -> int:
    """Explain a layout, and write it in the other notations."""
    from layoutopt.layout.layout import DIALECTS, LayoutError

    layout = _read(text, dialect)
    rows = [["layout", str(layout)], ["dialect", layout.dialect]]
    if layout.undefined:
        rows.append(["meaning", "undefined"])
    elif layout.is_any and layout.dims:
        rows.append(["meaning", f"any layout of {len(layout.dims)} dimensions"])
    else:
        rows.append(["logical axes", layout.logical or "none: a scalar"])
    for n, dim in enumerate(layout.dims):
        blocks = " x ".join(
            block.axis if block.size is None else f"{block.size} of {block.axis}"
            for block in dim.blocks
        )
        told = "".join(f" [{extension}]" for extension in dim.extensions)
        rows.append(["dimensions" if n == 0 else "", f"{n}: {blocks}{told}"])
    for other in DIALECTS:
        if other != layout.dialect:
            try:
                rows.append([other, str(layout.to(other))])
            except LayoutError as error:
                rows.append([other, f"- ({error.reason})"])
    say(Table((), rows, left=2).text())
    return 0


@app.command("convert", cls=options.Command)
def convert(
    text: Text,
    to: Annotated[str, option("DIALECT", "Notation to write: glow, tvm, onednn or xla.")],
    dialect: Dialect = None,
    logical: Logical = None,
) -> int:
    """Write a layout in another notation, or say why none is exactly equivalent."""
    layout = _read(text, dialect)
    say(str(layout.to(to, logical=logical)))  # type: ignore[arg-type]  # checked there
    return 0


@app.command("offsets", cls=options.Command)
def offsets(
    text: Text,
    shape: Shape,
    dialect: Dialect = None,
    logical: Logical = None,
    element_bytes: Bytes = 4,
    svg: Annotated[
        Path | None,
        option("FILE", "Draw memory as a grid of elements (SVG).", "--svg", "--output", "-o"),
    ] = None,
    overwrite: options.Overwrite = False,
) -> int:
    """Show where a layout puts the elements of a tensor."""
    from layoutopt.layout import drawing
    from layoutopt.layout.placement import placement

    layout, sizes = _read(text, dialect), _shape(shape)
    if svg is not None:
        options.check_target(svg, overwrite)
    place = placement(layout, sizes, logical, element_bytes)
    axes = zip(place.logical, sizes, strict=True)
    rows = [
        ["shape", " ".join(f"{a}={n}" for a, n in axes) or "a scalar"],
        ["in memory", " x ".join(map(str, place.physical_shape)) or "one element"],
        ["strides", " ".join(map(str, place.strides)) or "-"],
        ["bytes", f"{place.nbytes:,}, of which {place.padding:,} hold no element"],
    ]
    say(Table((), rows, left=2).text())
    lines = drawing.memory_lines(place)
    if lines:
        say("\n  offset: elements there, by flat index in logical order")
        say("\n".join(f"  {line}" for line in lines))
        say("")
        say(_places(place))
    if svg is not None:
        picture = drawing.draw(layout, sizes, logical=logical, element_bytes=element_bytes)
        picture.save(svg, overwrite=overwrite)
    return 0


@app.command("transform", cls=options.Command)
def transform(
    source: Annotated[str, argument("FROM", "Current layout of the tensor.")],
    target: Annotated[str, argument("TO", "Wanted layout.")],
    shape: Shape,
    logical: Logical = None,
    element_bytes: Bytes = 4,
) -> int:
    """List the steps that transform one layout into another, and the bytes they move."""
    from layoutopt.layout.transform import transform as transform_between

    found = transform_between(source, target, _shape(shape), element_bytes, logical=logical)
    before, after = (place.nbytes for place in found.places)
    moved = "nothing: it is free" if found.is_free else f"{before:,} bytes read, {after:,} written"
    rows = [["from", str(found.source)], ["to", str(found.target)], ["moves", moved]]
    rows += [["" if n else "steps", line] for n, line in enumerate(found.lines)]
    say(Table((), rows, left=2).text())
    return 0


def _read(text: str, dialect: str | None) -> Layout:
    """Parse a layout; errors show the place of a mistake by a caret."""
    from layoutopt.layout.layout import Layout, LayoutError

    try:
        return Layout.parse(text, dialect)  # type: ignore[arg-type]  # checked there
    except LayoutError as error:
        if error.picture:
            note(error.picture)
        raise


def _shape(text: str) -> tuple[int, ...]:
    words = [word.strip() for word in text.split(",")] if text.strip() else []
    for word in words:
        if not (word.isascii() and word.isdigit()):
            raise InputError(f"SHAPE {text!r}: invalid size {word!r}; write sizes as in 1,32,7,7")
    return tuple(map(int, words))


def _places(place: Placement) -> str:
    """Return a table of the first elements and their offsets."""
    import math

    import numpy as np

    count = math.prod(place.shape)
    index = np.unravel_index(np.arange(min(count, SHOWN)), place.shape) if place.shape else ()
    head, rows = [*place.logical.lower(), "offset"], []
    for n, offset in enumerate(np.atleast_1d(place.offsets(index)).tolist()):
        rows.append([*(str(int(along[n])) for along in index), str(offset)])
    return Table(head, rows, 0, count - SHOWN, "element").text()
