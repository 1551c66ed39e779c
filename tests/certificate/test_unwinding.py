"""Certificates of unwinding prove what they say, and nothing that is not so.

``tests/cases/certificates`` has instances with a certificate each.  A row of their ``cases`` is an
object of changes, and what comes of them: the verdict, or why the certificate is refused; and the
largest score, where the instance is changed.  A change names a place in the certificate, or in the
``instance``, by keys with blanks between; after a minus, what is there is removed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from layoutopt.certificate import order
from layoutopt.certificate.order import DEEPEST
from layoutopt.certificate.refused import Refused
from layoutopt.certificate.unwinding import check
from models.exhaustive import maximum
from models.statement import state

Instance = dict[str, Any]
Certificate = dict[str, Any]
Change = Callable[[Certificate], None]

CASES = Path(__file__).parents[1] / "cases/certificates"
COPIES, CROSSED = "two_copies_of_a_class", "two_barriers_that_read_each_other"


def case(name: str) -> dict[str, Any]:
    """Return a case: instance, certificate, and what comes of changes."""
    found: dict[str, Any] = json.loads((CASES / f"{name}.json").read_text())
    return found


def certified(name: str) -> tuple[Instance, Certificate]:
    """Return the instance and the certificate of a case."""
    given = case(name)
    return given["instance"], given["certificate"]


def put(*path: Any) -> Change:
    """Return what puts the last of its arguments where the others say; ``...`` removes."""
    *keys, last, value = path

    def change(certificate: Any) -> None:
        for key in keys:
            certificate = certificate[int(key) if isinstance(certificate, list) else key]
        place = int(last) if isinstance(certificate, list) else last
        if value is ...:
            del certificate[place]
        else:
            certificate[place] = value

    return change


def changed(name: str, changes: Mapping[str, Any]) -> tuple[Instance, Certificate]:
    """Return the instance and the certificate of a case with the changes of a row."""
    both = dict(zip(("instance", "certificate"), certified(name), strict=True))
    for path, value in changes.items():
        words = path.removeprefix("-").split()
        root = [] if words[0] == "instance" else ["certificate"]
        put(*root, *words, ... if path[0] == "-" else value)(both)
    return both["instance"], both["certificate"]


def refuse(given: Instance, certificate: Any, reason: str) -> None:
    """Expect that a certificate is refused in one short line with a reason."""
    with pytest.raises(Refused) as caught:
        check(given, certificate)
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("name", sorted(path.stem for path in CASES.glob("*.json")))
def test_certificates(name: str) -> None:
    """Changes come to what their rows say; the largest score is that of all layouts."""
    own = case(name)
    for key, ordered in (("optimum", True), ("optimum without order", False)):
        if key in own:
            assert maximum(state(own["instance"]), ordered) == own[key]
    for changes, expected, *most in (row for rows in own["cases"].values() for row in rows):
        given, certificate = changed(name, changes)
        if isinstance(expected, str):
            refuse(given, certificate, expected)
        else:
            assert list(check(given, certificate)) == [Fraction(number) for number in expected]
        if most:
            assert maximum(state(given)) == most[0]


@pytest.mark.parametrize("certificate", [None, [], "", 1, {}])
def test_what_is_no_certificate(certificate: Any) -> None:
    """Plain data of any other kind is refused."""
    refuse(certified(COPIES)[0], certificate, "")


def test_numbers_and_trees_without_end() -> None:
    """Values of thousands of digits are refused, and orders nested too deep."""
    huge = [0, 0, 10**4000]
    refuse(*changed(COPIES, {"classes 0 rewards 0": huge}), "the values are too large")
    given, certificate = certified(CROSSED)
    for _ in range(DEEPEST + 1):
        certificate["order"] = {"before": ["b", "c"], "yes": certificate["order"], "no": {}}
    refuse(given, certificate, "must be of objects, at most 200 deep")


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
    refuse(given, certificate, "class 0: its terminals are in too many boxes")


def test_too_many_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each class is bounded once in each leaf, so that leaves must not be too many."""
    given, certificate = certified(CROSSED)
    monkeypatch.setattr(order, "MOST_LEAVES", 4)
    assert check(given, certificate).bound == 5
    monkeypatch.setattr(order, "MOST_LEAVES", 3)
    refuse(given, certificate, "the tree of orders has too many leaves")
