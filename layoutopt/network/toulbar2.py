"""Cost networks in the formats of toulbar2: ``.cfn`` both ways, ``.wcsp`` and ``.uai`` read.

A function of no variable is a constant, one of one variable costs of labels, one of two a table;
more are refused.  The bound that a file gives tells which pairs are forbidden; that whole
labellings stay below it is not asked.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import ROUND_DOWN, ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from functools import cache
from itertools import product
from math import ceil, prod
from typing import Any, Literal, TypeAlias

import numpy as np

from layoutopt.base.errors import InputError, errors_at
from layoutopt.base.numbers import exact_decimal, least
from layoutopt.network.builder import CostNetwork
from layoutopt.network.network import Network

Cost: TypeAlias = Fraction | int | None
Labels: TypeAlias = int | tuple[str, ...]
"""Names of labels, or how many there are."""

LARGEST = 10**8  # most entries of one table


@dataclass(frozen=True)
class CostFunction:
    """A function of some variables."""

    scope: tuple[int, ...]  # numbers of variables, 2 at most
    # a cost for each combination of labels, that of the last variable changing fastest; `None` is
    # forbidden
    costs: tuple[Cost, ...]

    def least(self, sign: int) -> Fraction | int:
        """Return the least cost that is allowed, ``sign`` -1 that of the negative function."""
        return min((sign * x for x in self.costs if x is not None), default=0)


def assembled(
    name: str,
    sense: Literal["min", "max"],
    variables: Sequence[tuple[str, Labels]],
    functions: Sequence[CostFunction],
    bound: Fraction | None = None,
) -> Network:
    """Return the network of some cost functions of variables with names and labels.

    Labellings must be better than the bound: what alone keeps every labelling from that is
    forbidden.
    """
    net = CostNetwork(name, sense)
    domains: dict[Labels, Any] = {}
    for variable, labels in variables:
        if labels not in domains:
            domains[labels] = net.domain(labels)
        net.node(variable, domains[labels])
    sign = -1 if sense == "max" else 1
    lowest = [function.least(sign) for function in functions]
    total = sum(lowest)
    for function, own in zip(functions, lowest, strict=True):
        costs: Sequence[Cost] = function.costs
        if bound is not None:
            left = sign * bound - (total - own)
            costs = [None if x is None or sign * x >= left else x for x in costs]
        _add(net, variables, function.scope, costs)
    return net.build()


def _count(labels: Labels) -> int:
    return labels if isinstance(labels, int) else len(labels)


def _add(
    net: CostNetwork,
    variables: Sequence[tuple[str, Labels]],
    scope: tuple[int, ...],
    costs: Sequence[Cost],
) -> None:
    if len(scope) == 2:
        (u, _), (v, labels) = (variables[k] for k in scope)
        width = _count(labels)
        net.table(u, v, [costs[i : i + width] for i in range(0, len(costs), width)])
    elif len(scope) == 1:
        for i, cost in enumerate(costs):
            net.cost(variables[scope[0]][0], i, cost)
    elif costs[0] is not None:
        net.constant(costs[0])
    elif variables:
        name, labels = variables[0]  # nothing is allowed
        for i in range(_count(labels)):
            net.ban(name, i)
    else:
        raise InputError("no labelling is better than the bound")


TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*"|[{}\[\]]|(?:#|//)[^\n]*|[^\s{}\[\]:,"]+|"')

PLAIN = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)")

INFINITE = frozenset({"inf", "+inf", "-inf"})


def parse_cfn(raw: bytes) -> Network:
    """Return the network of a ``.cfn`` file.

    Costs keep as many digits after the point as ``mustbe`` has; more are cut off.  Functions of
    three variables or more, and global ones, are refused.
    """
    return _Cfn(_tree(raw)).network()


Tree: TypeAlias = Any
"""A word, a list, or a tuple of pairs of an object's names and members."""


