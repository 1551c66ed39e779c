"""Pictures of graphs: what colours say of locations, in small tensors and in large ones."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from benchmarks.figures import FIGURES, chained_calls
from layoutopt.generate.random_graphs import random_graph
from layoutopt.graphs import display
from layoutopt.graphs.tensor import Tensor
from layoutopt.graphs.unwinding import Graph
from layoutopt.pictures.cards import HEAD
from layoutopt.pictures.colours import palette
from layoutopt.pictures.grids import BLANK, OTHERS, OWN
from layoutopt.pictures.svg import SOFT, Picture
from layoutopt.tiles.memory import TileMemory
from layoutopt.unwinding import unwind
from tests.support import refused

SVG = "{http://www.w3.org/2000/svg}"

GRAPHS: dict[str, Callable[[], Graph]] = {
    **FIGURES,
    **{f"random-{seed}": lambda seed=seed: random_graph(seed, elements=9) for seed in range(12)},
}


@pytest.fixture(autouse=True, scope="module")
def colours() -> Iterator[None]:
    """Choose colours once for equal numbers of them, which takes longer than all the rest."""
    once = cache(palette)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(display, "palette", lambda sizes: once(tuple(sizes)))
        yield


@dataclass(frozen=True)
class Drawn:
    """One tensor of a picture: its frame with its name above, and the colours of its cells."""

    kind: str
    box: tuple[float, float, float, float]
    fills: tuple[str, ...]
    tips: tuple[str, ...]
    words: tuple[str, ...]


def read(picture: Picture) -> dict[str, Drawn]:
    """Return the tensors of a picture by name."""
    found = {}
    for group in ElementTree.fromstring(str(picture).encode()).findall(f"{SVG}g[@class]"):
        kind, _, rest = str(group.get("class")).partition(" ")
        if kind != "tensor":
            continue
        frame = group.find(f"{SVG}g[@class='frame']/{SVG}rect")
        assert frame is not None
        x, y, w, h = (float(str(frame.get(side))) for side in ("x", "y", "width", "height"))
        cells = group.findall(f"{SVG}g[@class='cells']/{SVG}rect")
        (title,) = group.findall(f"{SVG}title")
        name = str(title.text).partition(": ")[0]
        found[name] = Drawn(
            rest,
            (x, y - HEAD, x + w, y + h),
            tuple(str(cell.get("fill")) for cell in cells),
            tuple(str(cell[0].text) for cell in cells),
            tuple(str(t.text) for t in group.findall(f"{SVG}g[@text-anchor]/{SVG}text")),
        )
    return found


def labels(picture: Picture) -> list[str]:
    """Return what stands at the ValuedPairs of a picture."""
    root = ElementTree.fromstring(str(picture).encode())
    texts = root.findall(f"{SVG}g[@class='values']/{SVG}text")
    return sorted(str(text.text) for text in texts)


@pytest.mark.parametrize("name", GRAPHS)
def test_equal_colours_are_equal_locations(name: str) -> None:
    """Every tensor is there under its name, with as many cells as elements, also when solved.

    Then two coloured cells have one colour if and only if their elements have one location.
    """
    graph = GRAPHS[name]()
    for result in (None, unwind(graph), unwind(graph, "greedy0")):
        found = read(graph.draw(result))
        assert {name: (len(drawn.fills), drawn.kind) for name, drawn in found.items()} == {
            t.name: (t.size, t.kind.value.replace(" ", "-")) for t in graph.tensors()
        }
        if result is None:
            continue
        where = graph.locations(result.layouts)
        pairs = set()
        for tensor, drawn in found.items():
            assert BLANK not in drawn.fills
            pairs |= set(zip(where[tensor].reshape(-1).tolist(), drawn.fills, strict=True))
        coloured = {(n, fill) for n, fill in pairs if fill != OWN}
        assert len({n for n, _ in coloured}) == len({fill for _, fill in coloured}) == len(coloured)
        assert not {n for n, _ in coloured} & {n for n, fill in pairs if fill == OWN}


def mixed() -> Graph:
    """Return a graph in which some is known before anything is chosen."""
    graph = Graph("mixed")
    x, s = graph.sink((2,), name="x"), graph.source((2,), name="s")
    joined = graph.concat([x, s], 0, name="joined")
    graph.reverse(joined, (0,), name="turned")
    graph.barrier([joined], (2,), name="after_x")
    graph.barrier([s], (2,), name="after_s")
    graph.fixed_point([x], (2,), name="fixed")
    graph.identity("after_x", name="view_of_barrier")
    graph.barrier(["fixed"], (1,), name="after_fixed")
    return graph


def test_only_chosen_tensors_are_drawn() -> None:
    """With ``tensors`` the others are not there, nor the pairs that they are in."""
    graph = chained_calls(10, 9, 1)
    picture = graph.draw(tensors=["x", graph.tensor("matmul"), "a", "x"])
    assert list(read(picture)) == ["x", "matmul", "a"]
    assert labels(picture) == ["1", "1", "9"]
    assert list(read(graph.draw(tensors="w"))) == ["w"]
    assert list(read(graph.draw(tensors=graph.tensor("w")))) == ["w"]
    assert read(graph.draw(tensors=[])) == {}
    for unknown in ("y", Graph().sink((1,))):
        with refused("tensor"):
            mixed().draw(tensors=[unknown])


def test_pieces_arrays_handles_and_results_are_one() -> None:
    """Layouts give the same picture in every form that they may have."""
    graph = chained_calls(10, 9, 1)
    result = unwind(graph)
    picture = graph.draw(result)
    assert result.layouts is not None
    where = graph.locations(result.layouts)
    assert graph.draw(result.layouts) == picture
    assert graph.draw({graph.tensor(name): pieces for name, pieces in result.layouts.items()}) == (
        picture
    )
    assert graph.draw({name: where[name] for name in result.layouts}) == picture
    assert graph.draw({"x": np.full((3, 2), -1)}) == graph.draw({})


def test_on_a_tile_memory_colours_are_tiles() -> None:
    """What pieces, numbers of locations and rules mean is a tile, and so is what is left out."""
    graph = Graph()
    x = graph.sink((6,), name="x")
    s = graph.source((6,), rule={"kind": "grid", "blocks": [3]}, name="s")
    graph.valued_pair(x, s, 1)
    graph.barrier([x], (3,), name="b")
    graph.tile_memory = TileMemory(3, 100)
    layouts = {"x": [("tile", 2, 0, [(2, -1, 1)]), ("s", 3, 2, [(2, 1, 1)])]}  # 2 1 | 1 2
    found = read(graph.draw(layouts))
    assert [tip.partition("at tile ")[2] for tip in found["x"].tips] == list("211222")
    assert [tip.partition("at tile ")[2] for tip in found["s"].tips] == list("001122")
    assert [tip.partition("at tile ")[2] for tip in found["b"].tips] == list("012")
    zero, one, two = found["b"].fills
    assert len({zero, one, two, BLANK, OWN}) == 5
    assert found["x"].fills == (two, one, one, two, two, two)
    assert found["s"].words == tuple("001122")
    assert labels(graph.draw(layouts)) == ["1 · 3 of 6"]
    lie = graph.locations(layouts)
    assert [(lie[name] - lie["b"][0]).tolist() for name in "xs"] == [
        [2, 1, 1, 2, 2, 2],
        [0, 0, 1, 1, 2, 2],
    ]
    where = graph.locations()
    numbers = np.r_[where["b"][[2, 1]], where["s"][3:5], -1, -1]
    assert graph.draw({x: numbers}) == graph.draw(layouts)
    before = read(graph.draw())
    assert (before["x"].fills, before["b"].fills) == ((BLANK,) * 6, found["b"].fills)
    with refused("elements 3..3 must be within 0..2"):
        graph.draw({"x": [("tile", 3, 0, [(6, 0, 1)])]})


def test_hooks_tell_the_tiles_of_outputs() -> None:
    """Outputs of hooks are on tiles also where sinks take them; where a hook is unknown, plain."""
    graph = Graph()
    x, y = graph.sink((4,), name="x"), graph.sink((4,), name="y")
    w = graph.source((4,), name="w", mapping=[3, 2, 1, 0])
    b = graph.barrier([x], (4,), hook="normalisation", name="b")
    graph.valued_pair(graph.barrier([y], (4,), hook="same", name="c"), w, 3)
    graph.tile_memory = TileMemory(4, 16)
    layouts = {"x": [("w", 0, 0, [(4, 1, 1)])], "y": [("b", 0, 0, [(4, 1, 1)])]}
    assert labels(graph.draw(layouts)) == ["3 · 4 of 4"]
    where = graph.locations(layouts)
    assert {tuple(tiles) for tiles in where.values()} == {tuple(where["w"])}
    graph.barrier([b], (4,), hook="unheard of", name="last")
    graph.valued_pair("last", w, 1)
    assert labels(graph.draw(layouts)) == ["1", "3 · 4 of 4"]
    assert read(graph.draw(layouts))["last"].fills == ()
    with refused("unknown hook 'unheard of'"):
        graph.locations(layouts)


def drawn(layouts: dict[str, object]) -> Picture:
    """Draw layouts of a sink ``x`` beside a source ``s`` and a view ``v``."""
    graph = Graph()
    x = graph.sink((2,), name="x")
    graph.source((2,), name="s")
    graph.identity(x, name="v")
    return graph.draw(layouts)


def test_large_tensors_are_plain_boxes() -> None:
    """Above 256 elements a tensor tells its shape and number of elements; so do empty ones.

    So does what comes from more elements than can be traced at once.  Pieces of huge sinks, and of
    small ones in huge sources, are not written out.
    """
    graph = Graph()
    graph.sink((16, 16), name="fits")
    graph.sink((257,), name="large")
    graph.sink((3, 0), name="empty")
    picture = graph.draw()
    cells = {name: len(drawn.fills) for name, drawn in read(picture).items()}
    assert cells == {"fits": 256, "large": 0, "empty": 0}
    for told in ("257 elements", "sink [257]", "no elements", "sink [3, 0]"):
        assert f">{told}<" in str(picture)
    graph = Graph()
    huge = graph.sink((2**40,), name="huge")
    graph.slice(huge, (0,), (2,), name="part")
    graph.barrier([huge], (2,), name="known")
    graph.source((2**40,), name="source")
    graph.sink((2,), name="x")
    found = read(graph.draw({}))
    assert (found["part"].fills, len(found["known"].fills)) == ((), 2)
    whole = [("source", 0, 0, ((2**40, 1, 1),))]
    found = read(graph.draw({"huge": whole, "x": [("source", 2**39, 0, ((2, 1, 1),))]}))
    assert found["x"].tips == tuple(f"x[{i}]: at source[{2**39 + i}]" for i in range(2))


def test_pairs_of_tensors_that_are_not_traced() -> None:
    """A result tells how many positions match; else lines are neither green nor grey."""
    graph = Graph()
    x = graph.sink((2**21,))
    for value in (2, 1):
        graph.valued_pair(x, graph.source((2**21,)), value)
    result = unwind(graph)
    assert labels(graph.draw(result)) == ["1 · 0 of 2,097,152", "2 · 2,097,152 of 2,097,152"]
    picture = graph.draw(result.layouts)
    assert labels(picture) == ["1", "2"]
    (ties,) = ElementTree.fromstring(str(picture).encode()).findall(f"{SVG}g[@class='ties']")
    assert {path.get("stroke") for path in ties} == {SOFT}


def test_pictures_stay_small() -> None:
    """Of 40 tensors not all cells are drawn; the 41st leads to numbers of each type instead."""
    graph = Graph("many")
    for _ in range(40):
        graph.source((16, 16))
    picture = graph.draw()
    assert not picture.reduced
    assert sum(len(t.fills) for t in read(picture).values()) <= 1200
    assert len(str(picture)) < 200_000
    graph.sink((2,))
    assert graph.draw().reduced
    for told in ("41 tensors are too many", "many", "40", "sink", "source"):
        assert told in str(graph.draw())
    assert not graph.draw(tensors=graph.tensors()[:40]).reduced


def test_a_graph_of_10_000_ops_is_a_short_table() -> None:
    """Picture and notebook output of a huge graph are a few kilobytes."""
    graph = Graph("<huge>", "described & drawn")
    x = graph.sink((4,))
    for _ in range(10_000):
        x = graph.identity(x)
    picture = graph.draw()
    shown = graph._repr_html_()
    assert picture.reduced
    assert len(str(picture)) < 3_000
    assert len(shown) < 10_000
    assert shown.count("<tr>") == 31
    assert "9,971 more ops" in shown
    assert "&lt;huge&gt;" in shown
    assert "described &amp; drawn" in shown


def test_names_are_escaped() -> None:
    """Names of any letters, also such that XML forbids, are drawn and come out as they went in."""
    graph = Graph("<svg>&\"'")
    x = graph.sink((1,), name="<b>&\"'\x01")
    graph.valued_pair(x, graph.source((1,), ["</title>"], name="]]>"), 1)
    found = read(graph.draw(unwind(graph)))
    assert set(found) == {"<b>&\"'\ufffd", "]]>"}
    assert found["]]>"].tips == ("]]>[0]: at location '</title>'",)
    ElementTree.fromstring(graph._repr_html_().encode())


DRAW = (
    "from benchmarks.figures import FIGURES\n"
    "from layoutopt.generate.random_graphs import random_graph\n"
    "from layoutopt.unwinding import unwind\n"
    "for graph in (FIGURES['call'](), random_graph(8)):\n"
    "    print(graph.draw(), graph.draw(unwind(graph)), graph._repr_html_())\n"
)


def test_pictures_are_the_same_every_time(capsys: pytest.CaptureFixture[str]) -> None:
    """Two processes that hash strings differently, this one and another, draw the same."""
    other = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
    there = subprocess.run(
        [sys.executable, "-c", DRAW],
        env={"PYTHONHASHSEED": other, "PATH": "", "PYTHONUTF8": "1"},
        capture_output=True,
        check=True,
        timeout=120,
    ).stdout.decode()
    exec(DRAW, {})
    here = capsys.readouterr().out
    assert "<svg" in here
    assert here == there


def test_files(tmp_path: Path) -> None:
    """A file is written whole, not replaced unless asked, and nothing else is left behind.

    Text, SVG and HTML forms hold the same picture; the repr does not.
    """
    path, picture = tmp_path / "picture.svg", mixed().draw()
    assert str(picture) == picture.svg == picture._repr_svg_()
    assert str(picture).removeprefix("<svg ") in picture._repr_html_()
    assert len(repr(picture)) < 100
    for name, told in [("a.png", ".svg"), ("missing/a.svg", "cannot be written"), ("a", ".svg")]:
        with refused(told, name):
            picture.save(tmp_path / name)
    assert list(tmp_path.iterdir()) == []
    picture.save(path)
    assert path.read_text(encoding="utf-8") == f"{picture}\n"
    path.write_text("mine")
    with refused("exists already"):
        picture.save(str(path))
    assert path.read_text() == "mine"
    picture.save(path, overwrite=True)
    assert path.read_text(encoding="utf-8") == f"{picture}\n"
    assert list(tmp_path.iterdir()) == [path]


# Large tensors in pictures: whose locations their elements take


Stripes = list[tuple[str, float, str]]
"""Fill, width and tip of each."""


def stripes(picture: Picture) -> dict[str, Stripes]:
    """Return the stripes of each tensor of a picture."""
    found = {}
    for group in ElementTree.fromstring(str(picture).encode()).findall(f"{SVG}g[@class]"):
        if not str(group.get("class")).startswith("tensor"):
            continue
        name = str(group[0].text).partition(": ")[0]
        found[name] = [
            (str(rect.get("fill")), float(str(rect.get("width"))), str(rect[0].text))
            for rect in group.findall(f"{SVG}g[@class='stripes']/{SVG}rect")
        ]
    return found


def large(size: int) -> tuple[Graph, Tensor, dict[str, list[object]]]:
    """Return a graph of two sinks, and layouts: half of ``x`` at ``s``, a fifth at ``t``."""
    graph = Graph()
    x = graph.sink((size,), name="x")
    graph.sink((size,), name="y")
    graph.source((size,), name="s")
    graph.source((size,), name="t")
    half, fifth = size // 2, size // 5
    own = size - half - fifth
    pieces = [
        ("s", 0, 0, ((half, 1, 1),)),
        ("t", 0, half, ((fifth, 1, 1),)),
        ("x", half + fifth, half + fifth, ((own, 1, 1),)),
    ]
    return graph, x, {"x": pieces, "y": [("y", 0, 0, ((size, 1, 1),))]}


@pytest.mark.parametrize("size", [1000, 2**20 * 10])
def test_equal_colours_are_one_owner(size: int) -> None:
    """A source has the colour of the stripes that lie there; own locations are pale.

    What ``y`` takes of ``x`` has a colour in both; values of mappings belong to nobody.
    """
    graph, _, layouts = large(size)
    found = stripes(graph.draw(layouts))
    [(s, _, _)], [(t, _, _)] = found["s"], found["t"]
    assert [fill for fill, _, _ in found["x"]] == [s, OWN, t]
    assert [fill for fill, _, _ in found["y"]] == [OWN]
    assert len({s, t, OWN}) == 3
    graph.valued_pair("x", "y", 1)
    layouts = {name: [("x", 0, 0, ((size, 1, 1),))] for name in "xy"}
    found = stripes(graph.draw(layouts))
    [(x, _, told)], [(y, _, _)] = found["x"], found["y"]
    assert x == y != OWN
    assert told == f"{size:,} at locations of x"
    mapped = Graph()
    mapped.source((300,), list(range(300)), name="m")
    told = "300 at locations named by mappings"
    assert stripes(mapped.draw({}))["m"][0][::2] == (OTHERS, told)


def test_what_depends_on_sinks_is_blank_before_they_are_laid_out() -> None:
    """White are sinks, their views, and barriers that read any of them; the rest is coloured."""
    graph = mixed()
    found = read(graph.draw())
    blank = {name: [fill == BLANK for fill in drawn.fills] for name, drawn in found.items()}
    assert blank == {
        "x": [True, True],
        "s": [False, False],
        "joined": [True, True, False, False],
        "turned": [False, False, True, True],
        "after_x": [True, True],
        "after_s": [False, False],
        "fixed": [False, False],
        "view_of_barrier": [True, True],
        "after_fixed": [False],
    }
    assert found["turned"].fills[:2] == found["s"].fills[::-1]
    assert not any(OWN in drawn.fills for drawn in found.values())
