"""Rules of products of matrices: their last two axes have a meaning, those before are a batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import permutations, product
from typing import Any

from layoutopt.conversion.rules.op import Op, Shape, Size
from layoutopt.conversion.rules.operator import Axes, Follow, RemapError, Remapped, Rule, fitted
from layoutopt.layout.factors import Form, open_sizes
from layoutopt.layout.permutations import Permutation


def product_rule(left: int, right: int, swap: bool) -> Rule:
    """Return a rule that permutes the axes of a product of the operands in two positions.

    The last axis must be none of the left operand's, and the last but one none of the right one's:
    other axes are a batch, which operands may be broadcast along.  The product of transposed
    matrices in the other order is the transposed product: if ``swap``, the two may change places.

    Further inputs are scales and zero points: those of a row or column stay as they are, those of
    a whole batch move with it.
    """

    def permute(op: Op, permutation: Permutation) -> Remapped:
        rank = len(permutation)
        scales = [
            op.shape(n) for n in range(len(op.inputs)) if n not in (left, right) and op.has(n)
        ]
        plain = all(shape is not None and {*shape} <= {1} for shape in scales)
        if op.rank(left) == 1 or op.rank(right) == 1:
            if not plain:
                raise RemapError(f"{op}: a scale of each row or column must stay there")
            return _with_vector(op, left, right, permutation, swap)
        summed = {left: rank - 1, right: rank - 2}  # in place of the axis that is not theirs
        pairs = ((left, right), (right, left))[: 1 + swap]
        sizes = tuple(_result_size(op, left, right, axis - rank) for axis in range(rank))
        # As it is written, a batch of unknown size may be a single row.
        vectors = 1 in sizes[-2:] and open_sizes(sizes[:-2]) > 0
        vectors = vectors or _multiplies_vectors(op, sizes, right, range(rank), summed[right])
        fits = (
            (first, second)
            for first, second in pairs
            if not _spans(op, first, permutation[-1], summed[first], rank)
            and not _spans(op, second, permutation[-2], summed[second], rank)
            and (vectors or not _multiplies_vectors(op, sizes, second, permutation, summed[second]))
        )
        first, second = next(fits, (None, None))
        kept = {*permutation[-2:]} == {*summed.values()} or plain
        if first is None or second is None or not kept:
            raise RemapError(f"{op}: rows and columns, the last two axes, must stay there")
        empty = 0 in (*(op.shape(left) or ()), *(op.shape(right) or ()))
        single = all(size == 1 for size in (op.shape(first) or ())[:-2])  # for the whole batch
        if empty and single and permutation != (*range(rank),):
            raise RemapError(f"{op}: runtimes take no matrix before a batch without elements")
        orders = {
            first: _exchanged(permutation, permutation[-1], summed[first]),
            second: _exchanged(permutation, permutation[-2], summed[second]),
        }
        inputs = []
        for n in range(len(op.inputs)):
            of = op.rank(n)
            if op.has(n) and of is None:
                raise RemapError(f"{op}: the rank of input {n} is unknown")
            inputs.append(None if of is None or of < 2 else fitted(orders.get(n, permutation), of))
        places = {left: first, right: second}
        operands = tuple(places.get(n, n) for n in range(len(op.inputs)))
        return Remapped({}, tuple(inputs), (permutation,), {}, operands if first == right else None)

    return permute


def _with_vector(op: Op, left: int, right: int, permutation: Permutation, swap: bool) -> Remapped:
    """Permute the axes of a tensor that is multiplied by a vector.

    The vector changes sides if the axis that is summed over comes into the other's place.
    """
    other = right if op.rank(left) == 1 else left
    rank = len(permutation)
    summed = _summed(op, left, rank)
    place = permutation.index(summed)
    if op.rank(other) == 1 or place < rank - 2 or (place != summed and not swap):
        raise RemapError(f"{op}: the axis that is summed over must stay there")
    result = tuple(axis - (axis > summed) for axis in permutation if axis != summed)
    inputs = (permutation if n == other else None for n in range(len(op.inputs)))
    places = {left: right, right: left} if place != summed else {}
    operands = tuple(places.get(n, n) for n in range(len(op.inputs)))
    return Remapped({}, tuple(inputs), (result,), {}, operands if places else None)


def _summed(op: Op, left: int, rank: int) -> int:
    """Return the axis of a tensor that a product with a vector sums over: the last.

    If the vector stands on the left, the last but one.
    """
    return rank - 1 - (op.rank(left) == 1)


def _spans(op: Op, n: int, axis: int, summed: int, rank: int) -> bool:
    """Return whether an operand of a product has one of the result's axes, not of size 1."""
    shape = op.shape(n) or ()
    place = axis - rank + len(shape)
    return axis != summed and place >= 0 and shape[place] != 1