def _tree(raw: bytes) -> Tree:
    """Return a text's JSON, but for commas, quotes, comments, and braces around unnamed objects."""
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        raise InputError("is no text in UTF-8") from None
    stack: list[tuple[str, list[Tree]]] = [("", [])]
    for match in TOKEN.finditer(text):
        word = match[0]
        if word in "{[":
            stack.append((word, []))
        elif word in "}]":
            kind, members = stack.pop()
            if kind != {"}": "{", "]": "["}[word]:
                raise InputError(f"{word} closes nothing", _line(text, match.start()))
            made: Tree = members
            if kind == "{" and not (members and all(isinstance(x, tuple) for x in members)):
                if len(members) % 2 or not all(isinstance(name, str) for name in members[::2]):
                    reason = "an object needs names and members in turns"
                    raise InputError(reason, _line(text, match.start()))
                made = tuple(
                    (_text(name), x) for name, x in zip(members[::2], members[1::2], strict=True)
                )
            stack[-1][1].append(made)
        elif word == '"':
            raise InputError("a string does not end", _line(text, match.start()))
        elif not word.startswith(("#", "//")):
            stack[-1][1].append(word)
    if len(stack) > 1 or len(stack[0][1]) != 1:
        raise InputError("ends too early, or holds more than one object")
    return stack[0][1][0]


def _line(text: str, offset: int) -> str:
    return f"line {text.count(chr(10), 0, offset) + 1}"


def _text(word: Tree) -> str:
    if not isinstance(word, str):
        raise InputError("a name is needed, not an object or a list")
    if not word.startswith('"'):
        return word
    try:
        return str(json.loads(word))
    except ValueError:
        raise InputError(f"{word[:40]} is no string") from None


def _whole(word: str, place: str = "") -> int:
    """Return a whole number; refuse one of more digits than Python reads."""
    try:
        return int(word)
    except ValueError:
        raise InputError(f"{word[:40]}... has more than 4,300 digits", place) from None


class _Cfn:
    """Reader of what a ``.cfn`` file holds."""

    def __init__(self, tree: Tree) -> None:
        parts = _object(tree, "the file")
        strange = parts.keys() - {"problem", "variables", "functions"}
        if strange:
            raise InputError(f"has {min(strange)!r}; allowed: problem, variables, functions")
        problem = _object(parts.get("problem", ()), "problem")
        self.name = _text(problem.get("name", '""'))
        bound = _text(problem.get("mustbe", '""')).replace(" ", "")
        if not (bound[:1] in ("<", ">") and (PLAIN.fullmatch(bound[1:]) or bound[1:] in INFINITE)):
            raise InputError('must be "<" or ">" and a number', "problem.mustbe")
        self.sense: Literal["min", "max"] = "min" if bound[0] == "<" else "max"
        self.step = Decimal(1).scaleb(-len(bound.partition(".")[2]))
        self.bound = None if bound[1:] in INFINITE else Fraction(exact_decimal(bound[1:]))
        self.variables = [*self._variables(_many(parts, "variables"))]
        self.number = {name: u for u, (name, _) in enumerate(self.variables)}
        given = _many(parts, "functions")
        numbered = [(f"function {k}", entry) for k, entry in enumerate(given)]
        self.functions = given if isinstance(given, tuple) else numbered

    def network(self) -> Network:
        """Return the network."""
        known: dict[str, tuple[Cost, ...]] = {}
        found: dict[int, CostFunction] = {}
        rows = [*enumerate(self.functions)]
        for turn in range(3):  # backwards too, for those with the costs of a function below them
            for k, (name, given) in rows[::-1] if turn == 1 else rows:
                with errors_at(f"functions.{name}"):
                    members = _object(given, f"function {name!r}")
                    strange = members.keys() - {"scope", "costs", "defaultcost"}
                    if strange:
                        raise InputError(f"has {min(strange)!r}; no global function is read")
                    costs = members.get("costs")
                    waits = isinstance(costs, str) and _text(costs) not in known
                    if k not in found and (turn == 2 or not waits):
                        found[k] = self._function(members, known)
                        known[name] = found[k].costs
        functions = [found[k] for k, _ in rows]
        return assembled(self.name, self.sense, self.variables, functions, self.bound)

    def _variables(self, given: Tree) -> Iterator[tuple[str, Labels]]:
        for k, entry in enumerate(given):
            name, labels = entry if isinstance(given, tuple) else (f"x{k}", entry)
            if isinstance(labels, list):
                yield name, tuple(map(_text, labels))
            elif isinstance(labels, str) and _text(labels).isdecimal():
                yield name, _whole(_text(labels), f"variables.{name}")
            else:
                raise InputError("needs a number of labels, or their names", f"variables.{name}")

    def _function(self, given: dict[str, Tree], known: dict[str, tuple[Cost, ...]]) -> CostFunction:
        scope = tuple(map(self._variable, _listed(given.get("scope", []), "scope")))
        if len(scope) > 2:
            raise InputError(f"is of {len(scope)} variables, 2 are allowed")
        sizes = [_count(self.variables[u][1]) for u in scope]
        count = prod(sizes)
        if count > LARGEST:
            raise InputError(f"has {count:,} costs, {LARGEST:,} are allowed")
        costs = given.get("costs", [])
        if isinstance(costs, str):
            if _text(costs) not in known or len(known[_text(costs)]) != count:
                raise InputError(f"has no function {_text(costs)!r} of its shape")
            return CostFunction(scope, known[_text(costs)])
        if "defaultcost" not in given:
            if len(costs) != count:
                raise InputError(f"needs {count} costs, has {len(costs)}")
            return CostFunction(scope, tuple(map(self._cost, costs)))
        cells = [self._cost(given["defaultcost"])] * count
        width = len(scope) + 1
        if len(costs) % width:
            raise InputError(f"needs {width} entries for each of its costs")
        seen = set()
        for at in range(0, len(costs), width):
            place = 0
            for u, word in zip(scope, costs[at : at + width - 1], strict=True):
                own = self.variables[u][1]
                place = place * _count(own) + _label(word, own)
            if place in seen:
                raise InputError("has a cost of one combination twice")
            seen.add(place)
            cells[place] = self._cost(costs[at + width - 1])
        return CostFunction(scope, tuple(cells))

    def _variable(self, word: Tree) -> int:
        name = _text(word)
        if name in self.number:
            return self.number[name]
        if name.isdecimal() and (number := _whole(name)) < len(self.variables):
            return number
        raise InputError(f"there is no variable {name!r}")

    def _cost(self, word: Tree) -> Cost:
        word = _text(word) if isinstance(word, str) else ""
        if word in INFINITE:
            return None
        if not PLAIN.fullmatch(word):
            raise InputError(f"{word[:40]!r} is no cost")
        exact = exact_decimal(word)
        if int(exact.as_tuple().exponent) >= int(self.step.as_tuple().exponent):
            return Fraction(exact)
        context = Context(prec=1000, rounding=ROUND_DOWN)
        return Fraction(exact.quantize(self.step, context=context))


