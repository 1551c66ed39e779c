"""What unwinding finds is written down so that a checker that knows no solver accepts it."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from layoutopt.base.limits import Limits, Progress
from layoutopt.base.result import Result, Status
from layoutopt.boxes.join import BoxIndex
from layoutopt.certificate.unwinding import Verdict
from layoutopt.certify import unwinding
from layoutopt.certify.unwinding import certify
from layoutopt.generate.families import generate
from layoutopt.generate.random_graphs import random_graph
from layoutopt.graphs.unwinding import Graph
from layoutopt.io.certificate import certificate_bytes, check_certificate, read_certificate
from layoutopt.io.instance import read_instance
from layoutopt.lowering.lower import lower
from layoutopt.network.problem import Labelling
from layoutopt.registry import find
from layoutopt.unwinding import unwind
from tests.support import refused

INSTANCES = Path(__file__).parents[2] / "instances"

SEEDS = range(24)


def checked(graph: Graph, certificate: Any) -> Verdict:
    """Return what a certificate proves once it was written, and read again."""
    return check_certificate(graph, json.loads(certificate_bytes(certificate)))


def drawn(seed: int, sizes: Sequence[int] = (4, 6, 12, 24)) -> Graph:
    """Return a small random graph; every other has barriers, every fifth negative values."""
    return random_graph(
        seed,
        elements=sizes[seed % len(sizes)],
        ops=(3, 8, 14)[seed % 3],
        pairs=(2, 5, 9)[seed % 3],
        barriers=seed % 2 == 0,
        negative=seed % 5 == 0,
    )


def lifted(graph: Graph) -> tuple[Any, Result]:
    """Return a certificate that was found without touching elements, and what was found."""
    limits = Limits()
    lowered = lower(graph, limits, lift_from=0)
    solve = find("auto").load()
    found = solve(lowered.problem, limits, None)
    assert found.labelling is not None
    return certify(lowered, found.labelling, solve, limits), found


def test_random_graphs_have_certificates() -> None:
    """What is proved is what unwinding says, by classes of elements and without elements."""
    for seed in SEEDS:
        graph = drawn(seed)
        result = unwind(graph, certificate=True)
        assert result.uncertified == ""
        verdict = checked(graph, result.certificate)
        assert (verdict.score, verdict.bound) == (result.score, result.bound)
        assert verdict.score == verdict.bound
        assert verdict.unverified == 0
        again = checked(graph, lifted(graph)[0])
        assert (again.score, again.bound, again.unverified) == (verdict.score, verdict.bound, 0)


FAMILIES: dict[str, tuple[Callable[[], Graph], int]] = {
    **{
        file.stem: (partial(read_instance, file), 10**6)
        for folder in ("figures", "greedy")
        for file in sorted((INSTANCES / folder).glob("*.json"))
    },
    "chained-calls": (partial(generate, "chained-calls", {"calls": "6"}), 4),
    "diagonals": (partial(generate, "diagonals", {}), 4),
    "strides": (partial(generate, "strides", {}), 12),
    "dense-layers": (partial(generate, "dense-layers", {"layers": "2", "width": "8"}), 20),
    "transformer": (partial(generate, "transformer", {"layers": "1"}), 80),
}
"""Graphs, and the most classes that their certificates have."""


@pytest.mark.parametrize("name", FAMILIES)
def test_instances_have_certificates(name: str) -> None:
    """Figures, traps, families and a training step are proved with a few classes, by no word."""
    graph, most = FAMILIES[name][0](), FAMILIES[name][1]
    result = unwind(graph, certificate=True)
    verdict = checked(graph, result.certificate)
    assert (verdict.score, verdict.bound, verdict.unverified) == (result.score, result.bound, 0)
    assert result.score == result.bound
    assert verdict.classes <= most
    assert verdict.copies >= verdict.classes


def test_sizes_are_not_in_a_certificate() -> None:
    """A graph a thousand times as large has a certificate of as many boxes."""
    certificates = []
    for width in (2**6, 2**16):
        graph = Graph("large")
        x, y = graph.sink((4, width)), graph.sink((width, 4))
        graph.valued_pair(graph.dim_shuffle(x, (1, 0)), y, 2)
        graph.valued_pair(y, graph.source((width, 4)), 3)
        graph.valued_pair(x, graph.source((4, width)), 1)
        certificate, _ = lifted(graph)
        assert checked(graph, certificate).copies <= 4 * width
        certificates.append(certificate)
    sizes = [len(certificate_bytes(certificate)) for certificate in certificates]
    assert sizes[0] < sizes[1] < 1.5 * sizes[0]


def forked(barriers: int) -> Graph:
    """Return a graph in which each barrier reads what would best lie at the next one, in a ring."""
    graph = Graph("ring")
    sinks = [graph.sink((2,), name=f"x{k}") for k in range(barriers)]
    reads = [graph.barrier([x], (2,), name=f"b{k}") for k, x in enumerate(sinks)]
    for k, x in enumerate(sinks):
        graph.valued_pair(x, reads[(k + 1) % barriers], 3 + k)
    return graph


def unable(problem: Labelling, limits: Limits, start: None) -> Result:
    """Find nothing."""
    return Result()


def test_without_forks_left_the_bound_is_weaker(monkeypatch: pytest.MonkeyPatch) -> None:
    """What cannot be told apart by orders any more is bounded as it is."""
    monkeypatch.setattr(unwinding, "FORKS", 0)
    graph = forked(3)
    verdict = checked(graph, lifted(graph)[0])
    assert (verdict.score, verdict.bound) == (18, 24)


def test_negative_values_and_shared_locations() -> None:
    """Elements that repel each other, at locations with names, are proved as well."""
    graph = Graph("names")
    x, y = graph.sink((4,)), graph.sink((4,))
    one = graph.source((4,), mapping=["a", 1, "a", "1"])
    two = graph.source((4,), mapping=["a", "1", "b", 1])
    graph.valued_pair(x, one, 2)
    graph.valued_pair(y, two, 2)
    graph.valued_pair(x, y, -1)
    graph.valued_pair(one, two, "0.5")
    result = unwind(graph, certificate=True)
    verdict = checked(graph, result.certificate)
    assert (verdict.score, verdict.bound, verdict.unverified) == (Fraction("15.5"),) * 2 + (0,)
    assert result.score == verdict.score


def test_the_pieces_of_a_layout_are_located_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each index of the elements of a mapping is made for all pieces, not for each of them."""
    made: list[int] = []

    def index(boxes: Any, *given: Any) -> BoxIndex:
        made.append(len(boxes))
        return BoxIndex(boxes, *given)

    monkeypatch.setattr("layoutopt.boxes.join.BoxIndex", index)
    graph = Graph("shuffled")
    x, n = graph.sink((60,)), range(60)
    for value, mapping in ((2, random.Random(1).sample(n, 60)), (1, list(n))):
        graph.valued_pair(x, graph.source((60,), mapping=mapping), value)
    assert checked(graph, unwind(graph, certificate=True).certificate).score >= 120
    assert len(made) < 20


