"""Certificates of networks prove the optimum, conflicts are minimal, and neither can lie."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from layoutopt.base.errors import InputError
from layoutopt.base.limits import Limits
from layoutopt.certificate.bounds import KINDS
from layoutopt.certificate.network import StatedNetwork, check_network
from layoutopt.certificate.pairwise import Pairwise, fixed, split
from layoutopt.certificate.refused import Refused
from layoutopt.network import CostNetwork, Network, evidence, solve
from layoutopt.network import certify as certifying
from layoutopt.network import coupled as coupling
from layoutopt.network.certify import certify, check_answer, check_certificate, document_of
from layoutopt.network.components import components
from layoutopt.network.conflict import NetworkConflict, find_conflict
from layoutopt.network.costs import local_search
from tests.network.oracle import best, best_labels, draw
from tests.network.test_ascent import drawn


def refutes(network: Network, _: Limits) -> bool:
    """Return whether no labelling is allowed, by trying all of them."""
    return best(network) is None


def certified(network: Network) -> dict[str, Any]:
    """Return a certificate of what trying all labellings finds."""
    labels = best_labels(network)
    conflict = find_conflict(network, refutes, Limits()) if labels is None else None
    found, lacks = certify(network, labels, conflict, Limits())
    assert found is not None
    assert not lacks
    certificate: dict[str, Any] = json.loads(json.dumps(found))
    return certificate


def test_spans_and_members_state_the_same_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """The checker counts the nodes of spans, and accepts a certificate of either statement."""
    seen = 0
    for seed in range(60):
        network = draw(seed, rows=True)
        certificate, listed = certified(network), document_of(network)
        with monkeypatch.context() as patch:
            patch.setattr("layoutopt.network.document.ENTRIES", -1)
            spanned = document_of(network)
        assert all("spans" in usage for usage in spanned["usages"])
        one, two = StatedNetwork(listed), StatedNetwork(spanned)
        for a, b in zip(one.usages, two.usages, strict=True):
            stated = [np.column_stack([own.item, own.begin, own.end]) for own in (a, b)]
            assert np.array_equal(*(rows[np.lexsort(rows.T)] for rows in stated))
        assert check_network(spanned, certificate) == check_network(listed, certificate)
        for usage in spanned["usages"]:
            rows = len(usage["rows"])
            for wrong in ([0, 0, rows + 1], [0, -1, rows], [-1, 0, rows], [0, rows]):
                changed = usage | {"spans": [*usage["spans"], wrong]}
                with pytest.raises(Refused):
                    StatedNetwork(spanned | {"usages": [changed]})
            members = [usage["rows"][0] | {"members": []}, *usage["rows"][1:]]
            with pytest.raises(Refused, match="both spans"):
                StatedNetwork(spanned | {"usages": [usage | {"rows": members}]})
            seen += 1
    assert seen > 20


def test_nodes_are_of_the_first_domain_unless_told() -> None:
    seen = 0
    for seed in range(40):
        network = draw(seed, rows=False)
        document, certificate = document_of(network), certified(network)
        if not any(document["domain_of"]):
            stated = {key: value for key, value in document.items() if key != "domain_of"}
            assert check_network(stated, certificate) == check_network(document, certificate)
            seen += 1
    assert seen > 5


def whole(network: Network) -> dict[str, list[int]]:
    """Return the conflict of all parts of a network."""
    return {
        "nodes": [*range(len(network))],
        "tables": [*range(len(network.table_edges))],
        "ties": [*range(len(network.ties))],
        "rows": [*range(network.rows)],
    }


def kinds(found: Any) -> set[str]:
    """Return the kinds of evidence that are in some evidence."""
    if isinstance(found, list):
        return set().union(*map(kinds, found))
    if not isinstance(found, dict):
        return set()
    return ({found["kind"]} if "kind" in found else set()) | kinds([*found.values()])


SETTINGS: list[dict[str, int]] = [{}, {"LABELLINGS": 0}, {"LABELLINGS": 0, "TABLE": 4}]


@pytest.mark.parametrize("setting", SETTINGS, ids=["as it is", "prices", "messages"])
@pytest.mark.parametrize("rows", [False, True])
def test_certificates_prove_what_is_best(
    monkeypatch: pytest.MonkeyPatch, setting: dict[str, int], rows: bool
) -> None:
    """Each random network has one that is accepted, whatever evidence is to be used."""
    for name, value in setting.items():
        monkeypatch.setattr(evidence, name, value)
    seen = set()
    for seed in range(500, 550):
        network = draw(seed, rows=rows)
        wanted = best(network)
        if wanted is None and setting:
            continue
        certificate = certified(network)
        verdict = check_certificate(network, certificate)
        seen |= kinds(certificate["evidence"])
        if wanted is None:
            assert verdict.status == "infeasible", seed
        else:
            cost = wanted * network.unit
            assert verdict == ("optimal", cost, cost, False), seed
    if setting:
        assert {"table", "prices"} <= seen if rows else "table" in seen
        assert rows or "dual" in seen or len(setting) < 2


def test_certificates_of_long_fractions_are_accepted() -> None:
    """The sum of costs has more digits below the line than any of them has."""
    ratios = [[Fraction(1000 + i, k) for i in range(2)] for k in range(90, 150)]
    for costs in (ratios, [[Decimal("1e-41")]], [[Fraction(1, 3**99)], [10**3999]]):
        net = CostNetwork()
        for u, own in enumerate(costs):
            net.node(f"n{u}", net.domain(len(own)), own)
        found = solve(net, certificate=True)
        assert found.certificate is not None, found.uncertified
        assert check_certificate(net.build(), found.certificate).objective == found.objective


def test_certificates_that_are_refused_are_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """Claims of a best labelling too are held against the network."""
    monkeypatch.setattr(certifying, "ratio", lambda x: int(x) - 1)
    network = draw(500)
    certificate, lacks = certify(network, best_labels(network), None, Limits())
    assert certificate is None
    assert "is claimed" in lacks


def changes(given: Any) -> Iterator[Any]:
    """Yield copies of plain data with one number changed, one entry left out, or one twice."""
    if isinstance(given, dict):
        for key, value in given.items():
            yield {k: v for k, v in given.items() if k != key}
            for other in changes(value):
                yield given | {key: other}
    elif isinstance(given, list):
        for i, value in enumerate(given):
            yield [*given[:i], *given[i + 1 :]]
            yield [*given[: i + 1], *given[i:]]
            for other in changes(value):
                yield [*given[:i], other, *given[i + 1 :]]
    elif isinstance(given, int):
        yield from (given + 1, given - 1, -given, 10**30, -(10**30), None, f"{given}/3", [given])
    elif isinstance(given, str):
        kind = ("exhaustive", "table", "dual", "branch", "prices", "components", "reductions")
        yield from kind if given in kind else ("1/3", "-1/3", "")


@pytest.mark.parametrize("setting", SETTINGS, ids=["as it is", "prices", "messages"])
def test_changed_certificates_are_refused_or_true(
    monkeypatch: pytest.MonkeyPatch, setting: dict[str, int]
) -> None:
    """No single change makes the checker conclude anything that trying all labellings denies."""
    for name, value in setting.items():
        monkeypatch.setattr(evidence, name, value)
    refused = every = 0
    for seed in range(10):
        network = draw(seed, rows=seed % 2 == 0)
        wanted, sign = best(network), -1 if network.sense == "max" else 1
        if wanted is None and setting:
            continue
        document, certificate = document_of(network), certified(network)
        for changed in changes(certificate):
            every += 1
            try:
                verdict = check_network(document, changed)
            except Refused as why:
                assert "\n" not in str(why)
                refused += 1
                continue
            if verdict.status == "infeasible":
                assert wanted is None
                continue
            assert wanted is not None
            assert verdict.bound is not None
            assert sign * (verdict.bound - wanted * network.unit) <= 0
            if verdict.objective is not None:
                labels = np.array(changed["labels"])
                assert not network.fault(labels)
                assert verdict.objective == network.cost(labels) * network.unit
    assert refused > every / 2 > 250


def kept(network: Network) -> Any:
    """Return a network's certificate that keeps the solver's own proof, ``None`` if none does."""
    found = solve(network, certificate=True)
    if found.certificate is None or "reductions" not in kinds(found.certificate["evidence"]):
        return None
    return json.loads(json.dumps(found.certificate))


def complete(seed: int) -> Network:
    """Return six nodes with tables of all pairs, two of them in a row, and one beside two others.

    The last two have equal labels but for their numbers.
    """
    r = random.Random(seed)
    net = CostNetwork()
    three = net.domain(3)
    nodes = [net.node(f"n{k}", three, r.choices(range(4), k=3)) for k in range(6)]
    for u, v in combinations(nodes, 2):
        net.table(u, v, [r.choices(range(3), k=3) for _ in range(3)])
    net.table(nodes[-1], nodes[-2], [[None, None, 0], [0, None, None], [None, 0, None]])
    beside = net.node("beside", three)
    for u in nodes[2:4]:
        net.table(beside, u, [r.choices(range(3), k=3) for _ in range(3)])
    net.row({(u, i): i for u in nodes[:2] for i in range(3)}, high=2)
    return net.build()


def branched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let branches with prices decide all that dual ascent leaves open."""
    for name, value in {"BRANCHES": 0, "SEARCHED": -1, "CELLS": -1}.items():
        monkeypatch.setattr(coupling, name, value)
    monkeypatch.setattr(local_search, "STALE", -1)


