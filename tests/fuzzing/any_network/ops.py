"""Nodes of any op of the standard: types by its schemas, attributes by name, operands to fit."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from onnx import NodeProto, TensorProto, defs, helper

from tests.fuzzing.any_network.scope import Scope

KINDS = {
    **{"float": "float32", "double": "float64", "float16": "float16", "bool": "bool"},
    **{f"{u}int{n}": f"{u}int{n}" for u in ("", "u") for n in (8, 16, 32, 64)},
    "string": "str",
}
"""NumPy's names of ONNX's element types, those that arrays can have."""

LEFT_OUT = {
    *("If", "Loop", "Scan", "SequenceMap", "ImageDecoder", "Constant", "MelWeightMatrix"),
    *("RandomNormal", "RandomUniform", "Optional", "TfIdfVectorizer", "Multinomial", "DFT"),
}
"""Ops that pieces of their own add, and some that need more, or end onnxruntime's process."""

RANDOM = {"RandomNormalLike", "RandomUniformLike", "Bernoulli"}


@cache
def schemas(opset: int) -> dict[str, Any]:
    """Return the schema of each op of the standard that a version has."""
    found: dict[str, Any] = {}
    for one in defs.get_all_schemas_with_history():
        if one.domain == "" and one.name not in LEFT_OUT and one.since_version <= opset:
            before = found.get(one.name)
            if before is None or before.since_version < one.since_version:
                found[one.name] = one
    return {name: found[name] for name in sorted(found) if not found[name].deprecated}


def any_op(scope: Scope) -> bool:
    """Add a node of any op; return whether one was found that runs."""
    known = schemas(scope.opset)
    name = scope.draw.choice([*known, *FAVOURITES])
    if name not in known or (name in RANDOM and scope.draw.random() < 0.8):
        return False
    node = _node(scope, known[name])
    added = node is not None and scope.add_nodes(node)
    if added and name in RANDOM:
        scope.root().random = True
    return added


def _node(scope: Scope, schema: Any) -> NodeProto | None:
    draw = scope.draw
    dtypes = {c.type_param_str: _dtypes(c.allowed_type_strs) for c in schema.type_constraints}
    inputs: list[str] = []
    first: Any = None
    bound: dict[str, str] = {}
    for place, formal in enumerate(schema.inputs):
        optional = formal.option == defs.OpSchema.FormalParameterOption.Optional
        if optional and draw.random() < 0.35:
            inputs.append("")
            continue
        variadic = formal.option == defs.OpSchema.FormalParameterOption.Variadic
        for _ in range(draw.choice((1, 2, 2, 3)) if variadic else 1):
            given = OPERANDS.get((schema.name, formal.name)) or PARAMETERS.get(formal.name)
            if place and given is not None:
                inputs.append(scope.constant(given(scope, first)))
                continue
            allowed = dtypes.get(formal.type_str) or _dtypes([formal.type_str])
            if formal.type_str in bound:
                allowed = [bound[formal.type_str]]
            low, high = RANKS.get(schema.name, (0, 9)) if not place else (0, 9)
            name = _operand(scope, allowed, first, low, high, schema.name)
            if name is None:
                return None
            value = scope[name]
            first = value if first is None else first
            if formal.type_str in dtypes:
                bound[formal.type_str] = _word(value)
            inputs.append(name)
    while inputs and not inputs[-1] and draw.random() < 0.7:
        inputs.pop()
    attributes: dict[str, Any] = {}
    for name, attribute in sorted(schema.attributes.items()):
        give = SPECIAL.get((schema.name, name)) or ATTRIBUTES.get(name)
        if give is None and attribute.required:
            return None
        if give is not None and (attribute.required or draw.random() < 0.6):
            found = give(scope, first if first is not None else np.zeros(()))
            if isinstance(found, np.ndarray):
                found = found.tolist()
            if found is not None and found != []:
                attributes[name] = found
    if attributes.get("auto_pad", "NOTSET") != "NOTSET":
        attributes.pop("pads", None)  # not both
        attributes.pop("dilations", None)  # onnxruntime takes these otherwise than ONNX
    # onnxruntime does not survive further results of these
    single = schema.name == "BatchNormalization" and schema.since_version < 14
    outputs = []
    for n, formal in enumerate(schema.outputs):
        variadic = formal.option == defs.OpSchema.FormalParameterOption.Variadic
        optional = formal.option == defs.OpSchema.FormalParameterOption.Optional
        if variadic:
            count = attributes.get("num_outputs") or len(attributes.get("split", ())) or 2
            outputs += [scope.names.new("t") for _ in range(count)]
        elif not optional or (draw.random() < 0.4 and not single):
            outputs.append(scope.names.new("t"))
        elif n < len(schema.outputs) - 1:
            outputs.append("")
    while outputs and not outputs[-1]:
        outputs.pop()
    node = helper.make_node(schema.name, inputs, outputs, **attributes)
    node.name = scope.names.node(schema.name)
    return node