def _object(tree: Tree, what: str) -> dict[str, Tree]:
    if not isinstance(tree, tuple):
        raise InputError(f"{what} must be an object")
    members = dict(tree)
    if len(members) < len(tree):
        raise InputError(f"{what} has a name twice")
    return members


def _many(parts: dict[str, Tree], what: str) -> Tree:
    """Return a part of the file that is an object or a list."""
    tree = parts.get(what, ())
    if isinstance(tree, str):
        raise InputError(f"{what} must be an object or a list")
    return tree


def _listed(tree: Tree, what: str) -> list[Tree]:
    if not isinstance(tree, list):
        raise InputError(f"{what} must be a list")
    return tree


def _label(word: Tree, labels: Labels) -> int:
    name = _text(word)
    if not isinstance(labels, int) and name in labels:
        return labels.index(name)
    if name.isdecimal() and (number := _whole(name)) < _count(labels):
        return number
    raise InputError(f"there is no label {name!r}")


class _Numbers:
    """Numbers of a text, one after another."""

    def __init__(self, tokens: Sequence[bytes]) -> None:
        self.tokens, self.at = tokens, 0

    def word(self) -> str:
        """Return the next word."""
        if self.at >= len(self.tokens):
            raise InputError("ends too early")
        self.at += 1
        return self.tokens[self.at - 1].decode(errors="replace")

    def integer(self, what: str, low: int | None = None, high: int | None = None) -> int:
        """Return the next word as a whole number in a range."""
        word = self.word()
        try:
            number = int(word if re.fullmatch("[+-]?[0-9]+", word) else "")
        except ValueError:
            raise InputError(f"{what} must be a whole number, got {word[:40]!r}") from None
        if (low is not None and number < low) or (high is not None and number > high):
            allowed = f"{low} or more" if high is None else f"{low} to {high}"
            raise InputError(f"{what} must be {allowed}, got {number}")
        return number

    def end(self) -> None:
        """Refuse what stands behind all functions: there are more than the file counts."""
        if self.at < len(self.tokens):
            raise InputError(f"goes on with {self.word()[:40]!r} after its last function")


