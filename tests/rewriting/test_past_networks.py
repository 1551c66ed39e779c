"""Small networks that were written wrong, or not at all, each once."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pytest
from onnx import checker

import layoutopt
from layoutopt.onnx.running import transposes
from tests.rewriting.networks import network


class Past(NamedTuple):
    """A network, and what is left of it: transforms."""

    text: str
    transforms: int
    constants: Mapping[str, Any] = MappingProxyType({})
    more: Mapping[str, Any] = MappingProxyType({})
    note: str = ""
    asked: Mapping[str, Any] = MappingProxyType({})


ROWS = {
    "a transposed weight": Past(
        "g (float[2,3] x) => (float[2,4] y) { wt = Transpose<perm=[1,0]>(w) y = MatMul(x, wt) }",
        0,
        {"w": (4, 3)},
    ),
    "a filled tensor of a known shape": Past(
        """g (float[2,3] x) => (float[2,3] y)
        { s = Shape(x) z = ConstantOfShape(s) y = Add(x, z) }""",
        0,
    ),
    "an output that is what a caller may replace": Past(
        """g (float[2,3] x, float[2,3] w) => (float[2,3] y, float[2,3] z)
        { t = Transpose<perm=[1,0]>(w) y = Transpose<perm=[1,0]>(t) z = Add(x, w) }""",
        0,
        {"w": (2, 3)},
    ),
    "a freed output without a shape": Past(
        "g (float[2,3,4] x) => (float[] y) { a = Transpose<perm=[2,0,1]>(x) y = Softmax(a) }",
        0,
        asked={"free_io": True},
    ),
    "a freed output of unknown sizes": Past(
        "g (float[2,n,4] x) => (float[a,b,c] y) { a = Transpose<perm=[2,0,1]>(x) y = Softmax(a) }",
        0,
        asked={"free_io": True},
    ),
    "Dropout that is known not to train": Past(
        """g (float[2,3] x) => (float[2,3] y)
        { a = Transpose(x) b = Dropout(a, r, t) y = Transpose(b) }""",
        0,
        {"r": np.float32(0.5), "t": np.array(False)},
    ),
    "Dropout in training": Past(
        """g (float[2,3] x) => (float[2,3] y)
        { a = Transpose(x) b = Dropout<seed=3>(a, r, t) y = Transpose(b) }""",
        2,
        {"r": np.float32(0.5), "t": np.array(True)},
        note="outputs that depend on random numbers are not compared: 'y'",
    ),
    "a batch normalised in training": Past(
        """g (float[1,2,3,4] x) => (float[1,2,3,4] y, float[2] m, float[2] v) {
        a = Transpose<perm=[0,2,3,1]>(x) u = Transpose<perm=[0,3,1,2]>(a)
        y, m, v = BatchNormalization<training_mode=1>(u, s, s, s, s) }""",
        0,
        {"s": np.ones(2, np.float32)},
    ),
    "Squeeze by axes known at run time": Past(
        """g (float[1,2,3,4] x, int64[1] n) => (float[a,b,c] y) {
        a = Transpose<perm=[0,2,3,1]>(x) b = Relu(a) s = Transpose<perm=[0,3,1,2]>(b)
        i = Sub(n, n) y = Squeeze(s, i) }""",
        0,
    ),
    "texts": Past(
        """g (string[2,3] x) => (string[2,3] y)
        { a = Transpose(x) b = Identity(a) y = Transpose(b) }""",
        0,
    ),
    "a sequence": Past(
        """g (seq(float[2,3]) s) => (float[2,3] y, seq(float[2,3]) t) {
        i = Constant<value_int=0>() e = SequenceAt(s, i) a = Transpose(e) b = Relu(a)
        y = Transpose(b) t = SequenceInsert(s, y) }""",
        0,
    ),
    "nothing": Past(
        """g (float[0,3] x) => (float[0,3] y)
        { a = Transpose(x) b = Relu(a) y = Transpose(b) }""",
        0,
    ),
    "a sequence of constants": Past(
        "g () => (seq(float[2,3]) y) { a = Mul(w, w) y = SequenceConstruct(a) }",
        0,
        {"w": (2, 3)},
    ),
    "a declared result that its operands contradict": Past(
        """g (float[2,3] x) => (float[2,5] y)
        { a = Transpose(x) b = Transpose(a) y = com.microsoft.Gelu(b) }""",
        0,
        more={"domains": ["com.microsoft"]},
    ),
    "a folded shape where constant nodes hold no whole numbers": Past(
        """g (int64[1,1,3] x) => (int64[1,1,3] y) { s = Shape(x) y = Reshape(x, s) }""",
        0,
        more={"opset": 7},
    ),
    "transposes of a result whose rank nobody tells": Past(
        """g (float[2,3,1,2] x, int32 k) => (float[a,b,c,d,e] y) {
            t = com.microsoft.ExpandDims(x, k)
            u = Transpose<perm=[0,4,3,1,2]>(t)
            y = Transpose<perm=[0,3,4,2,1]>(u) }""",
        0,
        more={"domains": ["com.microsoft"]},
    ),
    "equal sequences where Identity takes tensors only": Past(
        """g (float[2,1] x) => (seq(float[2]) y, seq(float[2]) z) {
            y = SplitToSequence<axis=1, keepdims=0>(x)
            z = SplitToSequence<axis=1, keepdims=0>(x) }""",
        0,
        more={"opset": 13},
    ),
    "a pool whose result has no known rank": Past(
        """g (float[4,2,2,1] x) => (float[n,m] y) {
            a, b = MaxPool<kernel_shape=[1,2], strides=[1,2]>(x)
            u = MaxUnpool<kernel_shape=[1,2]>(a, b)
            y = Flatten(u) }""",
        0,
        more={"opset": 13},
        asked={"backend": "canonical"},
    ),
    "a convolution behind an op that nothing is known of": Past(
        """g (float[3,2,2] x, int32 k) => (float[a,b,c,d] y) {
            t = com.microsoft.ExpandDims(x, k)
            y = Conv(t, w) }""",
        0,
        {"w": (2, 3, 1, 1)},
        more={"domains": ["com.microsoft"]},
        asked={"layout": "Conv=NHWC,HWIO"},
    ),
    "blocks where constant nodes hold no whole numbers": Past(
        "g (float[3,2,2,2] x) => (float[3,2,2,2] y) { y = Conv(x, w) }",
        2,
        {"w": (2, 2, 1, 1)},
        more={"opset": 8},
        asked={"layout": "Conv=NCHW2c,OIHW2i2o"},
    ),
    "a Reshape of what is declared open as an output": Past(
        """g (bool[2,1,4,3] x) => (bool[2,n,4,m] x, bool[4,2,1,3] y) {
            t = Reshape(x, s)
            u = Transpose<perm=[1,0,3,2]>(t)
            v = Transpose(u)
            y = Transpose<perm=[0,2,3,1]>(v) }""",
        1,
        {"s": np.array([0, 0, 4, 3])},
        more={"opset": 19},
    ),
    "a heuristic that would leave more than was given": Past(
        """g (float[4,n,4,m] x, float k) => (uint8[m,4,n,4] y, float[m,4,n,4] z) {
            t = Transpose(x)
            y = QuantizeLinear(t, k)
            u = QuantizeLinear(t, q)
            z = DequantizeLinear(u, q) }""",
        1,
        {"q": np.float32(0.25)},
        asked={"solver": "chains"},
    ),
}


@pytest.mark.parametrize("name", ROWS)
def test_networks_of_the_past(name: str) -> None:
    """It is valid, computes the same, and has as few transforms as are possible."""
    row = ROWS[name]
    model = network(row.text, row.constants, **row.more)
    if "without a shape" in name:
        model.graph.output[0].type.tensor_type.ClearField("shape")
    result = layoutopt.convert(model, check=True, **row.asked)
    assert not result.partial
    assert result.notes == ((row.note,) if row.note else ())
    checker.check_model(result.model, full_check=True)
    assert result.after.transforms == row.transforms
    assert transposes(result.model) <= row.transforms
    assert result.difference is not None
    assert result.difference <= 1e-5
