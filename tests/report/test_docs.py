"""The pictures of the guide are what its commands draw."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Run, run

__all__ = ["run"]

HOME = Path(__file__).parents[2]


def test_the_picture_is_what_the_commands_draw(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The chart of gaps has no times in it, so that it is the same on every machine."""
    monkeypatch.chdir(HOME)
    store, picture = tmp_path / "store.sqlite", tmp_path / "picture.svg"
    words = ["bench", "instances/figures", "instances/greedy", "--store", store]
    assert run(*words, "--in-process", "--quiet").code == 0
    assert run("bench", "show", store, "--plot", "gap", "--svg", picture).code == 0
    assert picture.read_text() == (HOME / "docs/gap_profile.svg").read_text()
