"""Layouts: the order of a tensor's axes in memory, blocked or aligned or not."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from math import lcm, prod
from operator import index
from typing import SupportsIndex, get_args

from layoutopt.base.errors import check_word
from layoutopt.layout import glow, onednn, tvm, xla
from layoutopt.layout.factors import Size
from layoutopt.layout.parts import (
    ANY,
    LARGEST,
    LOGICAL_ORDER,
    Block,
    Dialect,
    Dim,
    LayoutError,
    axes_of,
    is_alignment,
    is_positional,
    logical_order,
    outer_and_inner,
    positions,
    renamed,
)

__all__ = ["ANY", "DIALECTS", "LOGICAL_ORDER", "Block", "Dialect", "Dim", "Layout", "LayoutError"]


DIALECTS: tuple[Dialect, ...] = get_args(Dialect)

READERS = dict(zip(DIALECTS, (glow.read, tvm.read, onednn.read, xla.read), strict=True))
WRITERS = dict(zip(DIALECTS, (glow.write, tvm.write, onednn.write, xla.write), strict=True))

UNDEFINED: dict[Dialect, str] = {"tvm": tvm.UNDEFINED, "onednn": onednn.UNDEFINED}
"""How an undefined layout is written; Glow and XLA have none."""

_XLA = re.compile(r"\s*(\w+\[[\d,\s]*\])?\{")
_GLOW = re.compile(r"[*=:\s\0]")
_TOKEN = re.compile(r"\d+[A-Za-z]?|[A-Za-z]")


@dataclass(frozen=True, repr=False)
class Layout:
    """Order of a tensor's elements in memory.

    The blocks of an axis nest: the outermost is the one with no size, wherever it stands, then
    those with sizes in the order of the dimensions.

    Parameters
    ----------
    dims
        Physical dimensions, outermost first; none for a scalar.
    dialect
        How it is written; layouts that differ in nothing else are equal.
    undefined
        Whether it says nothing at all.

    Examples
    --------
    >>> layout = Layout.parse("NCHW16c")
    >>> layout.axes, layout.index_of("16c"), layout.factor_of("C")
    ('NCHW', 4, 16)
    >>> print(layout.to("onednn"), layout.to("xla"))
    nChw16c {3,2,1,0:T(16,1,1)}
    """

    dims: tuple[Dim, ...] = ()
    dialect: Dialect = field(default="glow", compare=False)
    undefined: bool = False

    def __post_init__(self) -> None:
        given: object = self.dims
        if isinstance(given, str):
            raise LayoutError(f"a text is read by Layout.parse({given!r})")
        check_word("dialect", self.dialect, Dialect, error=LayoutError)

    @staticmethod
    def parse(text: str, dialect: Dialect | None = None) -> Layout:
        """Read a layout.

        Parameters
        ----------
        text
            For instance ``N[a=32]HWC``, ``NCHW16c``, ``aBcd16b`` or ``{3,2,1,0}``.
        dialect
            ``glow``, ``tvm``, ``onednn`` or ``xla``, whose modules say what they read; if None,
            :func:`recognised` says which.

        Raises
        ------
        LayoutError
            If it is none.  Its ``picture`` points at the offending place.

        Examples
        --------
        >>> Layout.parse("NCHWc")
        Traceback (most recent call last):
        LayoutError: column 5 of layout 'NCHWc': expected a factor before the block c, as in 16c
        """
        if not isinstance(text, str):
            raise LayoutError(f"a layout must be a text, got {text!r}")
        dialect = recognised(text) if dialect is None else dialect
        check_word("dialect", dialect, Dialect, error=LayoutError)
        if text == UNDEFINED.get(dialect):
            return Layout(dialect=dialect, undefined=True)
        return Layout(READERS[dialect](text), dialect)

    def __str__(self) -> str:
        """Return the text in the layout's dialect.

        A layout put together by hand may be more than its dialect can say.  It then prints with
        TVM's blocks and Glow's extensions, which no dialect reads.
        """
        if self.undefined:
            return UNDEFINED.get(self.dialect, UNDEFINED["tvm"])
        try:
            return WRITERS[self.dialect](self.dims)
        except LayoutError:
            return "".join(map(str, self.dims))

    def __repr__(self) -> str:
        return f"<Layout {self} ({self.dialect})>"

    @property
    def axes(self) -> str:
        """Each axis once, outermost first, as in ``"NHWC"``."""
        return axes_of(self.dims)

    @property
    def letters(self) -> str:
        """The blocks of all dimensions as they are written, outermost first."""
        return "".join(dim.name for dim in self.dims)

    @property
    def logical(self) -> str:
        """The same axes in the order in which a tensor's shape names them.

        Positions (``A`` to the last) have the order of the alphabet.  Otherwise G, N, O, I, C, D,
        H, W come first; with time (T) or layers (L) but no H or W, it is L, D, T, N, I, G, O, C,
        as in oneDNN.  The rest follows by alphabet.
        """
        return logical_order(self.axes)

    def to(self, dialect: Dialect, logical: str | None = None) -> Layout:
        """Return the same layout in another dialect.

        Letters stay letters where the dialect has them, and become positions for XLA, and for
        oneDNN if it has no such letters.

        Parameters
        ----------
        dialect
            ``glow``, ``tvm``, ``onednn`` or ``xla``.
        logical
            The letters of the axes in the order of the tensor's shape.  If given, letters become
            positions for oneDNN too, and positions become these letters (not for XLA, which has
            none).  By default letters have the order of :attr:`logical`, and positions are kept.

        Raises
        ------
        LayoutError
            If the dialect cannot say exactly this; the error says what.

        Examples
        --------
        >>> print(Layout.parse("acdb").to("tvm", logical="NCHW"))
        NHWC
        >>> print(Layout.parse("NHWC").to("onednn", logical="NCHW"))
        acdb
        """
        check_word("dialect", dialect, Dialect, error=LayoutError)
        if self.undefined and dialect in UNDEFINED:
            return replace(self, dialect=dialect)
        try:
            if self.undefined:
                raise LayoutError("it is undefined")
            dims = converted(self.dims, self.dialect, dialect, logical)
        except LayoutError as error:
            reason = f"layout {str(self)!r} cannot be written as {dialect}: {error}"
            raise LayoutError(reason) from None
        return Layout(dims, dialect)

    @property
    def is_any(self) -> bool:
        """Whether every dimension is ``*`` with nothing in brackets behind it."""
        return all(dim == Dim((Block(ANY),)) for dim in self.dims) and not self.undefined

    @property
    def has_blocks(self) -> bool:
        """Whether an axis is cut into blocks."""
        return any(block.size is not None for dim in self.dims for block in dim.blocks)

    @property
    def alignments(self) -> tuple[int, ...]:
        """What each dimension's stride is a multiple of, in bytes; 1 where nothing is said."""
        return tuple(dim.alignment for dim in self.dims)

    def byte_strides(self, extents: Sequence[Size], element_bytes: int) -> list[tuple[int, bool]]:
        """Return what is known of the stride in bytes of each physical dimension.

        From the innermost dimension on, a stride is the room that the next inner dimension takes,
        rounded up to whole elements and to a multiple of the dimension's alignment.

        Parameters
        ----------
        extents
            The size of each physical dimension.
        element_bytes
            Bytes of an element.

        Returns
        -------
        list of tuple
            The stride and True, or a divisor of it and False where it depends on unknown sizes.
        """
        found: list[tuple[int, bool]] = []
        room, exact = element_bytes, True
        for alignment, size in zip(reversed(self.alignments), reversed(extents), strict=True):
            unit = lcm(alignment, element_bytes)
            if room % unit:
                room = -(-room // unit) * unit if exact else unit
            found.append((room, exact))
            exact = exact and isinstance(size, int)
            room *= max(size, 1) if isinstance(size, int) else 1
        return found[::-1]

    def with_alignment(self, dim: int, bytes: int) -> Layout:
        """Return the layout with another alignment of a dimension, behind its other extensions.

        Parameters
        ----------
        dim
            The physical dimension, from 0.
        bytes
            What its stride is to be a multiple of; at least 1.

        Raises
        ------
        LayoutError
            If there is no such dimension or alignment.
        """
        if not isinstance(bytes, SupportsIndex) or not 1 <= index(bytes) <= LARGEST:
            raise LayoutError(f"bytes must be a number from 1 to 2^63 - 1, got {bytes!r}")
        return self.with_attribute(dim, "a=", str(index(bytes)))

    def attribute(self, dim: int, name: str) -> str:
        """Return what follows the name in an extension of a dimension; empty if there is none.

        Parameters
        ----------
        dim
            The physical dimension, from 0.
        name
            What it begins with: ``"a="``, or at least a namespace with its colon
            (``"answer:"``, ``"answer:q="``).

        Raises
        ------
        LayoutError
            If there is no such dimension.
        """
        found = (e.removeprefix(name) for e in self._dim(dim).extensions if _is_named(e, name))
        return next(found, "")

    def with_attribute(self, dim: int, name: str, value: str) -> Layout:
        """Return the layout with another extension of a dimension, behind its others.

        Parameters
        ----------
        dim, name
            As for :meth:`attribute`; old extensions of that name are taken away.
        value
            What is to follow the name; anything without ``]``, and a number for ``"a="``.

        Raises
        ------
        LayoutError
            If there is no such dimension, or the extension could not be read back.
        """
        if name != "a=" and ":" not in name:
            raise LayoutError(f"name must be 'a=' or a namespace with its colon, got {name!r}")
        glow.check_extension(f"{name}{value}")
        given = self._dim(dim)
        kept = tuple(e for e in given.extensions if not _is_named(e, name))
        dims = list(self.dims)
        dims[dim] = replace(given, extensions=(*kept, f"{name}{value}"))
        return Layout(tuple(dims), "glow")

    def index_of(self, name: str) -> int:
        """Return the physical dimension of an axis or block.

        Parameters
        ----------
        name
            An axis (``"C"``), a block (``"16c"``, or ``"c"``: the outermost with a size) or a
            packed dimension (``"4o4i"``).

        Raises
        ------
        LayoutError
            If there is none.
        """
        texts = [dim.name for dim in self.dims]
        if len(name) == 1 and name.islower():
            texts = [text.lstrip("0123456789") for text in texts]
        if name not in texts:
            raise LayoutError(f"layout {self} has no dimension {name!r}")
        return texts.index(name)

    def factor_of(self, axis: str) -> int:
        """Return how many values of an axis its blocks hold: their product, 1 if it has none.

        Parameters
        ----------
        axis
            A letter, in either case.

        Raises
        ------
        LayoutError
            If there is no such axis.
        """
        axis = axis.upper()
        if axis not in list(self.axes):
            raise LayoutError(f"layout {self} has no axis {axis!r}")
        return prod(b.size or 1 for dim in self.dims for b in dim.blocks if b.axis == axis)

    def _dim(self, dim: int) -> Dim:
        """Return a physical dimension."""
        if not isinstance(dim, SupportsIndex) or index(dim) not in range(len(self.dims)):
            raise LayoutError(
                f"dim must be one of the {len(self.dims)} dimensions of {self}, from 0, got {dim!r}"
            )
        return self.dims[dim]


def _is_named(extension: str, name: str) -> bool:
    """Return whether an extension begins with a name; alignments are named ``a=``."""
    if name == "a=":
        return is_alignment(extension)
    return ":" in name and extension.startswith(name)


@cache
def plain(axes: str) -> Layout:
    """Return the layout of whole axes in an order, outermost first."""
    return Layout(tuple(Dim((Block(axis),)) for axis in axes))


def recognised(text: str) -> Dialect:
    """Return the dialect of a text that does not come with a dialect.

    The first rule that fits decides, so each text has one answer:

    1. a brace first (a shape before it or not): XLA;
    2. ``__undef__``: TVM, and ``undef``: oneDNN;
    3. ``*``, ``=``, ``:`` or blanks, as only Glow has them: Glow;
    4. an axis in lower case only, or all axes in blocks and one in several: oneDNN (``nchw``,
       ``aBcd16b``, ``OI8i16o2i``);
    5. a digit, a bracket, a lower-case letter, or more than six axes: TVM (``NCHW16c``);
    6. up to six upper-case letters, which Glow and TVM write and mean alike: Glow.

    ``OI16i16o`` is TVM's by rule 5; oneDNN writes and means it alike.
    """
    if _XLA.match(text):
        return "xla"
    for dialect, undefined in UNDEFINED.items():
        if text == undefined:
            return dialect
    if _GLOW.search(text):
        return "glow"
    tokens = _TOKEN.findall(text)
    axes = {token for token in tokens if token.isalpha()}
    blocks = [token[-1].upper() for token in tokens if not token.isalpha()]
    several = set(blocks) == axes and len(blocks) > len(axes) and "[" not in text
    if several or any(axis.islower() and axis.upper() not in axes for axis in axes):
        return "onednn"
    plain = len(text) <= glow.MOST_DIMS and not re.search(r"[\d\[\]a-z]", text)
    return "glow" if plain else "tvm"


def converted(
    dims: tuple[Dim, ...], source: Dialect, target: Dialect, logical: str | None
) -> tuple[Dim, ...]:
    """Return dimensions as another dialect writes them; ``logical`` as for :meth:`Layout.to`."""
    if source == "xla":
        dims = xla.without_units(dims)
    axes = axes_of(dims)
    if ANY in axes and target != "glow":
        raise LayoutError("only Glow has dimensions that may be anything (*)")
    if target == "onednn":
        outer_and_inner(dims, "oneDNN")
    if target == "xla":
        bare, dims = dims, xla.with_units(dims)
        if xla.without_units(dims) != bare:
            raise LayoutError("blocks of 1 could not be told from those that fill XLA's tiles")
    if ANY not in axes:
        dims = renamed(dims, _letters(axes, target, logical))
    WRITERS[target](dims)
    return dims


def _letters(axes: str, target: Dialect, logical: str | None) -> dict[str, str]:
    """Return the letter of each axis in another dialect."""
    own = logical_order(axes)
    given = own if logical is None else logical
    if not isinstance(given, str) or not re.fullmatch("[A-Z]*", given):
        raise LayoutError(f"logical must be upper-case letters, got {given!r}")
    if is_positional(axes):
        if given != own and (is_positional(given) or not len(own) == len(set(given)) == len(given)):
            raise LayoutError(f"logical must name {len(own)} different axes, got {given!r}")
        return dict(zip(own, own if target == "xla" else given, strict=True))
    if sorted(given) != sorted(own):
        raise LayoutError(f"logical must have the axes {own} in some order, got {given!r}")
    if target == "onednn":
        numbered = logical is not None or not onednn.has_letters(axes)
    else:
        numbered = target == "xla"
    return dict(zip(given, positions(len(own)) if numbered else given, strict=True))
