"""Layouts: the order of a tensor's axes in memory, blocked or aligned or not."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from layoutopt.errors import InputError

Dialect = Literal["glow", "tvm", "onednn", "xla"]

ANY = "*"
"""The axis of a dimension that may be anything."""

LOGICAL_ORDER = "GNOICDHW"
"""The order of well-known axes in a tensor's shape; other letters follow by alphabet."""


class LayoutError(InputError):
    """A layout that cannot be read, or not be used as asked."""


@dataclass(frozen=True, slots=True)
class Block:
    """Values of one logical axis that lie side by side.

    Parameters
    ----------
    axis
        An upper-case letter, or ``*``.
    size
        How many values; None for the outermost block, which takes what the others leave.
    """

    axis: str
    size: int | None = None


@dataclass(frozen=True, slots=True)
class Dim:
    """A physical dimension.

    Parameters
    ----------
    blocks
        One, or several packed into one dimension, outermost first.
    extensions
        What is written in brackets behind it, in order: ``a=32`` (alignment of its stride in
        bytes) or ``namespace:anything``.
    """

    blocks: tuple[Block, ...]
    extensions: tuple[str, ...] = ()


@dataclass(frozen=True)
class Layout:
    """How a tensor's elements lie in memory.

    Parameters
    ----------
    dims
        Physical dimensions, outermost first; none for a scalar.
    dialect
        How it is written; layouts that differ in nothing else are equal.
    undefined
        Whether it says nothing at all.
    """

    dims: tuple[Dim, ...] = ()
    dialect: Dialect = field(default="glow", compare=False)
    undefined: bool = False

    @property
    def axes(self) -> str:
        """Each axis once, outermost first, as in ``"NHWC"``."""
        seen = dict.fromkeys(block.axis for dim in self.dims for block in dim.blocks)
        return "".join(seen)

    @property
    def logical(self) -> str:
        """The same axes in the order in which a tensor's shape names them."""
        known = [a for a in LOGICAL_ORDER if a in self.axes]
        return "".join(known + sorted(set(self.axes) - set(known)))