@pytest.mark.parametrize("cases", [False, True], ids=["as it is", "branches"])
def test_proofs_of_the_solver_are_kept(monkeypatch: pytest.MonkeyPatch, cases: bool) -> None:
    """Reductions, prices and messages of a solve with rows prove its bound to the checker."""
    monkeypatch.setattr(coupling, "BRANCHES", 0)
    if cases:
        branched(monkeypatch)
    rules = set()
    for network in [draw(seed, rows=True) for seed in range(60)] + [*map(complete, range(8))]:
        certificate = kept(network)
        if certificate is None:
            continue
        cost = best(network) * network.unit
        assert check_certificate(network, certificate) == ("optimal", cost, cost, False)
        rules |= {step[0] for step in certificate["evidence"]["steps"]}
    assert kept(complete(16)) is not None  # under prices, nothing is left that costs less
    last = {"cases"} if cases else set()
    assert rules == {"narrow", "price", "move", "leave", "follow", "instead"} | last


@cache
def _solved() -> list[tuple[Network, int | Fraction | None]]:
    """Return networks and their least costs."""
    small = [draw(seed, rows=True) for seed in (*range(10), 73)]
    large = [drawn(seed, nodes=12, labels=4) for seed in range(2)]
    return [(network, solve(network).cost) for network in [*small, *large]]


