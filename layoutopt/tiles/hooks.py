"""Hooks by name: from the tiles of a barrier's inputs to those of its outputs.

A hook is a function ``(inputs, shapes, memory)``.  ``inputs`` holds an array of tiles for each
input, of the input's shape; ``shapes`` the shapes of the outputs; ``memory`` is the machine.  It
returns a list with an array of tiles for each output.  Equal inputs must give equal outputs.

The package's own hooks lay each output like every so-many-th element of an input.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from layoutopt.base.errors import InputError, errors_of
from layoutopt.tiles.blocks import Array
from layoutopt.tiles.memory import TileMemory

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Strided:
    """An output that lies like every so-many-th element of input number ``source``.

    Element ``f`` of the output, in row-major order, has index ``i`` in an array of shape
    ``counts``; it lies where element ``(i_0 * strides_0, i_1 * strides_1, ...)`` of the input does.
    """

    source: int
    strides: tuple[int, ...]
    counts: tuple[int, ...]

    def taken(self, inputs: Sequence[Array]) -> Array:
        """Return the input's elements, in shape ``counts``."""
        index: list[Any] = [
            slice(0, max(0, (n - 1) * step + 1), step)
            for n, step in zip(self.counts, self.strides, strict=True)
        ]
        return inputs[self.source][(*index, ...)]  # the ellipsis keeps a rank-0 array an array


def _kept(small: Shape, large: Shape) -> list[bool]:
    """Return which dimensions a reduction keeps."""
    if len(small) == len(large):
        stays = [m == n for m, n in zip(small, large, strict=True)]
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
    """Lay output ``k`` like input ``k``, which has its shape."""
    if list(inputs) != list(outputs):
        raise InputError("as many outputs as inputs are needed, each of its input's shape")
    return [Strided(k, (1,) * len(s), s) for k, s in enumerate(outputs)]


def _reduce(inputs: Sequence[Shape], outputs: Sequence[Shape]) -> list[Strided]:
    """Lay outputs like the first element of each range of the first input that is reduced.

    An output of the input's rank has 1 where it is reduced; in one of lower rank, each dimension
    is the first of the input that fits, from left to right.
    """
    large, found = inputs[0], []
    for small in outputs:
        stays = zip(_kept(small, large), large, strict=True)
        counts = tuple(n if k else 1 for k, n in stays)
        found.append(Strided(0, (1,) * len(large), counts))
    return found


def _broadcast(inputs: Sequence[Shape], outputs: Sequence[Shape]) -> list[Strided]:
    """Lay operands like the first element of the first input that they are broadcast to."""
    large, found = inputs[0], []
    for small in outputs:
        full = (1,) * (len(large) - len(small)) + small
        empty = 0 not in small and 0 in large
        fits = len(full) == len(large) and all(
            m in (1, n) for m, n in zip(full, large, strict=True)
        )
        if empty or not fits:
            raise InputError(f"output shape {list(small)} does not broadcast to {list(large)}")
        found.append(Strided(0, (1,) * len(large), full))
    return found


def _pool(inputs: Sequence[Shape], outputs: Sequence[Shape]) -> list[Strided]:
    """Lay outputs like the first element of each window of the first input.

    For ``n`` indices of the input and ``m`` of the output windows begin ``n // m`` apart.
    """
    large, found = inputs[0], []
    for small in outputs:
        if len(small) != len(large) or any(m > n for m, n in zip(small, large, strict=True)):
            raise InputError(f"output shape {list(small)} has no windows over {list(large)}")
        steps = tuple(max(n // max(m, 1), 1) for m, n in zip(small, large, strict=True))
        found.append(Strided(0, steps, small))
    return found


BUILT_IN: dict[str, Callable[[Sequence[Shape], Sequence[Shape]], list[Strided]]] = {
    "same": _same,
    "normalisation": _reduce,  # what has the input's shape lies like it
    "reduce": _reduce,
    "broadcast": _broadcast,
    "pool": _pool,
}
"""The package's own hooks, by names that users' hooks cannot take."""

Hook = Callable[..., Any]
"""``(inputs, shapes, memory)``, returning a list of arrays of tiles, one for each output."""

Reads = Callable[[list[Shape], list[Shape]], Any]
"""``(shapes of inputs, shapes of outputs)``, returning for each output an array of shape
``(elements, k)``: the elements, counted through all inputs, that decide an output element."""

AnyHook = TypeVar("AnyHook", bound=Hook)

HOOKS: dict[str, tuple[Hook, Reads | None]] = {}
"""Users' hooks by name, and what they say that they read; :func:`hook` adds to them."""


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
        HOOKS[name] = function, reads
        return function

    return add


def strided_outputs(
    name: str, inputs: Sequence[Shape], outputs: Sequence[Shape]
) -> list[Strided] | None:
    """Return how the outputs of a built-in hook lie; ``None`` for hooks of users."""
    if name in HOOKS:
        return None
    if name not in BUILT_IN:
        raise InputError(f"unknown hook {name!r}; known: {', '.join([*BUILT_IN, *HOOKS])}")
    with errors_of(f"hook {name!r}"):
        if not inputs:
            raise InputError("needs an input")
        return BUILT_IN[name](inputs, outputs)


def read_elements(
    name: str, inputs: Sequence[Shape], outputs: Sequence[Shape]
) -> list[Array] | None:
    """Return which input elements decide each output element of a user's hook, if it says so.

    For each output shape ``(elements, k)``: elements counted through all inputs.
    """
    reads = HOOKS[name][1] if name in HOOKS else None
    if reads is None:
        return None
    total = sum(map(math.prod, inputs))
    try:
        found = [np.asarray(x) for x in reads(list(inputs), list(outputs))]
    except (Exception, SystemExit) as error:  # a user's function may raise anything
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
    """Return the tiles of a barrier's outputs, in their shapes, from those of its inputs.

    Examples
    --------
    >>> tiles = np.array([[0, 1], [2, 3]])
    >>> [out] = hooked_tiles("reduce", [tiles], [(2,)], TileMemory(4, 1024))
    >>> out.tolist()
    [0, 2]
    """
    wanted = [tuple(shape) for shape in shapes]
    lies = strided_outputs(name, [tiles.shape for tiles in inputs], wanted)
    if lies is not None:
        return [how.taken(inputs).reshape(shape) for how, shape in zip(lies, wanted, strict=True)]
    with errors_of(f"hook {name!r}"):
        try:
            found = HOOKS[name][0]([tiles.copy() for tiles in inputs], list(wanted), memory)
        except (Exception, SystemExit) as error:  # a user's function may raise anything
            raise InputError(f"failed with {type(error).__name__}: {error}") from error
        if not isinstance(found, list | tuple) or len(found) != len(wanted):
            raise InputError(f"must return a list of {len(wanted)} arrays of tiles")
        given = enumerate(zip(found, wanted, strict=True))
        return [_checked(k, tiles, shape, memory) for k, (tiles, shape) in given]


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
