from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from layoutopt import read, read_result
from tests.cli.conftest import Run


@pytest.fixture
def result(run: Run, instance: Path) -> Path:
    """Return the result file of the instance."""
    path = instance.with_name("result.json")
    assert run("solve", instance, "--json", path, "--quiet").code == 0
    return path


def drawn(path: Path) -> str:
    """Return a picture file's text, which must be SVG."""
    text = path.read_text(encoding="utf-8")
    assert ElementTree.fromstring(text.encode()).tag.endswith("svg")
    return text


def test_an_instance_is_drawn(run: Run, instance: Path) -> None:
    """``--svg`` writes the picture, ``--html`` a page with it, and the words are printed still."""
    svg, page = instance.with_name("a.svg"), instance.with_name("a.html")
    ran = run("show", instance, "--svg", svg, "--html", page)
    assert (ran.code, ran.err) == (0, "")
    assert "left by reductions" in ran.out
    graph = read(instance)
    assert drawn(svg) == f"{graph.draw()}\n"
    text = page.read_text(encoding="utf-8")
    assert text.startswith("<!DOCTYPE html>")
    assert graph._repr_html_() in text


def test_a_result_is_drawn_on_its_instance(run: Run, instance: Path, result: Path) -> None:
    """With ``--instance`` the picture has the result's layouts, and the page its tables too."""
    svg, page = instance.with_name("a.svg"), instance.with_name("a.html")
    ran = run("show", result, "--instance", instance, "--svg", svg, "--html", page)
    assert (ran.code, ran.err) == (0, "")
    assert "optimal" in ran.out
    layouts = read_result(result).layouts
    assert drawn(svg) == f"{read(instance).draw(layouts)}\n"
    text = page.read_text(encoding="utf-8")
    assert "if all matched" in text
    assert str(read(instance).draw(layouts)).removeprefix("<svg ") in text


def test_a_result_alone_has_a_page_without_picture(run: Run, result: Path) -> None:
    """Tables need no graph."""
    page = result.with_name("a.html")
    assert run("show", result, "--html", page).code == 0
    assert "if all matched" in page.read_text()
    assert "<svg" not in page.read_text()


@pytest.mark.parametrize("flag", ["--svg", "--html"])
def test_a_picture_goes_to_stdout_alone(run: Run, instance: Path, flag: str) -> None:
    """With ``-`` nothing else is printed."""
    ran = run("show", instance, flag, "-")
    assert ran.code == 0
    assert ran.out.startswith("<svg" if flag == "--svg" else "<!DOCTYPE html>")
    assert "left by reductions" not in ran.out
    assert not (instance.parent / "-").exists()


@pytest.mark.parametrize("flag", ["--svg", "--html"])
def test_a_file_is_replaced_only_when_asked(run: Run, instance: Path, flag: str) -> None:
    """As all commands do, this one leaves files alone without ``--overwrite``."""
    target = instance.with_name("mine")
    target.write_text("mine")
    ran = run("show", instance, flag, target)
    assert ran.code == 2
    assert ran.out == ""
    assert "--overwrite" in ran.err
    assert target.read_text() == "mine"
    assert run("show", instance, flag, target, "--overwrite").code == 0
    assert "<svg" in target.read_text()


def test_what_cannot_be_drawn_is_told_in_one_line(run: Run, instance: Path, result: Path) -> None:
    """A result without its instance, or with another one, an instance with one, one file twice."""
    other = instance.with_name("other.json")
    other.write_text(instance.read_text().replace('"aliases"', '"others"'))
    less = instance.with_name("less.json")
    less.write_text(instance.read_text().replace('"x"', '"y"'))
    target = instance.with_name("a.svg")
    for words, told in [
        ([result, "--svg", target], "--instance INSTANCE"),
        ([result, "--instance", other, "--svg", target], "belongs to 'aliases'"),
        ([result, "--instance", less, "--svg", target], "unknown tensor 'x'"),
        ([instance, "--instance", other, "--svg", target], "is not a result"),
        ([instance, "--svg", target, "--html", target], "same file"),
        ([instance, "--svg", instance.parent], "is a directory"),
    ]:
        ran = run("show", *words)
        assert ran.code == 2
        assert ran.out == ""
        assert told in ran.err
        assert ran.err.count("\n") == 1
        assert not target.exists()