@pytest.mark.parametrize(
    "limit",
    [("LOGGED", 1), ("LOGGED", 10**8), ("LONGEST", 0), ("DEEPEST", 0)],
    ids=["few", "all", "none", "no levels"],
)
def test_large_networks_keep_what_is_proved(
    monkeypatch: pytest.MonkeyPatch, limit: tuple[str, int]
) -> None:
    """No other evidence is sought where that would take too long; the labels have a bound."""
    solved = _solved()
    branched(monkeypatch)
    monkeypatch.setattr(certifying, "ENTRIES", -1)
    monkeypatch.setattr(certifying, "evidence", None)
    monkeypatch.setattr(coupling, *limit)
    seen = set()
    for network, cost in solved:
        certificate = kept(network)
        if certificate is not None:
            verdict = check_certificate(network, certificate)
            sign = -1 if network.sense == "max" else 1
            assert cost is not None
            assert sign * (verdict.bound - cost * network.unit) <= 0
            seen.add(verdict.status)
    assert seen == ({"optimal"} if limit[1] > 1 else {"optimal", "feasible"})


def test_tables_do_not_count_as_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Evidence is sought for networks without rows, however large their tables are."""
    monkeypatch.setattr(certifying, "ENTRIES", 0)
    network = draw(0)
    assert sum(table.costs.size for table in network.tables)
    cost = best(network) * network.unit
    assert check_certificate(network, certified(network)) == ("optimal", cost, cost, False)


@pytest.mark.parametrize("cases", [False, True], ids=["as it is", "branches"])
def test_changed_proofs_are_refused_or_true(monkeypatch: pytest.MonkeyPatch, cases: bool) -> None:
    """No change of a step, price, message or bound proves what trying all labellings denies."""
    monkeypatch.setattr(coupling, "BRANCHES", 0)
    if cases:
        branched(monkeypatch)
    refused = every = 0
    for seed in (48,) if cases else (18, 75, 13):
        network = draw(seed, rows=True)
        document, certificate = document_of(network), kept(network)
        assert cases == ("cases" in str(certificate))
        wanted = best(network) * network.unit
        sign = -1 if network.sense == "max" else 1
        for change in changes(certificate):
            every += 1
            try:
                verdict = check_network(document, change)
            except Refused:
                refused += 1
                continue
            assert verdict.status != "infeasible"
            assert verdict.bound is not None
            assert sign * (verdict.bound - wanted) <= 0, (seed, change)
    assert refused > every / 3 > 100


def test_forged_claims_are_refused() -> None:
    """Better bounds and costs, and infeasibility, have no evidence of any kind."""
    for seed in range(80):
        network = draw(seed, rows=seed % 2 == 0)
        labels = best_labels(network)
        if labels is None:
            continue
        document, certificate = document_of(network), certified(network)
        step = 1 if network.sense == "min" else -1
        for change in (
            {"bound": str(best(network) * network.unit + step * network.unit)},
            {"objective": str(best(network) * network.unit - step * network.unit)},
        ):
            with pytest.raises(Refused):
                check_network(document, certificate | change)
        every = whole(network)
        for kind in ({"kind": "exhaustive"}, {"kind": "dual"}, certificate["evidence"]):
            with pytest.raises(Refused):
                check_network(document, {"conflict": every, "evidence": kind})


def test_conflicts_are_infeasible_alone_and_minimal() -> None:
    """Without any part of a conflict there is an allowed labelling; with all there is none."""
    seen = 0
    for seed in range(200):
        network = draw(seed, rows=seed % 3 > 0)
        if best(network) is not None:
            continue
        seen += 1
        conflict = find_conflict(network, refutes, Limits())
        assert conflict.minimal
        assert best(conflict.part) is None, seed
        assert str(conflict).startswith("no labelling is allowed of ")
        for what in ("bans", "tables", "ties", "rows"):
            own = getattr(conflict, what)
            for k in range(len(own)):
                less: dict[str, Any] = {what: own[:k] + own[k + 1 :]}
                assert best(replace(conflict, **less).part) is not None, (seed, what)
    assert seen > 30


def test_a_conflict_in_words() -> None:
    """The reason names nodes, labels and rows as the user does."""
    net = CostNetwork("step")
    layouts = net.domain(["NCHW", "NHWC"])
    x, y = net.node("conv", layouts, [None, 0]), net.node("relu", layouts)
    net.node("pool", layouts)
    net.table(x, y, [[0, 0], [None, 0]])
    net.ban(y, "NHWC")
    found = solve(net, certificate=True)
    assert isinstance(found.why, NetworkConflict)
    assert str(found.why) == (
        "no labelling is allowed of nodes conv, relu; forbidden labels conv = NCHW, relu = NHWC; "
        "forbidden pairs conv with relu"
    )
    assert found.certificate is not None
    assert check_certificate(net.build(), found.certificate).status == "infeasible"
    assert solve(CostNetwork("empty")).why is None


def test_solutions_have_certificates_when_asked() -> None:
    """Without being asked there is none, and it belongs to one network only."""
    network, other = draw(3), draw(5)
    assert solve(network).certificate is None
    found = solve(network, certificate=True)
    assert found.certificate is not None
    with pytest.raises(InputError, match="another network"):
        check_certificate(other, found.certificate)
    with pytest.raises(InputError, match="not a certificate of a cost network"):
        check_certificate(network, found.certificate | {"problem": "unwinding"})


def test_answers_stay_without_time_or_memory_for_certificates(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A certificate that takes too long after Ctrl-C, or too much memory, is left out."""

    def slow(_: Network) -> bytes:
        limits.interrupt.set()
        for _ in range(60):
            time.sleep(0.05)
        raise AssertionError

    def large(_: Network) -> bytes:
        raise MemoryError

    for written, lacks in ((slow, "time (interrupted)"), (large, "memory")):
        monkeypatch.setattr(certifying, "json_bytes", written)
        limits = Limits()
        found = solve(draw(3), limits, certificate=True)
        assert found.objective == solve(draw(3)).objective
        assert (found.certificate, found.uncertified) == (None, f"not enough {lacks}")


