"""What is measured of one exported network: transposes, seconds, memory, outputs, latency."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from benchmarks.measure import Measured, Timed, measure, timed

TIME_LIMIT = 120.0
"""Seconds that a conversion, or another optimiser, may take."""

Arrays = dict[str, NDArray[Any]]

LATENCY_SECONDS, LATENCY_RUNS = 3.0, 15
"""For how long two networks run in turns, and how often each does at least."""


@dataclass
class Measurement:
    """Everything in one row of the table.

    Parameters
    ----------
    name
        Name of the export.
    nodes, nodes_after
        Nodes in the file, those inside of other nodes included, and in the converted file.
    transposes
        Transposes by who left them: ``given``, ``layoutopt`` and the other optimisers.
    foreign
        Optimisers that wrote ops of other domains than the network has.
    failures
        What went wrong, by who failed.
    status
        What the conversion says of its answer.
    seconds, peak_mb
        What the conversion took, with what it imports, and the peak of its process.
    difference
        Largest difference of outputs, relative to the largest number in each.
    latency, latency_after
        Median milliseconds of a run in onnxruntime, which optimises both as it does by default.
    latency_ratio
        Median, over pairs of runs, of the latency after conversion by that before.
    """

    name: str
    nodes: int = 0
    nodes_after: int = 0
    transposes: dict[str, int] = field(default_factory=dict)
    foreign: list[str] = field(default_factory=list)
    failures: dict[str, str] = field(default_factory=dict)
    status: str = ""
    seconds: float | None = None
    peak_mb: float = 0.0
    difference: float | None = None
    latency: float | None = None
    latency_after: float | None = None
    latency_ratio: float | None = None


def measured(path: Path, output: Path, known: dict[str, Any]) -> dict[str, Any]:
    """Measure a network, whose inputs lie beside it as ``.npz``, and write it converted.

    What other optimisers did is taken from what is known of an earlier measurement.
    """
    found = Measurement(path.stem)
    found.nodes, found.transposes["given"] = counts(path)
    output.unlink(missing_ok=True)
    answer = measure(_convert, path, output, seconds=TIME_LIMIT)
    found.peak_mb = answer.peak_mb
    if not _failed(found, "layoutopt", answer):
        found.status, found.seconds = answer.answer, answer.seconds
        found.nodes_after, found.transposes["layoutopt"] = counts(output)
        answer = measure(_run, path, output, seconds=TIME_LIMIT)
        if not _failed(found, "onnxruntime", answer):
            found.difference, found.latency, found.latency_after, found.latency_ratio = (
                answer.answer
            )
    for name, optimise in OPTIMISERS.items():
        if name in known.get("transposes", {}):
            found.transposes[name] = known["transposes"][name]
            found.foreign += [name] * (name in known.get("foreign", ()))
        elif name in known.get("failures", {}):
            found.failures[name] = known["failures"][name]
        else:
            answer = measure(
                _optimise, optimise, path, output.with_suffix(".tmp"), seconds=TIME_LIMIT
            )
            if not _failed(found, name, answer):
                found.transposes[name], foreign = answer.answer
                found.foreign += [name] * foreign
    output.with_suffix(".tmp").unlink(missing_ok=True)
    return asdict(found)


def counts(path: Path) -> tuple[int, int]:
    """Return the numbers of nodes and of transposes in a file, inside of other nodes too."""
    nodes = _nodes(path)
    return len(nodes), sum(node.op_type == "Transpose" and not node.domain for node in nodes)


def _nodes(path: Path) -> list[onnx.NodeProto]:
    model = onnx.load(path)
    return [node for graph in (model.graph, *model.functions) for node in _within(graph)]


def _within(graph: Any) -> list[onnx.NodeProto]:
    found = list(graph.node)
    for node in graph.node:
        for attribute in node.attribute:
            for inner in (*attribute.graphs, *([attribute.g] if attribute.HasField("g") else [])):
                found += _within(inner)
    return found


def _failed(found: Measurement, what: str, answer: Measured) -> bool:
    """Note that something failed, if it did."""
    if answer.failure:
        found.failures[what] = answer.failure
    return bool(answer.failure)


def _convert(path: Path, output: Path) -> Timed:
    """Convert a network, and return how the answer calls itself."""
    import layoutopt

    def call() -> str:
        result = layoutopt.convert(path, time_limit=TIME_LIMIT)
        result.save(output)
        return str(result.status)

    return timed(call)


def onnxsim(path: Path, output: Path) -> None:
    """Write a network as onnxsim simplifies it."""
    import onnxsim

    model, valid = onnxsim.simplify(onnx.load(path))
    if not valid:
        raise ValueError("its own check says that outputs differ")
    onnx.save(model, output)


def onnxslim(path: Path, output: Path) -> None:
    """Write a network as onnxslim simplifies it."""
    import onnxslim

    onnx.save(onnxslim.slim(onnx.load(path)), output)


def onnxruntime(level: str, path: Path, output: Path) -> None:
    """Write a network as a level of onnxruntime leaves it; the extended one has ops of its own."""
    import onnxruntime

    options = _options()
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
    options.optimized_model_filepath = str(output)
    onnxruntime.InferenceSession(str(path), options, ["CPUExecutionProvider"])


Optimiser = Callable[[Path, Path], None]

OPTIMISERS: dict[str, Optimiser] = {
    "onnxsim": onnxsim,
    "onnxslim": onnxslim,
    "onnxruntime basic": partial(onnxruntime, "ORT_ENABLE_BASIC"),
    "onnxruntime extended": partial(onnxruntime, "ORT_ENABLE_EXTENDED"),
}
"""Other optimisers by name."""


def _optimise(optimise: Optimiser, path: Path, output: Path) -> tuple[int, bool]:
    """Return how many transposes an optimiser leaves, and whether it writes foreign ops."""
    optimise(path, output)
    given, found = ({node.domain for node in _nodes(each)} for each in (path, output))
    return counts(output)[1], not found <= {*given, "", "ai.onnx"}


def _run(path: Path, output: Path) -> tuple[float, float, float, float]:
    """Return the largest difference of outputs, both latencies, and their ratio."""
    inputs = dict(np.load(path.with_suffix(".npz")))
    return (_difference(path, output, inputs), *_latencies(path, output, inputs))


def _difference(path: Path, output: Path, inputs: Arrays) -> float:
    """Run two networks on the same inputs, not optimised, and compare their outputs."""
    import onnxruntime

    options = _options()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    both = [_session(each, options).run(None, inputs) for each in (path, output)]
    pairs = zip(*both, strict=True)
    return max(_relative(np.asarray(a), np.asarray(b)) for a, b in pairs)


def _relative(wanted: NDArray[Any], found: NDArray[Any]) -> float:
    """Return the largest difference of two arrays, relative to the largest number."""
    if wanted.shape != found.shape:
        return float("inf")
    if wanted.size == 0 or np.array_equal(wanted, found, equal_nan=True):
        return 0.0
    a, b = wanted.astype(np.float64), found.astype(np.float64)
    largest = float(np.abs(a).max()) or 1.0
    return float(np.abs(a - b).max()) / largest


def _latencies(path: Path, output: Path, inputs: Arrays) -> tuple[float, float, float]:
    """Run two networks in turns, one thread each; return milliseconds of both, and the ratio."""
    sessions = [_session(each, _options()) for each in (path, output)]
    seconds: tuple[list[float], list[float]] = ([], [])
    for session in sessions:
        session.run(None, inputs)
    end = time.perf_counter() + LATENCY_SECONDS
    while len(seconds[0]) < LATENCY_RUNS or time.perf_counter() < end:
        first = len(seconds[0]) % 2  # so that neither is always behind the other
        for which in (first, 1 - first):
            started = time.perf_counter()
            sessions[which].run(None, inputs)
            seconds[which].append(time.perf_counter() - started)
    before, after = seconds
    ratio = median(b / a for a, b in zip(before, after, strict=True))
    return 1e3 * median(before), 1e3 * median(after), ratio


def _options() -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    return options


def _session(path: Path, options: Any) -> Any:
    import onnxruntime

    return onnxruntime.InferenceSession(str(path), options, ["CPUExecutionProvider"])
