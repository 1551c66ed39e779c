"""Tile memories: machines of many small memories, by their numbers or by a preset's name."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct
from msgspec.structs import force_setattr

from layoutopt.base.errors import InputError
from layoutopt.base.numbers import least

MOST_TILES = 2**24
MOST = 2**40
"""The largest number that a tile memory may hold."""

Tiles = Annotated[int, Meta(ge=1, le=MOST_TILES)]
Positive = Annotated[int, Meta(ge=1, le=MOST)]

DEFAULT_ELEMENT_BYTES = 4
"""Bytes of an element of which ``element_bytes`` says nothing: a 32-bit float."""

DEFAULT_EXCHANGE = 4
"""Bytes per cycle that a tile is taken to receive where a memory does not say it."""


class TileMemory(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A machine of many small memories.

    Parameters
    ----------
    tiles
        Number of tiles, 1 to 2^24.
    bytes_per_tile
        Capacity of each, in bytes; this and all other numbers are 1 to 2^40.
    element_bytes
        Bytes per element by tensor name, and of all others under ``"default"``; 4 without that.
    grain
        Number of consecutive elements of a sink that share a tile.
    exchange_bytes_per_cycle
        Bandwidth of a tile: bytes that it receives in a cycle.

    Raises
    ------
    InputError
        If a number is no integer in its range.
    """

    tiles: Tiles
    bytes_per_tile: Positive
    element_bytes: dict[str, Positive] = {}
    grain: Positive = 1
    exchange_bytes_per_cycle: Positive | None = None

    def __post_init__(self) -> None:
        """Check what the decoder of files checks, for memories that are made in Python."""
        force_setattr(self, "tiles", least("tiles", self.tiles, most=MOST_TILES))
        for field in ("bytes_per_tile", "grain"):
            force_setattr(self, field, least(field, getattr(self, field), most=MOST))
        if self.exchange_bytes_per_cycle is not None:
            name = "exchange_bytes_per_cycle"
            force_setattr(self, name, least(name, self.exchange_bytes_per_cycle, most=MOST))
        given: Any = self.element_bytes
        if not isinstance(given, dict):
            kind = type(given).__name__
            raise InputError(f"element_bytes must be a dictionary by tensor name, not {kind}")
        widths = {}
        for tensor, width in given.items():
            if not isinstance(tensor, str):
                raise InputError(f"element_bytes: {tensor!r} is no tensor name, nor 'default'")
            widths[tensor] = least(f"element_bytes[{tensor!r}]", width, most=MOST)
        force_setattr(self, "element_bytes", widths)

    @property
    def total(self) -> int:
        """The bytes of all tiles together."""
        return self.tiles * self.bytes_per_tile

    def bytes_of(self, tensor: str) -> int:
        """Return the bytes of an element of a tensor, given by name."""
        default = self.element_bytes.get("default", DEFAULT_ELEMENT_BYTES)
        return self.element_bytes.get(tensor, default)

    def capacity(self, tensor: str = "default") -> int:
        """Return how many elements of a tensor an empty tile can hold."""
        return self.bytes_per_tile // self.bytes_of(tensor)


PRESETS = {
    "ipu-mk1": TileMemory(1216, 256 * 1024, exchange_bytes_per_cycle=4),
    "ipu-mk2": TileMemory(1472, 624 * 1024, exchange_bytes_per_cycle=4),
}
"""Known machines by name.

``"ipu-mk1"``: one Graphcore Colossus GC2.  1216 tiles of 256 KiB: Jia, Tillman, Maggioni and
Scarpazza, *Dissecting the Graphcore IPU Architecture via Microbenchmarking*, arXiv 1912.03413.

``"ipu-mk2"``: one Graphcore Colossus MK2 GC200.  1472 tiles, 900 MB together: Graphcore, *IPU
Programmer's Guide*, chapter on hardware; 624 KiB a tile makes 897 MiB.

The bandwidth of 4 bytes per cycle is derived, not quoted.  Graphcore gives 8 TB/s of exchange
for a GC200; over 1472 tiles at about 1.33 GHz that is 4.1.  For the GC2, at 1.6 GHz, the same 4
is assumed.  Part of a real tile's memory holds code: give a smaller ``bytes_per_tile`` for that.
"""


def known_memory(given: TileMemory | str) -> TileMemory:
    """Return a memory itself, or the preset of a name."""
    if isinstance(given, TileMemory):
        return given
    if isinstance(given, str) and given in PRESETS:
        return PRESETS[given]
    known = ", ".join(PRESETS)
    raise InputError(f"a TileMemory is needed, or the name of one ({known}), not {given!r}")
