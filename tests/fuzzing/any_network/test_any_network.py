"""Networks of any kind are drawn; conversions that break a promise are found and made small."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from onnx import ModelProto

import layoutopt
from layoutopt.base.errors import InputError
from tests.fuzzing.any_network.__main__ import try_networks
from tests.fuzzing.any_network.draw import Case, draw_case
from tests.fuzzing.any_network.promises import Given, failures
from tests.fuzzing.any_network.reduce import reduce
from tests.fuzzing.any_network.scope import info
from tests.onnx.networks import network, random_array

TEXT = """g (float[2,3] x) => (float[3,2] y, float[2,3] z) {
    a = Relu(x)
    b = Exp(a)
    c = Sub(b, w)
    z = Neg(c)
    y = Transpose<perm=[1,0]>(c) }"""


def case() -> Case:
    """Return a small network with numbers for its input."""
    return Case(network(TEXT, {"w": (2, 3)}), {"x": random_array((2, 3))})


def test_a_seed_is_a_network() -> None:
    """Equal seeds draw equally; hardly a network does not run, and together they hold much."""
    assert draw_case(7).model == draw_case(7).model
    assert Given.of(Case(case().model, {})) is None  # it has no numbers
    ran, ops, versions = 0, set(), set()
    for seed in range(60):
        given = Given.of(draw_case(seed))
        if given is not None:
            ran += 1
            ops |= {(n.domain, n.op_type) for n in given.case.model.graph.node}
            versions |= {x.version for x in given.case.model.opset_import if not x.domain}
    assert ran > 50
    assert len(ops) > 80
    assert len(versions) > 12


def test_some_networks_keep_all_promises() -> None:
    """These are converted plainly and in one other way each; the command tries many more."""
    tally = try_networks(range(30), 1)
    assert tally.run > 26
    assert [(seed, failure) for seed, _, failure in tally.failed] == []


def broken(model: ModelProto, fault: str) -> None:
    """Spoil a network in one way."""
    if fault == "raises":
        raise InputError("Exp 'b': 3 axes")
    if fault == "runs":
        model.graph.node[0].input[0] = "nothing"
    elif fault == "gives the same":
        next(n for n in model.graph.node if n.op_type == "Sub").op_type = "Add"
    elif fault == "passes the checker":
        model.graph.node[0].name = "n"
        model.graph.node[0].op_type = "Unknown"
    elif fault == "has no more transposes":
        model.graph.output.append(info("more", random_array((2, 3))))
        for reads, makes in (("x", "turned"), ("turned", "more")):
            model.graph.node.add(op_type="Transpose", input=[reads], output=[makes])


FAULTS = [
    *("raises", "runs", "gives the same", "passes the checker", "has no more transposes"),
]


@pytest.mark.parametrize("fault", FAULTS)
def test_broken_promises_are_found_and_made_small(
    fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each fault is found, and what has no part in it is taken away.

    Of what is raised, names and numbers are left out.
    """
    real = layoutopt.convert

    def spoilt(model: ModelProto, **options: Any) -> Any:
        result = real(model, **options)
        new = ModelProto()
        new.CopyFrom(result.model)
        broken(new, fault)
        return replace(result, model=new)

    given = Given.of(case())
    assert given is not None
    assert failures(given, "default") == []
    monkeypatch.setattr(layoutopt, "convert", spoilt)
    [found] = failures(given, "default")
    assert found.promise in (fault, "passes the checker")
    assert found.kind == "InputError: Exp _: # axes #" or fault != "raises"
    small, said = reduce(case(), found)
    assert said.signature == found.signature
    kinds = Counter(n.op_type for n in small.model.graph.node)
    assert len(small.model.graph.output) == 1
    assert kinds.total() < 5
