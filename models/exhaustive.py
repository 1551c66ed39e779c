"""All choices of locations, one after the other: the optimum of tiny instances."""

from __future__ import annotations

from fractions import Fraction

from models.statement import Statement, cyclic


def maximum(given: Statement) -> Fraction:
    """Return the largest score of any choice of locations.

    Elements that no pair reaches are left out: a fresh location is as good as any for them.
    Of the fresh locations, element ``e`` may take those of elements up to itself.
    """
    agree, earn = given.agree, given.earn
    chosen = sorted({e for key in agree for e in key} | {e for e, _ in earn})
    useful = sorted({place for _, place in earn})
    where: dict[int, int] = {}
    best = given.constant  # everything fresh and apart

    def allowed() -> bool:
        arcs = set(given.arcs)
        for e, place in where.items():
            first = given.barrier_of[place] if place >= 0 else None
            if first is not None:
                arcs |= {(first, b) for b, read in given.reads.items() if e in read}
        return not cyclic(arcs)

    def choose(k: int, score: Fraction) -> None:
        nonlocal best
        if k == len(chosen):
            if score > best and allowed():
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

    choose(0, given.constant)
    return best