def _exchanged(permutation: Permutation, one: int, other: int) -> Permutation:
    """Return an order of axes with two of them in each other's place."""
    places = {one: other, other: one}
    return tuple(places.get(axis, axis) for axis in permutation)


def _multiplies_vectors(
    op: Op, sizes: Shape, second: int, axes: Sequence[int], summed: int
) -> bool:
    """Return whether rows or columns of a batch of products are 1, with a second operand each.

    Many products with vectors take far longer than one with a matrix; no transpose is worth that.
    A ``second`` operand for the whole batch is one matrix that all rows are multiplied by.
    """
    own = any(_spans(op, second, axis, summed, len(axes)) for axis in axes[:-2])
    return own and any(sizes[axis] == 1 for axis in axes[-2:])


def _result_size(op: Op, left: int, right: int, axis: int) -> Size:
    """Return the size of a product's axis, counted from the last."""
    operands = {-1: (right,), -2: (left,)}.get(axis, (left, right))
    shapes = [op.shape(n) or () for n in operands]
    sizes = [shape[axis] for shape in shapes if len(shape) >= -axis]
    return next((size for size in sizes if size != 1), 1)


def product_axes(left: int, right: int) -> Follow:
    """Return a function that finds what a product's axes are: batch, rows, and new columns."""

    def axes(op: Op) -> tuple[Axes | None, ...]:
        a, b = op.rank(left), op.rank(right)
        if a is None or b is None or max(a, b) < 2:
            return (None,)
        rank = max(a, b)
        if min(a, b) == 1:
            return (tuple(n for n in range(rank) if n != _summed(op, left, rank)),)
        return ((*range(rank - 1), None),)

    return axes


def gemm(op: Op, permutation: Permutation) -> Remapped:
    """Turn the flag of the left operand; the result stays."""
    inputs = (permutation,) + (None,) * (len(op.inputs) - 1)
    return Remapped({"transA": 1 - op.integer("transA", 0)}, inputs, (None,))


GEMM_TYPES = {"double", "float", "float16"}
"""Types of elements that runtimes have a Gemm for, besides MatMul."""


def matrix_products(op: Op) -> Iterator[Remapped]:
    """Yield a product of two matrices as Gemm, in all orders of operands and of the result.

    Further axes of a MatMul, all of size 1, are left out.
    """
    matrices = _matrices(op)
    if op.type != "MatMul" or (matrices and op.element_type in GEMM_TYPES):
        first, second, made = matrices or ((0, 1),) * 3
        left, right = op.integer("transA", 0), op.integer("transB", 0)
        for a, b, result in product((0, 1), repeat=3):
            flags = {"transA": left ^ a, "transB": right ^ b}
            if result:
                flags = {"transA": 1 - (right ^ b), "transB": 1 - (left ^ a)}
            orders = [_turned(first, a), _turned(second, b)]
            if op.has(2):
                orders.append(fitted(TURNED, op.rank(2) or 0) if result else None)
            orders += [None] * (len(op.inputs) - len(orders))
            operands = (1, 0, *range(2, len(op.inputs))) if result else None
            outputs = (_turned(made, result),)
            kind = "Gemm" if op.type == "MatMul" else ""
            yield Remapped({**op.attributes, **flags}, tuple(orders), outputs, {}, operands, kind)


