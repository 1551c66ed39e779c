"""Certificates of layouts and bounds of graphs.

Classes are first bounded without barrier order.  If their best choices make barriers depend on each
other in a cycle, the proof branches: one of two barriers of the cycle precedes the other.  In each
branch some choices are forbidden, and classes are bounded again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any, TypeAlias

import networkx
import numpy as np

from layoutopt import __version__
from layoutopt.base.deadline import run_phase
from layoutopt.base.errors import SizeError
from layoutopt.base.limits import Limits
from layoutopt.base.result import Result, Status, UnwindingResult
from layoutopt.boxes.equation import Equations
from layoutopt.certificate.classes import Class
from layoutopt.certificate.order import BarrierOrder
from layoutopt.certificate.pairwise import Pairwise
from layoutopt.certificate.refused import Refused
from layoutopt.certificate.sums import CertifiedBox
from layoutopt.certificate.unwinding import Checker
from layoutopt.certify.copies import Components, Copies, NumberedLocations, Tracer, decided, join_on
from layoutopt.io.certificate import FORMAT, document_of
from layoutopt.io.instance import known_hash
from layoutopt.lowering.elements.groups import find_cycles, find_groups
from layoutopt.lowering.lower import Lowered, SolvedGraph
from layoutopt.network.components import colouring
from layoutopt.network.evidence import SEARCH, packed, proof, ratio, table
from layoutopt.network.problem import IntArray, Labelling, exact_integers
from layoutopt.network.solvers.messages import LabelField
from layoutopt.network.solvers.relaxation import LARGEST, begin


def certified(
    result: UnwindingResult, solved: SolvedGraph | None, solve: Solve, limits: Limits
) -> UnwindingResult:
    """Attach a certificate to a result, or the reason why there is none.

    ``solved`` is the labelling problem and its solution, if there was one; ``solve`` is an exact
    method for labelling problems.
    """
    why = _reason(result, solved)
    if why or solved is None:
        return replace(result, uncertified=why)
    limits.report("certificate")
    trusted = result.status is Status.OPTIMAL
    search = limits.within(limits.left / 4)  # two checks of the certificate may take as long
    if limits.tell is not None:  # without scores and bounds, which are those of parts
        search = replace(search, tell=lambda _: limits.report("certificate"))
    work = partial(certify, solved.lowered, solved.labels, solve, search, trusted=trusted)
    try:
        certificate = run_phase("certificate", work, limits)
    except TimeoutError:
        return replace(result, uncertified=limits.lacking)
    except SizeError as error:
        return replace(result, uncertified=str(error))
    if result.score is None or Fraction(certificate["score"]) != Fraction(result.score):
        return replace(result, uncertified="the initial layouts are better than the solver's")
    return replace(result, certificate=certificate)


def _reason(result: UnwindingResult, solved: SolvedGraph | None) -> str:
    """Return the reason why a result cannot have a certificate, or an empty string."""
    if result.layouts is None:
        return "there are no layouts"
    if result.graph is not None and result.graph.tile_memory is not None:
        return "instances with a tile memory are not supported"
    if solved is None:
        return f"{result.solver} proves no bound"
    if solved.lowered.given.count:
        return "fixed layouts are not supported"
    return ""


HEAD = {"format": FORMAT, "problem": "unwinding", "version": __version__}
"""First members of a certificate."""

STEPS = 10**7  # limit of steps for intersections of boxes


def certify(
    lowered: Lowered, labels: IntArray, solve: Solve, limits: Limits, *, trusted: bool = True
) -> dict[str, Any]:
    """Return a certificate of the layouts given by labels, and of a bound.

    The checker has accepted it.  ``solve`` is an exact method for labelling problems, where barrier
    order matters.  If a trusted solver claims that the labels are optimal, bounds without evidence
    are declared unverified, otherwise replaced by the sum of positive values.  Raises ``SizeError``
    if the graph is too irregular.
    """
    writer = _Writer(lowered, labels, solve, limits)
    try:
        certificate = writer.written(trusted)
        verdict = Checker(writer.instance, certificate).verdict()
    except Refused as why:
        raise SizeError(f"the graph is too irregular for a certificate ({why})") from None
    head = {"score": ratio(verdict.score), "bound": ratio(verdict.bound)}
    return HEAD | {"instance_hash": known_hash(lowered.graph)} | head | certificate


Evidence = dict[str, Any]
Banned = frozenset[tuple[int, int]]


BITS = (0, 2, 4, 7, 10, 14, 19, 24)  # fractional bits of messages, in the order of trials
CELLS = 10**6  # largest product of edges and labels for message passing
EARNED: Evidence = {"kind": "earned"}  # the bound by the sum of all positive values


def evidence_of(
    own: Class, wanted: int, limits: Limits, banned: Banned = frozenset()
) -> tuple[Evidence, bool]:
    """Return evidence for a bound of a class, and whether it proves the wanted bound.

    If nothing proves that, the evidence is that of the lowest bound.  ``banned`` are forbidden
    pairs of nodes and terminals.
    """
    best, least = EARNED, own.bound(EARNED, banned)[0]
    others = _candidates(own, wanted, limits, banned)
    while least > wanted and (found := next(others, None)) is not None:
        try:
            bound = own.bound(found, banned)[0]
        except Refused:
            continue
        if bound < least:
            best, least = found, bound
    return best, least <= wanted


def _candidates(own: Class, wanted: int, limits: Limits, banned: Banned) -> Iterator[Evidence]:
    """Yield evidence that may prove less than the sum of positive values, cheapest first."""
    yield from _flow(own, banned)
    try:
        problem = own.pairwise(banned)
    except Refused:  # too large
        return
    exact = table(problem)
    if exact is not None:
        yield exact
        return
    yield from _messages(own, problem, wanted, limits)
    searched = proof(problem, wanted, limits.turn(SEARCH))
    if searched is not None:
        yield searched


def _flow(own: Class, banned: Banned) -> Iterator[Evidence]:
    """Yield a maximum flow from terminal 0 to terminal 1, if there are no others."""
    if len(own.terminals) != 2:
        return
    network = networkx.Graph()
    network.add_nodes_from((-1, -2))
    for i, j, w in own.edges:
        if w > 0:
            _widen(network, i, j, w)
    rewards = [(i, m, w) for i, m, w in own.rewards if (i, m) not in banned]
    for i, m, w in rewards:
        if w > 0:
            _widen(network, i, -1 - m, w)
    _, flow = networkx.maximum_flow(network, -1, -2)

    def through(i: int, j: int) -> int:
        return int(flow.get(i, {}).get(j, 0) - flow.get(j, {}).get(i, 0))

    yield {
        "kind": "flow",
        "edges": [through(i, j) if w > 0 else 0 for i, j, w in own.edges],
        "rewards": [
            (through(i, -2) if m else through(-1, i)) if w > 0 else 0 for i, m, w in rewards
        ],
    }


def _widen(network: networkx.Graph, i: int, j: int, w: int) -> None:
    """Add to the capacity of an edge, in both directions."""
    before = network[i][j]["capacity"] if network.has_edge(i, j) else 0
    network.add_edge(i, j, capacity=before + w)


def _messages(own: Class, problem: Pairwise, wanted: int, limits: Limits) -> Iterator[Evidence]:
    """Yield messages of the relaxation, which are always valid."""
    worth = np.array(problem.unary)
    weights = np.array([w for _, _, w in own.edges])
    edges = np.array([(i, j) for i, j, _ in own.edges]).reshape(-1, 2)
    cells = max(worth.shape[0], len(edges)) * worth.shape[1]
    if not len(edges) or cells > CELLS or problem.total * 8 * worth.shape[1] >= LARGEST:
        return
    colour = colouring(len(worth), edges)
    field = LabelField(worth.astype(np.int64), np.ones(worth.shape, bool), edges, weights, colour)
    ascent = begin(field, limits)
    ascent.cutoff = wanted
    ascent.climb(np.arange(len(worth)))
    paid = weights[:, None]
    exact = _reply(_reply(ascent.to_first, paid), paid)  # makes most entries of a message equal
    exact -= np.median(exact, axis=1, keepdims=True)
    for bits in BITS:  # coarse messages are short
        one = np.rint(exact * 2**bits).astype(np.int64)
        two = _reply(one, paid << bits)
        nodes = worth.astype(np.int64) << bits
        np.add.at(nodes, edges[:, 0], one)
        np.add.at(nodes, edges[:, 1], two)
        if int(nodes.max(axis=1).sum()) >> bits <= wanted:
            break
    messages = [[packed(own), None] for own in one.tolist()]
    yield {"kind": "dual", "parts": 2**bits, "messages": messages}


def _reply(messages: Any, weights: Any) -> Any:
    """Return the least messages to the second nodes that make all maxima of edges 0."""
    given = -messages
    if given.shape[1] == 1:
        return given + weights
    best = given.argmax(axis=1)[:, None]
    second = np.partition(given, -2, axis=1)[:, -2:-1]
    others = np.repeat(np.take_along_axis(given, best, 1), given.shape[1], axis=1)
    np.put_along_axis(others, best, second, 1)
    return np.maximum(given + weights, others)


Solve: TypeAlias = Callable[[Labelling, Limits, None], Result]
Tree: TypeAlias = dict[str, Any]

FORKS = 64  # largest number of branches


class Ordering:
    """Search for a tree of orders that proves a bound.

    If a trusted solver claims that the labels are optimal, what is not proved is unverified.
    """

    def __init__(
        self,
        order: BarrierOrder,
        copies: Sequence[int],
        solve: Solve,
        limits: Limits,
        trusted: bool = True,
    ) -> None:
        self.trusted = trusted
        self.order, self.copies, self.solve, self.limits = order, copies, solve, limits
        self.forks = FORKS
        # The classes that barrier order may constrain.
        self.contested = {k for k, _ in order.offered} if order.read else set()
        self._known: dict[tuple[int, Banned], tuple[list[int], int, Evidence]] = {}

    def tree(self, wanted: int, before: tuple[tuple[str, str], ...] = ()) -> Tree:
        """Return the evidence for a subset of all orders: those that keep to pairs of barriers.

        It is to prove a wanted bound for all classes together.
        """
        best = [self._best(k, self.order.banned(k, before)) for k in range(len(self.copies))]
        total = sum(n * value for n, (_, value, _) in zip(self.copies, best, strict=True))
        fork = self._fork([labels for labels, _, _ in best], before) if total > wanted else None
        if fork is None or self.forks == 0 or self.limits.over:
            return {"evidence": {str(k): best[k][2] for k in sorted(self.contested)}}
        self.forks -= 1
        b, c = fork
        return {
            "before": [b, c],
            "yes": self.tree(wanted, (*before, (b, c))),
            "no": self.tree(wanted, (*before, (c, b))),
        }

    def evidence(self, k: int, wanted: int, banned: Banned = frozenset()) -> Evidence:
        """Return evidence for the wanted bound of a class, or the best that can be proved."""
        own = self.order.classes[k]
        try:
            self.order.check_apart(k)
            found, proved = evidence_of(own, wanted, self.limits, banned)
        except Refused:  # evidence that assumes different terminals does not apply
            found, proved = EARNED, own.bound(EARNED, banned)[0] <= wanted
        return found if proved or not self.trusted else {"kind": "word", "bound": wanted}

    def _fork(
        self, labels: list[list[int]], before: tuple[tuple[str, str], ...]
    ) -> tuple[str, str] | None:
        """Return two barriers of a cycle caused by labels, if any."""
        try:
            self.order.check_legal(labels)
        except Refused as circle:
            told = {frozenset(pair) for pair in before}
            some = sorted(set(circle.about))
            pairs = ((b, c) for n, b in enumerate(some) for c in some[n + 1 :])
            return next((pair for pair in pairs if frozenset(pair) not in told), None)
        return None

    def _best(self, k: int, banned: Banned) -> tuple[list[int], int, Evidence]:
        """Return the best labels of a class, their score, and evidence for it."""
        if (k, banned) not in self._known:
            own = self.order.classes[k]
            if k not in self.contested:
                return own.labels, own.score(), {}
            found = self.solve(problem_of(own, banned), self.limits, None)
            labels = own.labels if found.labelling is None else found.labelling.tolist()
            if found.bound is None:  # out of time: the sum of positive values
                self._known[k, banned] = labels, own.bound(EARNED, banned)[0], EARNED
                return self._known[k, banned]
            value = int(found.bound)
            self._known[k, banned] = labels, value, self.evidence(k, value, banned)
        return self._known[k, banned]


def problem_of(own: Class, banned: Banned) -> Labelling:
    """Return a class as a labelling problem."""

    def table(entries: Sequence[tuple[int, ...]]) -> Any:
        return np.array(entries, np.int64).reshape(-1, 2)

    edges = [(i, j, w) for i, j, w in own.edges if w]
    rewards = [(i, m, w) for i, m, w in own.rewards if w]
    return Labelling(
        own.nodes,
        len(own.terminals),
        table([(i, j) for i, j, _ in edges]),
        exact_integers([w for _, _, w in edges]),
        table([(i, m) for i, m, _ in rewards]),
        exact_integers([w for _, _, w in rewards]),
        banned=table(sorted(banned)),
    )


class _Writer:
    def __init__(self, lowered: Lowered, labels: IntArray, solve: Solve, limits: Limits) -> None:
        self.solve, self.limits = solve, limits
        self.lowered, self.graph, self.labels = lowered, lowered.graph, labels
        self.instance = document_of(lowered.graph)
        self.equations = Equations(STEPS)
        self.components = Components(lowered)
        self.places = NumberedLocations(self.graph)
        copies = Copies(lowered, self.components, self.places, self.equations)
        self.sinks = copies.sinks(labels)
        self.copies = copies
        self.tracer = Tracer(
            self.graph, self.instance["ops"], self.places, self.sinks, self.equations
        )

    def written(self, trusted: bool) -> dict[str, Any]:
        """Return the certificate."""
        pairs = [self._pair(*pair) for pair in self.graph.pairs]
        classes = self._classes()
        certificate = {
            "instance": self.graph.name,
            "unit": ratio(self.lowered.unit),
            "classes": classes,
            "sinks": _listed(self.tracer.sinks),
            "pairs": [[_box(b) for b in boxes] for boxes in pairs],
            "read": self._read(),
            "views": {
                name: [_listed(own) for own in claims] for name, claims in self.tracer.views.items()
            },
        }
        checker = Checker(self.instance, certificate)
        _, copies, order = checker.prepared()
        values = [c.score() for c in checker.classes]
        score = sum(n * value for n, value in zip(copies, values, strict=True))
        ordering = Ordering(order, copies, self.solve, self.limits, trusted)
        for k, entry in enumerate(classes):
            if k not in ordering.contested:
                entry["evidence"] = ordering.evidence(k, values[k])
        if ordering.contested:
            certificate["order"] = ordering.tree(score)
        return certificate

    def _read(self) -> list[str]:
        """Return the tensors read by contested barriers, after tracing them."""
        if self.lowered.problem.precedence is None:
            return []
        given = self.lowered.given
        barriers, _ = find_cycles(self.graph, find_groups(self.graph, given), given)
        found = sorted({t for b in barriers for t in self.graph.op_inputs[b]})
        for t in found:
            self.tracer.boxes(t)
        return [self.graph.tensor_name(t) for t in found]

    def _pair(self, a: int, b: int, value: Decimal) -> list[CertifiedBox]:
        """Return the boxes of a pair with a value."""
        return decided(self.tracer.together(a, b)) if value else []

    def _classes(self) -> list[dict[str, Any]]:
        problem, own = self.lowered.problem, self.components
        found: list[dict[str, Any]] = []
        terms = self._terminals()
        for k, members in enumerate(own.members):
            place = {label: m for m, label in enumerate(terms[k])}
            chosen = [int(self.labels[u]) for u in members]
            found.append(
                {
                    "labels": [
                        place[x] if x < problem.labels else -1 - chosen.index(x) for x in chosen
                    ],
                    "terminals": [],
                    "edges": [],
                    "rewards": [],
                }
            )
        for (u, v), w in zip(problem.edges.tolist(), problem.weights.tolist(), strict=True):
            (k, i), (_, j) = own.tag[u], own.tag[v]
            found[k]["edges"].append([min(i, j), max(i, j), w // own.copies[k]])
        for (u, label), w in zip(problem.reward_at.tolist(), problem.rewards.tolist(), strict=True):
            k, i = own.tag[u]
            found[k]["rewards"].append([i, terms[k].index(label), w // own.copies[k]])
        self._place_terminals(found, terms)
        return found

    def _terminals(self) -> list[list[int]]:
        """Return the labels of each class for which nodes have rewards, or that they have."""
        problem, own = self.lowered.problem, self.components
        every: list[set[int]] = [set() for _ in own.members]
        for u, label in problem.reward_at.tolist():
            every[own.tag[u][0]].add(label)
        for u, label in enumerate(self.labels.tolist()):
            every[own.tag[u][0]].add(label)
        return [sorted(x for x in labels if x < problem.labels) for labels in every]  # not fresh

    def _place_terminals(self, found: list[dict[str, Any]], terms: list[list[int]]) -> None:
        """Add the boxes ``(copy, location)`` of all terminals."""
        problem, own = self.lowered.problem, self.components
        leaders = {
            t: [box.of(0, 1) for box in boxes if box.tag[1] == 0] for t, boxes in self.sinks.items()
        }
        for m in range(max(map(len, terms), default=0)):
            labels = problem.labels + own.leader
            which = {k for k, labels_of in enumerate(terms) if m < len(labels_of)}
            for k in which:
                labels[own.members[k]] = terms[k][m]  # one of these nodes is tied to it
                found[k]["terminals"].append([])
            taken = self.copies.located(labels, [own.members[k][0] for k in which])
            for t, boxes in leaders.items():
                here = [box for box in boxes if box.tag[0] in which] if t in taken else []
                for box in join_on(here, taken.get(t, []), self.graph.shapes[t], self.equations):
                    found[box.tag[0]]["terminals"][-1].append(_box(box.of(1, 2, tag=())))


def _box(box: CertifiedBox) -> list[Any]:
    return [list(box.tag), list(box.start), [[n, list(steps)] for n, steps in box.loops]]


def _listed(boxes: dict[str, list[CertifiedBox]]) -> dict[str, list[Any]]:
    return {name: [_box(box) for box in own] for name, own in boxes.items()}
