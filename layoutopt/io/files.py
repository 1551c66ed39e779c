"""Bytes from and to files, with errors that name the file and nothing half written."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import msgspec

from layoutopt.errors import InputError
from layoutopt.graphs.values import MAX_EXPONENT, exact_decimal
from layoutopt.saving import whole_file

Decoded = TypeVar("Decoded")

_ENCODER = msgspec.json.Encoder(decimal_format="number")


BOM = b"\xef\xbb\xbf"
"""What some editors write before UTF-8; it says nothing."""

INSTANCES = (".json", ".json.gz")
"""How the names of instance files end."""


def named(path: str | Path) -> Path:
    """Return a file by its name.

    Raises
    ------
    InputError
        If that is no name.
    """
    try:
        return Path(path)
    except TypeError:
        raise InputError(f"the name of a file is needed, not {type(path).__name__}") from None


def read_bytes(path: Path) -> bytes:
    """Return a file's bytes, unpacked if its name ends in ``.gz``.

    Raises
    ------
    InputError
        If it cannot be read.
    """
    try:
        raw = path.read_bytes()
        return gzip.decompress(raw) if path.suffix == ".gz" else raw
    except IsADirectoryError:
        raise InputError("is a directory, a file is needed", file=str(path)) from None
    except FileNotFoundError:
        raise InputError("no such file", file=str(path)) from None
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise InputError(f"is no whole gzip file ({error})", file=str(path)) from None
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror})", file=str(path)) from None


def read_utf8(path: Path) -> bytes:
    """Return a text file's bytes, unpacked if its name ends in ``.gz``, without a mark of order.

    Raises
    ------
    InputError
        If it cannot be read.
    """
    return read_bytes(path).removeprefix(BOM)


def write_bytes(path: Path, data: bytes, *, overwrite: bool = True) -> None:
    """Write a file whole or not at all, packed if its name ends in ``.gz``.

    Raises
    ------
    InputError
        If the file cannot be written, or exists although ``overwrite`` is false.
    """
    if path.suffix == ".gz":
        data = gzip.compress(data, mtime=0)
    with written(path, overwrite=overwrite) as file:
        file.write(data)


@contextmanager
def written(path: Path, *, overwrite: bool = True) -> Iterator[BinaryIO]:
    """Yield a file that is there only when the block has ended well.

    See :func:`layoutopt.saving.whole_file`.

    Raises
    ------
    InputError
        If it cannot be written, or exists although ``overwrite`` is false.
    """
    try:
        with whole_file(path, overwrite=overwrite) as file:
            yield file
    except FileExistsError:
        raise InputError("exists already; it is not overwritten", file=str(path)) from None
    except OSError as error:
        raise InputError(f"cannot be written ({error.strerror})", file=str(path)) from None


def decode(
    decoder: msgspec.json.Decoder[Decoded],
    raw: bytes,
    file: str,
    allowed: dict[str, Sequence[str]],
) -> Decoded:
    """Decode JSON bytes.

    Parameters
    ----------
    file
        Name that errors give to the bytes.
    allowed
        The values that some fields allow, by the end of the field's path, for errors.

    Raises
    ------
    InputError
        With the place in the document: a JSON path, or line and column.
    """
    try:
        return decoder.decode(raw.removeprefix(BOM))
    except msgspec.ValidationError as error:
        reason, _, place = str(error).partition(" - at `")
        place = place.rstrip("`")
        raise InputError(_plain(_allowed(reason, allowed, place)), place, file) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError(*_malformed(str(error), raw), file) from None
    except RecursionError:
        raise InputError("the JSON is nested too deeply", file=file) from None


def encode(document: Any) -> bytes:
    """Encode a document as JSON in one line, exact decimals as numbers."""
    return _ENCODER.encode(document)


def encode_lines(document: dict[str, Any]) -> bytes:
    """Encode a document as JSON, each entry of its long lists on a line of its own."""
    members = []
    for key, value in document.items():
        encoded = encode(value)
        if isinstance(value, list | tuple) and not all(isinstance(v, str) for v in value):
            encoded = b"[\n  " + b",\n  ".join(map(encode, value)) + b"]"
        elif isinstance(value, dict) and any(isinstance(v, list | tuple) for v in value.values()):
            entries = [encode(k) + b": " + encode(v) for k, v in value.items()]
            encoded = b"{\n  " + b",\n  ".join(entries) + b"}"
        members.append(encode(key) + b": " + encoded)
    return b"{" + b",\n ".join(members) + b"}\n"


def number(raw: msgspec.Raw, digits: int = MAX_EXPONENT) -> Decimal:
    """Return a JSON number digit by digit.

    Parameters
    ----------
    digits
        How many it may have before the point.

    Raises
    ------
    InputError
        If it is no number, or has more digits than any value may have.
    """
    text = bytes(raw).decode(errors="replace")
    if not text[:1].isdigit() and not text.startswith("-"):
        raise InputError(f"must be a number, got {text[:40]}")
    return exact_decimal(text, digits)


def _plain(reason: str) -> str:
    return reason[:1].lower() + reason[1:]


def _allowed(reason: str, allowed: dict[str, Sequence[str]], place: str) -> str:
    """Return the reason with the allowed values of the field that it is about."""
    for field, values in allowed.items():
        if place.endswith(field) and reason.startswith("Invalid"):
            return f"{reason.replace('enum ', '')}; allowed: {', '.join(values)}"
    return reason


def _malformed(reason: str, raw: bytes) -> tuple[str, str]:
    """Return what is wrong with bytes that are not JSON, and where."""
    if not raw.strip():
        return "is empty, JSON is needed", ""
    if "truncated" in reason:
        return "the JSON ends too early", ""
    _, _, tail = reason.rpartition("(byte ")
    if not tail[:-1].isdecimal():
        return f"is not JSON ({_plain(reason)})", ""
    offset = int(tail[:-1])
    line = raw.count(b"\n", 0, offset) + 1
    column = offset - (raw.rfind(b"\n", 0, offset) + 1) + 1
    word = raw[offset:].lstrip(b"-").split(b",", 1)[0][:12].split(b"}", 1)[0]
    for name in (b"NaN", b"Infinity", b"nan", b"inf"):
        if word.startswith(name):
            return f"{name.decode()} is not a finite number", f"line {line}, column {column}"
    return "is not JSON", f"line {line}, column {column}"
