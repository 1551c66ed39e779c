"""The root elements of a group, numbered.

Index arrays of these numbers flow through the views of a graph (:mod:`layoutopt.graphs.locations`);
what comes out says, for each element of any tensor, which sink element it is or which
location it has.  Composing index maps is left to NumPy.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from layoutopt.dense.groups import Group
from layoutopt.graphs.op import Array, size
from layoutopt.graphs.ops import Source
from layoutopt.graphs.store import Store


@dataclass(frozen=True, eq=False)
class Numbering:
    """The root elements of a group, numbered.

    Sink elements come first, then the locations of fixed tensors without a mapping, then
    the distinct values of all mappings.

    Parameters
    ----------
    sinks, fixed
        The root tensors, in the order of their numbers.
    starts
        First number of each tensor of ``sinks`` and then of ``fixed``; a fixed tensor with
        a mapping has no numbers of its own.  Its last entry is the first of the mappings.
    free
        Number of sink elements.
    pool
        The distinct mapping values, in order of their numbers.
    total
        Number of root elements and locations.
    """

    sinks: tuple[int, ...]
    fixed: tuple[int, ...]
    starts: NDArray[np.int64]
    free: int
    pool: tuple[int | str, ...]
    total: int

    @property
    def dtype(self) -> np.dtype[np.int32] | np.dtype[np.int64]:
        """The smallest integer type that holds every number."""
        return np.dtype(np.int32) if self.total < 2**31 else np.dtype(np.int64)


def number_roots(graph: Store, group: Group) -> Numbering:
    """Number the root elements of a group."""
    sizes = [size(graph.shapes[t]) for t in group.sinks]
    free = sum(sizes)
    pool: dict[int | str, None] = {}
    for t in group.fixed:
        where = mapping_of(graph, t)
        sizes.append(0 if where is not None else size(graph.shapes[t]))
        pool.update(dict.fromkeys(where or ()))
    starts = np.cumsum([0, *sizes], dtype=np.int64)
    total = int(starts[-1]) + len(pool)
    return Numbering(group.sinks, group.fixed, starts, free, tuple(pool), total)


def mapping_of(graph: Store, t: int) -> tuple[int | str, ...] | None:
    """Return the mapping of a root tensor that has one."""
    op = graph.ops[graph.producers[t]]
    return op.mapping if isinstance(op, Source) else None


def root_arrays(graph: Store, numbers: Numbering) -> dict[int, Array]:
    """Return the root numbers of the elements of each root tensor, shaped."""
    place = {where: int(numbers.starts[-1]) + k for k, where in enumerate(numbers.pool)}
    arrays = {}
    for t, start in zip(
        (*numbers.sinks, *numbers.fixed), numbers.starts[:-1].tolist(), strict=True
    ):
        where = mapping_of(graph, t)
        if where is None:
            flat = np.arange(start, start + size(graph.shapes[t]), dtype=numbers.dtype)
        else:
            flat = np.array([place[w] for w in where], numbers.dtype)
        arrays[t] = flat.reshape(graph.shapes[t])
    return arrays
