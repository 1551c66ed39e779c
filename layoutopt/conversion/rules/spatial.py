"""Ops each of whose axes has a meaning of its own: convolutions, pools, norms by channel.

ONNX writes them channels first.  Without another implementation they let their spatial axes be
permuted, and some of them the batch as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from layoutopt.conversion.rules.op import Op
from layoutopt.conversion.rules.operator import (
    Category,
    Operator,
    RemapError,
    Remapped,
    Rule,
    permuted,
)
from layoutopt.layout.permutations import Permutation

DATA = "NC+ -> NC+"
"""Batch, channels, and ``+`` for the spatial axes: W, HW or DHW."""

PER_SPATIAL_AXIS = ("kernel_shape", "strides", "dilations", "output_padding", "output_shape")


def spatial_attributes(op: Op, permutation: Permutation) -> dict[str, Any]:
    """Return the attributes that hold a number for each spatial axis, in another order.

    Parameters
    ----------
    permutation
        That of all axes, of which those from 2 on are spatial.
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

    Parameters
    ----------
    weights
        The position of the weights.
    added
        The position of a tensor that is added to the result, if there may be one.
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


def resize_axes(op: Op) -> str:
    """Return which axes are spatial: by default those after the first two.

    ONNX lets any axis grow.  An op that leaves the first and the last as they are, but not the
    second, is one on channels-last data.
    """
    scales = op.attributes.get("scales")
    grown = [] if scales is None or op.integers("axes") else [float(s) != 1 for s in scales]
    last = len(grown) > 2 and grown[1] and not (grown[0] or grown[-1])
    return "N+C -> N+C" if last else DATA


def channels_flag(op: Op) -> str:
    """Return the order that the attribute ``channels_last`` gives."""
    return "N+C -> N+C" if op.integer("channels_last", 0) else DATA


def channels_first_only(op: Op, permutation: Permutation) -> Mapping[str, Any]:
    """Refuse channels-last ops; permute those of ONNX's order as pools."""
    if op.integer("channels_last", 0):
        raise RemapError(f"{op}: it is written for channels-last data")
    return pool(op, permutation)


def _convolutions() -> list[Operator]:
    heavy = Category.HEAVY
    quantised = "NC+, , , OI+, , , , , O -> NC+"
    return [
        Operator("Conv", heavy, convolution(1), axes="NC+, OI+, O -> NC+"),
        Operator("ConvInteger", heavy, convolution(1), axes="NC+, OI+ -> NC+"),
        Operator("ConvTranspose", heavy, convolution(1), axes="NC+, IO+, O -> NC+"),
        Operator("DeformConv", heavy, axes="NCHW, OIHW, N*HW, O, N*HW -> NCHW"),
        Operator("QLinearConv", heavy, convolution(3), axes=quantised),
        Operator(
            "com.microsoft::FusedConv",
            heavy,
            convolution(1, added=3),
            axes="NC+, OI+, O, NC+ -> NC+",
        ),
    ]


def _pools() -> list[Operator]:
    heavy = Category.HEAVY
    names = "AveragePool GlobalAveragePool GlobalLpPool GlobalMaxPool LpPool"
    return [
        *(Operator(name, heavy, pool, axes=DATA) for name in names.split()),
        Operator("MaxPool", heavy, pool, axes="NC+ -> NC+, NC+"),
        Operator("MaxRoiPool", heavy, axes="NCHW -> *CHW"),
        Operator("MaxUnpool", heavy, axes="NC+, NC+ -> NC+"),
        Operator("RoiAlign", heavy, axes="NCHW -> *CHW"),
    ]


def _others() -> list[Operator]:
    heavy = Category.HEAVY
    batch = "NC+, C, C, C, C -> NC+, C, C, C, C"
    sizes = {"roi": 1, "scales": 2, "sizes": 3}
    return [
        Operator("BatchNormalization", heavy, channels_second, axes=batch),
        Operator("DepthToSpace", heavy, axes="NCHW -> NCHW"),
        Operator("GridSample", heavy, axes="NC+, N+* -> NC+"),
        Operator("GroupNormalization", heavy, planes, axes=DATA),
        Operator("GroupNormalization", heavy, planes, since=21, axes="NC+, C, C -> NC+"),
        Operator("InstanceNormalization", heavy, planes, axes="NC+, C, C -> NC+"),
        Operator("LRN", heavy, channels_second, axes=DATA),
        Operator("Resize", heavy, resize, parameters={"scales": 1}, axes=resize_axes),
        Operator("Resize", heavy, resize, since=11, parameters=sizes, axes=resize_axes),
        Operator("SpaceToDepth", heavy, axes="NCHW -> NCHW"),
        Operator("Upsample", heavy, resize, parameters={"scales": 1}, axes=resize_axes),
    ]


SPATIAL = [*_convolutions(), *_pools(), *_others()]
"""Ops each of whose axes has a meaning of its own."""

PADDED = frozenset(
    {"AveragePool", "BatchNormalization", "Conv", "ConvTranspose", "GlobalAveragePool"}
    | {"GlobalMaxPool", "InstanceNormalization", "LRN", "LpPool", "MaxPool"}
)
"""Types of ops that make zeros of channels of zeros, and nothing else of other channels."""


def may_pad(op: Op) -> bool:
    """Return whether channels of an op's operands may be padded with zeros."""
    return op.type in PADDED and op.integer("group", 1) == 1
