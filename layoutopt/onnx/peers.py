"""Transposes that other optimisers leave in a network."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from layoutopt.base.errors import InputError
from layoutopt.base.processes import ending, start_python
from layoutopt.onnx.protobuf import bodies, is_standard, write_proto
from layoutopt.onnx.running import large_tensors, not_run
from layoutopt.onnx.runtime import POLL, RunError, Session

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto


def optimised_transposes(model: ModelProto) -> int:
    """Return how many transposes onnxruntime's own optimiser leaves.

    That is its basic level, which only does what holds for every machine.

    Raises
    ------
    InputError
        If onnxruntime is missing, or cannot load the network.
    """
    import onnx

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


def peer_transposes(model: ModelProto) -> dict[str, int | None]:
    """Return how many transposes other optimisers leave, None for one that is not installed.

    Raises
    ------
    InputError
        If one of them fails, or onnxruntime is missing.
    """
    import onnx

    found: dict[str, int | None] = {"onnxruntime": optimised_transposes(model)}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        write_proto(model, path, large_tensors(model))
        for package, entry in (("onnxslim", "slim"), ("onnxsim", "simplify")):
            found[package] = None
            if find_spec(package) is not None:
                _optimise_alone(package, entry, path)
                optimised = onnx.load(path.with_suffix(".new"), load_external_data=False)
                found[package] = transposes(optimised)
    return found


_OPTIMISE = """
import importlib, sys, onnx
package, entry, path, output = sys.argv[1:]
found = getattr(importlib.import_module(package), entry)(onnx.load(path))
onnx.save(found[0] if isinstance(found, tuple) else found, output)
"""


def _optimise_alone(package: str, entry: str, path: Path) -> None:
    """Let another optimiser write what it leaves of a network, in a process that may crash.

    Raises
    ------
    InputError
        If it does, or fails.
    """
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


def transposes(model: ModelProto) -> int:
    """Return the number of transposes in a network, in graphs inside nodes and functions too.

    Those of a function count once for each call, but not those of an op in another layout, whose
    function only says what it computes.
    """
    theirs = (f for f in model.functions if not f.domain.startswith("layoutopt."))
    functions = {(f.domain, f.name): f.node for f in theirs}
    counts: dict[tuple[str, str], int] = {}

    def count(nodes: Iterable[NodeProto]) -> int:
        total = 0
        for node in nodes:
            called = node.domain, node.op_type
            if called in functions and called not in counts:
                counts[called] = 0  # of one that calls itself
                counts[called] = count(functions[called])
            own = node.op_type == "Transpose" and is_standard(node.domain)
            total += counts.get(called, int(own)) + sum(count(b.node) for b in bodies(node))
        return total

    return count(model.graph.node)
