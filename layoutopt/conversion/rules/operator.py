"""Operators: semantics of an op type, and its remapping to other orders of axes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from layoutopt.base.errors import InputError, LayoutoptError, OptionError
from layoutopt.conversion.rules.op import Op, OperandLayouts, Shape, plain
from layoutopt.layout.factors import Form
from layoutopt.layout.layout import LayoutError
from layoutopt.layout.permutations import Permutation, checked

if TYPE_CHECKING:
    from layoutopt.conversion.rules.blocks import BlockRule
    from layoutopt.conversion.rules.builder import BackwardRule, Build

Axes: TypeAlias = tuple[int | None, ...]
"""For each axis of a result the axis of the operand that it is, or takes the place of; None for
one that the op adds."""


class RemapError(LayoutError):
    """An op that cannot run with its axes in the order asked for; the text says why."""


Forms: TypeAlias = tuple[Form | None, ...]
"""The form of each operand or result; None for one that stays as it is."""


@dataclass(frozen=True)
class Remapped:
    """An op for operands whose axes are in another order.

    Permutations are as for ``numpy.transpose``: ``p[i]`` is the former place of axis ``i``.
    """

    # The new attributes.  A rule need not repeat those that stay.
    attributes: Mapping[str, Any] = field(default_factory=dict)
    # For each input the permutation that it must come in.  One that is longer than the input's
    # rank wants axes of size 1 put in front first, as in broadcasting.  Or a form of its axes, in
    # which some are joined.  None: as before.  Empty: what the operator's other facts say.
    inputs: Forms = ()
    # for each output the permutation in which it comes out; None and empty as for inputs
    outputs: Forms = ()
    # For inputs, and behind all inputs for outputs, that are vectors with an entry per axis: which
    # entries a Gather picks.  It stands before an input, and picks from the vector as it was;
    # behind an output it picks from what the op gives now.
    entries: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    # the inputs in the order in which the op takes them now; None: as before
    operands: Permutation | None = None
    type: str = ""  # the type of op that it becomes, `""` for the same

    @property
    def forms(self) -> Forms:
        """The forms of operands, then results."""
        return (*self.inputs, *self.outputs)


def unpermuted(op: Op) -> Remapped:
    """Return an op as it is written."""
    return Remapped(dict(op.attributes), (None,) * len(op.inputs), (None,) * len(op.outputs))


def fitted(permutation: Permutation, rank: int) -> Permutation | None:
    """Return the permutation for an operand that is broadcast, None if it can stay as it is.

    The operand has so many axes; the permutation given is that of what it is broadcast to.
    """
    front = len(permutation) - rank
    tail = permutation[front:]
    if tail == tuple(range(front, len(permutation))):
        return None
    alone = is_identity(permutation[:front])
    return tuple(axis - front for axis in tail) if alone else permutation


def carried_along(axes: Axes, permutation: Permutation) -> Permutation:
    """Return the order in which a result's axes come out.

    Those that are axes of the operand keep the operand's new order among themselves; those that
    the op adds stay where they are.
    """
    new = {axis: place for place, axis in enumerate(permutation)}
    old = [(new[axis], i) for i, axis in enumerate(axes) if axis is not None]
    order = iter(sorted(old))
    return tuple(i if axis is None else next(order)[1] for i, axis in enumerate(axes))


def permuted(values: Sequence[Any], permutation: Sequence[int]) -> tuple[Any, ...]:
    """Return the values of axes in the new order of these."""
    return tuple(values[i] for i in permutation)


def is_identity(permutation: Sequence[int]) -> bool:
    """Return whether a permutation changes nothing."""
    return all(i == axis for i, axis in enumerate(permutation))


Rule: TypeAlias = Callable[[Op, Permutation], Mapping[str, Any] | Remapped]
"""``(op, permutation)``, returning the attributes that change, or all of a :class:`Remapped`."""

Follow: TypeAlias = Callable[[Op], tuple[Axes | None, ...]]
"""For each result, which axes of the driving operand its axes are; None if that is unknown."""


class Category(StrEnum):
    """Dependence of an op type on the order of axes."""

    AGNOSTIC = "agnostic"
    """Not at all: elementwise ops."""
    LIGHT = "lightly sensitive"
    """Attributes name axes, and can name others: concat, softmax, pad, reduce."""
    HEAVY = "heavily sensitive"
    """Each axis has a meaning of its own: convolutions, pools."""
    VIEW = "view"
    """The same elements under another shape: transpose, reshape."""
    OPAQUE = "opaque"
    """Nothing is known: operands stay as they are."""


class FoldingEffort(StrEnum):
    """Time and room that computing an op takes."""

    SMALL = "by operands and results"
    WINDOW = "by operands, results and kernel"
    PRODUCT = "long on large operands only, which may make more of a few numbers"
    LONG = "long on large operands"
    UNBOUNDED = "any amount on the way to a small result"


SPATIAL_AXES = {0: "", 1: "W", 2: "HW", 3: "DHW"}
"""Letters of spatial axes, by their number."""


Rank: TypeAlias = Callable[[Op], int | None]
"""How many axes of an op are permuted, None if that is unknown."""


def rank_of(n: int) -> Rank:
    """Return a function that finds the rank of an input."""

    def rank(op: Op) -> int | None:
        return op.rank(n)

    return rank


first_rank = rank_of(0)
"""Return the rank of the first input."""


def largest_rank(*operands: int) -> Rank:
    """Return a function that finds the largest rank of some operands, by default of all."""

    def rank(op: Op) -> int | None:
        ranks = [op.rank(n) for n in operands or range(len(op.inputs)) if op.has(n)]
        known = [rank for rank in ranks if rank is not None]
        return max(known, default=None) if len(known) == len(ranks) else None

    return rank


def all_axes(rank: Rank) -> Follow:
    """Return a function that tells that a result has all axes that are permuted."""

    def axes(op: Op) -> tuple[Axes | None, ...]:
        count = rank(op)
        return (None if count is None else tuple(range(count)),)

    return axes


def unknown_axes(op: Op) -> tuple[Axes | None, ...]:
    """Return that nothing is known of the axes of results."""
    return (None,) * len(op.outputs)


def same_axes(op: Op) -> tuple[Axes | None, ...]:
    """Return that results have the axes of the first input, where they have as many."""
    rank = op.rank(0)
    shapes = op.output_shapes or (None,) * len(op.outputs)
    every = None if rank is None else tuple(range(rank))
    return tuple(every if shape is None or len(shape) == rank else None for shape in shapes)


def unmoved(op: Op, permutation: Permutation) -> Remapped:
    """Refuse to reorder axes, whatever the order."""
    raise RemapError(f"{op}: each of its axes has its place and must stay there")


class ShapeLike(NamedTuple):
    """The op of ONNX's latest operator set whose results have the shape of those of another op."""

    type: str
    operands: Sequence[int] = (0,)  # the other op's inputs that are its operands
    typed: int = 0  # the other op's input whose type of elements the results have
    # tells the shapes of these operands; by default they are those of the other op's inputs
    shapes: Callable[[Op], tuple[Shape | None, ...]] | None = None
    also: tuple[int, ...] = ()  # further results of the shape of the first


