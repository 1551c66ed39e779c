"""What is claimed of layouts is so, or refused; stated by hand and at random."""

from __future__ import annotations

import copy
import itertools
import json
import random
from typing import Any

import pytest

from layoutopt.certificate.bounds import bound
from layoutopt.certificate.conversion import folded, problem, score, stated, verify, weigh
from layoutopt.certificate.refused import Refused
from tests.certificate.problems import apply, cases, refused

Document = dict[str, Any]


def network() -> Document:
    """Return two convolutions in NCHW between an input and an output in NHWC, and a sum.

    The input goes to the sum as well, so that two transforms are needed: of x and of y, of 10 and
    30 bytes; or of x alone, and of z of 20 bytes.
    """
    return {
        "objectives": ["count", "bytes"],
        "tensors": {"x": [1, 10], "y": [1, 30], "z": [1, 20], "w": [1, 5]},
        "ops": [
            {"op": "w", "takes": [], "gives": ["w"], "modes": [["01"], ["10"]]},
            {"op": "x", "takes": [], "gives": ["x"], "modes": [["nhwc"]]},
            {"op": "conv", "takes": ["x", "w"], "gives": ["y"], "modes": [["nchw", "10", "nchw"]]},
            {
                "op": "sum",
                "takes": ["x", "y"],
                "gives": ["z"],
                "modes": [[layout] * 3 for layout in ("nhwc", "nchw", "hwcn")],
            },
            {"op": "out", "takes": ["z"], "gives": [], "modes": [["nhwc"]]},
        ],
    }


def claim() -> Document:
    """Return that two transforms are needed, of 30 bytes: of x before, and of z after the sum."""
    return {
        "score": [2, 30],
        "bound": [2, 30],
        "modes": [1, 0, 0, 1, 0],
        "evidence": {"kind": "exhaustive"},
    }


def folding() -> Document:
    """Return the same, with the mode that nothing asks for left out."""
    return claim() | {"instead": [[1, 1], [0], [0], [0, 1, 0], [0]]}


def least(statement: Any) -> list[int]:
    """Return the least score of all choices."""
    every = itertools.product(*(range(len(op.modes)) for op in statement.ops))
    return min(score(statement, list(modes)) for modes in every)


def random_network(draw: random.Random) -> Document:
    """Return ops that take earlier tensors, and give one or two, in up to three layouts."""
    objectives = draw.choice([1, 2, 3])
    tensors: dict[str, list[int]] = {}
    ops: list[Document] = []
    for n in range(draw.randint(1, 7)):
        takes = draw.sample(sorted(tensors), min(len(tensors), draw.randint(0, 3)))
        takes += takes[: draw.randint(0, 1)]
        gives = [f"t{n}_{k}" for k in range(draw.randint(0, 2))]
        tensors |= {name: [draw.randint(0, 5) for _ in range(objectives)] for name in gives}
        modes = [[draw.choice("abc") for _ in takes + gives] for _ in range(draw.randint(1, 4))]
        ops.append({"op": f"op{n}", "takes": takes, "gives": gives, "modes": modes})
        if draw.random() < 0.3:
            ops[-1]["costs"] = [[draw.randint(0, 4) for _ in range(objectives)] for _ in modes]
    names = ["count", "bytes", "time"][:objectives]
    return {"objectives": names, "tensors": tensors, "ops": ops}


def test_the_pairwise_problem_is_the_choice_of_layouts() -> None:
    """Its optimum is the least score of all choices, objectives in order, on random networks."""
    several = 0
    for seed in range(150):
        statement = stated(random_network(random.Random(seed)))
        weights = statement.weights()
        own = problem(statement, weights)
        order = sorted(range(len(own.widths)), key=lambda u: random.Random(seed + u).random())
        found, _ = bound(own, {"kind": "table", "order": order})
        assert -found == weigh(least(statement), weights)
        several += statement.objectives > 1 and -found > 0
    assert several > 40


def test_weights_keep_the_order_of_objectives() -> None:
    """One number for several objectives orders all scores of a network as the lists are."""
    for seed in range(100):
        statement = stated(random_network(random.Random(seed)))
        every = itertools.product(*(range(len(op.modes)) for op in statement.ops))
        scores = [score(statement, list(modes)) for modes in itertools.islice(every, 300)]
        weights = statement.weights()
        numbers = [weigh(own, weights) for own in scores]
        assert [x for _, x in sorted(zip(numbers, scores, strict=True))] == sorted(scores)


def test_folding_loses_nothing() -> None:
    """Whatever stands in for what, and is accepted, leaves the least score as it is."""
    accepted = 0
    for seed in range(900):
        draw = random.Random(seed)
        statement = stated(random_network(draw))
        instead = [list(range(len(op.modes))) for op in statement.ops]
        for own in draw.choices(instead, k=draw.randint(1, 2)):
            own[draw.randrange(len(own))] = draw.randrange(len(own))
        try:
            smaller = folded(statement, instead, statement.weights())
        except Refused:
            continue
        assert least(smaller) == least(statement)
        accepted += sum(len(op.modes) for op in smaller.ops) < sum(
            len(op.modes) for op in statement.ops
        )
    assert accepted > 30


WRONG = cases("claims")


@pytest.mark.parametrize("kind", WRONG)
def test_wrong_certificates_are_refused_with_their_reason(kind: str) -> None:
    """Mistakes in each part are refused in one line that names the mistake."""
    for changes, reason in WRONG[kind]:
        both = {"statement": network(), "claim": folding() if kind == "instead" else claim()}
        assert not verify(*copy.deepcopy(list(both.values())))
        apply(both, changes)
        with refused(reason):
            verify(*both.values())


@pytest.mark.parametrize("given", [None, [], 0, "", float("nan"), [[]], {"a": 1}])
def test_other_data_is_refused(given: Any) -> None:
    """Whatever is given in place of a statement or a claim is refused."""
    with pytest.raises(Refused):
        verify(given, claim())
    with pytest.raises(Refused):
        verify(network(), given)


def test_json_in_which_anything_is_changed_never_upsets_the_checker() -> None:
    """A value put in the place of any other is accepted or refused; nothing else happens."""
    odd: list[Any] = [None, True, -1, 10**30, 0.5, float("nan"), "", "nhwc", [], [[]], {}, [0, 0]]
    evidence = {"kind": "branch", "node": 3, "leaves": [{"kind": "exhaustive"}] * 2}
    outcomes = set()
    for seed in range(1500):
        draw = random.Random(seed)
        both = json.loads(json.dumps([network(), folding() | {"evidence": evidence}]))
        at: Any = both
        while True:
            key = draw.choice(list(at)) if isinstance(at, dict) else draw.randrange(len(at))
            if not at[key] or not isinstance(at[key], dict | list) or draw.random() < 0.2:
                break
            at = at[key]
        at[key] = draw.choice(odd)
        try:
            outcomes.add(verify(*both))
        except Refused:
            outcomes.add(None)
    assert outcomes == {False, None}
