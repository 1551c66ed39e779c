"""The public names, as a user imports them."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest

import layoutopt


def test_every_public_name_can_be_imported() -> None:
    for name in layoutopt.__all__:
        assert getattr(layoutopt, name) is not None
        assert name in dir(layoutopt)


def test_public_names_have_docstrings() -> None:
    for name in layoutopt.__all__:
        thing = getattr(layoutopt, name)
        if inspect.isclass(thing) or inspect.isfunction(thing):
            assert inspect.getdoc(thing), name


def test_unknown_names_are_refused() -> None:
    with pytest.raises(AttributeError, match="colour"):
        _ = layoutopt.colour


def test_names_of_the_release_before_still_work() -> None:
    with pytest.warns(DeprecationWarning, match=r"layoutopt.Know is now layoutopt.BarrierReady"):
        assert layoutopt.Know is layoutopt.BarrierReady


def test_importing_the_package_is_cheap_and_names_stay_functions() -> None:
    code = (
        "import sys, layoutopt\n"
        "assert 'numpy' not in sys.modules\n"
        "import layoutopt.cli.solve, layoutopt.cli.compare, layoutopt.cli.show\n"
        "for name in ('unwind', 'compare', 'read', 'evaluate'):\n"
        "    getattr(layoutopt, name)\n"
        "    assert getattr(layoutopt, name).__class__.__name__ == 'function', name\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
