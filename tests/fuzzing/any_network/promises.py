"""What must hold of every conversion of every network that onnxruntime runs."""

from __future__ import annotations

import re
import traceback
import warnings
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import numpy as np
import onnx
from onnx import ModelProto, numpy_helper

import layoutopt
from layoutopt.base.errors import InputError
from layoutopt.conversion.backends import BACKENDS
from layoutopt.conversion.convert import SOLVERS
from layoutopt.onnx.inference import NEEDING_TYPES
from layoutopt.onnx.protobuf import all_nodes, is_standard
from layoutopt.onnx.runtime import RunError
from layoutopt.onnx.transposes import optimised_transposes, transposes
from layoutopt.onnx.types import take_declared
from tests.fuzzing.any_network.draw import Case
from tests.fuzzing.any_network.scope import Value, execute
from tests.fuzzing.guard import timed

VARIANTS: dict[str, dict[str, Any]] = {
    "default": {},
    "count": {"objective": "count"},
    "bytes": {"objective": "bytes"},
    "bytes,count": {"objective": "bytes,count"},
    "changed,count": {"objective": "changed,count"},
    "free": {"free_io": True},
    "free bytes": {"free_io": True, "objective": "bytes"},
    **{f"backend {name}": {"backend": name} for name in sorted(BACKENDS)},
    "layout Conv": {"layout": "Conv=NHWC,HWIO"},
    "layout default": {"layout": "default=NHWC"},
    "layout pools": {"layout": "MaxPool=NHWC;AveragePool=NHWC;GlobalAveragePool=NHWC"},
    "layout blocks": {"layout": "Conv=NCHW2c,OIHW2i2o"},
    "pad": {"layout": "Conv=NCHW4c,OIHW4i4o", "padding": True},
    "free nhwc": {"layout": "default=NHWC", "free_io": True},
    **{f"solver {name}": {"solver": name} for name in SOLVERS[1:]},
    "in files": {"in_files": True},
}
"""Arguments of ``convert`` by name; or whether it reads and writes files, weights beside them."""

EMPTY_BATCH = "Compute right operand cannot broadcast on dim"
"""What onnxruntime says of a matrix before a batch without elements, though not behind it."""

LOST_CALL = "input '_inlfunc_"
"""What onnxruntime says of calls of functions of several nodes in the body of a SequenceMap."""

TOLERANCES = {"float16": 3e-2, "float32": 2e-4, "float64": 1e-6}


@dataclass(frozen=True)
class Failure:
    """A promise that was broken.

    Parameters
    ----------
    variant
        Which conversion.
    promise
        Which promise.
    kind
        How, in words that do not depend on names and numbers.
    text
        How, in full.
    """

    variant: str
    promise: str
    kind: str
    text: str

    @property
    def signature(self) -> tuple[str, str]:
        """What two failures of one cause have in common."""
        return self.promise, self.kind


@dataclass
class Given:
    """A case that runs, and what is known of it.

    Parameters
    ----------
    case
        The network.
    """

    case: Case
    outputs: dict[str, Value] = field(default_factory=dict)
    fixed: bool = True
    valid: bool = False
    strict: bool = False

    @classmethod
    def of(cls, case: Case) -> Given | None:
        """Return a case with what it gives, None if onnxruntime refuses it."""
        found = cls(case)
        names = [x.name for x in case.model.graph.output]
        if case.runs:
            try:
                first = execute(case.model, case.feeds, names)
                tries = 16 if b"Dropout" in case.model.SerializeToString() else 1  # few elements
                others = [execute(case.model, case.feeds, names, times=2) for _ in range(tries)]
            except Exception:  # whatever it says, the network is none that runs
                return None
            found.outputs = dict(zip(names, first, strict=True))
            found.fixed = not case.random and all(_same(first, other) for other in others)
        found.valid = _checked(case.model) == ""
        types = {node.op_type for node in all_nodes(case.model.graph)}
        safe = found.valid and NEEDING_TYPES.isdisjoint(types)
        found.strict = safe and _inferred(case.model) == ""  # else onnx may crash
        if not case.runs and not found.valid:
            return None
        return found


