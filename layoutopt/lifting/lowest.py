"""Index 0 of broadcast dimensions, told from the rest.

No layout depends on which copy of an element is the first, but Greedy0 does: only index 0 of a
broadcast dimension leads it back.  As a family of its own index 0 stays what it is under
whatever exchanges orbits.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from layoutopt.lifting.families import NOTHING, VIEW, Relation, System, normal


def lowest_apart(system: System) -> System:
    """Return a system in which a family of copies of free elements is all, or not, at index 0."""
    found: list[Relation] = []
    for family in system.families:
        view = family.pair == VIEW and family.inp != NOTHING
        if view and system.parts[family.inp].free:
            found += filter(None, map(normal, _apart(family)))
        else:
            found.append(family)
    return System(system.parts, tuple(found))


def _apart(family: Relation) -> Iterator[Relation]:
    """Yield the copies at index 0 of all loops that spread, then those at 0 of ever fewer."""
    loops = family.loops
    spread = [k for k, (_, _, inp) in enumerate(loops) if inp == 0]
    for k in reversed(spread):
        extent, out, inp = loops[k]
        fixed = [loop for n, loop in enumerate(loops) if n not in spread or n > k]
        yield replace(
            family,
            out_start=family.out_start + out,
            loops=(*(loop for loop in fixed), (extent - 1, out, inp)),
        )
    still = tuple(loop for n, loop in enumerate(loops) if n not in spread)
    yield replace(family, loops=still)
