"""Certificates of unwinding prove what they say, and nothing that is not so."""

from __future__ import annotations

import copy
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from layoutopt.certificate import order
from layoutopt.certificate.refused import Refused
from layoutopt.certificate.unwinding import Verdict, check
from tests.certificate.test_order import (
    Certificate,
    Instance,
    group,
    instance,
    moved,
    op,
    optimum,
    single,
    stated,
)

Change = Callable[[Certificate], None]

BOTH = [[2, [1, 1, 1]]]
"""A loop over both copies, in three quantities."""


def example() -> tuple[Instance, Certificate]:
    """Return an instance of two copies of one class, and its certificate.

    Elements are ``x`` 0 1, ``y`` 2 3, ``z`` 4, ``s`` 5 .. 8, ``sl`` 9 10, ``v`` 11 12, ``r`` 13 14,
    ``u`` 15 16 and ``f`` 17 18; 19 and 20 are the locations that ``u`` names.  In each copy ``x``
    and ``y`` earn 3 together, ``x`` 2 at ``sl``, and 1 and 2 at ``u``: at most 6.  By all means
    ``x`` lies where it does, for 7 an element, as does ``z``, for 1.
    """
    ops = [
        op("x", "sink", [], shape=[2]),
        op("y", "sink", [], shape=[2]),
        op("z", "sink", [], shape=[1]),
        op("s", "source", [], shape=[4]),
        op("sl", "slice", ["s"], lower=[1], upper=[3]),
        op("v", "slice", ["s"], lower=[2], upper=[4]),
        op("r", "reshape", ["x"], shape=[2, 1]),
        op("u", "source", [], shape=[2, 1], mapping=["m", 3]),
        op("f", "flatten", ["u"]),
    ]
    pairs = [("x", "y", 3), ("x", "sl", 2), ("r", "u", 1), ("y", "f", 2)]
    pairs += [("x", "x", 7), ("sl", "v", 5), ("z", "z", 1), ("x", "y", 0)]
    certificate: Certificate = stated(
        27,
        [
            group(
                [1, 1],
                [[[[], [0, 6], [[2, [1, 1]]]]], [[[], [0, 19], [[2, [1, 1]]]]]],
                [[0, 1, 3]],
                [[0, 0, 2], [0, 1, 1], [1, 1, 2]],
                {"kind": "flow", "edges": [2], "rewards": [2, 0, 2]},
            )
        ],
        {
            "x": [[[0, 0], [0, 19, 0], BOTH]],
            "y": [[[0, 1], [0, 19, 0], BOTH]],
            "z": [[[-2, 0], [4, 4, 0], []]],
        },
        [
            [[[0, 0, 0, 1], [0, 0, 0], BOTH]],
            [[[0, 0, -1, 0], [0, 0, 6], BOTH]],
            [[[0, 0, -1, 0], [0, 0, 19], BOTH]],
            [[[0, 1, -1, 0], [0, 0, 19], BOTH]],
            [[[0, 0, 0, 0], [0, 0, 0], BOTH]],
            [[[-1, 0, -1, 0], [0, 6, 7], BOTH]],
            [[[-2, 0, -2, 0], [0, 4, 4], []]],
            None,
        ],
        views={
            "sl": [
                {
                    "kept": [[[-1, 0], [6, 1, 0], BOTH]],
                    "left": [[[-1, 0], [5, 0], []], [[-1, 0], [8, 3], []]],
                }
            ],
            "v": [
                {
                    "kept": [[[-1, 0], [7, 2, 0], BOTH]],
                    "left": [[[-1, 0], [5, 0], [[2, [1, 1]]]]],
                }
            ],
        },
    )
    return copy.deepcopy((instance(ops, pairs), certificate))


