"""Pictures as files, for commands that draw."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from layoutopt.cli.streams import write_out
from layoutopt.errors import InputError

Svg = Annotated[
    Path | None, typer.Option("--svg", metavar="FILE", help="Draw it here; - is stdout.")
]
Png = Annotated[Path | None, typer.Option("--png", metavar="FILE", help="Draw it here, in pixels.")]


def check_png(path: Path | None) -> None:
    """Refuse to print pixels, and to make any without what it takes."""
    if str(path) == "-":
        raise InputError("--png -: pixels need a file")
    if path is not None:
        from layoutopt.report import raster

        raster.check_installed()


def write_picture(picture: str, svg: Path | None, png: Path | None, overwrite: bool) -> None:
    """Write a picture, given as SVG, in the forms that are asked for."""
    from layoutopt.io.files import write_bytes
    from layoutopt.report import raster

    if png is not None:
        write_bytes(png, raster.png(picture), overwrite=overwrite)
    if svg is not None:
        write_out(f"{picture}\n".encode(), svg, overwrite)