@cache
def _words(allowed: tuple[str, ...]) -> tuple[str, ...]:
    inner = [name[len("tensor(") : -1] for name in allowed if name.startswith("tensor(")]
    return tuple(KINDS[name] for name in inner if name in KINDS)


def _dtypes(allowed: Any) -> list[str]:
    return list(_words(tuple(sorted(allowed))))


def _word(value: Any) -> str:
    return "str" if value.dtype.kind in "OU" else str(value.dtype)


def _operand(
    scope: Scope, allowed: list[str], first: Any, low: int, high: int, op: str
) -> str | None:
    """Return an existing value that may fit, or a new constant."""
    draw = scope.draw
    if not allowed:
        return None
    fits = [
        name
        for name, value in scope.arrays(None, low, high).items()
        if _word(value) in allowed
        and (first is None or _meets(op, value.shape, first.shape))
        and (value.size or not op.startswith(("Reduce", "Arg")))  # onnxruntime errs in shapes
    ]
    same = [n for n in fits if first is not None and scope[n].shape == first.shape]
    if fits and (first is None or draw.random() < 0.65):
        best = same if same and draw.random() < 0.5 else fits
        return best[max(draw.randrange(len(best)), draw.randrange(len(best)))]
    if first is None and draw.random() < 0.8:
        return None
    word = "float32" if "float32" in allowed else draw.choice(allowed)
    if first is None:
        shape = [draw.choice((1, 2, 3)) for _ in range(draw.randint(low, min(high, 4)))]
    else:
        shape = [1 if draw.random() < 0.2 else size for size in first.shape]
        shape = shape[draw.choice((0, 0, 0, draw.randint(0, len(shape)))) :]
    return scope.drawn(shape, word)


def _meets(op: str, one: tuple[int, ...], first: tuple[int, ...]) -> bool:
    """Return whether an operand and the first one are broadcast; for PRelu, to the first one."""
    fits = all(a == b or 1 in (a, b) for a, b in zip(one[::-1], first[::-1], strict=False))
    return fits and (op != "PRelu" or np.broadcast_shapes(one, first) == first)


def _axis(scope: Scope, first: Any) -> int:
    rank = max(first.ndim, 1)
    return scope.draw.randrange(-rank, rank)


def _axes(scope: Scope, first: Any) -> list[int]:
    draw, rank = scope.draw, first.ndim
    found = draw.sample(range(rank), draw.randint(min(1, rank), rank)) if rank else []
    return [axis - rank if draw.random() < 0.3 else axis for axis in found]


def _ints(values: Any) -> Any:
    return np.array(values, np.int64)


