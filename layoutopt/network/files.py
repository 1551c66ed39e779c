"""Cost networks read from files and written to them, by the names and contents of these."""

from __future__ import annotations

import re
from pathlib import Path

from layoutopt.base import files
from layoutopt.base.errors import InputError
from layoutopt.network.archive import npz_bytes, parse_npz
from layoutopt.network.document import json_bytes, parse_json
from layoutopt.network.network import Network

PACKED = (".gz", ".xz")
"""How the names of packed files end."""

ENDINGS = (".json", ".npz", ".cfn", ".wcsp", ".uai")
"""How the names of networks end, but for :data:`PACKED`."""


def read(path: str | Path, *, digits: int = 6) -> Network:
    """Read a network.

    Parameters
    ----------
    path
        A file of format ``layoutopt/network/1`` (``.json``, ``.npz``), of toulbar2 (``.cfn``,
        ``.wcsp``, ``.uai``), or of the IOPDDL contest (``.json``), perhaps packed (``.gz``,
        ``.xz``); ``-`` is standard input.
    digits
        To how many digits after the point costs of a ``.uai`` file are rounded.

    Raises
    ------
    InputError
        If it cannot be read, with the place in it and the reason.
    """
    target = files.named(path)
    kind = _kind(target, files.read_bytes(target, HEAD))
    if kind == "iopddl":
        from layoutopt.network import iopddl

        return iopddl.read(target)
    raw = files.read_bytes(target)
    if kind == ".npz":
        return parse_npz(raw, str(path))
    if kind in (".cfn", ".wcsp", ".uai"):
        from layoutopt.network import toulbar2

        if kind == ".uai":
            return toulbar2.parse_uai(raw, str(path), digits)
        parse = toulbar2.parse_cfn if kind == ".cfn" else toulbar2.parse_wcsp
        return parse(raw, str(path))
    return parse_json(raw, str(path))


HEAD = 4096
"""Bytes of a file that tell its format."""


def _kind(path: Path, head: bytes) -> str:
    """Return which format a file has: by its name, or else by how it begins."""
    name = path.with_suffix("") if path.suffix in PACKED else path
    if name.suffix in ENDINGS and name.suffix != ".json":
        return name.suffix
    if head.startswith(b"PK"):
        return ".npz"
    head = head.removeprefix(files.BOM).lstrip()
    if head.startswith((b"MARKOV", b"BAYES")):
        return ".uai"
    if head.startswith((b"{", b"#", b"//")):
        contest = re.match(rb'\{\s*"problem"\s*:', head)
        return ".cfn" if b"mustbe" in head else "iopddl" if contest else ".json"
    header = head.split(maxsplit=5)[1:5]
    return ".wcsp" if len(header) == 4 and all(map(bytes.isdigit, header)) else ".json"


def write(network: Network, path: str | Path, *, overwrite: bool = True) -> None:
    """Write a network as a file.

    Parameters
    ----------
    path
        Its name ends in ``.npz``, ``.json`` or ``.cfn``, the latter two perhaps in ``.gz``.

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
    elif target.name.endswith((".cfn", ".cfn.gz")):
        from layoutopt.network.toulbar2 import cfn_bytes

        data = cfn_bytes(network)
    else:
        raise InputError("must end in .json, .npz, .cfn, .json.gz or .cfn.gz", file=str(path))
    files.write_bytes(target, data, overwrite=overwrite)
