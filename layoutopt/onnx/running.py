"""Networks run: whether two of them give the same, and what other optimisers leave of one."""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from math import prod
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from layoutopt.base.errors import InputError
from layoutopt.conversion.rules.registry import type_facts
from layoutopt.onnx.protobuf import (
    all_nodes,
    bodies,
    captured,
    copied,
    first_line,
    graphs,
    is_standard,
    onnx,
    write_proto,
)
from layoutopt.onnx.runtime import CrashError, RunError, Session
from layoutopt.onnx.types import shape_of
from layoutopt.onnx.validate import inlined
from layoutopt.onnx.weights import bare_model, known_values

Arrays: TypeAlias = Mapping[str, NDArray[Any]]


class InputDraw(NamedTuple):
    """Random inputs."""

    sizes: Sequence[int]  # of open dimensions, one name after the other
    first: int | None = None  # in place of that, the size of open first dimensions of two and more
    integers: tuple[int, int] = (0, 2)  # the least integer, and the first that is too large


SMALL_SIZES = (2, 3, 4, 5, 6, 7)

DRAWS = (
    InputDraw(SMALL_SIZES),
    InputDraw(SMALL_SIZES, integers=(0, 1)),
    InputDraw((64,), 1),
    InputDraw((64,), 1, (0, 1)),
    InputDraw((16,), 1, (0, 1)),
    InputDraw((1,), 1, (0, 1)),
    InputDraw((512,), 1),
    InputDraw((4096,), 1),
    InputDraw((64,), 1, (1, 2)),
)
"""Ways to draw inputs, tried in turn until a network runs: not each fits every index and window."""

MOST_DRAWN = 2**24
"""Elements of inputs up to which a further way to draw them is tried."""

PATIENCE = 30.0
"""Seconds after which no further way to draw inputs is tried, and a Loop may run on them."""

LARGE = 2**20
"""Bytes of an initialiser from which on it is kept in a file of its own."""


class NotRun(InputError):
    """Raised where onnxruntime cannot run a network."""


class Outputs:
    """Outputs of an unoptimised network for some inputs, random ones by default.

    ``random`` names those that depend on random numbers, and are not compared.  Raises
    ``InputError`` if onnxruntime is missing, or cannot run it.
    """

    def __init__(self, model: onnx.ModelProto, seed: int = 0, inputs: Arrays | None = None) -> None:
        self.random = random_outputs(model)
        self.inputs: Arrays
        if inputs is None:
            self.inputs, self.arrays = run_at_random(model, seed)
        else:
            self.inputs, self.arrays = inputs, run(model, inputs)

    def difference(
        self, other: onnx.ModelProto, freed: Mapping[str, Sequence[int]] | None = None
    ) -> float:
        """Return how much the outputs of another network differ, which runs unoptimised, too.

        That is the largest, over all outputs, of ``max |a - b| / max |a|``; infinity if shapes
        differ.  ``freed`` has the inputs and outputs that have their axes in another order in the
        other network: how each is permuted, as for ``numpy.transpose``.
        """
        found = run(other, _freed(self.inputs, freed or {}))
        wanted = _freed(self.arrays, freed or {})
        names = [name for name in wanted if name not in self.random]
        return max((_difference(wanted[name], found[name]) for name in names), default=0.0)


def random_outputs(model: onnx.ModelProto) -> list[str]:
    """Return the names of outputs that depend on random numbers."""
    drawn: set[str] = set()
    graph = model.graph
    with suppress(InputError):  # functions that ONNX does not inline are not looked into
        graph = inlined(bare_model(model)).graph
    values = known_values(graph)
    for node in graph.node:
        reads = {*node.input, *captured(node)}
        inside = (other for body in bodies(node) for g in graphs(body) for other in g.node)
        if not drawn.isdisjoint(reads) or any(_draws(x, values) for x in (node, *inside)):
            drawn.update(node.output)
    return [value.name for value in model.graph.output if value.name in drawn]


def _draws(node: onnx.NodeProto, values: Mapping[str, NDArray[Any]]) -> bool:
    """Return whether a node draws numbers; Dropout may, unless it is known not to train."""
    given = node.op_type == "Dropout" and len(node.input) > 2 and node.input[2] != ""
    training = given and bool(values.get(node.input[2], np.array(True)).any())
    return is_standard(node.domain) and (training or type_facts(node.op_type).random)


def tolerance(model: onnx.ModelProto) -> float:
    """Return which relative difference of outputs rounding can explain.

    Sums in another order differ by some thousand roundings at most; where numbers of 16 bits or
    fewer are added up or rounded to steps, by single ones of these.
    """
    wide = {
        onnx.TensorProto.FLOAT,
        onnx.TensorProto.DOUBLE,
        onnx.TensorProto.INT64,
        onnx.TensorProto.INT32,
    }
    kinds = {x.data_type for x in model.graph.initializer}
    kinds |= {value.type.tensor_type.elem_type for value in model.graph.input}
    return 1e-3 if kinds <= wide | {onnx.TensorProto.BOOL} else 5e-2


