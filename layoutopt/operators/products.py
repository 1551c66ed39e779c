"""Products of matrices: their last two axes have a meaning, those before are a batch."""

from __future__ import annotations

from collections.abc import Callable

from layoutopt.layout.permutations import Permutation
from layoutopt.operators.op import Op
from layoutopt.operators.operator import Category, Follow, Operator, Rule
from layoutopt.operators.remapping import Axes, RemapError, Remapped, fitted, permuted


def batch_rule(left: int, right: int) -> Rule:
    """Return a rule that permutes the batch axes of a product.

    Parameters
    ----------
    left, right
        Positions of the two operands.  Further inputs are scales and zero points: those of a
        row or column stay as they are, those of a whole batch move with it.
    """

    def batch(op: Op, permutation: Permutation) -> Remapped:
        rank = len(permutation)
        if op.rank(left) == 1 or op.rank(right) == 1:
            raise RemapError(f"{op}: an operand of one axis leaves no batch to move")
        if permutation[-2:] != (rank - 2, rank - 1):
            raise RemapError(f"{op}: rows and columns, the last two axes, must stay there")
        inputs = []
        for n in range(len(op.inputs)):
            of = op.rank(n)
            if op.has(n) and of is None:
                raise RemapError(f"{op}: the rank of input {n} is unknown")
            inputs.append(None if of is None or of < 2 else fitted(permutation, of))
        return Remapped({}, tuple(inputs))

    return batch


def product_rank(left: int, right: int) -> Callable[[Op], int | None]:
    """Return a function that finds the rank of a product.

    Parameters
    ----------
    left, right
        Positions of the two operands.
    """

    def rank(op: Op) -> int | None:
        a, b = op.rank(left), op.rank(right)
        return None if a is None or b is None else max(a, b)

    return rank


def product_axes(left: int, right: int) -> Follow:
    """Return a function that finds what a product's axes are: batch, rows, and new columns.

    Parameters
    ----------
    left, right
        Positions of the two operands.
    """

    def axes(op: Op) -> tuple[Axes | None, ...]:
        a, b = op.rank(left), op.rank(right)
        if a is None or b is None or min(a, b) < 2:
            return (None,)
        return ((*range(max(a, b) - 1), None),)

    return axes


def gemm(op: Op, permutation: Permutation) -> Remapped:
    """Turn the flag of the left operand; the result stays."""
    inputs = (permutation,) + (None,) * (len(op.inputs) - 1)
    return Remapped({"transA": 1 - op.integer("transA", 0)}, inputs, (None,))


def einsum(op: Op, permutation: Permutation) -> Remapped:
    """Permute the letters of the first operand; the result stays."""
    equation = str(op.attributes.get("equation", "")).replace(" ", "")
    terms, arrow, result = equation.partition("->")
    first, *others = terms.split(",")
    if "." in first or len(first) != len(permutation):
        raise RemapError(f"{op}: equation {equation!r} does not name each axis of its operand")
    written = ",".join(["".join(permuted(first, permutation)), *others]) + arrow + result
    inputs = (permutation,) + (None,) * (len(op.inputs) - 1)
    return Remapped({"equation": written}, inputs, (None,))


def _gemm_axes(op: Op) -> tuple[Axes | None, ...]:
    return ((op.integer("transA", 0), None),)


def _unknown(op: Op) -> tuple[Axes | None, ...]:
    return (None,)


def _product(name: str, left: int, right: int) -> Operator:
    return Operator(
        name,
        Category.LIGHT,
        batch_rule(left, right),
        operands=(left,),
        rank=product_rank(left, right),
        follow=product_axes(left, right),
    )


def _table() -> list[Operator]:
    light = Category.LIGHT
    return [
        _product("MatMul", 0, 1),
        _product("MatMulInteger", 0, 1),
        _product("QLinearMatMul", 0, 3),
        Operator("Gemm", light, gemm, follow=_gemm_axes),
        Operator("Einsum", light, einsum, follow=_unknown),
    ]


PRODUCTS = _table()
"""Products of matrices."""
