"""What stands in for modes is accepted, and is found where it is wanted."""

from __future__ import annotations

import random

import pytest

from layoutopt.certificate.conversion import Statement, folded, stated
from layoutopt.certify.conversion import folding
from layoutopt.conversion.convert import convert_graph
from tests.certificate.test_conversion import least, random_network
from tests.conversion.drawn import drawn


def statement(*ops: tuple[list[str], list[str], list[list[str]]]) -> Statement:
    """Return ops that take and give tensors, in modes."""
    names = [name for _, gives, _ in ops for name in gives]
    return stated(
        {
            "objectives": ["count"],
            "tensors": {name: [1] for name in names},
            "ops": [
                {"op": f"op{n}", "takes": takes, "gives": gives, "modes": modes}
                for n, (takes, gives, modes) in enumerate(ops)
            ],
        }
    )


def test_a_family_goes_where_all_of_it_can() -> None:
    """Another useful mode is taken if the first has no counterpart elsewhere in the family."""
    given = statement(
        ([], ["x"], [["a"]]),
        (["x"], ["y"], [["a", "a"], ["b", "b"], ["c", "c"]]),
        (["y"], ["z"], [["b", "b"], ["c", "c"]]),
        (["z"], [], [["b"]]),
    )
    assert folding(given, [[0], [0, 1], [0], [0]]) == [[0], [0, 1, 1], [0, 0], [0]]


def test_a_family_that_nothing_can_stand_in_for_stays() -> None:
    """Where one op has no counterpart, all modes of the family stand for themselves."""
    given = statement(
        ([], ["x"], [["a"]]),
        (["x"], ["y"], [["a", "a"], ["c", "c"]]),
        (["y"], ["z"], [["b", "b"], ["c", "c"]]),
        (["z"], [], [["b"]]),
    )
    assert folding(given, [[0], [0], [0], [0]]) == [[0], [0, 1], [0, 1], [0]]


def test_random_foldings_lose_nothing() -> None:
    """On random networks, with random useful modes, the checker accepts what is found."""
    smaller = 0
    for seed in range(200):
        draw = random.Random(seed)
        document = random_network(draw)
        for op in document["ops"]:
            op.pop("costs", None)
        given = stated(document)
        useful = [
            sorted(draw.sample(range(len(op.modes)), draw.randint(1, len(op.modes))))
            for op in given.ops
        ]
        instead = folding(given, useful)
        less = folded(given, instead, given.weights())
        assert least(less) == least(given)
        assert all(own[m] == m for own, kept in zip(instead, useful, strict=True) for m in kept)
        smaller += instead != [list(range(len(own))) for own in instead]
    assert smaller > 10


@pytest.mark.parametrize("free_io", [False, True])
def test_modes_that_the_solver_leaves_out_stand_for_nothing_else(free_io: bool) -> None:
    """On random graphs nearly all modes that were left out have others to stand in for them."""
    left, folds = 0, 0
    for seed in range(30):
        found = convert_graph(drawn(seed, 14), objective="count,bytes", free_io=free_io).state()
        given = stated(found.document)
        instead = folding(given, found.useful)
        folded(given, instead, given.weights())
        left += sum(len(op.modes) for op in given.ops) - sum(map(len, found.useful))
        folds += sum(m != k for own in instead for m, k in enumerate(own))
    assert folds > 0.9 * left > 100
