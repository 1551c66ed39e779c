"""Sharding of transformers as PyTorch AutoParallel states it, beside other solvers.

``python -m benchmarks.sharding [--layers 32] [--labels 60] [--tied] [--seconds 300]`` draws a
network: in each layer weights and ops choose one of 5 to ``--labels`` strategies; a table between
neighbours says what it costs to turn one's placement into what the other wants; weights use memory,
which a row limits on both sides.  The network is solved here and, as one and the same integer
programme, by CBC through PuLP, by HiGHS and by CP-SAT; and by toulbar2.  Each runs in a process of
its own; missing ones are named.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from benchmarks.measure import Timed, markdown, measure, timed

PLACES = 9
"""Placements of a tensor on a mesh of two axes: shards on an axis, replicas, partial sums."""

OPS = (
    ("norm", ("add2",), ()),
    ("q", ("norm",), ("wq",)),
    ("k", ("norm",), ("wk",)),
    ("v", ("norm",), ("wv",)),
    ("attention", ("q", "k", "v"), ()),
    ("out", ("attention",), ("wo",)),
    ("add", ("out", "add2"), ()),
    ("norm2", ("add",), ()),
    ("gate", ("norm2",), ("w1",)),
    ("up", ("norm2",), ("w3",)),
    ("silu", ("gate",), ()),
    ("product", ("silu", "up"), ()),
    ("down", ("product",), ("w2",)),
    ("add2", ("down", "add"), ()),
)
"""Ops of a layer, what they read (``add2`` of the layer before), and weights that they use."""


def draw(layers: int, labels: int, tied: bool, seed: int) -> Any:
    """Return a network."""
    from layoutopt.network import CostNetwork

    r = random.Random(seed)
    net = CostNetwork(f"{layers} layers of {labels} labels")
    turn = [[0 if a == b else r.randint(1, 40) for b in range(PLACES)] for a in range(PLACES)]
    kinds: dict[str, tuple[Any, list[int], list[list[int]], list[int], list[int]]] = {}
    used: dict[tuple[str, int | str], int | Fraction | Decimal | float] = {}
    least = most = 0

    def node(layer: int, kind: str, reads: int, weight: bool) -> str:
        nonlocal least, most
        if kind not in kinds:
            size = r.randint(5, labels)
            makes = [r.randrange(PLACES) for _ in range(size)]
            wants = [[r.randrange(PLACES) for _ in range(size)] for _ in range(reads)]
            memory = [r.choice([1, 2, 4, 8]) * 64 // r.choice([1, 2, 4, 8]) for _ in range(size)]
            costs = [r.randint(0, 900) + (2000 // m if weight else 0) for m in memory]
            kinds[kind] = net.domain(size), makes, wants, memory, costs
        domain, _, _, memory, costs = kinds[kind]
        noise = r.randint(90, 110)
        name = net.node(f"{layer}.{kind}", domain, [cost * noise for cost in costs])
        if weight:
            used.update({(name, i): amount for i, amount in enumerate(memory)})
            least, most = least + min(memory), most + max(memory)
        return name

    def join(source: str, reader: str, slot: int, size: int) -> None:
        makes = kinds[source.split(".")[1]][1]
        wants = kinds[reader.split(".")[1]][2][slot]
        net.table(source, reader, [[turn[a][b] * size for b in wants] for a in makes])

    for layer in range(layers):
        for kind, reads, weights in OPS:
            here = node(layer, kind, len(reads) + len(weights), False)
            for slot, read in enumerate(reads):
                before = read == "add2"
                if not before or layer:
                    join(f"{layer - before}.{read}", here, slot, r.randint(20, 60))
            for slot, weight in enumerate(weights, len(reads)):
                join(node(layer, weight, 0, True), here, slot, r.randint(5, 30))
    if tied:
        for layer in range(1, layers):
            for kind in kinds:
                net.tie(f"0.{kind}", f"{layer}.{kind}")
    net.row(used, low=least, high=(3 * least + most) // 4, name="memory")
    return net.build()


def ours(given: tuple[int, int, bool, int], seconds: float) -> Timed:
    """Solve the network here."""
    from layoutopt.base.limits import limited
    from layoutopt.network import solve

    network = draw(*given)

    def run() -> Any:
        found = solve(network, limited(seconds))
        return str(found.status), found.cost, found.least

    return timed(run)


def programme(network: Any) -> Any:
    """Return the integer programme: labels, and pairs of labels as AutoParallel has them.

    Returns
    -------
    costs, matrix, low, high, labels
        Variables ``0 .. labels - 1`` are labels, the others pairs.
    """
    from scipy.sparse import csr_array

    starts = np.concatenate([[0], np.cumsum(network.sizes)])
    costs = [np.zeros(starts[-1])]
    costs[0][starts[network.cost_at[:, 0]] + network.cost_at[:, 1]] = network.costs
    rows: list[Any] = []
    columns: list[Any] = []
    factors: list[Any] = []
    low: list[float] = []
    high: list[float] = []

    def row(at: Any, values: Any, least: float, most: float) -> None:
        rows.append(np.full(len(at), len(low)))
        columns.append(np.asarray(at))
        factors.append(np.asarray(values, float))
        low.append(least)
        high.append(most)

    for u in range(len(network)):
        at = np.arange(starts[u], starts[u + 1])
        row(at, np.ones(len(at)), 1, 1)
    count = int(starts[-1])
    for (u, v), k in zip(network.table_edges.tolist(), network.table_of.tolist(), strict=True):
        table = network.tables[k].costs
        pairs = count + np.arange(table.size).reshape(table.shape)
        count += table.size
        costs.append(table.reshape(-1).astype(float))
        for node, lines in ((u, pairs), (v, pairs.T)):
            for i, line in enumerate(lines):
                row([*line, starts[node] + i], [1.0] * len(line) + [-1.0], 0, 0)
    for u, v in network.ties.tolist():
        for i in range(int(network.sizes[u])):
            row([starts[u] + i, starts[v] + i], [1, -1], 0, 0)
    for usage in network.usages:
        at = starts[usage.nodes[usage.at[:, 0]]] + usage.at[:, 1]
        row(at, usage.amounts, usage.low[0], usage.high[0])
    parts = np.concatenate(factors), (np.concatenate(rows), np.concatenate(columns))
    matrix = csr_array(parts, shape=(len(low), count))
    return np.concatenate(costs), matrix, np.array(low), np.array(high), int(starts[-1])


def with_highs(given: tuple[int, int, bool, int], seconds: float) -> Timed:
    """Solve the programme by HiGHS through SciPy."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    costs, matrix, low, high, labels = programme(draw(*given))
    whole = (np.arange(len(costs)) < labels).astype(int)

    def run() -> Any:
        found = milp(
            costs,
            integrality=whole,
            bounds=Bounds(0, 1),
            constraints=LinearConstraint(matrix, low, high),
            options={"time_limit": seconds, "mip_rel_gap": 0.0},
        )
        status = {0: "optimal", 1: "time limit"}.get(found.status, found.message)
        return status, found.fun, getattr(found, "mip_dual_bound", None)

    return timed(run)


