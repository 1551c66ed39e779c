"""No layouts that barriers cannot be computed with are accepted, and bounds respect their order."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import pytest

from layoutopt.certificate import order
from layoutopt.certificate.order import DEEPEST
from layoutopt.certificate.refused import Refused
from layoutopt.certificate.unwinding import Verdict, check
from models.exhaustive import maximum
from models.statement import state

Instance = dict[str, Any]
Certificate = dict[str, Any]

EARNED = {"kind": "earned"}


def moved(*kept: Any, left: Sequence[Any] = ()) -> dict[str, Any]:
    """Return what a certificate says of one input of a view."""
    return {"kept": [*kept], "left": [*left]}


def op(name: str, kind: str, inputs: list[str], **more: Any) -> dict[str, Any]:
    """Return an op of an instance."""
    return {"id": name, "type": kind, "inputs": inputs} | more


def instance(ops: list[dict[str, Any]], pairs: list[tuple[str, str, int]]) -> Instance:
    """Return an instance."""
    return {"ops": ops, "valued_pairs": [{"a": a, "b": b, "value": v} for a, b, v in pairs]}


def optimum(given: Instance, ordered: bool = True) -> Fraction:
    """Return the largest score, by trying all layouts."""
    return maximum(state(json.loads(json.dumps(given))), ordered)


def single(value: int, labels: list[int], place: int) -> dict[str, Any]:
    """Return a class of one element, and of one terminal, that it is rewarded for."""
    terminals = [[[[], [0, place], []]]] if place else []
    rewards = [[0, 0, value]] if place else []
    return {"labels": labels, "terminals": terminals, "edges": [], "rewards": rewards}


def group(
    labels: list[int],
    terminals: list[Any],
    edges: list[Any],
    rewards: list[Any],
    evidence: dict[str, Any] = EARNED,
) -> dict[str, Any]:
    """Return a class."""
    return {"labels": labels, "terminals": terminals, "edges": edges, "rewards": rewards} | {
        "evidence": evidence
    }


def stated(
    score: int, classes: list[Any], sinks: dict[str, Any], pairs: list[Any], **more: Any
) -> Certificate:
    """Return a certificate; its bound is its score unless it has another one."""
    own = {"classes": classes, "sinks": sinks, "pairs": pairs}
    return {"unit": 1, "score": score, "bound": score} | own | more


def crossed() -> tuple[Instance, Certificate]:
    """Return two barriers of which each reads what would lie at the other one.

    Elements are ``x`` 0, ``y`` 1, ``b`` 2, ``c`` 3.  Either ``x`` lies at ``c`` (5), or ``y`` at
    ``b`` (4).
    """
    ops = [
        op("x", "sink", [], shape=[1]),
        op("y", "sink", [], shape=[1]),
        op("b", "barrier", ["x"], shape=[1]),
        op("c", "sum_like_reduce", ["y"], shape=[1]),
    ]
    classes = [single(5, [0], 3), single(4, [-1], 2)]
    classes[1]["terminals"] = [[[[], [1, 2], []]]]
    certificate = stated(
        5,
        classes,
        {"x": [[[0, 0], [0, 3, 0], []]], "y": [[[1, 0], [1, 1, 0], []]]},
        [[[[0, 0, -1, 0], [0, 0, 3], []]], [[[1, 0, -1, 0], [0, 1, 2], []]]],
        read=["x", "y"],
        order={
            "before": ["b", "c"],
            "yes": {"evidence": {"0": EARNED, "1": EARNED}},
            "no": {"evidence": {"0": EARNED, "1": EARNED}},
        },
    )
    return instance(ops, [("x", "c", 5), ("y", "b", 4)]), certificate


def test_a_fork_proves_what_no_order_allows() -> None:
    """Either barrier precedes the other; each way one of two rewards is out."""
    given, certificate = crossed()
    assert (optimum(given), optimum(given, ordered=False)) == (5, 9)
    assert check(given, certificate) == Verdict(Fraction(5), Fraction(5), 2, 2, 0, 0)
    named = copy.deepcopy(certificate)
    named["read"] = ["x:0", "y:0"]
    assert check(given, named).bound == 5


def test_forks_on_barriers_that_there_are_not() -> None:
    """Made-up barriers, and a barrier before itself, say nothing about the others."""
    given, certificate = crossed()
    for pair in (["b", "z"], ["z", ""], ["", "b"], ["b", "b"], [7, None], ["x", "c"]):
        tree = certificate["order"]
        outer = certificate | {"order": {"before": pair, "yes": tree, "no": tree}}
        assert check(given, outer).bound == 5
        leaf = tree["yes"]
        alone = certificate | {"order": {"before": pair, "yes": leaf, "no": leaf}, "bound": 9}
        assert check(given, alone).bound == 9


def _change(*path: Any, value: Any) -> Any:
    def change(certificate: Any) -> None:
        for key in path[:-1]:
            certificate = certificate[key]
        certificate[path[-1]] = value

    return change


def _drop(*path: Any) -> Any:
    def change(certificate: Any) -> None:
        for key in path[:-1]:
            certificate = certificate[key]
        del certificate[path[-1]]

    return change


def _deep(certificate: Certificate) -> None:
    for _ in range(DEEPEST + 1):
        certificate["order"] = {"before": ["b", "c"], "yes": certificate["order"], "no": {}}


def _both(certificate: Certificate) -> None:
    """Let y lie at b as well."""
    certificate["classes"][1]["labels"] = [0]
    certificate["sinks"]["y"] = [[[1, 0], [1, 2, 0], []]]
    certificate["score"] = 9
    certificate["bound"] = 9


def _both_unread(certificate: Certificate) -> None:
    _both(certificate)
    certificate["read"] = []


WRONG: list[tuple[Any, str]] = [
    (_both, "depend on each other in a cycle: "),
    (_both_unread, "depend on each other in a cycle: "),
    (_change("order", value={"evidence": {"0": EARNED, "1": EARNED}}), "the bound 9"),
    (_change("read", value=[]), "the bound 9"),
    (_change("read", value=["x"]), "the bound 9"),
    (_change("read", value=["y"]), "the bound 9"),
    (_change("read", value="x"), "read must be a list"),
    (_change("read", value=["x", "z"]), "read contains unknown tensors: z"),
    (_change("read", value=[None]), "read contains unknown tensors: None"),
    (_change("order", value=[]), "must be of objects"),
    (_change("order", value=None), "must be of objects"),
    (_drop("order", "no"), "must be of objects"),
    (_drop("order", "yes"), "must be of objects"),
    (_deep, "must be of objects, at most 200 deep"),
    (_change("order", "before", value=["b"]), "before must be a list of 2"),
    (_change("order", "before", value="bc"), "before must be a list of 2"),
    (_change("order", "before", value=["c", "c"]), "the bound 9"),
    (_change("order", "yes", "evidence", value=[]), "evidence of an order must be an object"),
    (_drop("order", "yes", "evidence", "0"), "evidence must be of one of the kinds"),
    (_change("order", "no", "evidence", "1", value={"kind": "word", "bound": 3}), "the bound 8"),
    (_change("bound", value=4), "the bound 5"),
]


def test_wrong_orders_are_refused_with_their_reason() -> None:
    """Both branches of a fork are there, and what is read, and proves it, is named."""
    for change, reason in WRONG:
        given, certificate = crossed()
        change(certificate)
        with pytest.raises(Refused) as caught:
            check(given, certificate)
        assert reason in str(caught.value)
        assert "\n" not in str(caught.value)


def test_a_barrier_that_reads_what_lies_at_it() -> None:
    """One barrier is a circle as well."""
    ops = [op("x", "sink", [], shape=[1]), op("b", "barrier", ["x"], shape=[1])]
    given = instance(ops, [("x", "b", 5)])
    certificate = stated(
        5,
        [single(5, [0], 1) | {"evidence": EARNED}],
        {"x": [[[0, 0], [0, 1, 0], []]]},
        [[[[0, 0, -1, 0], [0, 0, 1], []]]],
    )
    assert optimum(given) == 0
    for read in ([], ["x"]):
        with pytest.raises(Refused, match="depend on each other in a cycle: b"):
            check(given, certificate | {"read": read})
    fresh = copy.deepcopy(certificate) | {"read": ["x"], "score": 0, "bound": 0}
    fresh["classes"][0]["labels"] = [-1]
    fresh["sinks"] = {"x": [[[0, 0], [0, 0, 0], []]]}
    assert check(given, fresh).bound == 0


def test_choices_that_are_out_in_some_copies_are_not_out_in_all() -> None:
    """A location that is a barrier's in one copy may be another barrier's, or nobody's, in others.

    ``b`` reads both elements of ``x``, so that the first cannot lie at ``b``; the second can lie
    where it is wanted.
    """
    for other, inputs in (("barrier", []), ("source", [])):
        ops = [
            op("x", "sink", [], shape=[2]),
            op("b", "barrier", ["x"], shape=[1]),
            op("c", other, inputs, shape=[1]),
            op("t", "concat", ["b", "c"], axis=0),
        ]
        given = instance(ops, [("x", "t", 1)])
        loop = [[2, [1, 1, 1]]]
        certificate: Certificate = stated(
            0,
            [group([-1], [[[[], [0, 2], []], [[], [1, 3], []]]], [], [[0, 0, 1]])],
            {"x": [[[0, 0], [0, 0, 0], loop]]},
            [[[[0, 0, -1, 0], [0, 0, 2], loop]]],
            bound=2,
            views={"t": [moved([[-1, 0], [2 + k, 0, k], []]) for k in (0, 1)]},
            read=["x"],
        )
        assert optimum(given) == 1
        assert check(given, certificate).bound == 2


@pytest.mark.parametrize("last", [2, 1])
def test_copies_that_are_read_one_by_one(last: int) -> None:
    """Where a barrier reads each copy in some tensor, no copy can lie at its output.

    If it does not read the second one, that can.
    """
    ops = [
        op("x", "sink", [], shape=[2]),
        op("p", "slice", ["x"], lower=[0], upper=[1]),
        op("q", "slice", ["x"], lower=[last - 1], upper=[last]),
        op("b", "barrier", ["p", "q"], shape=[2]),
    ]
    given = instance(ops, [("x", "b", 5)])
    one, two = ([[0, 0], [k, k, 0], []] for k in (0, 1))
    left = [[[0, 0], [k, k], []] for k in (0, 1)]
    certificate: Certificate = stated(
        0,
        [group([-1], [[[[], [0, 4], [[2, [1, 1]]]]]], [], [[0, 0, 5]])],
        {"x": [[[0, 0], [0, 0, 0], [[2, [1, 1, 1]]]]]},
        [[[[0, 0, -1, 0], [0, 0, 4], [[2, [1, 1, 1]]]]]],
        views={
            "p": [moved(one, left=left[1:])],
            "q": [moved(two, left=left[:1]) if last == 2 else moved(one, left=left[1:])],
        },
        read=["p", "q"],
    )
    assert optimum(given) == (0 if last == 2 else 5)
    if last == 2:
        assert check(given, certificate).bound == 0
    for read in ([], ["p"], ["q"], ["p", "q"])[: 3 if last == 2 else 4]:
        with pytest.raises(Refused, match="the evidence proves the bound 10"):
            check(given, certificate | {"read": read})


def test_what_a_barrier_reads_through_views_is_read() -> None:
    """A barrier depends on all that its inputs are made of, named in the certificate or not."""
    for name in ("s", "x", "r", "t", "u"):
        ops = [
            op("x", "sink", [], shape=[1]),
            op("s", "source", [], shape=[1]),
            op("r", "reverse", ["x"], dims=[0]),
            op("t", "concat", ["s", "r", "s"], axis=0),
            op("u", "concat", ["s", "t", "s"], axis=0),
            op("b", "barrier", ["s", name], shape=[1]),
        ]
        given = instance(ops, [("x", "b", 5)])
        place = 1 + 1 + 1 + 3 + 5
        first, last = moved([[-1, 0], [1, 0, 0], []]), moved([[-1, 0], [1, 0, 2], []])
        middle = [[tag, [w, i, i + 1], []] for tag, w, i in (([-1, 0], 1, 0), ([0, 0], 0, 1))]
        certificate = stated(
            5,
            [single(5, [0], place) | {"evidence": EARNED}],
            {"x": [[[0, 0], [0, place, 0], []]]},
            [[[[0, 0, -1, 0], [0, 0, place], []]]],
            views={
                "r": [moved([[0, 0], [0, 0, 0], []])],
                "t": [first, moved([[0, 0], [0, 0, 1], []]), last],
                "u": [
                    first,
                    moved(*middle, [[-1, 0], [1, 2, 3], []]),
                    moved([[-1, 0], [1, 0, 4], []]),
                ],
            },
        )
        assert optimum(given) == (5 if name == "s" else 0)
        if name == "s":
            assert check(given, certificate).score == 5
            continue
        for read in ([], [name]):
            with pytest.raises(Refused, match="depend on each other in a cycle: b"):
                check(given, certificate | {"read": read})


@pytest.mark.parametrize(("target", "place"), [("b:1", 3), ("c", 4)])
def test_barriers_of_several_outputs(target: str, place: int) -> None:
    """Each output of a barrier waits for all its inputs, and so does who reads that output."""
    ops = [
        op("x", "sink", [], shape=[1]),
        op("y", "sink", [], shape=[1]),
        op("b", "barrier", ["x"], shapes=[[1], [1]]),
        op("c", "barrier", ["b:1"], shape=[1]),
    ]
    given = instance(ops, [("x", target, 5), ("y", "b:1", 3)])
    certificate = stated(
        8,
        [
            single(5, [0], place) | {"evidence": EARNED},
            single(3, [0], 3) | {"terminals": [[[[], [1, 3], []]]], "evidence": EARNED},
        ],
        {"x": [[[0, 0], [0, place, 0], []]], "y": [[[1, 0], [1, 3, 0], []]]},
        [[[[0, 0, -1, 0], [0, 0, place], []]], [[[1, 0, -1, 0], [0, 1, 3], []]]],
    )
    assert optimum(given) == 3
    for read in ([], ["x"], ["b:1"], ["x", "b:1"]):
        with pytest.raises(Refused, match="depend on each other in a cycle: "):
            check(given, certificate | {"read": read})
    fresh = copy.deepcopy(certificate) | {"score": 3}
    fresh["classes"][0]["labels"] = [-1]
    fresh["sinks"]["x"] = [[[0, 0], [0, 0, 0], []]]
    assert check(given, fresh).bound == 8
    assert check(given, fresh | {"read": ["x", "b:1"]}).bound == 3


def test_barriers_behind_barriers_wait() -> None:
    """A barrier that reads another one waits for all that this one waits for."""
    ops = [
        op("x", "sink", [], shape=[1]),
        op("b", "barrier", ["x"], shape=[1]),
        op("r", "reverse", ["b"], dims=[0]),
        op("c", "barrier", ["r"], shape=[1]),
    ]
    given = instance(ops, [("x", "c", 5)])
    certificate = stated(
        5,
        [single(5, [0], 3) | {"evidence": EARNED}],
        {"x": [[[0, 0], [0, 3, 0], []]]},
        [[[[0, 0, -1, 0], [0, 0, 3], []]]],
        views={"r": [moved([[-1, 0], [1, 0, 0], []])]},
    )
    assert optimum(given) == 0
    for read in ([], ["r"], ["x", "r"]):
        with pytest.raises(Refused, match="depend on each other in a cycle"):
            check(given, certificate | {"read": read})
    fresh = copy.deepcopy(certificate) | {"score": 0, "bound": 0, "read": ["x", "r"]}
    fresh["classes"][0]["labels"] = [-1]
    fresh["sinks"] = {"x": [[[0, 0], [0, 0, 0], []]]}
    assert check(given, fresh).bound == 0


def test_a_word_in_any_class_and_any_branch_is_told() -> None:
    """What rests on a solver's word is counted, wherever in the tree it was given."""
    given, certificate = crossed()
    word = {"kind": "word", "bound": 5}
    tree = certificate["order"]
    for branch, k, words in (("yes", "0", 1), ("no", "0", 1), ("yes", "1", 1), ("no", "1", 1)):
        changed = copy.deepcopy(tree)
        changed[branch]["evidence"][k] = word
        verdict = check(given, certificate | {"order": changed, "bound": 10})
        assert (verdict.unverified, verdict.copies_unverified) == (words, words)
    tree["yes"]["evidence"] = tree["no"]["evidence"] = {"0": word, "1": word}
    verdict = check(given, certificate | {"bound": 10})
    assert (verdict.unverified, verdict.copies_unverified) == (2, 2)


