"""Sources of a suite's instances."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from layoutopt.base.files import encode

if TYPE_CHECKING:
    from layoutopt.graphs.unwinding import Graph


@dataclass(frozen=True)
class FileSource:
    """An instance or a network in a file.

    Parameters
    ----------
    name
        What tables call it.
    path
        The file.
    attractions, dims, training
        For a network, as for :func:`layoutopt.reading.read`; dimensions as pairs.
    tiles
        A tile memory in place of the file's own, by name or JSON file; "" for none.
    """

    name: str
    path: str
    attractions: str = ""
    dims: tuple[tuple[str, int], ...] = ()
    training: str = ""
    tiles: str = ""

    family = ""

    def graph(self) -> Graph:
        """Read the file."""
        from layoutopt.reading import read

        return read(
            self.path,
            attractions=self.attractions or None,
            dims=dict(self.dims),
            training=self.training or None,
        )


@dataclass(frozen=True)
class FamilySource:
    """An instance of a family.

    Parameters
    ----------
    name
        What tables call it.
    family
        A key of :data:`layoutopt.generate.families.FAMILIES`.
    settings
        Parameters by name, as text.
    tiles
        As for :class:`FileSource`.
    """

    name: str
    family: str
    settings: tuple[tuple[str, str], ...] = ()
    tiles: str = ""

    def graph(self) -> Graph:
        """Generate the instance."""
        from layoutopt.generate.families import generate

        return generate(self.family, dict(self.settings))


Source: TypeAlias = FileSource | FamilySource


def load(source: Source) -> Graph:
    """Return the graph of a source.

    Raises
    ------
    InputError
        If there is none, or it is wrong.
    """
    from layoutopt.io.instance import tile_memory

    graph = source.graph()
    if source.tiles:
        graph.tile_memory = tile_memory(source.tiles)
    return graph


def document_hash(graph: Graph) -> str:
    """Return the SHA-256 of a graph's instance file without its description."""
    from layoutopt.io.instance import instance_bytes

    told, graph.description = graph.description, ""
    try:
        return hashlib.sha256(instance_bytes(graph)).hexdigest()
    finally:
        graph.description = told


def identity(source: Source, version: str) -> str:
    """Return a hash of all that a source's graph depends on, without making the graph.

    It tells a later run of the same version which graph that was, so that nothing has to be read
    or generated to know that all is done.  Of files it is the content that counts.
    """
    files = [source.tiles]
    if isinstance(source, FileSource):
        files += [source.path, source.attractions]
        given: object = [Path(source.path).suffixes[-2:], source.dims, source.training]
    else:
        given = [source.family, source.settings]
    contents = [_content(file) for file in files]
    return hashlib.sha256(encode([version, given, contents])).hexdigest()


def _content(file: str) -> str:
    """Return the hash of a file's bytes; the name of what is no file, or cannot be read."""
    try:
        with Path(file).open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError:
        return file
