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


def view(op: dict[str, Any], inputs: list[tuple[list[int], list[Any]]]) -> tuple[list[int], Any]:
    """Return shape and elements of a view's output, from those of its inputs."""
    shape, held = inputs[0]
    at = dict(zip(positions(shape), held, strict=True))
    kind = op["type"]
    if kind == "sum_like":
        return inputs[op["unwindable_inputs"][0]]
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


def concat(axis: int, inputs: list[tuple[list[int], list[Any]]]) -> tuple[list[int], list[Any]]:
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
    if isinstance(instance, str):
        instance = json.loads(instance, parse_float=Fraction, parse_int=int)
    tensors: dict[str, tuple[list[int], list[Any]]] = {}
    own: dict[Element, Any] = {}
    elements: list[Element] = []
    barrier_inputs: dict[str, list[str]] = {}
    for op in instance["ops"]:
        name, kind = op["id"], op["type"]
        if kind in ("sink", "source", "fixed_point", "barrier", "sum_like_reduce"):
            shapes = op.get("shapes") or [op["shape"]]
            for o, shape in enumerate(shapes):
                held = [(name, o, i) for i in range(prod(shape))]
                tensors[f"{name}:{o}"] = shape, held
                if len(shapes) == 1:
                    tensors[name] = shape, held
                if kind == "sink":
                    elements += held
                else:
                    where = op.get("mapping") or held
                    own.update(zip(held, where, strict=True))
            if kind in ("barrier", "sum_like_reduce"):
                barrier_inputs[name] = op["inputs"]
        else:
            tensors[name] = tensors[f"{name}:0"] = view(op, [tensors[x] for x in op["inputs"]])
    number = {e: k for k, e in enumerate(elements)}
    locations = list(dict.fromkeys(own.values()))
    place = {where: k for k, where in enumerate(locations)}
    agree: dict[tuple[int, int], Fraction] = {}
    earn: dict[tuple[int, int], Fraction] = {}
    constant = Fraction(0)
    for pair in instance["valued_pairs"]:
        value = Fraction(pair["value"])
        for x, y in zip(tensors[pair["a"]][1], tensors[pair["b"]][1], strict=True):
            if x in number and y in number:
                e, f = sorted((number[x], number[y]))
                if e == f:
                    constant += value
                else:
                    agree[e, f] = agree.get((e, f), Fraction(0)) + value
            elif x in number or y in number:
                free, fixed = (x, y) if x in number else (y, x)
                key = number[free], place[own[fixed]]
                earn[key] = earn.get(key, Fraction(0)) + value
            elif own[x] == own[y]:
                constant += value
    reads: dict[str, set[int]] = {}
    arcs = set()
    for name, inputs in barrier_inputs.items():
        held = [e for x in inputs for e in tensors[x][1]]
        reads[name] = {number[e] for e in held if e in number}
        arcs |= {(e[0], name) for e in held if e[0] in barrier_inputs}
    barrier_of = [
        where[0] if isinstance(where, tuple) and where[0] in barrier_inputs else None
        for where in locations
    ]
    return Statement(elements, locations, agree, earn, constant, barrier_of, reads, arcs)


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
