"""Certificates of conversion: writing, and comparison with networks.

Proofs are verified by :mod:`layoutopt.certificate.conversion`, which is independent of solvers and
of ONNX.
"""

from __future__ import annotations

import tomllib
from collections import ChainMap, Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from layoutopt.base.errors import InputError, errors_at
from layoutopt.base.limits import Limits
from layoutopt.certificate import conversion as checker
from layoutopt.certificate.bounds import bound
from layoutopt.certificate.conversion import CertifiedOp, Need, Statement
from layoutopt.certificate.refused import Refused, entry, listed
from layoutopt.conversion.backends import backend_named
from layoutopt.conversion.convert import state_graph
from layoutopt.conversion.cost_table import OpCosts, costs_from, parse_objective, tally
from layoutopt.conversion.desired import parse_desired
from layoutopt.conversion.graph import ConversionGraph
from layoutopt.conversion.requirements import Requirements
from layoutopt.conversion.result import Conversion
from layoutopt.conversion.rules.op import Op
from layoutopt.conversion.rules.operator import Category
from layoutopt.conversion.rules.registry import category_of, computes_along_axes
from layoutopt.network.evidence import evidence
from layoutopt.onnx.protobuf import load, loaded
from layoutopt.onnx.result import ConversionResult
from layoutopt.onnx.simplify import SimplifiedModel, simplified
from layoutopt.onnx.source import read_model
from layoutopt.onnx.validate import as_runtimes_read

if TYPE_CHECKING:
    from layoutopt.onnx.source import Model, OnnxSource

MICROSOFT = "microsoft"  # argument that is missing in older certificates


