"""Shapes of results, where these are simple to tell."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from math import prod

from layoutopt.base.errors import InputError
from layoutopt.base.numbers import sliced, window_count
from layoutopt.conversion.rules.axes import REDUCTIONS
from layoutopt.conversion.rules.op import Op, Shape, Size
from layoutopt.conversion.rules.operator import Category
from layoutopt.conversion.rules.registry import operator_of

Rule = Callable[[Op, Shape], Shape | None]
"""``(op, shape of its first input)``, returning the shape of its first result, or None."""


def infer(op: Op) -> list[Shape | None]:
    """Return the shape of each result, None where it is not simple to tell.

    Raises
    ------
    InputError
        If operands do not fit each other.
    """
    first = op.shape(0)
    rule = _RULES.get(op.type)
    if op.layouts is not None:
        return [None] * len(op.outputs)
    if op.type == "Split" and first is not None:
        return list(_split(op, first))
    if rule is not None:
        found = None if first is None else rule(op, first)
        return [found, *[None] * (len(op.outputs) - 1)]
    known = operator_of(op)
    if known.category is Category.AGNOSTIC and op.type not in _OTHER_SHAPE:
        return [_broadcast(op) if known.operands is None else first] * len(op.outputs)
    return [None] * len(op.outputs)


def settled(op: Op, given: Sequence[Shape | None]) -> tuple[Shape | None, ...]:
    """Return the shapes of an op's results, as given or else as they can be told.

    Parameters
    ----------
    op
        The op, with the shapes of its inputs.
    given
        The shape of each result, None for one that is not given.

    Raises
    ------
    InputError
        If both are known and differ, or operands do not fit each other.
    """
    found: list[Shape | None] = []
    for own, told in zip(given, infer(op), strict=True):
        if own is None or told is None:
            found.append(told if own is None else own)
            continue
        pairs = zip(own, told, strict=False)
        if len(own) != len(told) or any(_differ(a, b) for a, b in pairs):
            raise InputError(f"{op}: its result has shape {told}, not {own}")
        pairs = zip(own, told, strict=True)
        both = tuple(b if a is None or isinstance(b, int) else a for a, b in pairs)
        # A transpose has the same bytes as before, of which no more may be known.
        found.append(told if op.type == "Transpose" else both)
    return tuple(found)


def _differ(a: Size, b: Size) -> bool:
    return isinstance(a, int) and isinstance(b, int) and a != b


def _broadcast(op: Op) -> Shape | None:
    operands = operator_of(op).operands or range(len(op.inputs))
    shapes = [op.shape(n) for n in operands if op.has(n)]
    known = [shape for shape in shapes if shape is not None]
    if len(known) < len(shapes) or not known:
        return None
    rank = max(map(len, known))
    every = [(1,) * (rank - len(shape)) + shape for shape in known]
    return tuple(_one_size(op, sizes) for sizes in zip(*every, strict=True))


def _one_size(op: Op, sizes: Iterable[Size]) -> Size:
    """Return what sizes are broadcast to; an unknown one is 1 or what the known one is."""
    wide = {size for size in sizes if size != 1}
    numbers = {size for size in wide if isinstance(size, int)}
    if len(numbers) > 1:
        raise InputError(f"{op}: sizes {' and '.join(map(str, sorted(numbers)))} do not match")
    if not wide:
        return 1
    return numbers.pop() if numbers else wide.pop() if len(wide) == 1 else None


def _same(op: Op, shape: Shape) -> Shape:
    return shape


def _followed(op: Op, shape: Shape) -> Shape | None:
    """Return the sizes of the axes that the result has; new ones have size 1."""
    [axes] = operator_of(op).follow(op)
    return None if axes is None else tuple(1 if a is None else shape[a] for a in axes)


def _reduced(op: Op, shape: Shape) -> Shape | None:
    """Return the sizes that are left, or 1 where something was reduced."""
    if op.has(1) and "axes" not in op.attributes:
        return None
    if not op.integer("keepdims", 1):
        return _followed(op, shape)
    axes = op.axes(len(shape))
    if not axes:
        return shape if op.integer("noop_with_empty_axes", 0) else (1,) * len(shape)
    return tuple(1 if i in axes else size for i, size in enumerate(shape))


def _found(op: Op, shape: Shape) -> Shape | None:
    if not shape or not op.integer("keepdims", 1):
        return _followed(op, shape)
    axis = op.axis(0, len(shape))
    return (*shape[:axis], 1, *shape[axis + 1 :])


def _concat(op: Op, shape: Shape) -> Shape | None:
    shapes = [op.shape(n) for n in range(len(op.inputs))]
    known = [other for other in shapes if other is not None]
    if len(known) < len(shapes):
        return None
    if any(len(other) != len(shape) for other in known):
        raise InputError(f"{op}: its operands have different ranks")
    axis = op.axis(None, len(shape))
    sizes: list[Size] = []
    for i, column in enumerate(zip(*known, strict=True)):
        numbers = [size for size in column if isinstance(size, int)]
        if i == axis:
            sizes.append(sum(numbers) if len(numbers) == len(column) else None)
        elif len(set(numbers)) > 1:
            raise InputError(f"{op}: its operands differ along axis {i}: {column}")
        else:
            sizes.append(numbers[0] if numbers else column[0])
    return tuple(sizes)


def _split(op: Op, shape: Shape) -> Iterable[Shape | None]:
    axis = op.axis(0, len(shape))
    size, parts = shape[axis], op.integers("split")
    if parts is None and not op.has(1) and isinstance(size, int):
        each = -(-size // len(op.outputs))
        parts = tuple(min(each, size - k * each) for k in range(len(op.outputs)))
    for k in range(len(op.outputs)):
        part = parts[k] if parts is not None and k < len(parts) else None
        yield (*shape[:axis], part, *shape[axis + 1 :])


def _same_rank(op: Op, shape: Shape) -> Shape:
    """Return sizes that are not known, of as many axes."""
    return (None,) * len(shape)


def _selected(op: Op, shape: Shape) -> Shape | None:
    """Return the shape of the indices of a GatherElements."""
    return op.shape(1)


def _compressed(op: Op, shape: Shape) -> Shape:
    axis = op.axis(0, len(shape)) if "axis" in op.attributes else None
    return (None,) if axis is None else (*shape[:axis], None, *shape[axis + 1 :])


def _largest(op: Op, shape: Shape) -> Shape:
    axis, count = op.axis(-1, len(shape)), op.integers("k")
    return (*shape[:axis], count[0] if count else None, *shape[axis + 1 :])


def _one_hot(op: Op, shape: Shape) -> Shape:
    axis = op.axis(-1, len(shape) + 1)
    return (*shape[:axis], None, *shape[axis:])


def _resized(op: Op, shape: Shape) -> Shape:
    """Return sizes where these are given for all axes, as many as there were elsewhere."""
    sizes = op.integers("sizes")
    policy = op.attributes.get("keep_aspect_ratio_policy", "stretch")
    known = sizes is not None and len(sizes) == len(shape) and policy == "stretch"
    return sizes if known and sizes is not None else (None,) * len(shape)


def _window(op: Op, shape: Shape) -> Shape | None:
    """Return the shape of a convolution or pool.

    Where pads keep the size, it is ``ceil(size / stride)``; runtimes disagree for dilated pools.
    """
    place = _WEIGHTS.get(op.type)
    last = _is_last(op)
    spatial = shape[1:-1] if last else shape[2:]
    weights = None if place is None else op.shape(place)
    kernel = op.integers("kernel_shape") or (weights[2:] if weights else None)
    if kernel is None or len(kernel) != len(spatial) or (place is not None and not weights):
        return None
    count = len(spatial)
    strides = _each(op, "strides", 1, count, 1)
    dilations = _each(op, "dilations", 1, count, 1)
    pads = _each(op, "pads", 0, 2 * count, None)
    auto = op.attributes.get("auto_pad", "NOTSET")
    sizes: list[Size] = []
    for i, (size, wide) in enumerate(zip(spatial, kernel, strict=True)):
        if not (isinstance(size, int) and isinstance(wide, int)):
            sizes.append(None)
        elif auto in ("SAME_UPPER", "SAME_LOWER"):
            told = place is not None or dilations[i] == 1
            sizes.append(-(-size // strides[i]) if told else None)
        else:
            ends, reach = (pads[i], pads[count + i]), dilations[i] * (wide - 1) + 1
            up = bool(op.integer("ceil_mode", 0))
            sizes.append(window_count(size, ends, reach, strides[i], up=up))
    channels = weights[0] if weights else shape[-1 if last else 1]
    return (shape[0], *sizes, channels) if last else (shape[0], channels, *sizes)


def _each(op: Op, name: str, default: int, count: int, low: int | None) -> tuple[int, ...]:
    """Return so many integers that an attribute holds."""
    found = op.integers(name) or (default,) * count
    if len(found) != count or (low is not None and min(found, default=low) < low):
        wanted = f"{count} integers" + ("" if low is None else f" of {low} or more")
        raise InputError(f"{op}: {name} must be {wanted}, got {list(found)}")
    return found


def _one_each(op: Op, shape: Shape) -> Shape:
    ones = (1,) * (len(shape) - 2)
    return (shape[0], *ones, shape[-1]) if _is_last(op) else (*shape[:2], *ones)


def _is_last(op: Op) -> bool:
    """Return whether channels are the last axis."""
    return bool(op.integer("channels_last", 0))


def _blocks(op: Op, shape: Shape) -> Shape | None:
    """Return the shape after blocks of a plane have become channels, or channels blocks."""
    size = op.integer("blocksize", 1)
    if len(shape) != 4 or size < 1 or not all(isinstance(n, int) for n in shape):
        return (None,) * len(shape)
    batch, channels, height, width = (n for n in shape if isinstance(n, int))
    if op.type == "SpaceToDepth":
        return (batch, channels * size**2, height // size, width // size)
    return (batch, channels // size**2, height * size, width * size)


def _flatten(op: Op, shape: Shape) -> Shape:
    rank = len(shape)
    axis = rank if op.integer("axis", 1) == rank else op.axis(1, rank)
    return (_product(shape[:axis]), _product(shape[axis:]))


def _product(sizes: Shape) -> Size:
    wide = [size for size in sizes if size != 1]
    numbers = [size for size in wide if isinstance(size, int)]
    if len(numbers) == len(wide):
        return prod(numbers)
    return wide[0] if len(wide) == 1 else None


def _reshape(op: Op, shape: Shape) -> Shape | None:
    wanted = op.integers("shape")
    if wanted is None:
        return None
    copies = not op.integer("allowzero", 0)
    sizes: list[Size] = []
    for i, size in enumerate(wanted):
        if size == 0 and copies and i >= len(shape):
            raise InputError(f"{op}: there is no size {i} to copy")
        sizes.append(shape[i] if size == 0 and copies else size)
    numbers = [size for size in shape if isinstance(size, int)]
    known = [size for size in sizes if isinstance(size, int) and size != -1]
    if len(numbers) == len(shape) and len(known) >= len(sizes) - 1:
        return _filled(op, shape, sizes, prod(numbers), prod(known))
    return tuple(None if size == -1 else size for size in sizes)


def _filled(op: Op, shape: Shape, sizes: list[Size], have: int, known: int) -> Shape:
    fits = known and have % known == 0 if -1 in sizes else have == known
    if not fits:
        raise InputError(f"{op}: {shape} cannot have shape {tuple(sizes)}")
    return tuple(have // known if size == -1 else size for size in sizes)


def _matmul(op: Op, shape: Shape) -> Shape | None:
    other = op.shape(1)
    if other is None or not shape or not other:
        return None
    count = max(len(shape), len(other), 2) - 2
    batches = [(1,) * (count - len(s[:-2])) + s[:-2] for s in (shape, other)]
    batch = [_one_size(op, sizes) for sizes in zip(*batches, strict=True)]
    columns = other[-1:] if len(other) > 1 else ()
    return (*batch, *shape[-2:-1], *columns)


def _gemm(op: Op, shape: Shape) -> Shape | None:
    other = op.shape(1)
    if other is None or len(shape) != 2 or len(other) != 2:
        return None
    return (shape[op.integer("transA", 0)], other[1 - op.integer("transB", 0)])


def _pad(op: Op, shape: Shape) -> Shape | None:
    pads, axes = op.integers("pads"), op.axes(len(shape))
    axes = tuple(range(len(shape))) if axes is None else axes
    unknown = op.has(3) and "axes" not in op.attributes
    if pads is None or unknown or len(pads) != 2 * len(axes):
        return (None,) * len(shape)
    sizes = list(shape)
    for axis, before, after in zip(axes, pads, pads[len(axes) :], strict=False):
        size = sizes[axis]
        sizes[axis] = size + before + after if isinstance(size, int) else None
    return tuple(sizes)


def _slice(op: Op, shape: Shape) -> Shape:
    """Return what is left; sizes are known where starts, ends and steps are."""
    rank, starts, ends = len(shape), op.integers("starts"), op.integers("ends")
    axes, steps = op.axes(rank), op.integers("steps")
    if (op.has(3) and axes is None) or (op.has(4) and steps is None):
        return (None,) * rank
    if starts is None or ends is None:
        given = op.shape(1)
        count = given[0] if given else None
        moved = axes if axes is not None else range(count if isinstance(count, int) else rank)
        return tuple(None if i in moved else size for i, size in enumerate(shape))
    sizes = list(shape)
    axes = tuple(range(len(starts))) if axes is None else axes
    for axis, *cut in zip(axes, starts, ends, steps or (1,) * len(starts), strict=False):
        size = shape[axis]
        sizes[axis] = len(sliced(size, *cut)) if isinstance(size, int) and cut[2] else None
    return tuple(sizes)


def _tile(op: Op, shape: Shape) -> Shape:
    repeats = op.integers("repeats") or (None,) * len(shape)
    pairs = zip(shape, repeats, strict=False)
    return tuple(s if r == 1 else _times(s, r) for s, r in pairs)


def _times(size: Size, factor: int | None) -> Size:
    return size * factor if isinstance(size, int) and factor is not None else None


def _expand(op: Op, shape: Shape) -> Shape | None:
    [axes], wanted = operator_of(op).follow(op), op.integers("shape")
    if axes is None:
        return None
    if wanted is None:
        return (None,) * len(axes)
    every = [(1,) * (len(axes) - len(sizes)) + tuple(sizes) for sizes in (shape, wanted)]
    return tuple(_one_size(op, sizes) for sizes in zip(*every, strict=True))


def _quantised_broadcast(op: Op, shape: Shape) -> Shape | None:
    return _broadcast(op)


def _quantised_concat(op: Op, shape: Shape) -> Shape | None:
    """Return the shape of joined tensors, each of which has a scale and a zero point behind it."""
    tensors = range(2, len(op.inputs), 3)
    shapes = tuple(op.shape(n) for n in tensors)
    if not shapes or shapes[0] is None:
        return None
    names = tuple(op.inputs[n] for n in tensors)
    return _concat(replace(op, inputs=names, input_shapes=shapes), shapes[0])


def _multiplied(op: Op, shape: Shape) -> Shape | None:
    """Return the shape of a product with one matrix."""
    columns = op.shape(1)
    return None if columns is None or len(columns) != 2 else (*shape[:-1], columns[1])


def _filled_shape(op: Op, shape: Shape) -> Shape | None:
    size = shape[0] if len(shape) == 1 else None
    return (None,) * size if isinstance(size, int) else None


def _shape(op: Op, shape: Shape) -> Shape:
    return (len(range(len(shape))[slice(op.integer("start", 0), op.integer("end", len(shape)))]),)


def _gather(op: Op, shape: Shape) -> Shape | None:
    indices = op.shape(1)
    axis = op.axis(0, len(shape))
    return None if indices is None else (*shape[:axis], *indices, *shape[axis + 1 :])


_WEIGHTS = {
    **{"Conv": 1, "ConvInteger": 1, "QLinearConv": 3},
    **{"com.microsoft::FusedConv": 1, "com.microsoft::QLinearConv": 3},
}
"""The weights of convolutions."""

_SLIDING = {"AveragePool", "LpPool", "MaxPool", "com.microsoft::QLinearAveragePool"} | {*_WEIGHTS}
"""Op types with windows."""

_OTHER_SHAPE = {"Size", "DynamicQuantizeLinear"}

_SAME = (
    "BatchNormalization CumProd CumSum DequantizeLinear DynamicQuantizeLinear GroupNormalization "
    "Hardmax InstanceNormalization LRN LayerNormalization LogSoftmax LpNormalization "
    "MeanVarianceNormalization QuantizeLinear RMSNormalization ReverseSequence Scatter "
    "ScatterElements ScatterND Softmax Trilu com.microsoft::BiasGelu "
    "com.microsoft::DequantizeLinear com.microsoft::FastGelu com.microsoft::QLinearLeakyRelu "
    "com.microsoft::QLinearSigmoid com.microsoft::QLinearSoftmax com.microsoft::QuantizeLinear "
    "com.microsoft::SkipLayerNormalization com.microsoft::SkipSimplifiedLayerNormalization"
)

_RULES: dict[str, Rule] = {
    **dict.fromkeys(_SAME.split(), _same),
    **dict.fromkeys(REDUCTIONS.split(), _reduced),
    **dict.fromkeys(["ArgMax", "ArgMin"], _found),
    **dict.fromkeys(_SLIDING, _window),
    **dict.fromkeys(["CenterCropPad", "ConvTranspose"], _same_rank),
    **dict.fromkeys(["DepthToSpace", "SpaceToDepth"], _blocks),
    "GridSample": _same_rank,
    **dict.fromkeys(["Resize", "Upsample"], _resized),
    **dict.fromkeys(
        [f"com.microsoft::QLinear{name}" for name in ("Add", "Mul", "Where")], _quantised_broadcast
    ),
    **dict.fromkeys(
        [f"com.microsoft::{name}" for name in ("DynamicQuantizeMatMul", "MatMulIntegerToFloat")],
        _multiplied,
    ),
    "com.microsoft::FusedGemm": _gemm,
    "com.microsoft::QLinearConcat": _quantised_concat,
    **dict.fromkeys(["GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool"], _one_each),
    "com.microsoft::QLinearGlobalAveragePool": _one_each,
    **dict.fromkeys(["Squeeze", "Transpose", "Unsqueeze"], _followed),
    "Compress": _compressed,
    "Concat": _concat,
    "ConstantOfShape": _filled_shape,
    "Expand": _expand,
    "Flatten": _flatten,
    "Gather": _gather,
    "GatherElements": _selected,
    "Gemm": _gemm,
    "MatMul": _matmul,
    "OneHot": _one_hot,
    "Pad": _pad,
    "Reshape": _reshape,
    "Shape": _shape,
    "Slice": _slice,
    "Tile": _tile,
    "TopK": _largest,
}