def with_cpsat(given: tuple[int, int, bool, int], seconds: float) -> Timed:
    """Solve the programme by CP-SAT with its defaults on two workers."""
    from ortools.sat.python import cp_model

    costs, matrix, low, high, _ = programme(draw(*given))

    def run() -> Any:
        model = cp_model.CpModel()
        for _ in costs:
            model.proto.variables.add().domain.extend([0, 1])
        for r, (least, most) in enumerate(zip(low.tolist(), high.tolist(), strict=True)):
            a, b = matrix.indptr[r], matrix.indptr[r + 1]
            linear = model.proto.constraints.add().linear
            linear.vars.extend(matrix.indices[a:b].tolist())
            linear.coeffs.extend(matrix.data[a:b].astype(int).tolist())
            linear.domain.extend([int(least), int(most)])
        model.proto.objective.vars.extend(range(len(costs)))
        model.proto.objective.coeffs.extend(costs.astype(int).tolist())
        solver = cp_model.CpSolver()
        solver.parameters.max_time_in_seconds = seconds
        solver.parameters.num_workers = 2
        status = solver.status_name(solver.solve(model)).lower()
        known = status in ("optimal", "feasible")
        return status, solver.objective_value if known else None, solver.best_objective_bound

    return timed(run)


def with_cbc(given: tuple[int, int, bool, int], seconds: float) -> Timed:
    """Solve the programme by CBC through PuLP, as AutoParallel does."""
    pulp: Any = import_module("pulp")

    costs, matrix, low, high, labels = programme(draw(*given))

    def run() -> Any:
        model = pulp.LpProblem("sharding", pulp.LpMinimize)
        kinds = ["Integer"] * labels + ["Continuous"] * (len(costs) - labels)
        x = [pulp.LpVariable(f"x{k}", 0, 1, kind) for k, kind in enumerate(kinds)]
        model += pulp.LpAffineExpression(zip(x, costs.tolist(), strict=True))
        for r, (least, most) in enumerate(zip(low.tolist(), high.tolist(), strict=True)):
            a, b = matrix.indptr[r], matrix.indptr[r + 1]
            terms = zip(matrix.indices[a:b].tolist(), matrix.data[a:b].tolist(), strict=True)
            total = pulp.LpAffineExpression([(x[k], value) for k, value in terms])
            if least == most:
                model += total == least
            else:
                model += total >= least
                model += total <= most
        model.solve(pulp.PULP_CBC_CMD(msg=False, timeLimit=seconds, gapRel=0.0))
        status = pulp.LpSolution[model.sol_status]
        return status.lower(), pulp.value(model.objective), None

    return timed(run)