def test_the_example_is_accepted() -> None:
    """What it proves is the best of all layouts; boxes may be cut, loops turned, ratios reduced."""
    given, certificate = example()
    want = Verdict(Fraction(27), Fraction(27), 1, 2, 0, 0)
    assert optimum(given) == 27
    assert check(given, certificate) == want
    certificate["sinks"]["x"] = [[[0, 0], [k, 19 + k, k], []] for k in (1, 0)]
    certificate["pairs"][0] = [[[0, 0, 0, 1], [1, 1, 1], [[2, [-1, -1, -1]]]]]
    certificate["classes"][0]["terminals"][0] = [[[], [k, 6 + k], []] for k in (0, 1)]
    certificate["bound"] = "55/2"
    assert check(given, certificate) == want
    certificate["unit"] = "1/2"
    own = certificate["classes"][0]
    own["edges"], own["rewards"] = [[0, 1, 6]], [[0, 0, 4], [0, 1, 2], [1, 1, 4]]
    less = check(given, certificate | {"bound": 29})  # not all that can flow
    assert less == want._replace(bound=Fraction(29))
    own["evidence"] = {"kind": "word", "bound": 11}
    assert check(given, certificate) == Verdict(Fraction(27), Fraction(26), 1, 2, 1, 2)


def test_locations_of_any_node() -> None:
    """Nodes may lie together at the own location of the first or of the second."""
    ops = [op("x", "sink", [], shape=[2]), op("y", "sink", [], shape=[2])]
    given = instance(ops, [("x", "y", 3)])
    for label, place in ((-1, 0), (-2, 2)):
        certificate = stated(
            6,
            [group([label] * 2, [], [[0, 1, 1]], [])],
            {"x": [[[0, 0], [0, place, 0], BOTH]], "y": [[[0, 1], [0, place, 0], BOTH]]},
            [[[[0, 0, 0, 1], [0, 0, 0], BOTH]]],
            unit=3,
        )
        assert check(given, certificate).score == 6 == optimum(given)
        certificate["sinks"]["y"] = [[[0, 1], [0, 2 - place, 0], BOTH]]
        with pytest.raises(Refused, match="node 1 is not at the location"):
            check(given, certificate)


def test_pairs_either_way() -> None:
    """A pair may name its fixed locations, or the later node, first; it is the same pair."""
    given, certificate = example()
    for n, pair in enumerate(given["valued_pairs"][:4]):
        pair["a"], pair["b"] = pair["b"], pair["a"]
        for tag, start, loops in certificate["pairs"][n]:
            tag[:] = tag[2:] + tag[:2]
            for vector in (start, *(steps for _, steps in loops)):
                vector[1:] = vector[:0:-1]
    assert check(given, certificate).score == 27
    certificate["pairs"][0] = [[[0, 1, 0, 0], [k, k, k], []] for k in (0, 1)]
    assert check(given, certificate).score == 27
    given["valued_pairs"][5] |= {"a": "v", "b": "v"}  # a constant, and more boxes after it
    certificate |= {"score": 37, "bound": 37}
    certificate["pairs"][5] = [[[-1, 0, -1, 0], [k, 7 + k, 7 + k], []] for k in (0, 1)]
    assert check(given, certificate).score == 37


def test_boxes_after_one_that_is_never_the_same() -> None:
    """Positions that can earn nothing come first, those that can are looked at all the same."""
    ops = [
        op("x", "sink", [], shape=[1]),
        op("s", "source", [], shape=[2]),
        op("h", "slice", ["s"], lower=[0], upper=[1]),
        op("t", "concat", ["h", "x"], axis=0),
        op("r", "reverse", ["s"], dims=[0]),
    ]
    given = instance(ops, [("t", "r", 5)])
    certificate: Certificate = stated(
        5,
        [group([0], [[[[], [0, 1], []]]], [], [[0, 0, 5]])],
        {"x": [[[0, 0], [0, 1, 0], []]]},
        [[[[-1, 0, -1, 0], [0, 1, 2], []], [[0, 0, -1, 0], [1, 0, 1], []]]],
        views={
            "h": [moved([[-1, 0], [1, 0, 0], []], left=[[[-1, 0], [2, 1], []]])],
            "t": [moved([[-1, 0], [1, 0, 0], []]), moved([[0, 0], [0, 0, 1], []])],
            "r": [moved([[-1, 0], [1, 0, 1], [[2, [1, 1, -1]]]])],
        },
    )
    assert check(given, certificate).score == 5 == optimum(given)
    certificate["classes"][0] |= {"rewards": []}
    with pytest.raises(Refused, match="are not those of the pairs"):
        check(given, certificate | {"score": 0, "bound": 0})


