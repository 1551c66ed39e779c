"""Bounds by reductions: steps that preserve the maximum, prices of rows, and messages.

A step is ``[rule, entries...]``; :data:`RULES` lists them.  Each is verified on the problem itself,
and refused if it might change the maximum.  Afterwards the maximum of the problem is that of the
rest, or at most the threshold below which some step forbade labels.
"""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np

from layoutopt.certificate.pairwise import MOST_ENTRIES, Pairwise
from layoutopt.certificate.refused import Refused, entry, listed, message, numbered
from layoutopt.certificate.rows import SMALL, ActiveRows, Array, RowLimits

DEEPEST = 100  # how deep cases may be nested

OBJECTS: np.dtype[Any] = np.dtype(object)


class NoLabelling(Exception):
    """Signal that no labelling remains that is allowed and above the known value."""


class _Worths:
    """Values of labels and of pairs of labels, movable between nodes and edges."""

    def __init__(self, unary: list[Array], good: list[Array], dtype: np.dtype[Any]) -> None:
        self.dtype = dtype
        self.unary = [own.astype(dtype) for own in unary]
        self.good = [own.copy() for own in good]  # masks of allowed labels
        # For each node its neighbours: table with the node's labels first, mask of allowed pairs.
        self.near: list[dict[int, tuple[Array, Array]]] = [{} for _ in unary]
        # For each removed node a label; all its labels have equal amounts in relevant rows.
        self.gone: dict[int, int] = {}
        self.constant = 0

    def left(self) -> list[int]:
        """Return the remaining nodes."""
        return [u for u in range(len(self.unary)) if u not in self.gone]

    def edges(self) -> list[tuple[int, int]]:
        """Return all edges, by their nodes."""
        return [(u, v) for u, near in enumerate(self.near) for v in sorted(near) if u < v]

    def check_there(self, *nodes: int) -> None:
        """Refuse nodes that do not exist or were removed."""
        for u in nodes:
            if not 0 <= u < len(self.unary) or u in self.gone:
                raise Refused(f"a step refers to node {str(u)[:20]}, which does not exist")

    def edge(self, u: int, v: int) -> tuple[Array, Array]:
        """Return an edge's table, first node's labels first, and the mask of allowed pairs."""
        self.check_there(u, v)
        if v not in self.near[u]:
            raise Refused(f"no edge joins nodes {u} and {v}")
        return self.near[u][v]

    def add(self, u: int, v: int, table: Array, ok: Array) -> None:
        """Add a table to an edge, which may be new."""
        if v in self.near[u]:
            before, allowed = self.near[u][v]
            table, ok = before + table, allowed & ok
        self._check_small(table)
        self.near[u][v], self.near[v][u] = (table, ok), (table.T, ok.T)

    def pay(self, u: int, worth: Any) -> None:
        """Add to the values of a node's labels."""
        self.unary[u] = np.asarray(self.unary[u] + worth, self.dtype)
        self._check_small(self.unary[u])

    def keep(self, u: int, ok: Any) -> None:
        """Forbid all but some labels of a node."""
        self.good[u] = np.asarray(self.good[u] & ok, bool)
        if not self.good[u].any():
            raise NoLabelling

    def move(self, u: int, v: int) -> None:
        """Move the maxima of rows of an edge's table to the first node, of columns to the second.

        The edge is removed if its table is 0 afterwards.
        """
        self.check_there(u, v)
        if v not in self.near[u]:
            return
        for one, two in ((u, v), (v, u)):
            table, ok = self.near[one][two]
            both = ok & self.good[one][:, None] & self.good[two]
            best, some = _best(table.T, both.T)
            table -= best[:, None]
            table[~both] = 0
            self.pay(one, best)
            self.keep(one, some)
        self._check_small(table)
        self.drop_idle(u, v)

    def drop_idle(self, u: int, v: int) -> None:
        """Remove an edge that allows all pairs of labels and whose table is 0."""
        left = np.ix_(self.good[u], self.good[v])
        table, ok = self.near[u][v]
        if ok[left].all() and not table[left].any():
            del self.near[u][v], self.near[v][u]

    def _check_small(self, worth: Array) -> None:
        """Refuse 64-bit numbers whose sums might overflow."""
        if self.dtype != object and worth.size and int(np.abs(worth).max()) >= SMALL:
            raise Refused("numbers become too large in reductions")


