"""Solvers by name: built-in ones, functions registered in Python, and entry points of packages."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import layoutopt
from layoutopt import Graph, Result, Status, unwind
from layoutopt.base.entries import Takes, built_in
from layoutopt.registry import find, names
from layoutopt.unwinding import SOLVERS
from tests.cli.conftest import Run, instance, run
from tests.support import install, refused

__all__ = ["instance", "run"]

SOURCE = '''
import numpy as np
from layoutopt import Result

def lazy(problem, limits, start):
    return Result(labelling=problem.labels + np.arange(problem.nodes))

def proud(problem, limits, start):
    """Everything takes the first label, and that is claimed to be the best."""
    labels = np.zeros(problem.nodes, int)
    return Result(labelling=labels, bound=problem.value(labels))

def sure(problem, limits, start):
    return proud(problem, limits, start)

sure.exact = 1

def own(graph, limits, given, places):
    count = places.count
    return {s.index: (np.full(count(s.index), s.index), np.arange(count(s.index)))
            for s in graph.sinks()}

number = 7
'''


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a folder for packages, which is on the path until the test ends."""
    folder = tmp_path / "packages"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    before = set(sys.modules)
    yield folder
    for name in set(sys.modules) - before:
        if str(folder) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def drawn() -> Graph:
    """Return a graph whose sink of three is drawn to a for 2, to b for 1 each, by 9 in all."""
    graph = Graph("drawn")
    x = graph.sink((3,), name="x")
    graph.valued_pair(x, graph.source((3,), name="a"), 2)
    graph.valued_pair(x, graph.source((3,), name="b"), 1)
    return graph


class TestBuiltIn:
    """What needs no package."""

    def test_names_and_kinds(self) -> None:
        """Exact methods first, then heuristics on problems, then those on graphs."""
        assert names() == tuple(built_in()) == SOLVERS
        kinds = [(find(name).takes is Takes.GRAPH, not find(name).proves) for name in SOLVERS]
        assert kinds == sorted(kinds)
        assert find("auto").proves
        assert (find("refined").takes, find("refined").proves) == (Takes.LABELLING, False)
        assert find("greedy0").takes is Takes.GRAPH
        assert not any(find(name).own for name in SOLVERS)

    def test_unknown(self) -> None:
        """The error names everything that is known, registered solvers, too."""
        layoutopt.solver("mine")(lambda *_: Result())
        with refused("unknown solver 'best'; known: auto, cpsat, mip", "greedy0, mine"):
            find("best")


class TestRegistered:
    """Functions, as long as Python runs."""

    def test_solver(self) -> None:
        """A decorated function is a function still, and a solver that unwind finds by its name."""

        @layoutopt.solver("first-label")
        def first(problem: object, _limits: object, _start: object) -> Result:
            """Take the first label everywhere, and claim that nothing is better."""
            labels = np.zeros(problem.nodes, np.int64)
            return Result(labelling=labels, bound=problem.value(labels))

        found = unwind(drawn(), "first-label")
        assert (found.score, found.bound, found.solver) == (6, 6, "first-label")
        assert found.status is Status.OPTIMAL
        assert first.__name__ == "first"
        assert "first-label" in names()

    def test_only_exact_solvers_prove(self) -> None:
        """The same claim is a proof if the solver is registered as exact, and holds."""

        def first(problem: object, _limits: object, _start: object) -> Result:
            labels = np.zeros(problem.nodes, np.int64)
            return Result(labelling=labels, bound=problem.value(labels))

        graph = drawn()
        y = graph.sink((3,), name="y")
        graph.valued_pair(graph.tensor("x"), y, 2)
        graph.valued_pair(y, graph.tensor("b"), 1)
        layoutopt.solver("first-label", exact=True)(first)
        assert unwind(graph, "first-label").status is Status.OPTIMAL
        layoutopt.solver("first-label")(first)  # the later one counts
        found = unwind(graph, "first-label")
        assert (found.status, found.score, found.bound) == (Status.FEASIBLE, 12, 15)

    def test_methods_of_objects(self) -> None:
        """Whatever can be called is a solver, also what takes no attributes."""

        class Fixed:
            def solve(self, problem: object, _limits: object, _start: object) -> Result:
                return Result(labelling=np.zeros(problem.nodes, np.int64), bound=6)

        layoutopt.solver("bound", exact=True)(Fixed().solve)
        assert unwind(drawn(), "bound").status is Status.OPTIMAL

    def test_decorated_functions_tell_that_they_are_exact(self) -> None:
        """So that an entry point that names a decorated function is exact, too."""
        assert layoutopt.solver("one", exact=True)(lambda *_: Result()).exact is True
        assert layoutopt.solver("two")(lambda *_: Result()).exact is False

    def test_heuristic(self) -> None:
        """A function on graphs gives origins of sinks' elements."""

        @layoutopt.heuristic("second")
        def second(graph: Graph, _limits: object, _given: object, places: object) -> object:
            x, b = graph.tensor("x").index, graph.tensor("b").index
            return {x: (np.full(places.count(x), b), np.arange(3))}

        assert unwind(drawn(), "second").score == 3
        with refused("solver second does not support start; use one of auto", "random-greedy"):
            unwind(drawn(), "second", start={})


