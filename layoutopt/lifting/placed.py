"""Named locations as fixed cells: what a layout can follow in straight lines.

Where a solver says that a cell lies at some name (a tile, say), a layout could only list single
locations.  An element of a source at that name, to which an edge ties the cell or others that
lie with it, moves along when the cell's copies are written out.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from layoutopt.lifting.reduced import Reduced
from layoutopt.problem import IntArray


def placed(reduced: Reduced, where: IntArray) -> IntArray:
    """Return where free cells lie, names replaced by fixed cells where edges know one.

    Parameters
    ----------
    where
        For each free cell the number of a location, or of the free cell that owns the fresh
        location that it takes.
    """
    numbers = reduced.edges.numbers
    if not numbers.pool:
        return where
    named = where >= numbers.starts[-1]
    first, second = reduced.edges.agree.first, reduced.edges.agree.second
    same = named[first] & (where[first] == where[second])
    count = len(where)
    ends = (first[same], second[same])
    matrix = coo_array((np.ones(len(ends[0]), bool), ends), shape=(count, count))
    flock = connected_components(matrix, directed=False)[1]
    cell, name, fixed = reduced.at
    good = where[cell] == name
    best = np.full(int(flock.max(initial=-1)) + 1, numbers.total)
    np.minimum.at(best, flock[cell[good]], fixed[good])
    found: IntArray = np.where(named & (best[flock] < numbers.total), best[flock], where)
    return found