def failures(given: Given, variant: str) -> list[Failure]:
    """Return the promises that a conversion breaks; after the first grave one no more."""

    def failure(promise: str, text: str, kind: str = "") -> Failure:
        return Failure(variant, promise, kind or _plain(text), text)

    case, options = given.case, VARIANTS[variant]
    try:
        with warnings.catch_warnings(record=True) as caught, timed():
            warnings.simplefilter("always")
            result = _converted(case.model, **options)
            model, freed = result.model, result.conversion.freed
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # whatever it is, it is a failure
        where = _place(error)
        return [failure("raises", f"{type(error).__name__}: {error} ({where})")]
    if caught:
        return [failure("warns", str(caught[0].message))]
    if result.partial:
        return [failure("is converted whole", result.notes[0])]
    if given.valid and (said := _checked(model)):
        return [failure("passes the checker", said)]
    if given.strict and (said := _inferred(model)):
        return [failure("passes shape inference", said)]
    if case.runs and (found := _ran(given, model, freed)):
        return [failure(*found)]
    if lost := _missing(model) - _missing(case.model):  # onnxruntime's optimiser leaves some out
        return [failure("annotates what is there", ", ".join(lost), "names")]
    plain = not {"backend", "layout"} & set(options)
    before, after = transposes(case.model), transposes(model)
    if plain and "bytes" not in options.get("objective", "")[:5] and after > before:
        return [failure("has no more transposes", f"{after} of {before}", "more")]
    if variant == "default":
        if (again := _again(model, after)) is not None:
            return [failure("stays when converted again", *again)]
        with patch("layoutopt.onnx.simplify.separate"):
            alone = _again(case.model, after, more=True)
        if alone is not None:
            return [failure("leaves no more than without copies", *alone)]
        if case.runs and (fewer := _peer(given, after)) < after:
            return [failure("leaves no more than onnxruntime", f"{after}, peer {fewer}", "peer")]
    return []


def _converted(model: ModelProto, in_files: bool = False, **options: Any) -> Any:
    if not in_files:
        return layoutopt.convert(model, **options)
    with TemporaryDirectory() as folder:
        before, after = Path(folder) / "before.onnx", Path(folder) / "after.onnx"
        copy = ModelProto()
        copy.CopyFrom(model)
        more = {"save_as_external_data": True, "size_threshold": 0, "convert_attribute": True}
        onnx.save(copy, before, **more)
        result = layoutopt.convert(before, **options)
        result.save(after)
        return replace(result, model=onnx.load(after))


def _missing(model: ModelProto) -> set[str]:
    """Return the names that quantisation annotations speak of, and that no tensor has."""
    every = model.graph.quantization_annotation
    named = {entry.value for one in every for entry in one.quant_parameter_tensor_names}
    named |= {one.tensor_name for one in every}
    there = {x.name for x in (*model.graph.initializer, *model.graph.input)}
    there |= {x.values.name for x in model.graph.sparse_initializer}
    return named - there - {name for node in model.graph.node for name in node.output}


def _ran(given: Given, model: ModelProto, freed: Any) -> tuple[str, ...] | None:
    """Return how the outputs of the new network are not those of the given one."""
    feeds = {n: _turned(v, freed.get(n)) for n, v in given.case.feeds.items()}
    names = [x.name for x in given.case.model.graph.output]
    try:
        found = execute(model, feeds, names)
    except Exception as error:  # of whatever class
        known = any(text in str(error) for text in (EMPTY_BATCH, LOST_CALL))
        return None if known else ("runs", str(error))
    for name, new in zip(names, found, strict=True):
        old = _turned(given.outputs[name], freed.get(name))
        if not given.fixed:  # random numbers may also tell sizes, but no ranks
            before, after = _rank(old), _rank(new)
            if before != after:
                return "gives the same", f"{name}: rank {before}, not {after}", "rank"
            continue
        if apart := _apart(old, new):
            if _unstable(given, name):
                return None
            return "gives the same", f"{name}: {apart}", apart.split(":")[0]
    return None


def _turned(value: Value, order: Any) -> Value:
    return value if order is None else np.ascontiguousarray(np.transpose(value, order))


def _rank(value: Value) -> int | None:
    return None if isinstance(value, list) or value is None else np.ndim(value)


