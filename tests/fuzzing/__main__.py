"""``python -m tests.fuzzing TARGET``: look for files that upset the package."""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

LINE = re.compile(r"#(\d+)\s+(\w+)\s+(?:cov: (\d+) )?(?:ft: \d+ )?corp: (\d+)")
"""What libFuzzer tells now and then: executions, event, branches reached, files kept."""


def main() -> int:
    """Fuzz one target; the exit code is 1 if a promise is broken."""
    options = _options()
    if options.inside:
        _fuzz_here(options)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        corpus = options.corpus or Path(folder) / "corpus"
        findings = options.findings or Path.cwd() / f"findings-{options.target}"
        for path in (corpus, findings):
            path.mkdir(parents=True, exist_ok=True)
        told = _rounds(options.target, options.seconds, corpus, findings)
    found = sorted(path for path in findings.iterdir() if path.suffix != ".txt")
    lines = [told, *map(str, found), f"{len(found)} findings" if found else "no findings"]
    sys.stdout.write("\n".join([*lines, ""]))
    return 1 if found else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzzing", description=__doc__)
    parser.add_argument("target", help="instance, result, settings, store, layout, ...")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--corpus", type=Path, help="files to begin with; new ones are added")
    parser.add_argument("--findings", type=Path, help="where inputs go that break a promise")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def _rounds(target: str, seconds: int, corpus: Path, findings: Path) -> str:
    """Run campaigns in processes of their own, the next one where one dies; return figures."""
    end = time.monotonic() + seconds
    executions, first, last, files = 0, "", "", "0"
    while (left := round(end - time.monotonic())) > 0:
        words = [sys.executable, "-m", "tests.fuzzing", target, "--inside"]
        words += ["--seconds", str(left), "--corpus", str(corpus), "--findings", str(findings)]
        here = 0
        with subprocess.Popen(words, stderr=subprocess.PIPE, text=True, errors="replace") as child:
            assert child.stderr is not None
            for line in child.stderr:
                if found := LINE.search(line):
                    here, files = int(found[1]), found[4]
                    first, last = first or found[3] or "", found[3] or last
                else:
                    sys.stderr.write(line)
        executions += here
        if child.returncode and not here:
            raise SystemExit(f"the campaign cannot begin (code {child.returncode})")
    return f"{target}: {executions} executions, branches {first} -> {last}, {files} files kept"


def _fuzz_here(options: argparse.Namespace) -> None:
    try:
        import atheris
    except ImportError:
        from tests.fuzzing.campaign import fuzz
    else:
        with atheris.instrument_imports(include=["layoutopt"]):
            from tests.fuzzing.campaign import fuzz

            ...
    fuzz(options.target, options.seconds, options.corpus, options.findings)


if __name__ == "__main__":
    raise SystemExit(main())