def put(*path: Any) -> Change:
    """Return what puts the last of its arguments where the others say."""
    *keys, last, value = path

    def change(certificate: Any) -> None:
        for key in keys:
            certificate = certificate[key]
        if value is ...:
            del certificate[last]
        elif isinstance(value, tuple):
            certificate[last] = certificate[last] + list(value)
        else:
            certificate[last] = value

    return change


def every(*changes: Change) -> Change:
    """Return what makes several changes."""

    def change(certificate: Certificate) -> None:
        for one in changes:
            one(certificate)

    return change


X, Y = ("sinks", "x"), ("sinks", "y")
CLASS, SL = ("classes", 0), ("views", "sl", 0)
ONE: list[Any] = [[0, 0], [0, 19, 0], []]
TWO: list[Any] = [[0, 0], [1, 20, 1], []]

WRONG: dict[str, list[tuple[Change, str]]] = {
    "claims": [
        (put("score", 28), "the layouts score 27"),
        (put("score", 26), "the layouts score 27"),
        (put("score", "53/2"), "the layouts score 27"),
        (put("score", ...), "NoneType is neither an integer"),
        (put("score", 27.0), "27.0 is neither an integer"),
        (put("bound", 26), "the evidence proves the bound 27"),
        (put("bound", "53/2"), "the evidence proves the bound 27"),
        (put("bound", None), "NoneType is neither an integer"),
        (put("unit", 0), "the unit must be positive"),
        (put("unit", -1), "the unit must be positive"),
        (put("unit", 2), "value 3 is not a multiple of the unit 2"),
        (put("unit", "1/2"), "edges of nodes"),
        (put("unit", ...), "NoneType is neither an integer"),
        (put("unit", "1/" + "9" * 40), "edges of nodes"),
    ],
    "sinks": [
        (put("sinks", None), "'sinks' must be an object"),
        (put("sinks", ...), "sink 'x' must be a list"),
        (put(*X, ...), "sink 'x' must be a list"),
        (put(*X, []), "must contain each element once"),
        (put(*X, [ONE]), "must contain each element once"),
        (put(*X, [ONE, TWO, TWO]), "must contain each element once"),
        (put(*X, [ONE, [[0, 0], [0, 19, 0], []]]), "must contain each element once"),
        (put(*X, [[[0, 0], [0, 19, 1], BOTH]]), "must contain each element once"),
        (put(*X, [[[0, 0], [0, 19, -1], BOTH]]), "must contain each element once"),
        (put(*X, [[[0, 0], [1, 20, 0], [[2, [-1, -1, 1]]]]]), "not identified by its node 0"),
        (put(*X, [[[0, 0], [7, 19, 0], BOTH]]), "not identified by its node 0"),
        (put("sinks", "z", [[[-2, 0], [3, 4, 0], []]]), "not identified by its node 0"),
        (put("sinks", "z", [[[-1, 0], [4, 4, 0], []]]), "of node (-1, 0), which does not exist"),
        (put("sinks", "z", [[[1, 0], [4, 4, 0], []]]), "of node (1, 0), which does not exist"),
        (put(*Y, [[[0, 2], [0, 19, 0], BOTH]]), "node 1 is not in each copy once"),
        (put(*Y, [[[0, 1], [0, 19, 0], [[2, [0, 1, 1]]]]]), "node 1 is not in each copy once"),
        (put(*Y, [[[0, 1], [1, 19, 0], BOTH]]), "node 1 is not in each copy once"),
        (put(*Y, [[[0, 1], [1, 19, 0], [[2, [-1, 1, 1]]]]]), "node 1 is not at the location"),
        (put(*Y, [[[0, 1], [0, 6, 0], BOTH]]), "node 1 is not at the location"),
        (put(*X, [[[0, 0], [0, 18, 0], BOTH]]), "node 0 is not at the location"),
        (put(*X, [[[-2, 0], [0, 0, 0], BOTH]]), "node 1 is not in each copy once"),
        (put(*X, [[[0, 0], [0, 19], []]]), "the start of a box of sink 'x' must be a list of 3"),
        (put(*X, [[[0], [0, 19, 0], BOTH]]), "the tag of a box of sink 'x' must be a list of 2"),
    ],
    "classes": [
        (put("classes", None), "classes must be a list"),
        (put("classes", []), "of node (0, 0), which does not exist"),
        (put(*CLASS, None), "class 0 must be an object"),
        (put("classes", (copy.deepcopy(example()[1]["classes"][0]),)), "class 1 has no copy"),
        (put(*CLASS, "labels", []), "integers from 0 to -1"),
        (put(*CLASS, "labels", [1, 0]), "node 1 is not at the location"),
        (put(*CLASS, "labels", [-1, -1]), "node 0 is not at the location"),
        (put(*CLASS, "terminals", 1, []), "terminal 1 is not in each copy once"),
        (put(*CLASS, "terminals", 1, [[[], [0, 19], []]]), "terminal 1 is not in each copy once"),
        (
            put(*CLASS, "terminals", 1, [[[], [0, 19], [[2, [0, 1]]]]]),
            "terminal 1 is not in each copy once",
        ),
        (
            put(*CLASS, "terminals", 1, [[[], [0, 20], [[2, [1, -1]]]]]),
            "node 0 is not at the location",
        ),
        (put(*CLASS, "terminals", 0, [[[], [0], [[2, [1]]]]]), "terminal 0 of class 0 must"),
        (put(*CLASS, "terminals", 0, [[[0], [0, 6], [[2, [1, 1]]]]]), "must be a list of 0"),
        (put(*CLASS, "terminals", 0, [[[], [0, 21], [[2, [1, 1]]]]]), "unknown location 21"),
        (put(*CLASS, "terminals", 0, [[[], [0, -1], [[2, [1, 1]]]]]), "unknown location -1"),
        (put(*CLASS, "terminals", 0, [[[], [0, 2], [[2, [1, 1]]]]]), "no location of its own"),
        (put(*CLASS, "terminals", 0, [[[], [0, 9], [[2, [1, 1]]]]]), "no location of its own"),
        (put(*CLASS, "terminals", 0, [[[], [0, 8], [[2, [1, 7]]]]]), "no location of its own"),
        (
            put(*CLASS, "terminals", 0, [[[], [0, 20], [[2, [1, -1]]]]]),
            "edges of nodes ((0, 0), (-1, 0)) are not those of the pairs",
        ),
    ],
    "edges": [
        (put(*CLASS, "edges", 0, 2, 4), "edges of nodes ((0, 0), (0, 1)) are not"),
        (put(*CLASS, "edges", 0, 2, -3), "edges of nodes ((0, 0), (0, 1)) are not"),
        (put(*CLASS, "edges", []), "edges of nodes ((0, 0), (0, 1)) are not"),
        (put(*CLASS, "edges", ([1, 0, 3],)), "edges of nodes ((0, 0), (0, 1)) are not"),
        (put(*CLASS, "rewards", 0, 2, 1), "edges of nodes ((0, 0), (-1, 0)) are not"),
        (put(*CLASS, "rewards", 0, [0, 0, 2**120]), "edges of nodes ((0, 0), (-1, 0)) are not"),
        (put(*CLASS, "rewards", 0, [0, 0, 2**127 + 1]), "edges of nodes ((0, 0), (-1, 0)) are not"),
        (
            every(
                put(*CLASS, "rewards", 0, [0, 0, 3 - 2**127]),
                put(*CLASS, "evidence", "kind", "earned"),
            ),
            "edges of nodes ((0, 0), (-1, 0)) are not",
        ),
        (put(*CLASS, "rewards", 0, 1, 1), "are repeated"),
        (put(*CLASS, "rewards", []), "edges of nodes ((0, 0), (-1, 0)) are not"),
        (put(*CLASS, "rewards", ([1, 0, 1],)), "edges of nodes ((0, 1), (-1, 0)) are not"),
        (put(*CLASS, "rewards", 2, 0, 0), "are repeated"),
        (put(*CLASS, "rewards", 0, [0, 0, 10**4000]), "the values are too large"),
    ],
    "pairs": [
        (put("pairs", None), "pairs must be a list of 8"),
        (put("pairs", ([],)), "pairs must be a list of 8"),
        (put("pairs", 0, None), "pair 0 must be a list"),
        (put("pairs", 0, []), "pair 0: its boxes are not those of 'x'"),
        (put("pairs", 0, 0, 0, [0, 0, 0, 0]), "pair 0: its boxes are not those of 'y'"),
        (put("pairs", 0, 0, 0, [-1, 0, 0, 1]), "pair 0: its boxes are not those of 'x'"),
        (put("pairs", 0, 0, 1, [0, 1, 0]), "pair 0: its boxes are not those of 'x'"),
        (put("pairs", 0, 0, 1, [1, 0, 0]), "pair 0: its boxes are not those of 'x'"),
        (put("pairs", 0, 0, 1, [0, 0]), "the start of a box of pair 0 must be a list of 3"),
        (put("pairs", 0, 0, 0, [0, 0, 0, 1, 0]), "the tag of a box of pair 0 must be a list of 4"),
        (put("pairs", 0, 0, 2, []), "pair 0: its boxes are not those of 'x'"),
        (put("pairs", 0, 0, 2, [[1, [1, 1, 1]]]), "pair 0: its boxes are not those of 'x'"),
        (
            put("pairs", 0, [[[0, 0, 0, 1], [0, 0, 1], [[2, [1, 1, -1]]]]]),
            "pair 0: its boxes are not those of 'y'",
        ),
        (put("pairs", 1, 0, 1, [0, 0, 7]), "pair 1: its boxes are not those of 'sl'"),
        (put("pairs", 2, 0, 1, [0, 0, 15]), "pair 2: its boxes are not those of 'u'"),
        (
            put("pairs", 5, [[[-1, 0, -1, 0], [k, 6 + k, 7 + k], []] for k in (0, 0)]),
            "pair 5: its boxes are not those of 'sl'",
        ),
    ],
    "views": [
        (put("views", []), "'views' must be an object"),
        (put("views", ...), "view 'sl' must be a list of 1"),
        (put(*SL[:2], []), "view 'sl' must be a list of 1"),
        (put(*SL[:2], (moved(),)), "view 'sl' must be a list of 1"),
        (put(*SL[:2], [None]), "there is no 'kept'"),
        (put(*SL, "left", ...), "there is no 'left'"),
        (put(*SL, "left", None), "view 'sl' must be a list"),
        (put(*SL, "left", 0, 1, [5]), "the start of a box of view 'sl' must be a list of 2"),
        (put(*SL, "left", 0, 0, []), "the tag of a box of view 'sl' must be a list of 2"),
        (put(*SL, "kept", 0, 1, [6]), "the start of a box of view 'sl' must be a list of 3"),
        (put(*SL, "kept", 0, 0, []), "the tag of a box of view 'sl' must be a list of 2"),
        (put(*SL, "left", []), "view 'sl': its boxes are not those of 's'"),
        (put(*SL, "left", 0, 1, [5, 3]), "view 'sl': its boxes are not those of 's'"),
        (put(*SL, "left", 0, 0, [-2, 0]), "view 'sl': its boxes are not those of 's'"),
        (put(*SL, "left", 1, 1, [8, 4]), "view 'sl': its boxes are not those of 's'"),
        (put(*SL, "left", 0, [[-1, 0], [5, 0], [[2, [1, 1]]]]), "its boxes are not those of 's'"),
        (put(*SL, "kept", 0, 0, [-2, 0]), "view 'sl': its boxes are not those of 's'"),
        (put(*SL, "kept", 0, 1, [7, 1, 0]), "view 'sl': its boxes are not those of 's'"),
        (
            put(*SL, "kept", [[[-1, 0], [7, 1, 0], []], [[-1, 0], [6, 2, 1], []]]),
            "view 'sl': its boxes are not those of 's'",
        ),
        (put(*SL, "kept", []), "view 'sl': its boxes are not those"),
        (put(*SL, "kept", 0, 1, [5, 0, 0]), "not those to which the op moves"),
        (put(*SL, "kept", 0, 1, [6, 1, 1]), "not those to which the op moves"),
        (put(*SL, "kept", 0, 2, [[2, [1, 1, 0]]]), "not those to which the op moves"),
        (put(*SL, "kept", ([[-1, 0], [6, 1, 0], []],)), "not those to which the op moves"),
        (
            put(*SL, moved([[-1, 0], [5, 0, 0], [[4, [1, 1, 1]]]])),
            "not those to which the op moves",
        ),
    ],
}