def _same(one: Value, other: Value) -> bool:
    if isinstance(one, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return one is None or np.array_equal(one, other, equal_nan=np.asarray(one).dtype.kind == "f")


def _apart(old: Value, new: Value) -> str:
    """Return how much two values differ, empty if it is no more than rounding explains."""
    if isinstance(old, list):
        if len(old) != len(new):
            return f"length: {len(old)} {len(new)}"
        return next(filter(None, map(_apart, old, new)), "")
    old, new = np.asarray(old), np.asarray(new)
    if old.shape != new.shape or old.dtype != new.dtype:
        return f"shape: {old.dtype}{list(old.shape)}, not {new.dtype}{list(new.shape)}"
    if old.dtype.kind not in "fiu" or not old.size:
        return "" if np.array_equal(old, new) else "values: other ones"
    a, b = old.astype(np.float64), new.astype(np.float64)
    with np.errstate(all="ignore"):
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        if same.all():
            return ""
        scale = np.abs(a[np.isfinite(a)]).max(initial=0.0)
        worst = np.abs(a - b)[~same].max()
    bound = TOLERANCES.get(str(old.dtype), 0) * scale
    if old.dtype in (np.uint8, np.int8):
        bound = 1
    return "" if worst <= bound else f"values: {worst:.3g} of {scale:.3g}"


def _unstable(given: Given, name: str) -> bool:
    """Return whether a network's output changes as much when its numbers are nearly the same."""
    model = ModelProto()
    for seed in range(4):
        draw = np.random.default_rng(seed)
        model.CopyFrom(given.case.model)
        for tensor in model.graph.initializer:
            array = numpy_helper.to_array(tensor)
            if array.dtype.kind == "f":
                tensor.CopyFrom(numpy_helper.from_array(_near(array, draw), tensor.name))
        feeds = {n: _near(v, draw) for n, v in given.case.feeds.items()}
        try:
            found = execute(model, feeds, [name])
        except Exception:  # of whatever class
            return True
        if _apart(given.outputs[name], found[0]):
            return True
    return False


def _near(value: Value, draw: np.random.Generator) -> Value:
    if isinstance(value, list) or value.dtype.kind != "f":
        return value
    step = float(np.finfo(value.dtype).eps) * 4
    noise = draw.choice([-step, step], value.shape)
    return (value * (1 + noise) + noise * 1e-3).astype(value.dtype)


def _again(model: ModelProto, count: int, *, more: bool = False) -> tuple[str, str] | None:
    """Return how another conversion fails or leaves another count, which may be ``more``."""
    try:
        with timed():
            found = transposes(layoutopt.convert(model).model)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # whatever it is, it is a failure
        text = f"{type(error).__name__}: {error} ({_place(error)})"
        return text, _plain(text)
    fits = found == count or (more and found > count)
    return None if fits else (f"{count}, then {found}", "count")


def _peer(given: Given, most: int) -> int:
    """Return how many transposes onnxruntime leaves, ``most`` where it does not compute the same.

    It is told no sizes that no node tells; and it forgets that pads may be for some axes only,
    which of equal elements comes first for a Hardmax of several axes, that a Dropout may train, and
    what annotations name.
    """
    nodes = list(all_nodes(given.case.model.graph))
    drops = any(n.op_type == "Dropout" and any(n.input[2:]) for n in nodes)
    if drops or given.case.model.graph.quantization_annotation:
        return most
    [version] = [x.version for x in given.case.model.opset_import if is_standard(x.domain)]
    if version < 13 and any(n.op_type == "Hardmax" for n in nodes):
        return most
    told = ModelProto()
    told.CopyFrom(given.case.model)
    take_declared(told.graph)
    level = {"graph_optimization_level": "ORT_ENABLE_BASIC"}
    try:
        found = optimised_transposes(told)
        if found >= most:
            return found
        values = execute(told, given.case.feeds, list(given.outputs), level)
    except (InputError, RunError):  # it refuses what it runs unoptimised
        return most
    apart = map(_apart, given.outputs.values(), values)
    return most if given.fixed and any(apart) else found


def _checked(model: ModelProto) -> str:
    full = NEEDING_TYPES.isdisjoint(node.op_type for node in all_nodes(model.graph))
    try:
        onnx.checker.check_model(model, full_check=full)
    except Exception as error:  # of several classes
        return str(error)
    return ""


def _inferred(model: ModelProto) -> str:
    try:
        onnx.shape_inference.infer_shapes(model, True, True, True)
    except Exception as error:  # of several classes
        return str(error)
    return ""


def _place(error: BaseException) -> str:
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "/layoutopt/" in f.filename]
    return " ".join(f"{f.filename.rpartition('/layoutopt/')[2]}:{f.name}" for f in frames[-1:])


def _plain(text: str) -> str:
    """Return a text without names and numbers."""
    text = re.sub(r"^(\w+): (g|main graph|layoutopt.convert): ", r"\1: ", text.split("\n")[0])
    text = re.sub(r"'[^']*'|\"[^\"]*\"|\([A-Za-z]+_?\d*\)|Name:\S*", "_", text)
    text = re.sub(r"\b[A-Z]\w* _: (its result|nothing)", r"op: \1", text)
    text = re.sub(r"node \(.*?\)|node with name _?\S*", "node", text)
    return re.sub(r"[\[(][-\d, ]*[\])]|-?\d+|\{[^}]*\}", "#", text)[:300]