def _freed(arrays: Arrays, freed: Mapping[str, Sequence[int]]) -> dict[str, NDArray[Any]]:
    return {n: a.transpose(freed[n]) if n in freed else a for n, a in arrays.items()}


def run(model: onnx.ModelProto, inputs: Arrays) -> dict[str, NDArray[Any]]:
    """Return the outputs of a network, unoptimised.

    Raises ``InputError`` if onnxruntime is missing, or cannot run it: then it is :class:`NotRun`.
    """
    with _session(model) as session:
        return _run(session, inputs)


def run_at_random(
    model: onnx.ModelProto, seed: int = 0, seconds: float | None = None, *, types: bool = False
) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Return random inputs on which a network runs, unoptimised, and its outputs.

    Inputs are drawn in the first of :data:`DRAWS` with which it runs.  With ``types``, an element
    type and a shape stand for each output, None for what is no tensor.  Raises ``InputError`` if
    onnxruntime is missing, or can run it with none: then it is :class:`NotRun`, and says why it
    cannot with the first.
    """
    every = (node for graph in (model.graph, *model.functions) for node in all_nodes(graph))
    patience = PATIENCE if any(node.op_type == "Loop" for node in every) else None
    end = time.monotonic() + (PATIENCE if seconds is None else seconds)
    first: NotRun | None = None
    loading = PATIENCE if seconds is None and model.functions else seconds  # which may not end
    with _session(model, loading) as session:
        for inputs in _drawn(model, seed):
            left = patience if seconds is None else max(0.0, end - time.monotonic())
            try:
                return inputs, _run(session, inputs, left, types=types)
            except NotRun as error:
                first = first or error
            if time.monotonic() > end:
                break
    assert first is not None
    raise first


def _drawn(model: onnx.ModelProto, seed: int) -> Iterator[dict[str, NDArray[Any]]]:
    """Yield inputs drawn in every way, but for those that are too large, or as they were."""
    seen: list[Any] = []
    for draw in DRAWS:
        shape = _Drawing(draw).shape
        if seen and sum(prod(shape(x.name, x.type)) for x in _inputs(model)) > MOST_DRAWN:
            continue
        inputs = random_inputs(model, seed, draw)
        arrays = [x for value in inputs.values() for x in _arrays(value)]
        key = [(x.shape, x.tobytes() if x.dtype.kind in "iu" else b"") for x in arrays]
        if key not in seen:
            seen.append(key)
            yield inputs


def _arrays(value: Any) -> Sequence[NDArray[Any]]:
    return value if isinstance(value, list) else [value]


def _inputs(model: onnx.ModelProto) -> list[onnx.ValueInfoProto]:
    own = {x.name for x in model.graph.initializer}
    return [value for value in model.graph.input if value.name not in own]


@contextmanager
def _session(model: onnx.ModelProto, seconds: float | None = None) -> Iterator[Session]:
    """Yield a network as onnxruntime has it in memory, unoptimised."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        session = None
        while session is None:
            large = large_tensors(model)
            if large:
                write_proto(model, path, large)
            try:
                session = Session(str(path) if large else model.SerializeToString(), None, seconds)
            except RunError as error:
                older = _older(model, str(error))
                if older is None:
                    raise not_run(error) from None
                model = older
        with session:
            yield session


def _run(
    session: Session, inputs: Arrays, seconds: float | None = None, *, types: bool = False
) -> dict[str, Any]:
    """Return the outputs of a network in memory, by name, or types of these."""
    try:
        found = session.run(inputs, seconds=seconds, types=types)
    except RunError as error:
        raise not_run(error) from None
    return dict(zip(session.outputs, found, strict=True))


def not_run(error: RunError, what: str = "run it") -> NotRun:
    """Return what a user is told of a network that onnxruntime cannot run, or load."""
    if isinstance(error, CrashError):
        return NotRun(f"onnxruntime cannot {what}: its process {error}")
    return NotRun(f"onnxruntime cannot {what} ({first_line(error)})")


def _older(model: onnx.ModelProto, refusal: str) -> onnx.ModelProto | None:
    """Return a network as one of the latest versions that onnxruntime says it knows.

    Most ops are the same in the next version; of the others onnxruntime says what it cannot run.
    """
    format = re.search(r"max supported IR version: (\d+)", refusal)
    standard = re.search(r"support for domain ai.onnx is till opset (\d+)", refusal)
    if format is None and standard is None:
        return None
    older = copied(model)
    if format is not None:
        older.ir_version = min(int(format[1]), model.ir_version)
    for entry in older.opset_import:
        if standard is not None and is_standard(entry.domain):
            entry.version = min(int(standard[1]), entry.version)
    return None if older == model else older


