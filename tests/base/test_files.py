"""Whole files: written at once or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from layoutopt.base.files import atomic_write, check_writable
from tests.faults.support import files


def write(path: Path, data: bytes, *, overwrite: bool = True) -> None:
    with atomic_write(path, overwrite=overwrite) as file:
        file.write(data)


def test_a_file_is_there_when_it_is_whole(tmp_path: Path) -> None:
    """While it is written nobody sees it under its name, or what it replaces is still whole."""
    path = tmp_path / "a"
    for before in (None, b"one"):
        with atomic_write(path) as file:
            file.write(b"two")
            assert (path.read_bytes() if path.exists() else None) == before
        assert path.read_bytes() == b"two"
        path.write_bytes(b"one")
    assert files(tmp_path) == ["a"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, MemoryError])
def test_what_ends_early_leaves_all_as_it_was(tmp_path: Path, error: type[BaseException]) -> None:
    """An error in the middle, or Ctrl-C, leaves the old file, and no temporary one."""
    path = tmp_path / "a"
    path.write_bytes(b"old")

    def interrupted() -> None:
        with atomic_write(path) as file:
            file.write(b"new")
            raise error

    with pytest.raises(error):
        interrupted()
    assert (path.read_bytes(), files(tmp_path)) == (b"old", ["a"])


def test_bytes_are_on_the_disk_before_they_get_the_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that turns out to be full leaves the old file whole."""
    path = tmp_path / "a"
    path.write_bytes(b"old")

    def full(_handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write(path, b"new")
    assert (path.read_bytes(), files(tmp_path)) == (b"old", ["a"])


def test_nothing_is_replaced_that_must_not_be(tmp_path: Path) -> None:
    """Neither a file that was there, nor one that was made in the meantime."""
    path = tmp_path / "a"

    def overtaken() -> None:
        with atomic_write(path, overwrite=False) as file:
            path.write_bytes(b"theirs")
            file.write(b"ours")

    with pytest.raises(FileExistsError):
        overtaken()
    with pytest.raises(FileExistsError):
        write(path, b"ours", overwrite=False)
    assert (path.read_bytes(), files(tmp_path)) == (b"theirs", ["a"])


def test_file_systems_without_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There files are renamed, unless another one has come in between."""

    def none(*_: object) -> None:
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", none)
    write(tmp_path / "a", b"one", overwrite=False)
    assert ((tmp_path / "a").read_bytes(), files(tmp_path)) == (b"one", ["a"])

    def overtaken() -> None:
        with atomic_write(tmp_path / "b", overwrite=False):
            (tmp_path / "b").write_bytes(b"theirs")

    with pytest.raises(FileExistsError):
        overtaken()
    assert (tmp_path / "b").read_bytes() == b"theirs"


@pytest.mark.parametrize("there", [True, False])
def test_links_stay(tmp_path: Path, there: bool) -> None:
    """What a link leads to is written, whether it is there or not, beside its own place."""
    (tmp_path / "far").mkdir()
    target, link = tmp_path / "far" / "a", tmp_path / "link"
    if there:
        target.write_bytes(b"old")
    link.symlink_to(target)
    write(link, b"new")
    assert link.is_symlink()
    assert (target.read_bytes(), files(tmp_path / "far")) == (b"new", ["a"])


@pytest.mark.parametrize("mask", [0o022, 0o077])
def test_permissions(tmp_path: Path, mask: int) -> None:
    """A new file has those that the umask leaves, a replaced one keeps its own."""
    before = os.umask(mask)
    try:
        write(tmp_path / "new", b"")
        (tmp_path / "old").touch()
        (tmp_path / "old").chmod(0o604)
        write(tmp_path / "old", b"")
    finally:
        os.umask(before)
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o666 & ~mask
    assert (tmp_path / "old").stat().st_mode & 0o777 == 0o604


def test_the_longest_name_can_be_written(tmp_path: Path) -> None:
    """The temporary file's name is not made of the file's, which may be as long as can be."""
    write(tmp_path / ("n" * 255), b"x")
    assert files(tmp_path) == ["n" * 255]


def test_pipes_are_written_to(tmp_path: Path) -> None:
    """What is no file is not replaced by one, be replacing allowed or not."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write(path, b"through", overwrite=False)
        assert os.read(reader, 100) == b"through"
    finally:
        os.close(reader)
    assert path.is_fifo()


def test_folders(tmp_path: Path) -> None:
    """A folder is no file; whether one can be written to is found out without a trace."""
    with pytest.raises(IsADirectoryError):
        write(tmp_path, b"")
    check_writable(tmp_path)
    assert files(tmp_path) == []
    for folder in (tmp_path / "none", Path("/proc")):
        with pytest.raises(OSError, match=r"such file|denied|permitted|Read-only"):
            check_writable(folder)
