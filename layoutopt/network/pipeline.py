"""Cost networks solved with proof: merge, split, close each part, put together."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from layoutopt.base.deadline import run_phase
from layoutopt.base.entries import Takes, entries, load
from layoutopt.base.errors import InputError, printable
from layoutopt.base.limits import Limits, Progress, Stopped, callbacks_raise, interruptible, limited
from layoutopt.base.numbers import counted, exact, least, nearest, ranges, ratio
from layoutopt.base.numbers import seconds as written_seconds
from layoutopt.base.result import Answer
from layoutopt.base.table import Part, Shown, Table, Words
from layoutopt.network.builder import CostNetwork, Label, listed
from layoutopt.network.components import components
from layoutopt.network.coupled import coupled
from layoutopt.network.forms import merge_ties, take
from layoutopt.network.network import Array, CostAnswer, CostTable, Network, Proof, Usage, spans_of
from layoutopt.network.problem import (
    Labelling,
    exact_integers,
    merge_parallel,
    own_fresh,
    owners,
    restored_names,
)

if TYPE_CHECKING:
    from layoutopt.network.conflict import NetworkConflict

CERTIFYING = 100.0
"""Most seconds of a limit that are kept for a certificate."""

WHY = 30.0  # seconds that finding a small conflict may take, less where a limit of time leaves less

LABELS_SHOWN = 30  # rows of the table of labels in a notebook

Rule: TypeAlias = Callable[[dict[str, str | int]], Iterable[Iterable[str]]]
"""Lazy constraints: from the label of each node to sets of nodes whose labels must not be chosen
together; none where the labelling is allowed."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Solution(Answer, Shown):
    """The answer to a cost network.

    Parameters
    ----------
    network
        What was solved, with the rows that rules added.
    choice
        Shape ``(nodes,)``: the label of each node as a number, ``size + u`` for the fresh label
        of node ``u``; ``None`` where no allowed labelling was found.
    cost, least
        What the labelling costs, and a proved bound on what any costs, in the network's units.
    infeasible
        Whether it is proved that no labelling is allowed.
    stopped
        Why the computation ended.
    seconds
        Wall-clock seconds of the whole call; NaN if unknown.
    solver, seed
        What solved it.
    certificate
        Evidence that a small checker accepts, as plain data; ``None`` where none was asked for.
    uncertified
        Why there is none, or what it does not prove.
    patience
        Seconds that :attr:`why` may take.
    """

    network: Network = field(repr=False)
    choice: Array | None = field(default=None, repr=False)
    cost: int | None = None
    least: int | None = None
    infeasible: bool = False
    stopped: Stopped = Stopped.FINISHED
    seconds: float = 0.0
    solver: str = "auto"
    seed: int = 0
    certificate: dict[str, Any] | None = field(default=None, repr=False)
    uncertified: str = ""
    patience: float = WHY

    @property
    def objective(self) -> Fraction | int | None:
        """The labelling's exact cost; ``None`` without a labelling."""
        return _in_units(self.cost, self.network.unit)

    @property
    def bound(self) -> Fraction | int | None:
        """What no allowed labelling betters, proved; ``None`` where nothing is known."""
        return _in_units(self.least, self.network.unit)

    @property
    def gap(self) -> float | None:
        """``|bound - objective| / max(|objective|, 1e-9)``; ``None`` if either is unknown."""
        found = super().gap
        return None if found is None else abs(found)

    @cached_property
    def labels(self) -> dict[str, str | int]:
        """The label of each node by name; the label's number where it has no name."""
        if self.choice is None:
            return {}
        net = self.network
        each = enumerate(zip(net.nodes, self.choice.tolist(), strict=True))
        return {name: net.label_name(u, label) for u, (name, label) in each}

    @cached_property
    def why(self) -> NetworkConflict | None:
        """What cannot hold together; ``None`` where it is not proved that nothing is allowed."""
        from layoutopt.network.conflict import find_conflict

        if not self.infeasible:
            return None
        return find_conflict(self.network, _refutes, limited(self.patience))

    def __repr__(self) -> str:
        found = f"objective {self.objective}, bound {self.bound}, solver {self.solver!r}"
        return f"Solution({self.network.name!r}: {self.status}, {found})"

    def summary(self, labels: int = 12) -> str:
        """Return a summary as text: status, objective, bound, and the first labels.

        Parameters
        ----------
        labels
            Number of labels listed.
        """
        lines = [self._head(), Table((), self._verdict(), left=2).text()]
        if self.labels:
            lines += ["", self._labels_table(least("labels", labels, 0)).text()]
        return "\n".join(lines)

    def shown_parts(self) -> Iterator[Part]:
        """Yield status, objective and bound, and a table of labels."""
        yield Words(self._head(), "title")
        facts = self._verdict()
        yield Table([name for name, _ in facts], [[value for _, value in facts]])
        if self.labels:
            yield self._labels_table(LABELS_SHOWN)

    def _head(self) -> str:
        size = [counted(n, name.removesuffix("s")) for name, n in self.network.counts.items()]
        return f"{printable(self.network.name or 'unnamed')}: {', '.join(size)}"

    def _verdict(self) -> list[tuple[str, str]]:
        why = "" if self.stopped is Stopped.FINISHED else f" ({self.stopped})"
        best = "least" if self.network.sense == "min" else "most"
        return [
            ("status", f"{self.status}{why}"),
            ("objective", f"{exact(self.objective)} ({best} is best)"),
            ("bound", exact(self.bound)),
            ("gap", ratio(self.gap, self.objective)),
            ("solver", self.solver),
            ("seconds", written_seconds(self.seconds)),
        ]

    def _labels_table(self, most: int) -> Table:
        rows = [[node, str(label)] for node, label in islice(self.labels.items(), most)]
        return Table(["node", "label"], rows, 2, len(self.labels) - most, "node")

    def frame(self) -> dict[str, list[Any]]:
        """Return columns ``node``, ``label`` and ``number``, as any data frame takes them."""
        numbers = [] if self.choice is None else self.choice.tolist()
        return {"node": [*self.labels], "label": [*self.labels.values()], "number": numbers}


