"""Networks whose ops run in other orders: what is written, and what it computes."""

from __future__ import annotations

import json

import pytest
from onnx import ModelProto, checker, parser

import layoutopt
from layoutopt.certify.conversion import Asked, certify, check_certificate, encoded
from layoutopt.onnx.running import largest_difference
from layoutopt.onnx.transposes import transposes
from tests.rewriting.networks import cases

HEAD = '<ir_version: 8, opset_import: ["" : {}, "com.microsoft" : 1]>\n'
IN, OUT = "Transpose<perm=[0,2,3,1]>", "Transpose<perm=[0,3,1,2]>"


def network(body: str, inputs: str, outputs: str, opset: int = 13) -> ModelProto:
    """Return a network in ONNX's text format; ``IN`` and ``OUT`` stand for transposes."""
    text = body.replace("IN(", f"{IN}(").replace("OUT(", f"{OUT}(")
    return parser.parse_model(f"{HEAD.format(opset)}g ({inputs}) => ({outputs}) {{ {text} }}")


CASES, PRODUCTS = cases("orders"), cases("products")


@pytest.mark.parametrize("name", PRODUCTS)
def test_products_take_transposed_operands(name: str) -> None:
    """They become Gemm where that removes a transpose, and FusedMatMul on request only."""
    case = PRODUCTS[name]
    types = converted(network(**case["given"]), case["transposes"], case["microsoft"])
    assert types == case["types"]


@pytest.mark.parametrize("name", CASES)
def test_ops_run_in_other_orders(name: str) -> None:
    """Transposes and gathers that are left are as many as expected, and outputs are the same."""
    case = CASES[name]
    types = converted(network(**case["given"]), case["transposes"])
    assert types.count("Gather") == case["gathers"]


def converted(given: ModelProto, left: int, microsoft: bool = False) -> list[str]:
    """Convert a network, hold it against what it was, and return the types of its ops."""
    checker.check_model(given)
    found = layoutopt.convert(given, objective="count,bytes", microsoft=microsoft)
    checker.check_model(found.model, full_check=True)
    assert transposes(found.model) == left
    assert not found.notes
    assert largest_difference(given, found.model) <= 1e-5
    asked = Asked("count,bytes", microsoft=microsoft)
    verdict = check_certificate(given, json.loads(encoded(certify(found, asked))), found.model)
    assert verdict.score == verdict.bound
    return [node.op_type for node in found.model.graph.node]


@pytest.mark.parametrize("layout", ["GridSample=NHWC,NHWC->NHWC", "GridSample=NHWC,N*HW->NHWC"])
def test_an_axis_without_a_letter_may_be_required_by_any(layout: str) -> None:
    """The coordinates of a GridSample are its one axis without a letter, wherever they stand."""
    body = "z = GridSample(x, k) t = IN(z) y = Relu(t)"
    given = network(body, "float[1,3,8,8] x, float[1,4,5,2] k", "float[a,b,c,d] y", 16)
    found = layoutopt.convert(given, layout=layout)
    assert not found.notes
    [op] = [op for op in found.conversions[0].graph.ops if op.type == "GridSample"]
    assert str(op.layouts) == layout.replace("GridSample=", "").replace("NHWC,NHWC", "NHWC,NHW*")
    assert largest_difference(given, found.model) <= 1e-5
