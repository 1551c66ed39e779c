"""Certificates of conversion: cost of a choice of layouts, and a lower bound on all choices.

The statement of the problem is plain data ::

    {"objectives": ["count", "bytes"], "tensors": {"x": [1, 4096], ...},
     "ops": [{"op": "relu", "takes": ["x"], "gives": ["y"], "modes": [["0123", "0123"], ...]}]}

``tensors`` has the cost of a transform of each tensor; a mode has the layouts of an op's inputs
(``takes``) followed by those of its outputs (``gives``); optional ``"costs"`` has the cost of each
mode.  Inputs and outputs of the network are ops of one mode, those that are freed have one for
each of their layouts; constants cost nothing, and are left out.  All consumers of a tensor in the
same layout share one transform, which is not needed for the layout of its producer, or of one of
its two producers.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from math import prod
from typing import TypeAlias

import numpy as np

from layoutopt.certificate.bounds import bound
from layoutopt.certificate.pairwise import Pairwise
from layoutopt.certificate.refused import Refused, entry, listed, numbered
from layoutopt.certificate.rows import Array

Costs: TypeAlias = list[int]
Need: TypeAlias = tuple[str, str]
"""A tensor and a layout."""

MOST = 10**40  # upper limit of costs


@dataclass(frozen=True)
class CertifiedOp:
    """An op: for each mode its inputs, from ``first`` on its outputs, and its cost."""

    modes: list[list[Need]]
    first: int
    costs: list[Costs]


@dataclass(frozen=True)
class Statement:
    """Costs of each tensor's transforms, and the ops."""

    moves: dict[str, Costs]
    ops: list[CertifiedOp]
    objectives: int

    def taken(self) -> list[Need]:
        """Return the layouts of tensors that some mode requires."""
        every = (need for op in self.ops for mode in op.modes for need in mode[: op.first])
        return list(dict.fromkeys(every))

    def weights(self) -> list[int]:
        """Return weights that combine all objectives into one number in lexicographic order."""
        every = [self.moves[name] for name, _ in self.taken()] + [
            c for op in self.ops for c in op.costs
        ]
        most = [1 + sum(cost[k] for cost in every) for k in range(self.objectives)]
        return [prod(most[k + 1 :]) for k in range(self.objectives)]


def stated(given: object) -> Statement:
    """Parse a statement."""
    objectives = len(listed(entry(given, "objectives"), None, "objectives"))
    tensors, ends = entry(given, "tensors"), [MOST] * objectives
    if not isinstance(tensors, dict):
        raise Refused("tensors must be an object")
    moves = {name: numbered(cost, ends, "costs") for name, cost in tensors.items()}
    ops = [_op(op, moves, ends) for op in listed(entry(given, "ops"), None, "ops")]
    makers = Counter(name for op in ops for name, _ in op.modes[0][op.first :])
    if makers.keys() != moves.keys() or max(makers.values(), default=1) > 2:
        raise Refused("each tensor must be the output of one op, or of two")
    return Statement(moves, ops, objectives)


def _op(given: object, moves: dict[str, Costs], ends: list[int]) -> CertifiedOp:
    takes, gives, layouts = (
        listed(entry(given, key), None, key) for key in ("takes", "gives", "modes")
    )
    names, modes = [*takes, *gives], [listed(own, None, "a mode") for own in layouts]
    if not modes or not all(isinstance(x, str) for own in [names, *modes] for x in own):
        raise Refused("an op must have modes, lists of strings")
    if not set(names) <= moves.keys():
        raise Refused(f"tensor {min(set(names) - moves.keys())[:40]!r} is not stated")
    needs = [list(zip(names, listed(own, len(names), "a mode"), strict=True)) for own in modes]
    costs: object = [[0 for _ in ends]] * len(modes)
    if isinstance(given, dict) and "costs" in given:
        costs = given["costs"]
    own = [numbered(cost, ends, "costs") for cost in listed(costs, len(modes), "costs")]
    return CertifiedOp(needs, len(takes), own)


def score(statement: Statement, modes: object) -> Costs:
    """Return the cost of a choice of a mode for each op."""
    chosen = numbered(modes, [len(op.modes) for op in statement.ops], "modes")
    wanted, homes, parts = set[Need](), set[Need](), list[Costs]()
    for op, mode in zip(statement.ops, chosen, strict=True):
        wanted |= set(op.modes[mode][: op.first])
        homes |= set(op.modes[mode][op.first :])
        parts.append(op.costs[mode])
    parts += [statement.moves[name] for name, _ in wanted - homes]
    return [sum(cost[k] for cost in parts) for k in range(statement.objectives)]


