"""Answers on their way out: disks that are full, folders that are shut, readers that go away."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.faults.support import COMMAND, begun, closed, ended, files, ran

ROOT = Path(__file__).parents[2]


def score(path: Path) -> float:
    found: float = json.loads(path.read_bytes())["score"]
    return found


def rescued(err: str) -> Path:
    """Return where an error says that the answer is, which must be there."""
    path = Path(err.strip().rpartition("it was saved as ")[2])
    assert path.is_file(), err
    return path


WRONG = {
    "none/a.json": "its directory does not exist",
    "file/a.json": "its directory does not exist",
    "there.json": "exists already; --overwrite replaces it",
    "/proc/a.json": "its directory cannot be written to",
}
"""Outputs that are refused before anything is solved, and why."""


@pytest.mark.parametrize("output", WRONG)
def test_outputs_that_cannot_be_are_refused_at_once(
    output: str, hard: Path, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No hour of work ends at a folder that does not exist or cannot be written to."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here").mkdir()
    (tmp_path / "file").touch()
    (tmp_path / "there.json").write_text("old")
    before = files(tmp_path)
    found = run("solve", hard, "--json", output)
    assert (found.code, found.out) == (2, "")
    assert found.err.startswith(f"layoutopt: {output}: {WRONG[output]}")
    assert len(found.err.splitlines()) == 1
    assert files(tmp_path) == before
    assert (tmp_path / "there.json").read_text() == "old"


def test_two_outputs_are_never_one_file(easy: Path, tmp_path: Path, run: Run) -> None:
    """However a file is spelled, and through links."""
    (tmp_path / "link").symlink_to(tmp_path / "a")
    for other in (tmp_path / "a", tmp_path / "." / "a", tmp_path / "link"):
        found = run("solve", easy, "--json", tmp_path / "a", "--html", other)
        assert found.code == 2
        assert "--json and --html name the same file" in found.err


def test_an_output_that_is_made_meanwhile_stays(
    easy: Path, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two runs on one file the first writes it, and the second says where its answer is."""
    from layoutopt.io import result

    target, write = tmp_path / "a.json", result.result_bytes

    def overtaken(answer: object) -> bytes:
        target.write_text("theirs")
        return write(answer)  # type: ignore[arg-type]

    monkeypatch.setattr(result, "result_bytes", overtaken)
    found = run("solve", easy, "--json", target)
    assert (found.code, target.read_text()) == (2, "theirs")
    assert f"{target}: exists already" in found.err
    assert "optimal" in found.out
    other = rescued(found.err)
    assert score(other) == 8
    other.unlink()
    other.parent.rmdir()
    assert files(tmp_path) == ["a.json"]


def test_one_file_that_cannot_be_written_keeps_none_back(
    easy: Path, tmp_path: Path, run: Run
) -> None:
    """Other outputs are written, the summary is printed, and the answer is not lost."""
    page = tmp_path / "page.html"
    found = run("solve", easy, "--json", "/dev/full", "--html", page)
    assert found.code == 2
    assert found.err.startswith("layoutopt: /dev/full: cannot be written (No space left on device)")
    assert "optimal" in found.out
    assert "<html" in page.read_text()
    other = rescued(found.err)
    assert score(other) == 8
    other.unlink()
    other.parent.rmdir()