def test_terminals_in_several_boxes_are_compared_with_all() -> None:
    """A short box before a long one that reaches over it, and one that ends between, are met."""
    ops = [op("x", "sink", [], shape=[2]), op("s", "source", [], shape=[9])]
    given = instance(ops, [("x", "x", 1)])
    both = [[[], [0, 2], [[2, [1, 5]]]]]
    short = [[[], [0, 2], []], [[], [1, 4], []]]
    certificate: Certificate = stated(
        2,
        [group([-1], [], [], [], {"kind": "exhaustive"})],
        {"x": [[[0, 0], [0, 0, 0], [[2, [1, 1, 1]]]]]},
        [[[[0, 0, 0, 0], [0, 0, 0], [[2, [1, 1, 1]]]]]],
    )
    for terminals in ([both, short], [both, short[::-1]], [short, both], [short[::-1], both]):
        certificate["classes"][0]["terminals"] = terminals
        with pytest.raises(Refused, match="may be the same in a copy"):
            check(given, certificate)
    certificate["classes"][0]["terminals"] = [both, [[[], [0, 3], []], short[1]]]
    assert check(given, certificate).bound == 2


def test_a_box_hides_no_barrier_that_is_read() -> None:
    """What is read lies in one tensor from a box's start to its end."""
    ops = [
        op("x", "sink", [], shape=[1]),
        op("s", "source", [], shape=[1]),
        op("b", "barrier", ["x"], shape=[1]),
        op("t", "concat", ["s", "b"], axis=0),
        op("r", "reverse", ["t"], dims=[0]),
        op("c", "barrier", ["r"], shape=[1]),
    ]
    given = instance(ops, [("x", "c", 5)])
    parts = [moved([[-1, 0], [1 + k, 0, k], []]) for k in (0, 1)]
    apart = [[[-1, 0], [1 + k, k, 1 - k], []] for k in (0, 1)]
    certificate = stated(
        5,
        [single(5, [0], 7) | {"evidence": EARNED}],
        {"x": [[[0, 0], [0, 7, 0], []]]},
        [[[[0, 0, -1, 0], [0, 0, 7], []]]],
        read=["r"],
        views={"t": parts, "r": [moved(*apart)]},
    )
    assert optimum(given) == 0
    with pytest.raises(Refused, match="depend on each other in a cycle"):
        check(given, certificate)
    with pytest.raises(Refused, match="a box that is read has locations of several tensors"):
        certificate["views"]["r"][0]["kept"] = [[[-1, 0], [1, 0, 1], [[2, [1, 1, -1]]]]]
        check(given, certificate)


def test_too_many_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each class is bounded once in each leaf, so that leaves must not be too many."""
    given, certificate = crossed()
    monkeypatch.setattr(order, "MOST_LEAVES", 4)
    assert check(given, certificate).bound == 5
    monkeypatch.setattr(order, "MOST_LEAVES", 3)
    with pytest.raises(Refused, match="the tree of orders has too many leaves"):
        check(given, certificate)
