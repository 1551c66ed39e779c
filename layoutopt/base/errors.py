"""Errors of this package, checks of users' arguments, and imports of optional packages."""

from __future__ import annotations

from importlib import import_module
from typing import Any, get_args

LONGEST = 1000  # largest length of a message in characters; longer ones are shortened in the middle


class LayoutoptError(Exception):
    """Base of all errors that this package raises on purpose."""


class InputError(LayoutoptError, ValueError):
    """Invalid input by a user.

    Parameters
    ----------
    reason
        What is wrong and what is allowed, in one line.
    place
        Place inside the input, for instance ``$.ops[3].permutation``; empty if the
        input has no inner places.
    file
        File name; empty if the input is not a file.
    """

    def __init__(self, reason: str, place: str = "", file: str = "") -> None:
        self.reason = reason
        self.place = place
        self.file = file
        text = ": ".join(part for part in (file, place, reason) if part)
        super().__init__(_line(text))

    def located(self, place: str = "", file: str = "") -> InputError:
        """Return the same error with place and file filled in where they were empty."""
        return InputError(self.reason, self.place or place, self.file or file)


class errors_at:
    """Context that fills in place and file of an InputError where they are empty."""

    def __init__(self, place: str = "", file: str = "") -> None:
        self.place, self.file = place, file

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, InputError):
            raise error.located(self.place, self.file) from None


class errors_of:
    """Context that says of what an InputError is, before its reason."""

    def __init__(self, what: str) -> None:
        self.what = what

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, InputError):
            raise InputError(f"{self.what}: {error.reason}") from error.__cause__


def _line(text: str) -> str:
    """Return a text as one printable line of bounded length."""
    line = " ".join(text.splitlines())
    shown = printable(line)
    if len(shown) <= LONGEST:
        return shown
    return f"{shown[: LONGEST * 3 // 4]} ... {shown[-LONGEST // 4 :]}"


def printable(text: str, keep: str = "") -> str:
    """Return a text with control characters escaped, except those to keep."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in keep else _escaped(c) for c in text)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode()


class OptionError(InputError):
    """An option that does not fit the input."""


class SizeError(InputError):
    """A valid input that needs more memory than available."""


class SolverError(LayoutoptError):
    """Failure of a solver on a valid problem."""


class InternalError(LayoutoptError):
    """Disagreement of two independent computations: a defect of this package."""


def check_word(name: str, given: Any, words: Any, *, error: type[InputError] = InputError) -> None:
    """Check that an argument is one of the words of a ``Literal`` type."""
    allowed = get_args(words)
    if not isinstance(given, str) or given not in allowed:
        raise error(f"{name} must be one of {', '.join(allowed)}; got {given!r}")


PACKAGES = {"onnx": "onnx", "onnxruntime": "onnx", "matplotlib": "plot", "distributed": "dask"}
"""The extra that installs an optional package."""


def needed(package: str, what: str, file: str = "") -> Any:
    """Import an optional package that a feature requires, or tell how to install it."""
    try:
        return import_module(package)
    except ImportError as error:
        broken = "" if isinstance(error, ModuleNotFoundError) else str(error)
        raise lacking(package, what, broken, file) from None


class LazyModule:
    """An optional package, imported where an attribute of it is first used."""

    def __init__(self, package: str) -> None:
        self._package = package

    def __getattr__(self, name: str) -> Any:
        found = getattr(import_module(self._package), name)
        setattr(self, name, found)
        return found


def lacking(package: str, what: str, broken: str = "", file: str = "") -> InputError:
    """Return the error for a package that is missing, or whose import failed for some reason.

    The other arguments are those of :func:`needed`.
    """
    why = f" ({broken})" if broken else ""
    install = f'pip install ".[{PACKAGES[package]}]" in a clone of layoutopt'
    return InputError(f"{what} needs {package}{why}, an extra: {install}", file=file)
