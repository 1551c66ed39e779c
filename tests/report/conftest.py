from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.browser import Browser, program, running


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Return a browser that all tests share."""
    path = program()
    if path is None:
        pytest.skip("no browser is installed: chromium, or one of its relatives")
    with running(path) as started:
        yield started