def folded(statement: Statement, instead: object, weights: list[int]) -> Statement:
    """Return the modes that remain after replacing others, given for each op and mode.

    Replacements must not cost more, and must map equal layouts of a tensor to equal layouts, so
    that no transform is added.
    """
    turned, ops = dict[Need, str](), list[CertifiedOp]()
    for op, given in zip(
        statement.ops, listed(instead, len(statement.ops), "instead"), strict=True
    ):
        own = numbered(given, [len(op.modes)] * len(op.modes), "instead")
        for mode, other in enumerate(own):
            if weigh(op.costs[other], weights) > weigh(op.costs[mode], weights):
                raise Refused("a mode replaces one that costs less")
            for need, (_, layout) in zip(op.modes[mode], op.modes[other], strict=True):
                if turned.setdefault(need, layout) != layout:
                    raise Refused(f"two layouts replace {need[1]} of {need[0][:40]!r}")
        kept = sorted(set(own))
        ops.append(
            replace(op, modes=[op.modes[m] for m in kept], costs=[op.costs[m] for m in kept])
        )
    return replace(statement, ops=ops)


def problem(statement: Statement, weights: list[int]) -> Pairwise:
    """Return the choice as a pairwise problem: a node per op, and one per required layout.

    Label 1 of the latter means that the tensor exists in that layout, at the cost of a transform
    unless its producer gives it so; requiring a missing layout costs as much.  Of a tensor with two
    producers the label has this cost, each takes it back where it gives the layout, and the edge of
    the two charges once what both take back: then the layout may exist though no op requires it.
    """
    nodes = {need: len(statement.ops) + place for place, need in enumerate(statement.taken())}
    edges: list[tuple[int, int, Array]] = []
    layouts: dict[str, list[Need]] = {}
    for need in nodes:
        layouts.setdefault(need[0], []).append(need)
    makers: dict[str, list[int]] = {}
    for i, op in enumerate(statement.ops):
        for name, _ in op.modes[0][op.first :]:
            makers.setdefault(name, []).append(i)
    for i, op in enumerate(statement.ops):
        for need in dict.fromkeys(need for own in op.modes for need in own[: op.first]):
            paid = -weigh(statement.moves[need[0]], weights)
            rows = [[paid if need in own[: op.first] else 0, 0] for own in op.modes]
            edges.append((i, nodes[need], np.array(rows, object)))
        for need in (n for name, _ in op.modes[0][op.first :] for n in layouts.get(name, ())):
            paid = -weigh(statement.moves[need[0]], weights)
            given, other = (-paid, 0) if len(makers[need[0]]) == 2 else (0, paid)
            rows = [[0, given if need in own[op.first :] else other] for own in op.modes]
            edges.append((i, nodes[need], np.array(rows, object)))
    for name, both in makers.items():
        if len(both) == 2:
            paid = -weigh(statement.moves[name], weights)
            ops, own = [statement.ops[i] for i in both], set(layouts.get(name, ()))
            gives = [[own & {*mode[op.first :]} for mode in op.modes] for op in ops]
            rows = [[paid * len(a & b) for b in gives[1]] for a in gives[0]]
            edges.append((both[0], both[1], np.array(rows, object)))
    costs = [[-weigh(cost, weights) for cost in op.costs] for op in statement.ops]
    for name, _ in nodes:
        costs.append([0, -weigh(statement.moves[name], weights) if len(makers[name]) == 2 else 0])
    return Pairwise([np.array(own, object) for own in costs], edges)


def weigh(costs: Costs, weights: list[int]) -> int:
    """Combine the values of all objectives into one number."""
    return sum(cost * weight for cost, weight in zip(costs, weights, strict=True))


def split(total: int, weights: list[int]) -> Costs:
    """Split a combined number into the values of all objectives."""
    found = []
    for weight in weights:
        found.append(total // weight)
        total %= weight
    return found


def verify(given: object, claim: object) -> bool:
    """Verify a claim; return whether its bound is unverified, or raise Refused.

    A claim has ``"score"`` and ``"bound"``, a number for each objective; the chosen ``"modes"``;
    the ``"evidence"`` for the bound; and, if modes were replaced, ``"instead"``: for each op and
    mode its replacement.
    """
    statement = stated(given)
    ends, weights = [MOST] * statement.objectives, statement.weights()
    claimed, least = (numbered(entry(claim, key), ends, key) for key in ("score", "bound"))
    found = score(statement, entry(claim, "modes"))
    if found != claimed:
        raise Refused(f"the choice costs {found}, but {claimed} is claimed")
    if isinstance(claim, dict) and "instead" in claim:
        statement = folded(statement, claim["instead"], weights)
    most, unverified = bound(problem(statement, weights), entry(claim, "evidence"))
    proved = split(-most, weights)
    if proved < least:
        raise Refused(f"the bound {least} is claimed, but {proved} is proved")
    return unverified