def _matrices(op: Op) -> tuple[Permutation, Permutation, Permutation] | None:
    """Return rows and columns of operands and result; None if a product is not of two matrices.

    The right operand has no batch, and of the left one's batch and rows one axis is not of size 1.
    """
    left, right = op.shape(0) or (), op.shape(1) or ()
    if min(len(left), len(right)) < 2 or 0 in left + right:
        return None
    rows = [axis for axis, size in enumerate(left[:-1]) if size != 1] or [len(left) - 2]
    if len(rows) > 1 or any(size != 1 for size in right[:-2]):
        return None
    rank = max(len(left), len(right))
    made = rows[0] + rank - len(left), rank - 1
    return (rows[0], len(left) - 1), (len(right) - 2, len(right) - 1), made


def _turned(matrix: Permutation, turned: int) -> Permutation | None:
    """Return rows and columns, exchanged if ``turned``; None for a matrix as it is."""
    order = matrix[::-1] if turned else matrix
    return None if order == (0, 1) else order


TURNED: Permutation = (1, 0)
"""A matrix, transposed."""


FUSED = "com.microsoft::FusedMatMul"
"""The type of onnxruntime's product that transposes its operands itself."""


def fused_products(op: Op) -> Iterator[Remapped]:
    """Yield a product as onnxruntime's FusedMatMul, each operand in four orders.

    TransposeMatMul is what older versions call it, without orders of the batch.

    Rows, the batch and the axis that is summed over come in this order, or with the first and the
    last exchanged (``trans``), or with what is in front of the batch (``transBatch``), or both.
    """
    ranks = op.rank(0), op.rank(1)
    left, right = (rank or 0 for rank in ranks)
    fits = op.element_type == "float" or "::" in op.type
    behind = op.integer("transBatchA", 0) or op.integer("transBatchB", 0)
    if min(left, right) < 2 or not fits or behind:
        return
    batches = (0, 1) if left == right else (0,)  # else onnxruntime takes no batch behind
    each = [*product((0, 1), batches)]
    count = max(left, right)
    ways = [*product((False, True), each, each)]
    if 0 in (op.shape(0) or ()) + (op.shape(1) or ()):  # which onnxruntime broadcasts as written
        ways = [(False, (op.integer("transA", 0), 0), (op.integer("transB", 0), 0))]
    for order in permutations(range(count - 2)):
        for swapped, first, second in ways:
            yield _fused(op, order, swapped, (first, second))


def fused_shapes(op: Op) -> tuple[Shape | None, ...]:
    """Return the shapes of a FusedMatMul's operands as MatMul takes them."""
    found: list[Shape | None] = []
    for n, side in enumerate("AB"):
        shape = op.shape(n)
        if shape is not None and len(shape) > 1:
            if op.integer(f"transBatch{side}", 0):
                shape = (*shape[1:-1], shape[0], shape[-1])
            if op.integer(f"trans{side}", 0):
                shape = (*shape[:-2], shape[-1], shape[-2])
        found.append(shape)
    return tuple(found)


def attended_shape(op: Op) -> tuple[Shape | None, ...]:
    """Return the shape of the first result of onnxruntime's ops of attention: heads are joined.

    Features are those of the values: a third of what packed weights make, those of the third
    operand, or, in a grouped query, those of the query, which may hold keys and values as well.
    """
    query, key, values = (op.shape(n) if op.has(n) else () for n in range(3))
    if query is None or len(query) != 3:
        return (None,)
    features: Size = query[2]
    if op.type == "com.microsoft::GroupQueryAttention":
        heads, groups = op.integer("num_heads", 1), op.integer("kv_num_heads", 1)
        if not op.has(1) and isinstance(features, int):
            features = features // (heads + 2 * groups) * heads
    elif op.type == "com.microsoft::Attention":
        sizes = op.attributes.get("qkv_hidden_sizes")
        packed = key[1] if key and len(key) == 2 else None
        features = sizes[2] if sizes else packed // 3 if isinstance(packed, int) else None
    elif values is None or len(values) < 3:
        features = None
    elif len(values) == 3:
        features = values[2]
    return ((*query[:2], features),)


