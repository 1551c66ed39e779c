"""Certificates of unwinding prove what they say, and nothing that is not so.

``tests/cases/certificates`` has instances with a certificate each.  A row of their ``cases`` is an
object of changes, and what comes of them: the verdict, or why the certificate is refused; and the
largest score, where the instance is changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import pytest

from layoutopt.certificate import order
from layoutopt.certificate.order import DEEPEST
from layoutopt.certificate.unwinding import check
from models.exhaustive import maximum
from models.statement import state
from tests.certificate.problems import CASES, apply, cases, refused

Instance = dict[str, Any]
Certificate = dict[str, Any]

COPIES, CROSSED = "two_copies_of_a_class", "two_barriers_that_read_each_other"


def certified(name: str) -> tuple[Instance, Certificate]:
    """Return the instance and the certificate of a case."""
    given = cases(f"certificates/{name}")
    return given["instance"], given["certificate"]


def changed(name: str, changes: Mapping[str, Any]) -> tuple[Instance, Certificate]:
    """Return the instance and the certificate of a case with the changes of a row."""
    both = dict(zip(("instance", "certificate"), certified(name), strict=True))
    apply(both, changes, "certificate")
    return both["instance"], both["certificate"]


@pytest.mark.parametrize(
    "name", sorted(path.stem for path in (CASES / "certificates").glob("*.json"))
)
def test_certificates(name: str) -> None:
    """Changes come to what their rows say; the largest score is that of all layouts."""
    own = cases(f"certificates/{name}")
    for key, ordered in (("optimum", True), ("optimum without order", False)):
        if key in own:
            assert maximum(state(own["instance"]), ordered) == own[key]
    for changes, expected, *most in (row for rows in own["cases"].values() for row in rows):
        given, certificate = changed(name, changes)
        if isinstance(expected, str):
            with refused(expected):
                check(given, certificate)
        else:
            assert list(check(given, certificate)) == [Fraction(number) for number in expected]
        if most:
            assert maximum(state(given)) == most[0]


@pytest.mark.parametrize("certificate", [None, [], "", 1, {}])
def test_what_is_no_certificate(certificate: Any) -> None:
    """Plain data of any other kind is refused."""
    with refused():
        check(certified(COPIES)[0], certificate)


def test_numbers_and_trees_without_end() -> None:
    """Values of thousands of digits are refused, and orders nested too deep."""
    huge = [0, 0, 10**4000]
    with refused("the values are too large"):
        check(*changed(COPIES, {"classes 0 rewards 0": huge}))
    given, certificate = certified(CROSSED)
    for _ in range(DEEPEST + 1):
        certificate["order"] = {"before": ["b", "c"], "yes": certificate["order"], "no": {}}
    with refused("must be of objects, at most 200 deep"):
        check(given, certificate)


def test_forks_on_barriers_that_there_are_not() -> None:
    """Made-up barriers, and a barrier before itself, say nothing about the others."""
    given, certificate = certified(CROSSED)
    tree = certificate["order"]
    for pair in (["b", "z"], ["z", ""], ["", "b"], ["b", "b"], [7, None], ["x", "c"]):
        for inner, bound in ((tree, 5), (tree["yes"], 9)):
            outer = {"order": {"before": pair, "yes": inner, "no": inner}, "bound": bound}
            assert check(given, certificate | outer).bound == bound


def test_too_many_boxes_to_compare(monkeypatch: pytest.MonkeyPatch) -> None:
    """Terminals in so many boxes that comparing them takes too long are refused."""
    given, certificate = certified(COPIES)
    own = certificate["classes"][0]
    own["terminals"][0] = [[[], [0, 7], [[2, [1, -1]]]]]
    given["valued_pairs"][1]["value"] = 0
    own["rewards"].pop(0)
    own["terminals"].append([[[], [0, 6], [[2, [1, 1]]]]])
    own["evidence"] = {"kind": "exhaustive"}
    assert check(given, certificate).bound == 27
    monkeypatch.setattr(order, "MOST_COMPARED", 0)
    with refused("class 0: its terminals are in too many boxes"):
        check(given, certificate)


def test_too_many_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each class is bounded once in each leaf, so that leaves must not be too many."""
    given, certificate = certified(CROSSED)
    monkeypatch.setattr(order, "MOST_LEAVES", 4)
    assert check(given, certificate).bound == 5
    monkeypatch.setattr(order, "MOST_LEAVES", 3)
    with refused("the tree of orders has too many leaves"):
        check(given, certificate)
