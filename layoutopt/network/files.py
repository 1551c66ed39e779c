"""Cost networks read from files and written to them, by the names and contents of these."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from layoutopt.base import files
from layoutopt.base.entries import LazyTable
from layoutopt.base.errors import InputError, errors_at

if TYPE_CHECKING:
    from layoutopt.network.builder import CostNetwork
    from layoutopt.network.network import Network

PACKED = (".gz", ".xz")
"""How the names of packed files end."""

ENDINGS = (".json", ".npz", ".cfn", ".wcsp", ".uai")
"""How the names of networks end, but for :data:`PACKED`."""

SUFFIXES = tuple(f"{ending}{packed}" for packed in ("", *PACKED) for ending in ENDINGS[1:])
"""How the names of files end that always hold networks."""

PARSERS: LazyTable[Callable[..., Network]] = LazyTable(
    {
        ".json": "layoutopt.network.document:parse_json",
        ".npz": "layoutopt.network.archive:parse_npz",
        ".cfn": "layoutopt.network.toulbar2:parse_cfn",
        ".wcsp": "layoutopt.network.toulbar2:parse_wcsp",
        ".uai": "layoutopt.network.toulbar2:parse_uai",
        "iopddl": "layoutopt.network.iopddl:read",
    }
)
"""For each format the network of a file's bytes; of IOPDDL's, that of a path."""

WRITERS: LazyTable[Callable[[Network], bytes]] = LazyTable(
    {
        ".json": "layoutopt.network.document:json_bytes",
        ".npz": "layoutopt.network.archive:npz_bytes",
        ".cfn": "layoutopt.network.toulbar2:cfn_bytes",
    }
)
"""For each format the bytes of a network's file."""


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
        return PARSERS[kind](target)
    more = [digits] if kind == ".uai" else []
    with errors_at(file=str(path)):
        return PARSERS[kind](files.read_utf8(target), *more)


HEAD = 2**20  # bytes of a file that tell its format


def is_network(path: Path) -> bool:
    """Return whether a file holds a cost network, by its name or content."""
    name = str(path)
    if name.endswith(SUFFIXES):
        return True
    if not name.endswith((".json", ".json.gz", ".json.xz")) and name != files.STDIN:
        return False
    try:
        head = files.read_bytes(path, HEAD)
    except InputError:  # reported when the file is read
        return False
    return _kind(path, head) != ".json" or b'"layoutopt/network/' in head


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
        if re.search(rb'"format"\s*:\s*"layoutopt/', head):
            return ".json"
        contest = re.match(rb'\{\s*"problem"\s*:', head)
        return ".cfn" if b"mustbe" in head else "iopddl" if contest else ".json"
    header = head.split(maxsplit=5)[1:5]
    return ".wcsp" if len(header) == 4 and all(map(bytes.isdigit, header)) else ".json"


def write(network: Network | CostNetwork, path: str | Path, *, overwrite: bool = True) -> None:
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
    from layoutopt.network.builder import CostNetwork
    from layoutopt.network.network import Network

    given = network.build() if isinstance(network, CostNetwork) else network
    if not isinstance(given, Network):
        raise InputError(f"expected a Network, not {type(given).__name__}")
    target = files.named(path)
    for ending in WRITERS:
        if target.name.endswith(ending if ending == ".npz" else (ending, f"{ending}.gz")):
            files.write_bytes(target, WRITERS[ending](given), overwrite=overwrite)
            return
    raise InputError("must end in .json, .npz, .cfn, .json.gz or .cfn.gz", file=str(path))
