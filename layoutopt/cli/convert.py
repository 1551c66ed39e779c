"""``layoutopt convert``: conversion of ONNX models with provably fewest layout transforms."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from layoutopt.base.errors import InputError, printable
from layoutopt.cli import options
from layoutopt.cli.options import OutputFiles, flag, option
from layoutopt.cli.streams import STDOUT_NAME, all_done, note, reserved_stdout, saved, shown

if TYPE_CHECKING:
    from layoutopt.onnx.result import ConversionResult

FORMAT = "layoutopt/conversion/1"


@dataclass(frozen=True)
class ConversionOptions:
    """Options that say what is minimised, and under which requirements."""

    layout: Annotated[
        list[str] | None,
        option(
            "TYPE=LAYOUTS",
            "Required layouts, by op type (Conv=NHWC,HWIO), node name (@name=NCHW) or for all "
            "others (default=NHWC, skip=Resize); repeatable.",
        ),
    ] = None
    pad: Annotated[
        bool,
        flag("Pad channels with zeros where the blocks of --layout do not divide them.", "--pad"),
    ] = False
    backend: Annotated[
        str | None,
        option(
            "NAME",
            "Use the required layouts of this backend instead: canonical, nchw, nhwc or blocked.",
        ),
    ] = None
    costs: Annotated[
        Path | None,
        option(
            "FILE", "TOML file with the measured time of each op in each layout, and of transforms."
        ),
    ] = None
    objective: Annotated[
        str | None,
        option(
            "NAMES",
            "What to minimise, most important first: count (of transforms), changed (ops that run "
            "along other axes than written), bytes (that transforms move), and with --costs time.",
            show_default="count,changed,bytes; time,count with --costs",
        ),
    ] = None
    solver: Annotated[str, option("NAME", "auto, or a heuristic, which proves nothing.")] = "auto"
    free_io: Annotated[
        bool, flag("Allow inputs and outputs of the model to change their layouts.", "--free-io")
    ] = False
    microsoft: Annotated[
        bool,
        flag("Allow FusedMatMul, and QLinearConv channels last, of com.microsoft.", "--microsoft"),
    ] = False

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of a conversion, apart from the objective and the solver."""
        return {
            "layout": ";".join(self.layout) if self.layout else None,
            "padding": self.pad,
            "backend": self.backend,
            "costs": self.costs,
            "free_io": self.free_io,
            "microsoft": self.microsoft,
        }


@dataclass(frozen=True)
class ReportOptions:
    """Options that say what else is printed about a conversion."""

    check: Annotated[
        bool,
        flag("Run both models on the same random inputs and compare their outputs.", "--check"),
    ] = False
    compare: Annotated[
        bool, flag("Also count the transforms that each heuristic leaves.", "--compare")
    ] = False
    peers: Annotated[
        bool,
        flag("Also count the transposes that onnxsim, onnxslim and onnxruntime leave.", "--peers"),
    ] = False
    explain: Annotated[
        bool, flag("Explain why each remaining transform is needed.", "--explain")
    ] = False

    def reasons(self, result: ConversionResult) -> str:
        """Return a line for each remaining transform, if these are to be explained."""
        if not self.explain:
            return ""
        lines = [printable(f"  {line.op}: {line.why}") for line in result.remaining]
        return "\n".join(["\n", *(lines or ["  no transform remains"])])


@options.grouped
def command(
    model: options.Model,
    output: Annotated[
        Path | None,
        option(
            "OUT.onnx",
            "Write the converted model; - is standard output, without it nothing is written.",
            "--output",
            "-o",
        ),
    ] = None,
    *,
    how: ConversionOptions,
    report: ReportOptions,
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
    options.limit(time_limit, memory_limit)
    files = {"--output": _model_file(output), "--json": json, "--certificate": certificate}
    outputs = OutputFiles(files, overwrite, quiet, inputs=[model, how.costs])
    from layoutopt.base.files import encode_lines
    from layoutopt.converting import convert  # importing takes seconds
    from layoutopt.onnx.protobuf import proto_bytes

    with shown(quiet) as tell, reserved_stdout():
        result = convert(
            model,
            **how.arguments(),
            objective=how.objective,
            solver=how.solver,
            time_limit=options.left(time_limit),
            seed=seed,
            check=report.check,
            compare=report.compare,
            peers=report.peers,
            progress=tell,
        )
    times = {**result.seconds, "total": options.spent()}
    result = replace(result, seconds={} if no_seconds else times)
    makers = {
        "--json": lambda: encode_lines(document(result, model, output)),
        "--certificate": lambda: _certificate(result, how.arguments(), options.left(time_limit)),
    }
    with all_done() as attempt:
        if str(output) == "-":
            makers["--output"] = lambda: proto_bytes(result.model, STDOUT_NAME)
        elif output is not None:
            with attempt():
                saved(lambda path: result.save(path, overwrite=overwrite), output)
        with attempt():
            outputs.refuse(result.source.files)
            outputs.write(makers, lambda: result.summary() + report.reasons(result))
    return 0


def _model_file(path: Path | None) -> Path | None:
    """Return the file of a model; refuse names of other kinds of files."""
    if path is not None and path.name.endswith((".json", ".json.gz", ".html")):
        raise InputError("-o is the converted model; --json writes its figures", file=str(path))
    return path


def _certificate(
    result: ConversionResult, arguments: dict[str, Any], time_limit: float | None
) -> bytes | None:
    if result.partial and result.stopped != "finished":
        why = f"not all ops were converted ({result.stopped})"
        note(f"layoutopt: {result.source.name}: no certificate is written: {why}")
        return None
    from layoutopt.base.limits import limited
    from layoutopt.certify.conversion import Asked, certify
    from layoutopt.io.certificate import certificate_bytes

    costs = arguments["costs"] and arguments["costs"].read_text("utf-8-sig")
    question = Asked(",".join(result.objectives), **{**arguments, "costs": costs})
    with reserved_stdout():
        return certificate_bytes(certify(result, question, limited(time_limit)))


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
        "freed": dict(result.conversion.freed),
        "opaque": dict(result.opaque),
        "difference": result.difference,
        "heuristics": {name: vars(tally) for name, tally in result.heuristics.items()},
        "peers": dict(result.peers),
        "notes": list(result.notes),
        "partial": result.partial,
    }
