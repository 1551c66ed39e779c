"""An unwinding instance as the sets and tables of the mathematical statement.

Plain Python over plain lists, element by element: slow, small, and independent of the
package, so that package and statement can find each other's mistakes.  The symbols are
those of ``README.md`` beside this file.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import prod
from typing import Any

Element = tuple[str, int, int]
"""Op, output, flat position."""

Held = tuple[list[int], list[Element]]
"""A tensor: its shape, and where each of its elements comes from."""


@dataclass(frozen=True)
class Statement:
    """The data of one instance.

    Parameters
    ----------
    elements
        ``E``: the sink elements.
    locations
        ``L``: the locations of sources, fixed points and barriers.
    agree
        ``w``: ``{(e, f): value}`` for two elements of ``E``, by number.
    earn
        ``r``: ``{(e, l): value}`` for an element and a location, by number.
    constant
        What is earned whatever is chosen.
    barrier_of
        ``beta``: the barrier that each location belongs to, or ``None``.
    reads
        ``D``: for each barrier the elements of ``E`` that its inputs hold.
    arcs
        ``A``: pairs of barriers of which the second reads an output of the first.
    """

    elements: list[Element]
    locations: list[Any]
    agree: dict[tuple[int, int], Fraction]
    earn: dict[tuple[int, int], Fraction]
    constant: Fraction
    barrier_of: list[str | None]
    reads: dict[str, set[int]]
    arcs: set[tuple[str, str]]


def positions(shape: list[int]) -> list[tuple[int, ...]]:
    """Return all indices of a shape in row-major order."""
    return list(product(*map(range, shape)))


def view(op: dict[str, Any], inputs: list[Held]) -> Held:
    """Return shape and elements of a view's output, from those of its inputs."""
    shape, held = inputs[0]
    at = dict(zip(positions(shape), held, strict=True))
    kind = op["type"]
    if kind == "sum_like":
        first: int = op["unwindable_inputs"][0]
        return inputs[first]
    if kind == "identity":
        return shape, held
    if kind == "flatten":
        return [len(held)], held
    if kind == "squeeze":
        return [n for n in shape if n != 1], held
    if kind == "reshape":
        return op["shape"], held
    if kind == "dim_shuffle":
        perm = op["permutation"]
        out = [shape[p] for p in perm]
        back = [perm.index(d) for d in range(len(perm))]
        return out, [at[tuple(i[back[d]] for d in range(len(i)))] for i in positions(out)]
    if kind == "reverse":
        turned = [
            tuple(n - 1 - k if d in op["dims"] else k for d, (n, k) in enumerate(zip(shape, i)))
            for i in positions(shape)
        ]
        return shape, [at[i] for i in turned]
    if kind == "slice":
        kept = [list(range(a, b)) for a, b in zip(op["lower"], op["upper"])]
    elif kind == "sub_sample":
        kept = [list(range(0, n, s)) for n, s in zip(shape, op["strides"])]
    elif kind == "sett_sample":
        kept = [[i for i in range(n) if is_on(i, s)] for n, s in zip(shape, op["setts"])]
    elif kind == "concat":
        return concat(op["axis"], inputs)
    elif kind == "expand":
        out = op["shape"]
        lead = len(out) - len(shape)
        low = [tuple(k if n > 1 else 0 for k, n in zip(i[lead:], shape)) for i in positions(out)]
        return out, [at[i] for i in low]
    return [len(k) for k in kept], [at[i] for i in product(*kept)]


def is_on(i: int, stripes: list[list[int]]) -> bool:
    """Return whether nested stripes ``[on, off, phase]`` keep index ``i``."""
    for on, off, phase in stripes:
        i = (i - phase) % (on + off)
        if i >= on:
            return False
    return True


def concat(axis: int, inputs: list[Held]) -> Held:
    """Return shape and elements of tensors joined along one axis."""
    at = {}
    start = 0
    for shape, held in inputs:
        for i, element in zip(positions(shape), held, strict=True):
            at[(*i[:axis], i[axis] + start, *i[axis + 1 :])] = element
        start += shape[axis]
    out = list(inputs[0][0])
    out[axis] = start
    return out, [at[i] for i in positions(out)]


