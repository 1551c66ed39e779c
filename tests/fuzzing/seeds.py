"""Files that are as they should be, from which spoilt ones are made."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
from onnx import parser

from layoutopt.base.result import UnwindingResult
from layoutopt.bench.job import Outcome
from layoutopt.bench.store import writing
from layoutopt.generate.random_graphs import random_graph
from layoutopt.graphs.unwinding import Graph
from layoutopt.io.certificate import FORMAT, certificate_bytes
from layoutopt.io.instance import instance_bytes, read_instance
from layoutopt.io.result import result_bytes
from layoutopt.unwinding import unwind
from tests.bench.support import row
from tests.certificate.test_conversion import claim as network_claim
from tests.certificate.test_conversion import network as network_stated
from tests.onnx.exports import random_export
from tests.onnx.networks import network

__all__ = ["network_claim", "network_stated"]

INSTANCES = Path(__file__).parents[2] / "instances"

LARGEST = 6000
"""Bytes of a seed; larger files are slow to spoil."""


def instances() -> Iterator[bytes]:
    """Yield instances of all sets, and a few random ones."""
    for folder in ("figures", "tiles", "greedy", "random_views"):
        for path in sorted((INSTANCES / folder).glob("*.json")):
            if path.stat().st_size <= LARGEST:
                yield path.read_bytes()
    for seed in range(4):
        yield instance_bytes(random_graph(seed, barriers=seed > 1))


@cache
def graphs() -> tuple[Graph, ...]:
    """Return small graphs of each kind: without barriers, with them, and on tiles."""
    names = ("figures/call", "figures/chained_calls_barrier", "tiles/knapsack", "tiles/grains")
    return tuple(read_instance(INSTANCES / f"{name}.json") for name in names)


def results() -> Iterator[bytes]:
    """Yield the results of these graphs."""
    for graph in graphs():
        yield result_bytes(unwind(graph))


@cache
def any_instance() -> bytes:
    """Return any instance."""
    return instance_bytes(graphs()[0])


@cache
def any_network() -> bytes:
    """Return any network."""
    return next(networks())


@cache
def solved(graph: Graph) -> UnwindingResult:
    """Return the result for one of the small graphs, with its certificate."""
    return unwind(graph, certificate=True)


def certificates() -> Iterator[bytes]:
    """Yield the certificates of the small graphs that have one, and that of a small network."""
    for graph in graphs():
        found = solved(graph).certificate
        if found is not None:
            yield certificate_bytes(found)
    yield certificate_bytes({"format": FORMAT} | network_claim())


COSTS = b"""[transform]
us = 2.5
us_per_megabyte = 60
[[op]]
type = "Conv"
layouts = "NHWC,HWIO"
us = 4
us_per_megabyte = 15
[[op]]
name = "conv1"
layouts = "NCHW16c,OIHW16i16o"
"""

ATTRACTIONS = b"""[matmul]
lhs = 10
rhs = 2.5
[linear]
input = 1
"""

SUITE = b"""[suite]
name = "small"
instances = ["*.json"]
solvers = ["auto", "greedy0"]
time_limit = 2.5
seeds = "0..3"
repeats = 2
memory = "2G"
[[instances]]
files = ["a*.json"]
tiles = "ipu-mk2"
dims = { batch = 1 }
[[family]]
name = "random"
parameters = { elements = 40, negative = true }
seeds = [1, 2]
"""

MEMORY = b"""{"tiles": 16, "bytes_per_tile": 65536, "element_bytes": {"default": 2, "w": 4},
 "grain": 8, "exchange_bytes_per_cycle": 4}"""


def settings() -> Iterator[bytes]:
    """Yield costs, attractions, a suite and a tile memory."""
    yield from (COSTS, ATTRACTIONS, SUITE, MEMORY)


def outcome(solver: str = "auto", seed: int = 9) -> Outcome:
    """Return what a solve that went well tells a store."""
    return Outcome(row(solver=solver, seed=seed), "identity")


def stores() -> Iterator[bytes]:
    """Yield a store of some results."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store.sqlite"
        with writing(path) as store:
            for n, solver in enumerate(("auto", "greedy0", "mip")):
                store.add(outcome(solver, n))
        yield path.read_bytes()


