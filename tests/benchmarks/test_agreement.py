"""The comparison of everything with everything finds liars, and makes small cases of them."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.agreement import conversion
from benchmarks.agreement.__main__ import main
from benchmarks.agreement.cases import KINDS, Case, case
from benchmarks.agreement.compare import compare, due
from benchmarks.agreement.partners import PARTNERS, Claim, Partner
from benchmarks.agreement.stated import begun, kept, stated, waits, where
from benchmarks.agreement.unwinding import Comparison
from layoutopt.graphs.unwinding import Graph
from layoutopt.io.instance import instance_bytes, read_instance
from models.exhaustive import maximum
from models.statement import score

pytestmark = pytest.mark.usefixtures("hooks")


def test_cases_are_always_the_same() -> None:
    """A seed and a number name one case, other ones another; kinds take turns."""
    for k in range(2 * len(KINDS)):
        one, again, other = (case(*key) for key in ((3, k), (3, k), (4, k)))
        assert one.kind == list(KINDS)[k % len(KINDS)]
        assert instance_bytes(one.graph) == instance_bytes(again.graph)
        assert (one.fixed, one.start) == (again.fixed, again.start)
        assert instance_bytes(one.graph) != instance_bytes(other.graph)


def test_a_few_cases_of_each_kind(tmp_path: Path) -> None:
    """Nobody disagrees on the first ones; given layouts, infeasible graphs and wide sums occur."""
    found = Comparison()
    for k in range(6 * len(KINDS)):
        found.compare(1, k, tmp_path)
    assert not found.disagreements.total()
    assert set(found.graphs.values()) == {6}
    assert found.asked["auto"] == found.graphs.total()
    assert found.asked["trying everything"] > 20
    assert "| auto | 1 | 84 |" in found.tables()
    given = [begun(case(1, k)) for k in range(list(KINDS).index("given layouts"), 200, len(KINDS))]
    assert any(one.fixed for one in given)
    assert any(one.start for one in given)


def test_everybody_is_asked_sooner_or_later() -> None:
    """Each partner suits some case of a few hundred, and gets one of so many of each kind."""
    left = {name: replace(partner, share=1) for name, partner in PARTNERS.items()}
    for k in range(10 * len(KINDS)):
        own = case(2, k)
        left = {name: partner for name, partner in left.items() if not partner.suits(own)}
    assert not left
    asked = [k for k in range(0, 2000, len(KINDS)) if "greedy0" in due(case(0, k), k)]
    assert len(asked) == 2000 // len(KINDS) // PARTNERS["greedy0"].share


def lying(claim: Claim) -> Claim:
    """Return a claim that is too good."""
    return Claim(claim.score + 1, claim.bound + 1)


def test_a_liar_is_found(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Its case is made as small as can be and written down; the exit code is 1."""
    honest = PARTNERS["trying everything"]
    liar = Partner(1, honest.suits, lambda own: lying(honest.ask(own)))
    monkeypatch.setitem(PARTNERS, "trying everything", liar)
    words = ["--graphs", "4", "--first", "3", "--folder", str(tmp_path / "found")]
    monkeypatch.setattr(sys, "argv", ["agreement", *words])
    assert main() == 1
    out = capsys.readouterr().out
    assert "seed 0, graph 3: trying everything has " in out
    graph = read_instance(tmp_path / "found" / "agreement-0-3.json")
    assert "auto: score 0, bound 0; " in graph.description
    assert (len(graph.ops), len(graph.pairs)) == (1, 0)


def test_no_liar_no_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without a disagreement the exit code is 0, and nothing is written; time limits are kept."""
    for words in (["--graphs", "3"], ["--seconds", "0"], ["--graphs", "2", "--conversion"]):
        arguments = [*words, "--folder", str(tmp_path / "none")]
        monkeypatch.setattr(sys, "argv", ["agreement", *arguments])
        assert main() == 0
    assert not (tmp_path / "none").exists()


def test_faults_are_disagreements(monkeypatch: pytest.MonkeyPatch) -> None:
    """So are errors, proofs that are missing, and layouts that are worth something else."""
    own = case(0, 3)

    def broken(_own: Case) -> Claim:
        raise ZeroDivisionError("oh")

    def poor(own: Case) -> Claim:
        return replace(PARTNERS["cpsat"].ask(own), score=-7)

    for ask, told in ((broken, "auto: ZeroDivisionError: oh"), (poor, "auto: its layouts earn ")):
        monkeypatch.setitem(PARTNERS, "auto", Partner(1, lambda own: True, ask))
        assert compare(own, ["auto"]).what.startswith(told)
    monkeypatch.undo()
    assert not compare(own, ["auto"]).what


def test_what_is_kept() -> None:
    """A statement with elements kept has the optimum of the rest, by hand."""
    graph = Graph("kept")
    x = graph.sink((2,), name="x")
    s = graph.source((2,), ["p", "q"], name="s")
    graph.valued_pair(x, s, 3)
    graph.valued_pair(x, graph.reverse(x, [0]), 2)
    given = stated(graph)
    assert maximum(given) == 3 + 4  # both at p, or both at q
    kept_there = where(graph, given, {"x": (("s", 1, 0, ((1, 1, 1),)),)})
    assert maximum(kept(given, kept_there)) == 3 + 4
    apart = where(graph, given, {"x": (("x", 0, 0, ((1, 1, 1),)),)})
    assert maximum(kept(given, apart)) == 4
    both = where(graph, given, {"x": (("s", 0, 0, ((2, 1, 1),)),)})
    assert (score(given, both), waits(given, both)) == (6, False)
    assert maximum(kept(given, both)) == 6


def test_liars_in_conversion(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cost below what the exact engine proves is a disagreement, whoever says so."""
    for k in range(len(conversion.KINDS)):
        asked = conversion.question(5, k)
        assert conversion.compared(asked, ["forward"]) == ""
        if asked.best is not None:
            cheaper = replace(asked, best=lambda found: tuple(c - 1 for c in found.objective))
            assert "exhaustive search finds" in conversion.compared(cheaper, [])
    honest = conversion.convert_graph

    def shifted(*args: object, solver: str = "auto", **kwargs: object) -> object:
        found = honest(*args, solver=solver, **kwargs)  # type: ignore[arg-type]
        less = tuple(c - 1 for c in found.objective)
        return found if solver == "auto" else replace(found, objective=less)

    monkeypatch.setattr(conversion, "convert_graph", shifted)
    told = {conversion.compared(conversion.question(5, k), ["one-layout"]) for k in range(20)}
    assert any("one-layout costs" in text for text in told)