def _refutes(network: Network, limits: Limits) -> bool | None:
    """Return whether a network has no allowed labelling; ``None`` if that is not found out."""
    found = minimise(canonical(network), limits.silent(), None)
    return True if found.infeasible else None if found.labelling is None else False


def _in_units(value: int | None, unit: Fraction) -> Fraction | int | None:
    if value is None:
        return None
    whole = value * unit
    return int(whole) if whole.denominator == 1 else whole


def solve(
    network: Network | CostNetwork,
    limits: Limits | None = None,
    *,
    start: Mapping[str, Label] | Sequence[int] | Array | None = None,
    rules: Sequence[Rule] = (),
    solver: str = "auto",
    time_limit: float | None = None,
    gap: float = 0.0,
    seed: int = 0,
    workers: int = 1,
    progress: Callable[[Progress], None] | None = None,
    certificate: bool = False,
) -> Solution:
    """Return a labelling of least (or most) cost, or the proof that none is allowed.

    Parameters
    ----------
    network
        A network, or one that is still growing.
    limits
        When to stop, with the best labelling and bound so far, instead of ``time_limit`` to
        ``progress``.  Without it a first Ctrl-C in the main thread asks to stop; with it signals
        are left alone.
    start
        An allowed labelling to begin with, by names or as numbers; the answer is never worse.
    rules
        Constraints that are stated only where they are violated.  Each rule is a function that is
        called with the label of each node by name, and yields sets of nodes whose labels must not
        be chosen together.  Each set becomes a row, and the network is solved again, until rules
        yield nothing.
    solver
        ``"auto"`` proves; one of :data:`HEURISTICS` proves nothing, and keeps no rows.
    time_limit, gap
        Seconds for the whole call, none by default; relative gap at which to stop, 0 for a proof.
    seed, workers
        Seed of everything random; threads of a search.  With 1, equal calls give equal answers.
    progress
        Called with every :class:`~layoutopt.base.limits.Progress`.
    certificate
        Whether to write down evidence for the answer, which may take a third of the time, at most
        :data:`CERTIFYING` seconds.

    Raises
    ------
    InputError
        If the start is no allowed labelling, a limit no number, or a rule fails.
    """
    given = network.build() if isinstance(network, CostNetwork) else network
    if not isinstance(given, Network):
        raise InputError(f"expected a Network, not {type(given).__name__}; files are read by read")
    if not isinstance(rules, Sequence) or not all(map(callable, rules)):
        raise InputError("rules must be a list of functions")
    if limits is not None and not isinstance(limits, Limits):
        raise InputError(f"expected Limits, not {type(limits).__name__}; see time_limit=")
    if limits is not None and (time_limit, gap, seed, workers, progress) != (None, 0.0, 0, 1, None):
        raise InputError("give limits, or time_limit to progress, not both")
    own = limited(time_limit, gap, seed, workers, progress) if limits is None else limits
    with callbacks_raise(own), interruptible(own) if limits is None else nullcontext():
        return _solved(given, own, start, rules, solver, certificate)


