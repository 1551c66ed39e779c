"""The errors that a user can meet, and packages that only an extra installs."""

from __future__ import annotations

from importlib import import_module
from typing import Any

LONGEST = 1000
"""Characters of the longest line that is told; longer ones lose what is in the middle."""


class LayoutoptError(Exception):
    """Base of all errors that this package raises on purpose."""


class InputError(LayoutoptError, ValueError):
    """Something given by the user cannot be used.

    Parameters
    ----------
    reason
        What is wrong and what is allowed, in one line.
    place
        Where inside the input, for instance ``$.ops[3].permutation``; empty if the
        input has no inner places.
    file
        The file's name, empty if the input is no file.
    """

    def __init__(self, reason: str, place: str = "", file: str = "") -> None:
        self.reason = reason
        self.place = place
        self.file = file
        text = ": ".join(part for part in (file, place, reason) if part)
        super().__init__(_line(text))

    def located(self, place: str = "", file: str = "") -> InputError:
        """Return the same error with a place or file added where it had none."""
        return InputError(self.reason, self.place or place, self.file or file)


def _line(text: str) -> str:
    """Return a text as one line that any terminal can show; what it quotes may be anything."""
    line = " ".join(text.splitlines())
    shown = printable(line)
    if len(shown) <= LONGEST:
        return shown
    return f"{shown[: LONGEST * 3 // 4]} ... {shown[-LONGEST // 4 :]}"


def printable(text: str, keep: str = "") -> str:
    """Return a text with characters that no terminal should be sent, such as escapes, spelt out.

    Parameters
    ----------
    keep
        Characters that stay as they are.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in keep else _escaped(c) for c in text)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode()


class OptionError(InputError):
    """An option does not fit the input: another one mends it."""


class SizeError(InputError):
    """The input is legal but needs more memory than this machine has."""


class SolverError(LayoutoptError):
    """A solver failed on a problem that it should take."""


class InternalError(LayoutoptError):
    """Two independent computations disagree: a defect of this package, never an answer."""


PACKAGES = {"onnx": "onnx", "onnxruntime": "onnx", "matplotlib": "plot", "distributed": "dask"}
"""The extra that a package comes with."""


def needed(package: str, what: str, file: str = "") -> Any:
    """Return a package that is not always installed.

    Parameters
    ----------
    package
        The name under which it is imported, one of :data:`PACKAGES`.
    what
        What needs it, for the error.
    file
        The file that is at hand, for the error.

    Raises
    ------
    InputError
        If it cannot be imported; the text tells how to install it.
    """
    try:
        return import_module(package)
    except ImportError as error:
        broken = "" if isinstance(error, ModuleNotFoundError) else str(error)
        raise lacking(package, what, broken, file) from None


def lacking(package: str, what: str, broken: str = "", file: str = "") -> InputError:
    """Return the error that a package is not installed, or cannot be imported for some reason.

    The other arguments are those of :func:`needed`.
    """
    why = f" ({broken})" if broken else ""
    install = f'pip install ".[{PACKAGES[package]}]" in a clone of layoutopt'
    return InputError(f"{what} needs {package}{why}, which an extra brings: {install}", file=file)
