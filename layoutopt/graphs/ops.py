"""The ops of unwinding graphs, one class each.

An op is one of five kinds.  A *sink*'s locations are chosen by the solver.  A *source* has
locations of its own.  A *barrier* has locations of its own that are known once all elements
of all its inputs are.  A *fixed point* has locations of its own that are known from the
start.  A *view* passes the locations of its inputs on, element by element.

To add an op, write its class in ``roots`` or ``views``, name it in ``AnyOp`` below, and
state its meaning once more, in other words, in ``check/flow.py`` and ``check/moves.py``.
"""

from __future__ import annotations

from typing import TypeAlias

from layoutopt.graphs.roots import Barrier, FixedPoint, Sink, Source, SumLikeReduce
from layoutopt.graphs.views import (
    Concat,
    DimShuffle,
    Expand,
    Flatten,
    Identity,
    Reshape,
    Reverse,
    SettSample,
    Slice,
    Squeeze,
    SubSample,
    SumLike,
)

__all__ = [
    "AnyOp",
    "Barrier",
    "Concat",
    "DimShuffle",
    "Expand",
    "FixedPoint",
    "Flatten",
    "Identity",
    "Reshape",
    "Reverse",
    "SettSample",
    "Sink",
    "Slice",
    "Source",
    "Squeeze",
    "SubSample",
    "SumLike",
    "SumLikeReduce",
]

AnyOp: TypeAlias = (
    Sink
    | Source
    | Barrier
    | FixedPoint
    | SumLikeReduce
    | SumLike
    | Identity
    | Flatten
    | Squeeze
    | Reshape
    | DimShuffle
    | Reverse
    | Slice
    | SubSample
    | SettSample
    | Concat
    | Expand
)
"""Every op of the file format."""
