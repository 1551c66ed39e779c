"""Shared by the tests of batch runs."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from pathlib import Path

from layoutopt.bench.job import InstanceSource, Job, Outcome, Solve, identity
from layoutopt.bench.row import Row
from layoutopt.graphs.unwinding import Graph
from tests.support import install

BAD_SOLVERS = """
import ctypes, os, pathlib, sys, time
import numpy as np

def dies(problem, limits, start):
    print("last words", file=sys.stderr, flush=True)
    os._exit(3)

def aborts(problem, limits, start):
    os.abort()

def sleeps(problem, limits, start):
    pathlib.Path(os.environ["MARK"]).touch()
    time.sleep(600)

def hangs(problem, limits, start):
    if "MARK" in os.environ:
        pathlib.Path(os.environ["MARK"]).touch()
    ctypes.PyDLL(None).sleep(60)  # which keeps the interpreter to itself

def eats(problem, limits, start):
    kept = []
    while True:
        kept.append(np.ones(1 << 20))

def raises(problem, limits, start):
    raise ValueError("no idea")
"""
"""Solvers that a batch run must survive."""

BAD_NAMES = ("dies", "aborts", "sleeps", "hangs", "eats", "raises")


def install_bad_solvers(folder: Path) -> Path:
    """Install a package with bad solvers in a folder, and return this."""
    entries = "\n".join(f"{name} = bad_solvers:{name}" for name in BAD_NAMES)
    install(folder, "bad_solvers", f"[layoutopt.solvers]\n{entries}\n", BAD_SOLVERS)
    return folder


def row(**changes: object) -> Row:
    """Return a row of a solve that went well, but for some fields."""
    plain = Row(
        instance="figures/call",
        instance_hash="aa",
        solver="auto",
        parameters={"gap": 0.0, "time_limit": 10.0, "workers": 1},
        version="1.0",
        machine="box",
        status="optimal",
        score=Decimal(12),
        bound=Decimal(12),
        max_score=Decimal("20.50"),
        seconds=0.25,
        cpu_seconds=0.2,
        started="2026-01-02T03:04:05.678+00:00",
        stopped="finished",
        phases={"read": 0.01, "solve": 0.2},
        size={"ops": 3},
        peak_bytes=1 << 30,
        trace=((0.1, 3.0, None), (0.25, 12.0, 12.0)),
        pairs=(("a", "b", "1.5", 4, 2),),
    )
    return replace(plain, **changes)  # type: ignore[arg-type]


def failed(**changes: object) -> Row:
    """Return a row of a solve that failed, but for some fields."""
    blank: dict[str, object] = {"status": "failed", "error": "the worker was ended by SIGABRT"}
    blank |= {"score": None, "bound": None, "max_score": None, "stopped": "", "trace": ()}
    return row(**(blank | changes))


def outcome(row: Row, identity: str = "source", log: str = "") -> Outcome:
    """Return a row as a worker sends it."""
    return Outcome(row, identity, log)


def job_of(path: Path, *solves: Solve, grace: float = 5.0) -> Job:
    """Return the job of solves of a file."""
    source = InstanceSource("given", str(path))
    return Job(source, identity(source, "7"), solves, grace, "7", "box")


def pair_graph(name: str = "pair", value: int = 3) -> Graph:
    """Return a graph of one sink that is drawn to two sources; the optimum is 2 * value."""
    graph = Graph(name, "two sources")
    x = graph.sink((2,), name="x")
    graph.valued_pair(x, graph.source((2,), name="s"), value)
    graph.valued_pair(x, graph.source((2,), name="t"), value - 1)
    return graph
