"""All choices of locations, one after the other: the optimum of tiny instances.

A choice is given up where even the best that is left cannot make it better than one that is
known, or where barriers wait for each other already; nothing else is clever here.
"""

from __future__ import annotations

from fractions import Fraction

from models.statement import Statement, added, cyclic

Arcs = set[tuple[str, str]]


def maximum(given: Statement, ordered: bool = True) -> Fraction:
    """Return the largest score of any choice of locations.

    Parameters
    ----------
    ordered
        Whether barriers must not wait for each other.  Without that rule the maximum can
        only be larger.

    Notes
    -----
    Unconstrained elements are left out: a fresh location is as good as any for them.
    An element may take what some element of its component earns with, or the fresh location
    of an element of its component up to itself; any other location is one more fresh one.
    """
    components = _components(given)
    together = _contested(given, components) if ordered else []
    parts = [together, *([c] for c in components if c not in together)]
    return given.constant + sum(_best(given, part, ordered) for part in parts)


def _components(given: Statement) -> list[list[int]]:
    """Return the elements in pairs, those together that pairs tie together."""
    component = {e: {e} for key in given.agree for e in key} | {e: {e} for e, _ in given.earn}
    for e, f in given.agree:
        joint = component[e] | component[f]
        for g in joint:
            component[g] = joint
    return [sorted(c) for c in {id(c): c for c in component.values()}.values()]


def _useful(given: Statement, component: list[int]) -> list[int]:
    """Return the locations that some element of a component earns with."""
    return sorted({place for e, place in given.earn if e in component})


def _contested(given: Statement, components: list[list[int]]) -> list[list[int]]:
    """Return the components whose arcs can be in a cycle of several barriers.

    The others can be chosen apart: an arc of theirs is a cycle by itself, as it leads from a
    barrier to that barrier, or is in none, whatever is chosen elsewhere.
    """
    arcs = [
        {arc for e in c for place in _useful(given, c) for arc in added(given, e, place)}
        for c in components
    ]
    possible = given.arcs.union(*arcs)
    in_cycle = {(b, c) for b, c in possible if b != c and _leads(possible, c, b)}
    return [c for c, own in zip(components, arcs) if own & in_cycle]


def _leads(arcs: Arcs, start: str, end: str) -> bool:
    """Return whether a walk along arcs leads from one barrier to another."""
    found = {start}
    while more := {b for a, b in arcs if a in found} - found:
        found |= more
    return end in found


def _best(given: Statement, components: list[list[int]], ordered: bool) -> Fraction:
    """Return the most that components can earn."""
    agree, earn = given.agree, given.earn
    chosen = [(e, i) for i, c in enumerate(components) for e in c]
    useful = [_useful(given, c) for c in components]
    hope = [Fraction(0)]  # hope[k], in the end: the most that elements k, k + 1, ... can add
    for k, (e, _) in reversed(list(enumerate(chosen))):
        own = max([Fraction(0), *(v for (f, _), v in earn.items() if f == e)])
        ties = [agree.get((min(e, f), max(e, f)), Fraction(0)) for f, _ in chosen[:k]]
        hope.append(hope[-1] + own + sum(v for v in ties if v > 0))
    hope.reverse()
    where: dict[int, int] = {}
    best = Fraction(0)  # everything fresh and apart

    def choose(k: int, score: Fraction, arcs: Arcs) -> None:
        nonlocal best
        if k == len(chosen):
            best = score
            return
        e, i = chosen[k]
        options = []
        for place in useful[i] + [-1 - f for f in components[i] if f <= e]:
            gain = earn.get((e, place), Fraction(0))
            for f, _ in chosen[:k]:
                if where[f] == place:
                    gain += agree.get((min(e, f), max(e, f)), Fraction(0))
            options.append((gain, place))
        for gain, place in sorted(options, reverse=True):  # so that good choices come early
            if score + gain + hope[k + 1] <= best:
                return
            more = arcs | added(given, e, place) if ordered else arcs
            if not cyclic(more):
                where[e] = place
                choose(k + 1, score + gain, more)

    choose(0, Fraction(0), given.arcs if ordered else set())
    return best