def state(instance: dict[str, Any] | str) -> Statement:
    """Return the statement of an instance, given as the JSON text or as its document."""
    given: dict[str, Any] = (
        json.loads(instance, parse_float=Fraction) if isinstance(instance, str) else instance
    )
    tensors: dict[str, list[Element]] = {}
    shape_of: dict[str, list[int]] = {}
    own: dict[Element, Any] = {}  # of each element that has a location of its own
    barriers: dict[str, list[str]] = {}
    for op in given["ops"]:
        name, kind = op["id"], op["type"]
        if kind in ("barrier", "sum_like_reduce"):
            barriers[name] = op["inputs"]
        if kind in ("sink", "source", "fixed_point", "barrier", "sum_like_reduce"):
            shapes = op["shapes"] if "shapes" in op else [op["shape"]]
            outputs = [
                (shape, [(name, o, i) for i in range(prod(shape))])
                for o, shape in enumerate(shapes)
            ]
        else:
            outputs = [view(op, [(shape_of[x], tensors[x]) for x in op["inputs"]])]
        for o, (shape, held) in enumerate(outputs):
            for key in (f"{name}:{o}", name):
                shape_of[key], tensors[key] = shape, held
            if kind in ("source", "fixed_point", "barrier", "sum_like_reduce"):
                own.update(zip(held, op.get("mapping", held), strict=True))
    roots = dict.fromkeys(e for held in tensors.values() for e in held)
    elements = [e for e in roots if e not in own]
    locations = list(dict.fromkeys(own.values()))
    agree, earn, constant = _values(given["valued_pairs"], tensors, own, elements, locations)
    held_by = {b: [e for x in inputs for e in tensors[x]] for b, inputs in barriers.items()}
    number = {e: k for k, e in enumerate(elements)}
    return Statement(
        elements,
        locations,
        agree,
        earn,
        constant,
        barrier_of=[p[0] if isinstance(p, tuple) and p[0] in barriers else None for p in locations],
        reads={b: {number[e] for e in held if e in number} for b, held in held_by.items()},
        arcs={(e[0], b) for b, held in held_by.items() for e in held if e[0] in barriers},
    )


def _values(
    pairs: list[dict[str, Any]],
    tensors: dict[str, list[Element]],
    own: dict[Element, Any],
    elements: list[Element],
    locations: list[Any],
) -> tuple[dict[tuple[int, int], Fraction], dict[tuple[int, int], Fraction], Fraction]:
    """Return what agreement, what locations and what anything earns."""
    number = {e: k for k, e in enumerate(elements)}
    place = {where: k for k, where in enumerate(locations)}
    agree: dict[tuple[int, int], Fraction] = {}
    earn: dict[tuple[int, int], Fraction] = {}
    constant = Fraction(0)
    for pair in pairs:
        value = Fraction(pair["value"])
        for x, y in zip(tensors[pair["a"]], tensors[pair["b"]], strict=True):
            if x == y or (x in own and y in own and own[x] == own[y]):
                constant += value
            elif x in number and y in number:
                key = min(number[x], number[y]), max(number[x], number[y])
                agree[key] = agree.get(key, Fraction(0)) + value
            elif x in number or y in number:
                free, fixed = (x, y) if x in number else (y, x)
                key = number[free], place[own[fixed]]
                earn[key] = earn.get(key, Fraction(0)) + value
    return agree, earn, constant


def score(given: Statement, where: dict[int, int]) -> Fraction:
    """Return what a choice earns.

    Parameters
    ----------
    where
        For each element the number of its location; ``-1 - f`` is the fresh one of ``f``.
    """
    matched = [v for (e, f), v in given.agree.items() if where[e] == where[f]]
    met = [v for (e, place), v in given.earn.items() if where[e] == place]
    return given.constant + sum(matched) + sum(met)


def added(given: Statement, e: int, place: int) -> set[tuple[str, str]]:
    """Return the arcs between barriers that element ``e`` adds where it takes a location."""
    first = None if place < 0 else given.barrier_of[place]
    return {(first, b) for b, read in given.reads.items() if e in read} if first else set()


def cyclic(arcs: set[tuple[str, str]]) -> bool:
    """Return whether a set of arcs contains a cycle."""
    rest = set(arcs)
    while rest:
        heads = {b for _, b in rest}
        kept = {(a, b) for a, b in rest if a in heads}
        if kept == rest:
            return True
        rest = kept
    return False
