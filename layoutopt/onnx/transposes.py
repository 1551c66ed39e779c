"""Transposes of a network: what they cost, which are gone, and what other optimisers leave."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Container, Iterable, Mapping
from importlib.util import find_spec
from math import prod
from pathlib import Path

from layoutopt.base.errors import InputError
from layoutopt.base.processes import ending, start_python
from layoutopt.conversion.result import Tally
from layoutopt.graphs.ops import Array
from layoutopt.onnx.protobuf import (
    FunctionKey,
    all_nodes,
    bodies,
    called_by,
    functions_of,
    is_standard,
    onnx,
    write_proto,
)
from layoutopt.onnx.result import PREFIX
from layoutopt.onnx.running import NotRun, large_tensors, not_run
from layoutopt.onnx.runtime import POLL, RunError, Session
from layoutopt.onnx.types import Declared, rounds_of, shape_of, turned_axes, typed, types_of
from layoutopt.onnx.weights import known_values, light_model, variable_initialisers

GIVEN = f"{PREFIX}given"
"""Entry of metadata by which a transpose of the network as it was given is known, meanwhile."""


class GivenTransposes:
    """The transposes of a network, those in graphs inside nodes too, whose nodes are marked.

    ``held`` are initialisers that are no constants.
    """

    def __init__(self, graph: onnx.GraphProto, types: Declared, held: Container[str]) -> None:
        self.found: dict[str, tuple[str, int, bool]] = {}
        self.unknown = 0  # how many have no known shape
        self.types, self.held = types, held
        self._look(graph, set(), {}, 1)

    def _look(
        self, graph: onnx.GraphProto, constant: set[str], values: Mapping[str, Array], rounds: int
    ) -> None:
        """Find the transposes of a graph that runs so often, and may capture constants."""
        constant = constant | {x.name for x in graph.initializer if x.name not in self.held}
        values = {**values, **known_values(graph)}
        for node in graph.node:
            for body in bodies(node):
                own = rounds_of(node, values, lambda name: shape_of(self.types.get(name)))
                self._look(body, constant, values, rounds * own)
            if not is_standard(node.domain):
                continue
            if node.op_type == "Constant":
                constant.update(node.output)
            if node.op_type == "Transpose":
                if node.input[0] in constant:
                    constant.update(node.output)
                self._add(node, node.input[0] in constant, rounds)

    def _add(self, node: onnx.NodeProto, constant: bool, rounds: int) -> None:
        types = self.types
        kind = types.get(node.input[0])
        shape = shape_of(kind)
        free, size = constant or _stays(node, types), 0
        if kind is not None and shape is not None:
            size = prod(x for x in shape if isinstance(x, int)) * typed(kind).element_bytes * rounds
        number = str(len(self.found))
        node.metadata_props.add(key=GIVEN, value=number)
        self.found[number] = (node.name or node.output[0], size, free)
        self.unknown += not free and shape is None

    def gone(self, graph: onnx.GraphProto, types: Declared) -> Tally:
        """Return what those cost that a graph has no more, less copies; marks are taken away.

        A transpose moves the bytes of its tensor, unless that is a constant, or only axes of
        size 1 move.  One that no longer moves anything is gone.
        """
        left, copies = dict(self.found), list[tuple[str, int, bool]]()
        for node in all_nodes(graph):
            for entry in [x for x in node.metadata_props if x.key == GIVEN]:
                known = self.found[entry.value]
                there = node.op_type == "Transpose" and (known[2] or not _stays(node, types))
                if there and left.pop(entry.value, None) is None:
                    copies.append(known)
                node.metadata_props.remove(entry)
        moved = [(name, size) for name, size, free in left.values() if not free]
        again = [size for _, size, free in copies if not free]
        count = len(moved) - len(again)
        total = sum(size for _, size in moved) - sum(again)
        return Tally(count, total, len(left) - len(copies) - count, dict(moved))


def _stays(node: onnx.NodeProto, types: Declared) -> bool:
    """Return whether a transpose is known to move axes of size 1 only."""
    shape = shape_of(types.get(node.input[0]))
    order, sizes = turned_axes(node, len(shape or ())), dict(enumerate(shape or ()))
    axes = [axis for axis in order if sizes.get(axis) != 1]
    return axes == sorted(axes) and (shape is not None or bool(order))


def given_transposes(model: onnx.ModelProto) -> tuple[Tally, int]:
    """Return what a network's transposes cost by the shapes that it declares.

    Those of a shape that is not declared are among the transforms, without their bytes; how many
    these are comes second.
    """
    light = light_model(model, {})
    given = GivenTransposes(light.graph, types_of(light.graph), variable_initialisers(light))
    return given.gone(type(light.graph)(), {}), given.unknown


def optimised_transposes(model: onnx.ModelProto) -> int:
    """Return how many transposes onnxruntime's own optimiser leaves.

    That is its basic level, which only does what holds for every machine.  Raises ``InputError``
    if onnxruntime is missing, or cannot load the network.
    """
    with tempfile.TemporaryDirectory() as folder:
        path, found = Path(folder) / "model.onnx", Path(folder) / "optimised.onnx"
        write_proto(model, path, large_tensors(model))
        options = {
            "graph_optimization_level": "ORT_ENABLE_BASIC",
            "optimized_model_filepath": str(found),
        }
        try:
            with Session(str(path), options):
                return transposes(onnx.load(str(found), load_external_data=False))
        except RunError as error:
            raise not_run(error, "load it") from None


def peer_transposes(model: onnx.ModelProto) -> tuple[dict[str, int | None], list[str]]:
    """Return how many transposes other optimisers leave, and why some are not known.

    The number is None for one that is not installed or fails.  Raises ``InputError`` if
    onnxruntime is missing.
    """
    found: dict[str, int | None] = {"onnxruntime": None}
    notes = []
    try:
        found["onnxruntime"] = optimised_transposes(model)
    except NotRun as error:
        notes.append(str(error))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        write_proto(model, path, large_tensors(model))
        for package, entry in (("onnxslim", "slim"), ("onnxsim", "simplify")):
            found[package] = None
            try:
                _optimise_alone(package, entry, path)
            except InputError as error:
                notes.append(str(error))
                continue
            optimised = onnx.load(path.with_suffix(".new"), load_external_data=False)
            found[package] = transposes(optimised)
    return found, notes


_OPTIMISE = """
import importlib, sys, onnx
package, entry, path, output = sys.argv[1:]
found = getattr(importlib.import_module(package), entry)(onnx.load(path))
onnx.save(found[0] if isinstance(found, tuple) else found, output)
"""


def _optimise_alone(package: str, entry: str, path: Path) -> None:
    """Let another optimiser write what it leaves of a network, in a process that may crash.

    Raises ``InputError`` if it does, fails, or is not installed.
    """
    if find_spec(package) is None:
        raise InputError(f"{package} is not installed")
    output, said = path.with_suffix(".new"), path.with_suffix(".txt")
    words = ["-c", _OPTIMISE, package, entry, str(path), str(output)]
    with said.open("wb") as file, start_python(words, file) as process:
        try:
            while process.poll() is None:
                time.sleep(POLL)  # in pieces, as exceptions come between two of these
        except BaseException:
            process.kill()
            raise
    if process.returncode:
        lines = said.read_text(errors="replace").strip().splitlines()
        told = process.returncode > 0 and lines
        why = lines[-1] if told else f"its process crashed ({ending(process.returncode)})"
        raise InputError(f"{package} cannot optimise it ({why})")


def transposes(model: onnx.ModelProto) -> int:
    """Return the number of transposes in a network, in graphs inside nodes and functions too.

    Those of a function count once for each call, but not those of an op in another layout, whose
    function only says what it computes.
    """
    every = functions_of(model).items()
    functions = {key: f.node for key, f in every if not f.domain.startswith("layoutopt.")}
    counts: dict[FunctionKey, int] = {}

    def count(nodes: Iterable[onnx.NodeProto]) -> int:
        total = 0
        for node in nodes:
            called = called_by(node)
            if called in functions and called not in counts:
                counts[called] = 0  # of one that calls itself
                counts[called] = count(functions[called])
            own = node.op_type == "Transpose" and is_standard(node.domain)
            total += counts.get(called, int(own)) + sum(count(b.node) for b in bodies(node))
        return total

    return count(model.graph.node)