@pytest.mark.parametrize("kind", WRONG)
def test_wrong_certificates_are_refused_with_their_reason(kind: str) -> None:
    """Ten and more mistakes of each kind are refused in one line that names the mistake."""
    assert len(WRONG[kind]) >= 10
    for change, reason in WRONG[kind]:
        given, certificate = example()
        change(certificate)
        with pytest.raises(Refused) as caught:
            check(given, certificate)
        assert reason in str(caught.value)
        assert "\n" not in str(caught.value)
        assert len(str(caught.value)) < 200


@pytest.mark.parametrize("certificate", [None, [], "", 1, {}])
def test_what_is_no_certificate(certificate: Any) -> None:
    """Plain data of any other kind is refused."""
    with pytest.raises(Refused):
        check(example()[0], certificate)


def test_elements_in_no_class_are_in_no_pair() -> None:
    """What is said to be reached by no pair is refused if one reaches it."""
    given, certificate = example()
    certificate["classes"] = []
    certificate["sinks"]["x"] = [[[-2, 0], [0, 0, 0], BOTH]]
    certificate["sinks"]["y"] = [[[-2, 0], [2, 2, 0], BOTH]]
    certificate["pairs"][0] = [[[-2, 0, -2, 0], [0, 0, 2], BOTH]]
    with pytest.raises(Refused, match="are declared to be in no class"):
        check(given, certificate)


