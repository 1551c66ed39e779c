"""Networks whose ops run in other orders: what is written, and what it computes."""

from __future__ import annotations

import json

import pytest
from onnx import ModelProto, checker, parser

import layoutopt
from layoutopt.certify.conversion import Asked, certify, check_certificate, encoded
from layoutopt.onnx.running import largest_difference, transposes

HEAD = '<ir_version: 8, opset_import: ["" : {}, "com.microsoft" : 1]>\n'
IN, OUT = "Transpose<perm=[0,2,3,1]>", "Transpose<perm=[0,3,1,2]>"


def network(body: str, inputs: str, outputs: str, opset: int) -> ModelProto:
    """Return a network in ONNX's text format; ``IN`` and ``OUT`` stand for transposes."""
    text = body.replace("IN(", f"{IN}(").replace("OUT(", f"{OUT}(")
    return parser.parse_model(f"{HEAD.format(opset)}g ({inputs}) => ({outputs}) {{ {text} }}")


X, Y = "float[N,3,H,5] x", "float[a,b,c,d] y"

CASES: dict[str, tuple[str, str, str, int, int, int]] = {
    "shape and what it fills": (
        "t = IN(x) s = Shape(t) z = ConstantOfShape(s) w = Add(t, z) y = OUT(w)",
        X,
        f"int64[4] s, {Y}",
        13,
        0,
        1,
    ),
    "part of a shape": (
        "t = IN(x) s = Shape<start=1,end=2>(t) r = Relu(t) y = OUT(r)",
        X,
        f"int64[1] s, {Y}",
        15,
        0,
        0,
    ),
    "an open entry of a shape": (
        "t = IN(x) i = Constant<value_int=-4>() s = Shape(t) u = Gather(s, i) y = OUT(t)",
        X,
        f"int64 u, {Y}",
        13,
        0,
        1,
    ),
    "a known entry of a shape": (
        "t = IN(x) i = Constant<value_int=-1>() s = Shape(t) u = Gather(s, i) y = OUT(t)",
        X,
        f"int64 u, {Y}",
        13,
        0,
        0,
    ),
    "several entries of a shape": (
        "t = IN(x) i = Constant<value_ints=[3,0]>() s = Shape(t) u = Gather(s, i) y = OUT(t)",
        X,
        f"int64[2] u, {Y}",
        13,
        0,
        1,
    ),
    "a shape in the first order": (
        "t = IN(x) s = Shape(t) e = Constant<value_float=3.0>() z = Expand(e, s) "
        "w = Add(t, z) y = OUT(w)",
        X,
        Y,
        13,
        0,
        0,
    ),
    "one Gather for two readers": (
        "t = IN(x) w = Tile(t, n) v = Expand(w, n) y = OUT(v)",
        f"{X}, int64[4] n",
        Y,
        13,
        0,
        1,
    ),
    "pads at run time": ("t = IN(x) w = Pad(t, n) y = OUT(w)", f"{X}, int64[8] n", Y, 11, 0, 1),
    "slice of unsorted axes": (
        "t = IN(x) z = Slice<axes=[3,1], starts=[1,0], ends=[5,2]>(t) y = OUT(z)",
        X,
        Y,
        9,
        0,
        0,
    ),
    "slice behind another domain": (
        "t = IN(x) q = com.microsoft.Gelu(t) s = Constant<value_ints=[1,0]>() "
        "e = Constant<value_ints=[5,2]>() z = Slice(q, s, e) y = OUT(z)",
        "float[2,3,4,5] x",
        Y,
        17,
        0,
        0,
    ),
    "slice behind an op of unknown rank": (
        "q = com.microsoft.ExpandDims(x, k) s = Constant<value_ints=[1,0]>() "
        "e = Constant<value_ints=[5,2]>() z = Slice(q, s, e) t = IN(z) r = Relu(t) y = OUT(r)",
        "float[3,4,5] x, int32 k",
        Y,
        17,
        0,
        0,
    ),
    "slice behind a normalisation": (
        "q = GroupNormalization<num_groups=1>(x, k, k) s = Constant<value_ints=[1,0]>() "
        "e = Constant<value_ints=[5,2]>() z = Slice(q, s, e) t = IN(z) r = Relu(t) y = OUT(r)",
        "float[2,4,4,5] x, float[4] k",
        Y,
        21,
        0,
        0,
    ),
}


