"""Reading files, writing them atomically, and JSON with errors that say where."""

from __future__ import annotations

import errno
import gzip
import hashlib
import json
import lzma
import os
import secrets
import stat
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from decimal import Decimal
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar, cast

from layoutopt.base.errors import InputError
from layoutopt.base.numbers import MAX_EXPONENT, exact_decimal

if TYPE_CHECKING:
    import msgspec


@contextmanager
def atomic_write(path: Path, *, overwrite: bool = True) -> Iterator[BinaryIO]:
    """Yield a file that appears under its name only if the block succeeds.

    The bytes go to a temporary file in the same folder, which is renamed once they are on the
    disk.  Targets of symbolic links are replaced, not the links.  A new file has permissions by
    the umask, a replaced one keeps its own.  Devices and pipes are written to directly.  Without
    ``overwrite``, existing files are kept, also those created while the block runs.
    """
    target = Path(os.path.realpath(path))
    if path.exists() and not target.is_file():  # the path of a pipe cannot be resolved
        with path.open("wb") as file:  # raises an error for directories
            yield file
        return
    mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else None
    if mode is not None and not overwrite:
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
    temporary = target.with_name(f".layoutopt-{secrets.token_hex(8)}")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(handle)
        if mode is not None:
            temporary.chmod(mode)
        _take_place(temporary, target, overwrite)
    finally:
        temporary.unlink(missing_ok=True)
    _settle(target.parent)


def check_writable(folder: Path) -> None:
    """Check that files can be created in a folder, by a temporary one."""
    temporary = folder / f".layoutopt-{secrets.token_hex(8)}"
    os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    temporary.unlink()


def _take_place(temporary: Path, target: Path, overwrite: bool) -> None:
    """Rename a file; replace an existing one, also if just created, only with ``overwrite``."""
    if overwrite:
        temporary.replace(target)
        return
    try:
        os.link(temporary, target)  # unlike renaming, never replaces a file
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        if target.exists():
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target)) from None
        temporary.replace(target)


def _settle(folder: Path) -> None:
    """Flush a folder's names to the disk where the system supports it."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


Decoded = TypeVar("Decoded")


@cache
def _encoder() -> msgspec.json.Encoder:
    import msgspec

    return msgspec.json.Encoder(decimal_format="number", enc_hook=_of_numpy)


BOM = b"\xef\xbb\xbf"  # UTF-8 byte order mark, written by some editors and ignored
INSTANCES = (".json", ".json.gz")  # suffixes of instance files


def named(path: str | Path) -> Path:
    """Return a user's argument as a path."""
    try:
        found = Path(path)
    except TypeError:
        raise InputError(f"expected a file name, not {type(path).__name__}") from None
    if not os.fspath(path) or "\0" in str(path):
        raise InputError(f"expected a file name, not {str(path)!r}")
    return found


STDIN = "-"  # the name of standard input


@cache
def _standard_input() -> bytes:
    """Return the bytes of standard input, which can be read only once."""
    if sys.stdin is None:
        raise InputError("standard input is closed", file=STDIN)
    raw = sys.stdin.buffer.read()
    return gzip.decompress(raw) if raw.startswith(b"\x1f\x8b") else raw


DAMAGED = (gzip.BadGzipFile, EOFError, zlib.error, lzma.LZMAError)
"""Errors of reading damaged packed files."""


def read_bytes(path: Path, size: int = -1) -> bytes:
    """Return the first ``size`` bytes of a file, or all, unpacked if its name ends in .gz or .xz.

    ``-`` is standard input.  InputError says why a file cannot be read.
    """
    try:
        with opened(path) as file:
            return file.read(size)
    except IsADirectoryError:
        raise InputError("is a directory, not a file", file=str(path)) from None
    except FileNotFoundError:
        raise InputError("no such file", file=str(path)) from None
    except DAMAGED as error:
        kind = "xz" if path.suffix == ".xz" else "gzip"
        raise InputError(f"is a damaged {kind} file ({error})", file=str(path)) from None
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror})", file=str(path)) from None


def opened(path: Path) -> BinaryIO:
    """Open a file for reading, unpacked; ``-`` is standard input."""
    if str(path) == STDIN:
        return BytesIO(_standard_input())
    if path.suffix == ".gz":
        return cast(BinaryIO, gzip.open(path))
    if path.suffix == ".xz":
        return cast(BinaryIO, lzma.open(path))
    return path.open("rb")


