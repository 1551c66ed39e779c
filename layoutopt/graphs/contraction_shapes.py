"""Output shapes of matrix products and convolutions."""

from __future__ import annotations

from collections.abc import Iterable
from operator import index
from typing import TypeAlias

from layoutopt.graphs.op import OpError, Shape, broadcast

PerDim: TypeAlias = int | Iterable[int]
"""One number for all spatial dimensions, or one for each."""

Padding: TypeAlias = int | Iterable[int | tuple[int, int]]
"""The same, where a pair is what is added before and after."""


def matmul_shape(lhs: Shape, rhs: Shape) -> Shape:
    """Return the shape of ``numpy.matmul``.

    Raises
    ------
    OpError
        If the operands do not fit each other.
    """
    if not lhs or not rhs:
        raise OpError("both operands must have at least one dimension")
    left = lhs if len(lhs) > 1 else (1, *lhs)
    right = rhs if len(rhs) > 1 else (*rhs, 1)
    if left[-1] != right[-2]:
        raise OpError(f"the inner dimensions {left[-1]} and {right[-2]} must be equal")
    rows = left[-2:-1] if len(lhs) > 1 else ()
    columns = right[-1:] if len(rhs) > 1 else ()
    return (*broadcast([left[:-2], right[:-2]]), *rows, *columns)


def conv_shape(
    data: Shape,
    weights: Shape,
    strides: PerDim = 1,
    padding: Padding = 0,
    dilations: PerDim = 1,
    groups: int = 1,
) -> Shape:
    """Return the shape of a convolution.

    Parameters
    ----------
    data, weights, strides, padding, dilations, groups
        As ``grow_conv`` takes them.

    Raises
    ------
    OpError
        If they do not fit each other.
    """
    rank = len(data) - 2
    if rank < 1 or len(weights) != len(data):
        raise OpError("data must be (N, C, *size), weights (M, C / groups, *kernel)")
    _check_channels(data[1], weights[0], weights[1], groups)
    steps = _per_dim("strides", strides, rank, least=1)
    spread = _per_dim("dilations", dilations, rank, least=1)
    added = _added("padding", padding, rank)
    dims = zip(data[2:], weights[2:], steps, spread, added, strict=True)
    return (data[0], weights[0], *(_out_size(d, *numbers) for d, numbers in enumerate(dims)))


def _out_size(d: int, size: int, kernel: int, stride: int, dilation: int, added: int) -> int:
    reach, padded = dilation * (kernel - 1) + 1, size + added
    if kernel < 1:
        raise OpError(f"spatial dimension {d}: the kernel's size must be at least 1")
    if reach > padded:
        raise OpError(
            f"spatial dimension {d}: the kernel reaches over {reach} elements, and the data "
            f"with padding have only {padded}"
        )
    return (padded - reach) // stride + 1


def _check_channels(before: int, after: int, read: int, groups: int) -> None:
    _number("groups", groups, least=1)
    if before % groups or after % groups:
        raise OpError(
            f"groups {groups} must divide the {before} channels of the data and the {after} of "
            f"the output"
        )
    if read != before // groups:
        raise OpError(
            f"the weights' dimension 1 is {read}, but {before} channels in {groups} group(s) "
            f"make {before // groups}"
        )


def _per_dim(name: str, given: PerDim, rank: int, least: int) -> list[int]:
    entries = list(given) if isinstance(given, Iterable) else [given] * rank
    _check_count(name, len(entries), rank)
    return [_number(name, entry, least) for entry in entries]


def _added(name: str, given: Padding, rank: int) -> list[int]:
    """Return how much is added in each spatial dimension."""
    entries = list(given) if isinstance(given, Iterable) else [given] * rank
    _check_count(name, len(entries), rank)
    sides = [tuple(e) if isinstance(e, Iterable) else (e, e) for e in entries]
    if any(len(pair) != 2 for pair in sides):
        raise OpError(f"{name} {entries} must hold numbers or pairs (before, after)")
    return [sum(_number(name, side, 0) for side in pair) for pair in sides]


def _check_count(name: str, entries: int, rank: int) -> None:
    if entries != rank:
        raise OpError(f"{name} has {entries} entries for {rank} spatial dimension(s)")


def _number(name: str, given: int, least: int) -> int:
    try:
        number = index(given)
    except TypeError:
        raise OpError(f"{name}: {given!r} is not an integer") from None
    if number < least:
        raise OpError(f"{name}: {number} must be at least {least}")
    return number