def fused_product(op: Op, permutation: Permutation) -> Remapped:
    """Return the first of a FusedMatMul's ways to run that gives the result in an order."""
    for found in fused_products(op):
        if found.outputs == (permutation,):
            return found
    raise RemapError(f"{op}: it cannot give its result in the order {permutation}")


def _fused(op: Op, batch: Permutation, swapped: bool, flags: Sequence[tuple[int, int]]) -> Remapped:
    """Return a product whose operands come in the orders that flags tell.

    ``batch`` is the order of the axes of the batch.  If ``swapped``, the operands, and so rows and
    columns of the result, change places.  ``flags`` are ``trans`` and ``transBatch`` of the
    operands in their new places.
    """
    row, column = len(batch), len(batch) + 1
    turned = op.integer("transA", 0), op.integer("transB", 0)
    outer = [column if turned[0] else row, row if turned[1] else column]  # not summed over
    inputs: list[Permutation | None] = [None, None]
    for place, n in enumerate((1, 0) if swapped else (0, 1)):
        ends = [outer[n], row + column - outer[n]]
        trans, front = flags[place]
        first, last = ends[::-1] if trans != place else ends
        order = (first, *batch, last) if front else (*batch, first, last)
        inputs[n] = fitted(order, op.rank(n) or 0)
    names = ("transA", "transBatchA", "transB", "transBatchB")
    pairs = zip(names, (*flags[0], *flags[1]), strict=True)
    attributes = {name: value for name, value in pairs if value or name in op.attributes}
    kind = FUSED if op.type != FUSED and attributes else ""
    result = (*batch, column, row) if swapped else (*batch, row, column)
    operands = (1, 0) if swapped else None
    return Remapped({**op.attributes, **attributes}, tuple(inputs), (result,), {}, operands, kind)


HEADS_LAST: Form = (0, 2, (1, 3))
"""Batch, sequence, and heads with their features as one axis."""


def attention(*operands: int, **heads: int) -> Callable[[Op], Iterator[Remapped]]:
    """Return a function that yields an attention op with its heads behind the sequence.

    ONNX takes four axes, with heads before the sequence, or three: then attributes tell how many
    heads the last axis holds.  ``operands`` are the inputs with heads; so has the first result.
    ``heads`` has by the names of attributes the operands whose heads they count.
    """

    def modes(op: Op) -> Iterator[Remapped]:
        shapes = [op.shape(n) or () for n in operands]
        if any(len(s) != 4 or 0 in s or not isinstance(s[3], int) for s in shapes):
            return  # heads and features become one axis, whose size must be known
        counts = {name: (op.shape(n) or ())[1] for name, n in heads.items()}
        if all(isinstance(count, int) for count in counts.values()):
            inputs = tuple(HEADS_LAST if n in operands else None for n in range(len(op.inputs)))
            outputs = (HEADS_LAST, *(None,) * (len(op.outputs) - 1))
            yield Remapped({**op.attributes, **counts}, inputs, outputs)

    return modes


def einsum(op: Op, permutation: Permutation) -> Remapped:
    """Permute the letters of the first operand; the result stays."""
    rest = (None,) * (len(op.inputs) - 1)
    written = permuted_equation(op, (permutation, *rest, None))
    return Remapped({"equation": written}, (permutation, *rest), (None,))


def permuted_equation(op: Op, orders: Sequence[Permutation | None]) -> str:
    """Return the equation of an Einsum whose operands and result come in other orders.

    ``orders`` has for each operand, then the result, the order of its axes; None: as before.
    Raises ``RemapError`` if axes that ``...`` stands for would not stay side by side and in
    order.
    """
    before, result = _terms(op)
    terms = [_permuted_term(op, *each) for each in zip(before, orders, strict=False)]
    return f"{','.join(terms)}->{_permuted_term(op, result, orders[-1])}"


