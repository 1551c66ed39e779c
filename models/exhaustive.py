"""All choices of locations, one after the other: the optimum of tiny instances.

A choice is given up where even the best that is left cannot make it better than one that is
known; nothing else is clever here.
"""

from __future__ import annotations

from fractions import Fraction

from models.statement import Statement, cyclic


def maximum(given: Statement) -> Fraction:
    """Return the largest score of any choice of locations.

    Elements that no pair reaches are left out: a fresh location is as good as any for them.
    Of the fresh locations, an element may take those of elements up to itself.  Elements
    that neither agreement nor barriers can tie together are chosen apart.
    """
    return given.constant + sum(_best(given, group) for group in _groups(given))


def _groups(given: Statement) -> list[list[int]]:
    """Return the elements in pairs, those together that may influence each other."""
    group = {e: {e} for key in given.agree for e in key} | {e: {e} for e, _ in given.earn}

    def join(elements: list[int]) -> None:
        joint = set().union(*(group[e] for e in elements))
        for e in joint:
            group[e] = joint

    for pair in given.agree:
        join(list(pair))
    offered = {e for e, place in given.earn if given.barrier_of[place] is not None}
    if offered:
        join(list(offered))
    return [sorted(g) for g in {id(g): g for g in group.values()}.values()]


def _best(given: Statement, chosen: list[int]) -> Fraction:
    agree, earn = given.agree, given.earn
    useful = sorted({place for e, place in earn if e in chosen})
    hope = [Fraction(0)]  # hope[k], in the end: the most that elements k, k + 1, ... can add
    for k, e in reversed(list(enumerate(chosen))):
        own = max([Fraction(0), *(v for (f, _), v in earn.items() if f == e)])
        ties = [agree.get((min(e, f), max(e, f)), Fraction(0)) for f in chosen[:k]]
        hope.append(hope[-1] + own + sum(v for v in ties if v > 0))
    hope.reverse()
    where: dict[int, int] = {}
    best = Fraction(0)  # everything fresh and apart

    def allowed() -> bool:
        arcs = set(given.arcs)
        for e, place in where.items():
            first = given.barrier_of[place] if place >= 0 else None
            if first is not None:
                arcs |= {(first, b) for b, read in given.reads.items() if e in read}
        return not cyclic(arcs)

    def choose(k: int, score: Fraction) -> None:
        nonlocal best
        if score + hope[k] <= best:
            return
        if k == len(chosen):
            if allowed():
                best = score
            return
        e = chosen[k]
        for place in useful + [-1 - f for f in chosen[: k + 1]]:
            gain = earn.get((e, place), Fraction(0))
            for f in chosen[:k]:
                if where[f] == place:
                    gain += agree.get((min(e, f), max(e, f)), Fraction(0))
            where[e] = place
            choose(k + 1, score + gain)
        del where[e]

    choose(0, Fraction(0))
    return best
