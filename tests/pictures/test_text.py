from __future__ import annotations

from xml.etree import ElementTree

import pytest

from layoutopt.pictures.svg import abbreviations, escaped, width


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


def test_width_grows_with_letters_and_size() -> None:
    """Wide letters count more than narrow ones, and Chinese ones most."""
    assert width("ill", 10) < width("abc", 10) < width("WWW", 10) < width("名前名", 10)
    assert width("abc", 20) == pytest.approx(2 * width("abc", 10))