def parse_wcsp(raw: bytes) -> Network:
    """Return the network of a ``.wcsp`` file, its variables ``x0``, ``x1``, ...

    Functions of three variables or more, and global ones, are refused.
    """
    given = _Numbers(raw.split())
    name = given.word()
    variables, largest = (given.integer(what, 0) for what in ("the variables", "the labels"))
    count, bound = (given.integer(what, 0) for what in ("the functions", "the bound"))
    sizes = [given.integer(f"the labels of x{u}", 1, largest) for u in range(variables)]
    found: list[CostFunction] = []
    shared: list[tuple[Cost, ...]] = []
    for k in range(count):
        title = f"function {k}"
        arity = given.integer(f"the variables of {title}")
        if abs(arity) > 2:
            raise InputError(f"{title} is of {abs(arity)} variables, 2 are allowed")
        scope = tuple(
            given.integer(f"a variable of {title}", 0, variables - 1) for _ in range(abs(arity))
        )
        default, tuples = given.word(), given.word()
        if not re.fullmatch("[0-9]+", default) or not re.fullmatch("-?[0-9]+", tuples):
            raise InputError(f"{title} is a global one ({default} {tuples}), which is not read")
        own = [sizes[u] for u in scope]
        shape = prod(own)
        if shape > LARGEST:
            raise InputError(f"{title} has {shape:,} costs, {LARGEST:,} are allowed")
        entries = _whole(tuples)
        if entries < 0:
            number = -entries - 1
            if number >= len(shared) or len(shared[number]) != shape:
                raise InputError(f"{title} shares a function that is not there")
            cells: list[Cost] = [*shared[number]]
        else:
            cells = [_whole(default)] * shape
            for _ in range(entries):
                place = 0
                for size in own:
                    place = place * size + given.integer(f"a label of {title}", 0, size - 1)
                cells[place] = given.integer(f"a cost of {title}", 0)
        found.append(CostFunction(scope, tuple(cells)))
        if arity < 0:
            shared.append(found[-1].costs)
    given.end()
    named = [(f"x{u}", size) for u, size in enumerate(sizes)]
    return assembled(name, "min", named, found, Fraction(bound))


def parse_uai(raw: bytes, digits: int = 6) -> Network:
    """Return the network of a ``.uai`` file, its variables ``x0``, ``x1``, ...

    A potential ``p`` costs ``-log p``, to so many digits after the point, and 0 is forbidden: the
    labelling of least cost is the likeliest, but for this rounding.  Functions of three variables
    or more are refused.
    """
    places = least("digits", digits, 0, 2**10)
    step, context = Decimal(1).scaleb(-places), Context(prec=40 + places, rounding=ROUND_HALF_EVEN)

    @cache
    def cost_of(word: str) -> Cost:
        value = exact_decimal(word)
        if value < 0:
            raise InputError(f"a potential is negative: {word[:40]}")
        return -Fraction(context.ln(value).quantize(step, context=context)) if value else None

    given = _Numbers(raw.split())
    kind = given.word()
    if kind not in ("MARKOV", "BAYES"):
        raise InputError(f"must begin with MARKOV or BAYES, got {kind[:40]!r}")
    variables = given.integer("the variables", 0)
    sizes = [given.integer(f"the labels of x{u}", 1) for u in range(variables)]
    scopes = []
    for k in range(given.integer("the functions", 0)):
        arity = given.integer(f"the variables of function {k}", 0)
        if arity > 2:
            raise InputError(f"function {k} is of {arity} variables, 2 are allowed")
        each = range(arity)
        scopes.append(
            tuple(given.integer(f"a variable of function {k}", 0, variables - 1) for _ in each)
        )
    found = []
    for k, scope in enumerate(scopes):
        own = [sizes[u] for u in scope]
        shape = prod(own)
        count = given.integer(f"the potentials of function {k}")
        if count != shape:
            raise InputError(f"function {k} needs {shape} potentials, has {count}")
        costs = tuple(cost_of(given.word()) for _ in range(count))
        found.append(CostFunction(scope, costs))
    given.end()
    return assembled("", "min", [(f"x{u}", size) for u, size in enumerate(sizes)], found)


