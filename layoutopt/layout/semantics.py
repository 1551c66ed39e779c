"""Axis meanings carried along, so that a wrong use is noticed.

A memory descriptor does not tell data from weights: the output of one convolution fits as the
weights of another, and nothing catches it (the RFC's conclusion).  Axes with names do.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod

from layoutopt.layout.factors import AxisFactor, joined, rows, within
from layoutopt.layout.parts import LayoutError, sizes
from layoutopt.layout.permutations import checked, inverse
from layoutopt.layout.reshape import regroup


@dataclass(frozen=True)
class SemanticAxes:
    """The meaning of each logical axis of a tensor.

    Goes with a :class:`~layoutopt.layout.descriptor.Descriptor`, whose ``permute_axes`` and
    ``reshape`` it has, too.  ``known`` are axes that have a name, usually one letter, each with its
    size; ``form`` the factors of these that each axis holds, outermost first, none if it means
    nothing.
    """

    known: tuple[tuple[str, int], ...]
    form: tuple[tuple[AxisFactor, ...], ...]

    @classmethod
    def named(cls, names: Iterable[str], dims: Sequence[int]) -> SemanticAxes:
        """Name the axes of a tensor: ``"NCHW"`` for data, ``"OIHW"`` for weights."""
        words = tuple(map(str, names))
        if len(set(words)) < len(words):
            raise LayoutError(f"axes {', '.join(words)} must have different names")
        known = sizes("dims", dims, count=len(words))
        form = tuple((AxisFactor(axis, 1, n),) for axis, n in enumerate(known))
        return cls(tuple(zip(words, known, strict=True)), form)

    @property
    def dims(self) -> tuple[int, ...]:
        """The size of each axis."""
        return tuple(prod(factor.size for factor in factors) for factors in self.form)

    @property
    def names(self) -> tuple[str, ...]:
        """What each axis means, in short.

        ``"C"`` is the axis C, ``"HW"`` two that were joined, ``"C/4"`` and ``"C%4"`` quotient and
        remainder of one that was split, and ``"1"`` an axis of size 1 that means nothing.
        """
        return tuple(_text(factors, self.known) or "1" for factors in self.form)

    def permute_axes(self, permutation: Iterable[int]) -> SemanticAxes:
        """Reorder the axes: axis ``d`` becomes axis ``permutation[d]``."""
        source = inverse(checked(permutation, len(self.form)))
        return SemanticAxes(self.known, tuple(self.form[axis] for axis in source))

    def reshape(self, dims: Sequence[int]) -> SemanticAxes:
        """Give the axes that a reshape in row-major order makes of these.

        Factors of one axis that come together again are that axis.  Axes that are joined and then
        split elsewhere, as (4, 6) to (3, 8), have no meaning but that of both together.
        """
        new = sizes("dims", dims)
        made: list[tuple[AxisFactor, ...]] = [()] * len(new)
        known = list(self.known)
        for old, to in regroup(self.dims, new):
            row = joined(factor for axis in old for factor in self.form[axis])
            wanted = [new[axis] for axis in to]
            cut = _cut(row, wanted)
            if cut is None:
                known.append((_text(row, known), prod(wanted)))
                cut = _cut([AxisFactor(len(known) - 1, 1, prod(wanted))], wanted) or []
            for axis, factors in zip(to, cut, strict=True):
                made[axis] = factors
        return SemanticAxes(tuple(known), tuple(made))


def _text(factors: Iterable[AxisFactor], known: Sequence[tuple[str, int]]) -> str:
    """Return the names of factors: ``C/4`` is a quotient, ``C%4`` a remainder."""
    found = ""
    for axis, stride, size in factors:
        name, extent = known[axis]
        found += name + (f"/{stride}" if stride > 1 else "")
        found += f"%{size}" if stride * size < extent else ""
    return found


def consumed_as(axes: SemanticAxes | Sequence[str], wanted: Sequence[str]) -> str | None:
    """Return what is wrong with reading a tensor's axes as others; ``None`` if nothing is.

    ``wanted`` is what their reader takes them for: ``"NCHW"`` for a convolution's data, ``"OIHW"``
    for its weights, or these letters in the framework's order.  An axis that means nothing is never
    wrong.
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


def _cut(row: Sequence[AxisFactor], wanted: Sequence[int]) -> list[tuple[AxisFactor, ...]] | None:
    """Cut factors side by side into axes of the wanted sizes; None if that cuts through them."""
    if len(wanted) == 1:
        return [tuple(row)]
    cells = rows(range(len(row)), tuple(factor.size for factor in row)) or []
    made = []
    for _, stride, size in reversed(rows(range(len(wanted)), tuple(wanted)) or []):
        parts = within(stride, size, cells)
        if parts is None:
            return None
        made.append(tuple(AxisFactor(row[k].axis, row[k].stride * step, n) for k, step, n in parts))
    return made
