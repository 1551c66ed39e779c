"""Hooks by name: from the tiles of a barrier's inputs to those of its outputs.

A hook is a function ``(inputs, shapes, memory)``.  ``inputs`` holds an array of tiles for each
input, of the input's shape; ``shapes`` the shapes of the outputs; ``memory`` is the machine.  It
returns a list with an array of tiles for each output.  Equal inputs must give equal outputs.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from layoutopt.base.errors import InputError
from layoutopt.tiles.memory import TileMemory

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Strided:
    """An output that lies like every so-many-th element of an input.

    Element ``f`` of the output, in row-major order, has index ``i`` in an array of shape
    ``counts``; it lies where element ``(i_0 * strides_0, i_1 * strides_1, ...)`` of the input does.

    Parameters
    ----------
    source
        The number of the input.
    strides, counts
        One number for each of its dimensions.
    """

    source: int
    strides: tuple[int, ...]
    counts: tuple[int, ...]


def strided(name: str, inputs: Sequence[Shape], outputs: Sequence[Shape]) -> list[Strided]:
    """Return how each output of a built-in hook lies.

    Parameters
    ----------
    name
        The hook.
    inputs, outputs
        Their shapes.

    Raises
    ------
    InputError
        If it does not fit these shapes.
    """
    if not inputs:
        raise InputError("needs an input")
    return _STRIDED[name](inputs, outputs)


def _along(small: Shape, large: Shape) -> list[tuple[int, int]]:
    return list(zip(small, large, strict=True))


def kept(small: Shape, large: Shape) -> list[bool]:
    """Return which dimensions a reduction keeps.

    Raises
    ------
    InputError
        If the one shape is no reduction of the other.
    """
    if len(small) == len(large):
        stays = [m == n for m, n in _along(small, large)]
        fits = all(k or m == 1 for k, m in zip(stays, small, strict=True))
    else:
        left, stays = list(small), []
        for n in large:
            stays.append(bool(left) and left[0] == n)
            if stays[-1]:
                left.pop(0)
        fits = not left
    if not fits or (0 not in small and 0 in large):
        raise InputError(f"output shape {list(small)} is no reduction of {list(large)}")
    return stays


def _same(inputs: Sequence[Shape], outputs: Sequence[Shape]) -> list[Strided]:
    if list(inputs) != list(outputs):
        raise InputError("as many outputs as inputs are needed, each of its input's shape")
    return [Strided(k, (1,) * len(s), s) for k, s in enumerate(outputs)]


def _reduce(inputs: Sequence[Shape], outputs: Sequence[Shape]) -> list[Strided]:
    large, found = inputs[0], []
    for small in outputs:
        stays = zip(kept(small, large), large, strict=True)
        counts = tuple(n if k else 1 for k, n in stays)
        found.append(Strided(0, (1,) * len(large), counts))
    return found


def _broadcast(inputs: Sequence[Shape], outputs: Sequence[Shape]) -> list[Strided]:
    large, found = inputs[0], []
    for small in outputs:
        full = (1,) * (len(large) - len(small)) + small
        empty = 0 not in small and 0 in large
        if len(full) != len(large) or empty or any(m not in (1, n) for m, n in _along(full, large)):
            raise InputError(f"output shape {list(small)} does not broadcast to {list(large)}")
        found.append(Strided(0, (1,) * len(large), full))
    return found


def _pool(inputs: Sequence[Shape], outputs: Sequence[Shape]) -> list[Strided]:
    large, found = inputs[0], []
    for small in outputs:
        if len(small) != len(large) or any(m > n for m, n in _along(small, large)):
            raise InputError(f"output shape {list(small)} has no windows over {list(large)}")
        steps = tuple(max(n // max(m, 1), 1) for m, n in _along(small, large))
        found.append(Strided(0, steps, small))
    return found


_STRIDED: dict[str, Callable[[Sequence[Shape], Sequence[Shape]], list[Strided]]] = {
    "same": _same,
    "normalisation": _reduce,
    "reduce": _reduce,
    "broadcast": _broadcast,
    "pool": _pool,
}


Array = NDArray[np.int64]

Hook = Callable[..., Any]
"""``(inputs, shapes, memory)``, returning a list of arrays of tiles, one for each output."""

Reads = Callable[[list[Shape], list[Shape]], Any]
"""``(shapes of inputs, shapes of outputs)``, returning for each output an array of shape
``(elements, k)``: the elements, counted through all inputs, that decide an output element."""

AnyHook = TypeVar("AnyHook", bound=Hook)


def same(inputs: list[Array], shapes: list[Shape], memory: TileMemory) -> list[Array]:
    """Lay every output like the input of the same number, which has its shape.

    ``out_k[i]`` lies where ``in_k[i]`` does.
    """
    return [tiles.reshape(shape) for tiles, shape in zip(inputs, shapes, strict=True)]


def normalisation(inputs: list[Array], shapes: list[Shape], memory: TileMemory) -> list[Array]:
    """Lay outputs like the first input, and statistics of it as :func:`reduce` does.

    ``out[i]`` lies where ``in_0[i]`` does; an output of another shape is a statistic.
    """
    first = inputs[0]
    statistics = reduce(inputs, [s for s in shapes if s != first.shape], memory)
    return [first.copy() if s == first.shape else statistics.pop(0) for s in shapes]


def reduce(inputs: list[Array], shapes: list[Shape], memory: TileMemory) -> list[Array]:
    """Lay outputs like the first element of each range of the first input that is reduced.

    ``out[i]`` lies where ``in_0[j]`` does, ``j`` being ``i`` along the dimensions that are kept
    and 0 along the others.  An output of the same rank has 1 where it is reduced; in one of
    lower rank, each dimension is the first of the input that fits, from left to right.
    """
    first = inputs[0]
    return [
        first[tuple(slice(None) if k else slice(0, 1) for k in kept(s, first.shape))].reshape(s)
        for s in shapes
    ]


def broadcast(inputs: list[Array], shapes: list[Shape], memory: TileMemory) -> list[Array]:
    """Lay operands like the first element of the first input that they are broadcast to.

    ``out[i]`` lies where ``in_0[j]`` does, ``j`` being ``i`` along common dimensions, counted from
    the last as in NumPy, and 0 along those that the operand lacks, or has as 1.
    """
    first = inputs[0]
    found = []
    for shape in shapes:
        if math.prod(shape):
            taken = first[(0,) * (first.ndim - len(shape))]
            found.append(np.asarray(taken[np.ix_(*map(np.arange, shape))] if shape else taken))
        else:
            found.append(np.zeros(shape, np.int64))
    return found


def pool(inputs: list[Array], shapes: list[Shape], memory: TileMemory) -> list[Array]:
    """Lay outputs like the first element of each window of the first input.

    ``out[i]`` lies where ``in_0[j]`` does, ``j_d = i_d * (n_d // m_d)`` for ``n_d`` indices of the
    input and ``m_d`` of the output: windows begin so far apart, and the first at 0.
    """
    first = inputs[0]
    return [
        first[
            np.ix_(*[np.arange(m) * (n // max(m, 1)) for m, n in zip(s, first.shape, strict=True)])
        ].reshape(s)
        for s in shapes
    ]


HOOKS: dict[str, Hook] = {
    "same": same,
    "normalisation": normalisation,
    "reduce": reduce,
    "broadcast": broadcast,
    "pool": pool,
}
"""Hooks by name; :func:`hook` adds to them."""

BUILT_IN = frozenset(HOOKS)
"""The names that users' hooks cannot take."""

READS: dict[str, Reads] = {}
"""What users' hooks say that they read."""


def hook(name: str, *, reads: Reads | None = None) -> Callable[[AnyHook], AnyHook]:
    """Return a decorator that makes a function the hook of a name.

    Parameters
    ----------
    name
        What barriers name.  A name of this package cannot be taken; one of your own can be
        taken again, and then means the new function.
    reads
        Says which input elements decide each output element, from the shapes of inputs and
        outputs (:data:`Reads`).  Without it every output element may depend on all elements of
        all inputs, which is much harder to solve.

    Raises
    ------
    InputError
        If the name cannot be taken, or the function does not take inputs, shapes and memory.

    Examples
    --------
    >>> @hook("sorted")
    ... def ascending(inputs, shapes, memory):
    ...     return [np.sort(inputs[0].reshape(-1)).reshape(shapes[0])]
    """
    if not isinstance(name, str) or not name:
        raise InputError(f"a hook's name must be a text, got {name!r}")
    if name in BUILT_IN:
        raise InputError(f"hook {name!r} is one of the package's own; take another name")

    def add(function: AnyHook) -> AnyHook:
        try:
            inspect.signature(function).bind([], [], None)
        except TypeError:
            raise InputError(f"hook {name!r} must be a function (inputs, shapes, memory)") from None
        HOOKS[name] = function
        READS.pop(name, None)
        if reads is not None:
            READS[name] = reads
        return function

    return add


def strided_outputs(
    name: str, inputs: Sequence[Shape], outputs: Sequence[Shape]
) -> list[Strided] | None:
    """Return how the outputs of a built-in hook lie; ``None`` for hooks of users.

    Raises
    ------
    InputError
        If there is no such hook, or it does not fit the shapes.
    """
    if name not in HOOKS:
        raise InputError(f"unknown hook {name!r}; known: {', '.join(HOOKS)}")
    if name not in BUILT_IN:
        return None
    try:
        return strided(name, inputs, outputs)
    except InputError as error:
        raise InputError(f"hook {name!r}: {error.reason}") from None


def read_elements(
    name: str, inputs: Sequence[Shape], outputs: Sequence[Shape]
) -> list[Array] | None:
    """Return which input elements decide each output element of a user's hook, if it says so.

    Returns
    -------
    list of array
        For each output shape ``(elements, k)``: elements counted through all inputs.

    Raises
    ------
    InputError
        If what it says is nothing of the kind.
    """
    if name not in READS:
        return None
    total = sum(map(math.prod, inputs))
    try:
        found = [np.asarray(x) for x in READS[name](list(inputs), list(outputs))]
    except Exception as error:  # a user's function may raise anything
        reason = f"its reads failed with {type(error).__name__}: {error}"
        raise InputError(f"hook {name!r}: {reason}") from error
    fits = len(found) == len(outputs) and all(
        x.ndim == 2
        and len(x) == math.prod(shape)
        and (not x.size or (x.dtype.kind in "iu" and x.min() >= 0 and x.max() < total))
        for x, shape in zip(found, outputs, strict=False)
    )
    if not fits:
        raise InputError(
            f"hook {name!r}: its reads must be an array (elements, k) for each output, of "
            f"elements 0..{total - 1} counted through all inputs"
        )
    return [x.astype(np.int64) for x in found]


def hooked_tiles(
    name: str, inputs: Sequence[Array], shapes: Sequence[Shape], memory: TileMemory
) -> list[Array]:
    """Return the tiles of a barrier's outputs.

    Parameters
    ----------
    name
        The hook.
    inputs
        The tiles of each input, in its shape.
    shapes
        The shape of each output.
    memory
        The machine.

    Raises
    ------
    InputError
        If there is no such hook, it does not fit the shapes, it fails, or what it returns is
        not an array of tiles of the machine for each output.

    Examples
    --------
    >>> tiles = np.array([[0, 1], [2, 3]])
    >>> [out] = hooked_tiles("reduce", [tiles], [(2,)], TileMemory(4, 1024))
    >>> out.tolist()
    [0, 2]
    """
    wanted = [tuple(shape) for shape in shapes]
    strided_outputs(name, [tiles.shape for tiles in inputs], wanted)  # or the shapes do not fit
    try:
        found = HOOKS[name]([tiles.copy() for tiles in inputs], list(wanted), memory)
    except Exception as error:  # a user's function may raise anything
        if name in BUILT_IN:
            raise
        raise InputError(f"hook {name!r}: failed with {type(error).__name__}: {error}") from error
    if not isinstance(found, list | tuple) or len(found) != len(wanted):
        raise InputError(f"hook {name!r}: must return a list of {len(wanted)} arrays of tiles")
    try:
        return [
            _checked(k, tiles, shape, memory)
            for k, (tiles, shape) in enumerate(zip(found, wanted, strict=True))
        ]
    except InputError as error:
        raise InputError(f"hook {name!r}: {error.reason}") from None


def _checked(k: int, given: Any, shape: Shape, memory: TileMemory) -> Array:
    try:
        tiles = np.asarray(given)
    except ValueError:  # rows of different lengths
        raise InputError(f"output {k} is no array of tiles") from None
    if tiles.shape != shape:
        raise InputError(f"output {k} has shape {list(tiles.shape)}, {list(shape)} is needed")
    if tiles.dtype.kind not in "iu" and tiles.size:
        raise InputError(f"output {k} holds {tiles.dtype}, integers are needed")
    wrong = tiles[(tiles < 0) | (tiles >= memory.tiles)]
    if wrong.size:
        raise InputError(
            f"output {k}: tile {wrong.flat[0]} is out of range; "
            f"there are {memory.tiles} tiles, from 0"
        )
    return tiles.astype(np.int64)
