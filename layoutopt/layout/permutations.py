"""Permutations of axes, and what ties a framework's order of axes to a library's.

A permutation is a tuple of the numbers 0 to n - 1.  The one that travels with a tensor has at
``i`` where the framework's shape has the library's axis ``i``: a framework that writes NHWC, with
a library that thinks NCHW, gives ``(0, 3, 1, 2)``.  Terms and example are those of oneDNN's RFC
"Tensor representation now and then, here and there".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from layoutopt.layout.parts import LayoutError, sizes

Permutation: TypeAlias = tuple[int, ...]


def checked(permutation: Iterable[int], rank: int | None = None) -> Permutation:
    """Return a permutation, maybe of a given rank, as a tuple."""
    given = sizes("permutation", permutation, count=rank)
    for at, number in enumerate(given):
        if number >= len(given):
            raise LayoutError(f"permutation {given}: {number} is not in 0 to {len(given) - 1}")
        if number in given[:at]:
            raise LayoutError(f"permutation {given}: {number} is there twice")
    return given


def parse_permutation(text: str) -> Permutation:
    """Read a permutation: ``"0312"`` or ``"0,3,1,2"``, in round brackets or not."""
    bare = re.sub(r"\s", "", str(text))
    inner = re.fullmatch(r"\((.*)\)", bare)
    bare = inner[1] if inner else bare
    if not isinstance(text, str) or not re.fullmatch(r"[0-9]*|[0-9]+(,[0-9]+)+,?|[0-9]+,", bare):
        raise LayoutError(f"a permutation is written as 0312 or 0,3,1,2; got {text!r}")
    return checked(map(int, re.findall(r"[0-9]+" if "," in bare else r"[0-9]", bare)))


def inverse(permutation: Iterable[int]) -> Permutation:
    """Return the permutation that undoes one: ``inverse(p)[p[i]] == i``."""
    p = checked(permutation)
    return tuple(sorted(range(len(p)), key=p.__getitem__))


def compose(outer: Iterable[int], inner: Iterable[int]) -> Permutation:
    """Return two permutations in one: ``compose(p, q)[i] == p[q[i]]``.

    Transposing by ``p`` and then by ``q``, as NumPy does, is transposing by ``compose(p, q)``.
    """
    p = checked(outer)
    return tuple(p[i] for i in checked(inner, len(p)))


def permutation_between(library: str, framework: str) -> Permutation:
    """Return where a framework's order has each axis of a library's.

    The same letters in two orders: ``"NCHW"`` and ``"NHWC"`` give ``(0, 3, 1, 2)``.
    """
    if len(set(library)) < len(library) or sorted(library) != sorted(framework):
        raise LayoutError(f"{library!r} and {framework!r} must have the same letters, each once")
    return tuple(map(framework.index, library))


def library_shape(shape: Sequence[int], permutation: Iterable[int]) -> tuple[int, ...]:
    """Return a framework's shape in the library's order: entry ``i`` is ``shape[p[i]]``."""
    given = sizes("shape", shape)
    return tuple(given[i] for i in checked(permutation, len(given)))


def framework_shape(dims: Sequence[int], permutation: Iterable[int]) -> tuple[int, ...]:
    """Return a library's dims in the framework's order; undoes :func:`library_shape`."""
    return library_shape(dims, inverse(permutation))


def required_permutation(producer: Iterable[int], consumer: Iterable[int]) -> Permutation:
    """Return where a consumer's library axes are among its producer's.

    A tensor made by one op is read by another that gives the framework's axes another meaning:
    library axis ``i`` of the producer, the framework's ``producer[i]``, is the consumer's
    ``inverse(consumer)[producer[i]]``.  The bytes stay where they are:
    ``descriptor.permute_axes(required_permutation(producer, consumer))`` is what the consumer
    takes.  Data in NHWC ``(0, 3, 1, 2)`` read as weights in HWIO ``(3, 2, 0, 1)`` give ``(2, 0, 3,
    1)``.  The RFC writes it producer · consumer⁻¹, from left to right.
    """
    return compose(inverse(consumer), producer)
