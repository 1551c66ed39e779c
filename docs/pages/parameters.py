"""Lets each parameter have its own type where a docstring tells several in one entry."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object

SECTION = re.compile(r"(?<=\nParameters\n----------\n).*?(?=\n\S+\n---|\Z)", re.DOTALL)
ENTRY = re.compile(r"^(\w+(?:, \w+)+)\n((?:(?:    .*)?(?:\n|\Z))+)", re.MULTILINE)


class OneByOne(Extension):
    """Writes an entry ``a, b`` of a docstring's parameters as two entries of the same text."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Rewrite the docstring of an object, before it is parsed."""
        if obj.docstring is not None:
            obj.docstring.value = one_by_one(obj.docstring.value)


def one_by_one(docstring: str) -> str:
    """Return a docstring that has an entry for each parameter."""
    return SECTION.sub(lambda section: ENTRY.sub(_split, section[0]), docstring)


def _split(entry: re.Match[str]) -> str:
    text = entry[2].strip("\n")
    return "\n".join(f"{name}\n{text}" for name in entry[1].split(", ")) + "\n"
