"""``layoutopt convert``: conversion of ONNX models with provably fewest layout transforms."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from layoutopt.base.errors import InputError, printable
from layoutopt.base.numbers import ratio, seconds
from layoutopt.cli import options
from layoutopt.cli.streams import all_done, reserved_stdout, saved, say, shown, table, write_out

if TYPE_CHECKING:
    from layoutopt.onnx.result import ConversionResult

FORMAT = "layoutopt/conversion/1"

Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="OUT.onnx",
        help="Write the converted model; without it, nothing is written.",
    ),
]
Layout = Annotated[
    list[str] | None,
    typer.Option(
        metavar="TYPE=LAYOUTS",
        help="Required layouts, by op type (Conv=NHWC,HWIO), node name (@name=NCHW) or for all "
        "others (default=NHWC, skip=Resize); repeatable.",
    ),
]
Pad = Annotated[
    bool,
    typer.Option(
        "--pad", help="Pad channels with zeros where the blocks of --layout do not divide them."
    ),
]
Backend = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Use the required layouts of this backend instead: canonical, nchw, nhwc or blocked.",
    ),
]
Costs = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="TOML file with the measured time of each op in each layout, and of transforms.",
    ),
]
Objective = Annotated[
    str | None,
    typer.Option(
        metavar="NAMES",
        help="What to minimise, most important first: count (of transforms), bytes (that they "
        "move), and with --costs time.",
        show_default="count,bytes; time,count with --costs",
    ),
]
FreeIo = Annotated[
    bool,
    typer.Option(
        "--free-io", help="Allow inputs and outputs of the model to change their layouts."
    ),
]
Microsoft = Annotated[
    bool,
    typer.Option(
        "--microsoft", help="Allow matrix products to become FusedMatMul of com.microsoft."
    ),
]
Check = Annotated[
    bool,
    typer.Option(
        "--check", help="Run both models on the same random inputs and compare their outputs."
    ),
]
Solver = Annotated[
    str, typer.Option(metavar="NAME", help="auto, or a heuristic, which proves nothing.")
]
Compare = Annotated[
    bool, typer.Option("--compare", help="Also count the transforms that each heuristic leaves.")
]
Peers = Annotated[
    bool,
    typer.Option(
        "--peers", help="Also count the transposes that onnxsim, onnxslim and onnxruntime leave."
    ),
]
Explain = Annotated[
    bool, typer.Option("--explain", help="Explain why each remaining transform is needed.")
]


def command(
    model: options.Model,
    output: Output = None,
    layout: Layout = None,
    pad: Pad = False,
    backend: Backend = None,
    costs: Costs = None,
    objective: Objective = None,
    solver: Solver = "auto",
    free_io: FreeIo = False,
    microsoft: Microsoft = False,
    check: Check = False,
    compare: Compare = False,
    peers: Peers = False,
    explain: Explain = False,
    certificate: options.Certificate = None,
    time_limit: options.TimeLimit = None,
    memory_limit: options.MemoryLimit = None,
    seed: options.Seed = 0,
    json: options.Json = None,
    overwrite: options.Overwrite = False,
    no_seconds: options.NoSeconds = False,
    quiet: options.Quiet = False,
) -> int:
    """Rewrite an ONNX model with the provably smallest number of layout transforms."""
    options.check_limits(time_limit, 0.0, 1)
    options.limit_memory(memory_limit)
    for target in (output, json, certificate):
        _check_target(target, model, overwrite)
    from layoutopt.converting import convert  # importing takes seconds

    asked = {**_asked(layout, pad, backend, costs, free_io), "microsoft": microsoft}
    with shown(quiet) as tell, reserved_stdout():
        result = convert(
            model,
            **asked,
            objective=objective,
            solver=solver,
            time_limit=options.left(time_limit),
            seed=seed,
            check=check,
            compare=compare,
            peers=peers,
            progress=tell,
        )
    total = {"total": options.spent()}
    result = replace(result, seconds={} if no_seconds else {**result.seconds, **total})
    with all_done() as attempt:
        if output is not None:
            with attempt():
                saved(lambda path: result.save(path, overwrite=overwrite), output)
        if json is not None:
            with attempt():
                _write(document(result, model, output), json, overwrite)
        with attempt():
            _certify(result, asked, certificate, overwrite, options.left(time_limit))
        if not quiet and str(json) != "-":
            say("\n".join([summary(result, model.stem), *([reasons(result)] if explain else [])]))
    return 0


def _asked(
    layout: list[str] | None, pad: bool, backend: str | None, costs: Path | None, free_io: bool
) -> dict[str, Any]:
    """Return the user's options apart from the objective."""
    return {
        "layout": ";".join(layout) if layout else None,
        "padding": pad,
        "backend": backend,
        "costs": costs,
        "free_io": free_io,
    }