def with_toulbar2(given: tuple[int, int, bool, int], seconds: float) -> Timed:
    """Solve the network by toulbar2."""
    pytoulbar2: Any = import_module("pytoulbar2")

    network = draw(*given)

    def run() -> Any:
        net = pytoulbar2.CFN(ubinit=10**12)
        own = [[0] * int(size) for size in network.sizes]
        for (u, i), cost in zip(network.cost_at.tolist(), network.costs.tolist(), strict=True):
            own[u][i] = cost
        for u, costs in enumerate(own):
            net.AddVariable(f"n{u}", range(len(costs)))
            net.AddFunction([u], costs)
        for (u, v), k in zip(network.table_edges.tolist(), network.table_of.tolist(), strict=True):
            net.AddFunction([u, v], network.tables[k].costs.reshape(-1).tolist())
        for u, v in network.ties.tolist():
            n = int(network.sizes[u])
            net.AddFunction([u, v], [0 if i == j else 10**12 for i in range(n) for j in range(n)])
        for usage in network.usages:
            pairs = zip(usage.at.tolist(), usage.amounts.tolist(), strict=True)
            terms = [(int(usage.nodes[k]), i, amount) for (k, i), amount in pairs]
            net.AddGeneralizedLinearConstraint(terms, "<=", usage.high[0])
            net.AddGeneralizedLinearConstraint(terms, ">=", usage.low[0])
        found = net.Solve(timeLimit=int(seconds))
        done = "optimal" if found and not net.Limit else "time limit"
        return done, found[1] if found else None, net.GetLB()

    return timed(run)


SOLVERS: dict[str, tuple[str, Callable[..., Timed]]] = {
    "layoutopt": ("layoutopt", ours),
    "toulbar2": ("pytoulbar2", with_toulbar2),
    "HiGHS": ("scipy", with_highs),
    "CP-SAT": ("ortools", with_cpsat),
    "CBC (PuLP)": ("pulp", with_cbc),
}
"""Solvers, and the packages that they need."""


def main() -> None:
    """Solve one network by all solvers that are installed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--layers", type=int, default=32)
    parser.add_argument("--labels", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tied", action="store_true")
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--only", nargs="*", default=list(SOLVERS))
    asked = parser.parse_args()
    given = (asked.layers, asked.labels, asked.tied, asked.seed)
    network = draw(*given)
    cells = sum(network.tables[k].costs.size for k in network.table_of.tolist())
    print(f"{network}, {int(network.sizes.sum())} labels, {cells} pairs")
    lines = []
    for name, (package, call) in SOLVERS.items():
        if name not in asked.only:
            continue
        if find_spec(package) is None:
            lines.append([name, f"{package} is not installed", "", "", "", "", ""])
            continue
        done = measure(call, given, asked.seconds, seconds=asked.seconds)
        answer = done.answer or (done.failure, None, None)
        values = ["" if x is None else f"{x:,.0f}" for x in answer[1:]]
        spent = [f"{done.seconds:.1f}", f"{done.cpu:.1f}", f"{done.peak_mb:.0f}"]
        lines.append([name, answer[0], *values, *spent])
        print(" | ".join(lines[-1]), flush=True)
    print(markdown(["solver", "status", "cost", "bound", "seconds", "CPU s", "MiB"], lines))


if __name__ == "__main__":
    main()
