"""A picture that shows itself."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from layoutopt.base import html
from layoutopt.base.errors import InputError
from layoutopt.base.files import whole_file


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
        if Path(path).suffix != ".svg":
            raise InputError("is no name of a picture; it must end in .svg", file=str(path))
        try:
            with whole_file(Path(path), overwrite=overwrite) as file:
                file.write(f"{self.svg}\n".encode())
        except FileExistsError:
            reason = "exists already; overwrite=True replaces it"
            raise InputError(reason, file=str(path)) from None
        except OSError as error:
            raise InputError(f"cannot be written ({error.strerror})", file=str(path)) from None

    def _repr_svg_(self) -> str:
        return self.svg

    def _repr_html_(self) -> str:
        return html.fitted(self.svg)

    def __str__(self) -> str:
        return self.svg
