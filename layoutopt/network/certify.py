"""Certificates of cost networks: written, and held against networks and results."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from math import lcm
from typing import Any

import numpy as np

from layoutopt import __version__
from layoutopt.base.errors import InputError
from layoutopt.base.limits import Limits
from layoutopt.base.numbers import relative
from layoutopt.certificate.bounds import Bound, bound
from layoutopt.certificate.network import (
    NetworkProblem,
    NetworkVerdict,
    StatedNetwork,
    check_claim,
    check_network,
)
from layoutopt.certificate.refused import Refused
from layoutopt.network.components import components
from layoutopt.network.conflict import NetworkConflict
from layoutopt.network.costs.work import Step
from layoutopt.network.document import json_bytes
from layoutopt.network.evidence import evidence, packed, ratio
from layoutopt.network.evidence import proof as prove
from layoutopt.network.network import Array, Network, PriceStep, Proof

FORMAT = "layoutopt/certificate/1"

ENTRIES = 10**6  # most entries of rows for which evidence is sought beside the solver's own


def document_of(network: Network, raw: bytes = b"") -> dict[str, Any]:
    """Return a network as its file, ``raw`` if that is written, says it, with exact numbers."""
    found: dict[str, Any] = json.loads(raw or json_bytes(network), parse_float=Decimal)
    return found


def _unnamed(network: Network) -> bytes:
    """Return the file of a network, its name left out."""
    return json_bytes(replace(network, name=""))


def network_hash(network: Network, raw: bytes = b"") -> str:
    """Return the hash of what a network, or its file without a name, says."""
    return f"sha256:{hashlib.sha256(raw or _unnamed(network)).hexdigest()}"


def certify(
    network: Network,
    choice: Array | None,
    conflict: NetworkConflict | None,
    limits: Limits,
    proof: Proof | None = None,
) -> tuple[dict[str, Any] | None, str]:
    """Return a certificate that the checker has accepted, or ``None``, and what it lacks.

    ``choice`` is a labelling (for a proof of optimality the best one), ``conflict`` why there is
    none. The solver's own ``proof`` is written down if it is enough.
    """
    raw = _unnamed(network)
    head = {
        "format": FORMAT,
        "problem": "network",
        "version": __version__,
        "network": network.name,
        "network_hash": network_hash(network, raw),
    }
    try:
        stated, known = StatedNetwork(document_of(network, raw)), None
        if conflict is not None:
            claim = _refutation(stated, conflict, limits)
            if claim is None:
                return None, "it is not proved in time that no labelling is allowed"
        elif choice is not None:
            claim, known = _optimality(stated, choice.tolist(), limits, network, proof)
        else:
            return None, "there is no labelling"
        check_claim(stated, claim, known)
    except Refused as why:
        return None, f"the network is too large for a certificate ({why})"
    return head | claim, ""


def _optimality(
    stated: StatedNetwork, labels: list[int], limits: Limits, network: Network, proof: Proof | None
) -> tuple[dict[str, Any], Bound]:
    """Return a claim of a labelling and a bound, and what its evidence proves."""
    given, cost = stated.problem(), stated.cost(labels)
    found: dict[str, Any] = {"kind": "dual"}
    if proof is not None:
        found = _steps(stated, given, network, proof)
    proved = bound(given.pairwise, found)
    entries = sum(usage.entries for usage in network.usages)
    if stated.worth(proved[0] + given.constant) != cost and entries <= ENTRIES:
        other = evidence(given.pairwise, _moved(stated, given, labels), limits, word=False)
        least = bound(given.pairwise, other)
        if least[0] < proved[0] or proof is None:
            found, proved = other, least
    claim = {
        "labels": labels,
        "objective": ratio(cost),
        "bound": ratio(stated.worth(proved[0] + given.constant)),
        "evidence": found,
    }
    return claim, proved


def _steps(
    stated: StatedNetwork, given: NetworkProblem, network: Network, proof: Proof
) -> dict[str, Any]:
    """Return a solver's proof as evidence, in the numbers of the problem as it is stated."""
    place = [given.of[u] for u in proof.nodes.tolist()]
    worth = network.unit * stated.parts  # of a unit of cost
    used = [
        usage.unit * own.parts
        for usage, own in zip(network.usages, stated.usages, strict=True)
        for _ in range(usage.rows)
    ]

    def priced(step: PriceStep) -> dict[str, Any]:
        prices = [(k, price * worth / used[k]) for k, price in step.rows]
        parts = lcm(worth.denominator, *(price.denominator for _, price in prices))
        whole = [[-int(x * worth * parts) for x in own] for own in step.messages]
        price = {
            "parts": step.parts * parts,
            "rows": [[k, int(price * parts)] for k, price in prices],
            "messages": [packed(own) if any(own) else None for own in whole],
        }
        if step.worth is not None:
            price["forbid"] = -int(step.worth * worth) - given.constant
        return price

    def written(steps: Sequence[Step]) -> list[list[Any]]:
        found: list[list[Any]] = []
        for rule, *about in steps:
            if not found or found[-1][0] != rule:
                found.append([rule])
            if rule == "price":
                found[-1].append(priced(about[0]))
            elif rule == "cases":
                node, cases = about
                each = [[labels, written(own)] for labels, own in cases]
                found[-1].append([place[node], each])
            elif rule != "narrow":
                nodes = 1 if rule in ("leave", "instead") else 2
                found[-1].append([place[u] for u in about[:nodes]] + about[nodes:])
        return found

    return {"kind": "reductions", "steps": written(proof.steps)}