def test_fixed_locations_are_the_same_or_not() -> None:
    """A box of fixed locations that are the same here and there has to be cut."""
    ops = [op("s", "source", [], shape=[3]), op("t", "reverse", ["s"], dims=[0])]
    given = instance(ops, [("s", "t", 5)])
    whole = [[[-1, 0, -1, 0], [0, 0, 2], [[3, [1, 1, -1]]]]]
    alone = [[[-1, 0, -1, 0], [k, k, 2 - k], []] for k in range(3)]
    certificate: Certificate = stated(5, [], {}, [])
    certificate |= {
        "views": {"t": [moved([[-1, 0], [0, 0, 2], [[3, [1, 1, -1]]]])]},
        "pairs": [alone],
    }
    assert check(given, certificate) == Verdict(Fraction(5), Fraction(5), 0, 0, 0, 0)
    assert optimum(given) == 5
    with pytest.raises(
        Refused, match="fixed locations of a box are partly equal and partly different"
    ):
        check(given, certificate | {"pairs": [whole]})


@pytest.mark.parametrize("names", ["ab", "ba"])
@pytest.mark.parametrize("back", [False, True])
def test_fixed_locations_are_the_same_at_one_end(names: str, back: bool) -> None:
    """A box of fixed locations that begins, or ends, with a match has to be cut, too."""
    ops = [
        op("s", "source", [], shape=[3]),
        op("a", "slice", ["s"], lower=[0], upper=[2]),
        op("b", "sub_sample", ["s"], strides=[2]),
    ]
    given = instance(ops, [(*names, 5)])
    views = {
        "a": [moved([[-1, 0], [0, 0, 0], BOTH], left=[[[-1, 0], [2, 2], []]])],
        "b": [moved([[-1, 0], [0, 0, 0], [[2, [2, 2, 1]]]], left=[[[-1, 0], [1, 1], []]])],
    }
    second = [1, 1, 2] if names == "ab" else [1, 2, 1]
    alone = [[[-1, 0, -1, 0], own, []] for own in ([0, 0, 0], second)]
    whole = [[[-1, 0, -1, 0], [0, 0, 0], [[2, second]]]]
    if back:
        whole = [[[-1, 0, -1, 0], second, [[2, [-x for x in second]]]]]
    certificate = stated(5, [], {}, [], views=views)
    assert check(given, certificate | {"pairs": [alone]}).score == 5 == optimum(given)
    with pytest.raises(
        Refused, match="fixed locations of a box are partly equal and partly different"
    ):
        check(given, certificate | {"score": 0, "bound": 0, "pairs": [whole]})


