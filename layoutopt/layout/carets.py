"""A text read from left to right, with errors that point at the offending place."""

from __future__ import annotations

import re

from layoutopt.layout.parts import LayoutError

DIGITS = re.compile("[0-9]*")
LARGEST = 2**63 - 1
LONGEST_QUOTE = 60


class Scanner:
    """A text and how far it has been read.

    Parameters
    ----------
    text
        What to read.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    @property
    def char(self) -> str:
        """The next character; empty at the end."""
        return self.text[self.at : self.at + 1]

    def take(self, chars: str) -> str:
        """Return the next character and pass it if it is among the given ones; else nothing."""
        char = self.char
        if char and char in chars:
            self.at += 1
            return char
        return ""

    def number(self, what: str, least: int = 1) -> int:
        """Return the decimal number that comes next, and pass it.

        Parameters
        ----------
        what
            What it means, for the error.
        least
            The smallest that is allowed.

        Raises
        ------
        LayoutError
            If there is none, it is written with leading zeros, or too small or too large.
        """
        found = DIGITS.match(self.text, self.at)
        digits = found[0] if found else ""
        if not digits:
            raise self.expected(what)
        if len(digits) > 1 and digits[0] == "0":
            raise self.error(f"expected {what} without leading zeros")
        # Long texts are not turned into numbers: Python limits how long they may be.
        if len(digits) > len(str(LARGEST)) or not least <= int(digits) <= LARGEST:
            raise self.error(f"expected {what} from {least} to 2^63 - 1")
        self.at += len(digits)
        return int(digits)

    def expected(self, what: str) -> LayoutError:
        """Return the error that something else should come next."""
        return self.error(f"expected {what}, found {repr(self.char) if self.char else 'the end'}")

    def error(self, problem: str, at: int | None = None) -> LayoutError:
        """Return an error that points at an offset, by default at the next character."""
        at = self.at if at is None else at
        text = self.text
        quoted = repr(text if len(text) <= LONGEST_QUOTE else f"{text[:LONGEST_QUOTE]}...")
        return LayoutError(f"column {at + 1} of layout {quoted}: {problem}", text=text, at=at)
