"""A picture that shows itself."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from layoutopt.errors import InputError
from layoutopt.pictures import html


@dataclass(frozen=True)
class Picture:
    """A picture as SVG, which notebooks show.

    Parameters
    ----------
    svg
        The text of the picture.
    reduced
        Whether there was too much to draw, so that it holds counts only.
    """

    svg: str = field(repr=False)
    reduced: bool = False

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write an SVG file, whole or not at all.

        Parameters
        ----------
        path
            Its name ends in ``.svg``.
        overwrite
            Whether a file that exists is replaced.

        Raises
        ------
        InputError
            If the name ends otherwise, or the file exists or cannot be written.
        """
        target = Path(path)
        if target.suffix != ".svg":
            raise InputError("is no name of a picture; it must end in .svg", file=str(path))
        if target.exists() and not overwrite:
            raise InputError("exists already; overwrite=True replaces it", file=str(path))
        temporary = target.with_name(f".{target.name}.{os.getpid()}")
        try:
            temporary.write_text(self.svg + "\n", encoding="utf-8")
            os.replace(temporary, target)
        except OSError as error:
            raise InputError(f"cannot be written ({error.strerror})", file=str(path)) from None
        finally:
            temporary.unlink(missing_ok=True)

    def _repr_svg_(self) -> str:
        return self.svg

    def _repr_html_(self) -> str:
        return html.fitted(self.svg)

    def __str__(self) -> str:
        return self.svg
