"""Minimum cuts: nodes of two labels decided.

*Two labels*: with no negative edge and two alternatives in all, the optimum is a minimum cut
between the two (Greig, Porteous, Seheult, J. R. Stat. Soc. B 51, 1989).

*Roof duality*: with any costs of labels and pairs of labels, a minimum cut on both literals of each
node decides what some optimum has, and bounds the rest (Boros and Hammer, Discrete Appl. Math. 123,
2002).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from layoutopt.base.result import Result
from layoutopt.network.components import components
from layoutopt.network.costs.work import Infeasible, Work
from layoutopt.network.flow import best_set, minimum_cut
from layoutopt.network.problem import IntArray, Labelling, fresh_needed, matches, reward_table

if TYPE_CHECKING:
    from layoutopt.network.network import Network

FORBIDDEN = 2**62
"""The cost of what no labelling may do."""

LARGEST = 2**58  # the absolute values of all costs add up to less than this

ENDLESS = 2**60
"""The capacity of what is forbidden; the absolute values of all costs add up to less than half."""


@dataclass(eq=False)
class _Terms:
    """Costs of literals: of node ``u``'s label 1 is ``u``, of its label 0 it is ``nodes + u``.

    ``rise`` is what label 1 of each node costs more than its label 0; ``pairs`` of literals
    cost ``weights`` where both are true; ``clashes`` are pairs that must not both be true, or
    twice the same literal that must not.
    """

    nodes: int
    constant: int
    rise: IntArray
    pairs: IntArray
    weights: IntArray
    clashes: IntArray
    value: IntArray  # shape (2 * nodes,): 1 for true literals, -1 for false ones, 0 for open ones

    def contrary(self, literals: IntArray) -> IntArray:
        """Return the contraries of literals."""
        return np.asarray((literals + self.nodes) % (2 * self.nodes))


def roof(
    costs: IntArray, edges: IntArray, table_of: IntArray, tables: IntArray
) -> tuple[IntArray, int]:
    """Return what a minimum cut decides of a problem of two labels, and a bound on all labellings.

    The first are labels that some optimum has all together, -1 where that is not known.

    Costs have shape ``(nodes, 2)``, edges ``(m, 2)``, and tables ``(k, 2, 2)``, of which each edge
    has number ``table_of``; :data:`FORBIDDEN` is what no labelling may do.  Raises ``Infeasible``
    if every labelling does something forbidden.
    """
    terms = _terms(costs, edges, table_of, tables)
    if not _propagate(terms):
        raise Infeasible
    _substitute(terms)
    flow, true = _cut(terms)
    value = np.where(terms.value != 0, terms.value > 0, true)
    one, zero = value[: terms.nodes], value[terms.nodes :]
    labels = np.where(one & ~zero, 1, np.where(zero & ~one, 0, -1))
    return labels, terms.constant + -(-flow // 2)


def _terms(costs: IntArray, edges: IntArray, table_of: IntArray, tables: IntArray) -> _Terms:
    n = len(costs)
    never = costs >= FORBIDDEN
    own = np.where(never, costs[:, ::-1], costs)
    own[never.all(axis=1)] = 0
    kinds = [_apart(table) for table in tables.tolist()]
    numbers = np.array([kind for kind, _ in kinds], np.int64).reshape(-1, 6)[table_of]
    constant, first, second, weight, p, q = numbers.T
    rise = own[:, 1] - own[:, 0]
    np.add.at(rise, edges[:, 0], first)
    np.add.at(rise, edges[:, 1], second)
    pairs = np.stack([edges[:, 0] + n * (1 - p), edges[:, 1] + n * (1 - q)], axis=1)
    used = weight > 0
    loops = np.concatenate([np.flatnonzero(never[:, 1]), n + np.flatnonzero(never[:, 0])])
    table = np.repeat(np.arange(len(kinds)), [len(clashes) for _, clashes in kinds])
    every = np.array([clash for _, clashes in kinds for clash in clashes], np.int64)
    clash, edge = matches(table, table_of)
    end, label = every.reshape(-1, 2, 2)[clash].transpose(2, 0, 1)
    clashing = edges[edge[:, None], end] + n * (1 - label)
    clashes = np.concatenate([np.stack([loops, loops], axis=1), clashing])
    total = int(own[:, 0].sum()) + int(constant.sum())
    open_ = np.zeros(2 * n, np.int8)
    return _Terms(n, total, rise, pairs[used], weight[used], clashes, open_)


_Clash: TypeAlias = tuple[tuple[int, int], tuple[int, int]]


def _apart(table: list[list[int]]) -> tuple[tuple[int, ...], list[_Clash]]:
    """Take a table apart: return six numbers, and clashes.

    The numbers are a constant, what label 1 of either node adds, and what the pair of labels that
    follows adds; clashes are pairs of ``(end, label)``, twice the same for a label that is out of
    the question.
    """
    (a, b), (c, d) = table
    at = {(0, 0): a, (0, 1): b, (1, 0): c, (1, 1): d}
    at = {place: cost for place, cost in at.items() if cost < FORBIDDEN}
    clashes = []
    for end, p in ((0, 0), (0, 1), (1, 0), (1, 1)):
        line = [((p, q), (1 - p, q)) if end == 0 else ((q, p), (q, 1 - p)) for q in (0, 1)]
        if all(here not in at for here, _ in line):
            clashes.append(((end, p), (end, p)))
            at.update({here: at[there] for here, there in line if there in at})
    missing = [(p, q) for p in (0, 1) for q in (0, 1) if (p, q) not in at]
    for p, q in missing:
        clashes.append(((0, p), (1, q)))
        if len(missing) == 1:  # any cost will do; this one adds nothing to the pair
            at[p, q] = at[1 - p, q] + at[p, 1 - q] - at[1 - p, 1 - q]
    for p, q in missing if len(missing) == 2 else ():
        at[p, q] = at[p, 1 - q]
    a, b, c, d = (at.get(place, 0) for place in ((0, 0), (0, 1), (1, 0), (1, 1)))
    weight = b + c - a - d
    if weight >= 0:
        return (a, c - a, d - c, weight, 0, 1), clashes
    return (a, c - a, b - a, -weight, 1, 1), clashes


def _propagate(terms: _Terms) -> bool:
    """Set what clashes alone decide; return whether they contradict each other."""
    first, second = terms.clashes.T
    forced, root = terms.contrary(first[first == second]), 2 * terms.nodes
    if not len(forced):
        return True
    starts = np.concatenate([first, second, np.full(len(forced), root)])
    ends = np.concatenate([terms.contrary(second), terms.contrary(first), forced])
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import breadth_first_order

    graph = csr_array((np.ones(len(ends), bool), (starts, ends)), shape=(root + 1, root + 1))
    true = breadth_first_order(graph, root, return_predecessors=False)[1:]
    terms.value[terms.contrary(true)] = -1
    if (terms.value[true] < 0).any():
        return False
    terms.value[true] = 1
    return True


def _substitute(terms: _Terms) -> None:
    """Leave only open literals in all costs."""
    n, value = terms.nodes, terms.value
    terms.constant += int(terms.rise[value[:n] > 0].sum())
    terms.rise[value[:n] != 0] = 0
    here = value[terms.pairs]
    terms.constant += int(terms.weights[(here > 0).all(axis=1)].sum())
    for near, far in ((0, 1), (1, 0)):
        one = (here[:, near] > 0) & (here[:, far] == 0)
        other = terms.pairs[one, far]
        up = other < n
        np.add.at(terms.rise, other[up], terms.weights[one][up])
        np.add.at(terms.rise, other[~up] - n, -terms.weights[one][~up])
        terms.constant += int(terms.weights[one][~up].sum())
    still = (here == 0).all(axis=1)
    terms.pairs, terms.weights = terms.pairs[still], terms.weights[still]
    terms.clashes = terms.clashes[(value[terms.clashes] == 0).all(axis=1)]


def _cut(terms: _Terms) -> tuple[int, IntArray]:
    """Return twice the least that open literals cost, or less, and which of them are true."""
    n = terms.nodes
    pairs = np.concatenate([terms.pairs, terms.clashes])
    weights = np.concatenate([terms.weights, np.full(len(terms.clashes), ENDLESS)])
    starts, ends = np.concatenate([pairs, pairs[:, ::-1]]).T
    ends = terms.contrary(ends)
    of = components(2 * n, starts, ends)[1]
    image = np.concatenate([of[n:], of[:n]])
    kept, twice = of <= image, of != image
    source, sink = 2 * n, 2 * n + 1
    like = np.flatnonzero(terms.rise)
    dear = np.where(terms.rise[like] > 0, like, like + n)  # costs something where true
    amount = np.abs(terms.rise[like])
    terms.constant += int(terms.rise[terms.rise < 0].sum())
    starts = np.concatenate([starts, dear, np.full(len(like), source)])
    ends = np.concatenate([ends, np.full(len(like), sink), terms.contrary(dear)])
    weights = np.concatenate([weights, weights, amount, amount])
    inner = np.where(starts < source, starts, np.minimum(ends, source - 1))
    used = kept[inner]
    weights = np.minimum(weights * np.where(twice[inner], 2, 1), ENDLESS)
    flow, true = minimum_cut(2 * n, starts[used], ends[used], weights[used])
    mirrored = np.flatnonzero(twice & ~kept)
    true[mirrored] = ~true[terms.contrary(mirrored)]
    return flow, true


@dataclass(frozen=True, eq=False)
class BinaryCut:
    """Labels that a minimum cut decides in a network of two labels each."""

    labels: IntArray  # shape (nodes,): labels that some optimum has all together, -1 for open nodes
    bound: int  # what no labelling costs less than
    rest: Work  # the open nodes, in order; its constant is what the others cost


def two_labels(network: Network) -> BinaryCut | None:
    """Return what a minimum cut decides of a network without rows and ties.

    ``None`` if some node has more than two labels, or numbers are too large.  Raises ``Infeasible``
    if it finds that no labelling is allowed.
    """
    sizes = network.sizes
    if not len(sizes) or sizes.max() > 2 or network.total() >= LARGEST:
        return None
    costs = np.where(np.arange(2) < sizes[:, None], 0, FORBIDDEN)
    costs[tuple(network.cost_at.T)] = network.costs
    costs[tuple(network.banned.T)] = FORBIDDEN
    used, number = np.unique(network.table_of, return_inverse=True)
    paid, equal = np.unique(network.equal_costs, return_inverse=True)
    tables = np.zeros((len(used) + len(paid), 2, 2), np.int64)
    for table, k in zip(tables, used.tolist(), strict=False):
        given = network.tables[k]
        never = False if given.allowed is None else ~given.allowed
        height, width = given.costs.shape
        table[:height, :width] = np.where(never, FORBIDDEN, given.costs)
    tables[len(used) :, [0, 1], [0, 1]] = paid[:, None]
    edges = np.concatenate([network.table_edges, network.equal_edges])
    table_of = np.concatenate([number, len(used) + equal])
    labels, bound = roof(costs, edges, table_of, tables)
    rest = _open(costs, edges, table_of, tables, labels)
    rest.constant += network.constant
    return BinaryCut(labels, bound + network.constant, rest)


def _open(
    costs: IntArray, edges: IntArray, table_of: IntArray, tables: IntArray, labels: IntArray
) -> Work:
    """Return the problem of the open nodes, with what the others cost."""
    known = labels >= 0
    ends = known[edges]
    both = ends.all(axis=1)
    first, second = labels[edges[both]].T
    paid = int(costs[known, labels[known]].sum())
    paid += int(tables[table_of[both], first, second].sum())
    costs = costs.copy()
    for near, turned in ((0, tables), (1, tables.transpose(0, 2, 1))):
        half = ~ends[:, near] & ends[:, 1 - near]
        u, v = edges[half, near], edges[half, 1 - near]
        # What a decided label forbids is decided, too: no cost that is added is forbidden.
        np.add.at(costs, u, turned[table_of[half], :, labels[v]])
    place, inner = np.cumsum(~known) - 1, ~ends.any(axis=1)
    rest = Work(costs[~known].tolist())  # both labels are allowed, as others are decided
    rest.constant = paid
    seen = [
        tuple(tuple([inf if cost >= FORBIDDEN else cost for cost in row]) for row in table)
        for table in tables.tolist()
    ]
    rest.connect(place[edges[inner]].tolist(), table_of[inner].tolist(), seen)
    return rest


CAPACITIES = 2**60  # sums of capacities stay below this, so that flows fit 64 bits


def cuttable(problem: Labelling) -> bool:
    """Return whether minimum cuts apply: no negative edges, and numbers that fit."""
    return not (problem.weights < 0).any() and 8 * problem.total() < CAPACITIES


def best_of_two(problem: Labelling) -> Result | None:
    """Solve a problem of at most two alternatives, or return ``None`` if it has more."""
    if not cuttable(problem):
        return None
    fresh = fresh_needed(problem)
    if problem.labels + fresh > 2:
        return None
    table = reward_table(problem, fresh)
    if table.shape[1] < 2:
        labels = np.zeros(problem.nodes, np.int64)
    else:
        first = best_set(problem.edges, problem.weights, table[:, 0] - table[:, 1])
        labels = np.where(first, 0, 1)
    value = problem.value(labels)
    return Result(objective=value, bound=value, labelling=labels)