def _forbidding() -> Network:
    net = CostNetwork()
    two = net.domain(2)
    net.table(net.node("a", two), net.node("b", two), [[5, 2], [None, 4]])
    return net.build()


ANSWER: dict[str, Any] = {"status": "optimal", "objective": 2, "bound": 2, "labels": [0, 1]}


def test_certificates_must_prove_all_of_an_answer() -> None:
    """What an answer says and a certificate does not prove is told."""
    network = _forbidding()
    certificate = solve(network, certificate=True).certificate
    assert certificate is not None
    proved = check_certificate(network, certificate)
    assert not check_answer(network, ANSWER, proved)
    weak = check_certificate(network, certificate | {"bound": 0})
    assert weak.status == "feasible"
    assert check_answer(network, ANSWER, weak) == (
        "the certificate proves a bound of 0, the result says 2"
    )
    nothing = {"status": "infeasible", "objective": None, "bound": None, "labels": None}
    assert "proves optimal" in check_answer(network, nothing, proved)
    assert "an objective of 2" in check_answer(network, nothing | {"status": "unknown"}, proved)


def _random_evidence(r: random.Random, problem: Pairwise, depth: int = 0) -> dict[str, Any]:
    """Return evidence of random kinds, one inside the other, whether it helps or not."""
    nodes = [*range(len(problem.widths))]
    simple, nested = ("exhaustive", "table", "dual"), ("branch", "prices", "components")
    kind = r.choice(simple if depth > 2 else simple + nested)
    if kind == "table":
        return {"kind": kind, "order": r.sample(nodes, len(nodes))}
    if kind == "dual":
        ends = [own[:2] for own in (*problem.edges, *problem.equal)]
        messages: list[Any] = [
            [[f"{r.randint(-9, 9)}/2" for _ in range(problem.widths[u])] for u in pair]
            for pair in ends
        ]
        for e, pair in enumerate(messages):
            messages[e] = r.choice([None, pair, [pair[0], None], [None, pair[1]]])
        return {"kind": kind, "messages": messages}
    if kind == "branch":
        u = r.choice(nodes)
        leaves = [
            _random_evidence(r, fixed(problem, u, x), depth + 1) for x in range(problem.widths[u])
        ]
        return {"kind": kind, "node": u, "leaves": leaves}
    if kind == "components":
        ends = [own[:2] for own in (*problem.edges, *problem.equal)]
        joined = [(u, v) for u, v in ends if min(problem.widths[u], problem.widths[v]) > 1]
        of = components(len(nodes), *np.array(joined, np.int64).reshape(-1, 2).T)[1].tolist()
        lists = [[u for u in nodes if of[u] == part] for part in sorted(set(of))]
        parts = [
            {"nodes": own, "evidence": _random_evidence(r, part, depth + 1)}
            for own, part in zip(lists, split(problem, lists), strict=True)
        ]
        return {"kind": kind, "parts": parts}
    if kind == "prices":
        sides = [
            [k, f"{sign * r.randint(1, 9)}/4"]
            for k, row in enumerate(problem.rows)
            for limit, sign in ((row.high, 1), (row.low, -1))
            if limit is not None and problem.inside(row) is not None
        ]
        rows = r.sample(sides, min(2, len(sides)))
        return {"kind": kind, "rows": rows, "evidence": _random_evidence(r, problem, depth + 1)}
    return {"kind": kind}


@pytest.mark.parametrize("first", range(0, 200, 100))
def test_random_evidence_never_proves_too_much(first: int) -> None:
    """What evidence of any kinds proves is true; branches may fix one node several times."""
    seen: set[str] = set()
    for seed in range(first, first + 100):
        r = random.Random(seed)
        network = draw(seed, nodes=4, rows=seed % 4 > 0)
        document, wanted = document_of(network), best(network)
        if wanted is None:
            continue
        stated = StatedNetwork(document)
        sign = -1 if network.sense == "max" else 1
        everything = whole(network)
        for claim, problem in (
            ({"conflict": everything}, stated.problem(stated.conflict(everything))),
            ({"bound": str((wanted + sign) * network.unit)}, stated.problem()),
        ):
            for _ in range(5):
                own = _random_evidence(r, problem.pairwise)
                seen |= kinds(own)
                with pytest.raises(Refused, match="proved"):
                    check_network(document, claim | {"evidence": own})
    assert seen == KINDS.keys() - {"word", "reductions"}  # whose steps have random tests themselves