@dataclass(frozen=True)
class Asked:
    """The arguments of :func:`layoutopt.converting.convert` that define the problem."""

    objective: str  # objectives in order, such as `"count,bytes"`
    layout: str | None = None  # required layouts of ops
    padding: bool = False
    backend: str | None = None
    costs: str | None = None  # the content of a file of costs
    free_io: bool = False  # whether layouts of inputs and outputs may change
    # whether products may become ops of onnxruntime; false if missing in a certificate
    microsoft: bool = False

    @classmethod
    def of(cls, given: object) -> Asked:
        """Parse a certificate's arguments.

        Raises ``Refused`` if one is missing or has a wrong type.
        """
        flags = ("padding", "free_io", "microsoft")
        allowed = {**dict.fromkeys(flags, (bool,)), "objective": (str,)}
        said = isinstance(given, dict) and MICROSOFT in given
        told = [own.name for own in fields(cls) if own.name != MICROSOFT or said]
        found = {name: entry(given, name) for name in told}
        for name, value in found.items():
            if type(value) not in allowed.get(name, (str, type(None))):
                raise Refused(f"the argument {name} has type {type(value).__name__}")
        return cls(**found)

    def document(self) -> dict[str, Any]:
        """Return the arguments as plain data, without ``microsoft`` if false."""
        return {name: value for name, value in asdict(self).items() if name != MICROSOFT or value}

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of :func:`layoutopt.conversion.convert.state_graph`.

        Raises ``Refused`` if one is invalid.
        """
        try:
            self.objectives()
            return {
                "desired": self._desired(),
                "costs": self._costs(),
                "objective": self.objective,
                "free_io": self.free_io,
                "microsoft": self.microsoft,
            }
        except InputError as error:
            raise Refused(f"invalid arguments: {error}") from None

    def objectives(self) -> tuple[str, ...]:
        """Return the names of the objectives."""
        return parse_objective(self.objective, self.costs is not None)

    def _desired(self) -> Requirements | None:
        if self.layout is not None:
            return parse_desired(self.layout, self.padding)
        return None if self.backend is None else backend_named(self.backend)

    def _costs(self) -> OpCosts | None:
        if self.costs is None:
            return None
        try:
            return costs_from(tomllib.loads(self.costs, parse_float=Decimal))
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            raise InputError(f"costs are not TOML ({error})") from None


PATIENCE = 100
"""Largest average number of trials per mode of a family, after which it is not folded."""

Place = tuple[int, int]
"""The numbers of an op and a mode."""


def folding(statement: Statement, useful: Sequence[Sequence[int]]) -> list[list[int]]:
    """Return the replacement of each mode of each op; the mode itself if there is none.

    ``useful`` holds for each op the modes that remain, at least one.
    """
    return _Folding(statement.ops, useful).folded()


class _Folding:
    """Replacements of tensors by equal ones."""

    def __init__(self, ops: Sequence[CertifiedOp], useful: Sequence[Sequence[int]]) -> None:
        self.ops, self.useful = ops, useful
        self.turned: dict[Need, Need] = {}
        self.left: dict[Place, None] = {}
        self.at: dict[Need, list[Place]] = {}
        for i, (op, kept) in enumerate(zip(ops, useful, strict=True)):
            self.turned |= {need: need for m in kept for need in op.modes[m]}
            self.left |= {(i, m): None for m in range(len(op.modes)) if m not in set(kept)}
        for i, m in self.left:
            for need in ops[i].modes[m]:
                if need not in self.turned:
                    self.at.setdefault(need, []).append((i, m))

    def folded(self) -> list[list[int]]:
        found = [list(range(len(op.modes))) for op in self.ops]
        while self.left:
            family = self._family()
            for (i, m), k in zip(family, self._replaced(family), strict=False):
                found[i][m] = k
        return found

    def _family(self) -> list[Place]:
        """Remove and return a connected set of the remaining modes."""
        family = [next(iter(self.left))]
        del self.left[family[0]]
        for i, m in family:
            for need in self.ops[i].modes[m]:
                for place in self.at.pop(need, ()):
                    if place in self.left:
                        del self.left[place]
                        family.append(place)
        return family

    def _replaced(self, family: list[Place]) -> list[int]:
        """Return replacements of a family by backtracking; an empty list after too many trials."""
        turned = ChainMap[Need, Need]({}, self.turned)
        tried = [self._options(family[0], turned)]
        found: list[tuple[int, list[Need]]] = []
        for _ in range(PATIENCE * len(family)):
            if len(found) == len(tried):
                for need in found.pop()[1]:
                    del turned[need]
            option = next(tried[-1], None)
            if option is None:
                tried.pop()
                if not tried:
                    break
                continue
            i, m = family[len(found)]
            new = dict(zip(self.ops[i].modes[m], self.ops[i].modes[option], strict=True))
            found.append((option, [need for need in new if need not in turned]))
            turned.update(new)
            if len(found) == len(family):
                return [k for k, _ in found]
            tried.append(self._options(family[len(found)], turned))
        return []

    def _options(self, place: Place, turned: Mapping[Need, Need]) -> Iterator[int]:
        """Yield the modes that agree with the chosen replacements of layouts."""
        i, m = place
        own = self.ops[i].modes[m]
        for k in self.useful[i]:
            new = self.ops[i].modes[k]
            pairs = dict(zip(own, new, strict=True))  # an op may read a tensor twice
            if all(turned.get(a, b) == b == pairs[a] for a, b in zip(own, new, strict=True)):
                yield k


FORMAT, PROBLEM = "layoutopt/certificate/1", "conversion"


@dataclass(frozen=True)
class ConversionVerdict:
    """Cost and bound that a certificate proves for a network."""

    asked: Asked  # the problem
    score: tuple[int, ...]  # for each objective the cost of the layouts
    bound: tuple[int, ...]  # for each objective a lower bound for all layouts
    unverified: bool  # whether the bound is unverified

    def __str__(self) -> str:
        score, bound = (
            ", ".join(f"{name} {x:,}" for name, x in zip(self.asked.objectives(), own, strict=True))
            for own in (self.score, self.bound)
        )
        found = f"{score} is optimal" if score == bound else f"{score}; the bound is {bound}"
        return f"{found}, {'unverified' if self.unverified else 'proved without a solver'}"


def certify(result: ConversionResult, asked: Asked, limits: Limits | None = None) -> dict[str, Any]:
    """Return the certificate of a conversion as plain data.

    Bounds without evidence remain unverified.  Raises ``InputError`` if some ops could not be
    converted, as the problem was then changed.
    """
    if result.partial:
        raise InputError("no certificate, as some ops could not be converted; see the notes")
    return {
        "format": FORMAT,
        "problem": PROBLEM,
        "version": result.version,
        "asked": asked.document(),
        "graphs": [certify_graph(result.conversion, limits)],
    }


def certify_graph(conversion: Conversion, limits: Limits | None = None) -> dict[str, Any]:
    """Return the statement of one graph, and the claim with its evidence."""
    found = conversion.state()
    statement = checker.stated(found.document)
    weights = statement.weights()
    instead = folding(statement, found.useful)
    folded = checker.folded(statement, instead, weights)
    problem = checker.problem(folded, weights)
    kept = [sorted(set(own)) for own in instead]
    modes = [own.index(mode) for own, mode in zip(kept, found.chosen, strict=True)]
    chosen = [(op.modes[mode], op.first) for op, mode in zip(folded.ops, modes, strict=True)]
    taken = {need for own, first in chosen for need in own[:first]}
    given = Counter(need for own, first in chosen for need in own[first:])
    labels = [*modes, *(int(n in taken or given[n] == 2) for n in folded.taken())]
    proof = evidence(problem, labels, limits)
    least = list(conversion.bound)
    if checker.split(-bound(problem, proof)[0], weights) < least:
        proof = {"kind": "word", "bound": -checker.weigh(least, weights)}
    claim = {
        "score": list(conversion.objective),
        "bound": list(conversion.bound),
        "modes": found.chosen,
        "instead": instead,
        "evidence": proof,
    }
    return {"name": conversion.graph.name, "statement": found.document, "claim": claim}


def check_certificate(
    model: Model | str | Path, certificate: object, output: Model | str | Path | None = None
) -> ConversionVerdict:
    """Verify a certificate for a network, and count the transforms of the converted one.

    Raises ``Refused`` if the certificate is wrong, for another network, or proves less than it
    claims, and ``InputError`` if a network cannot be read.
    """
    if entry(certificate, "format") != FORMAT or entry(certificate, "problem") != PROBLEM:
        raise Refused(f"it is not a certificate of a {PROBLEM} in format {FORMAT}")
    asked = Asked.of(entry(certificate, "asked"))
    arguments = asked.arguments()
    own = _source(model, simplified).graph
    [graph] = listed(entry(certificate, "graphs"), 1, "graphs")
    try:
        _compare(_stated(own, arguments), entry(graph, "statement"))
        unverified = checker.verify(entry(graph, "statement"), entry(graph, "claim"))
    except Refused as error:
        raise Refused(f"graph {own.name!r}: {error}") from None
    claim = graph["claim"]
    verdict = ConversionVerdict(asked, tuple(claim["score"]), tuple(claim["bound"]), unverified)
    if output is not None:
        _check_output(own, _source(output).graph, verdict)
    return verdict


def _source(
    model: Model | str | Path, simplify: Callable[[Model], SimplifiedModel] | None = None
) -> OnnxSource:
    given = load(model) if isinstance(model, str | Path) else loaded(model)
    with errors_at(file=given.name):
        network, _ = as_runtimes_read(given.model)
        if simplify is None:
            return read_model(network)
        plain = simplify(network)
        return read_model(plain.model, plain.weights)


def _stated(graph: ConversionGraph, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the statement of a graph for the arguments, if they are valid for it."""
    try:
        return state_graph(graph, **arguments).document
    except InputError as error:
        raise Refused(f"the arguments do not apply to it: {error}") from None


