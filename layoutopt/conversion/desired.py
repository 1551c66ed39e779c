"""Layouts that a user wants ops to run in: by type, by name, and for all others."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from layoutopt.base.errors import InputError, OptionError
from layoutopt.conversion.requirements import Requirements, axis_sizes
from layoutopt.conversion.rules.op import (
    Op,
    OperandLayouts,
    Shape,
    Size,
    any_layout,
    parse_operands,
    plain,
    split_outside,
    unnamed,
)
from layoutopt.conversion.rules.operator import Category
from layoutopt.conversion.rules.registry import (
    OPERATORS,
    category_of,
    is_unlettered,
    may_pad,
    operator_of,
    written_layout,
)
from layoutopt.layout.factors import open_sizes
from layoutopt.layout.layout import ANY, Dim, Layout, LayoutError

SPATIAL = "DHW"

DEFAULT = "default"


@dataclass(frozen=True)
class Desired(Requirements):
    """Desired layouts, as requirements.

    An op takes what is desired of it by name, else by type, else, if it is heavily sensitive, by
    default.  Letters fit any number of spatial axes: NHWC is NWC for an op on one.  Blocks are
    taken where they divide all axes that they are desired of, of all operands and results of the
    op; else the op takes the same layouts without blocks.  Where nothing is desired of an operand
    it stays as it is written, unless it has the axes of the data, which it follows, or is weights:
    those of data with channels last are to be HWIO. Of an op whose axes have no letters of their
    own it is desired of tensors with as many axes, others are as they come.  An op with more axes
    than there are letters, four spatial ones, stays as it is written unless it is named.
    """

    # Layouts of operands and results by the type of op, by the name of one with `@` in front, and
    # those of other heavily sensitive ops under `default`; None for ops that stay as written.
    entries: Mapping[str, OperandLayouts | None]
    padding: bool = False  # whether blocks are taken where they do not divide, too

    def layouts(self, op: Op) -> OperandLayouts | None:
        """Return what is desired of an op, as it was given."""
        own = [self.entries[key] for key in (f"@{op.name}", op.type) if key in self.entries]
        if own or category_of(op) is not Category.HEAVY:
            return own[0] if own else None
        return self.entries.get(DEFAULT)

    def is_named(self, op: Op) -> bool:
        """Return whether something is desired of an op by its name."""
        return f"@{op.name}" in self.entries

    def refuse_unknown(self, names: Collection[str], what: str = "desired layout") -> None:
        """Raise ``OptionError`` if something is desired of an op by a name that none has."""
        for key in self.entries:
            name = key.removeprefix("@")
            if name != key and name not in names:
                close = get_close_matches(name, names, 1)
                hint = f"; did you mean @{close[0]}?" if close else ""
                raise OptionError(f"{what} of @{name}: no op has this name{hint}")

    def _followed(self, op: Op, slot: int) -> Layout | None:
        """Return what is desired of an operand or, after these, a result, or follows from that."""
        wanted, written = self.layouts(op) or OperandLayouts(), written_layout(op, slot)
        own, follows = wanted.at(op, slot), _companion(op, wanted, written)
        if own is None and slot < len(op.inputs) and self.padding and may_pad(op):
            own = _blocked_companion(wanted, follows or written)
            sizes = axis_sizes(written, op.shape(slot))
            if own is not None and follows is None and _blocks_divide(own, sizes):
                return None  # it may stay as it is
        return own or follows

    def _requirement(self, op: Op, slot: int, shape: Shape | None) -> Layout:
        """Return the layout that is desired of an operand or, after these, a result."""
        given, written = self._followed(op, slot), written_layout(op, slot)
        if given is None or given.undefined:
            return written or any_layout(None if shape is None else len(shape))
        given = unnamed(written, given) or given
        if written is None and shape is not None and is_unlettered(op):
            return self._of_its_rank(op, given, len(shape))
        fitting = for_axes(given, written.logical) if written else given
        if fitting is None:
            axes = written.axes if written else ""
            by_default = self.layouts(op) is self.entries.get(DEFAULT)
            if by_default or ("*" in axes and not self.is_named(op)):
                return written or given
            raise InputError(f"{op}: the desired {given} is no order of its axes {', '.join(axes)}")
        blocks = self.divides(op) or (self.padding and may_pad(op) and self._pads_alike(op))
        return fitting if blocks else without_blocks(fitting)

    def _of_its_rank(self, op: Op, given: Layout, rank: int) -> Layout:
        """Return the layout of a tensor whose axes have no letters: any if it has more, or fewer.

        An operand that is broadcast has fewer; an op that is named has as many as desired.
        """
        ranks = (len(given.dims), len(given.axes))
        own = operator_of(op).rank(op)
        if self.is_named(op) and own is not None and own not in ranks:
            raise InputError(f"{op}: the desired {given} is for another number of axes than {own}")
        return given if rank in ranks else any_layout(rank)

    def divides(self, op: Op) -> bool:
        """Return whether all desired blocks of an op divide, and at most one size is open."""
        return all(
            _blocks_divide(given, axis_sizes(written or given, shape))
            and not (given.has_blocks and open_sizes(shape) > 1)
            for _, given, written, shape in self._operands(op)
            if given is not None
        )

    def _pads_alike(self, op: Op) -> bool:
        """Return whether all operands and results are padded to the same numbers of channels.

        Blocks divide other axes, and one size is open at most, which is in no blocks: channels of
        open size are not padded, nor are those that must be as many.
        """
        written = [written_layout(op, n) for n in range(len(op.inputs))]
        filters = any(layout and "I" in layout.axes for layout in written)
        padded, unknown, wider = dict[str, int](), set[str](), set[str]()
        for n, _, layout, shape in self._operands(op):
            own = self._followed(op, n)
            factors, sizes = _factors(own) if own else {}, axis_sizes(layout or own, shape)
            known = {axis for axis, size in sizes.items() if isinstance(size, int)}
            if open_sizes(shape) > 1 or not factors.keys() <= known:
                return False
            for axis, size in sizes.items():
                side = "IO"[n >= len(op.inputs)] if filters and axis == "C" else axis
                if not isinstance(size, int):
                    unknown.add(side)
                    continue
                factor = factors.get(axis, 1)
                whole = -(-size // factor) * factor
                needed = padded.setdefault(side, whole) if axis in "CIO" else size
                if whole != needed:
                    return False
                wider |= {side} if whole != size else set()
        return not unknown & wider

    def _operands(self, op: Op) -> Iterator[tuple[int, Layout | None, Layout | None, Shape | None]]:
        """Yield what is desired of operands and results, as what they are written, and shapes.

        They are numbered, results after operands.
        """
        wanted = self.layouts(op) or OperandLayouts()
        for slot, shape in op.slots():
            yield slot, wanted.at(op, slot), written_layout(op, slot), shape


def _factors(layout: Layout) -> dict[str, int]:
    """Return how many values blocks hold, of each axis that has some."""
    every = {axis: layout.factor_of(axis) for axis in layout.axes if axis != ANY}
    return {axis: factor for axis, factor in every.items() if factor > 1}


def _blocks_divide(layout: Layout, sizes: Mapping[str, Size]) -> bool:
    every = ((factor, sizes.get(axis)) for axis, factor in _factors(layout).items())
    return all(isinstance(size, int) and size % factor == 0 for factor, size in every)


def without_blocks(layout: Layout) -> Layout:
    """Return a layout of whole axes only, in the same order."""
    every = ((tuple(b for b in dim.blocks if b.size is None), dim) for dim in layout.dims)
    dims = tuple(Dim(blocks, dim.extensions) for blocks, dim in every if blocks)
    return Layout(dims, layout.dialect)


def for_axes(layout: Layout, axes: str) -> Layout | None:
    """Return a layout for other spatial axes, None if the axes are others still.

    The axes are in logical order: ``"NCW"`` makes ``NHWC`` ``NWC``.
    """
    spatial = [axis for axis in axes if axis in SPATIAL]
    at = [d for d, dim in enumerate(layout.dims) if dim.name in SPATIAL]
    dims = list(layout.dims)
    if set(layout.axes) != set(axes) and at and at == list(range(at[0], at[-1] + 1)):
        dims[at[0] : at[-1] + 1] = plain("".join(spatial)).dims
    fitting = Layout(tuple(dims), layout.dialect)
    return fitting if set(fitting.axes) == set(axes) else None


def _companion(op: Op, wanted: OperandLayouts, written: Layout | None) -> Layout | None:
    """Return the layout of an operand that is not named, if it follows from that of the data.

    One with the same axes follows the data; weights are HWIO where data has channels last.
    """
    data, own = wanted.input(0), written_layout(op, 0)
    if data is None or own is None or written is None:
        return None
    if set(written.axes) == set(own.axes):
        return data
    if not {"O", "I"} <= set(written.axes) or not data.axes.endswith("C"):
        return None
    return plain("".join(axis for axis in written.axes if axis in SPATIAL) + "IO")


def _blocked_companion(wanted: OperandLayouts, whole: Layout | None) -> Layout | None:
    """Return the blocks of an operand that is not named, where channels may be padded.

    Weights and biases must have as many channels as data and result then.
    """
    data, result = wanted.input(0), wanted.output(0)
    if data is None or whole is None or whole == data:
        return None
    read, made = (_factors(layout).get("C", 1) for layout in (data, result or data))
    factors = {"I": read, "C": read, "O": made}
    inner = [(axis, factors[axis]) for axis in "ICO" if axis in whole.axes]
    blocks = "".join(f"{factor}{axis.lower()}" for axis, factor in inner if factor > 1)
    return Layout.parse(without_blocks(whole).letters + blocks) if blocks else None


def parse_desired(text: str, padding: bool = False) -> Desired:
    """Read desired layouts.

    Parameters
    ----------
    text
        Entries with ``;`` or line breaks between them.  ``Conv=NHWC,HWIO`` is for a type of op,
        ``@conv1=NCHW`` for an op by name, ``default=NHWC`` for all other heavily sensitive ops.
        Each lists layouts of operands, and behind ``->`` those of results; ``default`` leaves one
        as it is.  ``skip=Resize,@head`` names types and ops that stay as they are.
    padding
        Whether blocks are taken where they do not divide, too.

    Raises
    ------
    InputError
        If something else is written, or two of one type or op; the text quotes the entry.
    """
    entries: dict[str, OperandLayouts | None] = {}
    skipped: dict[str, None] = {}
    for entry in filter(None, split_outside(text.replace("\n", ";"), ";")):
        key, equals, value = (part.strip() for part in entry.partition("="))
        if not (key.removeprefix("@") and equals and value):
            raise InputError(f"desired layout {entry!r} must be like Conv=NHWC,HWIO")
        if key == "skip":
            skipped.update((_known(name.strip(), entry), None) for name in value.split(","))
        elif key in entries:
            raise InputError(f"desired layout {entry!r}: {key} has one already")
        else:
            entries |= desired_of(key, value).entries
    return Desired(entries | skipped, padding)


def desired_of(key: str, layouts: str) -> Desired:
    """Return the layouts of a type of op, of the op with the name behind ``@``, or by default."""
    entry = f"{key}={layouts}"
    known = key if key == DEFAULT else _known(key, entry)
    try:
        return Desired({known: parse_operands(layouts)})
    except LayoutError as error:
        raise InputError(f"desired layout {entry!r}: {error.reason}") from None


def _known(name: str, entry: str) -> str:
    """Return the name of a type, or of an op with ``@`` in front, or say that there is none."""
    if name in OPERATORS or "::" in name or (name.startswith("@") and name != "@"):
        return name
    close = get_close_matches(name, OPERATORS, 1)
    hint = f"did you mean {close[0]}?" if close else "other domains are written domain::Type"
    raise InputError(f"desired layout {entry!r}: there is no type of op {name!r}; {hint}")