def _new_shape(scope: Scope, first: Any) -> Any:
    """Return a shape for the same elements: axes split, merged, or any factors."""
    draw, shape = scope.draw, list(first.shape)
    for _ in range(draw.choice((1, 1, 2))):
        kind = draw.randrange(4)
        if kind == 0 and len(shape) > 1:
            n = draw.randrange(len(shape) - 1)
            shape[n : n + 2] = [shape[n] * shape[n + 1]]
        elif kind == 1 and shape:
            n = draw.randrange(len(shape))
            factors = [k for k in range(1, shape[n] + 1) if shape[n] % k == 0] or [1]
            k = draw.choice(factors)
            shape[n : n + 1] = [k, shape[n] // k] if shape[n] else [1, 0]
        elif kind == 2:
            shape.insert(draw.randint(0, len(shape)), 1)
        elif 1 in shape:
            shape.remove(1)
    if shape and draw.random() < 0.4 and 0 not in shape:
        shape[draw.randrange(len(shape))] = -1
    for n, size in enumerate(shape[: first.ndim]):
        if size == first.shape[n] and draw.random() < 0.2:
            shape[n] = 0
    return _ints(shape)


def _wider(scope: Scope, first: Any) -> Any:
    shape = [2 if s == 1 and scope.draw.random() < 0.5 else s for s in first.shape]
    more = [scope.draw.choice((1, 2))] * scope.draw.choice((0, 0, 1))
    return _ints([*more, *(1 if scope.draw.random() < 0.2 else s for s in shape)])


def _window(scope: Scope, first: Any) -> list[int]:
    return [scope.draw.randint(1, min(3, max(s, 1))) for s in first.shape[2:]]


def _padding(scope: Scope, first: Any) -> list[int]:
    return [scope.draw.choice((0, 0, 1)) for _ in first.shape[2:]] * 2


def _pads(scope: Scope, first: Any) -> list[int]:
    return [scope.draw.choice((0, 0, 1, 2, -1)) for _ in range(2 * first.ndim)]


def _indices(scope: Scope, first: Any) -> Any:
    shape = [scope.draw.choice((1, 2)) for _ in range(scope.draw.randrange(3))]
    size = max(min(first.shape, default=1), 1)
    return scope.indices(-size, size, shape)


def _like_indices(scope: Scope, first: Any) -> Any:
    return scope.indices(0, max(min(first.shape, default=1), 1), first.shape)


def _sections(scope: Scope, first: Any) -> list[int] | None:
    """Return sizes that add up to that of one of the axes."""
    sizes = [size for size in first.shape if size > 1]
    if not sizes:
        return None
    size = scope.draw.choice(sizes)
    cut = scope.draw.randint(0, size)
    return [cut, size - cut]


def _one(*values: Any) -> Callable[[Scope, Any], Any]:
    return lambda scope, first: scope.draw.choice(values)


def _given(kind: str) -> Callable[[Scope, Any], Any]:
    """Return a vector as long as the second axis, which is often the channels."""
    return lambda scope, first: np.abs(
        scope.number([first.shape[1] if first.ndim > 1 else 1], kind)
    )


PARAMETERS: dict[str, Callable[[Scope, Any], Any]] = {
    "axes": lambda s, f: _ints(_axes(s, f)),
    "axis": lambda s, f: _ints(_axis(s, f)),
    "shape": _wider,
    "k": lambda s, f: _ints([s.draw.choice((1, 1, 2))]),
    "repeats": lambda s, f: _ints([s.draw.choice((1, 1, 2)) for _ in f.shape]),
    "pads": lambda s, f: _ints(_pads(s, f)),
    "split": lambda s, f: _ints(_sections(s, f) or [0]),
    "depth": lambda s, f: _ints(s.draw.choice((2, 3))),
    "condition": lambda s, f: s.number([s.draw.randint(0, 4)], "bool"),
}
"""Operands that are small numbers, by their names in the standard."""

OPERANDS: dict[tuple[str, str], Callable[[Scope, Any], Any]] = {
    ("Reshape", "shape"): _new_shape,
    ("Where", "X"): lambda s, f: s.number(f.shape, "float32"),
    ("Gather", "indices"): _indices,
    ("GatherElements", "indices"): _like_indices,
    ("GatherND", "indices"): lambda s, f: _ints([[0] * s.draw.randint(1, max(f.ndim, 1))] * 2),
    ("ScatterElements", "indices"): _like_indices,
    ("Scatter", "indices"): _like_indices,
    ("ScatterND", "indices"): lambda s, f: _ints([[0] * max(f.ndim, 1)]),
    ("ScatterND", "updates"): lambda s, f: s.number([1], f.dtype),
    ("Unsqueeze", "axes"): lambda s, f: _ints(s.draw.sample(range(f.ndim + 1), 1)),
    ("Squeeze", "axes"): lambda s, f: _ints([n for n, size in enumerate(f.shape) if size == 1]),
    ("OneHot", "values"): lambda s, f: np.array([0, 1], np.float32),
    ("Pad", "constant_value"): lambda s, f: s.number([], f.dtype),
    ("Clip", "min"): lambda s, f: np.array(0).astype(f.dtype),
    ("Clip", "max"): lambda s, f: np.array(2).astype(f.dtype),
    ("Dropout", "ratio"): lambda s, f: np.array(s.draw.choice((0, 0, 0.5)), np.float32),
    ("Dropout", "training_mode"): lambda s, f: np.array(s.draw.random() < 0.6),
    ("CenterCropPad", "shape"): lambda s, f: _ints([s.draw.randint(1, 4) for _ in f.shape]),
    ("ReverseSequence", "sequence_lens"): lambda s, f: _ints(
        [s.draw.randint(1, max(f.shape[0], 1)) for _ in range(f.shape[1])]
    ),
    ("QuantizeLinear", "y_scale"): lambda s, f: np.array(0.25, f.dtype),
    ("QuantizeLinear", "y_zero_point"): lambda s, f: np.array(
        1, s.draw.choice((np.uint8, np.int8))
    ),
    ("DequantizeLinear", "x_scale"): lambda s, f: np.array(0.5, np.float32),
    ("DequantizeLinear", "x_zero_point"): lambda s, f: np.array(1, f.dtype),
    ("Upsample", "scales"): lambda s, f: np.array([1, 1, 2, 2, 1][: f.ndim], np.float32),
    **{
        (op, name): _given("float32")
        for op in ("BatchNormalization", "InstanceNormalization")
        for name in ("scale", "B", "bias", "mean", "var", "input_mean", "input_var")
    },
    **{(op, name): lambda s, f: s.number(f.shape[-1:], "float32")
       for op in ("LayerNormalization", "RMSNormalization") for name in ("Scale", "B", "scale")},
    **{(op, name): lambda s, f: s.number([2 if s.draw.random() < 0.3 else f.shape[1]], "float32")
       for op in ("GroupNormalization",) for name in ("scale", "bias")},
}  # fmt: skip
"""Operands of single ops."""

FLAGS = (
    *("keepdims", "training_mode", "ceil_mode", "count_include_pad", "storage_order"),
    *("largest", "sorted", "select_last_index", "exclusive", "reverse", "upper"),
    *("batch_dims", "noop_with_empty_axes", "allowzero", "detect_positive", "transA"),
    *("transB", "batch_axis", "time_axis", "across_channels", "normalize_variance"),
)
"""Attributes that are 0 or 1."""

ATTRIBUTES: dict[str, Callable[[Scope, Any], Any]] = {
    **dict.fromkeys(FLAGS, _one(0, 1)),
    "axis": _axis,
    "axes": _axes,
    "perm": lambda s, f: s.draw.sample(range(f.ndim), f.ndim),
    "to": _one(
        *(TensorProto.FLOAT, TensorProto.INT32, TensorProto.INT64, TensorProto.BOOL),
        *(TensorProto.FLOAT16, TensorProto.UINT8, TensorProto.INT8, TensorProto.DOUBLE),
    ),
    **{name: _one(0.5, 1.0, 0.25) for name in ("alpha", "beta", "gamma", "lambd", "bias")},
    "epsilon": _one(0.01, 1e-5),
    "momentum": _one(0.5),
    "seed": _one(3.0),
    "kernel_shape": _window,
    "strides": lambda s, f: [s.draw.choice((1, 1, 2)) for _ in f.shape[2:]],
    "dilations": lambda s, f: [s.draw.choice((1, 1, 2)) for _ in f.shape[2:]],
    "auto_pad": _one("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"),
    "p": _one(1, 2),
    "size": _one(1, 3),
    "blocksize": _one(1, 2),
    "start": _one(0, 1, -1),
    "end": _one(1, 2, -1),
    "num_outputs": _one(2, 3),
    "split": _sections,
    "fmod": _one(1),
    "approximate": _one("none", "tanh"),
    "num_groups": _one(1, 2),
    "min": _one(0.0),
    "max": _one(2.0),
    "dtype": _one(TensorProto.FLOAT),
    "pads": _padding,
    "direction": _one("LEFT", "RIGHT"),
    "repeats": lambda s, f: [1] * f.ndim,
    "reduction": _one("none", "add", "mul", "max", "min"),
    "shape": _new_shape,
    "broadcast": _one(0),
}
"""Attributes by name; those that are not here are left out."""

SPECIAL: dict[tuple[str, str], Callable[[Scope, Any], Any]] = {
    ("Pad", "pads"): _pads,
    ("Pad", "mode"): _one("constant", "reflect", "edge", "wrap"),
    ("Pad", "value"): _one(0.0, 1.5),
    ("DepthToSpace", "mode"): _one("DCR", "CRD"),
    ("Slice", "axes"): lambda s, f: None,
    ("Unsqueeze", "axes"): lambda s, f: s.draw.sample(range(f.ndim + 1), 1),
    ("Squeeze", "axes"): lambda s, f: [n for n, size in enumerate(f.shape) if size == 1],
    ("Upsample", "scales"): lambda s, f: [1.0, 1.0, 2.0, 2.0, 1.0][: f.ndim],
    ("GridSample", "mode"): lambda s, f: None,
    ("StringNormalizer", "case_change_action"): _one("LOWER", "UPPER"),
    ("CenterCropPad", "axes"): lambda s, f: None,
}

RANKS = {
    **dict.fromkeys(("MaxPool", "AveragePool", "LpPool"), (3, 5)),
    **dict.fromkeys(("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool", "LRN"), (3, 5)),
    **dict.fromkeys(("BatchNormalization", "InstanceNormalization"), (2, 5)),
    **dict.fromkeys(("GroupNormalization", "DepthToSpace", "SpaceToDepth"), (3, 4)),
    **dict.fromkeys(("Upsample", "MeanVarianceNormalization"), (4, 4)),
    "ConstantOfShape": (1, 1),  # though onnxruntime takes other ranks
    **dict.fromkeys(("Transpose", "Concat", "Split", "Softmax", "ReverseSequence"), (2, 6)),
    **dict.fromkeys(("MatMul", "TopK", "Trilu", "Flatten", "ArgMax", "Expand"), (1, 5)),
}

FAVOURITES = (
    *("Add", "Mul", "Sub", "Relu", "Concat", "Softmax", "ReduceMean", "ReduceSum", "Squeeze"),
    *("Unsqueeze", "Reshape", "Flatten", "MaxPool", "AveragePool", "BatchNormalization", "Where"),
    *("Gather", "Split", "Pad", "Cast", "ArgMax", "Identity", "InstanceNormalization", "TopK"),
    *("QuantizeLinear", "DequantizeLinear", "Dropout", "Expand", "PRelu", "DepthToSpace", "Shape"),
)
"""Ops that are met more often."""