def _compare(own: Mapping[str, Any], given: object) -> None:
    """Refuse a statement that differs from that of the network."""
    if given == own:
        return
    for key in ("objectives", "tensors"):
        if entry(given, key) != own[key]:
            raise Refused(f"{key} differ from those of the network")
    ops = listed(entry(given, "ops"), len(own["ops"]), "ops")
    for one, other in zip(own["ops"], ops, strict=True):
        if one != other:
            raise Refused(f"op {one['op']!r} differs from that of the network")
    raise Refused("the statement contains more than the network")


def _check_output(given: ConversionGraph, new: ConversionGraph, verdict: ConversionVerdict) -> None:
    """Compare transforms and changed ops with the score; bytes only where nothing is padded."""
    found = tally(new)
    asked = verdict.asked
    counted = {"count": found.transforms, "changed": _visibly_changed(given, new)}
    if not asked.padding:
        counted["bytes"] = found.bytes
    for name, score in zip(asked.objectives(), verdict.score, strict=True):
        if counted.get(name, 0) > score:
            what = "ops" if name == "changed" else "transforms"
            raise Refused(f"{what} of the new network: {name} {counted[name]}, not {score}")


def _visibly_changed(given: ConversionGraph, new: ConversionGraph) -> int:
    """Return how many ops that compute along axes have other types, attributes or known shapes.

    Ops are compared by name.  Those of other names are left out, and so are ops with bodies, and
    views, which are written in several ways.
    """
    others = {op.name: op for op in new.ops}
    pairs = [(op, others[op.name]) for op in given.ops if op.name in others and not op.bodies]
    return sum(
        computes_along_axes(op) and category_of(op) is not Category.VIEW and _differs(op, other)
        for op, other in pairs
    )


def _differs(op: Op, other: Op) -> bool:
    """Return whether two ops have other types, attributes or known shapes.

    Axes of size 1 may be anywhere: that changes no op.  Where such axes have other places, or could
    have changed places with each other, attributes are not compared.
    """
    shapes = op.shapes, other.shapes
    same = op.shapes == other.shapes
    loose = any(shape.count(1) > same for shape in op.shapes if shape)
    if op.type != other.type or (not loose and repr(op.attributes) != repr(other.attributes)):
        return True
    return any(
        [size for size in a if size != 1] != [size for size in b if size != 1]
        for a, b in zip(*shapes, strict=False)
        if a and b and all(isinstance(size, int) for size in (*a, *b))
    )
