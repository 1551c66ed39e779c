"""Grouped convolutions: where a filter has its groups, how many there are, and shapes.

With ``g`` groups, each ``k / g`` of ``k`` output channels see ``c / g`` of ``c`` input channels.
Words and rules are those of PlaidML's op library.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from layoutopt.base.errors import check_word
from layoutopt.layout.parts import LayoutError, size, sizes

AutoPad: TypeAlias = Literal["explicit", "none", "valid", "same_lower", "same_upper"]
"""How data is padded: as told (two words for this); not at all; so that a window of stride 1 has
as many places as there is data, an odd element going before it or behind."""

Pads: TypeAlias = tuple[tuple[int, int], ...]
"""Padding before and behind each dimension."""


def windows(
    size: Sequence[int],
    window: Sequence[int],
    strides: Sequence[int] = (),
    dilations: Sequence[int] = (),
    data_dilations: Sequence[int] = (),
    *,
    autopad: AutoPad = "same_upper",
    padding: Sequence[int] = (),
) -> tuple[tuple[int, ...], Pads]:
    """Return the number of places of a window along each dimension, and the padding.

    Dilated by ``d``, ``n`` elements take ``d (n - 1) + 1``.  With data that takes ``t``, a window
    that takes ``w`` and stride ``s``, there are ``ceil(t / s)`` places if the padding is to keep
    them the same, and else ``floor((before + t + behind - w) / s) + 1``.

    ``padding`` goes with ``explicit`` and ``none``: before each dimension, and then behind each; if
    the latter are left out they are the former.  As PlaidML's ``compute_padding_and_output_size``
    and ``extend_manual_padding``, which take any number of paddings, and find no places, or fewer,
    for a window that does not fit.
    """
    check_word("autopad", autopad, AutoPad, error=LayoutError)
    data = sizes("size", size, 1)
    rank = len(data)

    def each(name: str, given: Sequence[int]) -> tuple[int, ...]:
        return sizes(name, sizes(name, given, 1) or (1,) * rank, 1, rank)

    steps = each("strides", strides)
    room = list(map(_dilated, data, each("data_dilations", data_dilations)))
    reach = list(map(_dilated, sizes("window", window, 1, rank), each("dilations", dilations)))
    if autopad in ("explicit", "none"):
        pads = _told(padding, rank)
    elif told := sizes("padding", padding):
        raise LayoutError(f"autopad {autopad} takes no padding, got {told}")
    elif autopad == "valid":
        pads = ((0, 0),) * rank
    else:
        every = zip(room, reach, steps, strict=True)
        totals = [max(0, (-(-t // step) - 1) * step + w - t) for t, w, step in every]
        firsts = [(total + (autopad == "same_lower")) // 2 for total in totals]
        pads = tuple((n, total - n) for n, total in zip(firsts, totals, strict=True))
    places = []
    for t, w, step, pad in zip(room, reach, steps, pads, strict=True):
        if w > t + sum(pad):
            raise LayoutError(f"a window over {w} elements does not fit into {t + sum(pad)}")
        places.append((t + sum(pad) - w) // step + 1)
    return tuple(places), pads


def _dilated(count: int, dilation: int) -> int:
    """Return how much room dilated elements take."""
    return dilation * (count - 1) + 1


def _told(padding: Sequence[int], rank: int) -> Pads:
    """Return padding as pairs."""
    given = sizes("padding", padding)
    if len(given) not in (0, rank, 2 * rank):
        raise LayoutError(
            f"padding must have {rank} entries, {2 * rank} or none; got {len(given)}: {given}"
        )
    before = given[:rank] or (0,) * rank
    return tuple(zip(before, given[rank:] or before, strict=True))


GroupLayout: TypeAlias = Literal["none", "separate", "in_C", "in_K"]
"""What a filter's channel axes hold: C and K, as there are no groups; G, C/G and K/G; C and K/G;
C/G and K."""

AutoGroup: TypeAlias = Literal["ungrouped", "explicit", "auto", "depthwise"]
"""Where the number of groups comes from: it is 1; it is given; the shapes tell it; it is that of
the input channels."""

INPUT_LAYOUTS = ("NXC", "NCX")
FILTER_LAYOUTS = ("XCK", "KCX", "XGCK", "GKCX")
"""N is the batch, C input channels, K output channels, G groups, X all spatial dimensions.  With
W, HW or DHW in place of X, as in NHWC, their number is checked."""


@dataclass(frozen=True)
class Grouping:
    """A convolution's groups, channels and shapes.

    ``group_layout`` is as given, but ``none`` for a single group without an axis of its own;
    ``ci`` and ``co`` count input and output channels, ``f_ci`` and ``f_co`` are the filter's axes C
    and K, ``kernel`` its spatial sizes; ``output_shape`` is in the order of the input's layout.
    """

    groups: int
    group_layout: GroupLayout
    ci: int
    co: int
    f_ci: int
    f_co: int
    kernel: tuple[int, ...]
    pads: tuple[tuple[int, int], ...]
    output_shape: tuple[int, ...]


def grouped_convolution(
    input_shape: Sequence[int],
    filter_shape: Sequence[int],
    *,
    input_layout: str = "NXC",
    filter_layout: str = "XCK",
    group_layout: GroupLayout = "none",
    autogroup: AutoGroup = "ungrouped",
    groups: int = 1,
    strides: Sequence[int] = (),
    dilations: Sequence[int] = (),
    data_dilations: Sequence[int] = (),
    autopad: AutoPad = "same_upper",
    padding: Sequence[int] = (),
) -> Grouping:
    """Return the groups and shapes of a convolution, with the same layout of input and output.

    Shapes are in the order of the layouts, one of ``INPUT_LAYOUTS`` and one of ``FILTER_LAYOUTS``;
    ``group_layout`` ``separate`` goes with an axis G, and only it.  See :func:`normalised_grouping`
    for the groups, :func:`windows` for the rest.
    """
    data, extent = _sizes_of("input", input_shape, input_layout, INPUT_LAYOUTS)
    weights, kernel = _sizes_of("filter", filter_shape, filter_layout, FILTER_LAYOUTS)
    if len(kernel) != len(extent):
        raise LayoutError(
            f"the input has {len(extent)} spatial dimensions, the filter {len(kernel)}"
        )
    _check_group_axis(weights, filter_layout, group_layout)
    count, kept = _groups(data["C"], weights, group_layout, autogroup, groups)
    co = weights["K"] * (count if kept in ("separate", "in_C") else 1)
    places, pads = windows(
        extent, kernel, strides, dilations, data_dilations, autopad=autopad, padding=padding
    )
    out = {"N": (data["N"],), "C": (co,), "X": places}
    shape = tuple(n for letter in _form(input_layout) for n in out[letter])
    channels = data["C"], co, weights["C"], weights["K"]
    return Grouping(count, kept, *channels, kernel, pads, shape)


def normalised_grouping(
    group_layout: GroupLayout, autogroup: AutoGroup, groups: int
) -> tuple[AutoGroup, GroupLayout, int | None]:
    """Return mode, layout and number of groups as they are used.

    The number is None if the shapes tell it; ``auto`` and ``depthwise`` do not look at it.  One
    group is ``ungrouped``, and its layout ``none`` unless the groups have an axis, of size 1 then;
    PlaidML's ``normalize_grouping_strategy`` leaves the layout of one group as it is.
    """
    check_word("group_layout", group_layout, GroupLayout, error=LayoutError)
    check_word("autogroup", autogroup, AutoGroup, error=LayoutError)
    number = size("groups", groups, 1) if autogroup == "explicit" else groups
    if autogroup == "ungrouped" and number != 1:
        raise LayoutError(f"autogroup ungrouped means groups 1, got {number!r}")
    if autogroup == "explicit" and number > 1 and group_layout == "none":
        raise LayoutError(f"groups {number} need a group_layout: separate, in_C or in_K")
    if autogroup == "depthwise" and group_layout == "none":
        raise LayoutError("autogroup depthwise needs a group_layout: separate, in_C or in_K")
    if autogroup == "auto" and group_layout == "in_C":
        raise LayoutError(
            "autogroup auto cannot tell groups with group_layout in_C, "
            "where the filter has all input channels"
        )
    if group_layout == "none" or (number == 1 and autogroup in ("ungrouped", "explicit")):
        return "ungrouped", "separate" if group_layout == "separate" else "none", 1
    return autogroup, group_layout, number if autogroup == "explicit" else None


def filter_shape(
    ci: int,
    co: int,
    kernel: Sequence[int],
    *,
    filter_layout: str = "XCK",
    group_layout: GroupLayout = "none",
    groups: int = 1,
) -> tuple[int, ...]:
    """Return the shape of a convolution's filter, for ``ci`` input and ``co`` output channels."""
    normalised_grouping(group_layout, "explicit", groups)
    _check_divides(groups, size("ci", ci, 1), "input")
    _check_divides(groups, size("co", co, 1), "output")
    each = {
        "G": (groups,),
        "C": (ci if group_layout == "in_C" else ci // groups,),
        "K": (co if group_layout == "in_K" else co // groups,),
        "X": sizes("kernel", kernel, 1),
    }
    shape = tuple(n for letter in _form(filter_layout) for n in each.get(letter, ()))
    weights, _ = _sizes_of("filter", shape, filter_layout, FILTER_LAYOUTS)
    _check_group_axis(weights, filter_layout, group_layout)
    return shape


def _form(layout: str) -> str:
    """Return a layout with one X for all spatial dimensions."""
    return re.sub("DHW|HW|W", "X", str(layout).upper(), count=1)


def _sizes_of(
    what: str, shape: Sequence[int], layout: str, layouts: Sequence[str]
) -> tuple[dict[str, int], tuple[int, ...]]:
    """Return the size of each axis by letter, and of the spatial dimensions."""
    form, given = _form(layout), sizes(f"{what}_shape", shape)
    if form not in layouts:
        raise LayoutError(f"{what}_layout must be one of {', '.join(layouts)}; got {layout!r}")
    rank = len(given) - (len(form) - 1)
    named = len(layout) - len(form) + 1
    if rank < 0 or ("X" not in layout.upper() and rank != named):
        raise LayoutError(f"{what}_shape {given} does not have the axes {layout}")
    if 0 in given[form.startswith("N") :]:
        raise LayoutError(f"{what}_shape {given}: only the batch can be 0")
    at = form.index("X")
    others = zip(form.replace("X", ""), given[:at] + given[at + rank :], strict=True)
    return dict(others), given[at : at + rank]


def _check_group_axis(
    weights: Mapping[str, int], filter_layout: str, group_layout: GroupLayout
) -> None:
    """Check that the filter has an axis for groups if and only if they are separate."""
    check_word("group_layout", group_layout, GroupLayout, error=LayoutError)
    if ("G" in weights) != (group_layout == "separate"):
        has = "has" if "G" in weights else "lacks"
        raise LayoutError(
            f"filter_layout {filter_layout} {has} an axis G, group_layout is {group_layout}"
        )


def _groups(
    ci: int,
    weights: Mapping[str, int],
    group_layout: GroupLayout,
    autogroup: AutoGroup,
    groups: int,
) -> tuple[int, GroupLayout]:
    """Return the number of groups, and the layout, of a filter that fits the input channels."""
    mode, layout, given = normalised_grouping(group_layout, autogroup, groups)
    if given is not None:
        count = given
    elif mode == "depthwise":
        count = ci
    elif layout == "separate":
        count = weights["G"]
    elif ci % weights["C"]:
        raise LayoutError(
            f"the filter's {weights['C']} input channels do not divide the input's {ci} into groups"
        )
    else:
        count = ci // weights["C"]
    _check_divides(count, ci, "input")
    if layout == "in_K":
        _check_divides(count, weights["K"], "output")
    wanted = ci if layout in ("none", "in_C") else ci // count
    if weights["C"] != wanted:
        raise LayoutError(
            f"a filter with group_layout {layout} has {wanted} input channels for {ci} "
            f"in {count} groups, got {weights['C']}"
        )
    if weights.get("G", count) != count:
        raise LayoutError(f"the filter has {weights['G']} groups, not {count}")
    return count, "none" if count == 1 and layout != "separate" else layout


def _check_divides(groups: int, channels: int, what: str) -> None:
    if channels % groups:
        raise LayoutError(f"{groups} groups do not divide {channels} {what} channels")
