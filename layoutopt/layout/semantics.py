"""Axis meanings carried along, so that a wrong use is noticed.

A memory descriptor does not tell data from weights: the output of one convolution fits as the
weights of another, and nothing catches it (the RFC's conclusion).  Axes with names do.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod
from typing import TypeAlias

from layoutopt.layout.parts import LayoutError, sizes
from layoutopt.layout.permutations import checked, inverse
from layoutopt.layout.reshape import regroup


@dataclass(frozen=True, slots=True)
class AxisDigit:
    """A digit of the index along a named axis: ``index // step % size``.

    Parameters
    ----------
    name
        The axis, usually one letter.
    extent
        The axis' size.
    step, size
        How far it steps, and how many values it has.
    """

    name: str
    extent: int
    step: int
    size: int

    def __str__(self) -> str:
        split = f"/{self.step}" if self.step > 1 else ""
        return self.name + split + (f"%{self.size}" if self.step * self.size < self.extent else "")


Parts: TypeAlias = tuple[AxisDigit, ...]
"""What an axis means: the digits of its index, the highest first; none if it means nothing."""


@dataclass(frozen=True)
class SemanticAxes:
    """The meaning of each logical axis of a tensor.

    Goes with a :class:`~layoutopt.layout.descriptor.Descriptor`, whose ``permute_axes`` and
    ``reshape`` it has, too.

    Parameters
    ----------
    parts
        Of each axis, what it means.
    """

    parts: tuple[Parts, ...]

    @classmethod
    def named(cls, names: Iterable[str], dims: Sequence[int]) -> SemanticAxes:
        """Name the axes of a tensor.

        Parameters
        ----------
        names
            A name for each, usually a letter: ``"NCHW"`` for data, ``"OIHW"`` for weights.
        dims
            The size of each.

        Raises
        ------
        LayoutError
            If there are more names than sizes, or fewer, or one name twice.
        """
        words = tuple(map(str, names))
        if len(set(words)) < len(words):
            raise LayoutError(f"axes {', '.join(words)} must have different names")
        known = sizes("dims", dims, count=len(words))
        return cls(tuple((AxisDigit(w, n, 1, n),) for w, n in zip(words, known, strict=True)))

    @property
    def dims(self) -> tuple[int, ...]:
        """The size of each axis."""
        return tuple(prod(part.size for part in parts) for parts in self.parts)

    @property
    def names(self) -> tuple[str, ...]:
        """What each axis means, in short.

        ``"C"`` is the axis C, ``"HW"`` two that were joined, ``"C/4"`` and ``"C%4"`` quotient and
        remainder of one that was split, and ``"1"`` an axis of size 1 that means nothing.
        """
        return tuple("".join(map(str, parts)) or "1" for parts in self.parts)

    def permute_axes(self, permutation: Iterable[int]) -> SemanticAxes:
        """Reorder the axes: axis ``d`` becomes axis ``permutation[d]``.

        Raises
        ------
        LayoutError
            If it is no permutation of the axes.
        """
        source = inverse(checked(permutation, len(self.parts)))
        return SemanticAxes(tuple(self.parts[axis] for axis in source))

    def reshape(self, dims: Sequence[int]) -> SemanticAxes:
        """Give the axes that a reshape in row-major order makes of these.

        Parts of one axis that come together again are that axis.  Axes that are joined and then
        split elsewhere, as (4, 6) to (3, 8), have no meaning but that of both together.

        Raises
        ------
        LayoutError
            If the number of elements is another, or an axis of size 0 is not kept as it is.
        """
        new = sizes("dims", dims)
        made: list[Parts] = [()] * len(new)
        for old, to in regroup(self.dims, new):
            joined = _joined(part for axis in old for part in self.parts[axis])
            wanted = [new[axis] for axis in to]
            for axis, parts in zip(to, _split(joined, wanted), strict=True):
                made[axis] = parts
        return SemanticAxes(tuple(made))


def consumed_as(axes: SemanticAxes | Sequence[str], wanted: Sequence[str]) -> str | None:
    """Return what is wrong with reading a tensor's axes as others; ``None`` if nothing is.

    Parameters
    ----------
    axes
        What the axes mean, or their names.
    wanted
        What their reader takes them for: ``"NCHW"`` for a convolution's data, ``"OIHW"`` for its
        weights, or these letters in the framework's order.

    Returns
    -------
    str or None
        One line.  An axis of size 1 that means nothing is never wrong.
    """
    have = axes.names if isinstance(axes, SemanticAxes) else tuple(axes)
    case = f"{_kind(have)} ({', '.join(have)}) consumed as {_kind(wanted)} ({', '.join(wanted)})"
    if len(have) != len(wanted):
        return f"{case}: {len(have)} axes, not {len(wanted)}"
    wrong = [f"{a} is read as {b}" for a, b in zip(have, wanted, strict=True) if a not in ("1", b)]
    return f"{case}: {', '.join(wrong)}" if wrong else None


def _kind(names: Sequence[str]) -> str:
    """Say whose axes they are, by letters that only one kind of tensor has."""
    if {"O", "K"} & set(names):
        return "a convolution's weights"
    return "a convolution's data" if {"N", "C"} <= set(names) else "a tensor"


def _joined(parts: Iterable[AxisDigit]) -> Parts:
    """Put neighbouring digits of one axis together."""
    found: list[AxisDigit] = []
    for part in parts:
        last = found[-1] if found else None
        if last and last.name == part.name and last.step == part.step * part.size:
            found[-1] = AxisDigit(part.name, part.extent, part.step, last.size * part.size)
        else:
            found.append(part)
    return tuple(found)


def _split(parts: Parts, wanted: Sequence[int]) -> list[Parts]:
    """Cut digits into axes of the wanted sizes."""
    if len(wanted) == 1:
        return [parts]
    rest, made = list(parts), []
    for size in reversed(wanted):
        taken: list[AxisDigit] = []
        while size > 1:
            part = rest.pop()
            cut = min(size, part.size)
            if size % cut or part.size % cut:
                total = prod(wanted)
                whole = AxisDigit("".join(map(str, parts)), total, 1, total)
                return _split((whole,), wanted)
            taken.insert(0, AxisDigit(part.name, part.extent, part.step, cut))
            if cut < part.size:
                rest.append(AxisDigit(part.name, part.extent, part.step * cut, part.size // cut))
            size //= cut
        made.append(tuple(taken))
    return made[::-1]
