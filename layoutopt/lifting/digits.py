"""Digits: the flat index of every part in mixed radix, and families split along the digits.

A part's *chain* ``1 < b_1 < b_2 < ...``, each dividing the next, writes its flat index in
digits; the top digit has no bound.  Boundaries are the strides that families have.  Where a
loop runs across a boundary it is split: into a head, whole digits, and a tail.  What does not
fit a chain that is already there is left as it is: its digits stay coarser, which costs
compression and never exactness.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from layoutopt.errors import SizeError
from layoutopt.graphs.op import Shape
from layoutopt.lifting.families import NOTHING, Loop, Relation, System, tidy

FAMILIES_LIMIT = 2 * 10**5

Chains = list[list[int]]


def settle_digits(
    system: System, shapes: Sequence[Shape], marked: Sequence[Iterable[int]] = ()
) -> tuple[System, Chains]:
    """Return a system whose loops run within digits where possible, and the chains.

    Parameters
    ----------
    shapes
        The shape of the tensor of each part.  The tensors' own strides are settled first, or a
        stride of some slice could come before them and leave no room.
    marked
        For each part the strides along which its locations' names change; they come first.

    Raises
    ------
    SizeError
        If there are too many families.
    """
    chains: Chains = [[] for _ in system.parts]
    for part, chain, strides in zip(system.parts, chains, marked, strict=False):
        for stride in strides:
            _insert(chain, part.size, stride)
    own = [_row_strides(shape) for shape in shapes]
    families = list(system.families)
    for only in (own, None):
        families = _settled(system, families, chains, only)
    return System(system.parts, tuple(families)), chains


def _row_strides(shape: Shape) -> frozenset[int]:
    strides, step = set(), 1
    for n in reversed(shape):
        step *= n
        strides.add(step)
    return frozenset(strides)


def _settled(
    system: System,
    families: list[Relation],
    chains: Chains,
    only: Sequence[frozenset[int]] | None,
) -> list[Relation]:
    """Propose boundaries and split along them until nothing changes."""
    alive: dict[int, Relation] = dict(enumerate(families))
    at: list[set[int]] = [set() for _ in system.parts]
    for number, family in alive.items():
        for side in _sides(family):
            at[family.part(side)].add(number)
    todo, queued = deque(alive), set(alive)
    count = len(alive)
    while todo:
        number = todo.popleft()
        queued.discard(number)
        if number not in alive:
            continue
        family = alive[number]
        for side in _sides(family):
            part = family.part(side)
            allowed = None if only is None else only[part]
            if _extend(chains[part], system.parts[part].size, family, side, allowed):
                for other in at[part] - queued:
                    todo.append(other)
                    queued.add(other)
        pieces = _split(family, chains)
        if pieces is None:
            continue
        del alive[number]
        for side in _sides(family):
            at[family.part(side)].discard(number)
        for piece in pieces:
            alive[count] = piece
            for side in _sides(piece):
                at[piece.part(side)].add(count)
            todo.append(count)
            queued.add(count)
            count += 1
        if len(alive) > FAMILIES_LIMIT:
            raise SizeError(f"irregular views give more than {FAMILIES_LIMIT} strided boxes")
    return [alive[number] for number in sorted(alive)]


def _sides(family: Relation) -> tuple[int, ...]:
    return (0,) if family.inp == NOTHING else (0, 1)


def _extend(
    chain: list[int], size: int, family: Relation, side: int, allowed: frozenset[int] | None
) -> bool:
    """Add the boundaries that one side of a family asks for, and return whether any is new."""
    new = False
    for b in _proposals(family, side):
        new |= (allowed is None or b in allowed) and _insert(chain, size, b)
    return new


def _insert(chain: list[int], size: int, b: int) -> bool:
    """Add a boundary to the chain of a part of some size, if it is new and fits."""
    if not 1 < b < size or b in chain or any(b % c and c % b for c in chain):
        return False
    insort(chain, b)
    return True


def _proposals(family: Relation, side: int) -> Iterator[int]:
    """Yield the strides that the smaller loops of a side leave room for."""
    offset, span = family.low(side), 0
    for stride, extent in sorted((abs(loop[1 + side]), loop[0]) for loop in family.loops):
        if stride:
            if not span or span + offset % stride < stride:
                yield stride
            span += (extent - 1) * stride


def _split(family: Relation, chains: Chains) -> list[Relation] | None:
    """Split the first loop that crosses a boundary; ``None`` if there is none."""
    for side in _sides(family):
        chain, offset = chains[family.part(side)], family.low(side)
        for k, loop in enumerate(family.loops):
            extent, stride = loop[0], abs(loop[1 + side])
            if not stride:
                continue
            for b in chain[bisect_left(chain, stride + 1) :]:
                if b % stride:
                    continue
                phase, whole = offset % b // stride, b // stride
                if phase + extent > whole:
                    return _peeled(family, k, side, phase, whole)
    return None


def _peeled(family: Relation, k: int, side: int, phase: int, whole: int) -> list[Relation]:
    """Split loop ``k`` into a head, whole digits and a tail.

    Parameters
    ----------
    phase
        At which step of a digit the loop begins.
    whole
        Number of steps in a digit.
    """
    family = _upwards(family, k, side)
    extent, out, inp = family.loops[k]
    head = min((whole - phase) % whole, extent)
    count, tail = divmod(extent - head, whole)
    found = []
    for first, loops in (
        (0, ((head, out, inp),)),
        (head, ((count, out * whole, inp * whole), (whole, out, inp))),
        (extent - tail, ((tail, out, inp),)),
    ):
        found.append(_with_loops(family, k, first, loops))
    return [piece for piece in found if piece is not None]


def _upwards(family: Relation, k: int, side: int) -> Relation:
    """Return the same family with a positive stride of loop ``k`` on one side."""
    extent, out, inp = family.loops[k]
    if (inp if side else out) > 0:
        return family
    loops = (*family.loops[:k], (extent, -out, -inp), *family.loops[k + 1 :])
    return replace(
        family,
        out_start=family.out_start + (extent - 1) * out,
        in_start=family.in_start + (extent - 1) * inp,
        loops=loops,
    )


def _with_loops(family: Relation, k: int, first: int, loops: tuple[Loop, ...]) -> Relation | None:
    """Put loops in the place of loop ``k``, from its step ``first`` on."""
    _, out, inp = family.loops[k]
    return tidy(
        replace(
            family,
            out_start=family.out_start + first * out,
            in_start=family.in_start + first * inp,
            loops=(*family.loops[:k], *loops, *family.loops[k + 1 :]),
        )
    )
