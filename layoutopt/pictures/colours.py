"""Colours for locations: families of hues, all colours well apart, also for most colour-blind eyes.

Colours are picked in OKLCH (Ottosson, *A perceptual color space for image
processing*, 2020), from a calm part of what a screen shows.  The hues of the families stand a
golden angle apart, so that the first few are far from each other however many follow.  Within a
family each next colour is the one farthest from all that are taken; distances are Euclidean in
OKLab, and count as they are seen with and without green receptors (the deuteranopia
of Vienot, Brettel and Mollon, 1999), where they are smaller.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from layoutopt.pictures.svg import INK

Rows: TypeAlias = NDArray[np.float64]

LMS = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
"""From linear sRGB to the cone responses of OKLab."""

LAB = np.array(
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
)
"""From cube roots of cone responses to OKLab."""

DEUTERANOPIA = np.array(
    [[0.29275, 0.70725, 0.0], [0.29275, 0.70725, 0.0], [-0.02234, 0.02234, 1.0]]
)
"""From linear sRGB to what is seen of it without green receptors."""

LUMINANCE = np.array([0.2126, 0.7152, 0.0722])  # of linear sRGB

GOLDEN_ANGLE = 180 * (3 - 5**0.5)
FIRST_HUE = 250.0  # a blue
SECTOR = 18.0, 1.5  # half a family's range of hues, in degrees: so much, and so much per colour
BLIND = 1.5  # how much more a distance counts that only other eyes see

LIGHT = np.arange(0.56, 0.921, 0.0125)
CHROMA = np.arange(0.05, 0.146, 0.0125)
HUES = np.arange(0.0, 360.0, 3.0)  # hues of the candidate colours, in degrees


def palette(sizes: Sequence[int]) -> list[list[str]]:
    """Return families of different colours, as ``"#rrggbb"``, light ones first.

    ``sizes`` says how many colours each has; they do not depend on those of later families.
    """
    rgb, lab, blind, hue = _candidates()
    if sum(sizes) > len(rgb):
        raise ValueError(f"there are {len(rgb)} colours, not {sum(sizes)}")
    nearest = np.full(len(rgb), np.inf)
    families: list[list[int]] = []
    for k, size in enumerate(sizes):
        centre = FIRST_HUE + k * GOLDEN_ANGLE
        off = np.abs((hue - centre + 180) % 360 - 180)
        near = off <= SECTOR[0] + SECTOR[1] * size
        family: list[int] = []
        for _ in range(size):
            first = not families and not family
            wanted = -np.abs(lab[:, 0] - 0.8) - off / 100 if first else nearest
            pick = int(np.argmax(np.where(near & (nearest > 0), wanted, -np.inf)))
            if nearest[pick] == 0:  # the family's hues are used up
                pick = int(np.argmax(nearest))
            for weight, seen in ((1.0, lab), (BLIND, blind)):
                apart = seen - seen[pick]
                far = weight * np.sqrt(np.einsum("ij,ij->i", apart, apart))
                nearest = np.minimum(nearest, far)
            family.append(pick)
        family.sort(key=lambda i: (-lab[i, 0], i))
        families.append(family)
    return [["#{:02x}{:02x}{:02x}".format(*rgb[i]) for i in family] for family in families]


def oklab(colours: Sequence[str], deuteranopia: bool = False) -> Rows:
    """Return colours ``"#rrggbb"`` in OKLab, one row each; or as seen without green receptors."""
    return _lab(_rgb(colours), deuteranopia)


def _rgb(colours: Sequence[str]) -> Rows:
    parts = [[int(c[i : i + 2], 16) for i in (1, 3, 5)] for c in colours]
    return np.array(parts, float).reshape(-1, 3)


def dark(colour: str) -> bool:
    """Return whether white text has more contrast to a colour than the ink of pictures (WCAG)."""
    white, ground, ink = (_linear(_rgb([c])) @ LUMINANCE + 0.05 for c in ("#ffffff", colour, INK))
    return bool(white / ground > ground / ink)


@cache
def _candidates() -> tuple[NDArray[np.int64], Rows, Rows, Rows]:
    """Return all candidate colours: sRGB, OKLab, OKLab under deuteranopia, and hue."""
    light, chroma, degrees = (
        x.reshape(-1) for x in np.meshgrid(LIGHT, CHROMA, HUES, indexing="ij")
    )
    calm = chroma <= 0.14 - 0.45 * np.maximum(0, light - 0.74)
    angle = np.deg2rad(degrees)
    lab = np.stack([light, chroma * np.cos(angle), chroma * np.sin(angle)], 1)[calm]
    linear = (lab @ np.linalg.inv(LAB).T) ** 3 @ np.linalg.inv(LMS).T
    shown = linear[((linear >= 0) & (linear <= 1)).all(1)]
    curved = np.where(shown <= 0.0031308, 12.92 * shown, 1.055 * shown ** (1 / 2.4) - 0.055)
    rgb = np.unique(np.rint(255 * curved).astype(np.int64), axis=0)
    seen = _lab(rgb, False)
    return rgb, seen, _lab(rgb, True), np.rad2deg(np.arctan2(seen[:, 2], seen[:, 1]))


def _linear(rgb: Rows | NDArray[np.int64]) -> Rows:
    x = rgb / 255
    return np.asarray(np.where(x <= 0.04045, x / 12.92, ((x + 0.055) / 1.055) ** 2.4))


def _lab(rgb: Rows | NDArray[np.int64], deuteranopia: bool) -> Rows:
    linear = _linear(rgb)
    if deuteranopia:
        linear = np.clip(linear @ DEUTERANOPIA.T, 0, 1)
    return np.asarray(np.cbrt(linear @ LMS.T) @ LAB.T)