def _solved(
    given: Network,
    limits: Limits,
    start: Mapping[str, Label] | Sequence[int] | Array | None,
    rules: Sequence[Rule],
    solver: str,
    certificate: bool,
) -> Solution:
    begun, limits = time.monotonic(), replace(limits, seed=int(limits.seed))
    first = None if start is None else started(given, start)
    if rules and solver != "auto":
        raise InputError(f"{solver} does not support rules; auto does")
    if first is not None and (broken := list(_violations(given, first, rules))):
        nodes = ", ".join(repr(given.nodes[u]) for u in broken[0])
        raise InputError(f"the labelling to begin with breaks a rule, for nodes {nodes}")
    sign = -1 if given.sense == "max" else 1
    saving = limits.saving(min(limits.left / 3, CERTIFYING)) if certificate else limits

    def shown(cost: float) -> float:
        return nearest(sign * given.unit * int(cost))

    told = saving.restated(shown, shown).steady("min")
    if rules:
        answer, given = _minimise_under_rules(given, rules, told, first)
    else:
        answer = minimise(canonical(given), told, first, known_solver(given, solver))
    labels = _better(given, answer.labelling, first)
    found = Solution(
        network=given,
        choice=labels,
        cost=None if labels is None else given.cost(labels),
        least=None if answer.bound is None else sign * answer.bound,
        infeasible=answer.infeasible,
        stopped=answer.stopped,
        seconds=time.monotonic() - begun,
        solver=solver,
        seed=limits.seed,
        patience=min(WHY, max(1.0, limits.left)),
    )
    return _certified(found, answer.proof, limits, begun) if certificate else found


def _minimise_under_rules(
    network: Network, rules: Sequence[Rule], limits: Limits, start: Array | None
) -> tuple[CostAnswer, Network]:
    """Solve a network, and add rows for what violates rules, until nothing does.

    Return a labelling that keeps all rules, ``None`` if there was no time to find one, with the
    last bound, which holds as fewer rows only allow more; and the network with the rows.
    """
    told = limits.restated(lambda _: None, lambda bound: bound)  # labellings may break rules
    while True:
        answer = minimise(canonical(network), told, start)
        if answer.labelling is None:
            return answer, network
        broken = list(_violations(network, answer.labelling, rules))
        if not broken:
            return answer, network
        network = _forbidding(network, answer.labelling, broken)
        if limits.over:
            stopped = limits.stopped or Stopped.TIME_LIMIT
            return replace(answer, labelling=start, stopped=stopped, proof=None), network


