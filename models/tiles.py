"""All ways to share sink elements out over tiles, one after the other: tiny instances only.

Every location is a tile.  Elements of one grain share a tile, every element takes its bytes
there, and no tile holds more than its capacity.
"""

from __future__ import annotations

from fractions import Fraction

from models.statement import Statement


def maximum_on_tiles(
    given: Statement, grains: list[list[int]], width: list[int], capacity: int, tiles: int
) -> Fraction | None:
    """Return the largest score of any choice of tiles; ``None`` if nothing fits.

    Parameters
    ----------
    given
        The instance; its locations are tiles, so that each source has a mapping.
    grains
        Numbers of the elements that share a tile; each element is in one grain.
    width
        The bytes of each element.
    capacity, tiles
        The bytes that each tile holds, and how many there are.
    """
    grain_of = {e: g for g, own in enumerate(grains) for e in own}
    sure = given.constant
    earn: list[dict[int, Fraction]] = [{} for _ in grains]
    for (e, place), value in given.earn.items():
        row = earn[grain_of[e]]
        tile = given.locations[place]
        row[tile] = row.get(tile, Fraction(0)) + value
    agree: list[dict[int, Fraction]] = [{} for _ in grains]
    for (e, f), value in given.agree.items():
        first, second = sorted((grain_of[e], grain_of[f]))
        if first == second:
            sure += value
        else:
            agree[second][first] = agree[second].get(first, Fraction(0)) + value
    need = [sum(width[e] for e in own) for own in grains]
    hope = [Fraction(0)]
    for rewards, bonds in zip(reversed(earn), reversed(agree), strict=True):
        most = max([Fraction(0), *rewards.values()])
        hope.append(hope[-1] + most + sum(v for v in bonds.values() if v > 0))
    hope.reverse()
    best: list[Fraction] = []
    room, chosen = [capacity] * tiles, [0] * len(grains)

    def choose(g: int, score: Fraction) -> None:
        if best and score + hope[g] <= best[0]:
            return
        if g == len(grains):
            best[:] = [score]
            return
        for tile in range(tiles):
            if need[g] <= room[tile]:
                room[tile] -= need[g]
                chosen[g] = tile
                more = earn[g].get(tile, Fraction(0))
                more += sum(v for h, v in agree[g].items() if chosen[h] == tile)
                choose(g + 1, score + more)
                room[tile] += need[g]

    choose(0, sure)
    return best[0] if best else None
