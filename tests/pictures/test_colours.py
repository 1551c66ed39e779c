from __future__ import annotations

from itertools import chain

import numpy as np
import pytest

from layoutopt.pictures.colours import dark, oklab, palette

FAR, FAR_BLIND = 0.035, 0.022
"""Least distances in OKLab of up to 64 colours, as most eyes and as others see them."""

SPLITS = [[64], [32, 32], [8] * 8, [4] * 16, [2] * 32, [1] * 64, [4, 6, 6], [1, 40, 3, 20]]


def nearest(colours: list[str], deuteranopia: bool = False) -> float:
    """Return the least distance of two colours in OKLab."""
    rows = oklab(colours, deuteranopia)
    apart = np.linalg.norm(rows[:, None] - rows[None], axis=2)
    return float((apart + np.diag(np.full(len(rows), np.inf))).min())


@pytest.mark.parametrize(
    ("colour", "expected"),
    [
        ("#ffffff", (1.0, 0.0, 0.0)),
        ("#000000", (0.0, 0.0, 0.0)),
        ("#ff0000", (0.628, 0.225, 0.126)),
        ("#00ff00", (0.866, -0.234, 0.179)),
        ("#0000ff", (0.452, -0.032, -0.312)),
    ],
)
def test_oklab_of_known_colours(colour: str, expected: tuple[float, float, float]) -> None:
    """White, black and the primaries have the coordinates that Ottosson's page gives."""
    assert np.allclose(oklab([colour])[0], expected, atol=1e-3)


def test_red_and_green_are_closer_without_green_receptors() -> None:
    """The simulated eyes lose most of the distance that red and a green of its lightness have."""
    pair = ["#c06050", "#70902f"]
    assert nearest(pair, deuteranopia=True) < nearest(pair) / 3


@pytest.mark.parametrize("sizes", SPLITS, ids=str)
def test_up_to_64_colours_are_far_apart(sizes: list[int]) -> None:
    """No two of 64 colours come close, for most eyes and for those without green receptors."""
    families = palette(sizes)
    assert list(map(len, families)) == sizes
    colours = list(chain(*families))
    assert nearest(colours) > FAR
    assert nearest(colours, deuteranopia=True) > FAR_BLIND


def test_first_families_have_different_hues() -> None:
    """The mean hues of four families of six are at least 50 degrees apart."""
    means = [oklab(family)[:, 1:].mean(axis=0) for family in palette([6] * 4)]
    hues = np.rad2deg([np.arctan2(b, a) for a, b in means])
    apart = np.abs((hues[:, None] - hues[None] + 180) % 360 - 180)
    assert apart[~np.eye(4, dtype=bool)].min() > 50


def test_colours_of_a_family_do_not_depend_on_later_ones() -> None:
    """Families that follow change nothing, so that two solutions of one graph look alike."""
    assert palette([4, 6, 6])[:2] == palette([4, 6])
    assert palette([4, 6, 1, 9])[:2] == palette([4, 6])


def test_a_family_goes_from_light_to_dark() -> None:
    """Within each family lightness never rises."""
    for family in palette([6, 9, 20]):
        assert (np.diff(oklab(family)[:, 0]) <= 0).all()


def test_many_colours_are_still_different() -> None:
    """As many as a picture has cells are all different, also where a family's hues run out."""
    colours = list(chain(*palette([600, 300, 300])))
    assert len(set(colours)) == 1200


def test_more_colours_than_there_are_is_refused() -> None:
    """A picture never uses a colour twice for want of others."""
    with pytest.raises(ValueError, match="colours"):
        palette([10**6])


def test_no_families() -> None:
    """Nothing is asked for, and nothing given."""
    assert palette([]) == []
    assert palette([0, 0]) == [[], []]


def test_text_is_white_on_dark_colours_only() -> None:
    """Black stands on white, white on dark blue."""
    assert not dark("#ffffff")
    assert dark("#203080")
