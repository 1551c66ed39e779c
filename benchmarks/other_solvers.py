"""Cost networks by other solvers, each in a process of its own.

CBC through PuLP, HiGHS and CP-SAT solve one integer programme, which has a variable for each pair
of labels; CP-SAT also a direct statement, with a clause or an indicator for each pair that costs
something; toulbar2 the network itself.  Missing ones are named.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from importlib import import_module
from importlib.util import find_spec
from typing import Any, TypeAlias

import numpy as np

from benchmarks.measure import Timed, markdown, measure, timed

TOP = 10**12  # what is forbidden costs toulbar2

Make: TypeAlias = Callable[[], Any]
"""Returns the network that is solved."""


def ours(make: Make, seconds: float) -> Timed:
    """Solve the network here."""
    from layoutopt.base.limits import limited
    from layoutopt.network import solve

    network = make()

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
        forbidden = pairs[~_allowed(network.tables[k])]
        if len(forbidden):
            row(forbidden, np.ones(len(forbidden)), 0, 0)
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


def with_highs(make: Make, seconds: float) -> Timed:
    """Solve the programme by HiGHS through SciPy."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    costs, matrix, low, high, labels = programme(make())
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


def with_cpsat(make: Make, seconds: float) -> Timed:
    """Solve the programme by CP-SAT with its defaults on two workers."""
    from ortools.sat.python import cp_model

    costs, matrix, low, high, _ = programme(make())

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
        return _by_cpsat(model, seconds)

    return timed(run)


def with_cbc(make: Make, seconds: float) -> Timed:
    """Solve the programme by CBC through PuLP, as AutoParallel does."""
    pulp: Any = import_module("pulp")

    costs, matrix, low, high, labels = programme(make())

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


def with_toulbar2(make: Make, seconds: float) -> Timed:
    """Solve the network by toulbar2."""
    pytoulbar2: Any = import_module("pytoulbar2")

    network = make()

    def run() -> Any:
        net = pytoulbar2.CFN(ubinit=TOP)
        own = [[0] * int(size) for size in network.sizes]
        for (u, i), cost in zip(network.cost_at.tolist(), network.costs.tolist(), strict=True):
            own[u][i] = cost
        for u, costs in enumerate(own):
            net.AddVariable(f"n{u}", range(len(costs)))
            net.AddFunction([u], costs)
        for (u, v), k in zip(network.table_edges.tolist(), network.table_of.tolist(), strict=True):
            table = network.tables[k]
            values = np.where(_allowed(table), table.costs, TOP)
            net.AddFunction([u, v], values.reshape(-1).tolist())
        for u, v in network.ties.tolist():
            n = int(network.sizes[u])
            net.AddFunction([u, v], [0 if i == j else TOP for i in range(n) for j in range(n)])
        for usage in network.usages:
            pairs = zip(usage.at.tolist(), usage.amounts.tolist(), strict=True)
            terms = [(int(usage.nodes[k]), i, amount) for (k, i), amount in pairs]
            net.AddGeneralizedLinearConstraint(terms, "<=", usage.high[0])
            net.AddGeneralizedLinearConstraint(terms, ">=", usage.low[0])
        begun = time.monotonic()
        found = net.Solve(timeLimit=int(seconds))
        ended = found and time.monotonic() < begun + int(seconds)
        return "optimal" if ended else "time limit", found[1] if found else None, net.GetLB()

    return timed(run)


def directly(make: Make, seconds: float) -> Timed:
    """Solve a network by CP-SAT on two workers, with a clause or an indicator for each pair."""
    from ortools.sat.python import cp_model

    network = make()

    def run() -> Any:
        model = cp_model.CpModel()
        cost: Any = int(network.constant)
        labels = [[model.new_bool_var("") for _ in range(size)] for size in network.sizes]
        for own in labels:
            model.add_exactly_one(own)
        for (u, i), worth in zip(network.cost_at.tolist(), network.costs.tolist(), strict=True):
            cost += worth * labels[u][i]
        for (u, v), k in zip(network.table_edges.tolist(), network.table_of.tolist(), strict=True):
            table = network.tables[k]
            allowed = _allowed(table)
            for (i, j), worth in np.ndenumerate(table.costs):
                one, two = labels[u][i], labels[v][j]
                if not allowed[i, j]:
                    model.add_bool_or(~one, ~two)
                elif worth:
                    both = model.new_bool_var("")
                    if worth > 0:
                        model.add_bool_or(~one, ~two, both)
                    else:
                        model.add_bool_and(one, two).only_enforce_if(both)
                    cost += int(worth) * both
        for u, v in network.ties.tolist():
            for one, two in zip(labels[u], labels[v], strict=True):
                model.add(one == two)
        for usage in network.usages:
            pairs = zip(usage.at.tolist(), usage.amounts.tolist(), strict=True)
            used = sum(amount * labels[usage.nodes[k]][i] for (k, i), amount in pairs)
            model.add_linear_constraint(used, usage.low[0], usage.high[0])
        model.minimize(cost)
        return _by_cpsat(model, seconds)

    return timed(run)


def _by_cpsat(model: Any, seconds: float) -> Any:
    """Return CP-SAT's answer with its defaults on two workers."""
    from ortools.sat.python import cp_model

    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = seconds
    solver.parameters.num_workers = 2
    status = solver.status_name(solver.solve(model)).lower()
    known = status in ("optimal", "feasible")
    return status, solver.objective_value if known else None, solver.best_objective_bound


def _allowed(table: Any) -> Any:
    return np.ones(table.costs.shape, bool) if table.allowed is None else table.allowed


SOLVERS: dict[str, tuple[str, Callable[..., Timed]]] = {
    "layoutopt": ("layoutopt", ours),
    "toulbar2": ("pytoulbar2", with_toulbar2),
    "HiGHS": ("scipy", with_highs),
    "CP-SAT": ("ortools", with_cpsat),
    "CP-SAT, directly": ("ortools", directly),
    "CBC (PuLP)": ("pulp", with_cbc),
}
"""Solvers, and the packages that they need."""


def compare(make: Make, names: Iterable[str], seconds: float) -> None:
    """Solve a network by some solvers, and print a row for each as it ends, and a table."""
    lines = []
    for name in names:
        package, call = SOLVERS[name]
        if find_spec(package) is None:
            lines.append([name, f"{package} is not installed", "", "", "", "", ""])
            continue
        done = measure(call, make, seconds, seconds=seconds)
        answer = done.answer or (done.failure, None, None)
        values = ["" if x is None else f"{x:,.0f}" for x in answer[1:]]
        spent = [f"{done.seconds:.1f}", f"{done.cpu:.1f}", f"{done.peak_mb:.0f}"]
        lines.append([name, answer[0], *values, *spent])
        print(" | ".join(lines[-1]), flush=True)
    print(markdown(["solver", "status", "cost", "bound", "seconds", "CPU s", "MiB"], lines))