KEYS = "float[B,3,8,4] x, float[B,3,8,4] k"

PRODUCTS: dict[str, tuple[str, str, str, int, list[str], bool]] = {
    "two matrices": (
        "t = Transpose<perm=[1,0]>(k) y = MatMul(x, t)",
        "float[8,4] x, float[8,4] k",
        "float[a,b] y",
        0,
        ["Gemm"],
        False,
    ),
    "matrices that need no transpose": (
        "k = Constant<value=float[2,2]{1,2,3,4}>() r = Relu(x) u = MatMul(r, k) y = MatMul(u, v)",
        "float[8,2] x, float[2,3] v",
        "float[a,b] y",
        0,
        ["Constant", "Relu", "MatMul", "MatMul"],
        False,
    ),
    "matrices of whole numbers": (
        "t = Transpose<perm=[1,0]>(k) y = MatMul(x, t)",
        "int64[8,4] x, int64[8,4] k",
        "int64[a,b] y",
        1,
        ["Transpose", "MatMul"],
        False,
    ),
    "both operands and the result": (
        "t = Transpose<perm=[0,2,1]>(x) u = Transpose<perm=[0,2,1]>(k) z = MatMul(t, u) "
        "y = Transpose<perm=[0,2,1]>(z)",
        "float[2,4,5] x, float[2,3,4] k",
        "float[a,b,c] y",
        0,
        ["MatMul"],
        False,
    ),
    "a bias behind them": (
        "t = Transpose<perm=[1,0]>(x) u = Gemm<alpha=2.0, beta=3.0>(t, k, c) "
        "r = Relu(u) y = Transpose<perm=[1,0]>(r)",
        "float[4,5] x, float[4,3] k, float[3] c",
        "float[a,b] y",
        0,
        ["Reshape", "Gemm", "Relu"],
        False,
    ),
    "keys of attention": (
        "t = Transpose<perm=[0,1,3,2]>(k) y = MatMul(x, t)",
        KEYS,
        "float[a,b,c,d] y",
        1,
        ["Transpose", "MatMul"],
        False,
    ),
    "keys of attention in onnxruntime": (
        "t = Transpose<perm=[0,1,3,2]>(k) y = MatMul(x, t)",
        KEYS,
        "float[a,b,c,d] y",
        0,
        ["FusedMatMul"],
        True,
    ),
    "heads in onnxruntime": (
        "u = Transpose<perm=[1,2,0,3]>(x) t = Transpose<perm=[1,2,3,0]>(k) y = MatMul(u, t)",
        "float[9,2,3,8] x, float[9,2,3,8] k",
        "float[a,b,c,d] y",
        0,
        ["FusedMatMul"],
        True,
    ),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_products_take_transposed_operands(name: str) -> None:
    """They become Gemm where that removes a transpose, and FusedMatMul on request only."""
    body, inputs, outputs, left, types, microsoft = PRODUCTS[name]
    given = network(body, inputs, outputs, 13)
    converted(given, left, types, microsoft)


@pytest.mark.parametrize("name", CASES)
def test_ops_run_in_other_orders(name: str) -> None:
    """Transposes and gathers that are left are as many as expected, and outputs are the same."""
    body, inputs, outputs, opset, left, gathers = CASES[name]
    types = converted(network(body, inputs, outputs, opset), left)
    assert types.count("Gather") == gathers


def converted(
    given: ModelProto, left: int, types: list[str] | None = None, microsoft: bool = False
) -> list[str]:
    """Convert a network, hold it against what it was, and return the types of its ops."""
    checker.check_model(given)
    found = layoutopt.convert(given, objective="count,bytes", microsoft=microsoft)
    checker.check_model(found.model, full_check=True)
    assert transposes(found.model) == left
    assert not found.notes
    kinds = [node.op_type for node in found.model.graph.node]
    assert types is None or kinds == types
    assert largest_difference(given, found.model) <= 1e-5
    asked = Asked("count,bytes", microsoft=microsoft)
    verdict = check_certificate(given, json.loads(encoded(certify(found, asked))), found.model)
    assert verdict.score == verdict.bound
    return kinds


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