def test_weights_that_are_equal_in_a_small_field_only() -> None:
    """What is worth 2^127 in all is no edge of weight 1, though 2^127 - 1 is a prime."""
    wide = 2**54
    ops = [
        op("x", "sink", [], shape=[1]),
        op("s", "source", [], shape=[1]),
        op("y", "expand", ["x"], shape=[wide]),
        op("t", "expand", ["s"], shape=[wide]),
    ]
    given = instance(ops, [("y", "t", 2**73)])
    certificate: Certificate = stated(
        2**127,
        [group([0], [[[[], [0, 1], []]]], [], [[0, 0, 2**127]])],
        {"x": [[[0, 0], [0, 1, 0], []]]},
        [[[[0, 0, -1, 0], [0, 0, 1], [[wide, [1, 0, 0]]]]]],
        views={
            "y": [moved([[0, 0], [0, 0, 0], [[wide, [0, 0, 1]]]])],
            "t": [moved([[-1, 0], [1, 0, 0], [[wide, [0, 0, 1]]]])],
        },
    )
    assert check(given, certificate).score == 2**127
    certificate["classes"][0]["rewards"] = [[0, 0, 1]]
    with pytest.raises(Refused, match="are not those of the pairs"):
        check(given, certificate | {"score": 1, "bound": 1})


