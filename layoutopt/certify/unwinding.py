"""Certificates of layouts and bounds of graphs."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any

from layoutopt import __version__
from layoutopt.base.deadline import run_phase
from layoutopt.base.errors import SizeError
from layoutopt.base.limits import Limits
from layoutopt.base.result import Status, UnwindingResult
from layoutopt.boxes.equation import Equations
from layoutopt.certificate.refused import Refused
from layoutopt.certificate.sums import CertifiedBox
from layoutopt.certificate.unwinding import Checker
from layoutopt.certify.boxes import Components, decided, join_on, named
from layoutopt.certify.copies import Copies, NumberedLocations, Tracer
from layoutopt.certify.ordering import Ordering, Solve
from layoutopt.io.certificate import FORMAT, document_of
from layoutopt.io.instance import known_hash
from layoutopt.lowering.elements.barriers import find_cycles
from layoutopt.lowering.elements.groups import find_groups
from layoutopt.lowering.lower import Lowered, SolvedGraph
from layoutopt.network.problem import IntArray


def certified(
    result: UnwindingResult, solved: SolvedGraph | None, solve: Solve, limits: Limits
) -> UnwindingResult:
    """Attach a certificate to a result, or the reason why there is none.

    Parameters
    ----------
    solved
        The labelling problem and its solution, if there was one.
    solve
        An exact method for labelling problems.
    limits
        Limits of the search for evidence.
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
        lacking = "memory" if limits.full.is_set() else f"time ({limits.stopped})"
        return replace(result, uncertified=f"not enough {lacking}")
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

STEPS = 10**7
"""Limit of steps for intersections of boxes."""


def certify(
    lowered: Lowered, labels: IntArray, solve: Solve, limits: Limits, *, trusted: bool = True
) -> dict[str, Any]:
    """Return a certificate of the layouts given by labels, and of a bound.

    Parameters
    ----------
    lowered
        The graph's problem.
    labels
        A label for each node.

    solve
        An exact method for labelling problems, where barrier order matters.
    limits
        Limits of the search for evidence.
    trusted
        Whether a solver claims that the labels are optimal: bounds without evidence are then
        declared unverified, otherwise replaced by the sum of positive values.

    Returns
    -------
    dict
        Plain data that :func:`layoutopt.certificate.unwinding.check` has accepted.

    Raises
    ------
    SizeError
        If the graph is too irregular.
    """
    writer = _Writer(lowered, labels, solve, limits)
    try:
        certificate = writer.written(trusted)
        verdict = Checker(writer.instance, certificate).verdict()
    except Refused as why:
        raise SizeError(f"the graph is too irregular for a certificate ({why})") from None
    head = {"score": _ratio(verdict.score), "bound": _ratio(verdict.bound)}
    return HEAD | {"instance_hash": known_hash(lowered.graph)} | head | certificate


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
            "unit": _ratio(self.lowered.unit),
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
        return [named(sorted(labels), problem.labels) for labels in every]

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


def _ratio(x: Fraction) -> int | str:
    return int(x) if x.denominator == 1 else f"{x.numerator}/{x.denominator}"