def cfn_bytes(network: Network) -> bytes:
    """Return the bytes of the ``.cfn`` file that describes a network.

    Rows, open domains, and costs that are no decimals are refused.
    """
    if network.usages:
        raise InputError("rows of limits cannot be written as .cfn")
    if any(domain.open for domain in network.domains):
        raise InputError("open domains cannot be written as .cfn")
    functions: list[_Costs] = [([], [network.constant]), *_functions(network)]
    sign = -1 if network.sense == "max" else 1
    ends = [[sign * x for x in costs if x is not None] or [0] for _, costs in functions]
    # toulbar2 refuses what is one unit better, and reads a bound between -1 and 0 without its sign
    worst = max(sum(map(max, ends)) + 100, ceil(1 / network.unit))
    # no labelling that pays this is better, whatever all other functions save
    never = worst - sum(map(min, ends)) + max(max(map(abs, own)) for own in ends)
    decimals = exact_decimal(network.unit)
    places = max(-int(decimals.as_tuple().exponent), 0)

    def cost(value: int | None) -> str:
        return f"{exact_decimal((sign * never if value is None else value) * network.unit):f}"

    def labels(u: int) -> Any:
        domain = network.domain(u)
        return _named(domain.names) or domain.size

    nodes = _named(network.nodes)
    variables = [f"  {json.dumps(name)}: {json.dumps(labels(u))}" for u, name in enumerate(nodes)]
    rows = [
        f'  "f{k}": {{"scope": {json.dumps([nodes[u] for u in scope])}, '
        f'"costs": [{", ".join(map(cost, costs))}]}}'
        for k, (scope, costs) in enumerate(functions)
    ]
    bound = f"{exact_decimal(sign * worst * network.unit):.{places}f}"
    head = {
        "name": _named([network.name])[0],
        "mustbe": f"{'<' if network.sense == 'min' else '>'}{bound}",
    }
    text = (
        f'{{"problem": {json.dumps(head)},\n "variables": {{\n'
        + ",\n".join(variables)
        + '},\n "functions": {\n'
        + ",\n".join(rows)
        + "}}\n"
    )
    return text.encode()


def _named(names: Sequence[str]) -> list[str]:
    """Return names as toulbar2 reads them: no spaces, signs of JSON, or digits in front."""
    found = [re.sub(r'[\s/#\[\]{}:,"\\]|^(?=[0-9])', "_", name) or "_" for name in names]
    if len(set(found)) != len(names):
        why = "spaces, signs of JSON or a _ before a digit alone, which .cfn does not tell apart"
        raise InputError(f"two names differ in {why}")
    return found


_Costs: TypeAlias = tuple[list[int], list[int | None]]


def _functions(network: Network) -> Iterator[_Costs]:
    """Yield nodes and costs of all their labels; ``None`` where forbidden."""
    sizes = network.sizes.tolist()
    own: dict[int, list[int | None]] = {}
    for (u, i), cost in zip(network.cost_at.tolist(), network.costs.tolist(), strict=True):
        own.setdefault(u, [0] * sizes[u])[i] = cost
    for u, i in network.banned.tolist():
        own.setdefault(u, [0] * sizes[u])[i] = None
    for u in sorted(own):
        yield [u], own[u]

    def square(u: int, same: int, other: int | None) -> list[int | None]:
        each = range(sizes[u])
        return [same if i == j else other for i, j in product(each, each)]

    for (u, v), cost in zip(
        network.equal_edges.tolist(), network.equal_costs.tolist(), strict=True
    ):
        yield [u, v], square(u, cost, 0)
    for u, v in network.ties.tolist():
        yield [u, v], square(u, 0, None)
    for (u, v), k in zip(network.table_edges.tolist(), network.table_of.tolist(), strict=True):
        costs, allowed = network.tables[k].costs, network.tables[k].allowed
        cells = costs if allowed is None else np.asarray(np.where(allowed, costs, None))
        yield [u, v], cells.ravel().tolist()
