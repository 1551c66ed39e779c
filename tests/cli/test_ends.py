"""How commands end: whatever goes wrong is one line and a code, and what is asked for is there."""

from __future__ import annotations

import io
import os
import pty
import re
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from decimal import Decimal
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from layoutopt.base.errors import InputError, InternalError
from layoutopt.base.limits import Progress
from layoutopt.bench.run import RunProgress
from layoutopt.cli import bench, options, solve, streams
from layoutopt.cli import main as entry
from layoutopt.machine.whatif import ShadowPrices, SinkCost, TilePrice
from tests.cli.conftest import Run
from tests.support import refused

ENDS: dict[str, tuple[BaseException, int, str]] = {
    "bad input": (InputError("is\nwrong", file="a"), 2, "layoutopt: a: is wrong"),
    "defect": (InternalError("no"), 70, "layoutopt: internal error, no result: no"),
    "memory": (MemoryError(), 2, "layoutopt: out of memory; nothing is written"),
    "time": (TimeoutError("net: time limit"), 4, "layoutopt: net: time limit"),
    "time, silently": (TimeoutError(), 4, "layoutopt: time ran out"),
    "system": (OSError(28, "No space left", "b"), 2, "layoutopt: b: No space left"),
    "Ctrl-C": (KeyboardInterrupt(), 130, "interrupted"),
    "unforeseen": (
        KeyError("x\ny"),
        70,
        "layoutopt: internal error, no result: KeyError: 'x\\ny', main.py line ",
    ),
}


@pytest.mark.parametrize("name", ENDS)
def test_each_end_has_its_line_and_code(
    name: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Errors become a line on stderr, with the code that the program promises; nothing is out."""
    error, code, text = ENDS[name]

    def fail(**_: object) -> int:
        raise error

    monkeypatch.setattr(entry, "app", fail)
    monkeypatch.setattr(entry, "discard_stdout", lambda: None)
    ended = run("anything")
    assert (ended.code, ended.out) == (code, "")
    [line] = ended.err.splitlines()
    assert line.startswith(text)
    assert (line == text) == (name != "unforeseen")


def test_ctrl_c_while_a_later_instance_is_read(
    run: Run, instance: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table has the instances before."""
    load = options.Reading.load

    def stopped(self: options.Reading, path: Path, *more: Any) -> Any:
        if path.name == "later.json":
            raise KeyboardInterrupt
        return load(self, path, *more)

    monkeypatch.setattr(options.Reading, "load", stopped)
    ran = run("compare", instance, "later.json", "--solver", "greedy0", "-o", "-", "--no-seconds")
    assert (ran.code, ran.err, "greedy0" in ran.out) == (130, "interrupted\n", True)


def test_prices_that_ran_out_of_time_and_many_sinks() -> None:
    """Without a bound there is no table; the dearest sinks are shown, and the rest counted."""
    assert solve.prices_text(ShadowPrices(Decimal(1), None, (), (), 1, 64)) == (
        "  no prices: time ran out"
    )
    tile = TilePrice(0, Fraction(3), 64)
    sinks = tuple(SinkCost(f"s{n}", 4, Fraction(40 - n)) for n in range(solve.SHOWN + 2))
    text = solve.prices_text(ShadowPrices(Decimal(1), Fraction(9), (tile,), sinks, 1, 64))
    lines = text.splitlines()
    assert lines[0] == "  proved by prices: no score above 9"
    assert lines[-1] == "  ... and 2 more sinks"
    first = [line.split()[0] for line in lines if line.strip()]
    assert first[-2 - solve.SHOWN : -1] == ["sink", *(f"s{n}" for n in range(solve.SHOWN))]
    assert "worth nothing" not in text


def test_a_live_line_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal the line is drawn anew with a bar, and is gone at the end."""
    shown = on_terminal(
        monkeypatch,
        lambda tell: [
            tell(
                RunProgress(done=n, failed=1, left=8 - n, known=2, seconds=61.0, seconds_left=None)
            )
            for n in (1, 3)
        ],
        partial(streams.shown, line=bench.line, share=bench.share),
    )
    assert "5 of 10 solves, 2 known before, 1 failed, 1:01" in shown
    assert "50%" in shown
    assert "\x1b[2K" in shown.rpartition("solves")[2]


def on_terminal(
    monkeypatch: pytest.MonkeyPatch,
    use: Callable[[Any], object],
    show: Callable[[bool], AbstractContextManager[Any]],
    term: str = "xterm",
    encoding: str = "utf-8",
) -> str:
    """Return what a run writes to a terminal that stands for stderr."""
    above, below = pty.openpty()
    monkeypatch.setenv("TERM", term)
    monkeypatch.setenv("COLUMNS", "120")
    with os.fdopen(below, "w", encoding=encoding) as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        with show(False) as tell:
            assert tell is not None
            use(tell)
    shown = b""
    with suppress(OSError):  # so Linux says that the other end is closed
        while part := os.read(above, 4096):
            shown += part
    os.close(above)
    return shown.decode()


def test_simple_terminals(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where lines cannot be drawn anew there are plain ones; huge values have no gap."""
    message, inf = Progress("search", 0.0, 3.0, 4.5), float("inf")
    show = partial(streams.shown, patience=0.0)
    shown = on_terminal(monkeypatch, lambda tell: tell(message), show, term="dumb")
    assert shown == "    0.0 s  search  best 3  bound 4.5  gap 50.000%\r\n"
    shown = on_terminal(monkeypatch, lambda tell: tell(message), show, encoding="ascii")
    assert "search  best 3" in shown
    assert streams.line(Progress("search", 1.0, inf, inf)).endswith("best inf  bound inf")


def test_command_lines_in_any_locale(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes that the locale does not know are text of UTF-8 if they can be."""
    monkeypatch.setattr(sys, "argv", ["layoutopt", "\udcc3\udcbc", "\udcff"])
    assert streams.command_line() == "layoutopt 'ü' '\ufffd'"


def test_what_can_be_written_nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """If a file cannot be at its place nor elsewhere, the first reason is told; nothing is left."""
    monkeypatch.setattr(streams.tempfile, "tempdir", str(tmp_path))

    def fail(path: Path) -> None:
        raise InputError("cannot be written (No space left)", file=str(path))

    target = Path("/nowhere/a.json")
    with refused(f"{target}: cannot be written (No space left)"):
        streams.saved(fail, target)
    assert list(tmp_path.iterdir()) == []


def test_stdout_may_be_closed_or_a_stream_of_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """Data goes to whatever stands for stdout; if nothing does, it is said."""
    taken = io.StringIO()
    monkeypatch.setattr(sys, "stdout", taken)
    streams.write_out(b"data\n", Path("-"), overwrite=False)
    assert taken.getvalue() == "data\n"
    monkeypatch.setattr(sys, "stdout", None)
    with refused("standard output: cannot be written (it is closed)"):
        streams.write_out(b"data\n", Path("-"), overwrite=False)


def test_the_clock_of_the_live_line_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """While a step runs and says nothing, the line still names it, and its seconds count on."""

    def use(tell: Callable[[Progress], None]) -> None:
        tell(Progress("a long step", 7.0, 3.0))
        time.sleep(0.7)

    shown = on_terminal(monkeypatch, use, streams.shown)
    times = re.findall(r"([\d.]+) s  a long step  best 3", shown)
    assert 7 <= float(times[0]) < 7.3
    assert float(times[-1]) > 7.3
