"""Permutations, and the one that a consumer of a tensor requires."""

from __future__ import annotations

import itertools

import pytest

from layoutopt.layout.layout import LayoutError
from layoutopt.layout.permutations import (
    Permutation,
    checked,
    compose,
    inverse,
    library_shape,
    parse_permutation,
    permutation_between,
    required_permutation,
)

TEXTS = {
    "0312": (0, 3, 1, 2),
    "(3201)": (3, 2, 0, 1),
    "2, 0, 3, 1": (2, 0, 3, 1),
    "": (),
    "()": (),
    "0": (0,),
    "0,": (0,),
    "10,0,1,2,3,4,5,6,7,8,9": (10, *range(10)),
}


@pytest.mark.parametrize("text", TEXTS)
def test_parsed(text: str) -> None:
    """Digits stand for themselves; with commas, numbers may have more of them."""
    assert parse_permutation(text) == TEXTS[text]


WRONG_TEXTS = {
    "0122": "permutation (0, 1, 2, 2): 2 is there twice",
    "0124": "permutation (0, 1, 2, 4): 4 is not in 0 to 3",
    "012-1": "a permutation is written as 0312 or 0,3,1,2; got '012-1'",
    "(01": "a permutation is written as 0312 or 0,3,1,2; got '(01'",
    "0,,1": "a permutation is written as 0312 or 0,3,1,2; got '0,,1'",
    "nchw": "a permutation is written as 0312 or 0,3,1,2; got 'nchw'",
    "1\u00b2": "a permutation is written as 0312 or 0,3,1,2; got '1\u00b2'",
}


@pytest.mark.parametrize("text", WRONG_TEXTS)
def test_not_parsed(text: str) -> None:
    """Anything else is refused with what is wrong."""
    with pytest.raises(LayoutError) as caught:
        parse_permutation(text)
    assert str(caught.value) == WRONG_TEXTS[text]


def test_not_a_text() -> None:
    """Numbers are no text of a permutation."""
    with pytest.raises(LayoutError, match="got 312"):
        parse_permutation(312)


WRONG = [(0, 1, 2, 2), (0, 1, 2, 4), (0, 1, 2, -1), (1,), (0, 1.0), (True, False), "01", None]


@pytest.mark.parametrize("wrong", WRONG)
def test_no_permutation(wrong: Permutation) -> None:
    """Duplicates, numbers out of range or negative, and other things, are refused everywhere."""
    for function in (checked, inverse, lambda p: compose(p, p), lambda p: library_shape((1,), p)):
        with pytest.raises(LayoutError, match="permutation"):
            function(wrong)


def test_ranks_must_agree() -> None:
    """Permutations of different length neither compose nor fit a shape."""
    for short, long in itertools.permutations([(0, 1), (0, 2, 1)]):
        with pytest.raises(LayoutError, match="entries"):
            compose(short, long)
        with pytest.raises(LayoutError, match="entries"):
            required_permutation(short, long)
        with pytest.raises(LayoutError, match="entries"):
            library_shape((4,) * len(short), long)


def test_orders_of_letters() -> None:
    """The RFC's tables: data in NHWC has permutation 0312, weights in HWIO 3201."""
    assert permutation_between("NCHW", "NHWC") == (0, 3, 1, 2)
    assert permutation_between("OIHW", "HWIO") == (3, 2, 0, 1)


@pytest.mark.parametrize("pair", [("NCHW", "NHW"), ("NCHW", "NHWK"), ("NCCW", "NCCW")])
def test_orders_of_other_letters(pair: tuple[str, str]) -> None:
    """Two orders need the same letters, each once."""
    with pytest.raises(LayoutError, match="must have the same letters, each once"):
        permutation_between(*pair)


def test_example_of_the_rfc() -> None:
    """Data (2, 5, 3, 4) read as weights: 0312 and 3201 require 2031, and dims (5, 4, 2, 3)."""
    perm = required_permutation(parse_permutation("0312"), parse_permutation("3201"))
    assert perm == parse_permutation("2031")
    dims = [0] * 4
    for axis, size in enumerate((2, 5, 3, 4)):
        dims[perm[axis]] = size
    assert dims == [5, 4, 2, 3]
    # The framework's shape (2, 3, 4, 5), read as HWIO: O is 5, I is 4, H is 2, W is 3.
    assert library_shape((2, 3, 4, 5), parse_permutation("3201")) == (5, 4, 2, 3)
