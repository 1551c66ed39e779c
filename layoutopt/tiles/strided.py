"""How the outputs of built-in hooks lie: like every so-many-th element of an input."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from layoutopt.errors import InputError

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
