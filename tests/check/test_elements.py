"""The specification on layouts made by hand: what they score, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from xml.etree import ElementTree

import pytest

from layoutopt.base import result
from layoutopt.base.result import Piece
from layoutopt.check import elements, order
from layoutopt.check.elements import Evaluation, most
from layoutopt.check.order import dependencies
from layoutopt.graphs.unwinding import Graph


def evaluate(graph: Graph, layouts: Mapping[str, Sequence[Piece]]) -> Evaluation:
    """Return what both ways to look at layouts say."""
    found = elements.evaluate(graph, layouts)
    assert elements.by_elements(graph, layouts) == found
    assert elements.by_pieces(graph, layouts) == found
    return found


def whole(origin: str, size: int) -> tuple[Piece, ...]:
    """Return the layout that takes a tensor as it is."""
    return ((origin, 0, 0, ((size, 1, 1),)),)


def transposed() -> Graph:
    """Return a sink (2, 3) whose transposed is tied to a source, each match worth 7.5."""
    graph = Graph("transposed")
    x = graph.sink((2, 3), name="x")
    target = graph.source((3, 2), name="t")
    graph.valued_pair(graph.dim_shuffle(x, (1, 0)), target, 7.5)
    return graph


class TestScores:
    """What legal layouts earn."""

    def test_full_match(self) -> None:
        """Element (i, j) of x takes element (j, i) of t: all six match, 45 in all."""
        piece = ("t", 0, 0, ((2, 1, 3), (3, 2, 1)))
        found = evaluate(transposed(), {"x": (piece,)})
        assert found.violations == ()
        assert (found.score, found.max_score) == (Decimal(45), Decimal(45))
        [pair] = found.pairs
        assert (pair.a, pair.b, pair.value) == ("dim_shuffle0", "t", Decimal("7.5"))
        assert (pair.elements, pair.matched) == (6, 6)
        assert found.order == ("x",)

    def test_part_match(self) -> None:
        """Row-major order instead: only the first and the last element match."""
        found = evaluate(transposed(), {"x": whole("t", 6)})
        assert (found.score, found.pairs[0].matched) == (Decimal(15), 2)

    def test_fresh(self) -> None:
        """A sink's own locations are no source's."""
        found = evaluate(transposed(), {"x": whole("x", 6)})
        assert (found.violations, found.score) == ((), Decimal(0))

    def test_one_location_for_many(self) -> None:
        """A stride of 0 gives every element the same location."""
        found = evaluate(transposed(), {"x": (("t", 4, 0, ((6, 0, 1),)),)})
        assert found.pairs[0].matched == 1

    def test_fresh_locations_of_another(self) -> None:
        """Sinks that name the same owner agree, others do not; pairs are scored one by one."""
        graph = Graph()
        x, y, z = (graph.sink((2,), name=n) for n in "xyz")
        graph.valued_pair(x, y, 3)
        graph.valued_pair(x, z, "0.25")
        graph.valued_pair(x, y, -1)
        layouts = {"x": whole("x", 2), "y": whole("x", 2), "z": whole("z", 2)}
        found = evaluate(graph, layouts)
        assert [p.matched for p in found.pairs] == [2, 0, 2]
        assert found.score == 4
        assert found.max_score == most(graph) == Decimal("4.5")
        layouts["z"] = (("x", 1, 0, ((2, -1, 1),)),)  # backwards: no position agrees
        assert evaluate(graph, layouts).pairs[1].matched == 0

    def test_mappings(self) -> None:
        """Equal values of two sources are one location, 1 and "1" are not."""
        graph = Graph()
        graph.source((3,), [1, "1", 5], name="s")
        graph.source((2,), [1, 1], name="t")
        x = graph.sink((3,), name="x")
        y = graph.sink((3,), name="y")
        graph.valued_pair(x, y, 1)
        layouts = {"x": whole("s", 3), "y": (("t", 0, 0, ((2, 1, 1),)), ("s", 2, 2, ((1, 1, 1),)))}
        assert evaluate(graph, layouts).pairs[0].matched == 2  # 1 1 and 5 5, not "1" 1

    def test_exact_sums(self) -> None:
        """Values far apart add up without rounding."""
        graph = Graph()
        x, s = graph.sink((1,), name="x"), graph.source((1,), name="s")
        for value in ("0.1", "0.2", "1e-30", "1e20"):
            graph.valued_pair(x, s, value)
        score = evaluate(graph, {"x": whole("s", 1)}).score
        assert str(score) == "100000000000000000000.300000000000000000000000000001"

    @pytest.mark.parametrize("far", [2**31, 2**32])
    def test_numbers_of_any_size(self, far: int) -> None:
        """Locations behind billions of others are told apart, of which no array is made."""
        graph = Graph()
        graph.source((far + 1,), name="s")
        x, y = graph.sink((1,), name="x"), graph.sink((1,), name="y")
        graph.valued_pair(x, y, 1)
        graph.valued_pair(y, graph.source((1,), name="t"), 1)
        layouts = {"x": whole("s", 1), "y": (("s", far, 0, ()),)}
        assert [pair.matched for pair in evaluate(graph, layouts).pairs] == [0, 0]
        layouts["y"] = whole("t", 1)
        assert [pair.matched for pair in evaluate(graph, layouts).pairs] == [0, 1]

    def test_sizes_zero_and_one(self) -> None:
        """A tensor without elements needs no pieces; a rank-0 tensor has one element."""
        graph = Graph()
        x, y = graph.sink((0, 3), name="x"), graph.sink((), name="y")
        graph.valued_pair(x, graph.source((0, 3)), 5)
        graph.valued_pair(y, graph.source((), name="s"), 2)
        found = evaluate(graph, {"x": (), "y": whole("s", 1)})
        assert (found.violations, found.score) == ((), Decimal(2))
        assert [p.elements for p in found.pairs] == [0, 1]


class TestCoverage:
    """Layouts that do not cover every sink element exactly once."""

    def test_violations(self) -> None:
        """Gaps, overlaps, pieces outside, unknown names: one line each, and no score."""
        cases: list[tuple[dict[str, tuple[Piece, ...]], str]] = [
            ({}, "sink 'x': has no layout"),
            ({"x": ()}, "sink 'x': pieces set 0 elements of 6"),
            ({"x": whole("t", 5)}, "sink 'x': pieces set 5 elements of 6"),
            ({"x": whole("t", 7)}, "piece 0: its 'from' elements 0..6 leave 0..5"),
            ({"x": (*whole("t", 3), ("t", 0, 2, ((4, 1, 1),)))}, "pieces set 7 elements of 6"),
            (
                {"x": (*whole("t", 3), ("t", 0, 2, ((3, 1, 1),)))},
                "1 elements are set twice instead of others",
            ),
            ({"x": (("t", 0, 0, ((6, 1, 0),)),)}, "5 elements are set twice"),
            ({"x": (("t", 0, 1, ((6, 1, 1),)),)}, "its 'to' elements 1..6 leave 0..5"),
            ({"x": (("t", 0, 4, ((6, 1, -1),)),)}, "its 'to' elements -1..4 leave 0..5"),
            ({"x": (("t", 1, 0, ((6, 1, 1),)),)}, "its 'from' elements 1..6 leave 0..5"),
            ({"x": (("t", 4, 0, ((6, -1, 1),)),)}, "its 'from' elements -1..4 leave 0..5"),
            ({"x": (("t", 0, 0, ((0, 1, 1),)),)}, "piece 0: an extent is below 1"),
            ({"x": (("t", 0, 0, ((2, 1, 1), (-3, 1, 1))),)}, "an extent is below 1"),
            ({"x": whole("u", 6)}, "its origin 'u' is no source, barrier, fixed point or sink"),
            ({"x": whole("dim_shuffle0", 6)}, "its origin 'dim_shuffle0' is no source"),
            ({"x": whole("t", 6), "t": whole("t", 6)}, "layouts: 't' is no sink"),
        ]
        for layouts, reason in cases:
            found = evaluate(transposed(), layouts)
            assert found.score is None
            assert found.max_score == 45
            assert any(reason in line for line in found.violations), found.violations

    def test_every_sink_is_named(self) -> None:
        """Each bad piece and each sink without a layout gets a line of its own."""
        graph = transposed()
        graph.sink((2,), name="y")
        found = evaluate(graph, {"x": (*whole("t", 7), *whole("u", 1))})
        assert len(found.violations) == 3
        found = evaluate(graph, {"y": (*whole("t", 7), *whole("u", 1))})
        assert len(found.violations) == 3

    def test_pieces_by_hand(self) -> None:
        """Two nested loops, read and written in one order."""
        piece = ("t", 1, 5, ((2, 10, -1), (3, 0, -2)))
        assert result.read(piece).tolist() == [1, 1, 1, 11, 11, 11]
        assert result.written(piece).tolist() == [5, 3, 1, 4, 2, 0]
        assert result.elements(piece) == 6
        assert result.fault(piece, 6, 12) is None
        assert result.fault(piece, 5, 12) is not None
        assert result.fault(piece, 6, 11) is not None
        assert result.cover([piece], 6) is None
        assert result.cover([], 0) is None


def dynamic() -> Graph:
    """Return two sinks and two barriers, each of which reads the other barrier's sink.

    ``x`` (4) holds ``y`` (2): barrier ``up`` makes an x from y, barrier ``down`` a y from x.
    """
    graph = Graph("dynamic")
    x, y = graph.sink((4,), name="x"), graph.sink((2,), name="y")
    graph.valued_pair(graph.barrier([y], (4,), name="up"), x, 100)
    graph.valued_pair(graph.barrier([x], (2,), name="down"), y, 100)
    return graph


class TestOrder:
    """Barriers are known only when all elements of all their inputs are."""

    def test_one_way_or_the_other(self) -> None:
        """Each barrier alone may be taken from; then its reader's sink comes first."""
        found = evaluate(dynamic(), {"x": whole("up", 4), "y": whole("y", 2)})
        assert (found.violations, found.score, found.order) == ((), 400, ("y", "x"))
        found = evaluate(dynamic(), {"x": whole("x", 4), "y": whole("down", 2)})
        assert (found.violations, found.score, found.order) == ((), 200, ("x", "y"))

    def test_both_are_a_cycle(self) -> None:
        """Taken from both, neither ever becomes known; the score is still told."""
        found = evaluate(dynamic(), {"x": whole("up", 4), "y": whole("down", 2)})
        assert found.violations == ("barrier order: 'up', 'down' wait for each other",)
        assert found.score == 600

    def test_one_element_is_enough(self) -> None:
        """A single element that waits for its own barrier is a cycle."""
        mixed = (("x", 0, 0, ((3, 1, 1),)), ("up", 3, 3, ((1, 1, 1),)))
        found = evaluate(dynamic(), {"x": mixed, "y": whole("down", 2)})
        assert len(found.violations) == 1
        found = evaluate(dynamic(), {"x": mixed, "y": whole("y", 2)})
        assert found.violations == ()

    def test_own_barrier(self) -> None:
        """A sink cannot take the locations of a barrier that reads it."""
        graph = Graph()
        x = graph.sink((2,), name="x")
        graph.valued_pair(x, graph.barrier([x], (2,), name="b"), 1)
        found = evaluate(graph, {"x": whole("b", 2)})
        assert found.violations == ("barrier order: 'b' waits for itself",)

    def test_a_barrier_named_tile(self) -> None:
        """Without a tile memory this is a name like any other."""
        graph = Graph()
        x = graph.sink((2,), name="x")
        graph.valued_pair(x, graph.barrier([x], (2,), name="tile"), 1)
        found = evaluate(graph, {"x": whole("tile", 2)})
        assert (found.violations, found.score) == (("barrier order: 'tile' waits for itself",), 2)

    def test_fixed_points_do_not_wait(self) -> None:
        """With a fixed point instead, the same layout is legal."""
        graph = Graph()
        x = graph.sink((2,), name="x")
        graph.valued_pair(x, graph.fixed_point([x], (2,), name="f"), 1)
        found = evaluate(graph, {"x": whole("f", 2)})
        assert (found.violations, found.score) == ((), 2)

    def test_part_of_a_sink(self) -> None:
        """A barrier may read one half of a sink and give the other half its locations."""
        graph = Graph()
        x = graph.sink((4,), name="x")
        half = graph.slice(x, (0,), (2,))
        graph.valued_pair(graph.slice(x, (2,), (4,)), graph.barrier([half], (2,), name="b"), 1)
        layout = (("x", 0, 0, ((2, 1, 1),)), ("b", 0, 2, ((2, 1, 1),)))
        found = evaluate(graph, {"x": layout})
        assert (found.violations, found.score) == ((), 2)
        assert found.order == (("x", 0), ("x", 1))
        turned = (("b", 0, 0, ((2, 1, 1),)), ("x", 2, 2, ((2, 1, 1),)))
        assert evaluate(graph, {"x": turned}).violations != ()

    def test_chain(self) -> None:
        """Barriers behind barriers: what the last one needs is needed at last."""
        graph = Graph()
        x, y = graph.sink((2,), name="x"), graph.sink((2,), name="y")
        b = graph.barrier([x], (2,), name="b")
        c = graph.barrier([b], (2,), name="c")
        graph.valued_pair(c, y, 1)
        graph.valued_pair(c, x, 1)
        assert evaluate(graph, {"x": whole("x", 2), "y": whole("c", 2)}).order == ("x", "y")
        assert evaluate(graph, {"x": whole("c", 2), "y": whole("y", 2)}).violations != ()

    def test_joint_outputs(self) -> None:
        """All outputs of a barrier become known together."""
        graph = Graph()
        x, _ = graph.sink((1,), name="x"), graph.sink((1,), name="y")
        graph.barrier([x], shapes=[(1,), (1,)], name="b")
        graph.barrier([graph.tensor("b:0")], (1,), name="c")
        assert evaluate(graph, {"x": whole("x", 1), "y": whole("b:1", 1)}).violations == ()
        assert evaluate(graph, {"x": whole("b:1", 1), "y": whole("y", 1)}).violations != ()
        assert evaluate(graph, {"x": whole("c", 1), "y": whole("y", 1)}).violations != ()

    def test_barrier_of_nothing(self) -> None:
        """A barrier without inputs, or with none but empty ones, is known from the start."""
        graph = Graph()
        _, none = graph.sink((1,), name="x"), graph.sink((0,), name="none")
        graph.barrier([], (1,), name="b")
        graph.barrier([none], (1,), name="c")
        for origin in ("b", "c"):
            assert evaluate(graph, {"x": whole(origin, 1), "none": ()}).violations == ()

    def test_barriers_of_what_is_fixed(self) -> None:
        """A barrier of sources and fixed points is known at once; beside sinks it waits."""
        graph = Graph()
        x, y = graph.sink((2,), name="x"), graph.sink((2,), name="y")
        fixed = [graph.source((2,)), graph.fixed_point([x], (2,))]
        graph.barrier(fixed, (2,), name="b")
        graph.barrier([graph.concat([y, *fixed], 0)], (2,), name="c")
        graph.barrier([x], (2,), name="last")
        found = evaluate(graph, {"x": whole("b", 2), "y": whole("y", 2)})
        assert (found.violations, found.order) == ((), ("x", "y"))
        found = evaluate(graph, {"x": whole("c", 2), "y": whole("b", 2)})
        assert (found.violations, found.order) == ((), ("y", "x"))
        found = evaluate(graph, {"x": whole("x", 2), "y": whole("c", 2)})
        assert found.violations == ("barrier order: 'c' waits for itself",)

    def test_views_pass_waiting_on(self) -> None:
        """What a barrier reads is traced through every kind of view, element by element."""
        graph = Graph()
        x, y = graph.sink((4,), name="x"), graph.sink((2, 2), name="y")
        joint = graph.concat([graph.reshape(x, (2, 2)), graph.reverse(y, (0,))], 0)
        last = graph.slice(joint, (3, 0), (4, 2))  # the reversed y's second row: y's first
        graph.barrier([last], (2,), name="b")
        taken = (("b", 0, 2, ((2, 1, 1),)), ("y", 0, 0, ((2, 1, 1),)))
        found = evaluate(graph, {"x": whole("x", 4), "y": taken})
        assert found.violations == ()
        assert found.order == ("x", ("y", 1), ("y", 0))
        turned = (("b", 0, 0, ((2, 1, 1),)), ("y", 2, 2, ((2, 1, 1),)))
        assert evaluate(graph, {"x": whole("x", 4), "y": turned}).violations != ()

    def test_long_chains(self) -> None:
        """Thousands of views behind each other, which are more than calls may be nested."""
        graph = Graph()
        x, y = graph.sink((3,), name="x"), graph.sink((1,), name="y")
        view = x
        for _ in range(2001):
            view = graph.reverse(view, (0,))
        graph.valued_pair(view, x, 1)
        graph.barrier([view], (1,), name="b")
        graph.valued_pair(y, "b", 1)
        found = evaluate(graph, {"x": whole("x", 3), "y": whole("b", 1)})
        assert [pair.matched for pair in found.pairs] == [1, 1]
        assert found.order == ("x", "y")