def _certify(
    result: ConversionResult,
    asked: dict[str, Any],
    path: Path | None,
    overwrite: bool,
    time_limit: float | None,
) -> None:
    """Write the certificate of a conversion, if requested."""
    if path is None:
        return
    from layoutopt.base.limits import limited
    from layoutopt.certify.conversion import Asked, certify
    from layoutopt.io.certificate import certificate_bytes

    costs = asked["costs"] and asked["costs"].read_text("utf-8-sig")
    question = Asked(",".join(result.objectives), **{**asked, "costs": costs})
    with reserved_stdout():
        data = certificate_bytes(certify(result, question, limited(time_limit)))
    write_out(data, path, overwrite)


def _check_target(path: Path | None, model: Path, overwrite: bool) -> None:
    if path is not None and path.exists() and model.exists() and path.samefile(model):
        raise InputError("is the model itself; give another name", file=str(path))
    if path is not None and path.is_file() and not overwrite:
        raise InputError("exists already; --overwrite replaces it", file=str(path))
    options.check_target(path, overwrite)


def summary(result: ConversionResult, name: str) -> str:
    """Return the summary of a conversion as text."""
    why = "" if result.stopped == "finished" else f" ({result.stopped})"
    rows = [["status", f"{result.status}{why}"]]
    for what, values in (("objective", result.objective), ("bound", result.bound)):
        pairs = zip(result.objectives, values, strict=True)
        rows.append([what, ", ".join(f"{key} {_amount(key, value)}" for key, value in pairs)])
    rows.append(["gap", ratio(result.gap)])
    if result.difference is not None:
        rows.append(["difference", f"{result.difference:.2g}, relative"])
    rows.append(["seconds", seconds(result.seconds.get("total"))])
    lines = [f"{printable(name)}: {len(result.model.graph.node):,} nodes", table(rows, left=2), ""]
    lines.append(table([["", "transforms", "bytes moved", "free"], *_tallies(result)]))
    lines += [line for note in result.notes for line in ("", f"  note: {note}")]
    if result.opaque:
        kinds = ", ".join(f"{kind} ({count})" for kind, count in sorted(result.opaque.items()))
        lines += ["", printable(f"  unknown ops, kept as they are: {kinds}")]
    return "\n".join(lines)


def _amount(objective: str, value: int) -> str:
    """Return the value of an objective; time in microseconds, rounded to nanoseconds."""
    return f"{value / 10**9:,.3f} us" if objective == "time" else f"{value:,}"


def _tallies(result: ConversionResult) -> list[list[str]]:
    both = [("before", result.before), ("after", result.after), *result.heuristics.items()]
    rows = [[name, f"{t.transforms:,}", f"{t.bytes:,}", f"{t.free:,}"] for name, t in both]
    for name, count in result.peers.items():
        rows.append([name, "not installed" if count is None else f"{count:,}", "-", "-"])
    return rows


def reasons(result: ConversionResult) -> str:
    """Return a line for each remaining transform."""
    lines = [printable(f"  {line.op}: {line.why}") for line in result.remaining]
    return "\n".join(["", *(lines or ["  no transform remains"])])


def document(result: ConversionResult, model: Path, output: Path | None) -> dict[str, Any]:
    """Return a conversion as a document of format ``layoutopt/conversion/1``."""
    names = result.objectives
    return {
        "format": FORMAT,
        "model": str(model),
        "instance_hash": result.instance_hash,
        "output": None if output is None else str(output),
        "status": str(result.status),
        "objective": dict(zip(names, result.objective, strict=True)),
        "bound": dict(zip(names, result.bound, strict=True)),
        "gap": result.gap,
        "stopped": str(result.stopped),
        "version": result.version,
        "seed": result.seed,
        "seconds": dict(result.seconds),
        "before": vars(result.before),
        "after": vars(result.after),
        "remaining": [vars(line) for line in result.remaining],
        "opaque": dict(result.opaque),
        "difference": result.difference,
        "heuristics": {name: vars(tally) for name, tally in result.heuristics.items()},
        "peers": dict(result.peers),
        "notes": list(result.notes),
        "partial": result.partial,
    }


def _write(content: dict[str, Any], path: Path, overwrite: bool) -> None:
    from layoutopt.base.files import encode_lines

    write_out(encode_lines(content), path, overwrite)