def _violations(
    network: Network, labels: Array, rules: Sequence[Rule]
) -> Iterator[tuple[int, ...]]:
    """Yield sets of nodes, by number, whose labels rules do not allow together."""
    place = {name: u for u, name in enumerate(network.nodes)}
    named = {name: network.label_name(u, labels[u]) for name, u in place.items()}
    sizes = network.sizes
    for rule in rules:
        what = f"rule {getattr(rule, '__name__', repr(rule))!r}"
        try:
            found = [[*nodes] for nodes in rule(dict(named))]
        except (Exception, SystemExit) as error:  # whatever a user's function raises
            raise InputError(f"{what} failed: {type(error).__name__}: {error}") from error
        for nodes in found:
            unknown = [name for name in nodes if not isinstance(name, str) or name not in place]
            if unknown or not nodes:
                why = f"unknown node {unknown[0]!r}" if unknown else "an empty set of nodes"
                raise InputError(f"{what} yields {why}")
            numbers = tuple(sorted({place[name] for name in nodes}))
            fresh = [network.nodes[u] for u in numbers if labels[u] >= sizes[u]]
            if fresh:
                raise InputError(f"{what} yields node {fresh[0]!r}, whose label is fresh")
            yield numbers


def _forbidding(network: Network, labels: Array, sets: Sequence[tuple[int, ...]]) -> Network:
    """Return a network with a row for each set of nodes: not all of them keep their labels."""
    nodes = np.array(sorted({u for own in sets for u in own}), np.int64)
    usage = Usage(
        nodes=nodes,
        at=np.column_stack([np.arange(len(nodes)), labels[nodes]]),
        amounts=np.ones(len(nodes), np.int64),
        spans=spans_of([np.searchsorted(nodes, own) for own in sets]),
        low=(None,) * len(sets),
        high=tuple(len(own) - 1 for own in sets),
        names=tuple(f"rule {network.rows + k}" for k in range(len(sets))),
    )
    return replace(network, usages=(*network.usages, usage))


def _better(network: Network, labels: Array | None, first: Array | None) -> Array | None:
    """Return the better of two labellings, the first where they are equal."""
    if labels is None or first is None:
        return first if labels is None else labels
    sign = -1 if network.sense == "max" else 1
    return first if sign * network.cost(first) < sign * network.cost(labels) else labels


def _certified(found: Solution, proof: Proof | None, limits: Limits, begun: float) -> Solution:
    """Return a solution with its certificate, or with the reason why there is none."""
    from layoutopt.network.certify import certify

    def work() -> tuple[dict[str, Any] | None, str]:
        return certify(found.network, found.choice, found.why, limits.silent(), proof)

    limits.report("certificate")
    try:
        document, lacks = run_phase("certificate", work, limits)
    except TimeoutError:
        document, lacks = None, limits.lacking
    if document is not None and "bound" in document:
        proved = Fraction(document["bound"])
        if found.bound is not None and proved != found.bound:
            lacks = f"the certificate proves a bound of {proved} only"
    return replace(found, certificate=document, uncertified=lacks, seconds=time.monotonic() - begun)


HEURISTICS = ("greedy", *entries(Takes.LABELLING, proves=False))
"""Solvers without proof.  All but the first are of parts with equality edges alone."""


def check_solver(solver: str) -> None:
    """Raise ``InputError`` if no solver of networks has this name."""
    if not isinstance(solver, str) or solver not in ("auto", *HEURISTICS):
        known = ", ".join(["auto", *HEURISTICS])
        raise InputError(f"cost networks have no solver {solver!r}; there are {known}")


def known_solver(network: Network, solver: str) -> str:
    """Return the name of a solver that a network's parts have.

    Raises ``InputError`` if there is none of this name, or it keeps no rows and there are some.
    """
    check_solver(solver)
    if solver != "auto" and network.usages:
        raise InputError(f"{solver} keeps no rows of limits; auto does")
    return solver