class TestFaults:
    """Orders that somebody else claims."""

    @pytest.fixture
    def given(self) -> order.Dependencies:
        """Return what waits for what where y's barrier gives x its locations."""
        layouts = {"x": whole("up", 4), "y": (("y", 0, 0, ((1, 1, 1),)), ("y", 1, 1, ((1, 1, 1),)))}
        return dependencies(dynamic(), layouts)

    def test_right_orders(self, given: order.Dependencies) -> None:
        """The derived order is right, and so is any other that waits."""
        steps, cycle = order.derive(given)
        assert (steps, cycle) == (("y", "x"), [])
        assert order.faults(given, steps) == []
        assert order.faults(given, [("y", 1), ("y", 0), ("x", 0)]) == []

    def test_wrong_orders(self, given: order.Dependencies) -> None:
        """Too early, twice, never, and unknown."""
        for steps, reason in [
            (["x", "y"], "'x' is set before the barrier it takes locations of"),
            ([("y", 0), "x", ("y", 1)], "'x' is set before the barrier"),
            (["y", "x", "x"], "'x' is set twice"),
            (["y", ("y", 0), "x"], "('y', 0) is set twice"),
            (["y"], "'x' is never set"),
            ([("y", 0)], "'x' is never set"),
            (["y", "x", "z"], "'z' is no sink"),
            (["y", ("x", 1)], "sink 'x' has no piece 1"),
            (["y", ("x", -1)], "sink 'x' has no piece -1"),
        ]:
            assert any(reason in line for line in order.faults(given, steps)), steps

    def test_all_that_is_wrong_is_told(self, given: order.Dependencies) -> None:
        """What follows an unknown sink or piece is looked at, too."""
        assert order.faults(given, ["z", ("x", 7), "x", "y", "y", "x"]) == [
            "order: 'z' is no sink",
            "order: sink 'x' has no piece 7",
            "order: 'x' is set before the barrier it takes locations of",
            "order: 'y' is set twice",
            "order: 'y' is set twice",
        ]


