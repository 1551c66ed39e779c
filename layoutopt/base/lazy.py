"""Tables of functions that are imported when they are first asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from importlib import import_module
from typing import Any, TypeVar

T = TypeVar("T")


class LazyTable(MutableMapping[str, T]):
    """Functions by name; looking at the names imports nothing.

    Parameters
    ----------
    places
        Where each is defined, as ``module:attribute``.
    """

    def __init__(self, places: Mapping[str, str]) -> None:
        self._entries: dict[str, Any] = dict(places)

    def __getitem__(self, name: str) -> T:
        entry = self._entries[name]
        if isinstance(entry, str):
            module, _, attribute = entry.partition(":")
            entry = getattr(import_module(module), attribute)
        found: T = entry
        return found

    def __setitem__(self, name: str, entry: T) -> None:
        self._entries[name] = entry

    def __delitem__(self, name: str) -> None:
        del self._entries[name]

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)