def started(network: Network, start: Mapping[str, Label] | Sequence[int] | Array) -> Array:
    """Return a labelling that a user gives as numbers; refuse one that is not allowed."""
    if isinstance(start, Mapping):
        missing = [name for name in network.nodes if name not in start]
        if missing:
            raise InputError(f"the labelling to begin with has no label of node {missing[0]!r}")
        numbers = []
        for u, name in enumerate(network.nodes):
            label, names = start[name], network.domain(u).names
            named = isinstance(label, str) and label in names
            numbers.append(names.index(label) if named else label)
    else:
        numbers = listed(start, "the labelling to begin with")
    if len(numbers) != len(network):
        why = f"has {len(numbers)} labels for {counted(len(network), 'node')}"
        raise InputError(f"the labelling to begin with {why}")
    for name, label in zip(network.nodes, numbers, strict=True):
        if not isinstance(label, int | np.integer) or abs(label) >= 2**62:
            raise InputError(f"the labelling to begin with: node {name!r} has no label {label!r}")
    labels = np.array(numbers, np.int64)
    fault = network.fault(labels)
    if fault:
        raise InputError(f"the labelling to begin with is not allowed: {fault}")
    return labels


def canonical(network: Network) -> Network:
    """Return a network whose costs are minimised, in the same units."""
    if network.sense == "min":
        return network
    return replace(
        network,
        sense="min",
        costs=-network.costs,
        equal_costs=-network.equal_costs,
        tables=tuple(CostTable(-table.costs, table.allowed) for table in network.tables),
        constant=-network.constant,
    )


def minimise(
    network: Network, limits: Limits, start: Array | None, solver: str = "auto"
) -> CostAnswer:
    """Solve a network whose costs are minimised, from an allowed labelling.

    The solver is ``"auto"``, or one of :data:`HEURISTICS` where there are no rows.
    """
    if len(network.ties):
        merged = merge_ties(network)
        own = None if start is None else merged.cut(start)
        answer = minimise(merged.network, limits, own, solver)
        if answer.labelling is None:
            return answer
        proof = answer.proof
        if proof is not None:
            proof = replace(proof, nodes=merged.first[proof.nodes])
        return replace(answer, labelling=merged.restore(answer.labelling), proof=proof)
    if network.usages:
        return coupled(network, limits, start)
    return closed(network, limits, start, solver)


def closed(
    network: Network, limits: Limits, start: Array | None, solver: str = "auto"
) -> CostAnswer:
    """Solve a network without ties and rows.

    Components of equality edges alone are a :class:`Labelling` where domains are open, or where a
    shared fresh label is never better than a named one; all others have tables.
    """
    count, of = components(
        len(network), *np.concatenate([network.equal_edges, network.table_edges]).T
    )
    labelled = _labelled(network, of, count)[of]
    tabled = ~labelled
    bound: int | None = network.constant
    stopped = Stopped.FINISHED
    labels: Array | None = np.zeros(len(network), np.int64)
    told = limits.restated(lambda x: x + network.constant, lambda x: x + network.constant)
    if labelled.any() and tabled.any():
        told = limits.partial()
    for inside, solve_some in ((labelled, _by_labels), (tabled, _by_tables)):
        nodes = np.flatnonzero(inside)
        if not len(nodes):
            continue
        part = take(network, nodes)
        own = None if start is None else own_fresh(start[nodes], part.sizes)
        share = told.within(told.left * (0.5 if labelled.any() and tabled.any() else 1.0))
        answer = solve_some(part, told if inside is tabled else share, own, solver)
        if answer.infeasible:
            return answer
        if answer.stopped is not Stopped.FINISHED:
            stopped = answer.stopped
        bound = None if bound is None or answer.bound is None else bound + answer.bound
        if answer.labelling is None:
            labels = None
        elif labels is not None:
            labels[nodes] = restored_names(answer.labelling, nodes, part.sizes)
    objective = None if labels is None else network.cost(labels)
    return CostAnswer(objective=objective, bound=bound, labelling=labels, stopped=stopped)


