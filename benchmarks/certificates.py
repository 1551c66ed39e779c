"""Certificates of unwinding: how large they are, how long they take, what rests on a word.

``python -m benchmarks.certificates`` writes and checks one for each shipped instance without a
tile memory, and for whole training steps.  Each is checked in a process of its own, whose peak
memory is told.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.measure import markdown
from layoutopt.generate.families import generate
from layoutopt.graphs.unwinding import Graph
from layoutopt.io.certificate import certificate_bytes
from layoutopt.io.instance import instance_bytes, read_instance
from layoutopt.unwinding import unwind

HEAD = (
    *("instance", "status", "classes", "copies", "evidence", "KiB", "KiB packed"),
    *("solve s", "prove s", "check s", "check MiB", "unverified"),
)

SETS = ("figures", "greedy", "families", "training", "random_views", "hard")
NETWORKS = ("gpt2-small", "gpt2-xl", "llama-7b", "llama-70b", "resnet-50")

CHECK = """
import json, sys, time
from decimal import Decimal
from layoutopt.certificate.unwinding import check
begun = time.perf_counter()
instance = json.load(open(sys.argv[1]), parse_float=Decimal)
found = check(instance, json.load(open(sys.argv[2])))
[peak] = [line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")]
seconds = time.perf_counter() - begun
print(json.dumps([seconds, int(peak) / 1024, found.classes, found.copies, found.unverified]))
"""
"""What checks a certificate: seconds with both files read, memory (on Linux), what it says."""


def main() -> None:
    """Print a row for each instance."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("only", nargs="*", help="sets of instances, or networks; all by default")
    only = parser.parse_args().only or [*SETS, *NETWORKS]
    rows = []
    for name in only:
        for title, graph in _graphs(name):
            rows.append([title, *_row(graph)])
            print(title, file=sys.stderr)
    print(markdown(HEAD, rows))


def _graphs(name: str) -> list[tuple[str, Graph]]:
    if name in NETWORKS:
        return [(name, generate(name, {}))]
    files = sorted(Path("instances", name).glob("*.json*"))
    return [(f"{name}/{path.name.split('.')[0]}", read_instance(path)) for path in files]


def _row(graph: Graph) -> list[str]:
    """Return what a graph's certificate is, and takes."""
    begun = time.perf_counter()
    unwind(graph)
    solved = time.perf_counter() - begun
    result = unwind(graph, certificate=True)
    proved = time.perf_counter() - begun - 2 * solved
    if result.certificate is None:
        return [str(result.status), *[""] * 9, result.uncertified]
    data = certificate_bytes(result.certificate)
    seconds, peak, classes, copies, unverified = _checked(graph, data)
    kinds = Counter(_kinds(result.certificate))
    evidence = ", ".join(f"{kind} {count}" for kind, count in sorted(kinds.items()))
    sizes = [f"{len(raw) / 1024:,.0f}" for raw in (data, gzip.compress(data, mtime=0))]
    times = [f"{x:.2f}" for x in (solved, max(proved, 0.0), seconds)]
    counts = str(classes), f"{copies:,}"
    return [str(result.status), *counts, evidence, *sizes, *times, f"{peak:.0f}", str(unverified)]


def _checked(graph: Graph, data: bytes) -> Any:
    """Check a certificate in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        instance, certificate = (Path(folder, name) for name in ("instance", "certificate"))
        instance.write_bytes(instance_bytes(graph))
        certificate.write_bytes(data)
        command = [sys.executable, "-c", CHECK, str(instance), str(certificate)]
        done = subprocess.run(command, check=True, capture_output=True, env=os.environ)
    return json.loads(done.stdout)


def _kinds(found: Any) -> Iterator[str]:
    """Yield the kinds of evidence of all classes, and of all orders of barriers."""
    if isinstance(found, dict) and "kind" in found:
        yield found["kind"]
    elif isinstance(found, dict | list):
        for entry in found.values() if isinstance(found, dict) else found:
            yield from _kinds(entry)


if __name__ == "__main__":
    main()
