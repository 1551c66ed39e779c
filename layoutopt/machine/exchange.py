"""What moves between tiles because of ValuedPairs, and in how many cycles."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from layoutopt.check.spread import Counts, Spread, summed
from layoutopt.graphs.op import Kind, size
from layoutopt.graphs.ops import SumLike, SumLikeReduce
from layoutopt.graphs.store import Store
from layoutopt.graphs.tiling import memory_of
from layoutopt.machine.cycles import bytes_of, exchange_rate, moving


@dataclass(frozen=True)
class PairExchange:
    """What moves because of a ValuedPair.

    Parameters
    ----------
    a, b
        Its tensors.
    op
        The op that it is counted with.
    elements
        Its positions.
    apart
        Those at which its tensors are on different tiles.
    bytes
        ``apart`` times the bytes of an element of the tensor that moves; 0 if the pair's value
        is not positive.
    """

    a: str
    b: str
    op: str
    elements: int
    apart: int
    bytes: int


@dataclass(frozen=True)
class Phase:
    """An exchange: all that is counted with one op, at the same time.

    Parameters
    ----------
    op
        The op.
    bytes
        Those of its pairs.
    tile
        The tile that receives, or sends, most; the first of several.
    most
        How many bytes that are.
    cycles
        ``most`` divided by the bytes that a tile exchanges in a cycle, rounded up.
    """

    op: str
    bytes: int
    tile: int
    most: int
    cycles: int


class Exchange:
    """All that moves.

    Parameters
    ----------
    graph
        A graph with a tile memory.
    where
        Where its elements lie.

    Attributes
    ----------
    pairs
        What each ValuedPair moves, in the graph's order.
    phases
        The exchanges that move anything, in the order of ops.
    received, sent
        Bytes by tile, of all phases together.
    """

    def __init__(self, graph: Store, where: Spread) -> None:
        self.graph, self.where = graph, where
        self._readers: dict[int, set[int]] = defaultdict(set)
        for i in range(len(graph.ops)):
            if computes(graph, i):
                for t in graph.op_inputs[i]:
                    self._readers[t].add(i)
        received: dict[int, list[Counts]] = defaultdict(list)
        sent: dict[int, list[Counts]] = defaultdict(list)
        self.pairs = tuple(self._moved(received, sent))
        self.phases = tuple(self._phase(i, received[i], sent[i]) for i in sorted(received))
        self.received = summed(part for parts in received.values() for part in parts)
        self.sent = summed(part for parts in sent.values() for part in parts)

    def _moved(
        self, received: dict[int, list[Counts]], sent: dict[int, list[Counts]]
    ) -> Iterator[PairExchange]:
        """Yield what each pair moves, and add it by op to what tiles receive and send."""
        graph, where = self.graph, self.where
        for a, b, value in graph.pairs:
            op, count = self._served(a, b), size(graph.shapes[a])
            tiles, often = where.both(a, b)
            apart = count - int(often.sum())
            moves = moving(graph, a, b)
            width = bytes_of(graph, moves) if value > 0 else 0
            if apart and width:
                stays = a if moves == b else b
                for ends, t in ((sent, moves), (received, stays)):
                    ends[op].append(_scaled(summed([where.each(t), (tiles, -often)]), width))
            names = graph.tensor_name(a), graph.tensor_name(b), graph.ops[op].id
            yield PairExchange(*names, count, apart, apart * width)

    def _served(self, a: int, b: int) -> int:
        """Return the op that a pair is counted with; :func:`simulate` tells the rule."""
        mine, other = self._readers.get(a, set()), self._readers.get(b, set())
        makes, made = self.graph.producers[a], self.graph.producers[b]
        later = max(makes, made)
        found = (mine & other) | (mine & {made}) | (other & {makes}) or mine | other
        before = [i for i in found if i <= later]
        return max(before) if before else min(found, default=later)

    def _phase(self, op: int, received: list[Counts], sent: list[Counts]) -> Phase:
        ends = [summed(received), summed(sent)]
        most = max(int(numbers.max()) for _, numbers in ends)
        tile = min(int(tiles[numbers == most].min(initial=2**62)) for tiles, numbers in ends)
        cycles = -(-most // exchange_rate(memory_of(self.graph)))
        return Phase(self.graph.ops[op].id, int(ends[0][1].sum()), tile, most, cycles)


def computes(graph: Store, op: int) -> bool:
    """Return whether an op, by number, reads its operands: views and reduces of sums do not."""
    if isinstance(graph.ops[op], SumLike):
        return True
    return graph.ops[op].kind is not Kind.VIEW and not isinstance(graph.ops[op], SumLikeReduce)


def _scaled(counts: Counts, factor: int) -> Counts:
    tiles, numbers = counts
    return tiles, numbers * factor
