"""Rules for the operands and results of matrix products."""

from __future__ import annotations

import math

from layoutopt.base.arguments import least
from layoutopt.base.errors import InputError
from layoutopt.tiles.blocks import TileMap
from layoutopt.tiles.memory import DEFAULT_EXCHANGE, TileMemory
from layoutopt.tiles.partitions import Contraction, OperandAxis, TileThroughput, partition, spread

MACS_PER_CYCLE = 16
"""Multiply-accumulates of 32-bit floats that a tile is taken to do in a cycle.

It fits the 62.5 TFLOPS that Graphcore gives for a GC200 of 1472 tiles at about 1.33 GHz."""

BATCH, M, K, N = range(4)
"""The loops of a product."""


def matmul_lhs(
    shape: tuple[int, ...],
    memory: TileMemory,
    *,
    m: int,
    k: int,
    n: int,
    batch: int = 1,
    macs_per_cycle: int = MACS_PER_CYCLE,
) -> TileMap:
    """Lay the left operand of a matrix product over the tiles that use it.

    The loops ``(batch, m, k, n)`` are cut into ``(pb, pm, pk, pn)`` parts, see
    :func:`~layoutopt.tiles.partitions.partition` for how they are chosen, and the part
    ``(b, i, j, c)`` is computed on tile ``((b * pm + i) * pk + j) * pn + c``.  Element ``(x, y)``
    of the operand is needed by the ``pn`` parts with ``i = x * pm // m``, ``j = y * pk // k``, and
    each of these holds a piece of the block that they need, see
    :func:`~layoutopt.tiles.partitions.spread`.

    Parameters
    ----------
    shape, memory
        The operand's shape, ``(m, k)``, ``(batch, m, k)``, or one that reads in row-major
        order as these: several leading dimensions, or no ``m`` where that is 1.  Without the batch
        it is used by all batches.
    m, k, n, batch
        Rows of the product, the dimension that is summed over, columns, and how many products
        of this size there are.
    macs_per_cycle
        Multiply-accumulates that a tile does in a cycle.

    Raises
    ------
    InputError
        If a number is no integer of 0 or more, or the shape is another.
    """
    loops = _loops(m, k, n, batch)
    return _operand(shape, memory, loops, (M, K), macs_per_cycle)


def matmul_rhs(
    shape: tuple[int, ...],
    memory: TileMemory,
    *,
    m: int,
    k: int,
    n: int,
    batch: int = 1,
    macs_per_cycle: int = MACS_PER_CYCLE,
) -> TileMap:
    """Lay the right operand of a matrix product over the tiles that use it.

    As :func:`matmul_lhs`, but for shape ``(k, n)`` or ``(batch, k, n)``: element ``(y, z)`` is
    needed by the ``pm`` parts with ``j = y * pk // k`` and ``c = z * pn // n``.
    """
    loops = _loops(m, k, n, batch)
    return _operand(shape, memory, loops, (K, N), macs_per_cycle)


def matmul_out(
    shape: tuple[int, ...],
    memory: TileMemory,
    *,
    m: int,
    k: int,
    n: int,
    batch: int = 1,
    macs_per_cycle: int = MACS_PER_CYCLE,
) -> TileMap:
    """Lay the result of a matrix product over the tiles that compute it.

    As :func:`matmul_lhs`, but for shape ``(m, n)`` or ``(batch, m, n)``: the ``pk`` parts with
    ``i = x * pm // m`` and ``c = z * pn // n`` have partial sums of element ``(x, z)``, and each
    of them adds up, and keeps, a piece of the block.
    """
    loops = _loops(m, k, n, batch)
    return _operand(shape, memory, loops, (M, N), macs_per_cycle)


def product_parts(
    memory: TileMemory,
    m: int,
    k: int,
    n: int,
    batch: int = 1,
    macs_per_cycle: int = MACS_PER_CYCLE,
) -> tuple[int, int, int, int]:
    """Return ``(pb, pm, pk, pn)``: into how many parts the loops of a product are cut."""
    loops = _loops(m, k, n, batch)
    pb, pm, pk, pn = partition(_product(loops), speed_of(memory, macs_per_cycle))
    return pb, pm, pk, pn


def speed_of(memory: TileMemory, macs_per_cycle: int) -> TileThroughput:
    """Return what a tile of a machine can do."""
    macs = least("macs_per_cycle", macs_per_cycle)
    received = memory.exchange_bytes_per_cycle or DEFAULT_EXCHANGE
    return TileThroughput(memory.tiles, macs, memory.bytes_of("default"), received)


def _loops(m: int, k: int, n: int, batch: int) -> tuple[int, int, int, int]:
    return least("batch", batch, 0), least("m", m, 0), least("k", k, 0), least("n", n, 0)


def _product(loops: tuple[int, ...]) -> Contraction:
    axes = [OperandAxis(extent, loop) for loop, extent in enumerate(loops)]
    operands = [(axes[BATCH], axes[a], axes[b]) for a, b in ((M, K), (K, N), (M, N))]
    return Contraction(loops, tuple(operands))


def _operand(
    shape: tuple[int, ...],
    memory: TileMemory,
    loops: tuple[int, ...],
    inner: tuple[int, int],
    macs_per_cycle: int,
) -> TileMap:
    """Return the map of an operand with two loops of a product, and maybe the batch."""
    parts = partition(_product(loops), speed_of(memory, macs_per_cycle))
    rows, columns = inner
    matrix, batched = (loops[rows], loops[columns]), (loops[BATCH], loops[rows], loops[columns])
    if _reads_as(shape, batched):
        lead = OperandAxis(loops[BATCH], BATCH)
    elif _reads_as(shape, matrix):
        lead = OperandAxis(1, None)
    else:
        wanted = f"{list(matrix)} or {list(batched)}"
        raise InputError(f"shape {list(shape)} does not fit; {wanted} is needed")
    return spread(
        (lead, OperandAxis(loops[rows], rows), OperandAxis(loops[columns], columns)), parts
    )


def _reads_as(shape: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
    """Return whether joining neighbouring dimensions of a shape makes it another.

    Dimensions of 1 may be missing.
    """
    places = {math.prod(shape[d:]) for d in range(len(shape) + 1)}
    sizes = [math.prod(wanted[d:]) for d in range(len(wanted) + 1)]
    return math.prod(shape) == sizes[0] and places.issuperset(sizes)