def _moved(stated: StatedNetwork, given: NetworkProblem, labels: list[int]) -> list[int]:
    """Return a labelling in a problem's numbers, in which fresh labels have others."""
    nodes = len(given.pairwise.widths)
    ends = np.array([(i, j) for i, j, _ in given.pairwise.equal], np.int64).reshape(-1, 2)
    of = components(nodes, *ends.T)[1].tolist()
    first = {u: name for name, u in reversed(given.of.items())}
    seen: dict[tuple[int, int], int] = {}
    ranks: dict[int, int] = {}
    moved = []
    for u in range(nodes):
        label, size = labels[first[u]], stated.sizes[stated.domain_of[first[u]]]
        rank = ranks[of[u]] = ranks.get(of[u], -1) + 1
        if label >= size:
            alone = given.pairwise.widths[u] == size + 1
            label = size + (0 if alone else seen.setdefault((of[u], label), rank))
        moved.append(label)
    return moved


def _refutation(stated: StatedNetwork, conflict: NetworkConflict, limits: Limits) -> Any:
    """Return a claim that no labelling is allowed, ``None`` if that is not proved."""
    parts = {key: [*getattr(conflict, key)] for key in ("nodes", "tables", "ties", "rows")}
    problem = stated.problem(stated.conflict(parts)).pairwise
    found = prove(problem, -problem.total - 1, limits)
    return None if found is None else {"conflict": parts, "evidence": found}


def check_certificate(
    network: Network, certificate: Mapping[str, Any], file: str = ""
) -> NetworkVerdict:
    """Return what a certificate proves of a network; errors call it ``file``.

    Raises ``InputError`` if it is of another network or problem, and ``Refused`` if it is wrong or
    proves less than it says.
    """
    if certificate.get("format") != FORMAT:
        raise InputError(f"must be {FORMAT}", "$.format", file)
    if certificate.get("problem") != "network":
        raise InputError("is not a certificate of a cost network", "$.problem", file)
    raw = _unnamed(network)
    if certificate.get("network_hash") != network_hash(network, raw):
        raise InputError("is of another network", "$.network_hash", file)
    return check_network(document_of(network, raw), dict(certificate))


def check_answer(
    network: Network, answer: Mapping[str, Any], verdict: NetworkVerdict | None = None
) -> str:
    """Return what is wrong with an answer to a network; nothing if nothing is.

    The answer has ``"status"``, ``"objective"``, ``"bound"`` (exact numbers or ``None``) and
    ``"labels"`` (a number for each node, or ``None``), perhaps ``"names"`` of labels by node,
    ``"gap"``, and ``"why"`` if infeasible.  The labels must be allowed, be called and cost what it
    says, its status and gap must follow from objective and bound, and a verdict must prove all of
    it.
    """
    status, labels = str(answer.get("status")), answer.get("labels")
    objective, least = (_exact(answer.get(key)) for key in ("objective", "bound"))
    sign = -1 if network.sense == "max" else 1
    cost: Fraction | None = None
    if labels is not None:
        try:
            chosen = np.array(labels, np.int64)
            fault = network.fault(chosen)
        except (InputError, ValueError, TypeError, OverflowError) as error:
            fault = str(error)
        if fault:
            return f"the labels are not allowed: {fault}"
        cost = network.cost(chosen) * network.unit
    if cost != objective:
        return f"the labels cost {cost}, the result says {objective}"
    if cost is not None and least is not None and sign * (cost - least) < 0:
        return f"the labels cost {cost}, better than the bound {least}"
    known = "unknown" if cost is None else "optimal" if cost == least else "feasible"
    if status == "infeasible" and cost is not None:
        return "the result says infeasible, but its labels are allowed"
    if status not in (known, "infeasible"):
        return f"the status is {status!r}, labels and bound make it {known!r}"
    if answer.get("why") and status != "infeasible":
        return f"the result says why it is infeasible, but its status is {status!r}"
    names: dict[str, str | int] = {}
    if labels is not None:
        each = enumerate(zip(network.nodes, chosen.tolist(), strict=True))
        names = {name: network.label_name(u, label) for u, (name, label) in each}
    if answer.get("names") and answer["names"] != names:
        return "the names in the result are not those of the labels"
    gap = None if cost is None or least is None else relative(abs(cost - least), cost)
    if answer.get("gap") is not None and answer["gap"] != gap:
        return f"the gap is {gap}, the result says {answer['gap']}"
    return "" if verdict is None else _unproved(verdict, status, objective, least, sign)


def _unproved(
    verdict: NetworkVerdict,
    status: str,
    objective: Fraction | None,
    least: Fraction | None,
    sign: int,
) -> str:
    """Return what a certificate does not prove of an answer."""
    if (status == "infeasible") != (verdict.status == "infeasible"):
        return f"the certificate proves {verdict.status}, the result says {status}"
    if verdict.objective != objective:
        return f"the certificate is of an objective of {verdict.objective}, not {objective}"
    if least is not None and (verdict.bound is None or sign * (verdict.bound - least) < 0):
        return f"the certificate proves a bound of {verdict.bound}, the result says {least}"
    return ""


def _exact(given: Any) -> Fraction | None:
    return None if given is None else Fraction(given)
