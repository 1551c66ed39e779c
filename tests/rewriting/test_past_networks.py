"""Small networks that were written wrong, or not at all, each once."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pytest
from onnx import checker
from onnx.reference import ReferenceEvaluator

import layoutopt
from layoutopt.onnx.protobuf import bodies
from layoutopt.onnx.running import run, transposes
from layoutopt.rewriting.names import Names, recapture
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
        note="'y' is declared with shape [2, 5]; [2, 3] follows from its node, and holds",
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
        2,
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
    "a result of unknown type in another order": Past(
        "g (float[2,2,3,2] x) => (float[a,b,3,c] y) { y = com.microsoft.FusedConv(x, w) }",
        2,
        {"w": (2, 2, 1, 1)},
        {"domains": ["com.microsoft"]},
        asked={"layout": "default=NHWC"},
    ),
    "a freed output that is a constant": Past(
        "g (float[4,3,1] x) => (float[a,b,c] w, float[4,2,1] y) { y = ConvTranspose(x, w) }",
        0,
        {"w": (3, 2, 1)},
        asked={"layout": "default=NHWC", "free_io": True},
    ),
    "a declared shape that is wrong, of a Slice that ONNX does not follow": Past(
        """g (float[2,4,1,2] x) => (float[2,4,2,1] y) { a = Abs(x)
        y = Slice<axes = [3,1,-2], ends = [9,9,1], starts = [-1,0,0]>(a) }""",
        0,
        more={"opset": 9},
        note="'y' is declared with shape [2, 4, 2, 1]; [2, 4, 1, 1] follows from its node, "
        "and holds",
        asked={"layout": "default=NHWC"},
    ),
    "an output that is a constant of open shape": Past(
        "g (float[4,3,1] x) => (float[a,b,c] w, float[4,6,1] y) { y = ConvTranspose(x, w) }",
        0,
        {"w": (3, 2, 1)},
        note="'y' is declared with shape [4, 6, 1]; [4, 2, 1] follows from its node, and holds",
        asked={"layout": "default=NHWC"},
    ),
    "an output that is an input, and a shape that is declared wrong": Past(
        """g (float[2,1] x) => (float[2,n] x, int64[2,2] y) {
        s = Shape(x) r = Reshape(s, s) y = Transpose<perm=[0,1]>(r) }""",
        0,
        note="'y' is declared with shape [2, 2]; [2, 1] follows from its node, and holds",
    ),
    "a Range of constant rows of one number": Past(
        """g (bool c, int64[2] x) => (int64[n] y) { s = Shape(x) y = If(c) <
        then_branch = a () => (int64[n] t) { t = Identity(s) },
        else_branch = b () => (int64[n] u) { u = Range(o, o, s) } > }""",
        0,
        {"o": np.array([1])},
    ),
    "a shape that a caller may replace, and that nobody reads any more": Past(
        """g (float[4,1,1,n] x, int64[3] s) => (float[1,4,2] y) {
        t = Transpose<perm=[2,1,0,3]>(x) y = Reshape(t, s) }""",
        0,
        {"s": np.array([1, 4, 2])},
    ),
    "a shape of an unknown op's result that does not hold": Past(
        """g (float[1,4,1,2] x) => (float[1,2,8] y, float[1,4,2,3] t) {
        t = com.microsoft.GridSample(x, w) y = Reshape(t, s) }""",
        0,
        {"w": (1, 2, 2, 2), "s": np.array([1, 2, 8])},
        {"domains": ["com.microsoft"]},
        note="declared shapes of results of com.microsoft::GridSample do not hold "
        "(Reshape 'Reshape_0': (1, 4, 2, 3) cannot have shape (1, 2, 8))",
    ),
    "a function that transposes": Past(
        """g (float[2,3,4] x) => (float[2,3,4] y)
        { a = Transpose<perm=[0,2,1]>(x) y = own.Back(a) }
        <domain: "own", opset_import: ["" : 17]> Back (p) => (q)
        { r = Relu(p) q = Transpose<perm=[0,2,1]>(r) }""",
        0,
        more={"domains": ["own"]},
    ),
    "a convolution of constants that is transposed": Past(
        """g (float[2,2,3] x) => (float[2,2,3] y)
        { a = Conv(v, w) b = Transpose(a) y = Add(x, b) }""",
        0,
        {"v": (3, 2, 2), "w": (2, 2, 1)},
    ),
    "a dequantised constant that is read as it is, too": Past(
        """g (float[2,2] x) => (float[2,2] y, float[2,2,2] z)
        { a = QuantizeLinear(w, k) b = DequantizeLinear(a, k) c = Det(b)
        z = Transpose(b) y = Add(x, c) }""",
        0,
        {"w": (2, 2, 2), "k": np.float32(0.25)},
    ),
    "reshapes through a shape that is known at run time": Past(
        """g (float[2,3,3] x, int64[1] k) => (float[2,3,3] y) {
            s = Sub(k, k) r = Sub(s, one)
            a = Transpose<perm=[0,2,1]>(x) b = Reshape(a, r) c = Reshape(b, back)
            y = Transpose<perm=[0,2,1]>(c) }""",
        0,
        {"one": np.array([1]), "back": np.array([2, 3, 3])},
    ),
    "a reshape to what only a declared output tells": Past(
        """g (float[3,2,3] x, int64[3] k) => (float[2,3,3] y) {
            s = Sub(k, k) r = Add(s, back)
            a = Transpose<perm=[0,2,1]>(x) b = Reshape(a, flat) c = Reshape(b, r)
            y = Transpose(c) }""",
        2,
        {"flat": np.array([9, 2]), "back": np.array([3, 3, 2])},
    ),
    "a reshape to what a declared output is wrong about": Past(
        """g (float[3,2,3] x, int64[3] k) => (float[3,2,3] y) {
            s = Sub(k, k) r = Add(s, back)
            a = Transpose<perm=[0,2,1]>(x) b = Reshape(a, flat) c = Reshape(b, r)
            y = Transpose(c) }""",
        2,
        {"flat": np.array([9, 2]), "back": np.array([3, 3, 2])},
    ),
    "sizes of 1 that only a declared output tells": Past(
        """g (float[2,2,2] x, int64[2] k) => (float[n,1] y, float[1,8] z) {
            s = Sub(k, k) r = Add(s, flat)
            a = Reshape(x, r) y = Transpose(a) z = Transpose(y) }""",
        1,
        {"flat": np.array([1, 8])},
    ),
    "the shape of a transposed result of unknown rank": Past(
        """g (float[4,2] x, int64 n) => (float[4,2] y) {
            a = Loop(three, "", x) <body = b (int64 i, bool c, float[4,2] v) =>
                (bool d, float[4,2] w) { d = Identity(c) w = Relu(v) }>
            b = Transpose<perm=[1,0]>(a) s = Shape(b)
            c = ConstantOfShape<value = float[1] {0.5}>(s) y = Transpose(c) }""",
        0,
        {"three": np.array(3)},
        asked={"solver": "chains"},
    ),
    "an output that is declared in two ways": Past(
        """g (float[2,3] x, int64[2] k) => (float[2,3] y) <float[b,c] y> {
            s = Sub(k, k) r = Add(s, given) a = Relu(x) y = Reshape(a, r) }""",
        0,
        {"given": np.array([2, 3])},
    ),
    "a Slice by axes whose number is not known": Past(
        """g (float[2,3,4] x, int64 n) => (float[a,b,c] y) {
            i = Loop(n, "", axes) <body = b (int64 j, bool c, int64[] v) =>
                (bool d, int64[] w) { d = Identity(c) w = Abs(v) }>
            t = Slice(x, zero, one, i) u = Transpose<perm=[1,0,2]>(t) y = Relu(u) }""",
        1,
        {"one": np.array([1]), "zero": np.array([0]), "axes": np.array([2])},
    ),
    "a Pad by axes whose number is not known": Past(
        """g (float[1,3,4] x, int64 n) => (float[a,b,c] y) {
            i = Loop(n, "", axes) <body = b (int64 j, bool c, int64[] v) =>
                (bool d, int64[] w) { d = Identity(c) w = Abs(v) }>
            t = Pad(x, pads, "", i) u = Transpose<perm=[1,0,2]>(t) y = Relu(u) }""",
        1,
        {"pads": np.array([0, 0, 0, 0, 0, 1]), "axes": np.array([2, 1, 0])},
        more={"opset": 18},
    ),
    "a pool of windows that are larger than what they slide over": Past(
        """g (float[2,3,2,1] x) => (float[2,3,2,1] y)
        { y = MaxPool<kernel_shape=[1,2], strides=[1,2]>(x) }""",
        0,
    ),
    "a constant output that is declared with another rank": Past(
        "g (float[2] x) => (int64[1] w, float[2] y) { y = Relu(x) }",
        0,
        {"w": np.array(2)},
        note="'w' is declared with shape [1]; [] follows from its node, and holds",
    ),
    "a Slice that goes backwards from before its start": Past(
        """g (bool c, float[1] x) => (float[1] y) {
            y = If(c) <then_branch = a () => (float[1] t) { t = Slice(x, k, m, zero, m) },
            else_branch = b () => (float[1] u) { u = Identity(x) }> }""",
        0,
        {"k": np.array([-3]), "m": np.array([-2]), "zero": np.array([0])},
    ),
    "axes of a Slice whose bounds of 32 bits are not known": Past(
        """g (int32[2] k, float[2,4] x) => (float[a,b] y) {
            s = Sub(k, k) t = Transpose(x) u = Slice(t, s, k, "", steps)
            y = Transpose(u) }""",
        0,
        {"steps": np.array([1, 1], np.int32)},
    ),
    "a constant without its axes of size 1": Past(
        """g (int64[1] k) => (float[1,1,2,2] y, float[a,2,1,1] z) {
            s = Sub(k, k) r = Add(s, given) y = Reshape(w, r) z = Transpose(y) }""",
        1,
        {"w": (1, 2, 1, 2), "given": np.array([1, 1, 2, 2])},
    ),
    "an output without a shape, behind an op that nothing is known of": Past(
        """g (uint8[3,1,2,1] x) => (uint8[] without_a_shape) <uint8[n,1,1,m] u> {
            t = com.microsoft.QLinearLeakyRelu(x, s, "", s, z)
            u = Transpose<perm=[0,3,1,2]>(t) without_a_shape = Reshape(u, r) }""",
        0,
        {"s": np.float32(0.25), "z": np.uint8(3), "r": np.array([3, 1, 2])},
        {"domains": ["com.microsoft"]},
    ),
    "the place of the largest of a scalar": Past(
        "g (float x) => (int64 y) { a = ArgMin(x) y = Neg(a) }", 0, more={"opset": 9}
    ),
    "a filled tensor of unknown shape that is read in two orders": Past(
        """g (float[1,4,2,2] x, int64 n) => (float[1,4,2,2] y, float[4,4,1] z)
            <float[1,4,2,2] a> {
            a = Loop(n, "", x) <body = b (int64 i, bool c, float[] v) =>
                (bool d, float[1,4,2,2] w) { d = Identity(c) w = Relu(v) }>
            s = Shape(a) f = ConstantOfShape(s) y = Relu(f)
            t = Transpose<perm=[1,3,2,0]>(f) z = Reshape(t, r) }""",
        0,
        {"r": np.array([4, 4, 1])},
    ),
    "a dequantised constant that is transposed in three ways": Past(
        """g (float[2] x) => (float[3,2,1,3] y, float[3,1,3,2] u, float[2] z) {
            a = DequantizeLinear(w, k) b = Transpose<perm=[0,3,1,2]>(a)
            y = Transpose(b) u = Transpose<perm=[0,1,3,2]>(b) z = Relu(x) }""",
        0,
        {"w": np.arange(18, dtype=np.int8).reshape(3, 2, 3, 1), "k": np.float32(0.5)},
    ),
    "a transpose of what is declared wrong, in number too": Past(
        """g (float[2,4,4] x, int64[1] k) => (float[n,m,1,k] y) <float[2,1,5,4] a> {
            s = Sub(k, k) r = Add(s, given) a = Reshape(x, r) y = Transpose<perm=[0,2,1,3]>(a) }""",
        1,
        {"given": np.array([2, 1, 4, 4])},
    ),
    "a pool that rounds up, behind which no runtime begins a window": Past(
        """g (float[3,1,3,4] x) => (float[3,4,2,1] y) {
            a = AveragePool<kernel_shape=[1,1], strides=[1,2], ceil_mode=1>(x)
            b = Resize(a, "", k) y = Transpose<perm=[0,2,3,1]>(b) }""",
        0,
        {"k": np.array([1, 1.5, 1.5, 1], np.float32)},
        more={"opset": 19},
    ),
    "a dilated pool whose pads keep sizes, of which runtimes make others": Past(
        """g (float[1,1,3,3] x) => (float[1,n,m,1] y) {
            a = MaxPool<kernel_shape=[2,2], dilations=[2,1], auto_pad="SAME_UPPER">(x)
            b = Relu(a) y = Transpose<perm=[0,2,3,1]>(b) }""",
        0,
    ),
    "a declared size that only a default contradicts, which a caller may replace": Past(
        """g (float[1,4] x, int64[1] start, int64[1] k) => (float[4] y) {
            a = Transpose(x) b = Reshape(a, k) y = Slice(b, start, zero) }""",
        0,
        {"start": np.array([-1]), "zero": np.array([0])},
    ),
    "a product of what has no elements": Past(
        """g (float[0,3,2] x) => (float[0,2,3] y) {
            a = com.microsoft.FusedMatMul(x, w) y = Transpose<perm=[0,2,1]>(a) }""",
        1,
        {"w": (2, 2)},
        {"domains": ["com.microsoft"]},
    ),
    "blocks of what has no elements": Past(
        "g (float[0,3,2] x) => (float[0,4,2] y) { y = Conv(x, w) }",
        0,
        {"w": (4, 3, 1)},
        more={"opset": 11},
        asked={"layout": "Conv=NCHW4c,OIHW4i4o", "padding": True},
    ),
    "a shape that is known at run time only, and declared wrong": Past(
        """g (float[2,9] x, int64[1] k) => (float[3,3,3] y, float[2,3,3] z) {
            s = Sub(k, k) r = Add(s, given) a = Reshape(x, r) y = Transpose(a)
            b = Transpose(a) c = Reshape(b, back) z = Transpose(c) }""",
        2,
        {"given": np.array([3, 2, 3]), "back": np.array([3, 3, 2])},
    ),
    "a reshape of what has one size open": Past(
        """g (float[2,4,n] x) => (float[2,4,2] y) {
            a = Transpose<perm=[0,2,1]>(x) b = Reshape(a, r) y = Transpose<perm=[0,2,1]>(b) }""",
        0,
        {"r": np.array([2, 2, 4])},
    ),
    "a reshape back to what was there, beside another reader": Past(
        """g (float[4,4] x) => (float[4,4] y, float[16] z, float[16] u) {
            a = Transpose(x) b = Reshape(a, flat) c = Reshape(b, square) y = Transpose(c)
            z = Round(b) d = Reshape(x, flat) e = Reshape(d, square) f = Transpose(e)
            u = Reshape(f, flat) }""",
        1,
        {"flat": np.array([16]), "square": np.array([4, 4])},
    ),
    "outputs that are the same transpose, one of which is read": Past(
        """g (float[4,2] x) => (float[2,4] y, float[2,4] z, float[4,2] u) {
            y = Transpose(x) z = Transpose(x) u = Transpose(z) }""",
        1,
    ),
    "a batch without elements, before a matrix": Past(
        """g (float[0,3,3] x) => (float[0,3,3] y, float[0,3,3] z) {
            y = Transpose<perm=[0,2,1]>(x) a = MatMul(x, w) z = Transpose<perm=[0,2,1]>(a) }""",
        2,
        {"w": (3, 3)},
    ),
    "sizes of an unknown op's result, behind transposes": Past(
        """g (float[1,4,1,2] x) => (float[4,1,2,2] y, float[1,4,2,2] z) {
            t = com.microsoft.GridSample(x, w) y = Transpose<perm=[1,0,2,3]>(t)
            a = Transpose<perm=[0,2,3,1]>(t) z = Transpose<perm=[0,3,1,2]>(a) }""",
        0,
        {"w": (1, 2, 2, 2)},
        {"domains": ["com.microsoft"]},
    ),
    "a declared output that others come to read": Past(
        """g (float[1,3,2] x, int64 n) => (float[1,2,5] y, float[1,2,4] z) {
            a = Loop(n, "", x) <body = b (int64 i, bool c, float[1,3,2] v) =>
                (bool d, float[1,3,2] o) { d = Identity(c) o = Relu(v) }>
            y = Transpose<perm=[0,2,1]>(a) b = Transpose<perm=[0,2,1]>(a)
            z = MatMul(b, w) }""",
        1,
        {"w": (3, 4)},
    ),
    "a convolution in blocks whose bias is named by nothing": Past(
        'g (float[1,2,2] x) => (float[1,3,1] y) { y = Conv(x, w, "") }',
        2,
        {"w": (3, 2, 2)},
        asked={"layout": "Conv=NCHW4c,OIHW4i4o", "padding": True},
    ),
    "a matrix of joined rows, times itself": Past(
        """g (float[2,2,2,1] x) => (float[2,2] y) {
            t = Transpose(x) a = Reshape(t, r) b = Transpose(a) y = MatMul(b, a) }""",
        0,
        {"r": np.array([4, 2])},
    ),
    "a dequantised constant that is reshaped and then transposed": Past(
        """g (int64[3] k) => (float[a,b,c] y, float[3,2,1,3] z) {
            d = DequantizeLinear(w, s) o = Sub(k, k) r = Add(o, given) y = Reshape(d, r)
            f = Reshape(d, flat) z = Transpose(f) }""",
        0,
        {
            "w": np.arange(18, dtype=np.int8).reshape(3, 2, 3, 1),
            "s": np.float32(0.5),
            "given": np.array([3, 2, 3]),
            "flat": np.array([3, 1, 2, 3]),
        },
    ),
    "a region of a constant": Past(
        "g (float[2] x) => (float[1,1,2,2] y, float[2] z) { "
        "a = RoiAlign(w, boxes, k) y = Transpose(a) z = Relu(x) }",
        0,
        {
            "w": (2, 2, 3, 1),
            "boxes": np.array([[0, 0, 1, 1], [0, 0, 2, 1]], np.float32),
            "k": np.array([0, 0]),
        },
    ),
    "a size that is declared as a name, and follows to be a number": Past(
        """g (float[2,2,2,2] x) => (float[1,2,2,2] y) <float[a,b,2,c] t> {
            u = Transpose(x) t = Slice<axes=[1,-1], starts=[1,-2], ends=[9,2]>(u)
            v = Reshape(t, r) y = Transpose(v) }""",
        0,
        {"r": np.array([2, 2, 2, 1])},
        more={"opset": 9},
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


def test_what_is_empty_at_run_time_is_reshaped_too() -> None:
    """No size is left open beside one that is 0 only then."""
    model = network(
        "g (float[n,1,m] x) => (float[n,m,1] y) { a = Relu(x) y = Transpose<perm=[0,2,1]>(a) }"
    )
    result = layoutopt.convert(model)
    assert result.after.transforms == 0
    assert run(result.model, {"x": np.zeros((0, 1, 3), np.float32)})["y"].shape == (0, 3, 1)


def test_the_number_of_sizes_is_told_where_a_rank_becomes_known() -> None:
    """ONNX would take them for none."""
    model = network(
        """g (float[n,4] x, int64[m] k) => (float[3,4] t, float[a,b] y) {
        r = Loop(three, "", x) <body = b (int64 i, bool c, float[3,4] v) =>
            (bool d, float[3,4] w) { d = Identity(c) w = Relu(v) }>
        t = Transpose<perm=[0,1]>(r) y = Resize(r, "", "", k) }""",
        {"three": np.array(3)},
    )
    result = layoutopt.convert(model)
    assert (result.notes, result.after.transforms) == ((), 0)
    checker.check_model(result.model, full_check=True)


def test_four_bits_are_transposed_as_no_runtime_reshapes_them() -> None:
    """Where only an axis of size 1 moves, too."""
    model = network(
        """g (bool c, float[2,1,4] x) => (float[1,2,4] y) {
        q = QuantizeLinear<output_dtype=22>(x, s) t = Transpose<perm=[1,0,2]>(q)
        y = If(c) <then_branch = a () => (float[1,2,4] u) { u = DequantizeLinear(t, s) },
        else_branch = b () => (float[1,2,4] v) {
        d = DequantizeLinear(t, s) v = Relu(d) } > }""",
        {"s": np.float32(0.5)},
        opset=21,
        ir=10,
    )
    result = layoutopt.convert(model, check=True)
    assert (result.difference, result.notes, result.after.transforms) == (0, (), 0)


def test_names_that_a_body_gives_to_something_of_its_own_are_not_mixed_up() -> None:
    """What is read there by another name is still what it was: -x less relu(x)."""
    model = network(
        """g (bool c, float[2,3] x) => (float[2,3] y) {
        t = Relu(x) h = Relu(x)
        y = If(c) <then_branch = a () => (float[2,3] u) { t = Neg(x) u = Sub(t, h) },
        else_branch = b () => (float[2,3] v) { v = Abs(t) } > }"""
    )
    new = layoutopt.convert(model).model
    inputs = {"c": np.array(True), "x": np.array([[1, 2, 3], [-1, -2, 0]], np.float32)}
    [found] = ReferenceEvaluator(new).run(None, inputs)
    assert found.tolist() == [[-2, -4, -6], [1, 2, 0]]
    assert run(new, inputs)["y"].tolist() == found.tolist()


def test_a_body_reads_what_it_captures_by_a_name_that_it_has_itself() -> None:
    """Its own tensor gets another name; no node has to copy what is captured, of whatever type."""
    model = network(
        """g (bool c, float[2,3] x) => (float[2,3] y) {
        y = If(c) <then_branch = a () => (float[2,3] u) { t = Neg(x) u = Sub(t, h) },
        else_branch = b () => (float[2,3] v) { v = Abs(h) } > }"""
    )
    node = model.graph.node[0]
    recapture(node, {"h": "t", "x": "x"}, Names(model))
    one, other = bodies(node)
    if one.output[0].name != "u":
        one, other = other, one
    assert [list(x.input) for x in one.node] == [["x"], ["t_own", "t"]]
    assert list(other.node[0].input) == ["t"]