def test_html() -> None:
    """Notebooks show the score, each broken rule in red, and what pairs earn."""
    found = evaluate(dynamic(), {"x": whole("up", 4), "y": whole("down", 2)})
    page = ElementTree.fromstring(found._repr_html_())
    score, broken, *_ = page.findall("div")
    assert "".join(score.itertext()) == "score 600 of 600"
    assert "".join(broken.itertext()) == found.violations[0]
    assert broken.get("style") == "color:#b3261e"
    rows = [[cell.text for cell in row.findall("td")] for row in page.iter("tr")]
    assert ["down", "y", "100", "2", "2", "0"] in rows
    uncovered = elements.evaluate(dynamic(), {})._repr_html_()
    assert "score - of 600" in uncovered
    assert uncovered.count("has no layout") == 2


def test_a_wrong_layout_never_passes() -> None:
    """Of all layouts of one element of three, made of one piece each, only right ones pass.

    Element e of x may take element o of t, for e and o in -1..3: the layout is legal where
    both exist and the two other elements are set by the other piece.
    """
    graph = Graph()
    graph.valued_pair(graph.sink((3,), name="x"), graph.source((3,), name="t"), 1)
    legal: list[Evaluation] = []
    for e in range(-1, 4):
        for o in range(-1, 4):
            rest = ("x", 1, 1, ((2, 1, 1),))
            found = evaluate(graph, {"x": (("t", o, e, ((1, 1, 1),)), rest)})
            assert (found.violations == ()) == (e == 0 and 0 <= o < 3)
            legal += [] if found.violations else [found]
    assert sorted(int(found.score or 0) for found in legal) == [0, 0, 1]
