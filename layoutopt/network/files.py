"""Networks of costs read from files and written to them, by the names and contents of these."""

from __future__ import annotations

from pathlib import Path

from layoutopt.base import files
from layoutopt.base.errors import InputError
from layoutopt.network.archive import npz_bytes, parse_npz
from layoutopt.network.document import json_bytes, parse_json
from layoutopt.network.network import Network

ZIP = b"PK"
"""The first bytes of an ``.npz`` file."""


def read(path: str | Path) -> Network:
    """Read a network.

    Parameters
    ----------
    path
        A file of format ``layoutopt/network/1``, as JSON (``.json``, ``.json.gz``) or ``.npz``.

    Raises
    ------
    InputError
        If it cannot be read, with the place in it and the reason.
    """
    target = files.named(path)
    raw = files.read_bytes(target)
    return (parse_npz if raw.startswith(ZIP) else parse_json)(raw, str(path))


def write(network: Network, path: str | Path, *, overwrite: bool = True) -> None:
    """Write a network as a file.

    Parameters
    ----------
    path
        Its name ends in ``.json``, ``.json.gz`` or ``.npz``.

    Raises
    ------
    InputError
        If the name ends otherwise, the file cannot be written, or exists although ``overwrite``
        is false.
    """
    target = files.named(path)
    if target.name.endswith(".npz"):
        data = npz_bytes(network)
    elif target.name.endswith(files.INSTANCES):
        data = json_bytes(network)
    else:
        raise InputError("must end in .json, .json.gz or .npz", file=str(path))
    files.write_bytes(target, data, overwrite=overwrite)