def test_values_below_zero_are_in_no_small_field_either() -> None:
    """What costs 2^127 - 1 is no pair that is worth nothing, as it would be modulo this prime."""
    ops = [op("s", "source", [], shape=[1]), op("x", "sink", [], shape=[1])]
    given = instance(ops, [("x", "s", 1 - 2**127)])
    certificate: Certificate = stated(
        0,
        [single(0, [-1], 0) | {"evidence": {"kind": "earned"}}],
        {"x": [[[0, 0], [1, 1, 0], []]]},
        [[[[0, 0, -1, 0], [0, 1, 0], []]]],
    )
    with pytest.raises(Refused, match="are not those of the pairs"):
        check(given, certificate)
    own = {"terminals": [[[[], [1, 0], []]]], "rewards": [[0, 0, 1 - 2**127]]}
    certificate["classes"][0] |= own
    assert check(given, certificate).score == 0 == optimum(given)
    certificate["classes"][0]["labels"], certificate["sinks"]["x"][0][1] = [0], [1, 0, 0]
    assert check(given, certificate | {"score": 1 - 2**127}).bound == 0


def test_names_with_a_colon() -> None:
    """An op may be called ``s:0``, which then is not the first output of ``s``."""
    ops = [
        op("x", "sink", [], shape=[1]),
        op("s", "source", [], shape=[1]),
        op("s:0", "source", [], shape=[1]),
    ]
    given = instance(ops, [("x", "s:0", 5), ("x", "s", 3)])
    certificate: Certificate = stated(
        5,
        [
            group(
                [1],
                [[[[], [0, 1], []]], [[[], [0, 2], []]]],
                [],
                [[0, 0, 3], [0, 1, 5]],
                {"kind": "flow", "edges": [], "rewards": [3, 3]},
            )
        ],
        {"x": [[[0, 0], [0, 2, 0], []]]},
        [[[[0, 0, -1, 0], [0, 0, k], []]] for k in (2, 1)],
    )
    assert check(given, certificate).score == 5
    wrong = copy.deepcopy(certificate) | {"score": 8, "bound": 8}
    wrong["classes"][0] |= {"rewards": [[0, 1, 8]], "evidence": {"kind": "earned"}}
    wrong["pairs"] = [wrong["pairs"][0]] * 2
    with pytest.raises(Refused, match="pair 1: its boxes are not those of 's'"):
        check(given, wrong)


def test_negative_values_need_terminals_apart() -> None:
    """Where agreement costs, labels that differ must be locations that differ."""
    ops = [
        op("x", "sink", [], shape=[1]),
        op("y", "sink", [], shape=[1]),
        op("s", "source", [], shape=[1]),
    ]
    given = instance(ops, [("x", "s", 10), ("y", "s", 10), ("x", "y", -5)])
    certificate: Certificate = stated(
        20,
        [group([0, 1], [[[[], [0, 2], []]]] * 2, [[0, 1, -5]], [[0, 0, 10], [1, 1, 10]])],
        {"x": [[[0, 0], [0, 2, 0], []]], "y": [[[0, 1], [0, 2, 0], []]]},
        [
            [[[0, 0, -1, 0], [0, 0, 2], []]],
            [[[0, 1, -1, 0], [0, 0, 2], []]],
            [[[0, 0, 0, 1], [0, 0, 0], []]],
        ],
    )
    assert optimum(given) == 15
    with pytest.raises(Refused, match="terminals 0 and 1 may be the same in a copy"):
        check(given, certificate)
    del given["valued_pairs"][2], certificate["pairs"][2]
    certificate["classes"][0]["edges"] = []
    assert check(given, certificate).score == 20 == optimum(given)
    certificate["classes"][0]["evidence"] = {"kind": "exhaustive"}
    with pytest.raises(Refused, match="terminals 0 and 1 may be the same in a copy"):
        check(given, certificate)


