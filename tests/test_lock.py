"""What the package needs is bounded with reasons, and locked with hashes."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
LOCK = ROOT / ".ci/lock.txt"

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
UNBOUNDED = ("dev", "lock")
"""Extras of tools, which the lock alone bounds above."""

UNLOCKED = ("fuzz", "networks")
"""Extras that are installed by hand, where they are used."""

pytestmark = pytest.mark.skipif(not LOCK.exists(), reason="no lock outside of the repository")


def pinned() -> dict[str, set[str]]:
    """Return the versions of each locked package; there may be one for each kind of system."""
    found: dict[str, set[str]] = {}
    entry = r"^([\w.-]+)(?:\[[\w,-]+\])?==([\w.]+)"
    for name, version in re.findall(entry, LOCK.read_text(), re.MULTILINE):
        found.setdefault(name.lower(), set()).add(version)
    return found


def test_what_is_needed_is_locked() -> None:
    """Every dependency, and those of most extras, is there in versions that are allowed."""
    locked = pinned()
    needed = [*PROJECT["dependencies"]]
    needed += [each for extra, texts in EXTRAS.items() if extra not in UNLOCKED for each in texts]
    for requirement in map(Requirement, needed):
        if requirement.name == "layoutopt":
            continue
        versions = locked[requirement.name.lower()]
        assert all(map(requirement.specifier.contains, versions)), requirement


def test_locked_packages_have_hashes_and_no_places() -> None:
    """Each entry has hashes, and nothing says where it came from."""
    text = LOCK.read_text()
    entries = re.split(r"^(?=\w)", text, flags=re.MULTILINE)[1:]
    assert len(entries) > 100
    assert all("--hash=sha256:" in entry for entry in entries)
    assert "://" not in text
    assert not re.search(r"^-", text, re.MULTILINE)


def test_bounds_have_both_ends() -> None:
    """What users install is bounded below and above; versions that are dates only below."""
    told = [*PROJECT["dependencies"]]
    told += [each for extra, texts in EXTRAS.items() if extra not in UNBOUNDED for each in texts]
    for requirement in map(Requirement, told):
        signs = {bound.operator for bound in requirement.specifier}
        assert signs == ({">="} if requirement.name == "dask" else {">=", "<"}), requirement


def test_bounds_have_reasons() -> None:
    """A comment stands above each dependency, and above each extra."""
    lines = (ROOT / "pyproject.toml").read_text("utf-8").splitlines()
    begin, end = lines.index("dependencies = ["), lines.index("[project.scripts]")
    entries = [
        i
        for i in range(begin + 1, end)
        if re.match(r'  "|\w+ = \[', lines[i])
        and not lines[i - 1].startswith(('  "', "dev", *UNLOCKED))
    ]
    assert len(entries) >= len(PROJECT["dependencies"]) + len(EXTRAS) - 1
    assert [lines[i] for i in entries if not lines[i - 1].lstrip().startswith("#")] == []


def test_fuzzing_is_for_linux_and_no_part_of_dev() -> None:
    """Atheris has wheels for some systems only, so that it must not be in everybody's way."""
    [fuzz] = map(Requirement, EXTRAS["fuzz"])
    assert fuzz.marker is not None
    system = {"sys_platform": "linux", "python_version": "3.13"}
    assert fuzz.marker.evaluate(system)
    assert not fuzz.marker.evaluate(system | {"python_version": "3.14"})
    assert not fuzz.marker.evaluate(system | {"sys_platform": "darwin"})
    assert "atheris" not in pinned()
