"""Rules of ops each of whose axes has a meaning of its own: convolutions, pools, norms by channel.

ONNX writes them channels first.  Without another implementation they let their spatial axes be
permuted, and some of them the batch as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import permutations
from typing import Any

import numpy as np

from layoutopt.base.errors import InputError
from layoutopt.base.numbers import window_count
from layoutopt.conversion.rules.op import Op, Shape, Size
from layoutopt.conversion.rules.operator import RemapError, Remapped, Rule, permuted
from layoutopt.layout.permutations import Permutation

PER_SPATIAL_AXIS = ("kernel_shape", "strides", "dilations", "output_padding", "output_shape")


def spatial_attributes(op: Op, permutation: Permutation) -> dict[str, Any]:
    """Return the attributes that hold a number for each spatial axis, in another order.

    The permutation is that of all axes, of which those from 2 on are spatial.
    """
    order, found = tuple(i - 2 for i in permutation[2:]), {}
    for name in (*PER_SPATIAL_AXIS, "pads"):
        values = op.integers(name)
        if values is None:
            continue
        ends = 2 if name == "pads" else 1  # pads hold those of all starts, then of all ends
        if len(values) != ends * len(order):
            raise RemapError(f"{op}: its {name} are not for {len(order)} spatial axes")
        parts = (values[k * len(order) :] for k in range(ends))
        found[name] = tuple(value for part in parts for value in permuted(part, order))
    return found


def planes(op: Op, permutation: Permutation) -> Mapping[str, Any]:
    """Permute spatial axes of an op that treats each channel of each sample alone."""
    _keep_front(op, permutation)
    return {}


def channels_second(op: Op, permutation: Permutation) -> Mapping[str, Any]:
    """Permute all axes but the channels, which the op looks for at axis 1."""
    if permutation[1] != 1:
        raise RemapError(f"{op}: it takes axis 1 for the channels; they must stay there")
    if op.integer("spatial", 1) == 0:
        raise RemapError(f"{op}: with spatial = 0 it has a scale for each element")
    return {}


def pool(op: Op, permutation: Permutation) -> Mapping[str, Any]:
    """Permute spatial axes; batch and channels may change places."""
    if set(permutation[:2]) != {0, 1}:
        raise RemapError(f"{op}: it pools axes from 2 on; batch and channels must stay in front")
    if sum(name != "" for name in op.outputs) > 1:
        raise RemapError(f"{op}: its second result counts elements in their order")
    return spatial_attributes(op, permutation)


def convolution(weights: int, added: int | None = None) -> Rule:
    """Return a rule that permutes spatial axes, of data and weights alike.

    ``weights`` is their position, ``added`` that of a tensor that is added to the result, if there
    may be one.
    """

    def convolve(op: Op, permutation: Permutation) -> Remapped:
        _keep_front(op, permutation)
        attributes = spatial_attributes(op, permutation)
        moved = {0, weights, added}
        inputs = tuple(permutation if n in moved else None for n in range(len(op.inputs)))
        return Remapped(attributes, inputs)

    return convolve


def _keep_front(op: Op, permutation: Permutation) -> None:
    if permutation[:2] != (0, 1):
        raise RemapError(f"{op}: batch and channels must stay axes 0 and 1")


def reduction(kind: str) -> Callable[[Op], Iterator[Remapped]]:
    """Return a function that yields a global pool as a reduction, with its axes in all orders."""

    def modes(op: Op) -> Iterator[Remapped]:
        rank = op.rank(0) or 0
        for order in permutations(range(rank)) if rank > 2 else ():
            axes = sorted(order.index(axis) for axis in range(2, rank))
            yield Remapped({"axes": tuple(axes)}, (order,), (order,), type=kind)

    return modes


def resize(op: Op, permutation: Permutation) -> Mapping[str, Any]:
    """Permute scales or sizes, and the region; or move the axes that these are for."""
    rank = len(permutation)
    axes = op.axes(rank)
    if axes:
        return {"axes": tuple(map(permutation.index, axes))}
    found: dict[str, Any] = {}
    for name in ("scales", "sizes", "roi"):
        given = op.attributes.get(name)
        values = () if given is None else tuple(given)
        if name == "roi" and len(values) == 2 * rank:
            starts, stops = values[:rank], values[rank:]
            found[name] = permuted(starts, permutation) + permuted(stops, permutation)
        elif len(values) == rank:
            found[name] = permuted(values, permutation)
        elif values:
            raise RemapError(f"{op}: its {name} are not for {rank} axes")
    if not {"scales", "sizes"} & set(found):
        raise RemapError(f"{op}: it has neither scales nor sizes")
    return found


def resize_orders(op: Op) -> Iterator[Remapped]:
    """Yield a Resize in all orders of axes in which onnxruntime runs it (seen with 1.31).

    That is every order if it takes nearest elements.  Floats are interpolated linearly along axes
    behind the first two, along the middle axes of four, and along all of up to three; by cubes
    along the last two of four axes, and both of two.
    """
    if (rank := op.rank(0)) is None:
        return
    axes = op.axes(rank)
    names = ("roi", "scales", "sizes") if op.type == "Resize" and op.opset >= 11 else ("scales",)
    unknown = [n for n, name in enumerate(names, 1) if op.has(n) and name not in op.attributes]
    vectors = all(op.shape(n) in (None, (None,), (rank,)) for n in unknown)
    crops = op.attributes.get("coordinate_transformation_mode") == "tf_crop_and_resize"
    if crops or (1 in unknown and names[0] == "roi") or not (axes or vectors):
        return
    for order in permutations(range(rank)):
        if not _resizes(op, order):
            continue
        entries = {} if axes else dict.fromkeys(unknown, order)
        try:
            found = {} if entries else resize(op, order)
        except RemapError:
            return
        inputs = (order, *(None for _ in op.inputs[1:]))
        yield Remapped({**op.attributes, **found}, inputs, (order,), entries)


def _resizes(op: Op, order: Permutation) -> bool:
    """Return whether onnxruntime runs a Resize with its axes in an order."""
    mode, rank = op.attributes.get("mode", "nearest"), len(order)
    policy = op.attributes.get("keep_aspect_ratio_policy", "stretch")
    if mode == "nearest":
        return True
    grown = _grown(op, rank) if policy == "stretch" and op.element_type == "float" else None
    if grown is None or (mode == "cubic" and rank not in (2, 4)):
        return False
    places = set(map(order.index, grown))
    middle = mode == "linear" and rank == 4 and places <= {1, 2}
    return rank <= 3 or middle or (rank <= 5 and min(places, default=2) >= 2)


def _grown(op: Op, rank: int) -> set[int] | None:
    """Return the axes whose sizes a Resize may change, None if that is unknown."""
    axes, scales, sizes = op.axes(rank), op.attributes.get("scales"), op.attributes.get("sizes")
    if axes:
        return set(axes)
    if scales is not None and len(scales) == rank:
        return {i for i, scale in enumerate(scales) if float(scale) != 1}
    if sizes is not None and len(sizes) == rank:
        return {i for i, size in enumerate(op.shape(0) or ()) if size != sizes[i]}
    return None


def resize_axes(op: Op) -> str:
    """Return which axes are spatial: by default those after the first two.

    ONNX lets any axis grow.  An op that leaves the first and the last as they are, but not the
    second, is one on channels-last data.
    """
    scales = op.attributes.get("scales")
    grown = [] if scales is None or op.integers("axes") else [float(s) != 1 for s in scales]
    last = len(grown) > 2 and grown[1] and not (grown[0] or grown[-1])
    return "N+C -> N+C" if last else "NC+ -> NC+"


def channels_flag(op: Op) -> str:
    """Return the order that the attribute ``channels_last`` gives."""
    return "N+C -> N+C" if op.integer("channels_last", 0) else "NC+ -> NC+"


def channels_first_only(rule: Rule) -> Rule:
    """Return a rule that refuses channels-last ops, and permutes others by a given one."""

    def permute(op: Op, permutation: Permutation) -> Mapping[str, Any] | Remapped:
        if op.integer("channels_last", 0):
            raise RemapError(f"{op}: it is written for channels-last data")
        return rule(op, permutation)

    return permute


def pooled(op: Op, shape: Shape) -> Shape:
    """Return the shape of a pool's results.

    Where pads keep the size, it is ``ceil(size / stride)``; runtimes disagree for dilated pools.
    """
    kernel, count = op.integers("kernel_shape"), len(shape) - 2
    if kernel is None or len(kernel) != count:
        return (None,) * len(shape)
    strides = _each(op, "strides", 1, count, 1)
    dilations = _each(op, "dilations", 1, count, 1)
    pads = _each(op, "pads", 0, 2 * count, None)
    same = str(op.attributes.get("auto_pad", "")).startswith("SAME")
    sizes: list[Size] = []
    for i, size in enumerate(shape[2:]):
        reach = dilations[i] * (kernel[i] - 1) + 1
        if not isinstance(size, int) or (same and dilations[i] > 1):
            sizes.append(None)
        elif same:
            sizes.append(-(-size // strides[i]))
        else:
            up = bool(op.integer("ceil_mode", 0))
            sizes.append(window_count(size, (pads[i], pads[count + i]), reach, strides[i], up=up))
    return (*shape[:2], *sizes)


LARGEST_SIZE = 2**62
"""Sizes from this one on are taken for unknown; they may be infinite or not a number."""


def resized(op: Op, shape: Shape) -> Shape | None:
    """Return the shape that scales give, if they are known: runtimes multiply in 32 bits."""
    scales, axes = op.attributes.get("scales"), op.axes(len(shape)) or tuple(range(len(shape)))
    if not scales or len(scales) != len(axes):
        return None
    sizes = list(shape)
    for axis, scale in zip(axes, scales, strict=True):
        size = sizes[axis]
        if scale != 1:
            known = isinstance(size, int) and 0 <= size * scale < LARGEST_SIZE
            sizes[axis] = int(np.float32(size) * np.float32(scale)) if known else None
    return tuple(sizes)


def upsampled(op: Op, shape: Shape) -> Shape | None:
    """Return what is known of the shape of a ConvTranspose that is to give a certain size.

    ONNX adds padding of the output to that size; None where there is none.
    """
    same = str(op.attributes.get("auto_pad", "")).startswith("SAME")
    if not (same and any(op.integers("output_padding") or ())):
        return None
    filters = op.shape(1) or ()
    channels = filters[1] if len(filters) > 1 else None
    channels = channels * op.integer("group", 1) if isinstance(channels, int) else None
    return (shape[0], channels, *(None,) * (len(shape) - 2))


def _each(op: Op, name: str, default: int, count: int, low: int | None) -> tuple[int, ...]:
    """Return so many integers that an attribute holds."""
    found = op.integers(name) or (default,) * count
    if len(found) != count or (low is not None and min(found, default=low) < low):
        wanted = f"{count} integers" + ("" if low is None else f" of {low} or more")
        raise InputError(f"{op}: {name} must be {wanted}, got {list(found)}")
    return found


def other_channels(op: Op) -> Iterator[Remapped]:
    """Yield an op in the other of the orders that ``channels_last`` tells."""
    rank = op.rank(0)
    empty = any(0 in (shape or ()) for shape in op.output_shapes)  # a crash of onnxruntime
    if rank is None or rank < 3 or empty:
        return
    last = op.integer("channels_last", 0)
    order = (0, rank - 1, *range(1, rank - 1)) if last else (0, *range(2, rank), 1)
    inputs = (order, *(None for _ in op.inputs[1:]))
    yield Remapped({**op.attributes, "channels_last": 1 - last}, inputs, (order,))


def quantised_channels_last(op: Op) -> Iterator[Remapped]:
    """Yield a QLinearConv as onnxruntime's op of this name, with channels last."""
    for way in other_channels(op):
        yield replace(way, type="com.microsoft::QLinearConv")
