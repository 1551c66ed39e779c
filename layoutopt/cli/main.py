"""The ``layoutopt`` command."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import typer
from typer.core import TyperGroup
from typer.main import get_command, get_group

from layoutopt import __version__
from layoutopt.base.entries import LazyTable
from layoutopt.base.errors import InputError, LayoutoptError
from layoutopt.base.limits import memory_limit
from layoutopt.cli import LOADED, options
from layoutopt.cli.options import (
    BAD_INPUT,
    BLAS_THREADS,
    DEFECT,
    HELP,
    NO_ANSWER,
    SIGNALLED,
    Command,
)
from layoutopt.cli.streams import discard_stdout, flush, note, open_streams, say

ENDING = ("SIGTERM", "SIGHUP", "SIGXCPU")
"""Signals that are handled as Ctrl-C: termination, hang-up, limit of CPU time."""


@contextmanager
def heard() -> Iterator[list[int]]:
    """Handle :data:`ENDING` signals as Ctrl-C, unless they are ignored; yield those received.

    A solver stops with its best solution, a batch run keeps its finished results.
    """
    came: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield came
        return

    def stop(number: int, frame: FrameType | None) -> None:
        came.append(number)
        handler = signal.getsignal(signal.SIGINT)
        if not callable(handler):
            raise KeyboardInterrupt
        handler(number, frame)

    numbers = [getattr(signal, name) for name in ENDING if hasattr(signal, name)]
    before = {
        n: signal.getsignal(n) for n in numbers if signal.getsignal(n) not in (signal.SIG_IGN, None)
    }
    try:
        for number in before:
            signal.signal(number, stop)
        yield came
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


INTERRUPTED = SIGNALLED + signal.SIGINT

HOUSE = Path(__file__).parents[1]  # the package's folder


class Commands(LazyTable[Any]):
    """Commands by name, imported at their first use."""

    def __getitem__(self, name: str) -> Any:
        found = super().__getitem__(name)
        if isinstance(found, typer.Typer):
            command: Any = get_group(found)
            command.name = name
            return command
        alone = typer.Typer(add_completion=False, rich_markup_mode=None)
        alone.command(name, cls=Command)(found)
        return get_command(alone)


class _Group(TyperGroup):
    """The main command, which imports only the requested subcommand."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = Commands(
            {
                "solve": "layoutopt.cli.solve:command",
                "compare": "layoutopt.cli.compare:command",
                "check": "layoutopt.cli.check:command",
                "show": "layoutopt.cli.show:command",
                "explain": "layoutopt.cli.explain:command",
                "generate": "layoutopt.cli.generate:command",
                "import": "layoutopt.cli.importing:command",
                "schema": "layoutopt.cli.schema:command",
                "convert": "layoutopt.cli.convert:command",
                "verify": "layoutopt.cli.verify:command",
                "layout": "layoutopt.cli.layouts:app",
                "bench": "layoutopt.cli.bench:app",
            }
        )


app = typer.Typer(
    cls=_Group,
    help="Provably optimal memory layouts for neural-network graphs.",
    context_settings={"help_option_names": list(HELP)},
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        say(f"layoutopt {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _common(
    context: typer.Context,
    version: bool = typer.Option(
        False, "--version", callback=_show_version, is_eager=True, help="Show the version."
    ),
) -> None:
    if context.invoked_subcommand is None:
        say(context.get_help())


def start() -> None:
    """Run the command line as a process; time limits include imports."""
    main(LOADED)


def main(begun: float | None = None) -> None:
    """Run the command line; errors become one line on stderr and an exit code.

    Time limits and measured seconds count from ``begun`` on, a value of ``time.monotonic()``.
    """
    options.begin(time.monotonic() if begun is None else begun)
    open_streams()
    for name in BLAS_THREADS:  # idle threads would take memory
        os.environ.setdefault(name, "1")
    with heard() as signals, memory_limit(None):  # ends the memory limit set by a command
        code = _run(signals)
    _end(code)


def _run(signals: Sequence[int]) -> int:
    try:
        code = app(prog_name="layoutopt", standalone_mode=False)
        flush()
        if code == INTERRUPTED:  # Typer's code for Ctrl-C
            raise KeyboardInterrupt
        return code if isinstance(code, int) else 0
    except InputError as error:
        return _refuse(str(error))
    except LayoutoptError as error:
        return _defect(str(error))
    except typer.TyperException as error:
        context = getattr(error, "ctx", None)
        where = context.command_path if context else "layoutopt"
        return _refuse(f"{error.format_message()} (see {where} --help)")
    except (typer.Abort, KeyboardInterrupt):
        note("interrupted")
        return SIGNALLED + (signals[0] if signals else signal.SIGINT)
    except MemoryError:
        return _refuse("out of memory; nothing is written")
    except TimeoutError as error:
        note(f"layoutopt: {str(error) or 'time ran out'}")
        return NO_ANSWER
    except BrokenPipeError:  # the reader of the output has closed it
        discard_stdout()
        return 0
    except OSError as error:
        discard_stdout()
        return _refuse(f"{error.filename or 'the system'}: {error.strerror or error}")
    except Exception as error:  # a defect of this package: one line instead of a traceback
        if sys.flags.dev_mode:
            raise
        return _defect(f"{_described(error)} (python -X dev shows where)")


def _described(error: Exception) -> str:
    """Return an unexpected error with the line of this package that raised it."""
    place = ""
    for frame in traceback.extract_tb(error.__traceback__):
        if Path(frame.filename).is_relative_to(HOUSE):
            place = f", {Path(frame.filename).name} line {frame.lineno}"
    return f"{type(error).__name__}: {error}{place}"


def _end(code: int) -> None:
    """Exit; without cleaning up if a solver is still running."""
    threads = sys.modules.get("layoutopt.base.deadline")
    if threads is not None and threads.left_running():
        os._exit(code)  # streams are flushed already
    sys.exit(code)


def _refuse(reason: str) -> int:
    note(f"layoutopt: {' '.join(reason.split())}")
    return BAD_INPUT


def _defect(reason: str) -> int:
    note(f"layoutopt: internal error, no result: {' '.join(reason.split())}")
    return DEFECT
