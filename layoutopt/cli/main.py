"""The ``layoutopt`` command."""

from __future__ import annotations

import os
import sys

import typer

from layoutopt import __version__
from layoutopt.cli import (
    bench,
    check,
    compare,
    convert,
    explain,
    generate,
    importing,
    layouts,
    schema,
    show,
    solve,
    verify,
)
from layoutopt.errors import InputError, LayoutoptError

BAD_INPUT = 2
INTERNAL = 70
INTERRUPTED = 130

app = typer.Typer(
    help="Provably optimal memory layouts for neural-network graphs.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"layoutopt {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _common(
    context: typer.Context,
    version: bool = typer.Option(
        False, "--version", callback=_show_version, is_eager=True, help="Show the version."
    ),
) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


app.command("solve")(solve.command)
app.command("compare")(compare.command)
app.command("check")(check.command)
app.command("show")(show.command)
app.command("explain")(explain.command)
app.command("generate")(generate.command)
app.command("import")(importing.command)
app.command("schema")(schema.command)
app.command("convert")(convert.command)
app.command("verify")(verify.command)
app.add_typer(layouts.app, name="layout")
app.add_typer(bench.app, name="bench")


def main() -> None:
    """Run the command line; bad input and usage become one line and exit code 2."""
    try:
        code = app(standalone_mode=False)
    except InputError as error:
        code = _refuse(str(error))
    except LayoutoptError as error:
        typer.echo(f"layoutopt: internal error, no answer is given: {error}", err=True)
        code = INTERNAL
    except typer.TyperException as error:
        context = getattr(error, "ctx", None)
        where = context.command_path if context else "layoutopt"
        code = _refuse(f"{error.format_message()} (see {where} --help)")
    except (typer.Abort, KeyboardInterrupt):
        typer.echo("interrupted", err=True)
        code = INTERRUPTED
    except BrokenPipeError:  # the reader of our output has gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    _end(code if isinstance(code, int) else 0)


def _end(code: int) -> None:
    """End the process, without cleaning up if a solver does not let go of it."""
    threads = sys.modules.get("layoutopt.solvers.threads")
    if threads is not None and threads.left_running():
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


def _refuse(reason: str) -> int:
    typer.echo(f"layoutopt: {' '.join(reason.split())}", err=True)
    return BAD_INPUT