class ReducedPairwise(_Worths):
    """A problem under reduction: nodes are removed, labels and pairs are forbidden."""

    def __init__(self, problem: Pairwise) -> None:
        good = [problem.allowed(own) for own in problem.unary]
        pairs = zip(good, problem.unary, strict=True)
        super().__init__([np.where(ok, own, 0) for ok, own in pairs], good, problem.dtype)
        if not all(own.any() for own in good):
            raise NoLabelling
        self.problem = problem
        self.most: int | None = None  # upper bound on the remaining labellings
        self.depth = 0  # how many cases this is in
        self.above: int | None = None  # upper bound on labellings that were forbidden by value
        if sum(len(good[i]) ** 2 for i, _, _ in problem.equal) > MOST_ENTRIES:
            raise Refused("equality edges have too many labels for reductions")
        for i, j, table in problem.edges:
            ok = problem.allowed(table)
            self.add(i, j, np.where(ok, table, 0).astype(self.dtype), ok)
        for i, j, weight in problem.equal:
            same = problem.same(i, weight)
            self.add(i, j, same, np.ones(same.shape, bool))
        for u, v in self.edges():
            self.drop_idle(u, v)
        self._begin = np.cumsum([0, *map(len, good)])
        self.rows, first = list[ActiveRows](), 0
        for group in problem.groups_inside():
            self.rows.append(ActiveRows(group, self._begin, first))
            first += len(group.limits)
        self._count()

    def take(self, step: object) -> None:
        """Apply a step, ``[rule, entries...]``."""
        rule, *entries = listed(step, None, "a step") or [None]
        if rule == "narrow":
            self.narrow()
        elif rule == "price":
            for given in entries:
                self.price(given)
        elif rule == "cases":
            for given in entries:
                node, cases = listed(given, 2, "a node and its cases")
                self.cases(_whole(node), listed(cases, None, "cases"))
        elif isinstance(rule, str) and rule in RULES:
            for given in entries:
                numbers = map(_whole, listed(given, RULES[rule], f"entries of {rule}"))
                getattr(self, rule)(*numbers)
        else:
            raise Refused(
                f"unknown step; allowed: {', '.join(['narrow', 'price', 'cases', *RULES])}"
            )

    def cases(self, u: int, given: list[Any]) -> None:
        """Bound the rest by cases, ``[labels, steps]``, that have all labels of a node."""
        self.check_there(u)
        if self.depth == DEEPEST:
            raise Refused(f"cases are nested more than {DEEPEST} deep")
        covered, found = np.zeros(len(self.good[u]), bool), list[int]()
        for case in given:
            own, steps = listed(case, 2, "a case")
            own = listed(own, None, "labels of a case")
            labels = np.zeros(len(covered), bool)
            labels[numbered(own, [len(covered)] * len(own), f"labels of node {u}")] = True
            covered |= labels
            part = self._copy()
            try:
                part.keep(u, labels)
                for step in listed(steps, None, "steps of a case"):
                    part.take(step)
                found.append(part.best())
            except NoLabelling:
                pass
            if part.above is not None:
                self.above = part.above if self.above is None else max(self.above, part.above)
        if (self.good[u] & ~covered).any():
            raise Refused(f"cases of node {u} leave out some of its labels")
        if not found:
            raise NoLabelling
        self.most = max(found) if self.most is None else min(self.most, max(found))

    def _copy(self) -> ReducedPairwise:
        """Return a copy whose tables, labels and rows change alone."""
        twin = copy(self)
        twin.unary, twin.good = list(self.unary), [own.copy() for own in self.good]
        twin.gone, twin.depth = dict(self.gone), self.depth + 1
        twin.near = [{} for _ in self.near]
        for u, v in self.edges():
            table, ok = (array.copy() for array in self.near[u][v])
            twin.near[u][v], twin.near[v][u] = (table, ok), (table.T, ok.T)
        twin.rows = [copy(rows) for rows in self.rows]
        for rows in twin.rows:
            rows.active = rows.active.copy()
        return twin

    def leave(self, u: int) -> None:
        """Eliminate a node with one label, or with at most two neighbours."""
        self.check_there(u)
        labels = np.flatnonzero(self.good[u])
        around = [*self.near[u]]
        if len(labels) > 1:
            self._check_free(u)
            if len(around) > 2:
                raise Refused(f"node {u} has {len(around)} neighbours and cannot be eliminated")
        own = self.unary[u][labels]
        if len(labels) == 1:
            for v in around:
                table, ok = self.near[u][v]
                self.keep(v, ok[labels[0]])
                self.pay(v, np.where(ok[labels[0]], table[labels[0]], 0))
            self.constant += int(own[0])
        elif not around:
            self.constant += int(own.max())
        elif len(around) == 1:
            table, ok = (array[labels] for array in self.near[u][around[0]])
            best, some = _best(table + own[:, None], ok)
            self.keep(around[0], some)
            self.pay(around[0], best)
        else:
            v, w = around
            if len(labels) * len(self.unary[v]) * len(self.unary[w]) > MOST_ENTRIES:
                raise Refused(f"eliminating node {u} makes more than {MOST_ENTRIES} entries")
            (one, ok), (two, also) = (self.near[u][x] for x in around)
            sums = one[labels][:, :, None] + two[labels][:, None, :] + own[:, None, None]
            self.add(v, w, *_best(sums, ok[labels][:, :, None] & also[labels][:, None, :]))
        self._remove(u, int(labels[0]))

    def follow(self, u: int, v: int) -> None:
        """Eliminate a node whose label is determined by that of a neighbour."""
        self._check_free(u)
        table, ok = self.edge(u, v)
        ok = ok & self.good[u][:, None] & self.good[v]
        if (ok.sum(axis=0)[self.good[v]] != 1).any():
            raise Refused(f"node {u} has several labels for a label of node {v}")
        reply, here = ok.argmax(axis=0), np.arange(ok.shape[1])
        self.pay(v, np.where(self.good[v], self.unary[u][reply] + table[reply, here], 0))
        for w in [w for w in self.near[u] if w != v]:
            other, allowed = self.near[u][w]
            self.add(v, w, other[reply], allowed[reply])
        self._remove(u, int(np.flatnonzero(self.good[u])[0]))

    def instead(self, u: int, i: int, j: int) -> None:
        """Forbid a label that another one dominates for all labels of the neighbours.

        Neighbours in no relevant row may change their label as well.
        """
        self._check_free(u)
        numbered([i, j], [len(self.good[u])] * 2, f"labels of node {u}")
        if not (self.good[u][i] and self.good[u][j]) or i == j:
            return
        lost = int(self.unary[u][i] - self.unary[u][j])
        for v, (table, ok) in self.near[u].items():
            worst = 0
            for rank, m in enumerate(np.flatnonzero(ok[i] & self.good[v]).tolist()):
                ways = [int(table[i, m] - table[j, m])] if ok[j, m] else []
                if v not in self.held and (not ways or ways[0] > 0):
                    for n in np.flatnonzero(ok[j] & self.good[v]).tolist():
                        more = self._answer(u, v, m, n) if n != m else None
                        if more is not None:
                            ways.append(int(table[i, m] - table[j, n]) + more)
                if not ways:
                    raise Refused(f"label {j} of node {u} cannot replace {i}")
                worst = max(worst, min(ways)) if rank else min(ways)
            lost += worst
        if lost > 0:
            raise Refused(f"label {j} of node {u} loses {lost} compared with {i}")
        self.good[u][i] = False

    def _answer(self, u: int, v: int, m: int, n: int) -> int | None:
        """Return the largest loss at a neighbour by a change of label."""
        lost = int(self.unary[v][m] - self.unary[v][n])
        for w, (table, ok) in self.near[v].items():
            asked = ok[m] & self.good[w]
            if w != u and (asked & ~ok[n]).any():
                return None
            if w != u and asked.any():
                lost += int((table[m] - table[n])[asked].max())
        return lost

    def narrow(self) -> None:
        """Forbid labels that violate a row for all choices of other nodes, until none is left.

        Rows that are always satisfied become irrelevant.
        """
        good, again = self._all_good(), True
        while again:
            again = False
            for rows in self.rows:
                bad = rows.too_much(good)
                good[bad] = False
                again |= bool(len(bad))
            if not np.logical_or.reduceat(good, self._begin[:-1]).all():
                raise NoLabelling
        self.good = np.split(good, self._begin[1:-1])
        self._count()

    def _all_good(self) -> Array:
        """Return the masks of allowed labels of all nodes, one after the other."""
        return np.concatenate([np.zeros(0, bool), *self.good])

    def _count(self) -> None:
        """Update the rows that may be violated, and the nodes whose labels differ there."""
        good = self._all_good()
        self.held = set[int]()
        for rows in self.rows:
            if rows.drop(good):
                raise NoLabelling
            self.held.update(rows.held(good))

    def price(self, given: object) -> None:
        """Bound the rest by prices of rows and messages of tables.

        ``"rows"`` are numbers and prices, above 0 for upper limits and below for lower ones;
        ``"messages"`` are for each edge, by its nodes, a message to labels of the second one;
        ``"parts"`` is the common denominator; labels and pairs whose bound is at most the optional
        ``"forbid"`` are forbidden.
        """
        parts = _whole(entry(given, "parts"))
        if parts < 1:
            raise Refused("the denominator of messages must be a positive integer")
        edges = self.edges()
        messages = listed(entry(given, "messages"), len(edges), "messages")
        tight = self._scaled(parts)
        for (u, v), put in zip(edges, messages, strict=True):
            if put is not None:
                own = np.array(message(put, len(self.unary[v]), v, _whole), object)
                tight.pay(v, own)
                tight.near[u][v][0][...] -= own
        self._charge(tight, listed(entry(given, "rows"), None, "rows"))
        for u, v in edges:
            tight.move(u, v)
        for u in self.left():
            best = max(tight.unary[u][tight.good[u]].tolist())
            tight.pay(u, -best)
            tight.constant += best
        most = tight.constant // parts
        self.most = most if self.most is None else min(self.most, most)
        worth = given.get("forbid") if isinstance(given, dict) else None
        if worth is not None:
            self.above = _whole(worth) if self.above is None else max(self.above, _whole(worth))
            self._forbid_too(tight, (_whole(worth) + 1) * parts - tight.constant)

    def _scaled(self, parts: int) -> _Worths:
        """Return all values, scaled by a denominator."""
        twin = _Worths([own.astype(object) * parts for own in self.unary], self.good, OBJECTS)
        twin.gone, twin.constant = self.gone, self.constant * parts
        for u, v in self.edges():
            table, ok = self.near[u][v]
            twin.add(u, v, table.astype(object) * parts, ok.copy())
        return twin

    def _charge(self, tight: _Worths, prices: list[Any]) -> None:
        """Add ``price * (limit - amount)`` of rows."""
        pairs = [[_whole(x) for x in listed(pair, 2, "a row and its price")] for pair in prices]
        numbered([k for k, _ in pairs], [len(self.problem.rows)] * len(pairs), "rows")
        for rows in self.rows:
            own = [(k - rows.first, price) for k, price in pairs]
            paid, items = rows.charge([pair for pair in own if 0 <= pair[0] < rows.count])
            tight.constant += paid
            for u, used in items:
                if u in self.gone:
                    tight.constant -= int(used[self.gone[u]])
                else:
                    tight.pay(u, -used)

    def _forbid_too(self, tight: _Worths, room: int) -> None:
        """Forbid labels and pairs whose bound, at most 0, is below ``room``."""
        for u in self.left():
            most = tight.unary[u]
            for v, (table, ok) in tight.near[u].items():
                best, some = _best((table + tight.unary[v]).T, (ok & tight.good[v]).T)
                tight.keep(u, some)
                most = most + best
            tight.keep(u, most >= room)
            self.keep(u, tight.good[u])
        for u in self.left():
            for v, (table, _) in tight.near[u].items():
                self.near[u][v][1][...] &= np.asarray(table >= room, bool)

    def _check_free(self, u: int) -> None:
        self.check_there(u)
        if u in self.held and self.good[u].sum() > 1:
            raise Refused(f"node {u} is in rows, so that its choice is not free")

    def _remove(self, u: int, label: int) -> None:
        for v in self.near[u]:
            del self.near[v][u]
        self.near[u] = {}
        self.gone[u] = label
        self.good[u] = np.arange(len(self.good[u])) == label

    def rest(self) -> Pairwise:
        """Return the rest as a problem."""
        if sum(rows.entries for rows in self.rows) > MOST_ENTRIES:
            raise Refused(f"the rest has more than {MOST_ENTRIES} entries of rows")
        left = self.left()
        place = {u: k for k, u in enumerate(left)}
        unary = [np.ma.array(self.unary[u], mask=~self.good[u]) for u in left]
        tables = [(u, v, *self.near[u][v]) for u, v in self.edges()]
        edges = [(place[u], place[v], np.ma.array(t, mask=~ok)) for u, v, t, ok in tables]
        names, given = self.problem.names, self.problem.rows
        nothing = RowLimits({}, None, None)
        active = np.concatenate([np.zeros(0, bool), *(rows.active for rows in self.rows)])
        rows = [given[k] if keep else nothing for k, keep in enumerate(active.tolist())]
        found = Pairwise(unary, edges, (), rows)
        found.names = [names[u] for u in left]
        found.taken = {names[u]: label for u, label in self.gone.items()} | self.problem.taken
        return found

    def best(self) -> int:
        """Return an upper bound on the remaining labellings."""
        found = self.constant + sum(int(self.unary[u][self.good[u]].max()) for u in self.left())
        found += sum(int(_best(*map(np.ravel, self.near[u][v]))[0]) for u, v in self.edges())
        return found if self.most is None else min(found, self.most)


def _best(worth: Array, ok: Array) -> tuple[Any, Any]:
    """Return the maxima of allowed entries along the first axis, 0 if none; and masks of any."""
    some = ok.any(axis=0)
    least = -(SMALL**9) if worth.dtype == object else -4 * SMALL
    best = np.asarray(np.where(ok, worth, least).max(axis=0), worth.dtype)
    return best * some, some


def _whole(given: object) -> int:
    if type(given) is not int:
        raise Refused(f"numbers of steps must be integers, not {str(given)[:20]!r}")
    return given


RULES = {"move": 2, "leave": 1, "follow": 2, "instead": 3}
"""Rules, each a method of :class:`ReducedPairwise`, and the length of their entries."""
