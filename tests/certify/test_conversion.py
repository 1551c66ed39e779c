"""Certificates of conversion: accepted as they are, refused for anything else."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import onnx
import pytest

from layoutopt.base.limits import limited
from layoutopt.certificate.conversion import verify
from layoutopt.certificate.refused import Refused
from layoutopt.certify import conversion
from layoutopt.certify.conversion import (
    Asked,
    certify,
    certify_graph,
    check_certificate,
)
from layoutopt.conversion.convert import convert_graph, state_graph
from layoutopt.conversion.cost_table import tally
from layoutopt.converting import convert
from layoutopt.io.certificate import certificate_bytes
from layoutopt.network import evidence as pairwise
from layoutopt.onnx.source import read_model
from tests.certificate.problems import apply, cases, refused
from tests.conversion.drawn import drawn
from tests.conversion.exhaustive import least
from tests.onnx.exports import channels_last, random_export
from tests.onnx.networks import network

OBJECTIVES = ["bytes", "count", "bytes,count", "count,bytes", "count,changed,bytes", "changed"]

COSTS = """
[transform]
us = 2.5
us_per_megabyte = 60
[[op]]
type = "Conv"
layouts = "NHWC,HWIO"
us = 4
[[op]]
type = "Conv"
layouts = "NCHW,OIHW"
us = 7
"""


@pytest.mark.parametrize("free_io", [False, True])
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_what_is_proved_of_random_graphs_is_the_least(objective: str, free_io: bool) -> None:
    """The bound that the checker accepts is what exhaustive search finds, with no word in it."""
    first = 1000 * OBJECTIVES.index(objective)
    for seed in range(first, first + 5):
        graph = drawn(seed, 4 + seed % 9, repeated=seed % 2 / 2)
        found = convert_graph(graph, objective=objective, free_io=free_io)
        made = json.loads(json.dumps(certify_graph(found)))
        assert not verify(made["statement"], made["claim"])
        optimum = list(least(graph, objective, free_io, found.objective) or ())
        assert made["claim"]["score"] == made["claim"]["bound"] == optimum
        again = state_graph(graph, objective=objective, free_io=free_io)
        assert again.document == made["statement"]
        raised = made["claim"] | {"bound": [*optimum[:-1], optimum[-1] + 1]}
        with pytest.raises(Refused, match="is claimed, but"):
            verify(made["statement"], raised)


def test_answers_of_heuristics_have_certificates_of_their_score() -> None:
    """A score that is not the least comes with no bound, or with one that the checker proves."""
    worse = 0
    for seed in range(30):
        found = convert_graph(drawn(seed, 14), objective="count,bytes", solver="forward")
        made = certify_graph(found)
        assert not verify(made["statement"], made["claim"])
        worse += made["claim"]["score"] > made["claim"]["bound"]
    assert worse > 5


ASKED: dict[str, Asked] = {
    "as it is written": Asked("count,bytes"),
    "bytes": Asked("bytes"),
    "changed": Asked("count,changed,bytes"),
    "free": Asked("bytes,count", free_io=True),
    "free and blocked": Asked("count,bytes", backend="blocked", free_io=True),
    "nhwc": Asked("count,changed,bytes", backend="nhwc"),
    "blocked": Asked("count,bytes", backend="blocked"),
    "layouts": Asked("bytes", layout="Conv=NHWC,HWIO"),
    "padded": Asked("count,bytes", layout="Conv=NCHW8c,OIHW8i8o;default=NCHW8c", padding=True),
    "priced": Asked("time,count", costs=COSTS),
}


def certified(model: onnx.ModelProto, asked: Asked) -> tuple[onnx.ModelProto, Any]:
    """Return a converted network and its certificate, as read from a file."""
    given = asked.arguments()
    result = convert(
        model,
        layout=asked.layout,
        padding=asked.padding,
        backend=asked.backend,
        costs=given["costs"],
        objective=asked.objective,
        free_io=asked.free_io,
    )
    return result.model, json.loads(certificate_bytes(certify(result, asked)))


@pytest.mark.parametrize("name", ASKED)
def test_certificates_are_held_against_networks(name: str) -> None:
    """What is asked is in the certificate; the network that came out costs what it says."""
    for seed in range(2):
        model = random_export(seed, 25)
        out, certificate = certified(model, ASKED[name])
        verdict = check_certificate(model, certificate, out)
        assert verdict.asked == ASKED[name]
        assert verdict.score == verdict.bound
        assert not verdict.unverified
        other = random_export(seed + 10, 25)
        with pytest.raises(Refused, match="graph 'export'"):
            check_certificate(other, certificate)


def test_bytes_of_padded_networks_are_not_compared() -> None:
    """In the file there is padding, which moves too, and counts as nothing in the score."""
    model = random_export(7, 40)
    out, certificate = certified(model, ASKED["padded"])
    moved = tally(read_model(out).graph).bytes
    assert check_certificate(model, certificate, out).score[1] < moved


def test_free_inputs_come_in_whole_axes() -> None:
    """An input that is wanted in blocks only is given as it is written, and transformed."""
    model = network("""g (float[1,16,4,4] x) => (float[1,16,4,4] y) {
        y = MaxPool<kernel_shape=[1,1]>(x)
    }""")
    asked = Asked("count", layout="MaxPool=NCHW8c", free_io=True)
    _, certificate = certified(model, asked)
    ops = {op["op"]: op["modes"] for op in certificate["graphs"][0]["statement"]["ops"]}
    blocks = "1/8x2,2,3,1/1x8"
    assert ops == {"free x": [["123"]], "MaxPool_0": [[blocks, blocks]], "wanted y": [["123"]]}
    assert check_certificate(model, certificate).score == (2,)


def test_parts_that_are_hard_are_proved_on_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where hardly any table is small, messages and branches prove the least of random graphs."""
    monkeypatch.setattr(pairwise, "TABLE", 8)
    kinds = ""
    for seed in range(15):
        made = certify_graph(convert_graph(drawn(seed, 14), objective="count,bytes"))
        assert not verify(made["statement"], made["claim"])
        kinds += json.dumps(made["claim"]["evidence"])
    assert kinds.count('"components"') > 3
    assert '"dual"' in kinds