def _labelled(network: Network, of: Array, count: int) -> Array:
    """Return for each component whether it is solved as a labelling problem.

    In a closed domain without bans and without costs of agreement a fresh label that several
    nodes share is no better than any named one, once each node's costs are at most 0.
    """
    found = np.ones(count, bool)
    found[of[network.table_edges[:, 0]]] = False
    pays = network.equal_costs > 0
    hard = np.zeros(count, bool)
    hard[of[network.equal_edges[pays.astype(bool), 0]]] = True
    hard[of[network.banned[:, 0]]] = True
    shut = np.zeros(count, bool)
    shut[of[~network.opened]] = True
    return found & ~(shut & hard)


def _by_labels(part: Network, limits: Limits, start: Array | None, solver: str) -> CostAnswer:
    """Solve components of equality edges as one labelling problem, which is maximised."""
    sizes = part.sizes
    begin = np.cumsum([0, *(domain.size for domain in part.domains)])
    shift = begin[part.domain_of]
    named = int(begin[-1])
    closed_node = ~part.opened
    top = _largest_costs(part)  # what each label of a closed domain earns is relative to it
    top[~closed_node] = 0
    count = np.where(top != 0, sizes, 0)
    every = np.column_stack([np.repeat(np.arange(len(part)), count), ranges(0, count)])
    earned = np.concatenate([-part.costs, np.repeat(top, count)])
    at, rewards = merge_parallel(np.concatenate([part.cost_at, every]), earned)
    at[:, 1] += shift[at[:, 0]]
    edges, weights = merge_parallel(np.sort(part.equal_edges, axis=1), -part.equal_costs)
    problem = Labelling(
        len(part),
        named,
        edges,
        weights,
        at,
        rewards,
        np.column_stack([part.banned[:, 0], part.banned[:, 1] + shift[part.banned[:, 0]]]),
    )
    first = None
    if start is not None:
        first = np.where(start < sizes, start + shift, named + np.maximum(start - sizes, 0))
    name = "random-greedy" if solver == "greedy" else solver
    most = sum(top.tolist())
    told = limits.restated(lambda x: most - x, lambda x: most - x)
    found = load(name, Takes.LABELLING)(problem, told, first)
    labels = None if found.labelling is None else _named(part, found.labelling, shift, named)
    bound = None if found.bound is None else most - int(found.bound)
    objective = None if labels is None else part.cost(labels)
    return CostAnswer(objective=objective, bound=bound, labelling=labels, stopped=found.stopped)


def _by_tables(part: Network, limits: Limits, start: Array | None, solver: str) -> CostAnswer:
    """Solve components of closed domains; equality edges become tables."""
    name = "auto" if solver == "auto" else "pbqp"
    found: CostAnswer = load(name, Takes.TABLES)(part, limits, start)
    return found


def _largest_costs(part: Network) -> Array:
    """Return the largest cost of each node's named labels, those of cost 0 included."""
    free = np.bincount(part.cost_at[:, 0], minlength=len(part)) < part.sizes
    top = np.full(len(part), part.costs.min(initial=0), part.costs.dtype)
    top[free] = 0
    np.maximum.at(top, part.cost_at[:, 0], part.costs)
    return exact_integers(top.tolist())


def _named(part: Network, labels: Array, shift: Array, named: int) -> Array:
    """Return labels of the network: fresh ones of closed domains become the first named one.

    What is no label of a node's own domain is a fresh label that its component shares.
    """
    sizes = part.sizes
    own = (labels >= shift) & (labels < shift + sizes)
    fresh = sizes + owners(components(len(part), *part.equal_edges.T)[1], labels)
    return np.where(own, labels - shift, np.where(part.opened, fresh, 0))
