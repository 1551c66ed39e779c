"""Graphs read from instances, ONNX networks and Python functions."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib import import_module, util
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any

from layoutopt.base.errors import InputError
from layoutopt.base.files import INSTANCES, STDIN, named, read_utf8
from layoutopt.graphs.unwinding import Graph
from layoutopt.io.instance import read_instance
from layoutopt.network.files import ENDINGS, is_network

PATTERN = re.compile(r"(?P<module>[^:]*[\w/\\]|.+\.py):(?P<name>[A-Za-z_][\w.]*)")
"""``package.module:function`` or ``folder/file.py:function``."""


def is_function(text: str) -> bool:
    """Return whether a text names a Python function rather than a file."""
    return PATTERN.fullmatch(text) is not None and not Path(text).exists()


def build(text: str) -> Graph:
    """Import a module, call its function without arguments, and return the resulting graph.

    The text is ``module:function`` or ``module:graph``; the module is a dotted name, looked up in
    the working directory first, or a path that ends in ``.py``.
    """
    match = PATTERN.fullmatch(text)
    if match is None:
        raise InputError("must have the form module:function or file.py:function", file=text)
    with _working_directory_importable():
        try:
            found: Any = _module(match["module"])
            for part in match["name"].split("."):
                found = getattr(found, part)
            graph = found() if callable(found) else found
        except (Exception, SystemExit) as error:  # whatever the user's code raises
            raise InputError(_reason(error), file=text) from None
    if not isinstance(graph, Graph):
        kind = type(graph).__name__
        raise InputError(f"returns an object of type {kind}, not a layoutopt.Graph", file=text)
    return graph


@contextmanager
def _working_directory_importable() -> Iterator[None]:
    try:
        here = os.getcwd()
    except OSError as error:
        raise InputError(f"the working directory cannot be read ({error.strerror})") from None
    sys.path.insert(0, here)
    try:
        yield
    finally:
        with suppress(ValueError):  # the user's code may have removed it
            sys.path.remove(here)


def _module(name: str) -> ModuleType:
    if not name.endswith(".py"):
        return import_module(name)
    spec = util.spec_from_file_location(Path(name).stem, name)
    if spec is None or spec.loader is None:
        raise ImportError(f"{name} cannot be imported")
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _reason(error: BaseException) -> str:
    """Return an error's message, and the line of the user's code that raised it."""
    what = error.reason if isinstance(error, InputError) else f"{type(error).__name__}: {error}"
    place = _place(error.__traceback__)
    return f"{what} ({place})" if place else what


def _place(trace: TracebackType | None) -> str:
    """Return file and line of the last frame outside this package and the import system."""
    others = str(Path(__file__).parent), import_module.__code__.co_filename, "<frozen"
    place = ""
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if not file.startswith(others):
            place = f"{os.path.relpath(file)}, line {trace.tb_lineno}"
        trace = trace.tb_next
    return place


SUFFIXES = (*INSTANCES, ".onnx")
"""Suffixes of files that :func:`read` accepts."""


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
        An instance (``.json`` or ``.json.gz``), a network (``.onnx``), ``-`` for either on
        standard input, or a Python function that returns a graph (``module:function`` or
        ``file.py:function``), which is run.
    attractions
        For a network: a TOML file with values that override the default ones.
    dims
        For a network: sizes of its symbolic dimensions, by name.
    training
        For a network: an optimiser, ``"sgd"``, ``"momentum"`` or ``"adam"``, whose training step
        (backward pass, update of the weights) is added.

    Raises
    ------
    InputError
        If the file cannot be read; the message says where and why.
    """
    name = str(named(path))
    if is_network(Path(path)):
        reason = (
            "is a cost network, not a graph; layoutopt.network.read and layoutopt solve read it"
        )
        raise InputError(reason, file=name)
    begins = read_utf8(Path(STDIN)).lstrip()[:1] if name == STDIN else b"{"
    if name.endswith(".onnx") or begins not in (b"{", b""):
        from layoutopt.onnx.read import read_onnx

        return read_onnx(path, attractions=attractions, dims=dims, training=training)
    if attractions is not None or dims or training is not None:
        raise InputError("attractions, dims and training are for .onnx files only", file=name)
    if not name.endswith((*SUFFIXES, STDIN)) and not Path(path).is_dir():
        if is_function(name):
            return build(name)
        allowed = f"{', '.join(SUFFIXES)} and module:function"
        costs = ", ".join(ENDINGS[1:])
        reason = f"unknown file type; allowed: {allowed}; for cost networks also {costs}"
        raise InputError(reason, file=name)
    return read_instance(path)
