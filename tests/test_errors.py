"""What errors say is one line that any terminal can show."""

from __future__ import annotations

import pytest

from layoutopt.base.errors import LONGEST, InputError


@pytest.mark.parametrize(
    ("reason", "shown"),
    [
        ("wrong", "f: $.a: wrong"),
        ("a\nb\r\nc", "f: $.a: a b c"),
        ("'\x1b[2J'", "f: $.a: '\\x1b[2J'"),
        ("'\ud800'", "f: $.a: '\\ud800'"),
        ("'\u202e'", "f: $.a: '\\u202e'"),
        ("größer", "f: $.a: größer"),
    ],
)
def test_the_line(reason: str, shown: str) -> None:
    """Line breaks become blanks, and what cannot be printed is written with a backslash."""
    error = InputError(reason, "$.a", "f")
    assert str(error) == shown
    assert str(error).encode()
    assert error.reason == reason


def test_long_lines_lose_what_is_in_the_middle() -> None:
    """Of a thousand characters and more, the beginning and the end are told."""
    text = str(InputError(f"unknown op {'n' * 10**6}; allowed: sink", file="f.json"))
    assert len(text) == LONGEST + len(" ... ")
    assert text.startswith("f.json: unknown op nnn")
    assert text.endswith("nnn; allowed: sink")
    assert str(InputError("n" * LONGEST)) == "n" * LONGEST