def test_a_disk_that_is_full(easy: Path, tmp_path: Path) -> None:
    """Nothing half written is left, the old file is whole, and one line says what happened."""
    target = tmp_path / "a.json"
    target.write_text("old")

    def small() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))

    words = "solve", easy, "--json", target, "--overwrite"
    found = ran(*words, preexec_fn=small, env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"})
    assert (found.code, target.read_text()) == (2, "old")
    assert found.err == f"layoutopt: {target}: cannot be written (File too large)\n"
    assert "optimal" in found.out
    assert files(tmp_path) == ["a.json"]


def test_stdout_on_a_full_disk(easy: Path) -> None:
    """What cannot be printed is an error, not silence, and not a traceback at the very end."""
    with open("/dev/full", "w") as full:
        for words in (("solve", easy), ("solve", easy, "--json", "-"), ("--help",)):
            found = ran(*words, stdout=full)
            assert found.code == 2
            assert found.err.splitlines()[-1].endswith("No space left on device)") or (
                words == ("--help",) and "No space left" in found.err
            )


@pytest.mark.parametrize("numbers", [(0,), (1,), (2,), (0, 1, 2)])
def test_closed_streams(numbers: tuple[int, ...], easy: Path, tmp_path: Path) -> None:
    """A program that is begun without standard streams answers, and writes into no other file."""
    target = tmp_path / "a.json"
    found = ran("solve", easy, "--json", target, preexec_fn=closed(*numbers))
    assert (found.code, score(target)) == (0, 8)
    assert files(tmp_path) == ["a.json"]


def test_no_stdout_for_an_answer(easy: Path) -> None:
    """An answer that can go nowhere is refused at once."""
    found = ran("solve", easy, "--json", "-", preexec_fn=closed(1))
    assert found.code == 2
    assert found.err == "layoutopt: standard output: cannot be written (it is closed)\n"


def test_readers_that_go_away(hard: Path, tmp_path: Path) -> None:
    """Whoever closes the pipe of progress and summary, the answer is still found and written."""
    target = tmp_path / "a.json"
    words = "solve", hard, "--time-limit", 4, "--json", target
    with subprocess.Popen(
        [*COMMAND, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline()  # as head -1 does
        process.stdout.close()
        assert process.wait(120) == 0
    assert files(tmp_path) == ["a.json"]
    assert json.loads(target.read_bytes())["layouts"]


def test_two_runs_on_one_file(easy: Path, tmp_path: Path) -> None:
    """The file is always one of the answers, whole."""
    target = tmp_path / "a.json"
    runs = [begun("solve", easy, "--json", target, "--overwrite", "--quiet") for _ in range(3)]
    assert [ended(run) for run in runs] == [(0, "", "")] * 3
    assert (score(target), files(tmp_path)) == (8, ["a.json"])


ODD = "ünï\udcff.json"
"""A name whose bytes are no UTF-8."""


def test_names_that_are_no_text(easy: Path, tmp_path: Path) -> None:
    """Files may have any name; where it is printed, what cannot be shown is escaped."""
    instance, target = tmp_path / ODD, tmp_path / f"out-{ODD}"
    instance.write_bytes(easy.read_bytes())
    for encoding in ("utf-8", "ascii"):
        env = os.environ | {"PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"}
        page = tmp_path / f"{encoding}.html"
        words = "solve", instance, "--json", target, "--html", page, "--overwrite"
        assert ran(*words, env=env).code == 0
        assert (score(target), "solve" in page.read_text("utf-8")) == (8, True)
        found = ran("check", instance, target, env=env)
        assert (found.code, "legal" in found.out) == (0, True)
        missing = ran("solve", tmp_path / f"no-{ODD}", env=env)
        assert (missing.code, "no such file" in missing.err) == (2, True)


def test_a_working_directory_that_has_gone(easy: Path, tmp_path: Path) -> None:
    """What does not need it works; what does says so."""

    def leave() -> None:
        gone = tmp_path / "gone"
        gone.mkdir()
        os.chdir(gone)
        gone.rmdir()

    assert ran("solve", easy, "--json", tmp_path / "a.json", preexec_fn=leave).code == 0
    assert score(tmp_path / "a.json") == 8
    for words in (("solve", easy, "--json", "b.json"), ("solve", "mine:build")):
        found = ran(*words, preexec_fn=leave)
        assert (found.code, len(found.err.splitlines())) == (2, 1), found.err


def test_no_home(easy: Path, tmp_path: Path) -> None:
    """Nothing is looked for in the home folder, and nothing is written there."""
    bare = {name: value for name, value in os.environ.items() if name in ("PATH", "PYTHONPATH")}
    for kind, begins, env in (
        ("svg", b"<svg", bare),
        ("png", b"\x89PNG", bare | {"HOME": "/proc/none"}),
    ):
        picture = tmp_path / f"a.{kind}"
        assert ran("show", easy, f"--{kind}", picture, env=env, cwd=ROOT).code == 0
        assert picture.read_bytes()[:4] == begins


def test_a_reader_that_waits_for_one_line(easy: Path) -> None:
    """``layoutopt solve ... --json - | head -1`` is no error."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as reader:
        process = begun("solve", easy, "--json", "-", "--quiet", stdout=reader.stdin)
        assert ended(process) == (0, "", "")