def evaluate(
    model: onnx.ModelProto, nodes: Sequence[onnx.NodeProto], inputs: Arrays, results: Sequence[str]
) -> dict[str, NDArray[Any]]:
    """Return what nodes of a network make of constants, unoptimised, by the names of results.

    Each node stands below those that it reads from; ``inputs`` are all that they read besides.
    Raises ``InputError`` if onnxruntime is missing, or cannot run them.
    """
    try:
        kinds = {name: onnx.helper.np_dtype_to_tensor_dtype(x.dtype) for name, x in inputs.items()}
        graph = onnx.helper.make_graph(
            nodes,
            "constants",
            [onnx.helper.make_tensor_value_info(n, kinds[n], x.shape) for n, x in inputs.items()],
            [onnx.ValueInfoProto(name=name) for name in results],
        )
        alone = onnx.helper.make_model(graph, opset_imports=model.opset_import)
        alone.ir_version = model.ir_version
        data = alone.SerializeToString()
    except (KeyError, TypeError, ValueError) as error:  # no type of ONNX, or more than it holds
        raise NotRun(f"onnxruntime cannot be given it ({first_line(error)})") from None
    try:
        with Session(data) as session:
            found = session.run(inputs, results)
    except RunError as error:
        raise not_run(error) from None
    if not all(isinstance(x, np.ndarray) for x in found):
        raise InputError("not all that it gives is tensors")
    return dict(zip(results, found, strict=True))


def random_inputs(
    model: onnx.ModelProto, seed: int = 0, draw: InputDraw = DRAWS[0]
) -> dict[str, NDArray[Any]]:
    """Return random inputs of a network; its initialisers are left as they are.

    Numbers are normal.  Raises :class:`NotRun` if an input is no tensor of numbers.
    """
    drawing = _Drawing(draw, seed)
    return {value.name: drawing.value(value) for value in _inputs(model)}


def large_tensors(model: onnx.ModelProto) -> set[str]:
    """Return the names of initialisers that a file keeps beside the network."""
    return {x.name for x in model.graph.initializer if len(x.raw_data) >= LARGE}


class _Drawing:
    """Random inputs as they are drawn; sizes of open dimensions are noted by name."""

    def __init__(self, draw: InputDraw, seed: int = 0) -> None:
        self.draw, self.generator = draw, np.random.default_rng(seed % 2**64)
        self.sizes: dict[str, int] = {}

    def value(self, value: onnx.ValueInfoProto) -> Any:
        """Return a random value of the type of an input: a tensor, or a sequence of two."""
        kind = value.type
        while kind.HasField("optional_type"):
            kind = kind.optional_type.elem_type
        if kind.HasField("sequence_type") and kind.sequence_type.elem_type.HasField("tensor_type"):
            return [self.tensor(value.name, kind.sequence_type.elem_type) for _ in range(2)]
        if not kind.HasField("tensor_type"):
            raise NotRun(f"input {value.name!r} is no tensor, and cannot be drawn at random")
        return self.tensor(value.name, kind)

    def shape(self, name: str, kind: onnx.TypeProto) -> list[int]:
        """Return the shape of a tensor, with sizes for its open dimensions."""
        shape, known, draw = [], shape_of(kind) or (), self.draw
        for axis, size in enumerate(known):
            if not isinstance(size, int):
                first = draw.first if axis == 0 and len(known) > 1 else None
                new = draw.sizes[len(self.sizes) % len(draw.sizes)] if first is None else first
                size = self.sizes.setdefault(size or f"{name}.{axis}", new)
            shape.append(size)
        return shape

    def tensor(self, name: str, kind: onnx.TypeProto) -> NDArray[Any]:
        """Return a random tensor."""
        shape = self.shape(name, kind)
        try:
            dtype = onnx.helper.tensor_dtype_to_np_dtype(kind.tensor_type.elem_type)
        except KeyError:
            raise NotRun(f"input {name!r} has no type of elements that can be drawn") from None
        if dtype.kind in "biu":
            bounds = (0, 2) if dtype.kind == "b" else self.draw.integers
            return self.generator.integers(*bounds, shape).astype(dtype)
        if dtype.kind == "O":
            return np.array(self.generator.choice(["", "a", "b c"], shape), object)
        return self.generator.standard_normal(shape).astype(dtype)


def _difference(before: Any, after: Any) -> float:
    if isinstance(before, list) and isinstance(after, list):
        if len(before) != len(after):
            return float("inf")
        return max(map(_difference, before, after), default=0.0)
    a, b = np.asarray(before), np.asarray(after)
    if a.shape != b.shape or a.dtype != b.dtype:
        return float("inf")
    if a.dtype.kind not in "biufcV" or a.size == 0:
        return 0.0 if np.array_equal(a, b) else float("inf")
    a, b = a.astype(np.float64), b.astype(np.float64)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    if same.all():
        return 0.0
    apart = np.abs(a - b)[~same]
    scale = np.abs(a[np.isfinite(a)]).max(initial=0.0)
    largest = apart.max()
    return float(largest / scale) if np.isfinite(largest) and scale > 0 else float("inf")