LAYOUTS = (
    *("NCHW", "N[a=32]HWC", "NCHW16c", "OIHW16i16o", "*", "N*C", "HW[4h4w]", "NHWC[answer:q=1]"),
    *("aBcd16b", "nChw8c", "gOIhw4i16o4i", "undef", "__undef__", "any", "NC", "N"),
    *("{3,2,1,0}", "{1,0:T(8,128)}", "f32[2,3]{1,0}", "{3,2,1,0:T(8,128)(2,1)}", "{}", "{0}"),
    *("Conv=NHWC,HWIO;default=NHWC", "@conv1=NCHW16c", "0,2,3,1"),
)


def layouts() -> Iterator[bytes]:
    """Yield two layouts and a shape, a line each."""
    shapes = ("1,32,7,7", "2,3,4", "16,16", "8,128", "5", "")
    for n, layout in enumerate(LAYOUTS):
        yield f"{layout}\n{LAYOUTS[n * 7 % len(LAYOUTS)]}\n{shapes[n % len(shapes)]}".encode()
    yield b"NCHW16c\nNHWC\n1,20,7,7"


NETWORKS = (
    """g (float[2, 3] x, float[3, 4] w) => (float[2, 4] y) { h = MatMul(x, w) y = Relu(h) }""",
    """g (float[2, 6, 4] x) => (y) {
        s = Shape(x) i = Constant<value_int = 0>() n = Gather(s, i)
        a = Constant<value_ints = [0]>() m = Unsqueeze(n, a)
        r = Constant<value_ints = [-1]>() z = Concat<axis = 0>(m, r) y = Reshape(x, z) }""",
    """g (float[1, 8, 6, 4] x) => (y) {
        t = Transpose<perm = [0, 3, 1, 2]>(x) p = MaxPool<kernel_shape = [2, 2]>(t)
        u = Transpose<perm = [0, 2, 3, 1]>(p) c = Concat<axis = 3>(u, u)
        a, b = Split<axis = 3>(c) d = Add(a, b) y = Softmax<axis = -1>(d) }""",
    """g (float[2, 4, 4] x, bool c) => (y) {
        t = Transpose<perm = [0, 2, 1]>(x)
        z = If(c) <then_branch = a () => (float[2, 4, 4] p) { p = Identity(t) },
            else_branch = b () => (float[2, 4, 4] q) { q = Neg(t) }>
        y = Transpose<perm = [0, 2, 1]>(z) }""",
    """g (float[2, 4] x) => (y) {
        k = Constant<value = int64[2] {1, 0}>() e = Constant<value = int64[2] {2, 4}>()
        q = QuantizeLinear(x, s, o) d = DequantizeLinear(q, s, o)
        l = Slice(d, k, e) y = ReduceSum<keepdims = 0>(l) }""",
)


def networks() -> Iterator[bytes]:
    """Yield networks: those of the instances, of texts, and one as exporters write them."""
    for path in sorted((INSTANCES / "conversion").glob("*.onnx")):
        yield path.read_bytes()
    scales = {"s": np.array(0.5, np.float32), "o": np.array(0, np.uint8)}
    for text in NETWORKS:
        given = scales if "Quantize" in text else {}
        yield bytes(network(text, given).SerializeToString())
    own = "<ir_version: 8, opset_import: ['' : 17, 'own' : 1]>".replace("'", '"')
    text = f"""{own} g (float[2, 3] x) => (float[2, 3] y) {{ y = own.twice(x) }}
        <domain: "own", opset_import: ["" : 17]> twice (a) => (b) {{ b = Add(a, a) }}"""
    yield bytes(parser.parse_model(text).SerializeToString())
    for seed in range(2):
        yield bytes(random_export(seed, 8).SerializeToString())
