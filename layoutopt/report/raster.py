"""Pictures as PNG: the SVG that this package writes, drawn by matplotlib.

Only what that SVG has is understood: groups with attributes in common, rectangles, circles,
paths of straight lines and cubic curves, and lines of text.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING
from xml.etree.ElementTree import Element, fromstring

from layoutopt.base.errors import needed

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.path import Path

SCALE = 2.0  # pixels of the picture for each of the drawing

DRAWN = ("rect", "circle", "path", "text")

INHERITED = (
    *("fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-opacity", "opacity"),
    *("font-size", "font-weight", "text-anchor"),
)
"""Attributes that elements have from the group that they are in."""

NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?|[A-Za-z]")

ROUND = 0.5523  # length of the handles of the cubic curve that approximates a quarter of a circle

Style = Mapping[str, str]


def check_installed() -> None:
    """Refuse to make pixels without matplotlib."""
    needed("matplotlib", "a picture as PNG")


def png(svg: str, scale: float = SCALE) -> bytes:
    """Return a picture of this package as PNG on white ground, of so many pixels for each unit."""
    check_installed()
    from matplotlib.figure import Figure

    root = fromstring(svg)  # noqa: S314  # one of our own pictures
    wide, high = float(root.attrib["width"]), float(root.attrib["height"])
    figure = Figure(figsize=(wide / 72, high / 72), dpi=72 * scale, frameon=False)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_xlim(0, wide)
    axes.set_ylim(high, 0)
    axes.set_axis_off()
    for order, (element, style) in enumerate(_flat(root, {})):
        _draw(axes, element, style, order)
    data = io.BytesIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from")  # a box stands for it
        figure.savefig(data, format="png")
    return data.getvalue()


def _flat(element: Element, above: Style) -> Iterator[tuple[Element, Style]]:
    """Yield what is drawn in order, each with the attributes that hold for it."""
    own = {name: value for name, value in element.attrib.items() if name in INHERITED}
    style = {**above, **own}
    if _tag(element) in DRAWN:
        yield element, style
    for child in element:
        yield from _flat(child, style)


def _tag(element: Element) -> str:
    return element.tag.rpartition("}")[2]


def _draw(axes: Axes, element: Element, style: Style, order: int) -> None:
    if _tag(element) == "text":
        _write(axes, element, style, order)
        return
    from matplotlib.patches import PathPatch

    stroke = _colour(style.get("stroke", "none"), style.get("stroke-opacity"))
    width = float(style.get("stroke-width", 1))  # which matplotlib multiplies dashes by
    dashes = [float(n) / width for n in style.get("stroke-dasharray", "").split()]
    patch = PathPatch(
        _outline(element),
        facecolor=_colour(style.get("fill", "#000000")),
        edgecolor=stroke,
        linewidth=0 if stroke == "none" else width,
        linestyle=(0, dashes) if dashes else "solid",
        alpha=float(style["opacity"]) if "opacity" in style else None,
        zorder=order,
        capstyle="butt",
        joinstyle="miter",
    )
    axes.add_patch(patch)


def _colour(colour: str, opacity: str | None = None) -> str:
    if opacity is None or colour == "none" or float(opacity) == 1:
        return colour
    return f"{colour}{round(255 * float(opacity)):02x}"


def _outline(element: Element) -> Path:
    given = element.attrib
    if _tag(element) == "path":
        return _commands(given["d"])
    if _tag(element) == "circle":
        x, y, r = (float(given[name]) for name in ("cx", "cy", "r"))
        return _rounded(x - r, y - r, 2 * r, 2 * r, r)
    x, y, wide, high = (float(given.get(name, 0)) for name in ("x", "y", "width", "height"))
    return _rounded(x, y, wide, high, min(float(given.get("rx", 0)), wide / 2, high / 2))


def _rounded(x: float, y: float, wide: float, high: float, r: float) -> Path:
    right, bottom, k = x + wide, y + high, r * (1 - ROUND)
    corners = [
        (right - r, y, right - k, y, right, y + k, right, y + r),
        (right, bottom - r, right, bottom - k, right - k, bottom, right - r, bottom),
        (x + r, bottom, x + k, bottom, x, bottom - k, x, bottom - r),
        (x, y + r, x, y + k, x + k, y, x + r, y),
    ]
    parts = [f"L{a} {b}C{c} {d} {e} {f} {g} {h}" for a, b, c, d, e, f, g, h in corners]
    return _commands(f"M{x + r} {y}{''.join(parts)}Z")


def _commands(words: str) -> Path:
    from matplotlib.path import Path

    points: list[tuple[float, float]] = []
    codes: list[int] = []
    for letter, numbers in _split(words):
        x, y = points[-1] if points else (0.0, 0.0)
        if letter in "Zz":
            points.append((x, y))
            codes.append(int(Path.CLOSEPOLY))
            continue
        if letter in "HhVv":
            step = x if letter == "h" else y if letter == "v" else 0.0
            numbers = [step + numbers[0], y] if letter in "Hh" else [x, step + numbers[0]]
        elif letter.islower():
            numbers = [n + (x, y)[i % 2] for i, n in enumerate(numbers)]
        kind = {"M": Path.MOVETO, "C": Path.CURVE4}.get(letter.upper(), Path.LINETO)
        points += zip(numbers[::2], numbers[1::2], strict=True)
        codes += [int(kind)] * (len(numbers) // 2)
    return Path(points, codes)


LENGTHS = {"M": 2, "L": 2, "H": 1, "V": 1, "C": 6, "Z": 0}


def _split(words: str) -> Iterator[tuple[str, list[float]]]:
    """Yield commands, each with its numbers; those that follow without a letter have its own."""
    letter, numbers = "", list[float]()
    for token in NUMBER.findall(words):
        if token.isalpha():
            letter, numbers = token, []
        else:
            numbers.append(float(token))
        if len(numbers) == LENGTHS[letter.upper()]:
            yield letter, numbers
            numbers = []


def _write(axes: Axes, element: Element, style: Style, order: int) -> None:
    side = {"middle": "center", "end": "right"}.get(style.get("text-anchor", ""), "left")
    axes.text(
        float(element.attrib["x"]),
        float(element.attrib["y"]),
        element.text or "",
        color=style.get("fill", "#000000"),
        fontsize=float(style.get("font-size", 10)),
        fontweight="bold" if int(style.get("font-weight", 400)) >= 600 else "normal",
        horizontalalignment=side,
        verticalalignment="baseline",
        zorder=order,
        parse_math=False,
    )
