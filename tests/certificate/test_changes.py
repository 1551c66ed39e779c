"""Whatever is changed in a certificate, what is accepted is true."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from math import prod
from typing import Any

import pytest

from layoutopt.certificate.refused import Refused
from layoutopt.certificate.sums import CertifiedBox
from layoutopt.certificate.unwinding import Checker
from layoutopt.io.certificate import certificate_bytes, document_of
from layoutopt.unwinding import unwind
from models.exhaustive import maximum
from models.statement import Statement, added, cyclic, score, state
from tests.certificate.test_sums import members
from tests.certificate.test_unwinding import COPIES, CROSSED, Certificate, Instance, certified
from tests.certify.test_unwinding import drawn as random_small
from tests.certify.test_unwinding import lifted

UNTIED = [-2, 0]


def drawn(seed: int) -> tuple[Instance, Certificate]:
    """Return a random graph and its certificate, made with or without elements."""
    graph = random_small(seed, (4, 6, 12))
    found = unwind(graph, certificate=True).certificate if seed % 4 < 2 else lifted(graph)[0]
    assert found is not None
    return document_of(graph), json.loads(certificate_bytes(found))


def choice(checker: Checker, stated: Statement) -> dict[int, Any]:
    """Return where elements lie that are in a class; all others are alone."""
    number = {element: e for e, element in enumerate(stated.elements)}
    place = {where: k for k, where in enumerate(stated.locations)}
    everywhere: list[Any] = []
    for name, shape in checker.shapes.items():
        op, _, o = name.partition(":")
        everywhere += [(op, int(o or 0), i) for i in range(prod(shape))]
    everywhere += [value for _, value in checker.pool]
    found: dict[int, Any] = {e: ("alone", e) for e in number.values()}
    for name, op in checker.ops.items():
        for tag, start, loops in checker.certificate["sinks"][name] if op["type"] == "sink" else ():
            for _, where, at in (
                members(CertifiedBox((), tuple(start), loops)) if tag != UNTIED else ()
            ):
                location = everywhere[where]
                found[number[name, 0, at]] = place.get(location, location)
    return found


def outcome(given: Instance, certificate: Certificate, stated: Statement, most: Any) -> bool:
    """Return whether a certificate is accepted, but for its claims; it is true if so."""
    try:
        checker = Checker(given, certificate)
        verdict = checker.verdict()
    except (Refused, KeyError):
        return False
    where = choice(checker, stated)
    assert verdict.score == score(stated, where)
    taken = (added(stated, e, k) for e, k in where.items() if isinstance(k, int))
    assert not cyclic(stated.arcs.union(*taken))
    assert verdict.bound >= most or verdict.unverified
    return True


def spots(certificate: Any) -> Iterator[tuple[Any, Any]]:
    """Yield all that is in plain data: what holds it, and its key there."""
    todo = [certificate]
    while todo:
        own = todo.pop()
        for key in own if isinstance(own, dict) else range(len(own)):
            yield own, key
            if isinstance(own[key], dict | list):
                todo.append(own[key])


def change(draw: random.Random, certificate: Certificate) -> None:
    """Change a number, or a list; or put one thing in the place of another."""
    every = list(spots({k: v for k, v in certificate.items() if k not in ("score", "bound")}))
    own, key = draw.choice(every)
    luck = draw.random()
    if type(own[key]) is int and luck < 0.6:
        own[key] += draw.choice([-1, 1])
    elif isinstance(own, list) and luck < 0.5:
        own.insert(key, copy.deepcopy(own[key]))
    elif isinstance(own, list) and luck < 0.8:
        del own[key]
    else:
        other, there = draw.choice(every)
        own[key] = copy.deepcopy(other[there])


CASES: dict[str, Any] = {
    name: lambda file=file: certified(file)
    for name, file in (("example", COPIES), ("crossed", CROSSED))
} | {f"random {seed}": lambda seed=seed: drawn(seed) for seed in range(20)}


@pytest.mark.parametrize("name", CASES)
def test_what_is_accepted_is_true(name: str) -> None:
    """Layouts earn what is said, barriers allow them, and no layouts earn more than the bound."""
    given, certificate = CASES[name]()
    stated = state(given)
    most = maximum(stated)
    assert outcome(given, certificate, stated, most)
    draw = random.Random(name)
    for _ in range(90):
        changed = copy.deepcopy(certificate)
        for _ in range(draw.choice([1, 1, 2])):
            change(draw, changed)
        outcome(given, changed, stated, most)
