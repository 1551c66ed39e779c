"""Modes: the layouts in which an op can run."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, permutations
from typing import Any, TypeAlias

from layoutopt.base.errors import InputError, OptionError
from layoutopt.conversion.carried import letters_of
from layoutopt.conversion.cost_table import OpTimes
from layoutopt.conversion.required import in_order, required
from layoutopt.conversion.requirements import Requirements
from layoutopt.conversion.rules.blocks import Cut, unchanged
from layoutopt.conversion.rules.bodies import TIE, OpPart
from layoutopt.conversion.rules.op import (
    BYTE_FLOATS,
    NARROW,
    SINCE_BYTE_FLOATS,
    Op,
    OperandLayouts,
    Shape,
)
from layoutopt.conversion.rules.operator import Category, RemapError, Remapped, unpermuted
from layoutopt.conversion.rules.products import permuted_equation
from layoutopt.conversion.rules.registry import category_of, is_unlettered, operator_of, remap
from layoutopt.conversion.rules.views import flatten_groups, reshape_groups, reshape_sizes
from layoutopt.layout.factors import (
    OPEN,
    Form,
    FormDim,
    Item,
    Order,
    axis_of,
    compact,
    dim_of,
    factor_of,
    has_factors,
    is_group,
    is_whole,
    main_axis,
    moved_to,
    open_sizes,
    order_of,
    padded_axes,
    renamed_order,
    rows,
    sizes_of,
    spread,
    whole_axes,
    within,
)
from layoutopt.layout.layout import Layout
from layoutopt.layout.permutations import Permutation, inverse
from layoutopt.layout.reshape import Group, written_sizes

MOST_AXES = 6
"""Ops on more axes, but for those of size 1, run in few orders: 7 axes have 5040."""

MOST_ORDERS = 720
"""Orders of more axes than these that are tried, which are those that transposes combine to."""


@dataclass(frozen=True)
class Mode(Remapped):
    """One way to run an op.

    Operands and results come in forms of their own axes.  A MatMul of three operands adds the third
    to the product.
    """

    orders: tuple[Order, ...] = ()  # for each operand, then each result, the order of its own axes
    # how the op is written then, where that is not ONNX's way
    layouts: OperandLayouts | None = None
    time: int = 0  # what it costs, in femtoseconds
    # others of equal orders, which lay out axes of size 1 otherwise
    alike: tuple[Mode, ...] = field(default=(), compare=False)


@dataclass(frozen=True)
class Modes:
    """All modes of an op; the first is that in which it is written, or which is required.

    No two of them ask for the same orders.
    """

    every: tuple[Mode, ...]
    priced: bool = False  # whether they are those of a table of costs: then all of them are of use
    fixed: bool = False  # whether there is one only, whatever order others need

    @cached_property
    def by_order(self) -> tuple[dict[Order, list[int]], ...]:
        """For each operand and result, numbers of modes by its order."""
        found: tuple[dict[Order, list[int]], ...] = tuple({} for _ in self.every[0].orders)
        for number, mode in enumerate(self.every):
            for column, order in zip(found, mode.orders, strict=True):
                column.setdefault(order, []).append(number)
        return found

    @cached_property
    def tells(self) -> tuple[bool, ...]:
        """For each operand and result, whether its order tells the mode."""
        return tuple(len(column) == len(self.every) for column in self.by_order)

    @cached_property
    def vague(self) -> tuple[int, ...]:
        """Operands and results that have several orders, which do not tell the mode."""
        return tuple(n for n, own in enumerate(self.by_order) if 1 < len(own) < len(self.every))


Key: TypeAlias = tuple[Any, ...]

LongOrders: TypeAlias = Mapping[int, Sequence[Permutation]]
"""Orders of more than six axes, by the number of axes."""


@contextmanager
def _as_option(op: Op, requirements: Requirements | None) -> Iterator[None]:
    """Tell what goes wrong with layouts that a user asks for as what the user can mend."""
    own = type(requirements).__module__.startswith("layoutopt.")
    try:
        yield
    except InputError as error:
        raise OptionError(error.reason) from None
    except (Exception, SystemExit) as error:  # whatever a user's backend raises
        if own or requirements is None:
            raise
        name = type(requirements).__name__
        raise OptionError(f"{op}: backend {name} raises {type(error).__name__}: {error}") from error


@dataclass
class ModeTable:
    """Modes of ops; equal ops share them.

    ``requirements`` are the layouts in which heavily sensitive ops, and others of which something
    is desired, must run; None: as they are written.  ``times`` are what ops cost in each layout,
    which are the layouts that they may run in.  Ops named in ``written`` run as they are written,
    whatever is required.  With ``microsoft``, products may become onnxruntime's own ops.
    ``layouts`` are those of tensors that are known: which axes ops without letters of their own
    have; ``orders`` are those of more than six axes that ops may run in.
    """

    requirements: Requirements | None = None
    times: OpTimes | None = None
    written: Collection[str] = ()
    microsoft: bool = False
    layouts: Mapping[str, Layout] = field(default_factory=dict)
    orders: LongOrders = field(default_factory=dict)
    _known: dict[Key, Modes] = field(default_factory=dict, init=False)

    def of(self, op: Op) -> Modes:
        """Return the modes of an op.

        Elementwise ops, ops whose attributes name axes, and views have one for each permutation of
        their axes that :func:`~layoutopt.conversion.rules.registry.remap`
        takes.  All others have one.
        """
        untransposed = op.element_type in BYTE_FLOATS and op.opset < SINCE_BYTE_FLOATS
        # onnxruntime 1.32 copies the first text alone of each slice that is gathered
        gathered = op.type == "Gather" and op.element_type == "string"
        if op.name in self.written or untransposed or gathered:
            time = 0 if self.times is None else self.times.written(op)
            return Modes((replace(as_written(op), time=time),), self.times is not None, True)
        with _as_option(op, self.requirements):
            asked = op.type != TIE
            priced = self._priced(op, self.times) if asked and self.times else None
            if priced:
                return Modes(tuple(priced), True)
            if asked and self.requirements is not None:
                needed = self._needed(op, self.requirements)
                if needed is not None:
                    return Modes((needed,), fixed=True)
        key = key_of(op)
        if key not in self._known:
            self._known[key] = Modes(tuple(_distinct(op, self.microsoft, self.orders)))
        return self._known[key]

    def _needed(self, op: Op, requirements: Requirements) -> Mode | None:
        """Return the mode that is required of an op, if any."""
        if is_unlettered(op):
            remapped = in_order(op, requirements, letters_of(op, self.layouts))
            return None if remapped is None else _permuted(op, remapped)
        needed = required(op, requirements)
        return None if needed is None else mode_of(op, dict(op.attributes), *needed)

    def _priced(self, op: Op, times: OpTimes) -> list[Mode]:
        """Return the modes of a table of costs, that in which the op is written first."""
        found: dict[tuple[Order, ...], Mode] = {}
        for needed, time in times.of(op):
            if needed is None and category_of(op) is Category.HEAVY:
                continue  # of unknown rank
            if needed is None:
                raise OptionError(f"{op}: its axes have no letters, so no layout of it has a cost")
            mode = replace(mode_of(op, dict(op.attributes), *needed), time=time)
            other = found.get(mode.orders)
            if other is None or time < other.time:
                found[mode.orders] = mode
        written = as_written(op).orders
        return sorted(found.values(), key=lambda mode: mode.orders != written)


def as_written(op: Op) -> Mode:
    """Return the mode in which an op is written."""
    forms = (None,) * (len(op.inputs) + len(op.outputs))
    return mode_of(op, dict(op.attributes), forms, op.layouts)


def key_of(op: Op) -> Key:
    """Return what ops that have the same modes have in common."""
    attributes = tuple(sorted((name, repr(value)) for name, value in op.attributes.items()))
    given = tuple(name != "" for name in (*op.inputs, *op.outputs))
    own = (op.type, op.element_type, op.opset, op.layouts, attributes, len(op.inputs), given)
    return (*own, op.input_shapes, op.output_shapes)


def orders_of_many(transposes: Iterable[Permutation]) -> LongOrders:
    """Return the orders of more than six axes that transposes combine to, by the number of axes."""
    ranks: dict[int, set[Permutation]] = {}
    for one in transposes:
        if len(one) > MOST_AXES:
            ranks.setdefault(len(one), set()).add(one)
    return {rank: _combined(rank, own) for rank, own in ranks.items()}


def _combined(rank: int, permutations: Collection[Permutation]) -> list[Permutation]:
    """Return products of permutations and their inverses, short ones first, but not too many."""
    steps = sorted({*permutations, *map(inverse, permutations)})
    found = [tuple(range(rank))]
    known = {*found}
    for order in found:
        for one in steps:
            new = tuple(order[i] for i in one)
            if new not in known and len(found) < MOST_ORDERS:
                known.add(new)
                found.append(new)
    return found


def _distinct(op: Op, extended: bool, long: LongOrders) -> Iterator[Mode]:
    found: dict[tuple[Order, ...], list[Mode]] = {}
    ways = (way for way in _remapped(op, extended, long) if not _moves_unknown(op, way))
    shape = op.output_shapes[0] if op.type == "MatMul" else None
    orders = permutations(range(len(shape))) if shape and len(shape) <= MOST_AXES else ()
    batches = (_batches(op, len(op.inputs), order_of(axes, shape or ())) for axes in orders)
    for mode in chain((_permuted(op, way) for way in ways), *batches):
        found.setdefault(mode.orders, []).append(mode)
    for first, *others in found.values():
        plain = (mode for mode in others if not mode.type and mode.operands is None)
        yield replace(first, alike=tuple(mode for mode in plain if not mode.entries))


def _moves_unknown(op: Op, remapped: Remapped) -> bool:
    """Return whether operands or results would be permuted whose ranks are not known."""
    pairs = zip(remapped.forms, op.shapes, strict=True)
    return any(shape is None and form is not None for form, shape in pairs)


def _remapped(op: Op, extended: bool, long: LongOrders) -> Iterator[Remapped]:
    """Return an op as it is written, then in all other ways."""
    yield unpermuted(op)
    known = operator_of(op)
    fixed = known.category in (Category.HEAVY, Category.OPAQUE) or op.layouts is not None
    rank = None if fixed or known.each_alone else known.rank(op)
    for permutation in _orders(op, rank, long) if rank else ():
        try:
            yield remap(op, permutation)
        except RemapError:
            continue
    if op.layouts is None and (op.rank(0) or 0) <= MOST_AXES:
        if known.alternatives is not None:
            yield from known.alternatives(op)
        if extended and known.on_request is not None:
            yield from known.on_request(op)


def _orders(op: Op, rank: int, long: LongOrders) -> Iterator[Permutation]:
    """Yield orders of so many axes of an op; of more than six, those of size 1 stay in place.

    If more than six are not of size 1, they come in the ``long`` orders.
    """
    shapes = [shape for shape in op.shapes if shape is not None and len(shape) == rank]
    wide = [axis for axis in range(rank) if any(shape[axis] != 1 for shape in shapes)]
    moved = range(rank) if rank <= MOST_AXES else wide
    if len(moved) > MOST_AXES:
        yield from long.get(rank, ())
        return
    for order in permutations(moved):
        places = dict(zip(moved, order, strict=True))
        yield tuple(places.get(axis, axis) for axis in range(rank))


def joined(owner: Op, modes: Iterable[tuple[OpPart, Mode]]) -> Mode:
    """Return the mode of an op whose parts run in modes."""
    every = list(modes)
    if len(every) == 1:
        return every[0][1]
    count = len(owner.inputs)
    forms: list[Form | None] = [None] * (count + len(owner.outputs))
    axes: dict[str, list[tuple[int, int]]] = {}
    for part, mode in every:
        places = (*part.inputs, *(count + n for n in part.outputs))
        for n, form in zip(places, mode.forms, strict=True):
            forms[n] = form
        if "told" in mode.attributes:
            own = axes.setdefault(mode.attributes["told"], [])
            own.append((part.op.attributes["axis"], mode.attributes["axis"]))
    moved = {
        name: tuple(new for _, new in own)
        for name, own in axes.items()
        if any(old != new for old, new in own)
    }
    return mode_of(owner, {**owner.attributes, **moved}, forms)


def mode_of(
    op: Op,
    attributes: Mapping[str, Any],
    forms: Sequence[Form | None],
    layouts: OperandLayouts | None = None,
) -> Mode:
    """Return a mode by the forms of operands, then results, from which their orders follow."""
    count, orders = len(op.inputs), tuple(map(_order, forms, op.shapes))
    inputs, outputs = tuple(forms[:count]), tuple(forms[count:])
    return Mode(attributes, inputs, outputs, orders=orders, layouts=layouts)


def _permuted(op: Op, remapped: Remapped) -> Mode:
    forms = list(map(_form, remapped.forms, op.shapes))
    mode = mode_of(op, remapped.attributes, forms, op.layouts)
    return replace(mode, entries=remapped.entries, operands=remapped.operands, type=remapped.type)


def _form(permutation: Form | None, shape: Shape | None) -> Form | None:
    """Return a permutation as a form.

    In front of the operand's axes it may have new ones; axes of size 1 may be left out.
    """
    if permutation is None or shape is None:
        return None
    front = len(permutation) - len(shape)
    if not is_whole(permutation) or front <= 0:
        return permutation
    return tuple([max(axis - front, -1) for axis in permutation])


def _order(form: Form | None, shape: Shape | None) -> Order:
    if shape is None:
        return ()
    return order_of(tuple(range(len(shape))) if form is None else form, shape)


def sliced(op: Op, slot: int, order: Order) -> Mode | None:
    """Return the mode in which an op runs on cut axes, None if there is none.

    ``slot`` is the number of the operand, or, behind all operands, of the result; ``order`` that
    of its own axes, with parts.
    """
    known = operator_of(op)
    rule = known.blocks or (unchanged if known.category is Category.AGNOSTIC else None)
    rank, shapes = known.rank(op), op.shapes
    operands = tuple(range(len(op.inputs))) if known.operands is None else known.operands
    shape = shapes[slot]
    if rule is None or rank is None or shape is None or len(shape) > rank:
        return None
    if slot < len(op.inputs) and slot not in operands:
        return None
    front = rank - len(shape)
    own = {axis_of(item) + front for item in order}  # an axis of size 1 among them is padded
    ones = tuple(a for a in range(rank) if a not in own and (a < front or shape[a - front] == 1))
    dims = (*ones, *(moved_to(dim, main_axis(dim) + front) for dim in compact(order)))
    cut = Cut(op, dims, (1,) * front + shape)
    wide = padded_axes(cut.dims, cut.shape)
    if wide and not _keeps_zeros(op, wide, rank):
        return None
    results = rule(cut, slot >= len(op.inputs))
    if results is None:
        return None
    attributes, outputs = results
    along = op.axis(None, rank) if op.type == "Concat" else None
    alike = [n for n in operands if op.has(n)]  # what is cut as the given order is
    if outputs is None:
        alike += range(len(op.inputs), len(shapes))
    found = {n: _operand(cut, shapes[n], ones, along) for n in alike}
    if None in found.values():
        return None
    forms = [found.get(n) or None for n in range(len(shapes))]
    if outputs is not None:
        forms[len(op.inputs) :] = outputs
    return mode_of(op, {**op.attributes, **attributes}, forms)


def _keeps_zeros(op: Op, wide: Collection[int], rank: int) -> bool:
    """Return whether zeros behind axes stay zeros: then a convolution may read on.

    No operand may be broadcast along these axes.
    """
    if not operator_of(op).keeps_zeros:
        return False
    axes = [axis - rank for axis in wide]
    shapes = [shape for n, shape in enumerate(op.input_shapes) if op.has(n)]
    if any(shape is None or len(shape) < -min(axes) for shape in shapes):
        return False
    return all(len({shape[a] for shape in shapes if shape is not None}) == 1 for a in axes)


def _operand(cut: Cut, shape: Shape | None, ones: Sequence[int], along: int | None) -> Form | None:
    """Return the form of an operand, ``()`` if it may stay as it is; None if it cannot be had."""
    if shape is None or len(shape) > len(cut.shape):
        return None
    padded = padded_axes(cut.dims, cut.shape)
    if along is None and not padded and all(size == 1 for size in shape):
        return ()
    front = len(cut.shape) - len(shape)
    if any(axis >= front and shape[axis - front] != 1 for axis in ones):
        return None  # an axis that the given order does not tell of
    return cut.form(shape, along)


VIEWS = frozenset({"Flatten", "Reshape"})
"""Types of views that cut or join axes."""


def further_modes(op: Op, slot: int, order: Order, whole: Sequence[Mode]) -> list[Mode]:
    """Return the modes of an op for an order of an operand or result, no two of equal orders.

    ``slot`` is the number of the operand, or, behind all operands, of the result; ``order`` that
    of its own axes.  An order without parts is for views only.  ``whole`` are the op's modes on
    whole axes.
    """
    if op.layouts is not None or category_of(op) in (Category.HEAVY, Category.OPAQUE):
        return []
    if op.element_type in NARROW:
        return []
    shape = op.shapes[slot]
    if shape is not None and operator_of(op).each_alone:
        return [] if has_factors(order) else _alone(op, slot, spread(order, shape), whole)
    if shape is None or open_sizes(shape) > 1:
        return []  # what is cut is written as a Reshape, which leaves one size open
    if op.type in VIEWS:
        found = [None if padded_axes(order, shape) else _view(op, slot, order)]
    elif op.type not in ("Gemm", "MatMul"):
        found = [sliced(op, slot, order) if has_factors(order) else None]
    elif padded_axes(order, shape):
        found = []
    else:
        found = [_product(op, mode, slot, order, shape) for mode in whole]
        found += _batches(op, slot, order)
    kept = (mode for mode in found[::-1] if mode is not None and not _opens_parts(op, mode))
    return list({mode.orders: mode for mode in kept}.values())


def _opens_parts(op: Op, mode: Mode) -> bool:
    """Return whether a mode cuts an operand or result of which more than one size is open."""
    pairs = zip(mode.orders, op.shapes, strict=True)
    return any(shape and has_factors(order) and open_sizes(shape) > 1 for order, shape in pairs)


def _alone(op: Op, slot: int, form: Form, known: Sequence[Mode]) -> list[Mode]:
    """Return modes of an Einsum with one operand, or the result, in another form."""
    found = []
    for mode in known:
        forms = list(mode.forms)
        forms[slot] = form
        try:
            equation = permuted_equation(op, [f if f is None else whole_axes(f) for f in forms])
        except RemapError:
            continue
        found.append(mode_of(op, {**op.attributes, "equation": equation}, forms))
    return found


def _view(op: Op, slot: int, order: Order) -> Mode | None:
    before, after = op.shape(0), op.output_shapes[0]
    if slot not in (0, len(op.inputs)) or before is None or after is None or 0 in before:
        return None
    try:
        groups = reshape_groups(op, *reshape_sizes(op)) if op.type == "Reshape" else None
    except RemapError:
        return None
    groups = flatten_groups(op) if groups is None else groups
    back = [(new, old) for old, new in groups]
    order_in = _across(back, after, before, order) if slot else order
    order_out = None if order_in is None else _across(groups, before, after, order_in)
    if order_in is None or order_out is None or (slot and order_out != order):
        return None
    flat = _flattened(op, order_in, order_out, groups) if op.type == "Flatten" else None
    if flat is not None:
        return flat
    sizes = sizes_of(order_out, after), sizes_of(order_in, before)
    shape = None if 0 in after else written_sizes(*sizes, not op.integer("allowzero", 0))
    if shape is None:
        return None
    rest = (None,) * (len(op.inputs) - 1)
    if op.type == "Flatten":
        return replace(mode_of(op, {"shape": shape}, (order_in, order_out)), type="Reshape")
    return mode_of(op, {**op.attributes, "shape": shape}, (order_in, *rest, order_out))


def _across(groups: Sequence[Group], before: Shape, after: Shape, order: Order) -> Order | None:
    """Return an order of axes before a reshape as one of those after it; None if it is none."""
    found: list[Item] = []
    group_of = {axis: group for group in groups for axis in group[0]}
    for item in order:
        axis = axis_of(item)
        if axis not in group_of:
            return None  # one of size 1, which is not known of both shapes
        old, new = group_of[axis]
        if len(old) == len(new) == 1:
            found += renamed_order((item,), {axis: new[0]})
            continue
        row, cells = rows(old, before), rows(new, after)
        if row is None or cells is None or (row[-1].size == OPEN) != (cells[-1].size == OPEN):
            return None
        factor, first = factor_of(item, before), next(cell for cell in row if cell.axis == axis)
        parts = within(first.stride * factor.stride, factor.size, cells)
        if parts is None:
            return None
        found += parts
    return order_of(tuple(found), after)


def _flattened(op: Op, before: Order, after: Order, groups: Sequence[Group]) -> Mode | None:
    """Return a Flatten of axes in another order, None if its halves are not side by side."""
    dims: list[FormDim] = [0, 1]
    grouped = compact(after)
    if [main_axis(dim) for dim in grouped] != sorted({main_axis(dim) for dim in after}):
        return None
    for dim in grouped:
        dims[main_axis(dim)] = dim
    left = next((old for old, new in groups if new == (0,)), ())
    first = sum(main_axis(item) in left for item in before)
    shape = op.input_shapes[0] or ()
    form = spread(before, shape)
    long = [n for n, axis in enumerate(map(main_axis, form)) if shape[axis] != 1]
    count = [*long, len(form)][first]  # axes of size 1 belong to what is before them
    return mode_of(op, {**op.attributes, "axis": count}, (form, tuple(dims)))


def _product(op: Op, whole: Mode, slot: int, order: Order, shape: Shape) -> Mode | None:
    """Return a product with parts of the axis that it sums over, or of one that it keeps.

    Otherwise it is as in a mode on whole axes; None if axes are in another order there, or not
    side by side.
    """
    axes = _letters(op)
    if axes is None or slot not in axes:
        return None
    shapes = op.shapes
    plain = [
        form or tuple(range(len(own or ()))) for form, own in zip(whole.forms, shapes, strict=True)
    ]
    if any(is_group(dim) for form in plain for dim in form):
        return None  # _batches has such forms with parts
    grouped = {main_axis(dim): dim for dim in compact(order)}
    dims = tuple(grouped.get(main_axis(dim), dim) for dim in plain[slot])
    if order_of(dims, shape) != order:
        return None
    letters = axes[slot][len(axes[slot]) - len(shape) :]
    cut = {letters[axis]: dim for axis, dim in grouped.items()}
    cut_sizes = {letters[axis]: shape[axis] for axis, dim in grouped.items() if dim != axis}
    forms: list[Form | None] = []
    for n, own in enumerate(shapes):
        known = axes.get(n)
        if known is None or own is None:
            forms.append(None)
            continue
        names = known[len(known) - len(own) :]
        both = [(own[a], cut_sizes[name]) for a, name in enumerate(names) if name in cut_sizes]
        if n != slot and any(size != 1 and (size is None or size != cut) for size, cut in both):
            return None  # of sizes that are not known to be equal, one may be 1
        every = tuple(map(main_axis, plain[n]))
        new = tuple(
            moved_to(cut.get(names[a], a), a) if a >= 0 and own[a] != 1 else a for a in every
        )
        forms.append(None if new == tuple(range(len(own))) else new)
    mode = mode_of(op, whole.attributes, forms)
    return replace(mode, entries=whole.entries, operands=whole.operands, type=whole.type)


def _letters(op: Op) -> dict[int, tuple[str, ...]] | None:
    """Return names of the axes of operands and of the result of a product; None if unknown."""
    left, right, out = op.shape(0), op.shape(1), op.output_shapes[0]
    if left is None or right is None or out is None or min(len(left), len(right)) < 2:
        return None
    rank = max(len(left), len(right))
    batch = tuple(f"batch{i}" for i in range(rank - 2))
    a, b = ("m", "k"), ("k", "n")
    if op.type == "Gemm":
        a = a[::-1] if op.integer("transA", 0) else a
        b = b[::-1] if op.integer("transB", 0) else b
    result = (*batch, "m", "n")
    found = {0: (*batch[rank - len(left) :], *a), 1: (*batch[rank - len(right) :], *b)}
    if op.type == "Gemm" and op.has(2):
        if op.shape(2) is None or len(op.shape(2) or ()) > 2:
            return None
        found[2] = result
    return {**found, len(op.inputs): result}


BROADCASTS = 7
"""The version of the operator set since which Add broadcasts as Gemm does."""


def _batches(op: Op, slot: int, order: Order) -> Iterator[Mode]:
    """Yield a MatMul or Gemm as products of one matrix and each matrix of a batch.

    The batch is what stands before the axis that is summed over, in an order of one operand; what
    stands behind it are columns.  So it is in the result.  These are axes, or parts of one, that
    the other operand does not have; of the matrix all axes but two are of size 1.  These may come
    in parts that are side by side.  A Gemm becomes a MatMul, behind which its bias is added.
    """
    letters, count = _letters(op) or {}, len(op.inputs)
    shapes = [shape or () for shape in op.shapes]
    names = {n: own[len(own) - len(shapes[n]) :] for n, own in letters.items()}
    scaled = any(op.attributes.get(name, 1) != 1 for name in ("alpha", "beta"))
    old = op.type == "Gemm" and op.opset < BROADCASTS
    for matrix, batch in ((1, 0), (0, 1)) if not scaled and not old else ():
        sizes = {n: dict(zip(names.get(n, ()), shapes[n], strict=False)) for n in (matrix, batch)}
        kept, *others = [x for x, size in sizes[matrix].items() if size != 1 and x != "k"] or [""]
        alone = kept and not others and sizes[batch].get(kept, 1) == 1  # of the matrix
        if slot not in (batch, count) or not alone or sizes[matrix]["k"] == 1:
            continue
        found = [names[slot][axis_of(item)] for item in order]
        middle = kept if slot == count else "k"
        at = found.index(middle) if middle in found[:-1] else -1
        last = at + found.count(middle)
        is_open = _is_open(shapes[batch]) or _is_open(shapes[count])
        if at < 0 or is_open or {*found[at:last]} != {middle} or last == len(found):
            continue
        both = {shapes[n][own.index(middle)] for n, own in names.items() if middle in own} - {1}
        if last > at + 1 and (len(both) > 1 or None in both):
            continue  # of sizes that are not known to be equal, one may be 1
        forms: list[Form | None] = [None] * (count + 1)
        for n, own in names.items():
            axes = {name: axis for axis, name in enumerate(own) if shapes[n][axis] != 1}
            new = {axis: axes[name] for axis, name in enumerate(names[slot]) if name in axes}
            front, parts, back = (
                renamed_order(tuple(i for i in side if axis_of(i) in new), new)
                for side in (order[:at], order[at:last], order[last:])
            )
            dims: dict[str, FormDim] = {**axes, middle: dim_of(parts, shapes[n])}
            centre = dims.get("k" if n == batch else kept, -1)
            forms[n] = (*front, centre, dim_of(back, shapes[n])) if axes else None
            if n == matrix:
                forms[n] = dims[kept], dims["k"]
        mode = mode_of(op, {}, forms)
        operands = (matrix, batch, 2) if op.has(2) else (matrix, batch)
        yield replace(mode, operands=operands, type="MatMul" if op.type == "Gemm" else "")


def _is_open(shape: Shape) -> bool:
    """Return whether a Reshape cannot tell a shape: it leaves one size open, and copies for 0."""
    return 0 in shape or open_sizes(shape) > 1
