"""Signals: whoever asks the program to end gets what it has found."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.faults.support import COMMAND, begun, ended, files, signalled
from tests.support import install

TERM, HUP, INT, XCPU = signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGXCPU


@pytest.mark.parametrize("number", [TERM, HUP, XCPU, INT])
def test_signals_answer_with_the_incumbent(
    number: signal.Signals, hard: Path, tmp_path: Path
) -> None:
    """A polite kill, a terminal that has gone and processor time that is over are as Ctrl-C."""
    target = tmp_path / "a.json"
    found = signalled(begun("solve", hard, "--json", target), number)
    assert found.code == 0, found.err
    assert "feasible (interrupted)" in found.out
    document = json.loads(target.read_bytes())
    assert document["status"] == "feasible"
    assert document["score"] <= document["bound"]
    assert document["layouts"]
    assert files(tmp_path) == ["a.json"]


@pytest.mark.parametrize(
    ("numbers", "code"), [((TERM, TERM), 143), ((INT, TERM), 143), ((INT, INT), 130)]
)
def test_a_second_signal_ends_at_once(
    numbers: tuple[signal.Signals, ...], code: int, hard: Path, tmp_path: Path
) -> None:
    """Without an answer, and without leaving anything behind; the exit code tells the signal.

    If the answer was there already when the second signal came, that is what counts.
    """
    found = signalled(begun("solve", hard, "--json", tmp_path / "a.json"), *numbers)
    if found.code > 0:
        assert found.code == code
        assert found.err.splitlines()[-1] == "interrupted"
        assert files(tmp_path) == []
    else:  # done, or ended by the second signal after all was done
        assert files(tmp_path) == ["a.json"]


def test_before_there_is_anything(tmp_path: Path) -> None:
    """While a graph is still being made a signal ends the program in one line."""
    (tmp_path / "slow.py").write_text(
        "import sys, time\n"
        "def build():\n"
        "    print('building', file=sys.stderr, flush=True)\n"
        "    time.sleep(600)\n"
    )
    for number in (TERM, INT):
        found = signalled(begun("solve", "slow:build", cwd=tmp_path), number)
        assert (found.code, found.err) == (128 + number, "interrupted\n")


def test_signals_that_are_ignored_stay_so(hard: Path, tmp_path: Path) -> None:
    """Under nohup a terminal may go; the solver goes on to its time limit, of the whole call."""
    target = tmp_path / "a.json"

    def ignore() -> None:
        signal.signal(HUP, signal.SIG_IGN)

    process = begun("solve", hard, "--time-limit", 8, "--json", target, preexec_fn=ignore)
    found = signalled(process, HUP)
    assert found.code == 0
    assert "feasible (time limit)" in found.out
    assert " s  " in found.err
    # Not a measurement: a run without a limit takes many times as long.
    assert json.loads(target.read_bytes())["seconds"]["total"] < 40


def test_a_killed_worker_costs_one_row(
    easy: Path, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system may take a worker of a batch run: others go on, and the row says what happened."""
    numbers = {"asked": TERM, "killed": signal.SIGKILL}
    source = "import os\n" + "".join(
        f"def {name}(problem, limits, start): os.kill(os.getpid(), {int(number)})\n"
        for name, number in numbers.items()
    )
    entries = "".join(f"{name} = plug:{name}\n" for name in numbers)
    install(tmp_path, "plug", f"[layoutopt.solvers]\n{entries}", source)
    monkeypatch.syspath_prepend(tmp_path)
    store = tmp_path / "b.sqlite"
    solvers = (word for name in (*numbers, "auto") for word in ("--solver", name))
    found = run("bench", easy, "--store", store, "--jobs", 1, *solvers)
    assert (found.code, "2 failed" in found.err) == (0, True), found.err
    shown = run("bench", "show", store, "--rows")
    for number in numbers.values():
        assert f"the worker was ended by {number.name}" in shown.out
    assert "optimal" in shown.out


def test_a_terminal_that_goes_away(hard: Path, tmp_path: Path) -> None:
    """When a terminal closes, the answer is written to its file all the same."""
    target = tmp_path / "a.json"
    ours, theirs = pty.openpty()
    words = [*COMMAND, "solve", str(hard), "--json", str(target)]
    with subprocess.Popen(
        words, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
    ) as process:
        os.close(theirs)
        seen = b""
        while b"best" not in seen:  # on a terminal there is a live line
            seen += os.read(ours, 1000)
        os.close(ours)
        process.send_signal(HUP)  # as the system does for the session of the terminal
        assert process.wait(120) >= 0
    assert json.loads(target.read_bytes())["layouts"]


@pytest.mark.parametrize("size", [(1, 1), (0, 0), (500, 1000)])
def test_terminals_of_any_size(size: tuple[int, int], easy: Path) -> None:
    """A tiny terminal is no reason to fail, nor is one without colours."""
    import fcntl
    import struct
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
    env = os.environ | {"NO_COLOR": "1", "TERM": "xterm"}
    process = begun("solve", easy, stdout=subprocess.PIPE, stderr=theirs, env=env)
    os.close(theirs)
    found = ended(process)
    said = os.read(ours, 10_000)
    os.close(ours)
    assert (found.code, "optimal" in found.out) == (0, True)
    assert b"\x1b[3" not in said  # no colour
    assert b"Traceback" not in said