class TestEntryPoints:
    """Solvers of installed packages."""

    POINTS = (
        "[layoutopt.solvers]\nlazy = tiny:lazy\nproud = tiny:proud\nsure = tiny:sure\n"
        "[layoutopt.heuristics]\nown = tiny:own\n"
    )

    def test_by_name(self, packages: Path) -> None:
        """Both groups, through unwind; what a function calls exact is exact."""
        install(packages, "tiny", self.POINTS, SOURCE)
        assert names() == (*SOLVERS, "lazy", "own", "proud", "sure")
        scores = {name: unwind(drawn(), name) for name in ("lazy", "own", "proud", "sure")}
        assert [str(found.status) for found in scores.values()] == [
            *("feasible", "feasible", "optimal", "optimal")
        ]
        assert [found.score for found in scores.values()] == [0, 0, 6, 6]
        assert find("own").takes is Takes.GRAPH
        assert find("sure").proves

    def test_on_the_command_line(self, packages: Path, run: Run, instance: Path) -> None:
        """``solve`` and ``compare`` take them; ``all`` stands for those of this package."""
        install(packages, "tiny", self.POINTS, SOURCE)
        ran = run("solve", instance, "--solver", "proud", "--json", "-")
        assert ran.code == 0
        assert '"solver":"proud"' in ran.out.replace(" ", "")
        ran = run("compare", instance, "--solver", "all", "--solver", "lazy")
        assert [line.split()[1] for line in ran.out.splitlines()[1:]] == [*SOLVERS, "lazy"]

    def test_nothing_is_loaded_before_it_is_asked_for(self, packages: Path) -> None:
        """Names and built-in solvers need no module of any package."""
        install(packages, "tiny", self.POINTS, "raise RuntimeError('loaded')")
        assert "lazy" in names()
        assert unwind(drawn(), "refined").score == 6
        assert "tiny" not in sys.modules
        reason = "solver 'lazy' of package tiny cannot be loaded: RuntimeError: loaded"
        with refused(reason):
            unwind(drawn(), "lazy")

    @pytest.mark.parametrize(
        ("point", "told"),
        [
            ("gone = missing_module:f", "ModuleNotFoundError"),
            ("gone = tiny:missing", "AttributeError"),
            ("gone = tiny:number", "is not callable: tiny:number is a int"),
            ("gone = tiny:", "cannot be loaded"),
            ("gone = ending:f", "cannot be loaded: SystemExit: 3"),
        ],
    )
    def test_broken_ones(
        self, packages: Path, run: Run, instance: Path, point: str, told: str
    ) -> None:
        """One line when it is asked for, exit code 2, and nobody else is upset."""
        (packages / "ending.py").write_text("import sys\nsys.exit(3)\n")
        install(packages, "tiny", f"[layoutopt.solvers]\n{point}\nlazy = tiny:lazy\n", SOURCE)
        with refused("solver 'gone' of package tiny", told):
            unwind(drawn(), "gone")
        ran = run("solve", instance, "--solver", "gone")
        assert ran.code == 2
        assert len(ran.err.splitlines()) == 1
        assert unwind(drawn(), "lazy").score == 0

    def test_malformed_metadata(self, packages: Path) -> None:
        """A package whose entry points cannot be read is named where a name is not found."""
        install(packages, "broken", "[layoutopt.solvers]\nno equals sign\n", SOURCE)
        install(packages, "tiny", self.POINTS, SOURCE)
        assert unwind(drawn(), "lazy").score == 0
        assert names() == (*SOLVERS, "lazy", "own", "proud", "sure")
        with refused("unknown solver 'best'; known: ", "not readable: broken"):
            find("best")

    def test_offered_twice(self, packages: Path) -> None:
        """Two packages, or two groups, with one name: neither is taken."""
        install(packages, "tiny", "[layoutopt.solvers]\nlazy = tiny:lazy\n", SOURCE)
        install(packages, "other", "[layoutopt.heuristics]\nlazy = other:own\n", SOURCE)
        with refused("solver 'lazy' is ambiguous", "other", "tiny"):
            find("lazy")

    def test_two_versions_of_a_package(
        self, packages: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """What is imported is what counts: the first of the path."""
        install(packages, "tiny", "[layoutopt.solvers]\nlazy = tiny:lazy\n", SOURCE)
        points = "[layoutopt.solvers]\nlazy = tiny:lazy\ngone = tiny:gone\n"
        install(packages / "later", "tiny", points, SOURCE)
        monkeypatch.setattr(sys, "path", [*sys.path, str(packages / "later")])
        assert names() == (*SOLVERS, "lazy")
        assert unwind(drawn(), "lazy").score == 0

    def test_built_in_names_win(self, packages: Path) -> None:
        """A package cannot replace a solver of this package, but what is registered comes first."""
        install(
            packages, "tiny", "[layoutopt.solvers]\nauto = tiny:lazy\nlazy = tiny:lazy\n", SOURCE
        )
        assert unwind(drawn(), "auto").status is Status.OPTIMAL
        assert names() == (*SOLVERS, "lazy")

        @layoutopt.solver("lazy")
        def other(problem: object, _limits: object, _start: object) -> Result:
            return Result(labelling=np.zeros(problem.nodes, np.int64))

        assert unwind(drawn(), "lazy").score == 6