@dataclass(frozen=True)
class Operator:
    """All that is known of an op type.

    Raises ``InputError`` if there is no such category.
    """

    type: str  # its name; in other domains than ONNX's own, `domain::Type`
    category: Category  # how much the order of axes matters
    # What becomes of an op whose axes are permuted: `(op, permutation)`, returning the attributes
    # that change.  A rule that needs more returns a :class:`Remapped`.
    rule: Rule = unmoved
    since: int = 1  # the first version of the operator set that this is true of
    # the inputs that have the permuted axes, counted from the last if their ranks differ; None for
    # all
    operands: tuple[int, ...] | None = (0,)
    # for ops that run in more ways than the rule tells, in which operands and results are permuted
    # each alone: all of these
    alternatives: Callable[[Op], Iterable[Remapped]] | None = None
    # the same for ways to run that not every runtime has
    on_request: Callable[[Op], Iterable[Remapped]] | None = None
    # whether each operand and result may come in any order, whatever those of the others
    each_alone: bool = False
    rank: Rank = first_rank  # how many axes are permuted
    follow: Follow = same_axes  # which of these the results' axes are
    # For heavily sensitive ops, the meaning of each axis as ONNX writes the op: a letter per axis,
    # as in `"NC+, OI+, O -> NC+"`.  `+` stands for the spatial axes of the first input (W, HW or
    # DHW), `*` for an axis without such a meaning; nothing for an operand of which nothing is
    # known.  Or a function that returns this for an op.
    axes: str | Callable[[Op], str] = ""
    reason: str = ""  # why the axes of an opaque op have no rule
    # what becomes of an op whose axes are cut into parts; None if it cannot run so
    blocks: BlockRule | None = None
    # from here on: facts that do not depend on the order of axes
    # inputs whose values stand among the attributes where they are known, with their positions
    parameters: Mapping[str, int] = field(default_factory=dict)
    # those of these that the rule can do without, where they are known at run time only
    at_run_time: tuple[str, ...] = ()
    keeps_zeros: bool = False  # whether the result is zero where all operands are
    # whether it makes zeros of channels of zeros, and nothing else of other channels
    pads_channels: bool = False
    # the shape of a result, of an op and that of its first input, where ONNX infers another than
    # runtimes make; None: ONNX's own
    shape: Callable[[Op, Shape], Shape | None] | None = None
    # the op that has results of the same shape, where ONNX infers none
    like: ShapeLike | None = None
    # whether results have as many axes as the first input, whatever else is unknown
    same_rank: bool = False
    random: bool = False  # whether results are no function of the inputs
    # positions of inputs that hold axes, sizes or settings, which are no data if they are known;
    # by default those of `parameters`
    structure: tuple[int, ...] | None = None
    unread: tuple[int, ...] = ()  # positions of inputs of which only shape or type matter
    # what it takes to compute it where its operands are constants
    effort: FoldingEffort = FoldingEffort.SMALL
    # `grows`, `shrinks`: whether results may be larger than what all pairs of elements of operands
    # have, or are no larger than operands, by how much depends on values
    grows: bool = False
    shrinks: bool = False
    build: Build | None = None  # adds an op to an unwinding graph; by default, as a barrier
    # adds its backward pass; None: an opaque one, of which users are told
    gradient: BackwardRule | None = None
    unlearned: tuple[int, ...] = ()  # positions of operands that are given: no gradient goes there
    all_differentiable: bool = False  # whether all outputs have gradients, or the first only

    def __post_init__(self) -> None:
        if self.category not in list(Category):
            allowed = ", ".join(Category)
            raise InputError(f"{self.type}: category {self.category!r} must be one of {allowed}")
        object.__setattr__(self, "category", Category(self.category))

    @property
    def structural(self) -> tuple[int, ...]:
        """Positions of inputs that hold axes, sizes or settings."""
        return tuple(self.parameters.values()) if self.structure is None else self.structure

    @property
    def takes_room(self) -> bool:
        """Whether computing it may take more room than operands and results do."""
        return self.effort in (FoldingEffort.WINDOW, FoldingEffort.UNBOUNDED)

    @property
    def keeps_shape(self) -> bool:
        """Whether all results have the shape of the first input."""
        agnostic = self.category is Category.AGNOSTIC and self.operands == (0,)
        return agnostic and self.follow is same_axes

    def remap(self, op: Op, permutation: Iterable[int]) -> Remapped:
        """Return an op of this type for axes in another order; see :func:`.registry.remap`."""
        rank = self.rank(op)
        try:
            order = checked(permutation, rank)
        except LayoutError as error:
            raise LayoutError(f"{op}: {error.reason}") from None
        if is_identity(order):
            return unpermuted(op)
        if self.reason:
            raise RemapError(f"{op}: {self.reason}")
        if op.layouts is not None:
            raise RemapError(f"{op}: it is written for {op.layouts}, not in ONNX's way")
        if rank is None:
            raise RemapError(f"{op}: the rank of its operands is unknown")
        for name, place in self.parameters.items():
            if op.has(place) and name not in op.attributes and name not in self.at_run_time:
                raise RemapError(f"{op}: its {name} are known at run time only")
        try:
            given = self.rule(op, order)
            found = given if isinstance(given, Remapped) else Remapped({**given})
        except Exception as error:  # whatever a user's rule raises
            own = getattr(self.rule, "func", self.rule).__module__.startswith("layoutopt.")
            if own or isinstance(error, LayoutoptError):
                raise
            raise OptionError(f"{op}: its rule raises {type(error).__name__}: {error}") from error
        return Remapped(
            {**op.attributes, **found.attributes},
            found.inputs or _inputs(op, self, order),
            found.outputs or _outputs(op, self, order),
            found.entries,
            found.operands,
            found.type,
        )


