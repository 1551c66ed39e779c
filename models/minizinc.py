"""The MiniZinc model of an instance, solved by Gecode."""

from __future__ import annotations

import json
import subprocess
from fractions import Fraction
from math import gcd, lcm
from pathlib import Path
from typing import Any

from models.statement import Statement

MODEL = Path(__file__).with_name("unwinding.mzn")


def maximum(given: Statement) -> Fraction:
    """Return the largest score, as the ``minizinc`` command finds it.

    Raises
    ------
    RuntimeError
        If the command does not prove an optimum.
    """
    table, scale = data(given)
    command = ["minizinc", "--solver", "gecode", str(MODEL), "--cmdline-json-data"]
    done = subprocess.run(
        [*command, json.dumps(table)], capture_output=True, text=True, check=False
    )
    lines = done.stdout.split()
    if "==========" not in lines:
        raise RuntimeError(f"minizinc: {done.stderr or done.stdout}")
    return given.constant + int(lines[-3]) / scale


def data(given: Statement) -> tuple[dict[str, Any], Fraction]:
    """Return the model's parameters, and how many of its units make 1."""
    values = [*given.agree.values(), *given.earn.values()]
    parts = lcm(1, *(v.denominator for v in values))
    scale = Fraction(parts, gcd(*(int(v * parts) for v in values)) or 1)
    barrier = {b: k for k, b in enumerate(given.reads, 1)}
    elements = len(given.elements)
    agree = [[e + 1, f + 1, int(v * scale)] for (e, f), v in given.agree.items()]
    earn = [[e + 1, p + 1, int(v * scale)] for (e, p), v in given.earn.items()]
    arcs = [[barrier[b], barrier[c]] for b, c in given.arcs]
    table = {
        "n_elements": elements,
        "n_locations": len(given.locations),
        "n_barriers": len(barrier),
        "n_agree": len(agree),
        "agree": agree,
        "n_earn": len(earn),
        "earn": earn,
        "owner": [0 if b is None else barrier[b] for b in given.barrier_of] + [0] * elements,
        "reads": [{"set": sorted(e + 1 for e in read)} for read in given.reads.values()],
        "n_arcs": len(arcs),
        "arcs": arcs,
    }
    return table, scale