def _terms(op: Op) -> tuple[list[str], str]:
    """Return the letters of each operand of an Einsum, and those of the result."""
    equation = str(op.attributes.get("equation", "")).replace(" ", "")
    before, arrow, result = equation.partition("->")
    if not arrow:
        once = sorted(letter for letter in {*before} if before.count(letter) == 1)
        result = "..." * ("." in before) + "".join(filter(str.isalpha, once))
    return before.split(","), result


def einsum_shape(op: Op, _: Shape) -> Shape | None:
    """Return the shape of an Einsum's result: runtimes broadcast axes of size 1 under a letter."""
    terms, result = _terms(op)
    sizes: dict[str, set[Size]] = {}
    row = 0  # axes that dots stand for, numbered from the last
    for term, shape in zip(terms, op.input_shapes, strict=False):
        if shape is None:
            return None
        dotted = max(0, len(shape) - len(term.replace("...", "")))
        row = max(row, dotted)
        for name, size in zip(_names(term, dotted), shape, strict=False):
            sizes.setdefault(name, set()).add(size)
    return tuple(_broadcast(sizes.get(name, {None})) for name in _names(result, row))


def _names(term: str, dotted: int) -> list[str]:
    """Return a name for each axis of an operand of an Einsum, where dots stand for so many."""
    front, dots, back = term.partition("...")
    return [*front, *(map(str, reversed(range(dotted if dots else 0)))), *back]


def _broadcast(sizes: set[Size]) -> Size:
    """Return the size of axes that are broadcast to each other."""
    others = sizes - {1}
    numbers = [size for size in others if isinstance(size, int)]
    return numbers[0] if numbers else next(iter(others), 1) if len(others) < 2 else None


def _permuted_term(op: Op, term: str, order: Permutation | None) -> str:
    """Return the letters of one operand in another order, the dots for a row of axes as one."""
    if order is None:
        return term
    front, dots, back = term.partition("...")
    places = [*range(len(front)), *range(len(order) - len(back), len(order))]
    named = dict(zip(places, front + back, strict=False))
    row = [place for place in range(len(order)) if place not in named]
    found = "".join(named.get(place, ".") for place in order)
    together = [place for place in order if place in row] == row and "." * len(row) in found
    if len(places) > len(order) or not together or (row and not dots):
        equation = op.attributes.get("equation")
        raise RemapError(f"{op}: equation {equation!r} does not name each axis of its operand")
    return found.replace("." * len(row), dots) if row else dots + found


def gemm_axes(op: Op) -> tuple[Axes | None, ...]:
    """Return that the first axis of a Gemm is its operand's rows, or its columns if transposed."""
    return ((op.integer("transA", 0), None),)


def rows(op: Op, permutation: Permutation) -> Mapping[str, Any]:
    """Keep the last axis, which is multiplied by one matrix, in its place."""
    if permutation[-1] != len(permutation) - 1:
        raise RemapError(f"{op}: its last axis is multiplied by a matrix, and must stay last")
    if op.rank(1) != 2:
        raise RemapError(f"{op}: it multiplies by more than one matrix")
    return {}


def multiplied_axes(op: Op) -> tuple[Axes | None, ...]:
    """Return that a product with one matrix has all axes of its operand but the last."""
    rank = op.rank(0)
    return (None if rank is None else (*range(rank - 1), None),)


def quantised_products(op: Op) -> Iterator[Remapped]:
    """Yield a QGemm with each operand in either order; the result stays."""
    if op.rank(0) == op.rank(3) == 2:
        left, right = op.integer("transA", 0), op.integer("transB", 0)
        for a, b in product((None, TURNED), repeat=2):
            inputs = (a, None, None, b, *(None,) * (len(op.inputs) - 4))
            flags = {"transA": left ^ bool(a), "transB": right ^ bool(b)}
            yield Remapped({**op.attributes, **flags}, inputs, (None,))
