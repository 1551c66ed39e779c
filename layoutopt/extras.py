"""Packages that only some users need: each comes with an extra."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from layoutopt.errors import InputError

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
        broken = "" if isinstance(error, ModuleNotFoundError) else f" ({error})"
        install = f'pip install ".[{PACKAGES[package]}]" in a clone of layoutopt'
        reason = f"{what} needs {package}{broken}, which an extra brings: {install}"
        raise InputError(reason, file=file) from None