@cache
def named_axes(text: str, rank: int) -> OperandLayouts | None:
    """Return what a line of letters by operand says, for data of some rank."""
    before, _, after = (side.replace(" ", "") for side in text.partition("->"))
    spatial = rank - len(before.partition(",")[0].replace("+", ""))
    if spatial < 0 or ("+" not in before.partition(",")[0] and spatial):
        return None
    letters = SPATIAL_AXES.get(spatial, "*" * spatial)
    sides = (side.replace("+", letters).split(",") for side in (before, after))
    return OperandLayouts(*(tuple(plain(own) if own else None for own in side) for side in sides))


def _inputs(op: Op, known: Operator, order: tuple[int, ...]) -> tuple[tuple[int, ...] | None, ...]:
    """Return the order that each input must come in, where the rule says nothing else."""
    found: list[tuple[int, ...] | None] = []
    for n in range(len(op.inputs)):
        taken = op.has(n) and (known.operands is None or n in known.operands)
        rank = op.rank(n)
        if taken and rank is None:
            raise RemapError(f"{op}: the rank of input {n} is unknown")
        found.append(fitted(order, rank) if taken and rank is not None else None)
    return tuple(found)


def _outputs(op: Op, known: Operator, order: tuple[int, ...]) -> tuple[tuple[int, ...] | None, ...]:
    """Return the order that each output comes in, where the rule says nothing else."""
    followed = known.follow(op)
    if len(followed) < len(op.outputs):
        followed += (None,) * (len(op.outputs) - len(followed))
    return tuple(
        None if axes is None else carried_along(axes, order)
        for axes in followed[: max(len(op.outputs), 1)]
    )
