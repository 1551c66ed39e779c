"""Layouts as TVM writes them: ``NCHW16c``, ``OIHW16i16o``, ``OIHW[4o4i]``.

An upper-case letter is an axis, a factor and a lower-case letter a block of it, brackets pack two
or more blocks into one dimension.  A block is the inner part of its axis, wherever it stands.
The empty text is a scalar's layout.

As newer versions of TVM do, an axis has at most one block (``NCHW4c2c`` is refused).  Stricter
than any: an axis twice (``NCHWC``), digits that belong to nothing (``NCHW4``) and factors with
leading zeros.
"""

from __future__ import annotations

from string import ascii_lowercase, ascii_uppercase, digits

from layoutopt.layout.parts import Block, Dim, LayoutError, Scanner, check_axes, refuse_extensions

UNDEFINED = "__undef__"


def read(text: str) -> tuple[Dim, ...]:
    """Return the dimensions of a TVM layout."""
    scan = Scanner(text)
    dims: list[Dim] = []
    found: dict[Block, int] = {}  # offsets in the text
    while scan.char:
        if scan.take("["):
            dims.append(_packed(scan, found))
        else:
            dims.append(Dim((_block(scan, found),)))
    for block, at in found.items():
        if Block(block.axis) not in found:
            raise scan.error(f"{block} is a block of an axis {block.axis} that is missing", at)
    return tuple(dims)


def write(dims: tuple[Dim, ...]) -> str:
    """Return the text of a layout, if TVM can say it."""
    check_axes(dims)
    sized: set[str] = set()
    for dim in dims:
        refuse_extensions(dim, "TVM")
        if len(dim.blocks) > 1 and any(block.size is None for block in dim.blocks):
            raise LayoutError(f"TVM packs only blocks with sizes, unlike {dim}")
        for block in dim.blocks:
            if block.size is not None:
                if block.axis in sized:
                    raise LayoutError(f"TVM has at most one block of an axis, {block} is another")
                sized.add(block.axis)
    return "".join(f"[{dim.name}]" if len(dim.blocks) > 1 else dim.name for dim in dims)


def _packed(scan: Scanner, found: dict[Block, int]) -> Dim:
    """Return the packed dimension that comes next, after its opening bracket, and pass it."""
    blocks: list[Block] = []
    while True:
        start = scan.at
        if scan.take("["):
            raise scan.error("packed axes cannot be packed again", start)
        if scan.take("]"):
            if len(blocks) < 2:
                raise scan.error("expected two or more blocks in a packed axis", start)
            return Dim(tuple(blocks))
        if not scan.char:
            raise scan.expected("']' to close the packed axis")
        if scan.char in ascii_uppercase:
            raise scan.error("only blocks with factors can be packed, as in [4o4i]")
        blocks.append(_block(scan, found))


def _block(scan: Scanner, found: dict[Block, int]) -> Block:
    """Return the axis or block that comes next, and pass it."""
    start = scan.at
    if scan.char and scan.char in digits:
        factor = scan.number("a factor")
        if not (letter := scan.take(ascii_lowercase)):
            raise scan.expected(f"a lower-case letter after the factor {factor}")
        block = Block(letter.upper(), factor)
        if any(b.axis == block.axis and b.size for b in found):
            raise scan.error(f"axis {block.axis} has more than one block", start)
    elif letter := scan.take(ascii_uppercase):
        block = Block(letter)
        if block in found:
            raise scan.error(f"axis {letter} is there twice", start)
    elif scan.char and scan.char in ascii_lowercase:
        raise scan.error(f"expected a factor before the block {scan.char}, as in 16{scan.char}")
    elif scan.char == "]":
        raise scan.error("there is no '[' before this ']'")
    else:
        raise scan.expected("an axis such as C, a block such as 16c, or packed blocks in '[]'")
    found[block] = start
    return block
