"""Every transcript of commands is what the commands do."""

from __future__ import annotations

import pytest

from tests.commands.transcripts import PAGES, Block, desk, played, transcripts

EVERY = {
    f"{page.stem}: {title}": blocks
    for page in sorted(PAGES.glob("*.txt"))
    for title, blocks in transcripts(page).items()
}


@pytest.mark.parametrize("title", EVERY)
def test_transcripts(title: str) -> None:
    """Exit codes, output and errors are those that are written down."""
    with desk():
        for expected, found in played(EVERY[title]):
            assert found == expected


def test_other_output_is_noticed() -> None:
    """Another exit code, a missing and a further line do not fit."""
    with desk():
        for head, body in [
            ("2 $ layoutopt --version", ["..."]),
            ("$ layoutopt --version", []),
            ("$ layoutopt --version", ["layoutopt...", "! ..."]),
            ("$ layoutopt --version", ["layoutopt"]),
        ]:
            [(expected, found)] = played([Block(head, body)])
            assert found != expected