def test_reasons_why_there_is_none() -> None:
    """No certificate without a proof, with fixed layouts, on tiles or when the time is over."""
    graph = drawn(7)
    kept = unwind(graph)
    assert (kept.certificate, kept.uncertified) == (None, "")
    name, layout = next(iter(kept.layouts.items()))
    cases = {
        "greedy0 proves no bound": unwind(graph, "greedy0", certificate=True),
        "fixed layouts are not supported": unwind(graph, fixed={name: layout}, certificate=True),
        "instances with a tile memory are not supported": unwind(
            read_instance(next(iter(sorted((INSTANCES / "tiles").glob("*.json"))))),
            certificate=True,
        ),
    }
    for why, result in cases.items():
        assert (result.certificate, result.uncertified) == (None, why)


def endless(*_: Any, **__: Any) -> None:
    """Go on until somebody ends it from outside."""
    while True:
        pass


def greedy(*_: Any, **__: Any) -> None:
    """Take all memory."""
    raise MemoryError


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (("certify", endless), "not enough time (time limit)"),
        (("certify", greedy), "not enough memory"),
        (("STEPS", 0), ""),
    ],
)
def test_an_answer_without_a_certificate(
    monkeypatch: pytest.MonkeyPatch, change: tuple[str, Any], why: str
) -> None:
    """What is found is given, without a certificate that takes too long, or too many boxes."""
    monkeypatch.setattr(unwinding, *change)
    graph = drawn(7) if why else generate("coprime-reshapes", {})
    result = unwind(graph, certificate=True, time_limit=2.0 if "time" in why else None)
    assert result.certificate is None
    assert result.uncertified
    assert why in result.uncertified
    assert result.status is Status.OPTIMAL


