"""Rules by name, from a tensor's shape to the tile of each of its elements."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from layoutopt.base.errors import InputError, errors_of
from layoutopt.base.numbers import integers, least
from layoutopt.base.result import outer_sum
from layoutopt.tiles.blocks import Array, Steps, TileMap, even_steps, tile_map_of
from layoutopt.tiles.contractions import K, M, N, conv_rule, matmul_rule
from layoutopt.tiles.memory import TileMemory


def linear(
    shape: tuple[int, ...],
    memory: TileMemory,
    *,
    min_elements_per_tile: int = 1,
    grain: int | None = None,
    boxes: bool = False,
) -> TileMap:
    """Lay a tensor's elements, in row-major order, over the tiles from tile 0 on.

    With ``grains = ceil(elements / grain)``, element ``f`` is on tile ``f // chunk``, where
    ``chunk = max(ceil(min_elements_per_tile / grain), ceil(grains / tiles)) * grain``; the default
    grain is the memory's.

    With ``boxes`` every tile gets a box of the tensor, which makes larger chunks: with ``p`` tiles
    to fill, outer dimensions are cut into single indices while their product ``o`` is at
    most ``p``, and the next one, of ``n`` indices, into blocks of ``ceil(n / (p // o))``, rounded
    up to whole grains.  Where grains would cross blocks, chunks are as without.

    The same idea as ``poputil::mapTensorLinearly`` in Graphcore's poplibs.
    """
    grain = least("grain", memory.grain if grain is None else grain)
    fewest = least("min_elements_per_tile", min_elements_per_tile)
    size = math.prod(shape)
    if not isinstance(boxes, bool):
        raise InputError(f"boxes must be true or false, got {boxes!r}")
    found = _boxes(shape, min(memory.tiles, max(size // fewest, 1)), grain) if boxes else None
    if found is not None:
        return found
    grains = -(-size // grain)
    chunk = max(-(-fewest // grain), -(-grains // memory.tiles)) * grain
    return TileMap((size,), (even_steps(size, chunk),))


def _boxes(shape: tuple[int, ...], tiles: int, grain: int) -> TileMap | None:
    """Return a linear spread of boxes; ``None`` where grains would cross them, or is nothing."""
    if not math.prod(shape):
        return None
    blocks: list[int] = []
    outer, cut = 1, False
    for a, extent in enumerate(shape):
        stride = math.prod(shape[a + 1 :])
        if cut:
            blocks.append(extent)
        elif outer * extent <= tiles and stride % grain == 0:
            blocks.append(1)
            outer *= extent
        else:
            unit = grain // math.gcd(grain, stride)
            even = -(-extent // (tiles // outer))
            blocks.append(-(-even // unit) * unit)
            cut = True
            if outer > 1 and extent * stride % grain:
                return None
    counts = [-(-extent // block) for extent, block in zip(shape, blocks, strict=True)]
    steps = [
        even_steps(extent, block, math.prod(counts[a + 1 :]))
        for a, (extent, block) in enumerate(zip(shape, blocks, strict=True))
    ]
    return TileMap(shape, tuple(steps))


def grid(
    shape: tuple[int, ...], memory: TileMemory, *, blocks: Sequence[int], first: int = 0
) -> TileMap:
    """Cut each dimension into a number of blocks, and give every block a tile, from ``first`` on.

    The element at index ``i`` is on tile ``first + sum_a (i_a // size_a) * stride_a`` with
    ``size_a = ceil(shape_a / blocks_a)`` and ``stride_a = blocks_{a+1} * blocks_{a+2} * ...``:
    blocks are numbered in row-major order.  The last blocks of a dimension may be smaller, or
    missing.
    """
    counts = integers("blocks", blocks, 1)
    start = least("first", first, 0)
    if len(counts) != len(shape):
        raise InputError(f"blocks has {len(counts)} entries for {len(shape)} dimensions")
    if start + math.prod(counts) > memory.tiles:
        raise InputError(
            f"{math.prod(counts)} blocks from tile {start} on need more than the "
            f"{memory.tiles} tiles"
        )
    steps = [
        even_steps(extent, max(-(-extent // count), 1), math.prod(counts[a + 1 :]))
        for a, (extent, count) in enumerate(zip(shape, counts, strict=True))
    ]
    # An axis of its own for the first tile, so that a tensor of rank 0 has a place for it.
    origin = Steps(np.zeros(1, np.int64), np.array([start], np.int64))
    return TileMap((1, *shape), (origin, *steps)) if start else TileMap(shape, tuple(steps))


Rule = Callable[..., Any]
"""``(shape, memory, **parameters)``, returning a :class:`~layoutopt.tiles.blocks.TileMap`, or an
array of tiles of the tensor's shape."""


def check_parameters(function: Rule, parameters: Mapping[str, Any]) -> None:
    """Raise unless a rule takes just these parameters."""
    known = list(inspect.signature(function).parameters.values())[2:]
    if any(p.kind is p.VAR_KEYWORD for p in known):
        return
    names = [p.name for p in known if p.kind is not p.VAR_POSITIONAL]
    strange = [key for key in parameters if key not in names]
    if strange:
        allowed = ", ".join(names) or "none"
        raise InputError(f"unknown parameter {strange[0]!r}; allowed: {allowed}")
    missing = [p.name for p in known if p.default is p.empty and p.name not in parameters]
    if missing:
        raise InputError(f"parameter {missing[0]!r} is missing")


def mapped(found: Any, shape: tuple[int, ...]) -> TileMap:
    """Return a rule's answer as a map, if it is one of this shape."""
    if isinstance(found, TileMap):
        _check_map(found, shape)
        return found
    try:
        array = np.asarray(found)
    except ValueError:  # rows of different lengths
        raise InputError("must return a TileMap or an array of tiles") from None
    if array.shape != shape:
        raise InputError(f"returned shape {list(array.shape)}, {list(shape)} is needed")
    return tile_map_of(array)


def _check_map(found: TileMap, shape: tuple[int, ...]) -> None:
    """Raise unless a map is whole and has as many elements as a shape."""
    if found.size != math.prod(shape):
        raise InputError(f"maps {found.size} elements, the tensor has {math.prod(shape)}")
    if len(found.steps) != len(found.shape):
        raise InputError(f"has steps along {len(found.steps)} of {len(found.shape)} axes")
    if not found.size:
        return
    for a, (extent, steps) in enumerate(zip(found.shape, found.steps, strict=True)):
        starts, values = steps.starts, steps.values
        if not (
            starts.shape == values.shape == (len(starts),)
            and starts.dtype.kind == values.dtype.kind == "i"
            and len(starts)
            and starts[0] == 0
            and (np.diff(starts) > 0).all()
            and starts[-1] < extent
        ):
            raise InputError(f"its steps along axis {a} do not ascend from 0 below {extent}")


def check_range(found: TileMap, memory: TileMemory) -> None:
    """Raise if an element is on no tile of the machine."""
    if found.size:
        low, high = found.span()
        if low < 0 or high >= memory.tiles:
            wrong = low if low < 0 else high
            raise InputError(
                f"tile {wrong} is out of range; there are {memory.tiles} tiles, from 0"
            )


class Windows(NamedTuple):
    """Windows that move along an axis: that of index ``o`` begins at ``o * stride - padding``.

    Those that begin before the first element begin there.
    """

    number: int
    stride: int = 1
    padding: int = 0

    def starts(self) -> Array:
        """Return where each window begins."""
        return np.maximum(np.arange(self.number) * self.stride - self.padding, 0)

    def steps(self, along: Steps) -> Steps:
        """Return the steps of what windows begin with, of those along their axis."""
        first = np.maximum(-(-(along.starts + self.padding) // self.stride), 0)
        first[:1] = 0
        last = np.append(first[1:] > first[:-1], True) & (first < self.number)
        return Steps(first[last], along.values[last]).merged()


MOST_ELEMENTS = 10**8
"""Up to so many elements a map may be made one by one."""


def _taken(
    shape: tuple[int, ...],
    memory: TileMemory,
    rule: Mapping[str, Any] | None,
    windows: Sequence[Windows],
) -> TileMap:
    """Return the tiles of the elements of a tensor at which windows along all axes begin."""
    count = math.prod(own.number for own in windows)
    if count and not math.prod(shape):
        raise InputError(f"a tensor of {list(shape)} has no first element")
    whole = tile_map(shape, memory, rule)
    if [n for n in whole.shape if n != 1] == [n for n in shape if n != 1]:
        return _by_axis(whole, shape, windows)
    row = _in_a_row(shape, windows) if count and len(whole.shape) == 1 else None
    if row is not None:
        return TileMap((count,), (row.steps(whole.steps[0]),))
    if count > MOST_ELEMENTS:
        raise InputError(
            f"the other tensor's tiles do not follow its dimensions, and {count:,} "
            f"elements are too many to look at each; at most {MOST_ELEMENTS:,}"
        )
    strides = [math.prod(shape[d + 1 :]) for d in range(len(shape))]
    flat = outer_sum([s * own.starts() for s, own in zip(strides, windows, strict=True)])
    return tile_map_of(whole.at(flat))


def _in_a_row(shape: Sequence[int], windows: Sequence[Windows]) -> Windows | None:
    """Return windows along all axes as windows along the row of all elements, if they are that."""
    moving = [d for d, own in enumerate(windows) if own.number != 1]
    if not moving:
        return Windows(1)
    first, inner = windows[moving[0]], range(moving[0] + 1, moving[-1] + 1)
    size = math.prod(shape[inner.stop :])
    if not inner:
        return Windows(first.number, first.stride * size, first.padding * size)
    if first[1:] == (1, 0) and all(windows[d] == Windows(shape[d]) for d in inner):
        return Windows(math.prod(own.number for own in windows), size)
    return None


def _by_axis(whole: TileMap, shape: Sequence[int], windows: Sequence[Windows]) -> TileMap:
    """Return the tiles at which windows begin, of a map that follows the dimensions.

    Axes of 1 that only one of map and tensor has do not matter.
    """
    axes = list(zip(whole.shape, whole.steps, strict=True))
    long = iter([steps for extent, steps in axes if extent != 1])
    first = sum((steps.values for extent, steps in axes if extent == 1), np.zeros(1, np.int64))
    nothing = Steps(np.zeros(1, np.int64), np.zeros(1, np.int64))
    found = [
        nothing if extent == 1 else own.steps(next(long))
        for extent, own in zip(shape, windows, strict=True)
    ]
    counts = [own.number for own in windows]
    return TileMap((1, *counts), (Steps(nothing.starts, first), *found))


AnyRule = TypeVar("AnyRule", bound=Rule)


def tile_map(
    shape: Sequence[int], memory: TileMemory, rule: Mapping[str, Any] | None = None
) -> TileMap:
    """Return which tile each element of a tensor is on.

    Parameters
    ----------
    shape
        The tensor's shape.
    memory
        The machine.
    rule
        ``{"kind": name, parameter: value, ...}``, as instance files have it; if ``None``, the
        linear rule that gives every tile a box.

    Raises
    ------
    InputError
        If there is no such rule, its parameters are wrong or do not fit the shape, or it puts
        an element on a tile that the machine does not have.

    Examples
    --------
    >>> from layoutopt.tiles.memory import TileMemory
    >>> halves = {"kind": "grid", "blocks": [1, 2]}
    >>> tile_map((2, 4), TileMemory(8, 1024), halves).tiles().reshape(2, 4).tolist()
    [[0, 0, 1, 1], [0, 0, 1, 1]]
    """
    shape = integers("shape", shape, 0)
    given = DEFAULT if rule is None else rule
    if not isinstance(given, Mapping):
        raise InputError(f"a rule must be a dictionary with a 'kind', not {given!r}")
    name = given.get("kind")
    if not isinstance(name, str) or name not in RULES:
        raise InputError(f"unknown rule {name!r}; known: {', '.join(RULES)}")
    parameters = {key: value for key, value in given.items() if key != "kind"}
    with errors_of(f"rule {name!r}"):
        check_parameters(RULES[name], parameters)
        found = mapped(_called(name, shape, memory, parameters), shape)
        check_range(found, memory)
    return found


def rule(name: str) -> Callable[[AnyRule], AnyRule]:
    """Return a decorator that makes a function the rule of a name.

    Parameters
    ----------
    name
        The rule's ``kind``.  A name of this package cannot be taken; one of your own can be
        taken again, and then means the new function.

    Raises
    ------
    InputError
        If the name cannot be taken, or the function does not take a shape and a memory.

    Examples
    --------
    >>> @rule("corner")
    ... def corner(shape, memory, *, tile=0):
    ...     return np.full(shape, tile)
    """
    if not isinstance(name, str) or not name:
        raise InputError(f"a rule's name must be a text, got {name!r}")
    if name in BUILT_IN:
        raise InputError(f"rule {name!r} is one of the package's own; take another name")

    def add(function: AnyRule) -> AnyRule:
        try:
            inspect.signature(function).bind_partial((), None)
        except TypeError:
            raise InputError(
                f"rule {name!r} must be a function (shape, memory, **parameters)"
            ) from None
        RULES[name] = function
        return function

    return add


def bias(
    shape: tuple[int, ...],
    memory: TileMemory,
    *,
    of: Sequence[int],
    rule: Mapping[str, Any] | None = None,
    axis: int | None = None,
) -> TileMap:
    """Lay an operand like the first element of the tensor ``of`` that it is broadcast to.

    ``axis`` is the dimension of ``of`` that the operand's first one belongs to.  By default the
    last ones belong together, as in NumPy; the bias of a convolution has 1.
    """
    large = integers("of", of, 0)
    first = len(large) - len(shape) if axis is None else least("axis", axis, 0)
    full = (1,) * first + shape + (1,) * (len(large) - first - len(shape))
    fits = first >= 0 and len(full) == len(large)
    if not fits or any(n not in (1, m) for n, m in zip(full, large, strict=True)):
        raise InputError(
            f"shape {list(shape)} from dimension {first} on does not broadcast to {list(large)}"
        )
    return _taken(large, memory, rule, list(map(Windows, full)))


def reduction(
    shape: tuple[int, ...],
    memory: TileMemory,
    *,
    of: Sequence[int],
    axes: Sequence[int],
    rule: Mapping[str, Any] | None = None,
) -> TileMap:
    """Lay the result of a reduction like the first element of each range of ``of``.

    The reduced ``axes`` are 1 in the result, or missing.
    """
    large, reduced = integers("of", of, 0), integers("axes", axes, 0)
    strange = [a for a in reduced if a >= len(large)]
    if strange:
        raise InputError(f"axes: {strange[0]} is no dimension of {list(large)}")
    kept = [n for a, n in enumerate(large) if a not in reduced]
    ones = [1 if a in reduced else n for a, n in enumerate(large)]
    if list(shape) not in (kept, ones):
        raise InputError(f"shape {list(shape)} does not fit; {kept} or {ones} is needed")
    return _taken(large, memory, rule, list(map(Windows, ones)))


def pooling(
    shape: tuple[int, ...],
    memory: TileMemory,
    *,
    of: Sequence[int],
    strides: Sequence[int],
    padding: Sequence[int] | None = None,
    rule: Mapping[str, Any] | None = None,
) -> TileMap:
    """Lay the result of a pooling like the first element of each window that moves over ``of``.

    ``strides`` and ``padding`` are of the last dimensions.  With stride ``s`` and ``p`` elements of
    padding before the first, the window of index ``o`` begins at ``max(o * s - p, 0)``.
    """
    large, steps = integers("of", of, 0), integers("strides", strides)
    pads = integers("padding", [0] * len(steps) if padding is None else padding, 0, len(steps))
    lead = len(large) - len(steps)
    if len(shape) != len(large) or lead < 0 or shape[:lead] != large[:lead]:
        raise InputError(
            f"shape {list(shape)} does not fit windows over the last {len(steps)} dimensions "
            f"of {list(large)}"
        )
    windows = list(map(Windows, shape[:lead]))
    windows += map(Windows, shape[lead:], steps, pads)
    for d, own in enumerate(windows):
        if own.number and max((own.number - 1) * own.stride - own.padding, 0) >= large[d]:
            raise InputError(f"dimension {d}: a window lies behind the {large[d]} elements")
    return _taken(large, memory, rule, windows)


RULES: dict[str, Rule] = {
    "linear": linear,
    "grid": grid,
    "matmul_lhs": matmul_rule(M, K),
    "matmul_rhs": matmul_rule(K, N),
    "matmul_out": matmul_rule(M, N),
    "conv_data": conv_rule(0),
    "conv_filter": conv_rule(1),
    "conv_out": conv_rule(2),
    "bias": bias,
    "reduction": reduction,
    "pooling": pooling,
}
"""Rules by name; :func:`rule` adds to them."""

DEFAULT: Mapping[str, Any] = {"kind": "linear", "boxes": True}
"""The rule of what has none."""

BUILT_IN = frozenset(RULES)
"""The names that users' rules cannot take."""


def _called(
    name: str, shape: tuple[int, ...], memory: TileMemory, parameters: Mapping[str, Any]
) -> Any:
    """Return what a rule returns; whatever a user's rule raises becomes one line."""
    try:
        return RULES[name](shape, memory, **parameters)
    except InputError:
        raise
    except (Exception, SystemExit) as error:  # a user's function may raise anything
        if name in BUILT_IN:
            raise
        raise InputError(f"failed with {type(error).__name__}: {error}") from error
