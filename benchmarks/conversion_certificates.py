"""Certificates of conversion: how large they are, how long they take, what rests on a word.

``python -m benchmarks.conversion_certificates`` prints a table of the nine networks of the
``onnx`` wheel as channels-last exporters write them, and one of all questions asked of all nine.
"""

from __future__ import annotations

import argparse
import gzip
import json
import time
from dataclasses import dataclass
from pathlib import Path

import onnx

from benchmarks.measure import markdown
from benchmarks.networks import files
from layoutopt.certificate.conversion import verify
from layoutopt.certify.conversion import Asked, certify, check_certificate
from layoutopt.converting import convert
from layoutopt.io.certificate import certificate_bytes
from tests.onnx.exports import channels_last

HEAD = (
    *("network", "proved least", "ops", "modes", "left out", "KiB", "KiB packed"),
    *("convert s", "prove s", "check s", "with the network s", "unverified"),
)

QUESTIONS = {
    "count,bytes": Asked("count,bytes"),
    "bytes,count": Asked("bytes,count"),
    "count": Asked("count"),
    "bytes": Asked("bytes"),
    "inputs and outputs free": Asked("count,bytes", free_io=True),
    "backend nhwc": Asked("count,bytes", backend="nhwc"),
    "backend blocked": Asked("count,bytes", backend="blocked"),
}

QUESTIONS_HEAD = (
    *("asked of all nine", "optimal", "transforms", "KiB", "convert s", "prove s"),
    *("check s", "with the networks s", "unverified"),
)


@dataclass(frozen=True)
class Row:
    """What one certificate is, and took; seconds to convert, prove, check, and check with all."""

    optimal: bool
    score: str
    transforms: int
    ops: int
    modes: int
    left_out: int
    size: int
    packed: int
    seconds: tuple[float, float, float, float]
    unverified: int


def certificate(path: Path, asked: Asked) -> Row:
    """Convert one of the nine networks, write its certificate and check it."""
    model = channels_last(onnx.load(path))
    marks = [time.perf_counter()]
    result = convert(model, backend=asked.backend, objective=asked.objective, free_io=asked.free_io)
    marks.append(time.perf_counter())
    data = certificate_bytes(certify(result, asked))
    marks.append(time.perf_counter())
    graphs = json.loads(data)["graphs"]
    for graph in graphs:
        verify(graph["statement"], graph["claim"])
    marks.append(time.perf_counter())
    verdict = check_certificate(model, json.loads(data), result.model)
    marks.append(time.perf_counter())
    modes = [len(op["modes"]) for graph in graphs for op in graph["statement"]["ops"]]
    kept = [len(set(own)) for graph in graphs for own in graph["claim"]["instead"]]
    return Row(
        verdict.score == verdict.bound,
        ", ".join(f"{x:,}" for x in verdict.score),
        result.after.transforms,
        len(modes),
        sum(modes),
        sum(modes) - sum(kept),
        len(data),
        len(gzip.compress(data, mtime=0)),
        (marks[1] - marks[0], marks[2] - marks[1], marks[3] - marks[2], marks[4] - marks[3]),
        verdict.unverified,
    )


def main() -> None:
    """Print the tables."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    rows: list[list[str]] = []
    sums: list[list[str]] = []
    for question, asked in QUESTIONS.items():
        found = {name: certificate(path, asked) for name, path in files().items()}
        if not rows:
            rows = [
                [
                    *(name, one.score, f"{one.ops:,}", f"{one.modes:,}", f"{one.left_out:,}"),
                    *(f"{one.size / 1024:,.0f}", f"{one.packed / 1024:,.0f}"),
                    *(*(f"{s:.2f}" for s in one.seconds), f"{one.unverified}"),
                ]
                for name, one in found.items()
            ]
        every = list(found.values())
        seconds = [sum(own) for own in zip(*(one.seconds for one in every), strict=True)]
        sums.append(
            [
                *(question, f"{sum(one.optimal for one in every)} of {len(every)}"),
                *(f"{sum(one.transforms for one in every):,}",),
                *(f"{sum(one.size for one in every) / 1024:,.0f}",),
                *(*(f"{s:.1f}" for s in seconds), f"{sum(one.unverified for one in every)}"),
            ]
        )
    print(markdown(HEAD, rows))
    print()
    print(markdown(QUESTIONS_HEAD, sums))


if __name__ == "__main__":
    main()