def test_what_is_not_solved_to_the_end_has_a_certificate_of_a_bound() -> None:
    """Where a gap ends the search, a bound below all there is to earn is proved without a word."""
    graph = read_instance(INSTANCES / "hard" / "signed-12x4.json")
    result = unwind(graph, certificate=True, gap=0.5)
    verdict = checked(graph, result.certificate)
    assert verdict.score == Fraction(result.score or 0) < verdict.bound
    assert verdict.bound < Fraction(result.max_score)
    assert verdict.unverified == 0


def test_certificates_tell_of_themselves_alone() -> None:
    """What is worth something in a part is not told as if it were the whole's."""
    told: list[Progress] = []
    graph = read_instance(INSTANCES / "hard" / "signed-12x4.json")
    unwind(graph, certificate=True, progress=told.append)
    phases = [message.phase for message in told]
    proving = told[phases.index("certificate") :]
    assert len(proving) > 10
    assert {(m.phase, m.objective, m.bound) for m in proving} == {("certificate", None, None)}


@pytest.mark.parametrize("gave_up", [True, False])
def test_a_contested_class_without_a_bound(monkeypatch: pytest.MonkeyPatch, gave_up: bool) -> None:
    """A solver that gives no bound in time is not quoted with one."""
    graph = forked(3)
    limits = Limits()
    lowered = lower(graph, limits)
    solve = find("auto").load()
    labels = solve(lowered.problem, limits, None).labelling
    assert labels is not None
    monkeypatch.setattr(unwinding, "evidence_of", lambda *_: (unwinding.EARNED, False))
    certificate = certify(lowered, labels, unable if gave_up else solve, limits)
    verdict = checked(graph, certificate)
    assert (verdict.score, verdict.bound) == (18, 24 if gave_up else 18)
    assert (verdict.unverified == 0) == gave_up


def test_a_solvers_word_is_said_to_be_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no evidence is found, the bound is the solver's, and counted as such."""
    monkeypatch.setattr(unwinding, "evidence_of", lambda *_: (unwinding.EARNED, False))
    graph = read_instance(INSTANCES / "greedy" / "aliases.json")
    result = unwind(graph, certificate=True)
    verdict = checked(graph, result.certificate)
    assert (verdict.score, verdict.bound) == (result.score, result.bound)
    assert (verdict.unverified, verdict.copies_unverified) == (1, 1)
    assert result.certificate is not None
    assert [own["evidence"]["kind"] for own in result.certificate["classes"]] == ["word"]


def test_labels_that_are_not_the_best() -> None:
    """Without a solver's word labels that are not the best have a score, and a bound above it."""
    graph = read_instance(INSTANCES / "greedy" / "aliases.json")
    limits = Limits()
    lowered = lower(graph, limits)
    labels = find("auto").load()(lowered.problem, limits, None).labelling
    assert labels is not None
    certificate = certify(
        lowered, lowered.problem.labels + 0 * labels, unable, limits, trusted=False
    )
    verdict = checked(graph, certificate)
    assert verdict.score < verdict.bound
    assert verdict.unverified == 0
    assert verdict.bound >= Fraction(unwind(graph).score or 0)


def test_files_are_read_as_they_are_written(tmp_path: Path) -> None:
    """A certificate is plain data; what is not JSON, or another format, is one line of error."""
    result = unwind(drawn(3), certificate=True)
    path = tmp_path / "certificate.json"
    assert result.certificate is not None
    path.write_bytes(certificate_bytes(result.certificate))
    assert read_certificate(path) == result.certificate
    for text, reason in (
        ("{", "is not JSON"),
        ("[" * 200_000, "nested too deep"),
        ("[]", "must be layoutopt/certificate/1"),
        ('{"format": "layoutopt/certificate/2"}', "must be layoutopt/certificate/1"),
        ("9" * 5000, "is not JSON"),
    ):
        path.write_text(text)
        with refused(reason):
            read_certificate(path)
    with refused("certifies a conversion, not unwinding"):
        check_certificate(drawn(3), result.certificate | {"problem": "conversion"})
    with refused("instance"):
        check_certificate(drawn(4), result.certificate)
