"""All that is known of ops, looked up by type; users add their own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TypeVar

from layoutopt.base.errors import InputError
from layoutopt.conversion.rules import unwinding
from layoutopt.conversion.rules.builder import Build
from layoutopt.conversion.rules.op import Op, plain
from layoutopt.conversion.rules.operator import (
    Category,
    Follow,
    OperandAxes,
    Operator,
    RemapError,
    Remapped,
    Rule,
    carried_along,
    fitted,
    is_identity,
    same_axes,
    unknown_axes,
)
from layoutopt.conversion.rules.table import ROWS
from layoutopt.layout.layout import Layout, LayoutError
from layoutopt.layout.permutations import checked

AnyRule = TypeVar("AnyRule", bound=Rule)


def _by_type(operators: Iterable[Operator]) -> dict[str, tuple[Operator, ...]]:
    found: dict[str, tuple[Operator, ...]] = {}
    for one in operators:
        found[one.type] = _with(found.get(one.type, ()), one)
    return found


def _with(versions: tuple[Operator, ...], one: Operator) -> tuple[Operator, ...]:
    """Add an entry, or replace that of the same version; latest first."""
    others = [other for other in versions if other.since != one.since]
    return tuple(sorted([*others, one], key=lambda entry: -entry.since))


OPERATORS = _by_type(ROWS)
"""For each type of op what is known of it, latest version of the operator set first."""

UNKNOWN = Operator(
    "",
    Category.OPAQUE,
    operands=(),
    follow=unknown_axes,
    reason="no rule for this type is known",
    build=unwinding.unknown,
)
"""What is known of other types: nothing."""


OTHER_FACTS = (
    *("pads_channels", "keeps_zeros", "shape", "like", "same_rank", "values", "random"),
    *("structure", "unread", "build", "gradient", "effort", "grows", "shrinks"),
)
"""Facts of op types that do not depend on the order of axes."""


def register(entry: Operator) -> None:
    """Add what is known of a type of op; it replaces what was known of the same version."""
    OPERATORS[entry.type] = _with(OPERATORS.get(entry.type, ()), entry)


def operator(
    *types: str,
    category: Category | str = Category.LIGHT,
    since: int = 1,
    operands: tuple[int, ...] | None = (0,),
    parameters: Mapping[str, int] | None = None,
    follow: Follow = same_axes,
    axes: str | Callable[[Op], str] = "",
) -> Callable[[AnyRule], AnyRule]:
    """Register a rule for types of ops, as a decorator of ``rule(op, permutation)``.

    What is known of a type besides the order of axes stays.

    Parameters
    ----------
    types
        Names of types, ``domain::Type`` in other domains than ONNX's own.
    category, since, operands, parameters, follow, axes
        As in :class:`~layoutopt.conversion.rules.operator.Operator`.

    Raises
    ------
    InputError
        If no type is named, or there is no such category.
    """
    if not types or not all(isinstance(name, str) for name in types):
        raise InputError('name the types of ops, as in @operator("my::Roll")')
    entry = Operator(
        types[0],
        category,  # type: ignore[arg-type]  # a text is made one
        since=since,
        operands=operands,
        parameters=dict(parameters or {}),
        follow=follow,
        axes=axes,
    )

    def add(rule: AnyRule) -> AnyRule:
        for name in types:
            known = OPERATORS.get(name, (entry,))[0]
            facts = {fact: getattr(known, fact) for fact in OTHER_FACTS}
            register(replace(entry, type=name, rule=rule, **facts))
        return rule

    return add


def operator_of(op: Op) -> Operator:
    """Return what is known of an op; nothing is known of opaque ones."""
    found = OPERATORS.get(op.type, ())
    return next((entry for entry in found if entry.since <= op.opset), UNKNOWN)


def type_facts(type: str) -> Operator:
    """Return what is known of an op type in all its versions: that stands in its latest entry."""
    return OPERATORS.get(type, (UNKNOWN,))[0]


def build_of(type: str) -> Build:
    """Return what adds an op of a type to an unwinding graph."""
    return type_facts(type).build or (unwinding.unknown if "::" in type else unwinding.barrier)


def parameter_places(op: Op) -> Mapping[str, int]:
    """Return the inputs whose values stand among an op's attributes, by name."""
    known = operator_of(op)
    return {**known.parameters, **known.values}


def operand_axes(op: Op) -> OperandAxes | None:
    """Return the meaning of the axes of an op's operands and results, in ONNX's order.

    None if they have none, or if the op is not written for the rank of its data.
    """
    return operator_of(op).operand_axes(op)


def written_input(op: Op, n: int) -> Layout | None:
    """Return the layout in which an op reads its ``n``-th input as it is written, if any."""
    own, axes = op.layouts and op.layouts.input(n), operand_axes(op)
    return own or _plain(axes.input(n) if axes else "")


def written_output(op: Op, n: int) -> Layout | None:
    """Return the layout in which an op gives its ``n``-th result as it is written, if any."""
    own, axes = op.layouts and op.layouts.output(n), operand_axes(op)
    return own or _plain(axes.output(n) if axes else "")


def _plain(letters: str) -> Layout | None:
    return plain(letters) if letters else None


def is_unlettered(op: Op) -> bool:
    """Return whether an op's axes may be in any order, and have no letters of their own."""
    free = operator_of(op).category in (Category.AGNOSTIC, Category.LIGHT)
    return free and operand_axes(op) is None and op.layouts is None


def may_pad(op: Op) -> bool:
    """Return whether channels of an op's operands may be padded with zeros."""
    return operator_of(op).pads_channels and op.integer("group", 1) == 1


def category_of(op: Op) -> Category:
    """Return how much the order of axes matters to an op."""
    return operator_of(op).category


def remap(op: Op, permutation: Iterable[int]) -> Remapped:
    """Return the op for operands whose axes are in another order.

    With the inputs in the order that is returned, and the attributes that are returned, the op
    gives the same results as before, in the order that is returned.  To leave all as it is, the
    identity, is always possible.

    Parameters
    ----------
    op
        The op.
    permutation
        As for ``numpy.transpose``: ``permutation[i]`` is the former place of axis ``i``.  It is
        for the axes of the first input; of elementwise ops and Expand, for those that operands
        are broadcast to; of products of matrices, for those of the result.

    Raises
    ------
    RemapError
        If the op cannot run so; the text says why.
    LayoutError
        If the permutation is none, or is for another rank.
    """
    known = operator_of(op)
    rank = known.rank(op)
    try:
        order = checked(permutation, rank)
    except LayoutError as error:
        raise LayoutError(f"{op}: {error.reason}") from None
    if is_identity(order):
        return Remapped(dict(op.attributes), (None,) * len(op.inputs), (None,) * len(op.outputs))
    if known.reason:
        raise RemapError(f"{op}: {known.reason}")
    if op.layouts is not None:
        raise RemapError(f"{op}: it is written for {op.layouts}, not in ONNX's way")
    if rank is None:
        raise RemapError(f"{op}: the rank of its operands is unknown")
    for name, place in known.parameters.items():
        if op.has(place) and name not in op.attributes and name not in known.at_run_time:
            raise RemapError(f"{op}: its {name} are known at run time only")
    found = known.rule(op, order)
    if not isinstance(found, Remapped):
        found = Remapped(found)
    return Remapped(
        {**op.attributes, **found.attributes},
        _inputs(op, known, order) if found.inputs is None else found.inputs,
        _outputs(op, known, order) if found.outputs is None else found.outputs,
        found.entries,
        found.operands,
        found.type,
    )


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
