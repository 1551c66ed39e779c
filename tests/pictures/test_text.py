from __future__ import annotations

from decimal import Decimal
from xml.etree import ElementTree

import pytest

from layoutopt.base.numbers import number, ratio
from layoutopt.pictures.svg import abbreviations, distinct, escaped, shortened, width


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["target", "matmul"], ["t", "m"]),
        (["target_w", "target_x", "matmul"], ["tw", "tx", "m"]),
        (["x", "xs"], ["x", "xs"]),
        (["source0", "source1", "sink0"], ["so0", "s1", "si0"]),
        (["dark red", "dark green", "violet"], ["dr", "dg", "v"]),
        (["createMatMulInputLHS", "createMatMulInputRHS"], ["ca", "cb"]),
        (["leftHalf", "leftWing"], ["lH", "lW"]),
        (["12", "13"], ["12", "13"]),
        (["-", "+"], ["a", "b"]),
        ([], []),
    ],
)
def test_abbreviations(names: list[str], expected: list[str]) -> None:
    """Short names are the shortest that tell the names apart."""
    assert abbreviations(names) == dict(zip(names, expected, strict=True))


@pytest.mark.parametrize(
    ("names", "told"),
    [
        (["x", "y"], ["x", "y"]),
        (["a b", "a  b"], ["a b…a b", "a b…a b (2)"]),
        (
            [f"{'x' * 30}{i}{'y' * 30}" for i in (1, 2)],
            [f"xxxxxx…xx{i}yyyyyy…yyyyy" for i in (1, 2)],
        ),
    ],
)
def test_long_names_show_where_they_differ(names: list[str], told: list[str]) -> None:
    """No two are told alike."""
    assert distinct(names) == dict(zip(names, told, strict=True))


def test_abbreviations_are_all_different() -> None:
    """Whatever names there are, no two get the same short form."""
    names = [
        f"{a}{b}{c}" for a in ("a", "A", "ab", "") for b in ("_x", "x", "-") for c in range(40)
    ]
    assert len(set(abbreviations(names).values())) == len(set(names))


@pytest.mark.parametrize(
    "text", ["<b>&\"'", "a\x00b\x0b", "\ud800", "\ufffe", "é 名前 \U0001f600", "]]>", "<!--"]
)
def test_escaped_text_is_legal_xml(text: str) -> None:
    """Any text survives in content and attributes but for what XML does not allow at all."""
    document = f'<a b="{escaped(text)}">{escaped(text)}</a>'
    found = ElementTree.fromstring(document.encode())
    legal = "".join("\ufffd" if c in "\x00\x0b\ud800\ufffe" else c for c in text)
    assert found.text == legal
    assert found.get("b") == legal


@pytest.mark.parametrize(
    ("text", "limit", "expected"),
    [
        ("short", 22, "short"),
        ("abcdefghij", 10, "abcdefghij"),
        ("abcdefghijk", 10, "abcdef…ijk"),
        ("two\n lines", 22, "two lines"),
    ],
)
def test_shortened(text: str, limit: int, expected: str) -> None:
    """Long texts lose their middle, and every text becomes one line."""
    assert shortened(text, limit) == expected


def test_width_grows_with_letters_and_size() -> None:
    """Wide letters count more than narrow ones, and Chinese ones most."""
    assert width("ill", 10) < width("abc", 10) < width("WWW", 10) < width("名前名", 10)
    assert width("abc", 20) == pytest.approx(2 * width("abc", 10))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, "-"),
        (Decimal("1234567.50"), "1,234,567.5"),
        (Decimal("100"), "100"),
        (0.25, "0.25"),
        (2e6, "2,000,000"),
    ],
)
def test_number(value: Decimal | float | None, expected: str) -> None:
    """Numbers have separators and no idle zeros."""
    assert number(value) == expected


@pytest.mark.parametrize(
    ("value", "expected"), [(None, "-"), (0.0, "0"), (0.0462, "4.62%"), (1e-7, "1.0e-07")]
)
def test_ratio(value: float | None, expected: str) -> None:
    """Ratios are percentages unless these would be all zeros."""
    assert ratio(value) == expected