def read_utf8(path: Path) -> bytes:
    """Return a text file's bytes as :func:`read_bytes` does, without byte order mark."""
    return read_bytes(path).removeprefix(BOM)


def parse_toml(raw: bytes, file: str, parse_float: Callable[[str], Any] = float) -> dict[str, Any]:
    """Return a document of TOML; raises ``InputError`` if it is none."""
    import tomllib

    try:
        return tomllib.loads(raw.decode(), parse_float=parse_float)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"is not TOML ({error})", file=file) from None
    except RecursionError:
        raise InputError("the TOML is nested too deeply", file=file) from None


def write_bytes(path: Path, data: bytes, *, overwrite: bool = True) -> None:
    """Write a file atomically, packed as :func:`written` does."""
    with written(path, overwrite=overwrite) as file:
        file.write(data)


@contextmanager
def written(path: Path, *, overwrite: bool = True) -> Iterator[BinaryIO]:
    """Yield a file as :func:`atomic_write` does; errors become InputError.

    What is written to it is packed if its name ends in .gz or .xz.
    """
    try:
        with atomic_write(path, overwrite=overwrite) as file, _packing(path, file) as packing:
            yield packing
    except FileExistsError:
        raise InputError("exists already; it is not overwritten", file=str(path)) from None
    except OSError as error:
        raise InputError(f"cannot be written ({error.strerror})", file=str(path)) from None


def _packing(path: Path, file: BinaryIO) -> AbstractContextManager[BinaryIO]:
    if path.suffix == ".gz":
        return cast(BinaryIO, gzip.GzipFile("", "wb", fileobj=file, mtime=0))
    if path.suffix == ".xz":
        return cast(BinaryIO, lzma.open(file, "wb"))
    return nullcontext(file)


def decode(
    decoder: msgspec.json.Decoder[Decoded], raw: bytes, file: str, allowed: dict[str, Sequence[str]]
) -> Decoded:
    """Decode JSON bytes; errors name the file, and a JSON path or line and column.

    ``allowed`` has the values of some fields for errors, by suffix of the field's path.
    """
    import msgspec

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
    return _encoder().encode(document)


def encode_lines(document: dict[str, Any]) -> bytes:
    """Encode a document as JSON, with one line per entry of long lists."""
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


def encode_list(documents: Sequence[Any]) -> bytes:
    """Encode documents as a JSON list, one in each line."""
    return b"[" + b",\n".join(map(encode, documents)) + b"]\n"


def number(raw: msgspec.Raw, digits: int = MAX_EXPONENT) -> Decimal:
    """Return a JSON number as an exact decimal of at most so many digits before the point."""
    text = bytes(raw).decode(errors="replace")
    if not text[:1].isdigit() and not text.startswith("-"):
        raise InputError(f"must be a number, got {text[:40]}")
    return exact_decimal(text, digits)


def _plain(reason: str) -> str:
    return reason[:1].lower() + reason[1:]


def _allowed(reason: str, allowed: dict[str, Sequence[str]], place: str) -> str:
    """Return the reason, with the allowed values of the field added."""
    for field, values in allowed.items():
        if place.endswith(field) and reason.startswith("Invalid"):
            return f"{reason.replace('enum ', '')}; allowed: {', '.join(values)}"
    return reason


def _malformed(reason: str, raw: bytes) -> tuple[str, str]:
    """Return the fault of bytes that are not JSON, and its place."""
    if not raw.strip():
        return "is empty, not JSON", ""
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


def digest(document: Any) -> str:
    """Return ``"sha256:"`` and the SHA-256 digest of a document as JSON.

    The JSON is ASCII with sorted keys and no spaces; NumPy's numbers and arrays are written as
    Python's.
    """
    try:
        text = json.dumps(document, sort_keys=True, separators=(",", ":"), default=_of_numpy)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"cannot be written as JSON ({error})") from None
    return f"sha256:{hashlib.sha256(text.encode('ascii')).hexdigest()}"


def shortest(value: Decimal) -> str:
    """Return the canonical spelling of a number: no exponent, no redundant zeros."""
    text = f"{value:f}"  # exact, whereas normalize() rounds to 28 digits
    return text.rstrip("0").rstrip(".") if "." in text else text


def _of_numpy(value: Any) -> Any:
    if hasattr(value, "tolist"):  # NumPy's
        return value.tolist()
    raise InputError(f"{type(value).__name__} is not supported by JSON")