def test_other_questions_are_other_statements() -> None:
    """A certificate for one question is refused if it says that another was asked."""
    model = random_export(1, 25)
    _, certificate = certified(model, ASKED["as it is written"])
    for asked in ("bytes", "free", "nhwc", "layouts", "priced"):
        certificate["asked"] = ASKED[asked].document()
        with pytest.raises(
            Refused, match=r"graph 'export': .* differs? from (that|those) of the network"
        ):
            check_certificate(model, certificate)


def test_a_network_with_more_transforms_is_not_the_one_that_came_out() -> None:
    """Transforms are counted in the file, so that the network that went in is refused."""
    model = channels_last(random_export(3, 20))
    out, certificate = certified(model, ASKED["as it is written"])
    check_certificate(model, certificate, out)
    with pytest.raises(Refused, match="transforms of the new network: count"):
        check_certificate(model, certificate, model)


SOFTMAX = """g (int64 n, bool c, float[1,4,4,3] x) => (float[1,4,4,3] y) {
    a = Transpose<perm=[0,3,1,2]>(x)
    b = Softmax<axis=1>(a)
    d = Transpose<perm=[0,2,3,1]>(b)
    y = Loop(n, c, d) < body = inner (int64 i, bool go, float[1,4,4,3] s)
        => (bool on, float[1,4,4,3] o) {
        on = Identity(go)
        t = Transpose<perm=[0,3,1,2]>(s)
        p = Softmax<axis=1>(t)
        r = Sqrt(p)
        o = Transpose<perm=[0,2,3,1]>(r)
    }>
}"""


def test_changed_ops_are_counted_in_statements_and_in_files() -> None:
    """Two ops compute along another axis, one of them in each round of a loop; both count once."""
    model = network(SOFTMAX)
    out, certificate = certified(model, Asked("count,changed,bytes"))
    assert check_certificate(model, certificate, out).score == (0, 2, 0)
    [graph] = certificate["graphs"]
    [place] = (n for n, op in enumerate(graph["statement"]["ops"]) if op["op"] == "Softmax_0")
    assert graph["statement"]["ops"][place]["costs"][:2] == [[0, 0, 0], [0, 1, 0]]
    for changes, reason in [
        ({f"graphs 0 statement ops {place} costs 1": [0, 0, 0]}, "op 'Softmax_0' differs"),
        ({f"-graphs 0 statement ops {place} costs": None}, "op 'Softmax_0' differs"),
        ({"graphs 0 claim score": [0, 1, 0]}, "the choice costs"),
        ({"graphs 0 claim bound": [0, 3, 0]}, "is claimed, but"),
        ({"asked objective": "count,bytes"}, "objectives differ"),
    ]:
        wrong = copy.deepcopy(certificate)
        apply(wrong, changes)
        with pytest.raises(Refused, match=reason):
            check_certificate(model, wrong)
    kept, certificate = certified(model, Asked("changed,count"))
    assert check_certificate(model, certificate, kept).score == (0, 2)
    with pytest.raises(Refused, match="ops of the new network: changed 2, not 0"):
        check_certificate(model, certificate, out)


