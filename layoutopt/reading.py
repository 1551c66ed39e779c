"""Graphs from files, instances and networks, and from Python functions."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from layoutopt.building import build, is_function
from layoutopt.errors import InputError
from layoutopt.graphs.unwinding import Graph
from layoutopt.io.files import INSTANCES, named
from layoutopt.io.instance import read_instance

SUFFIXES = (*INSTANCES, ".onnx")
"""How the names of files end that can be read."""


def read(
    path: str | Path,
    *,
    attractions: str | Path | None = None,
    dims: Mapping[str, int] | None = None,
    training: str | None = None,
) -> Graph:
    """Read the graph of an unwinding problem.

    Parameters
    ----------
    path
        An instance (``.json`` or ``.json.gz``), a network (``.onnx``), or the name of a Python
        function that returns a graph (``module:function`` or ``file.py:function``), whose code
        is run.
    attractions
        For a network: a TOML file with values that replace some of the shipped table's.
    dims
        For a network: sizes of its symbolic dimensions, by name.
    training
        For a network: an optimiser, ``"sgd"``, ``"momentum"`` or ``"adam"``, to add the
        backward pass and the update of the weights.  By default there is neither.

    Raises
    ------
    InputError
        If the file cannot be read, with the place in it and the reason.
    """
    name = str(named(path))
    if name.endswith(".onnx"):
        from layoutopt.onnx.read import read_onnx

        return read_onnx(path, attractions=attractions, dims=dims, training=training)
    if attractions is not None or dims or training is not None:
        raise InputError("attractions, dims and training are for .onnx files only", file=name)
    if not name.endswith(SUFFIXES) and not Path(path).is_dir():
        if is_function(name):
            return build(name)
        allowed = f"{', '.join(SUFFIXES)} and module:function"
        raise InputError(f"is of no known kind; allowed: {allowed}", file=name)
    return read_instance(path)