def test_one_terminal_under_two_names_proves_nothing() -> None:
    """A class whose terminals are one location in some copy has no bound but its rewards."""
    given, certificate = example()
    own = certificate["classes"][0]
    own["terminals"].append([[[], [0, 19], []], [[], [1, 7], []]])
    own["evidence"] = {"kind": "table", "order": [0, 1]}
    with pytest.raises(Refused, match="class 0: terminals"):
        check(given, certificate)
    own["evidence"] = {"kind": "earned"}
    assert check(given, certificate | {"bound": 31}).bound == 31


def test_too_many_boxes_to_compare(monkeypatch: pytest.MonkeyPatch) -> None:
    """Terminals in so many boxes that comparing them takes too long are refused."""
    given, certificate = example()
    certificate["classes"][0]["terminals"][0] = [[[], [0, 7], [[2, [1, -1]]]]]
    given["valued_pairs"][1]["value"] = 0
    certificate["classes"][0]["rewards"].pop(0)
    certificate["classes"][0]["terminals"].append([[[], [0, 6], [[2, [1, 1]]]]])
    certificate["classes"][0]["evidence"] = {"kind": "exhaustive"}
    assert check(given, certificate).bound == 27
    monkeypatch.setattr(order, "MOST_COMPARED", 0)
    with pytest.raises(Refused, match="class 0: its terminals are in too many boxes"):
        check(given, certificate)


def test_instances_that_have_no_certificates() -> None:
    """Tile memories, unknown ops, huge tensors and pairs of what is missing are refused."""
    for change, reason in (
        ({"tile_memory": {"tiles": 2}}, "do not support instances with a tile memory"),
        ({"ops": [op("x", "shuffle", [], shape=[2])]}, "unknown type of op 'shuffle'"),
        ({"ops": [op("x", "sink", [], shape=[2**40, 2**20])]}, "too many elements"),
        ({"ops": [op(x, "sink", [], shape=[2**55]) for x in "xyz"]}, "too many elements"),
        ({"ops": [op("x", "sink", [])]}, "it is incomplete"),
        ({"valued_pairs": [{"a": "x"}]}, "it is incomplete"),
    ):
        given, certificate = example()
        with pytest.raises(Refused, match=reason):
            check(given | change, certificate)


def test_empty_and_scalar_tensors() -> None:
    """A tensor without elements has no boxes, one without dimensions one; an op may give none."""
    ops = [
        op("e", "sink", [], shape=[0, 3]),
        op("x", "sink", [], shape=[]),
        op("s", "fixed_point", ["e"], shapes=[[2, 0], []]),
        op("g", "expand", ["x"], shape=[0]),
        op("p", "concat", ["g", "g"], axis=0),
        op("b", "barrier", ["p"], shape=[0]),
        op("n", "fixed_point", ["x"], shapes=[]),
    ]
    given = instance(ops, [("x", "s:1", 2), ("p", "b", 4)])
    certificate = stated(
        2,
        [group([0], [[[[], [0, 1], []]]], [], [[0, 0, 1]])],
        {"e": [], "x": [[[0, 0], [0, 1, 0], []]]},
        [[[[0, 0, -1, 0], [0, 0, 1], []]], []],
        unit=2,
        views={"g": [moved(left=[[[0, 0], [0, 0], []]])], "p": [moved(), moved()]},
        read=["p"],
    )
    assert check(given, certificate) == Verdict(Fraction(2), Fraction(2), 1, 1, 0, 0)
    assert optimum(given) == 2
    wrong = certificate | {"sinks": certificate["sinks"] | {"e": [[[-2, 0], [0, 0, 0], []]]}}
    with pytest.raises(Refused, match="sink 'e': its boxes must contain each element"):
        check(given, wrong)