@pytest.mark.parametrize(
    "text",
    [
        """g (float[1,5] x) => (float[] y) {
        t = Transpose<perm=[1,0]>(x) y = ReduceMax<axes=[0,1], keepdims=0>(t) }""",
        """g (float[3,1,4] x) => (int64[a,b] y) {
        t = Transpose<perm=[0,2,1]>(x) y = ArgMin<axis=1, keepdims=0>(t) }""",
    ],
)
def test_attributes_that_only_name_moved_axes_of_size_1_change_no_op(text: str) -> None:
    """The network that was written has as few changed ops as its certificate says."""
    model = network(text)
    out, certificate = certified(model, Asked("count,changed,bytes"))
    assert check_certificate(model, certificate, out).score == (0, 0, 0)


BODY = """g (int64 n, bool c, float[1,4,4,3] x) => (float[1,4,4,3] y) {
    y = Loop(n, c, x) < body = inner (int64 i, bool go, float[1,4,4,3] s)
        => (bool on, float[1,4,4,3] o) {
        on = Identity(go)
        a = Transpose<perm=[0,3,1,2]>(s)
        b = Transpose<perm=[0,2,3,1]>(a)
        r = Transpose<perm=[0,3,1,2]>(b)
        p = MaxPool<kernel_shape=[1,1]>(r)
        o = Transpose<perm=[0,2,3,1]>(p)
    }>
}"""


def test_networks_with_graphs_inside(tmp_path: Path) -> None:
    """Graphs inside nodes are stated with the network's own: outside, each transform runs once."""
    path = tmp_path / "network.onnx"
    model = network(BODY)
    path.write_bytes(model.SerializeToString())
    out, certificate = certified(model, ASKED["as it is written"])
    verdict = check_certificate(path, certificate, out)
    [graph] = certificate["graphs"]
    assert graph["claim"]["score"] == [2, 384]
    assert (verdict.score, verdict.bound) == ((2, 384), (2, 384))
    assert not verdict.unverified
    graph["claim"] |= {"bound": [0, 0], "evidence": {"kind": "word", "bound": 0}}
    assert check_certificate(path, certificate).unverified
    certificate["graphs"].append(graph)
    with pytest.raises(Refused, match="graphs must be a list of 1"):
        check_certificate(path, certificate)


def test_without_a_way_to_prove_it_is_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    """With no time for evidence and no room for tables the bound is told to be a word."""
    monkeypatch.setattr(pairwise, "TABLE", 1)
    model = random_export(3, 25)
    result = convert(model)
    certificate = certify(result, Asked("count,changed,bytes"), limited(0.0))
    verdict = check_certificate(model, certificate)
    assert verdict.score == verdict.bound == result.objective
    assert verdict.unverified == 1
    assert "unverified" in str(verdict)


def test_a_bound_that_evidence_does_not_reach_is_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    """What evidence proves less than the solver is not passed over."""
    monkeypatch.setattr(conversion, "evidence", lambda *_: {"kind": "word", "bound": 0})
    made = certify_graph(convert_graph(drawn(3, 14), objective="bytes"))
    assert made["claim"]["evidence"]["bound"] == -made["claim"]["bound"][0] < 0
    assert verify(made["statement"], made["claim"])


SMALL = """g (float[1,4,5,3] x) => (float[1,4,5,3] y) {
    t = Transpose<perm=[0,3,1,2]>(x)
    r = Relu(t)
    p = MaxPool<kernel_shape=[1,1]>(r)
    y = Transpose<perm=[0,2,3,1]>(p)
}"""


def test_wrong_certificates_are_refused_with_their_reason() -> None:
    """Whatever is changed in a certificate is refused in one line that names it."""
    model = network(SMALL)
    _, certificate = certified(model, ASKED["as it is written"])
    assert check_certificate(model, copy.deepcopy(certificate)).score == (2, 480)
    for changes, reason in cases("conversions"):
        wrong = copy.deepcopy(certificate)
        apply(wrong, changes)
        with refused(reason):
            check_certificate(model, wrong)
